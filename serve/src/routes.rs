//! The table of routes, and the answers about branches.
//!
//! `:b` is a branch's short name as one part of the path; `?repo=<n>` is a repository's number if several are
//! served. What is read comes from the library, as `--json` prints it; what is written is written by the
//! program. Implements W7.

use crate::fail::Failed;
use crate::guard::{guard, json_only};
use crate::keys::Scope;
use crate::state::{State, blocking};
use crate::verbs::{self, Retry, SetState};
use crate::{approvals, live, logs, page, runs, socket, talk, ui};
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State as Of};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post};
use axum::{Extension, Json, Router, middleware};
use aynig::served::Place;
use futures_util::stream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;

/// Most bytes of a body.
pub const BODY_MAX: usize = 4 << 20;
/// Most events in one answer, and how many where the request does not say.
const EVENTS_MAX: usize = 1000;
const EVENTS_USUAL: usize = 100;
/// About how many bytes of a long answer are written at once.
const PIECE: usize = 64 << 10;

/// The description of everything under `/api/`.
const OPENAPI: &str = include_str!("openapi.json");

pub type Ours = Of<Arc<State>>;
pub type Named = Result<Path<String>, PathRejection>;
pub type Asked<T> = Result<Query<T>, QueryRejection>;
pub type Sent = Result<Bytes, BytesRejection>;
pub type Answer = Result<Response, Failed>;

/// A path, the methods that it takes, and the handlers.
type Route = (&'static str, &'static [&'static str], MethodRouter<Arc<State>>);

/// Every route under `/api/`, and the socket of runs.
fn table() -> Vec<Route> {
    vec![
        ("/api/version", &["get"], get(version)),
        ("/api/openapi.json", &["get"], get(openapi)),
        ("/api/enter", &["post"], post(enter)),
        ("/api/code", &["post"], post(code)),
        ("/api/branches", &["get"], get(branches)),
        ("/api/branches/{branch}", &["get"], get(branch)),
        ("/api/branches/{branch}/events", &["get"], get(events)),
        ("/api/branches/{branch}/logs", &["get"], get(logs::read)),
        ("/api/branches/{branch}/diff", &["get"], get(diff)),
        ("/api/branches/{branch}/run", &["get"], get(run)),
        ("/api/branches/{branch}/set-state", &["post"], post(set_state)),
        ("/api/branches/{branch}/retry", &["post"], post(retry)),
        ("/api/branches/{branch}/cancel", &["post"], post(cancel)),
        ("/api/branches/{branch}/send", &["post"], post(talk::send)),
        ("/api/branches/{branch}/answer", &["post"], post(talk::answer)),
        ("/api/branches/{branch}/pause", &["post"], post(talk::pause_one)),
        ("/api/branches/{branch}/resume", &["post"], post(talk::resume_one)),
        ("/api/questions", &["get"], get(talk::questions)),
        ("/api/questions/{id}/diff", &["get"], get(talk::asked_about)),
        ("/api/pauses", &["get"], get(talk::pauses)),
        ("/api/pause", &["post"], post(talk::pause)),
        ("/api/resume", &["post"], post(talk::resume)),
        ("/api/usage", &["get"], get(usage)),
        ("/api/socket", &["get"], get(socket::open)),
        ("/ws", &["get"], get(live::open)),
        ("/api/runs", &["get", "post"], get(runs::list).post(runs::create)),
        (
            "/api/runs/{run}",
            &["get", "patch", "delete"],
            get(runs::get).patch(runs::patch).delete(runs::remove),
        ),
        ("/api/runs/{run}/events", &["get"], get(runs::events)),
        ("/api/runs/{run}/nodes", &["post"], post(runs::add_node)),
        (
            "/api/runs/{run}/nodes/{node}",
            &["patch", "delete"],
            patch(runs::patch_node).delete(runs::remove_node),
        ),
        ("/api/runs/{run}/nodes/{node}/start", &["post"], post(runs::start)),
        ("/api/runs/{run}/nodes/{node}/stop", &["post"], post(runs::stop)),
        ("/api/runs/{run}/nodes/{node}/interrupt", &["post"], post(runs::interrupt)),
        ("/api/runs/{run}/nodes/{node}/reset", &["post"], post(runs::reset)),
        ("/api/runs/{run}/edges", &["post"], post(runs::put_edge)),
        ("/api/runs/{run}/edges/{edge}", &["delete"], delete(runs::remove_edge)),
        ("/api/runs/{run}/chat", &["post"], post(runs::chat)),
        ("/api/runs/{run}/artifacts/{artifact}", &["get"], get(approvals::artifact)),
        ("/api/approvals", &["get"], get(approvals::list)),
        ("/api/approvals/{approval}/resolve", &["post"], post(approvals::resolve)),
        ("/api/templates", &["get", "post"], get(approvals::templates).post(approvals::new_template)),
        (
            "/api/templates/{name}",
            &["get", "put", "delete"],
            get(approvals::get_template).put(approvals::put_template).delete(approvals::remove_template),
        ),
        ("/api/fs/list", &["get"], get(approvals::folder)),
    ]
}

/// Returns the router of all routes, behind the guard.
pub fn router(state: Arc<State>) -> Router {
    let routes =
        table().into_iter().fold(Router::new(), |router, (path, _, methods)| router.route(path, methods));
    routes
        .route("/", get(page::index))
        .route("/p/{hash}/{name}", get(page::file))
        .route(ui::ENTER, get(ui::door).post(ui::enter))
        .fallback(ui::rest)
        .method_not_allowed_fallback(|| async {
            Failed::new(StatusCode::METHOD_NOT_ALLOWED, "method", "not with this method")
        })
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), guard))
        .with_state(state)
}

