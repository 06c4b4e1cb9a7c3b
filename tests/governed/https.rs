//! `https` webhooks, posted to a TLS server on the loopback: authorities, proxies and deadlines (G5).

use crate::notify::{PIECES, Post, hurried, project, read, webhook};
use aynig::governed::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/governed/tls").join(name)
}

/// A TLS server that answers each post with 202; its port, and what it was sent.
fn server() -> (u16, mpsc::Receiver<Post>) {
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in socket.incoming() {
            let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream.unwrap());
            // A client that trusts no certificate here never gets as far as a request.
            if tls.flush().is_err() || tls.conn.complete_io(&mut tls.sock).is_err() {
                continue;
            }
            let post = read(&mut tls);
            tls.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").unwrap();
            if tell.send(post).is_err() {
                return;
            }
        }
    });
    (port, told)
}

/// A proxy: the lines with which it was asked for a tunnel.
fn tunnels() -> (String, mpsc::Receiver<String>) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for client in socket.incoming() {
            let mut client = client.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let line = String::from_utf8(head).unwrap().lines().next().unwrap().to_owned();
            let server = TcpStream::connect(line.split(' ').nth(1).unwrap()).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let _ = tell.send(line);
            let (mut up, mut down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut up, &mut down));
            thread::spawn(move || std::io::copy(&mut &server, &mut &client));
        }
    });
    (address, told)
}

/// One notification with this environment; its line of the audit.
fn notified(url: &str, environment: &[(&str, &str)]) -> Value {
    notified_by(webhook("ops", url, &["run_completed"]), environment)
}

/// Does what [`notified`] does, by this webhook.
fn notified_by(webhook: Value, environment: &[(&str, &str)]) -> Value {
    let project = project(json!([webhook]));
    let all = environment.iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
    let root = project.root().with_environment(all);
    let sent =
        emit_notifications(&root, &project.config, &project.state(), "run_completed", &json!({}), None);
    sent.unwrap().results[0].clone()
}

#[test]
fn a_server_is_trusted_by_an_authority_and_by_nothing_else() {
    let (port, posts) = server();
    let authority = file("authority.pem");
    let trusting = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let line = notified(&format!("https://localhost:{port}/hook?x=1"), &trusting);
    assert_eq!((&line["delivered"], &line["status_code"]), (&json!(true), &json!(202)), "{line}");
    let (head, body) = posts.recv().unwrap();
    assert!(head.starts_with("POST /hook?x=1 HTTP/1.1\r\n") && head.contains("\r\nx-key: k-s\r\n"), "{head}");
    assert_eq!(body["event_type"], "run_completed");
    // The machine's own authorities know nothing of the tests'.
    let line = notified(&format!("https://localhost:{port}/"), &[]);
    assert_eq!((&line["delivered"], &line["timed_out"]), (&json!(false), &json!(false)), "{line}");
    assert!(line["message"].as_str().unwrap().contains("certificate"), "{line}");
    // Another name for the same machine is another server.
    let line = notified(&format!("https://127.0.0.1:{port}/"), &trusting);
    assert!(line["message"].as_str().unwrap().contains("certificate not valid for name"), "{line}");
    assert!(posts.try_recv().is_err());
}

#[test]
fn a_handshake_that_trickles_is_over_at_the_deadline() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = socket.accept().unwrap();
        // The head of a long record, and then a byte at a time: no read ever waits long.
        stream.write_all(&[0x16, 0x03, 0x03, 0x3f, 0xff]).unwrap();
        for _ in 0..PIECES {
            if stream.write_all(&[2]).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    let hurried = hurried("ops", &format!("https://127.0.0.1:{port}/"), &["run_completed"]);
    let line = notified_by(hurried, &[]);
    assert_eq!((&line["delivered"], &line["timed_out"]), (&json!(false), &json!(true)), "{line}");
}

#[test]
fn a_proxy_is_for_https_and_for_hosts_that_are_not_excepted() {
    let (port, posts) = server();
    let (proxy, asked) = tunnels();
    let authority = file("authority.pem");
    let trusting = ("SSL_CERT_FILE", authority.to_str().unwrap());
    let url = format!("https://localhost:{port}/");
    for name in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        let line = notified(&url, &[trusting, (name, &format!("http://{proxy}"))]);
        assert_eq!(line["delivered"], true, "{name}: {line}");
        assert_eq!(asked.recv().unwrap(), format!("CONNECT localhost:{port} HTTP/1.1"));
        posts.recv().unwrap();
    }
    for excepted in ["localhost", "*", "example.com, localhost"] {
        let line = notified(&url, &[trusting, ("https_proxy", &proxy), ("no_proxy", excepted)]);
        assert_eq!(line["delivered"], true, "{line}");
        posts.recv().unwrap();
    }
    // An http proxy is not for https, and none is for http.
    assert_eq!(notified(&url, &[trusting, ("http_proxy", &proxy)])["delivered"], true);
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", plain.local_addr().unwrap());
    let all = ["http_proxy", "https_proxy", "all_proxy"].map(|name| (name, proxy.as_str()));
    let line = thread::scope(|scope| {
        let line = scope.spawn(|| notified(&url, &all));
        let (mut stream, _) = plain.accept().unwrap();
        read(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        line.join().unwrap()
    });
    assert_eq!(line["delivered"], true, "{line}");
    assert!(asked.try_recv().is_err());
}
