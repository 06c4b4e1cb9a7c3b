//! TLS: the certificate and the key that were given at the start, and the handshake of each connection.
//!
//! Both files are read once. What is wrong with them is reported at the start, by name, and not to each
//! browser. A client that is slow with the handshake, or speaks without TLS, can't hold a connection for
//! long. Implements W12 (TLS), W14 (time).

use crate::Stopped;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, InconsistentKeys, ServerConfig};
use tokio_rustls::server::TlsStream;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::time::{Time, Validity};

/// Most bytes of either file.
const FILE_MAX: u64 = 1 << 20;
/// How long a handshake may take.
const GREETED_WITHIN: Duration = Duration::from_secs(10);
/// The first byte of every connection with TLS.
const HANDSHAKE: u8 = 0x16;
/// The answer to a client that speaks without TLS.
const IN_THE_CLEAR: &str = "{\"error\":\"this port speaks https alone\",\"code\":\"invalid\"}";
/// A command that makes a certificate for a trial.
const MADE: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj /CN=<host> -addext \
                    subjectAltName=DNS:<host> -keyout key.pem -out cert.pem";

/// Reads the certificates and the key, or says what is wrong with them.
pub fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, Stopped> {
    let (cert_name, key_name) = (cert.display(), key.display());
    let chain = certificates(cert)?;
    let private = private_key(key)?;
    let versions = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions();
    let config = versions.and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    let mut config = config.map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let why = format!("the key in '{key_name}' is not that of the certificate in '{cert_name}'");
            let both = "openssl x509 -noout -pubkey -in";
            wrong(why, format!("{both} '{cert_name}'; openssl pkey -pubout -in '{key_name}'"))
        }
        error => wrong(
            format!("cannot use the certificate in '{cert_name}' with the key in '{key_name}': {error}"),
            MADE.to_owned(),
        ),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn wrong(why: String, hint: String) -> Stopped {
    Stopped::new(128, why).hint(hint)
}

fn read(path: &Path) -> Result<(File, Vec<u8>), Stopped> {
    let shown = path.display();
    let failed = |error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => MADE.to_owned(),
            _ => format!("ls -lL '{shown}'"),
        };
        wrong(format!("cannot read '{shown}': {error}"), hint)
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    (&mut file).take(FILE_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok((file, bytes))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Stopped> {
    let (shown, (_, bytes)) = (path.display(), read(path)?);
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| {
        let hint = format!("openssl x509 -inform der -in '{shown}' -out cert.pem");
        wrong(format!("'{shown}' holds no certificate in PEM"), hint)
    })?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    // A certificate whose times can't be read is left for the browser to judge.
    if let Some(Validity { not_before, not_after }) = chain.first().and_then(|own| validity(own)) {
        let judged = |why: String| Err(wrong(format!("the certificate in '{shown}' {why}"), MADE.to_owned()));
        if now > not_after.to_unix_duration().as_secs() {
            return judged(format!("expired on {}", day(not_after)));
        }
        if now < not_before.to_unix_duration().as_secs() {
            return judged(format!(
                "is good from {} on, by the clock of this machine not yet",
                day(not_before)
            ));
        }
    }
    Ok(chain)
}

fn validity(certificate: &[u8]) -> Option<Validity> {
    Certificate::from_der(certificate).ok().map(|certificate| certificate.tbs_certificate.validity)
}

/// Returns the day of a time, as `YYYY-MM-DD`.
fn day(time: Time) -> String {
    let day = time.to_date_time();
    format!("{:04}-{:02}-{:02}", day.year(), day.month(), day.day())
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Stopped> {
    let (shown, (file, bytes)) = (path.display(), read(path)?);
    // Only a file is checked: a pipe or a terminal has no other reader.
    let mode = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|meta| meta.permissions().mode());
    if mode.is_some_and(|mode| mode & 0o077 != 0) {
        eprintln!("warning: others than you may read the key in '{shown}'\nhint: chmod 600 '{shown}'");
    }
    let text = String::from_utf8_lossy(&bytes);
    if text.contains("ENCRYPTED") {
        let hint = format!("openssl pkey -in '{shown}' -out key.pem");
        return Err(wrong(format!("the key in '{shown}' has a password"), hint));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        let hint = format!("openssl pkey -inform der -in '{shown}' -out key.pem");
        wrong(format!("'{shown}' holds no private key in PEM"), hint)
    })
}

/// Makes the handshake with a client; `None` if it fails.
pub async fn greeted(tls: &TlsAcceptor, mut stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let greeting = async {
        let mut first = [0];
        if stream.peek(&mut first).await.ok()? == 0 {
            return None;
        }
        if first != [HANDSHAKE] {
            in_the_clear(&mut stream).await;
            return None;
        }
        tls.accept(stream).await.ok()
    };
    tokio::time::timeout(GREETED_WITHIN, greeting).await.ok().flatten()
}

/// Answers a client that speaks without TLS.
async fn in_the_clear(stream: &mut TcpStream) {
    let head =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length:";
    let answer = format!("{head} {}\r\n\r\n{IN_THE_CLEAR}", IN_THE_CLEAR.len());
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    // Unread input would turn the close into a reset, and the client would lose the answer.
    let mut rest = [0; 4096];
    for _ in 0..16 {
        if !tokio::io::AsyncReadExt::read(stream, &mut rest).await.is_ok_and(|read| read > 0) {
            return;
        }
    }
}