/// The number of the repository that is meant; the first if absent.
#[derive(Debug, Default, Deserialize)]
pub struct Repo {
    pub repo: Option<usize>,
}

impl State {
    /// Returns the repository of this number.
    pub fn place(&self, repo: Option<usize>) -> Result<Place, Failed> {
        let place = self.served.places.get(repo.unwrap_or(0));
        place.cloned().ok_or_else(|| Failed::unknown("no such repository is served"))
    }
}

/// Runs work that takes time on a thread that may block.
pub async fn reading<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Failed>
where
    Failed: From<E>,
{
    Ok(blocking(work).await??)
}

pub fn body<T: DeserializeOwned>(sent: Sent) -> Result<T, Failed> {
    let sent = sent?;
    // The body may be empty for a verb that takes nothing.
    let sent: &[u8] = if sent.is_empty() { b"{}" } else { &sent };
    Ok(serde_json::from_slice(sent)?)
}

async fn version(Of(state): Ours, Extension(scope): Extension<Scope>) -> Answer {
    let places = state.served.places.clone();
    let repos = reading(move || {
        let one = |(id, place): (usize, &Place)| {
            let name = place.folder.file_name().unwrap_or(place.folder.as_os_str()).to_string_lossy();
            let mut repo = json!({"id": id, "name": name, "folder": place.folder.to_string_lossy()});
            // A repository that can't be read, as it was moved away, hides no other.
            match place.policy() {
                Ok(policy) => repo["policy"] = json!(policy),
                Err(error) => repo["error"] = json!(error.message),
            }
            repo
        };
        Ok::<_, Failed>(places.iter().enumerate().map(one).collect::<Vec<Value>>())
    });
    let read_only = state.served.read_only || scope == Scope::Looks;
    Ok(Json(json!({
        "schema": "aynig.version/1",
        "version": env!("CARGO_PKG_VERSION"),
        "read_only": read_only,
        "repos": repos.await?,
    }))
    .into_response())
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// Exchanges a code for its token.
async fn enter(Of(state): Ours, headers: HeaderMap, sent: Sent) -> Answer {
    #[derive(Deserialize)]
    struct Given {
        code: String,
    }
    json_only(&headers)?;
    let given: Given = body(sent)?;
    let wrong = || Failed::new(StatusCode::UNAUTHORIZED, "code", "this code is not, or no longer, good");
    let scope = state.keys.trade(&given.code).ok_or_else(wrong)?;
    Ok(Json(json!({"token": state.keys.token(scope), "scope": scope})).into_response())
}

/// Answers with a code for another browser.
async fn code(Of(state): Ours, sent: Sent) -> Answer {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Given {
        #[serde(default)]
        looks: bool,
    }
    let given: Given = body(sent)?;
    let scope = if given.looks { Scope::Looks } else { Scope::All };
    Ok(Json(json!({"code": state.keys.code(scope), "scope": scope})).into_response())
}

async fn branches(Of(state): Ours, asked: Asked<Repo>) -> Answer {
    let repo = asked?.repo.unwrap_or(0);
    state.place(Some(repo))?;
    let found = state.branches(repo).await?;
    let length = found.length().to_string();
    // The answer is written a piece at a time, as the client reads it, from a value that all requests share.
    let pieces = stream::unfold((found, 0), async |(found, from)| {
        let (text, taken) = found.piece(from, PIECE);
        (taken > 0).then(|| (Ok::<_, Infallible>(text), (found, from + taken)))
    });
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CONTENT_LENGTH, &length)];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

