//! Runs of the shared contract: read from the library's projection, written by `git aynig flow`.
//!
//! An answer is projected after the write that it answers, and so includes it. A run is found in whichever
//! repository has it. A request's body is read by its type; unknown keys are ignored, as the contract
//! demands. Implements W5.

use crate::fail::Failed;
use crate::paging::{self, Wanted};
use crate::routes::{Answer, Asked, Named, Ours, Sent, body, reading, writable};
use crate::state::State;
use crate::verbs::{called, refused, texts, written};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State as Of};
use axum::http::header;
use axum::response::IntoResponse;
use aynig::contract::edge::EdgeSpec;
use aynig::contract::id::{EdgeId, NodeId, RunId};
use aynig::contract::node::{NodeChange, NodeSpec, PermissionsPart};
use aynig::contract::run::{Layout, Position, Viewport};
use aynig::contract::time::Time;
use aynig::contract::words::{GlobalMode, Mode, RunStatus};
use aynig::served::{Cause, Place, RunState};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::{Path as File, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, PoisonError};

/// The two named parts of a path.
pub type Pair = Result<Path<(String, String)>, PathRejection>;

/// Reads an id of the contract. A text that is no id counts as the id of nothing.
pub fn id<T: FromStr>(text: &str, what: &str) -> Result<T, Failed> {
    text.parse().map_err(|_| Failed::unknown(format!("there is no such {what}")))
}

impl State {
    /// Returns the repository that has a run.
    pub fn place_of(&self, run: RunId) -> Result<&Place, Failed> {
        let mut missing = Failed::unknown("there is no such run");
        for place in &self.served.places {
            match place.has_flow(run) {
                Ok(true) => return Ok(place),
                Ok(false) => {}
                // Another repository may have the run.
                Err(error) => missing = Failed::from(error),
            }
        }
        Err(missing)
    }

    /// Asks each repository, and returns the answers and the failures. If every one failed, the last failure
    /// is the answer.
    pub fn each_place<T, E>(
        &self,
        ask: impl Fn(&Place) -> Result<T, E>,
    ) -> Result<(Vec<T>, Vec<Value>), Failed>
    where
        Failed: From<E>,
    {
        let (mut found, mut failed, mut last) = (Vec::new(), Vec::new(), None);
        for (repo, place) in self.served.places.iter().enumerate() {
            match ask(place).map_err(Failed::from) {
                Ok(one) => found.push(one),
                Err(error) => {
                    failed.push(json!({"repo": repo, "error": error.words()}));
                    last = Some(error);
                }
            }
        }
        match last {
            Some(error) if found.is_empty() => Err(error),
            Some(_) | None => Ok((found, failed)),
        }
    }

    /// Returns the present state of a run.
    pub fn run(&self, run: RunId) -> Result<RunState, Failed> {
        Ok(self.place_of(run)?.flow(run, self.served.data.as_deref())?)
    }

    /// Runs a subcommand about a flow, in the repository that has the flow, and returns the object that it
    /// printed.
    pub fn flow(&self, run: RunId, verb: &[&str], words: &[OsString], input: &str) -> Result<Value, Failed> {
        let place = self.place_of(run)?;
        flow(self, place, verb, words, input)
    }
}

/// Runs a subcommand of `git aynig flow`, and returns the last object that it printed.
pub fn flow(
    state: &State,
    place: &Place,
    verb: &[&str],
    words: &[OsString],
    input: &str,
) -> Result<Value, Failed> {
    writable(state, place)?;
    let verb = verb.iter().map(OsString::from);
    let all: Vec<OsString> =
        std::iter::once("flow".into()).chain(verb).chain(words.iter().cloned()).collect();
    texts(&all)?;
    let finished = called(&state.served.program, place, &all, input.as_bytes())?;
    if finished.status.success() && finished.stdout.bytes.is_empty() {
        return Ok(Value::Null);
    }
    // Objects before the last one say what else changed.
    let mut lines = finished.stdout.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    match (finished.status.success(), lines.next_back().map(serde_json::from_slice)) {
        (true, Some(Ok(object))) => Ok(object),
        (true, Some(Err(_)) | None) => written(&finished),
        (false, _) => Err(match finished.status.code() {
            // The present state forbids it, or what it names is missing: neither is a matter of rights.
            Some(2) => refused(&finished).into_conflict(),
            Some(_) | None => refused(&finished),
        }),
    }
}

