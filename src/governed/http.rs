//! One POST with one deadline, through the crate `ureq`.
//!
//! Whatever the other side does (refuse, hang, trickle, talk nonsense), the call is over at its deadline: the
//! look-up of the name, the connection, the handshake, the request and the answer all count. No redirect is
//! followed and no connection is kept. `https` trusts the certificate authorities of this machine, or those
//! that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, and goes through the proxy that the environment names for
//! it (`https_proxy`, `all_proxy`, `no_proxy`); `http` goes straight to its host. Implements G5.

use super::root::Root;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Proxy, config::Config};

/// What a server answered: its status, whatever that is, and the first bytes of its body.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    TimedOut,
    Failed(String),
}

/// Headers that belong to the connection: a configuration sets none of them.
const CONNECTION_HEADERS: [&str; 4] = ["connection", "content-length", "host", "transfer-encoding"];

fn failed(why: impl Into<String>) -> Failure {
    Failure::Failed(why.into())
}

/// Posts JSON; reads at most `most` bytes of the answer's body.
pub(super) fn post(
    root: &Root,
    url: &str,
    headers: &[(String, String)],
    body: &[u8],
    timeout: Duration,
    most: usize,
) -> Result<Answer, Failure> {
    if headers.iter().any(|(name, value)| [name, value].iter().any(|text| text.contains(['\r', '\n', '\0'])))
    {
        return Err(failed("a header has more than one line"));
    }
    let deadline = Instant::now() + timeout;
    let uri: Uri = url.parse().map_err(|_| failed("the address is none"))?;
    let host = uri.host().unwrap_or_default().to_owned();
    let agent = Agent::new_with_config(settings(root, &uri, deadline)?);
    let mut request = agent.post(uri).header("connection", "close");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in headers {
        if !CONNECTION_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            request = request.header(name, value.as_bytes());
        }
    }
    let answer = request.send(body).map_err(|error| failure(error, &host))?;
    let status = answer.status().as_u16();
    let mut body = Vec::new();
    match answer.into_body().into_reader().take(most as u64).read_to_end(&mut body) {
        Ok(_) => Ok(Answer { status, body }),
        Err(error) => match failure(ureq::Error::from(error), &host) {
            Failure::TimedOut => Err(Failure::TimedOut),
            // The server closed early: its status stands, and so does what arrived of the body.
            Failure::Failed(_) => Ok(Answer { status, body }),
        },
    }
}

fn settings(root: &Root, uri: &Uri, deadline: Instant) -> Result<Config, Failure> {
    let mut settings = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent("")
        .accept("")
        .proxy(None);
    if uri.scheme_str() == Some("https") {
        settings = settings.proxy(proxy(root)?).tls_config(tls(root));
    }
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::TimedOut) } else { Ok(settings.timeout_global(Some(left)).build()) }
}

/// Returns the TLS settings: a server that none of this machine's authorities vouches for is refused.
fn tls(root: &Root) -> TlsConfig {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].map(|name| root.inherited(name));
    let [file, folder] = named.each_ref().map(|path| path.as_deref().map(Path::new));
    let found = if file.is_none() && folder.is_none() {
        rustls_native_certs::load_native_certs()
    } else {
        rustls_native_certs::load_certs_from_paths(file, folder)
    };
    let trusted: Vec<_> = found.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&trusted))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}

/// Returns the proxy that the environment names for `https`, if any, with the hosts that it excepts.
fn proxy(root: &Root) -> Result<Option<Proxy>, Failure> {
    let variable = |name: &str| root.inherited(name)?.into_string().ok().filter(|text| !text.is_empty());
    let named = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].into_iter().find_map(variable);
    let Some(named) = named else { return Ok(None) };
    let wrong = |_| failed("the environment's proxy for https is no address of one");
    let known = Proxy::new(&named).map_err(wrong)?;
    let mut proxy = Proxy::builder(known.protocol()).host(known.host()).port(known.port());
    proxy = known.username().into_iter().fold(proxy, |proxy, name| proxy.username(name));
    proxy = known.password().into_iter().fold(proxy, |proxy, password| proxy.password(password));
    let excepted = variable("no_proxy").or_else(|| variable("NO_PROXY")).unwrap_or_default();
    for host in excepted.split([',', ' ']).filter(|host| !host.is_empty()) {
        // In `no_proxy`, a name stands for the hosts below it, too.
        let host = host.trim_start_matches('.');
        proxy = proxy.no_proxy(host);
        if host != "*" {
            proxy = proxy.no_proxy(&format!(".{host}"));
        }
    }
    proxy.build().map(Some).map_err(wrong)
}

fn failure(error: ureq::Error, host: &str) -> Failure {
    match error {
        ureq::Error::Timeout(_) => Failure::TimedOut,
        ureq::Error::Io(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
            Failure::TimedOut
        }
        ureq::Error::Io(error) => failed(error.to_string()),
        ureq::Error::HostNotFound => failed(format!("cannot find '{host}'")),
        ureq::Error::Protocol(error) => failed(format!("the answer is no HTTP: {error}")),
        error => failed(error.to_string()),
    }
}
