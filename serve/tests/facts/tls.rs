//! TLS (W12): another address than this machine's is served by it alone, and what is wrong with its files is said at the
//! start.

use crate::support::{Answer, PATIENCE, SERVE, Server, UPGRADE, World, frame, head, until};
use rcgen::{CertificateParams, CertifiedKey, KeyPair};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const NAME: &str = "box.example";

/// A certificate of its own for [`NAME`], with its key, as files; and as who comes trusts it.
struct Files {
    cert: PathBuf,
    key: PathBuf,
    der: CertificateDer<'static>,
}

fn files(world: &World, called: &str, change: impl FnOnce(&mut CertificateParams)) -> Files {
    let mut params = CertificateParams::new([NAME.to_owned(), "localhost".to_owned()]).unwrap();
    change(&mut params);
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    let made = CertifiedKey { cert, signing_key };
    let at = |end: &str| world.home.path().join(format!("{called}.{end}"));
    let files = Files { cert: at("cert"), key: at("key"), der: made.cert.der().clone() };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o600)).unwrap();
    files
}

impl Files {
    fn args(&self) -> [&str; 4] {
        ["--tls-cert", self.cert.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }

    /// A connection to the server by its name, over whichever address.
    fn connect(&self, server: &Server) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from(NAME).unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(client, plain(server))
    }

    fn ask(&self, server: &Server, method: &str, path: &str, lines: &[&str], body: &str) -> Answer {
        let mut stream = self.connect(server);
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        lines.iter().for_each(|line| text += &format!("{line}\r\n"));
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
        Answer::read(&mut stream)
    }
}

/// A connection by this machine's own address, whatever name the server has.
fn plain(server: &Server) -> TcpStream {
    let port: u16 = server.address.rsplit_once(':').unwrap().1.parse().unwrap();
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// W12: all addresses are served by TLS, on the names that were given, with all that is asked of a request besides.
#[test]
fn w12_another_address_is_served_by_tls() {
    let world = World::new();
    let files = files(&world, "good", |_| {});
    let args = ["--bind", "0.0.0.0", "--allow-host", NAME];
    let server = world.serve(&[&args[..], &files.args()].concat());
    assert!(server.said["url"].as_str().unwrap().starts_with(&format!("https://{NAME}:")), "{}", server.said);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let (host, bearer) = (format!("Host: {NAME}:{port}"), server.bearer());
    let page = files.ask(&server, "GET", "/", &[&host], "");
    assert_eq!(page.status, 200, "{page:?}");
    let policy = &page.headers["content-security-policy"];
    assert!(policy.contains(&format!("script-src https://{NAME}:{port}/p/")), "{policy}");
    assert!(policy.contains(&format!("wss://{NAME}:{port}")) && !policy.contains("http:"), "{policy}");
    assert_eq!(files.ask(&server, "GET", "/api/version", &[&host, &bearer], "").status, 200);
    files.ask(&server, "GET", "/api/version", &[&host], "").failed(401, "token");
    for other in ["0.0.0.0", "192.0.2.1", "evil.example"] {
        let line = format!("Host: {other}:{port}");
        files.ask(&server, "GET", "/api/version", &[&line, &bearer], "").failed(403, "host");
    }
    let json = "Content-Type: application/json";
    let code = |origin: &str| {
        let origin = format!("Origin: {origin}");
        files.ask(&server, "POST", "/api/code", &[&host, &bearer, &origin, json], "{}")
    };
    assert_eq!(code(&format!("https://{NAME}:{port}")).status, 200);
    code(&format!("http://{NAME}:{port}")).failed(403, "origin");

    let mut socket = files.connect(&server);
    let token = server.token();
    let asked = format!(
        "GET /api/socket HTTP/1.1\r\n{host}\r\nOrigin: https://{NAME}:{port}\r\n{UPGRADE}Sec-WebSocket-Protocol: aynig, \
         token.{token}\r\n\r\n"
    );
    socket.write_all(asked.as_bytes()).unwrap();
    let answered = head(&mut socket);
    assert!(answered.starts_with("HTTP/1.1 101 "), "{answered}");
    world.aynig(&["set-state", "build", "-b", "job"]);
    assert!(frame(&mut socket).unwrap().contains("\"changed\""));
}

/// W12: without both files nothing is served beyond this machine, and all addresses together need a name.
#[test]
fn w12_beyond_this_machine_tls_is_a_must() {
    let world = World::new();
    let files = files(&world, "good", |_| {});
    let [cert_flag, cert, key_flag, key] = files.args();
    let call = |args: &[&str]| world.call(SERVE, &[&["--port", "0"], args].concat()).output().unwrap();
    refused(&call(&["--bind", "0.0.0.0"]), 2, &["'0.0.0.0'", "--tls-cert and --tls-key", "hint: ssh -L"]);
    refused(&call(&["--bind", "0.0.0.0", cert_flag, cert]), 129, &["--tls-key"]);
    refused(&call(&["--bind", "0.0.0.0", key_flag, key]), 129, &["--tls-cert"]);
    refused(&call(&[&["--bind", "::"], &files.args()[..]].concat()), 129, &["'::'", "--allow-host"]);
    let ui = [&["--ui", world.home.path().to_str().unwrap()], &files.args()[..]].concat();
    refused(&call(&ui), 129, &["no certificate is for", "without --tls-cert"]);
}

#[track_caller]
fn refused(output: &Output, code: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {said}");
    assert!(output.stdout.is_empty(), "no address is told");
}

/// W12: what is wrong with the files is said at the start, with the file and the command that mends it.
#[test]
fn w12_what_is_wrong_with_the_files_is_said_at_the_start() {
    let world = World::new();
    let (good, other) = (files(&world, "good", |_| {}), files(&world, "other", |_| {}));
    let expired = files(&world, "expired", |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 2, 3);
    });
    let early = files(&world, "early", |params| params.not_before = rcgen::date_time_ymd(4000, 1, 1));
    let at = |name: &str, text: &str| {
        let path = world.home.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let locked =
        at("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let noise = at("noise", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let empty = at("empty", "");
    let folder = world.home.path().to_str().unwrap();
    let missing = at("missing", "");
    std::fs::remove_file(&missing).unwrap();
    let (cert, key) = (good.cert.to_str().unwrap(), good.key.to_str().unwrap());
    let tried: [(&str, &str, &[&str]); 10] = [
        (&missing, key, &["cannot read", "missing'", "hint: openssl req -x509"]),
        (folder, key, &["cannot read", folder, "hint: ls -lL"]),
        (cert, &missing, &["cannot read", "missing'", "hint: openssl req -x509"]),
        (&empty, key, &["empty' holds no certificate in PEM", "hint: openssl x509 -inform der"]),
        (&noise, key, &["cannot use the certificate in", "noise'", "hint: openssl req"]),
        (cert, &empty, &["empty' holds no private key in PEM", "hint: openssl pkey -inform der"]),
        (cert, &locked, &["locked' has a password", "hint: openssl pkey -in"]),
        (
            cert,
            other.key.to_str().unwrap(),
            &["other.key' is not that of the certificate in", "hint: openssl x509 -noout"],
        ),
        (
            expired.cert.to_str().unwrap(),
            expired.key.to_str().unwrap(),
            &["expired.cert' expired on 2021-02-03", "hint: openssl req"],
        ),
        (
            early.cert.to_str().unwrap(),
            early.key.to_str().unwrap(),
            &["early.cert' is good from 4000-01-01 on", "hint: openssl req"],
        ),
    ];
    for (cert, key, words) in tried {
        let output =
            world.call(SERVE, &["--port", "0", "--tls-cert", cert, "--tls-key", key]).output().unwrap();
        refused(&output, 128, words);
    }
}

/// W12: a key that others may read is used, and that is said, with the command that ends it.
#[test]
fn w12_a_key_that_others_may_read_is_told() {
    let world = World::new();
    let files = files(&world, "good", |_| {});
    for (mode, is_told) in [(0o640, true), (0o604, true), (0o600, false), (0o400, false)] {
        std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(mode)).unwrap();
        let log = world.home.path().join("told");
        let mut command = world.call(SERVE, &["--json", "--port", "0"]);
        command.args(files.args()).stderr(std::fs::File::create(&log).unwrap());
        let server = Server::start(&mut command);
        let port = server.address.rsplit_once(':').unwrap().1.to_owned();
        let host = format!("Host: localhost:{port}");
        assert_eq!(files.ask(&server, "GET", "/api/version", &[&host, &server.bearer()], "").status, 200);
        let said = std::fs::read_to_string(&log).unwrap();
        assert_eq!(said.contains("good.key'\nhint: chmod 600 '"), is_told, "{mode:o} {said}");
    }
}

