//! Approvals, templates of roles, files of turns, and folders to choose from: what the original's page asks
//! for besides runs.
//!
//! Each is read and written as the command line does. Implements W5 (approvals, artifacts, templates,
//! folders).

use crate::fail::Failed;
use crate::routes::{Answer, Asked, Named, Ours, Sent, body, reading};
use crate::runs::{Pair, and_failed, flow, id, inside};
use crate::state::State;
use crate::verbs::{lines, looked, refused};
use axum::Json;
use axum::extract::{Path, Query, State as Of};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use aynig::contract::event::ApprovalResolution;
use aynig::contract::id::{ApprovalId, ArtifactId, RunId};
use aynig::contract::words::ApprovalStatus;
use aynig::served::Place;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsString;

/// Returns the JSON lines that a subcommand of `git aynig flow` prints.
fn printed(state: &State, place: &Place, words: &[&str]) -> Result<Vec<Value>, Failed> {
    let words: Vec<OsString> = std::iter::once(&"flow").chain(words).map(OsString::from).collect();
    let finished = looked(&state.served.program, place, &words)?;
    match finished.status.success() {
        true => lines(&finished),
        false => Err(refused(&finished)),
    }
}

/// Answers with all open approvals, of all runs.
pub async fn list(Of(state): Ours) -> Answer {
    let approvals = reading(move || {
        let mut all = Vec::new();
        let (found, failed) = state.each_place(Place::approvals)?;
        for lines in found {
            // A question that is not about a call is not an approval.
            for line in lines.into_iter().filter(|line| line["tool"].is_object()) {
                let context = line["text"].as_str().and_then(|text| text.lines().next()).unwrap_or_default();
                all.push(json!({"runId": line["flow"], "approval": {
                    "approvalId": line["id"], "nodeId": line["node"], "tool": line["tool"], "context": context,
                }}));
            }
        }
        Ok::<_, Failed>(and_failed(json!({"approvals": all}), failed))
    });
    Ok(Json(approvals.await?).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resolved {
    resolution: ApprovalResolution,
    run_id: Option<String>,
}

/// Resolves an approval.
pub async fn resolve(Of(state): Ours, named: Named, sent: Sent) -> Answer {
    let (Path(text), given) = (named?, body::<Resolved>(sent)?);
    let approval: ApprovalId = id(&text, "approval")?;
    let of_run = given.run_id.as_deref().map(|run| id::<RunId>(run, "run")).transpose()?;
    let resolution = given.resolution.clone();
    reading(move || {
        if let Some(run) = of_run {
            state.place_of(run)?;
        }
        let name = approval.to_string();
        let mut words: Vec<OsString> = vec!["--json".into()];
        let reason = given.resolution.reason.filter(|reason| !reason.trim().is_empty());
        let (verb, args) = match (given.resolution.status, given.resolution.modified_args) {
            (ApprovalStatus::Approved, _) => ("approve", None),
            (ApprovalStatus::Denied, _) => ("deny", None),
            (ApprovalStatus::Modified, Some(args)) => ("modify", Some(Value::Object(args).to_string())),
            (ApprovalStatus::Modified, None) => {
                return Err(Failed::invalid("'modified' needs 'modifiedArgs'"));
            }
        };
        if args.is_none() {
            words.extend(reason.map(|reason| format!("--message={reason}").into()));
        }
        // The arguments go by standard input, as they may be longer than a command line allows.
        words.extend(args.is_some().then(|| "--file=-".into()));
        words.extend(["--".into(), OsString::from(&name)]);
        let input = args.unwrap_or_default();
        let mut missing = Failed::unknown("there is no such approval");
        for place in &state.served.places {
            match flow(&state, place, &[verb], &words, &input) {
                Ok(_) => return Ok(()),
                // An approval that was answered already is a conflict, not an unknown one.
                Err(error) if error.says("was answered") => return Err(error.into_conflict()),
                Err(error) if error.says("there is no question") || error.says("is not usable: an id") => {}
                Err(error) => missing = error,
            }
        }
        Err(missing)
    })
    .await?;
    Ok(Json(json!({"approvalId": text, "resolution": resolution})).into_response())
}

/// Answers with a file of a turn.
pub async fn artifact(Of(state): Ours, named: Pair) -> Answer {
    let Path((run, artifact)) = named?;
    let (run, artifact): (RunId, ArtifactId) = (id(&run, "run")?, id(&artifact, "artifact")?);
    let (artifact, content) = reading(move || {
        Ok::<_, Failed>(state.place_of(run)?.flow_artifact(run, state.served.data.as_deref(), artifact)?)
    })
    .await?;
    let content = String::from_utf8_lossy(&content);
    Ok(Json(json!({"artifact": artifact, "content": content})).into_response())
}

fn named_so(name: &str) -> Result<(), Failed> {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    match !name.is_empty() && name.len() <= 100 && name.bytes().all(is_word) {
        true => Ok(()),
        false => Err(Failed::invalid("a template's name is made of letters, digits, '_' and '-'")),
    }
}

/// Returns the place of a template: a ref, or the program.
fn path(line: &Value) -> String {
    let name = line["name"].as_str().unwrap_or_default();
    match line["source"].as_str() {
        Some("repo") => format!("refs/aynig/templates:{name}.md"),
        Some(_) | None => format!("git-aynig:{name}.md"),
    }
}

fn all_templates(state: &State) -> Result<Vec<Value>, Failed> {
    printed(state, &state.served.places[0], &["template", "list", "--json"])
}

fn template(state: &State, name: &str) -> Result<Option<Value>, Failed> {
    named_so(name)?;
    Ok(all_templates(state)?.into_iter().find(|line| line["name"] == name))
}

/// Answers with all templates, by name.
pub async fn templates(Of(state): Ours) -> Answer {
    let lines = reading(move || all_templates(&state)).await?;
    let one = |line: &Value| json!({"name": line["name"], "source": line["source"], "path": path(line)});
    Ok(Json(json!({"templates": lines.iter().map(one).collect::<Vec<_>>()})).into_response())
}

/// Answers with one template.
pub async fn get_template(Of(state): Ours, named: Named) -> Answer {
    let Path(name) = named?;
    let wanted = name.clone();
    let answer = match reading(move || template(&state, &wanted)).await? {
        Some(line) => json!({"name": name, "content": line["text"], "found": true}),
        None => json!({"name": name, "content": format!("There is no template '{name}'."), "found": false}),
    };
    Ok(Json(answer).into_response())
}

#[derive(Debug, Deserialize)]
struct Text {
    #[serde(default)]
    name: String,
    content: String,
}

fn write(state: &State, name: &str, content: &str) -> Result<Value, Failed> {
    let words = ["--json".into(), "--file=-".into(), "--".into(), OsString::from(name)];
    flow(state, &state.served.places[0], &["template", "set"], &words, content)?;
    Ok(json!({"name": name, "path": path(&json!({"name": name, "source": "repo"}))}))
}

/// Adds a template.
pub async fn new_template(Of(state): Ours, sent: Sent) -> Answer {
    let given: Text = body(sent)?;
    let written = reading(move || match template(&state, &given.name)? {
        Some(_) => Err(Failed::held("a template of that name is there already")),
        None => write(&state, &given.name, &given.content),
    });
    Ok((StatusCode::CREATED, Json(written.await?)).into_response())
}

/// Replaces the text of a template.
pub async fn put_template(Of(state): Ours, named: Named, sent: Sent) -> Answer {
    let (Path(name), given) = (named?, body::<Text>(sent)?);
    let written = reading(move || match template(&state, &name)? {
        Some(_) => write(&state, &name, &given.content),
        None => Err(Failed::unknown("there is no template of that name")),
    });
    Ok(Json(written.await?).into_response())
}

/// Removes a template of the repository; one of the program's own can't be removed.
pub async fn remove_template(Of(state): Ours, named: Named) -> Answer {
    let Path(name) = named?;
    let gone = name.clone();
    reading(move || match template(&state, &gone)? {
        Some(line) if line["source"] == "repo" => {
            let words = ["--json".into(), "--".into(), OsString::from(&gone)];
            flow(&state, &state.served.places[0], &["template", "rm"], &words, "").map(|_| ())
        }
        Some(_) => Err(Failed::held("this template is the program's own")),
        None => Err(Failed::unknown("there is no template of that name")),
    })
    .await?;
    Ok(Json(json!({"name": name})).into_response())
}

#[derive(Debug, Deserialize)]
pub struct OfFolder {
    path: Option<String>,
}

/// Answers with the entries of a folder in a repository that is served; no other folder is listed.
pub async fn folder(Of(state): Ours, asked: Asked<OfFolder>) -> Answer {
    let Query(asked) = asked?;
    let listed = reading(move || {
        let first = &state.served.places[0];
        let wanted = asked.path.filter(|path| !path.is_empty());
        let wanted = wanted.map_or_else(|| first.folder.clone(), |path| first.folder.join(path));
        let outside = || Failed::refused("only folders of the repositories that are served are listed");
        let found = state.served.places.iter().find_map(|place| Some((place, inside(place, &wanted)?)));
        let (place, folder) = found.ok_or_else(outside)?;
        let read = std::fs::read_dir(&folder).map_err(|_| Failed::unknown("that is no folder"))?;
        let mut entries: Vec<(bool, String)> = read
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
                // A symbolic link does not count as a folder, as it may lead out of the repository.
                Some((!entry.file_type().ok()?.is_dir(), name))
            })
            .collect();
        entries.sort();
        // JSON can't express a path that is not UTF-8: it is shown with replacement characters, and can't be
        // asked for.
        let entry = |(is_file, name): &(bool, String)| json!({"name": name, "isDirectory": !is_file, "path": folder.join(name).to_string_lossy()});
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        let mut answer = json!({"entries": entries, "current": folder.to_string_lossy()});
        if let Some(parent) = folder.parent().and_then(|parent| inside(place, parent)) {
            answer["parent"] = json!(parent.to_string_lossy());
        }
        Ok::<_, Failed>(answer)
    });
    Ok(Json(listed.await?).into_response())
}
