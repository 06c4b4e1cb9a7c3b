//! The page's files, which are embedded, and the policy that a browser enforces on them.
//!
//! Their path has a hash of their content, so browsers may cache them for ever. Scripts and styles come from
//! that path and from nowhere else, and text never becomes elements. Implements W8 (embedded), W14 (policy).

use crate::fail::Failed;
use crate::state::State;
use crate::ui;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State as Of};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::sync::{Arc, LazyLock};

/// A file of the page.
struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($name:literal: $kind:literal),* $(,)?) => {
        &[$(File { name: $name, kind: $kind, bytes: include_bytes!(concat!("../page/", $name)) }),*]
    };
}

/// All files but the documents.
const FILES: &[File] = files! {
    "app.js": "text/javascript; charset=utf-8",
    "wire.js": "text/javascript; charset=utf-8",
    "parts.js": "text/javascript; charset=utf-8",
    "text.js": "text/javascript; charset=utf-8",
    "screens.js": "text/javascript; charset=utf-8",
    "enter.js": "text/javascript; charset=utf-8",
    "branch.js": "text/javascript; charset=utf-8",
    "diff.js": "text/javascript; charset=utf-8",
    "flow.js": "text/javascript; charset=utf-8",
    "node.js": "text/javascript; charset=utf-8",
    "story.js": "text/javascript; charset=utf-8",
    "log.js": "text/javascript; charset=utf-8",
    "markdown.js": "text/javascript; charset=utf-8",
    "say.js": "text/javascript; charset=utf-8",
    "usage.js": "text/javascript; charset=utf-8",
    "vendor.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
};

const INDEX: &str = include_str!("../page/index.html");

/// The hash of all files together, which their paths have.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut all = Sha256::new();
    for file in FILES {
        all.update(file.bytes);
    }
    all.update(INDEX);
    all.update(ENTER);
    all.finalize().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
});

const ENTER: &str = include_str!("../page/enter.html");

static DOCUMENT: LazyLock<String> = LazyLock::new(|| INDEX.replace("{hash}", &HASH));

/// Returns what a browser may do for a page. A policy can name a part of a path only with a host. It can't
/// express a host in brackets (an IPv6 address), so then all of the server's own origin is allowed.
pub fn policy(state: &State, host: Option<&str>, path: &str) -> HeaderValue {
    let is_theirs = state.served.ui.as_ref().is_some_and(|ui| host == Some(ui.host.as_str()));
    if is_theirs && path != ui::ENTER && !path.starts_with("/p/") {
        return HeaderValue::from_static(ui::POLICY);
    }
    let host = host.filter(|host| state.served.hosts.iter().any(|own| own == host));
    let plain = host.filter(|host| !host.contains('['));
    let (http, ws) = state.served.schemes();
    let own = plain.map_or_else(|| "'self'".to_owned(), |host| format!("{http}://{host}/p/{}/", *HASH));
    let socket = plain.map_or_else(String::new, |host| format!(" {ws}://{host}"));
    let policy = format!(
        "default-src 'none'; script-src {own}; style-src {own}; connect-src 'self'{socket}; img-src data:; base-uri \
         'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// Returns the page that exchanges the code, for a page that others wrote.
pub fn door() -> Response {
    let about = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    (about, ENTER.replace("{hash}", &HASH)).into_response()
}

/// Answers `/`.
pub async fn index(Of(state): Of<Arc<State>>, headers: HeaderMap) -> Response {
    if let Some(theirs) = ui::found(state.served.ui.as_ref(), &headers, "/") {
        return theirs;
    }
    let tag = format!("\"{}\"", *HASH);
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let about = [(header::ETAG, tag.as_str()), (header::CACHE_CONTROL, "no-cache")];
    if is_known {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    (about, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], DOCUMENT.as_str()).into_response()
}

/// Answers `/p/<hash>/<name>`.
pub async fn file(named: Result<Path<(String, String)>, PathRejection>) -> Result<Response, Failed> {
    let Path((hash, name)) = named?;
    let found = FILES.iter().find(|file| file.name == name).filter(|_| hash == *HASH);
    let file = found.ok_or_else(|| Failed::unknown("there is no such file in this version of the page"))?;
    let about =
        [(header::CONTENT_TYPE, file.kind), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    Ok((about, file.bytes).into_response())
}