async fn branch(Of(state): Ours, named: Named, asked: Asked<Repo>) -> Answer {
    let (place, Path(branch)) = (state.place(asked?.repo)?, named?);
    let found = reading(move || place.branch(&branch)).await?;
    let failed = |unread| Failed::broken(serde_json::to_string(unread).unwrap_or_default());
    match (found.branches.into_iter().next(), found.failed.first()) {
        (Some(line), _) => Ok(Json(line).into_response()),
        (None, Some(unread)) => Err(failed(unread)),
        (None, None) => Err(Failed::unknown("there is no such branch")),
    }
}

#[derive(Debug, Deserialize)]
struct OfEvents {
    repo: Option<usize>,
    n: Option<usize>,
    #[serde(default)]
    history: bool,
}

async fn events(Of(state): Ours, named: Named, asked: Asked<OfEvents>) -> Answer {
    let (Query(asked), Path(branch)) = (asked?, named?);
    let place = state.place(asked.repo)?;
    let most = asked.n.unwrap_or(EVENTS_USUAL).min(EVENTS_MAX);
    let events = reading(move || place.events(&branch, asked.history, most)).await?;
    Ok(Json(json!({"events": events})).into_response())
}

#[derive(Deserialize)]
struct OfDiff {
    repo: Option<usize>,
    run: Option<String>,
}

async fn diff(Of(state): Ours, named: Named, asked: Asked<OfDiff>) -> Answer {
    let (Query(asked), Path(branch)) = (asked?, named?);
    let place = state.place(asked.repo)?;
    let read = move || verbs::diff(&state.served.program, &place, &branch, asked.run.as_deref());
    Ok(Json(reading(read).await?).into_response())
}

async fn run(Of(state): Ours, named: Named, asked: Asked<Repo>) -> Answer {
    let (place, Path(branch)) = (state.place(asked?.repo)?, named?);
    Ok(Json(reading(move || place.run(&branch)).await?).into_response())
}

/// Refuses if nothing may be written: by this server, or in this repository (W15).
pub fn writable(state: &State, place: &Place) -> Result<(), Failed> {
    if state.served.read_only {
        return Err(Failed::refused("this server is read-only"));
    }
    let policy = place.policy()?;
    match policy.trusted {
        true => Ok(()),
        false => {
            Err(Failed::refused("not trusted: it was never said which commands may run here")
                .hint(policy.hint))
        }
    }
}

async fn set_state(Of(state): Ours, named: Named, asked: Asked<Repo>, sent: Sent) -> Answer {
    let (place, Path(branch), given) = (state.place(asked?.repo)?, named?, body::<SetState>(sent)?);
    let written = reading(move || {
        writable(&state, &place)?;
        verbs::set_state(&state.served.program, &place, &branch, &given)
    });
    Ok(Json(written.await?).into_response())
}

#[derive(Debug, Deserialize)]
struct OfUsage {
    repo: Option<usize>,
    by: Option<String>,
}

async fn usage(Of(state): Ours, asked: Asked<OfUsage>) -> Answer {
    let Query(asked) = asked?;
    let place = state.place(asked.repo)?;
    let used = reading(move || verbs::usage(&state.served.program, &place, asked.by.as_deref()));
    Ok(Json(used.await?).into_response())
}

async fn retry(of: Ours, named: Named, asked: Asked<Repo>, sent: Sent) -> Answer {
    plain("retry", of, named, asked, sent).await
}

async fn cancel(of: Ours, named: Named, asked: Asked<Repo>, sent: Sent) -> Answer {
    plain("cancel", of, named, asked, sent).await
}

async fn plain(verb: &'static str, Of(state): Ours, named: Named, asked: Asked<Repo>, sent: Sent) -> Answer {
    let (place, Path(branch), given) = (state.place(asked?.repo)?, named?, body::<Retry>(sent)?);
    let written = reading(move || {
        writable(&state, &place)?;
        verbs::plain(verb, &state.served.program, &place, &branch, &given)
    });
    Ok(Json(written.await?).into_response())
}

#[cfg(test)]
mod tests {
    use super::{OPENAPI, table};
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// W7: the description and the routes say the same.
    #[test]
    fn every_route_is_described_and_nothing_else() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = described["paths"].as_object().unwrap();
        let described: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, item)| {
                let methods = item.as_object().unwrap().keys();
                methods.filter(|key| *key != "parameters").map(move |method| (path.clone(), method.clone()))
            })
            .collect();
        let routed: BTreeSet<(String, String)> = table()
            .into_iter()
            .flat_map(|(path, methods, _)| methods.iter().map(move |m| (path.to_owned(), (*m).to_owned())))
            .collect();
        assert_eq!(described, routed);
    }
}
