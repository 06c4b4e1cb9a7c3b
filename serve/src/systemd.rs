//! What a supervisor such as systemd hands over, and what it is told: the socket that it holds, and that the
//! server is ready.
//!
//! If the supervisor holds the socket, the first request starts the server, and no request is lost while it
//! restarts. Implements W4 (socket activation, `sd_notify`).

use crate::Stopped;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

/// Returns the socket that was handed over to this process, if there is one.
pub fn listener() -> Result<Option<TcpListener>, Stopped> {
    let taken = listenfd::ListenFd::from_env().take_tcp_listener(0);
    taken.map_err(|error| {
        Stopped::new(128, format!("cannot listen on the socket that was handed over: {error}"))
    })
}

/// Tells the supervisor, if there is one; it is no failure if the supervisor does not listen.
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
