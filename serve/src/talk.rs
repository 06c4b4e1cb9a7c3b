//! What people say to branches: messages, answers and pauses; and the questions that wait for them.
//!
//! What is read comes from the library, as `--json` prints it; what people say is passed to the verb itself.
//! Implements W7 (`send`, `answer`, `pause`, `resume`, questions).

use crate::fail::Failed;
use crate::routes::{Answer, Asked, Named, Ours, Repo, Sent, body, reading, writable};
use crate::verbs::{asked, called, lines, must_exist, refused, texts, written};
use axum::Json;
use axum::extract::{Path, State as Of};
use axum::response::IntoResponse;
use aynig::served::{Place, whole};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path as File;

/// The longest text that is passed as an argument, in bytes: less than Linux allows for one.
const ARGUMENT_MAX: usize = 96 << 10;

/// The body of `send`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToSend {
    text: String,
    /// The kind of message; `message` if `None`.
    kind: Option<String>,
}

/// The body of `answer`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToAnswer {
    choice: String,
    /// A text that goes with the choice; empty for none.
    #[serde(default)]
    message: String,
    /// The question's id; the question of the branch if `None`.
    question: Option<String>,
    /// The commit that the person looked at.
    seen: Option<String>,
}

/// The body of `pause`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToPause {
    #[serde(default)]
    patterns: Vec<String>,
    /// The reason for the pause; empty for none.
    #[serde(default)]
    message: String,
    /// Whether runs that are under way are ended, too.
    #[serde(default)]
    stop: bool,
}

/// The body of `pause` for one branch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToPauseOne {
    #[serde(default)]
    message: String,
    #[serde(default)]
    stop: bool,
}

/// The body of `resume`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToResume {
    /// The pauses to end; the caller's own if empty.
    #[serde(default)]
    ids: Vec<String>,
    /// Whether the pauses of others end, too.
    #[serde(default)]
    all: bool,
}

/// The body of `resume` for one branch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToResumeOne {}

fn said(flag: &str, text: &str) -> Result<Option<OsString>, Failed> {
    match text.len() {
        0 => Ok(None),
        len if len > ARGUMENT_MAX => Err(Failed::too_large("that text is longer than 96 KiB")),
        _ => Ok(Some(format!("{flag}{text}").into())),
    }
}

/// Sends a message to a branch, which receives it when it next takes messages in.
pub async fn send(Of(state): Ours, named: Named, at: Asked<Repo>, sent: Sent) -> Answer {
    let (place, Path(branch), given) = (state.place(at?.repo)?, named?, body::<ToSend>(sent)?);
    let sent = reading(move || {
        writable(&state, &place)?;
        let name = whole(&branch)?;
        must_exist(&place, &branch)?;
        let kind = given.kind.as_deref().unwrap_or("message");
        let kind = format!("--kind={kind}").into();
        let words = ["send".into(), "--json".into(), "--file=-".into(), kind, "--".into(), name];
        texts(&words)?;
        written(&called(&state.served.program, &place, &words, given.text.as_bytes())?)
    });
    Ok(Json(sent.await?).into_response())
}

/// Answers a question.
pub async fn answer(Of(state): Ours, named: Named, at: Asked<Repo>, sent: Sent) -> Answer {
    let (place, Path(branch), given) = (state.place(at?.repo)?, named?, body::<ToAnswer>(sent)?);
    let answered = reading(move || {
        writable(&state, &place)?;
        let name = whole(&branch)?;
        must_exist(&place, &branch)?;
        let mut words: Vec<OsString> = vec!["answer".into(), "--json".into()];
        words.extend(said("--message=", &given.message)?);
        words.extend(given.seen.as_deref().map(|seen| format!("--seen={seen}").into()));
        let choice = said("", &given.choice)?.ok_or_else(|| Failed::invalid("'choice' is empty"))?;
        words.extend(["--".into(), given.question.as_deref().map_or(name, OsString::from), choice]);
        texts(&words)?;
        written(&called(&state.served.program, &place, &words, b"")?)
    });
    Ok(Json(answered.await?).into_response())
}

/// Answers with the open questions.
pub async fn questions(Of(state): Ours, at: Asked<Repo>) -> Answer {
    let place = state.place(at?.repo)?;
    let questions = reading(move || place.questions()).await?;
    Ok(Json(json!({"questions": questions})).into_response())
}