fn word(flag: &str, value: impl AsRef<str>) -> OsString {
    format!("--{flag}={}", value.as_ref()).into()
}

fn last(words: &mut Vec<OsString>, rest: &[&str]) {
    words.push("--json".into());
    words.push("--".into());
    words.extend(rest.iter().map(OsString::from));
}

/// Returns an answer that also lists what could not be read, if there is any.
pub fn and_failed(mut answer: Value, failed: Vec<Value>) -> Value {
    if !failed.is_empty() {
        answer["failed"] = Value::Array(failed);
    }
    answer
}

/// Answers with all runs of all repositories; one that can't be read hides no other.
pub async fn list(Of(state): Ours) -> Answer {
    let runs = reading(move || {
        let (mut runs, mut names) = (Vec::new(), Map::new());
        let (places, mut failed) =
            state.each_place(|place| Ok::<_, Failed>((place.clone(), place.flows()?)))?;
        for (place, id) in places.iter().flat_map(|(place, ids)| ids.iter().map(move |id| (place, *id))) {
            match place.flow(id, state.served.data.as_deref()) {
                Ok(found) => {
                    names.insert(id.to_string(), json!(found.name));
                    runs.push(found.run);
                }
                // The run was removed in between.
                Err(error) if error.cause == Cause::Unknown => {}
                Err(error) => failed.push(json!({"runId": id, "error": error.message})),
            }
        }
        Ok::<_, Failed>(and_failed(json!({"runs": runs, "names": names}), failed))
    });
    Ok(Json(runs.await?).into_response())
}

async fn whole(state: Arc<State>, id: RunId) -> Answer {
    let (found, repo) = reading(move || {
        let place = state.place_of(id)?;
        let repo = state.served.places.iter().position(|one| one.folder == place.folder);
        Ok::<_, Failed>((state.run(id)?, repo))
    })
    .await?;
    Ok(Json(json!({"run": found.run, "name": found.name, "repo": repo})).into_response())
}

/// Answers with one run.
pub async fn get(Of(state): Ours, named: Named) -> Answer {
    let Path(run) = named?;
    whole(state, id(&run, "run")?).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct New {
    mode: Option<Mode>,
    global_mode: Option<GlobalMode>,
    cwd: Option<String>,
    name: Option<String>,
}

/// Returns the repository, of those that are served, in which a folder lies, and the folder's path from its
/// top; the path is empty for the top itself.
fn holder<'a>(state: &'a State, cwd: Option<&str>) -> Result<(&'a Place, PathBuf), Failed> {
    let places = &state.served.places;
    let Some(cwd) = cwd.filter(|cwd| !cwd.trim().is_empty()) else { return Ok((&places[0], PathBuf::new())) };
    let outside = || Failed::invalid("'cwd' is no folder of a repository that is served");
    let folder = std::fs::canonicalize(cwd).map_err(|_| outside())?;
    let below = |place: &'a Place| {
        let top = std::fs::canonicalize(&place.folder).ok()?;
        Some((place, folder.strip_prefix(top).ok()?.to_owned()))
    };
    // If one repository lies in another, the inner one is meant.
    let found = places.iter().filter_map(below).min_by_key(|(_, below)| below.components().count());
    found.filter(|_| folder.is_dir()).ok_or_else(outside)
}

/// Creates a run.
pub async fn create(Of(state): Ours, sent: Sent) -> Answer {
    let given: New = body(sent)?;
    let of = Arc::clone(&state);
    let made = reading(move || {
        let (place, below) = holder(&of, given.cwd.as_deref())?;
        let mut words: Vec<OsString> = given.mode.iter().map(|mode| word("mode", mode.word())).collect();
        words.extend(given.global_mode.map(|mode| global(mode).into()));
        if !below.as_os_str().is_empty() {
            let mut folder = OsString::from("--folder=");
            folder.push(&below);
            words.push(folder);
        }
        last(&mut words, &given.name.iter().map(String::as_str).collect::<Vec<_>>());
        let made = flow(&of, place, &["new"], &words, "")?;
        id::<RunId>(made["flow"].as_str().unwrap_or_default(), "run")
    });
    whole(state, made.await?).await
}