/// W12: a client that speaks without TLS is told, and gets nothing else; one that greets slowly, or with nonsense, is
/// let go and holds no other client up.
#[test]
fn w12_what_is_no_tls_gets_nothing() {
    let world = World::new();
    let files = files(&world, "good", |_| {});
    let server = world.serve(&files.args());
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let mut clear = plain(&server);
    write!(clear, "GET /api/version HTTP/1.1\r\nHost: localhost:{port}\r\n{}\r\n\r\n", server.bearer())
        .unwrap();
    let answer = Answer::read(&mut clear);
    answer.failed(400, "invalid");
    assert!(answer.text().contains("https alone"), "{}", answer.text());

    let mut slow: Vec<TcpStream> = (0..40).map(|_| plain(&server)).collect();
    // The first bytes of a greeting, and no more.
    slow[20..].iter_mut().for_each(|stream| stream.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap());
    let mut strange = plain(&server);
    strange.write_all(&[&[0x16, 3, 1, 0, 5][..], &[0xff; 200]].concat()).unwrap();
    let mut rest = Vec::new();
    let _ = strange.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("HTTP"));
    let host = format!("Host: localhost:{port}");
    assert_eq!(files.ask(&server, "GET", "/api/version", &[&host, &server.bearer()], "").status, 200);
    for stream in &mut slow {
        let mut rest = Vec::new();
        let is_closed = crate::support::is_closed(stream.read_to_end(&mut rest));
        assert!(is_closed && !String::from_utf8_lossy(&rest).contains("HTTP"));
    }
}

/// W3, W4: where it is is told with how it is spoken to; and it ends while clients are there.
#[test]
fn w4_it_ends_while_others_look_on_over_tls_too() {
    use nix::sys::signal::{Signal, kill};
    let world = World::new();
    let files = files(&world, "good", |_| {});
    let mut server = world.serve(&files.args());
    let second = world.call(SERVE, &["--port", "0"]).output().unwrap();
    refused(&second, 3, &[&format!("is served already at https://{}", server.address)]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let mut open = files.connect(&server);
    write!(open, "GET /api/version HTTP/1.1\r\nHost: localhost:{port}\r\n{}\r\n\r\n", server.bearer())
        .unwrap();
    assert!(head(&mut open).starts_with("HTTP/1.1 200 "));
    let _greeting = plain(&server);
    kill(nix::unistd::Pid::from_raw(server.child.id().cast_signed()), Signal::SIGTERM).unwrap();
    let status = until("it ends", || server.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}
