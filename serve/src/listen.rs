//! Connections: accepted one by one, with limits to their number, their headers and their time; closed when
//! the server ends.
//!
//! Implements W4 (the end), W14 (caps).

use crate::state::{State, closed};
use crate::{live, routes, tls, watch};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;

/// A write that takes longer than this has no reader.
const WRITTEN_WITHIN: Duration = Duration::from_secs(20);
/// Most connections at a time.
pub const CONNECTIONS_MAX: usize = 256;
/// How long a request's line and headers may take to come.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// Most bytes and most lines of headers.
const HEADERS_MAX: usize = 32 * 1024;
const HEADER_LINES_MAX: usize = 64;
/// How long the requests that are being answered may still take when the server ends.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Serves until a signal ends the server.
pub async fn serve(listener: TcpListener, state: Arc<State>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let _watches = watch::begin(&state);
    tokio::spawn(live::look(Arc::clone(&state)));
    let router = routes::router(Arc::clone(&state));
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
        };
        let Ok((stream, _)) = accepted else {
            // One cause is that too many descriptors are open, which passes.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else { continue };
        let _ = stream.set_nodelay(true);
        let (router, closing) = (router.clone(), state.closing.subscribe());
        let tls = state.served.tls.clone();
        tokio::spawn(async move {
            match tls {
                None => answer(Patient::new(stream), router, closing).await,
                Some(tls) => {
                    if let Some(stream) = tls::greeted(&tls, stream).await {
                        answer(Patient::new(stream), router, closing).await;
                    }
                }
            }
            drop(permit);
        });
    }
    drop(listener);
    state.closing.send_replace(true);
    // The wait ends when the last connection is gone, or at the latest after this time.
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(LAST_WORDS, connections.acquire_many(all)).await;
    Ok(())
}

/// Answers the requests of one connection.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    mut closing: Receiver<bool>,
) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    server.max_buf_size(HEADERS_MAX).max_headers(HEADER_LINES_MAX);
    let service = TowerToHyperService::new(router);
    let connection = server.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => {}
        () = closed(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(LAST_WORDS / 2, connection).await;
        }
    }
}

/// A connection whose writes have a deadline, so that a client that asks and does not read can't hold it for
/// longer.
struct Patient<S> {
    stream: S,
    /// When the write that is under way is given up.
    until: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S) -> Self {
        Self { stream, until: None }
    }

    /// Returns the result of a write, or a timeout if it has waited for too long.
    fn waited<T>(&mut self, context: &mut Context<'_>, now: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if now.is_ready() {
            self.until = None;
            return now;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITTEN_WITHIN)));
        ready!(until.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let now = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.waited(context, now)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let now = Pin::new(&mut self.stream).poll_flush(context);
        self.waited(context, now)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let now = Pin::new(&mut self.stream).poll_shutdown(context);
        self.waited(context, now)
    }
}
