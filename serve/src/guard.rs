//! Decides which requests are let in, before anything else is done: by the host that a request names, then by
//! the origin that it comes from, then by its token. Adds the headers of every response, too.
//!
//! The lists are exact. It proves nothing that origin and host are equal: a name that was made to lead to
//! this server equals itself. Implements W12, W13 (tokens), W14 (headers).

use crate::fail::Failed;
use crate::keys::Scope;
use crate::page;
use crate::state::State;
use axum::extract::{Request, State as Of};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a request may take, with its body; sockets have deadlines of their own.
const TIME_MAX: Duration = Duration::from_secs(90);
/// The prefix of the subprotocol by which a socket passes its token.
pub const TOKEN_PROTOCOL: &str = "token.";
/// The subprotocol that the server speaks.
pub const PROTOCOL: &str = "aynig";

/// Returns the hosts to which the server answers, as a request names them; the names from the arguments come
/// first.
pub fn hosts(address: SocketAddr, is_private: bool, more: &[String]) -> Vec<String> {
    let port = address.port();
    let with_port = |host: &str| format!("{}:{port}", host.to_ascii_lowercase());
    // No browser asks for the unspecified address, which stands for all addresses.
    let own = if address.ip().is_unspecified() { with_port("127.0.0.1") } else { address.to_string() };
    let named = more.iter().map(|host| with_port(host));
    let all: Vec<String> = named.chain([own, with_port("localhost")]).collect();
    let bare = without_usual_port(&all, port, is_private);
    all.into_iter().chain(bare).collect()
}

/// Returns the hosts as a browser names them if their port is the usual one, which it leaves out; nothing for
/// another port.
pub fn without_usual_port(hosts: &[String], port: u16, is_private: bool) -> Vec<String> {
    let usual = if is_private { 443 } else { 80 };
    let bare = hosts.iter().filter_map(|host| host.strip_suffix(&format!(":{port}")).map(str::to_owned));
    if port == usual { bare.collect() } else { Vec::new() }
}

/// Returns the origins from which requests are taken.
pub fn origins(scheme: &str, hosts: &[String], more: &[String]) -> Vec<String> {
    hosts.iter().map(|host| format!("{scheme}://{host}")).chain(more.iter().cloned()).collect()
}

/// Returns a header that may be given only once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Failed> {
    let mut all = headers.get_all(name).iter();
    let first = all.next().map(|value| value.to_str().unwrap_or("\u{fffd}"));
    match all.next() {
        None => Ok(first),
        Some(_) => Err(Failed::invalid(format!("more than one '{name}'"))),
    }
}

/// True if a request needs no token: for the embedded files, and for the exchange of a code.
fn is_open(state: &State, path: &str) -> bool {
    let is_ours = path == "/" || path.starts_with("/p/") || path == "/api/enter";
    // The files of a page that others wrote need no token either.
    is_ours || state.served.ui.is_some() && !path.starts_with("/api/") && path != "/ws"
}

/// True for the paths that are upgraded to sockets.
fn is_socket(path: &str) -> bool {
    path == "/api/socket" || path == "/ws"
}