/// Answers with the diff of the work that a question is about.
pub async fn asked_about(Of(state): Ours, named: Named, at: Asked<Repo>) -> Answer {
    let (place, Path(id)) = (state.place(at?.repo)?, named?);
    let found = reading(move || {
        let is_it = |question: &Value| question["id"] == id.as_str();
        let unknown = || Failed::unknown("there is no such question");
        let question = place.questions()?.into_iter().find(is_it).ok_or_else(unknown)?;
        let branch = question["branch"].as_str().unwrap_or_default();
        asked(&state.served.program, &place, branch, OsString::from(&id))
    });
    Ok(Json(found.await?).into_response())
}

/// Answers with the pauses.
pub async fn pauses(Of(state): Ours, at: Asked<Repo>) -> Answer {
    let place = state.place(at?.repo)?;
    let (pauses, own) = reading(move || place.pauses()).await?;
    Ok(Json(json!({"pauses": pauses, "own": own})).into_response())
}

fn hold(program: &File, place: &Place, given: &ToPause) -> Result<Value, Failed> {
    let mut words: Vec<OsString> = vec!["pause".into(), "--json".into()];
    words.extend(said("--message=", &given.message)?);
    words.extend(given.stop.then(|| "--stop".into()));
    words.push("--".into());
    words.extend(given.patterns.iter().map(OsString::from));
    texts(&words)?;
    written(&called(program, place, &words, b"")?)
}

fn release(program: &File, place: &Place, ids: &[String], all: bool) -> Result<Value, Failed> {
    let mut words: Vec<OsString> = vec!["resume".into(), "--json".into()];
    words.extend(all.then(|| "--all".into()));
    words.push("--".into());
    words.extend(ids.iter().map(OsString::from));
    texts(&words)?;
    let finished = called(program, place, &words, b"")?;
    match finished.status.success() {
        true => Ok(json!({"resumed": lines(&finished)?})),
        false => Err(refused(&finished)),
    }
}

/// Pauses branches; all of them if no pattern is given.
pub async fn pause(Of(state): Ours, at: Asked<Repo>, sent: Sent) -> Answer {
    let (place, given) = (state.place(at?.repo)?, body::<ToPause>(sent)?);
    let paused = reading(move || {
        writable(&state, &place)?;
        hold(&state.served.program, &place, &given)
    });
    Ok(Json(paused.await?).into_response())
}

/// Ends pauses.
pub async fn resume(Of(state): Ours, at: Asked<Repo>, sent: Sent) -> Answer {
    let (place, given) = (state.place(at?.repo)?, body::<ToResume>(sent)?);
    let resumed = reading(move || {
        writable(&state, &place)?;
        release(&state.served.program, &place, &given.ids, given.all)
    });
    Ok(Json(resumed.await?).into_response())
}

/// Pauses one branch.
pub async fn pause_one(Of(state): Ours, named: Named, at: Asked<Repo>, sent: Sent) -> Answer {
    let (place, Path(branch), given) = (state.place(at?.repo)?, named?, body::<ToPauseOne>(sent)?);
    let paused = reading(move || {
        writable(&state, &place)?;
        must_exist(&place, &branch)?;
        // A branch's name has no character with a meaning in a pattern.
        let given = ToPause { patterns: vec![branch], message: given.message, stop: given.stop };
        hold(&state.served.program, &place, &given)
    });
    Ok(Json(paused.await?).into_response())
}

/// Ends the pauses that hold this branch alone.
pub async fn resume_one(Of(state): Ours, named: Named, at: Asked<Repo>, sent: Sent) -> Answer {
    let (place, Path(branch), _) = (state.place(at?.repo)?, named?, body::<ToResumeOne>(sent)?);
    let resumed = reading(move || {
        writable(&state, &place)?;
        must_exist(&place, &branch)?;
        let (pauses, _) = place.pauses()?;
        let its_own = |pause: &&Value| pause["patterns"] == json!([branch]);
        let ids: Vec<String> = pauses
            .iter()
            .filter(its_own)
            .filter_map(|pause| Some(pause["id"].as_str()?.to_owned()))
            .collect();
        match ids.is_empty() {
            true => Err(Failed::held("no pause holds this branch alone")),
            false => release(&state.served.program, &place, &ids, false),
        }
    });
    Ok(Json(resumed.await?).into_response())
}
