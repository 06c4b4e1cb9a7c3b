//! What a supervisor as systemd hands over and is told: the socket that it holds, and that the server is ready.
//!
//! With its socket a start is the first request's, and none is lost while the server is started again. Implements W4
//! (socket activation, `sd_notify`).

use crate::Stopped;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

/// The socket that was handed over, if one was to this process.
pub fn listener() -> Result<Option<TcpListener>, Stopped> {
    let taken = listenfd::ListenFd::from_env().take_tcp_listener(0);
    taken.map_err(|error| {
        Stopped::new(128, format!("cannot listen on the socket that was handed over: {error}"))
    })
}

/// Tells the supervisor, if there is one; that it does not hear is no failure.
pub fn say(word: &str) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let Ok(socket) = UnixDatagram::unbound() else { return };
    let raw = place.as_encoded_bytes();
    let _ = match raw.first() {
        #[cfg(target_os = "linux")]
        Some(b'@') => {
            use std::os::linux::net::SocketAddrExt;
            let name = std::os::unix::net::SocketAddr::from_abstract_name(&raw[1..]);
            name.and_then(|name| socket.send_to_addr(word.as_bytes(), &name))
        }
        Some(_) | None => socket.send_to(word.as_bytes(), &place),
    };
}