/// Judges a request. The scope is `None` if it needs no token.
fn judge(state: &State, request: &Request) -> Result<Option<Scope>, Failed> {
    let headers = request.headers();
    let no_host = || Failed::new(StatusCode::FORBIDDEN, "host", "this is not the host that is asked for");
    let host = only(headers, &header::HOST)?.ok_or_else(no_host)?;
    let is_ours = |host: &str| state.served.hosts.iter().any(|own| own == host);
    let named = request.uri().authority().map(|authority| authority.as_str());
    if !is_ours(host) || named.is_some_and(|named| named != host) {
        return Err(no_host());
    }

    let path = request.uri().path();
    let is_socket = is_socket(path);
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let bearer = bearer(headers)?;
    let elsewhere = || Failed::new(StatusCode::FORBIDDEN, "origin", "no request is taken from that page");
    match only(headers, &header::ORIGIN)? {
        Some(origin) if !state.served.origins.iter().any(|own| own == origin) => return Err(elsewhere()),
        None if (writes || is_socket) && bearer.is_none() => return Err(elsewhere()),
        Some(_) | None => {}
    }
    // A browser that sends this header sends the truth; a page of another site has no use for the answers of
    // this server.
    if path.starts_with("/api/") {
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_elsewhere = matches!(site, Some(b"cross-site" | b"same-site"));
        // A page of an allowed origin is on another site too; it sends `Origin`, which was checked above.
        if is_elsewhere && headers.get(header::ORIGIN).is_none() {
            return Err(elsewhere());
        }
    }

    if is_open(state, path) {
        return Ok(None);
    }
    let protocol = if is_socket { protocol_token(headers)? } else { None };
    let cookie = state.served.ui.as_ref().and_then(|ui| ui.token(host, headers));
    let scope = bearer.or(protocol).or(cookie).and_then(|token| state.keys.scope_of(token));
    let scope =
        scope.ok_or_else(|| Failed::new(StatusCode::UNAUTHORIZED, "token", "no token of this start"))?;
    if writes && scope == Scope::Looks {
        return Err(Failed::refused("this token may only look"));
    }
    if matches!(*request.method(), Method::POST | Method::PATCH | Method::PUT) {
        json_only(headers)?;
    }
    Ok(Some(scope))
}

fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Failed> {
    Ok(only(headers, &header::AUTHORIZATION)?.and_then(|value| value.strip_prefix("Bearer ")))
}

fn protocol_token(headers: &HeaderMap) -> Result<Option<&str>, Failed> {
    let offered = only(headers, &header::SEC_WEBSOCKET_PROTOCOL)?.unwrap_or_default();
    Ok(offered.split(',').find_map(|one| one.trim().strip_prefix(TOKEN_PROTOCOL)))
}

/// Refuses a body that is not declared as JSON, which the form of a foreign page can't declare.
pub fn json_only(headers: &HeaderMap) -> Result<(), Failed> {
    let given = only(headers, &header::CONTENT_TYPE)?.unwrap_or_default().to_ascii_lowercase();
    let kind = given.split(';').next().unwrap_or_default().trim();
    match kind {
        "application/json" => Ok(()),
        _ => Err(Failed::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media", "want application/json")),
    }
}

/// Lets a request in or refuses it, and adds the headers of the response.
pub async fn guard(Of(state): Of<Arc<State>>, mut request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).cloned();
    let is_api = request.uri().path().starts_with("/api/");
    let path = request.uri().path().to_owned();
    let is_socket = is_socket(request.uri().path());
    let mut response = match judge(&state, &request) {
        Err(failed) => failed.into_response(),
        Ok(scope) => {
            request.extensions_mut().insert(scope.unwrap_or(Scope::Looks));
            let answer = next.run(request);
            match is_socket {
                true => answer.await,
                false => tokio::time::timeout(TIME_MAX, answer)
                    .await
                    .unwrap_or_else(|_| Failed::later("that took too long").into_response()),
            }
        }
    };
    let headers = response.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(header::REFERRER_POLICY, "no-referrer");
    say(header::X_FRAME_OPTIONS, "DENY");
    say(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    say(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    if is_api {
        say(header::CACHE_CONTROL, "no-store");
    }
    let policy = page::policy(&state, host.as_ref().and_then(|host| host.to_str().ok()), &path);
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

#[cfg(test)]
mod tests {
    use super::hosts;

    /// W12: a browser leaves the usual port out, so every host of the server is known without it.
    #[test]
    fn w12_a_host_is_known_without_the_usual_port() {
        let of = |address: &str, is_private| {
            hosts(address.parse().unwrap(), is_private, &["Box.example".to_owned()])
        };
        for host in
            ["box.example:80", "127.0.0.1:80", "localhost:80", "box.example", "127.0.0.1", "localhost"]
        {
            assert!(of("127.0.0.1:80", false).contains(&host.to_owned()), "{host}");
        }
        assert!(of("192.0.2.1:443", true).contains(&"192.0.2.1".to_owned()));
        assert!(of("127.0.0.1:443", false).iter().all(|host| host.ends_with(":443")));
        assert!(
            of("0.0.0.0:4600", true).iter().all(|host| host.ends_with(":4600") && !host.starts_with("0."))
        );
    }
}
