//! A page that others wrote, on a host name of its own: `--ui <dir>`.
//!
//! Such a page knows nothing of tokens, so its browser gets a cookie, which counts on that name alone: a
//! random one below `localhost`. The printed address leads to a page of this program, which exchanges the
//! code by a POST. The files are read once, at the start: only regular ones in the folder, served by their
//! exact names. Implements W13 (`--ui`).

use crate::Stopped;
use crate::fail::Failed;
use crate::guard::json_only;
use crate::keys::random;
use crate::routes::{Answer, Ours, Sent, body};
use axum::Json;
use axum::extract::State as Of;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;

/// The path at which the code is exchanged for the cookie.
pub const ENTER: &str = "/.aynig/enter";
/// The name of the cookie.
const COOKIE: &str = "aynig";
/// Most files, and most bytes of all files together.
const FILES_MAX: usize = 10_000;
const BYTES_MAX: usize = 128 << 20;

/// What a browser may do for a page that others wrote.
pub const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A page that others wrote.
pub struct Ui {
    /// The host name on which it is served, with the port.
    pub host: String,
    files: HashMap<String, File>,
}

struct File {
    kind: &'static str,
    tag: String,
    bytes: Vec<u8>,
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

impl Ui {
    /// Reads the files of a folder.
    pub fn read(folder: &Path, port: u16) -> Result<Self, Stopped> {
        let shown = folder.display();
        let failed = |error: std::io::Error| Stopped::new(128, format!("cannot read '{shown}': {error}"));
        let mut files = HashMap::new();
        let (mut open, mut bytes) = (vec![(String::new(), folder.to_owned())], 0);
        while let Some((at, folder)) = open.pop() {
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                let kind_of = entry.file_type().map_err(failed)?;
                let path = format!("{at}/{name}");
                if kind_of.is_dir() {
                    open.push((path, entry.path()));
                } else if kind_of.is_file() {
                    let content = std::fs::read(entry.path()).map_err(failed)?;
                    bytes += content.len();
                    let hash = Sha256::digest(&content);
                    let tag = hash.iter().take(10).map(|byte| format!("{byte:02x}")).collect::<String>();
                    files.insert(path, File { kind: kind(&name), tag: format!("\"{tag}\""), bytes: content });
                }
                if files.len() > FILES_MAX || bytes > BYTES_MAX {
                    return Err(Stopped::new(
                        129,
                        format!("'{shown}' is more than a page: 10000 files, 128 MiB"),
                    ));
                }
            }
        }
        match files.contains_key("/index.html") {
            true => Ok(Self { host: format!("{}.localhost:{port}", random(10)), files }),
            false => Err(Stopped::new(128, format!("there is no 'index.html' in '{shown}'"))),
        }
    }

    /// Returns the token in the cookie of a request; `None` on any other host.
    pub fn token<'a>(&self, host: &str, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(header::COOKIE).iter().filter(|_| host == self.host);
        let pairs = cookies.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        pairs
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(name, _)| *name == COOKIE)
            .map(|(_, token)| token)
    }

    fn file(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        let file = self.files.get(if path == "/" { "/index.html" } else { path })?;
        let about = [(header::ETAG, file.tag.as_str()), (header::CACHE_CONTROL, "no-cache")];
        let is_known =
            headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag.as_bytes() == file.tag.as_bytes());
        Some(match is_known {
            true => (StatusCode::NOT_MODIFIED, about).into_response(),
            false => (about, [(header::CONTENT_TYPE, file.kind)], file.bytes.clone()).into_response(),
        })
    }
}

/// Returns a file of the page that others wrote; `None` if the request is not for its host, or there is no
/// such file.
pub fn found(ui: Option<&Ui>, headers: &HeaderMap, path: &str) -> Option<Response> {
    let ui = ui?;
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if host == Some(ui.host.as_str()) { ui.file(path, headers) } else { None }
}

/// Answers any other path: with a file of the page that others wrote, or with a failure.
pub async fn rest(Of(state): Ours, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let is_asked = method == Method::GET || method == Method::HEAD;
    let file = if is_asked { found(state.served.ui.as_ref(), &headers, uri.path()) } else { None };
    file.unwrap_or_else(|| Failed::unknown("there is nothing here").into_response())
}

/// Answers with the page that exchanges the code.
pub async fn door(Of(state): Ours) -> Response {
    match state.served.ui {
        Some(_) => crate::page::door(),
        None => Failed::unknown("there is nothing here").into_response(),
    }
}

/// Exchanges a code for the cookie.
pub async fn enter(Of(state): Ours, headers: HeaderMap, sent: Sent) -> Answer {
    #[derive(Deserialize)]
    struct Given {
        code: String,
    }
    json_only(&headers)?;
    let given: Given = body(sent)?;
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if state.served.ui.as_ref().is_none_or(|ui| host != Some(ui.host.as_str())) {
        return Err(Failed::unknown("there is nothing here"));
    }
    let wrong = || Failed::new(StatusCode::UNAUTHORIZED, "code", "this code is not, or no longer, good");
    let scope = state.keys.trade(&given.code).ok_or_else(wrong)?;
    let cookie = format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", state.keys.token(scope));
    let mut answer = Json(json!({"scope": scope})).into_response();
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Failed::broken("no cookie could be made"))?;
    answer.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(answer)
}