fn global(mode: GlobalMode) -> &'static str {
    match mode {
        GlobalMode::Planning => "--plan",
        GlobalMode::Implementation => "--implement",
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RunChange {
    status: Option<RunStatus>,
    mode: Option<Mode>,
    global_mode: Option<GlobalMode>,
    layout: Option<LayoutSent>,
}

/// A layout as a page sends it. The server sets the time, and leaves out what is no position, so that the
/// rest of the change is kept.
#[derive(Debug, Deserialize)]
struct LayoutSent {
    positions: Map<String, Value>,
    viewport: Viewport,
}

impl LayoutSent {
    fn usable(self) -> Layout {
        let place =
            |(node, at): (&String, &Value)| Some((node.parse().ok()?, Position::deserialize(at).ok()?));
        let positions = self.positions.iter().filter_map(place).collect();
        Layout { positions, viewport: self.viewport, updated_at: Time(0) }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Patched {
    #[serde(default)]
    patch: RunChange,
}

/// Changes a run, and answers with all of it.
pub async fn patch(Of(state): Ours, named: Named, sent: Sent) -> Answer {
    let (Path(run), given) = (named?, body::<Patched>(sent)?.patch);
    let run: RunId = id(&run, "run")?;
    let of = Arc::clone(&state);
    reading(move || {
        let place = of.place_of(run)?;
        let name = run.to_string();
        if let Some(wanted) = given.layout {
            writable(&of, place)?;
            let kept = place.keep_layout(run, of.served.data.as_deref(), wanted.usable())?;
            of.live.say(run, &json!({"type": "run.patch", "patch": {"layout": kept}}));
        }
        if given.mode.is_some() || given.global_mode.is_some() {
            let mut words: Vec<OsString> =
                given.global_mode.map(|mode| global(mode).into()).into_iter().collect();
            let mode = given.mode.map(|mode| mode.word().to_ascii_lowercase());
            last(
                &mut words,
                &[Some(name.as_str()), mode.as_deref()].into_iter().flatten().collect::<Vec<_>>(),
            );
            of.flow(run, &["mode"], &words, "")?;
        }
        if let Some(status) = given.status {
            let mut words = vec![word("status", status.word())];
            last(&mut words, &[&name]);
            of.flow(run, &["set"], &words, "")?;
        }
        Ok::<_, Failed>(())
    })
    .await?;
    whole(state, run).await
}

/// Removes a run.
pub async fn remove(Of(state): Ours, named: Named) -> Answer {
    let Path(text) = named?;
    let run: RunId = id(&text, "run")?;
    reading(move || {
        let mut words = Vec::new();
        last(&mut words, &[&run.to_string()]);
        state.flow(run, &["rm"], &words, "")
    })
    .await?;
    Ok(Json(json!({"runId": run})).into_response())
}

/// Answers with a page of a run's events.
pub async fn events(Of(state): Ours, named: Named, asked: Asked<Wanted>) -> Answer {
    let (Path(run), Query(asked)) = (named?, asked?);
    let run: RunId = id(&run, "run")?;
    let page = reading(move || {
        let place = state.place_of(run)?;
        let data = state.served.data.as_deref();
        place.flow(run, data)?;
        let known = state.known(run);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |from, most| Ok(place.flow_log(run, data, from, most)?);
        paging::page(&mut known, &read, &asked)
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], page.await?).into_response())
}

#[derive(Debug, Deserialize)]
struct NewNode {
    node: NodeSpec,
}

fn node_words(change: &NodeChange) -> Vec<OsString> {
    let mut words = Vec::new();
    words.extend(change.label.iter().map(|label| word("label", label)));
    words.extend(change.alias.iter().map(|alias| word("alias", alias.trim())));
    words.extend(change.role_template.iter().map(|role| word("role", role)));
    words.extend(change.provider.iter().map(|provider| word("provider", provider.word())));
    match &change.custom_system_prompt {
        Some(Some(_)) => words.push("--prompt-file=-".into()),
        Some(None) => words.push("--no-prompt".into()),
        None => {}
    }
    let mut set = |key: &str, value: String| words.push(word("set", format!("{key}={value}")));
    if let Some(part) = &change.capabilities {
        part.edge_management.iter().for_each(|value| set("edgeManagement", value.word().to_owned()));
        let flags = [
            ("writeCode", part.write_code),
            ("writeDocs", part.write_docs),
            ("runCommands", part.run_commands),
            ("delegateOnly", part.delegate_only),
        ];
        flags.iter().for_each(|(key, value)| value.iter().for_each(|value| set(key, value.to_string())));
    }
    if let Some(PermissionsPart { cli_permissions_mode, agent_management_requires_approval }) =
        &change.permissions
    {
        cli_permissions_mode.iter().for_each(|mode| set("cliPermissionsMode", mode.word().to_owned()));
        let asks = agent_management_requires_approval;
        asks.iter().for_each(|value| set("agentManagementRequiresApproval", value.to_string()));
    }
    change.session.iter().for_each(|session| set("resume", session.resume.to_string()));
    words
}

/// Adds a node.
pub async fn add_node(Of(state): Ours, named: Named, sent: Sent) -> Answer {
    let (Path(run), NewNode { node: spec }) = (named?, body::<NewNode>(sent)?);
    let run: RunId = id(&run, "run")?;
    let node = reading(move || {
        let change = NodeChange {
            label: Some(spec.label),
            alias: spec.alias.filter(|alias| !alias.trim().is_empty()),
            provider: Some(spec.provider),
            role_template: Some(spec.role_template),
            custom_system_prompt: spec.custom_system_prompt.map(Some),
            capabilities: Some(spec.capabilities),
            permissions: Some(spec.permissions),
            session: Some(spec.session),
        };
        let mut words = node_words(&change);
        words.extend(spec.id.iter().map(|id| word("id", id.to_string())));
        last(&mut words, &[&run.to_string()]);
        let prompt = change.custom_system_prompt.flatten().unwrap_or_default();
        let made = state.flow(run, &["node", "add"], &words, &prompt)?;
        let node: NodeId = id(made["node"]["id"].as_str().unwrap_or_default(), "node")?;
        node_of(&state, run, node)
    });
    Ok(Json(json!({"node": node.await?})).into_response())
}

fn node_of(state: &State, run: RunId, node: NodeId) -> Result<Value, Failed> {
    let found = state.run(run)?.run;
    let node = found.nodes.get(&node).ok_or_else(|| Failed::unknown("there is no such node"))?;
    Ok(json!(node))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodePatched {
    /// A change of the state. Its `session` is dropped, as that is no setting.
    patch: Map<String, Value>,
    config: NodeChange,
}

/// Changes a node.
pub async fn patch_node(Of(state): Ours, named: Pair, sent: Sent) -> Answer {
    let (Path((run, node)), given) = (named?, body::<NodePatched>(sent)?);
    let (run, node): (RunId, NodeId) = (id(&run, "run")?, id(&node, "node")?);
    let NodePatched { mut patch, config } = given;
    patch.remove("session");
    let patch: NodeChange = serde_json::from_value(Value::Object(patch))?;
    let change = NodeChange {
        label: config.label.or(patch.label),
        alias: config.alias.or(patch.alias),
        provider: config.provider.or(patch.provider),
        role_template: config.role_template.or(patch.role_template),
        custom_system_prompt: config.custom_system_prompt.or(patch.custom_system_prompt),
        capabilities: config.capabilities.or(patch.capabilities),
        permissions: config.permissions.or(patch.permissions),
        session: config.session,
    };
    let node = reading(move || {
        node_of(&state, run, node)?;
        let mut words = node_words(&change);
        if !words.is_empty() {
            last(&mut words, &[&run.to_string(), &node.to_string()]);
            let prompt = change.custom_system_prompt.flatten().unwrap_or_default();
            state.flow(run, &["node", "set"], &words, &prompt)?;
        }
        node_of(&state, run, node)
    });
    Ok(Json(json!({"node": node.await?})).into_response())
}

/// Runs a subcommand about a node, which has to exist.
async fn about_node(state: Arc<State>, named: Pair, verb: &'static [&'static str]) -> Result<String, Failed> {
    let Path((run, text)) = named?;
    let (run, node): (RunId, NodeId) = (id(&run, "run")?, id(&text, "node")?);
    reading(move || {
        node_of(&state, run, node)?;
        let mut words = Vec::new();
        last(&mut words, &[&run.to_string(), &node.to_string()]);
        state.flow(run, verb, &words, "")
    })
    .await?;
    Ok(text)
}

/// Removes a node.
pub async fn remove_node(Of(state): Ours, named: Pair) -> Answer {
    let node = about_node(state, named, &["node", "remove"]).await?;
    Ok(Json(json!({"nodeId": node})).into_response())
}

async fn done(state: Arc<State>, named: Pair, verb: &'static [&'static str]) -> Answer {
    about_node(state, named, verb).await?;
    Ok(Json(json!({"ok": true})).into_response())
}

/// Clears a node's stop flag.
pub async fn start(Of(state): Ours, named: Pair) -> Answer {
    done(state, named, &["start"]).await
}

/// Sets a node's stop flag, and ends its turn.
pub async fn stop(Of(state): Ours, named: Pair) -> Answer {
    done(state, named, &["stop"]).await
}

/// Ends a node's turn.
pub async fn interrupt(Of(state): Ours, named: Pair) -> Answer {
    done(state, named, &["interrupt"]).await
}

/// Drops the messages that wait for a node, and makes its next turn begin a new session.
pub async fn reset(Of(state): Ours, named: Pair) -> Answer {
    done(state, named, &["reset"]).await
}

#[derive(Debug, Deserialize)]
struct NewEdge {
    edge: EdgeSpec,
}

/// Puts an edge.
pub async fn put_edge(Of(state): Ours, named: Named, sent: Sent) -> Answer {
    let (Path(run), NewEdge { edge }) = (named?, body::<NewEdge>(sent)?);
    let run: RunId = id(&run, "run")?;
    let edge = reading(move || {
        let mut words: Vec<OsString> = edge.id.iter().map(|id| word("id", id.to_string())).collect();
        words.extend((edge.bidirectional == Some(false)).then(|| "--one-way".into()));
        words.extend(edge.edge_type.iter().map(|kind| word("type", kind.word())));
        words.extend(edge.label.iter().map(|label| word("label", label)));
        last(&mut words, &[&run.to_string(), &edge.from.to_string(), &edge.to.to_string()]);
        let put = state.flow(run, &["edge", "add"], &words, "")?;
        // The run is projected at once, so that the next reader finds the edge.
        state.run(run)?;
        Ok::<_, Failed>(put["edge"].clone())
    });
    Ok(Json(json!({"edge": edge.await?})).into_response())
}

/// Removes an edge.
pub async fn remove_edge(Of(state): Ours, named: Pair) -> Answer {
    let Path((run, text)) = named?;
    let (run, edge): (RunId, EdgeId) = (id(&run, "run")?, id(&text, "edge")?);
    reading(move || {
        let there = state.run(run)?.run.edges.contains_key(&edge);
        if !there {
            return Err(Failed::unknown("there is no such edge"));
        }
        let mut words = Vec::new();
        last(&mut words, &[&run.to_string(), &edge.to_string()]);
        state.flow(run, &["edge", "remove"], &words, "")
    })
    .await?;
    Ok(Json(json!({"edgeId": text})).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chat {
    node_id: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    interrupt: bool,
}

/// Sends a message to a node.
pub async fn chat(Of(state): Ours, named: Named, sent: Sent) -> Answer {
    let (Path(run), chat) = (named?, body::<Chat>(sent)?);
    let (run, node): (RunId, NodeId) = (id(&run, "run")?, id(&chat.node_id, "node")?);
    if chat.content.trim().is_empty() {
        return Err(Failed::invalid("'content' is empty"));
    }
    let sent = reading(move || {
        node_of(&state, run, node)?;
        let mut words = vec![word("file", "-")];
        last(&mut words, &[&run.to_string(), &node.to_string()]);
        let verb = if chat.interrupt { "interrupt" } else { "send" };
        state.flow(run, &[verb], &words, &chat.content)
    })
    .await?;
    Ok(Json(json!({"messageId": sent["id"]})).into_response())
}

/// Returns the real path of a folder if it is below the repository's folder, whichever links lead to it.
pub fn inside(place: &Place, folder: &File) -> Option<std::path::PathBuf> {
    let top = std::fs::canonicalize(&place.folder).ok()?;
    std::fs::canonicalize(folder).ok().filter(|folder| folder.starts_with(&top))
}
