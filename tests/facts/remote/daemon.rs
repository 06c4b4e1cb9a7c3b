//! `git daemon` behind a connection that is cut in the middle of a push: what `set-state --push` says of it (K11).

use crate::support::life::{Done, eventually};
use crate::support::net::{Machine, Net};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a relay does to pushes, and what it saw of them.
#[derive(Default)]
pub(super) struct Relay {
    /// So many bytes of its answer to a push are heard.
    pub(super) heard: Mutex<Option<usize>>,
    /// From a cut on no client is answered any more.
    pub(super) gone_then: AtomicBool,
    pub(super) gone: AtomicBool,
    /// Bytes that were answered to the last push, and pushes that were served to their end.
    pub(super) answered: AtomicUsize,
    pub(super) served: AtomicUsize,
}

/// Serves the folder of a remote until the test ends; its address.
pub(super) fn serve(net: &Net, relay: &Arc<Relay>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let base = net.origin().parent().unwrap().to_owned();
    let env: Vec<_> = net.life.repo.env();
    let relay = relay.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (relay, base, env) = (relay.clone(), base.clone(), env.clone());
            std::thread::spawn(move || pass(client, &relay, base, env));
        }
    });
    format!("git://127.0.0.1:{port}/origin.git")
}

/// Passes one connection on to a daemon of its own.
fn pass(
    mut client: TcpStream,
    relay: &Relay,
    base: PathBuf,
    env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
) {
    // One line of a packet, whose length is its first four digits.
    let mut asked = vec![0; 4];
    if relay.gone.load(Ordering::SeqCst) || client.read_exact(&mut asked).is_err() {
        return;
    }
    let length = usize::from_str_radix(std::str::from_utf8(&asked).unwrap(), 16).unwrap();
    asked.resize(length, 0);
    client.read_exact(&mut asked[4..]).unwrap();
    let is_push = asked.windows(16).any(|part| part == b"git-receive-pack");
    let mut daemon = Command::new(which::which("git").unwrap());
    daemon.env_clear().envs(env).args(["daemon", "--inetd", "--export-all", "--enable=receive-pack"]);
    daemon.arg(format!("--base-path={}", base.display()));
    let mut daemon =
        daemon.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut to, mut from) = (daemon.stdin.take().unwrap(), daemon.stdout.take().unwrap());
    let mut more = client.try_clone().unwrap();
    let up = std::thread::spawn(move || {
        let mut some = asked;
        while to.write_all(&some).is_ok() {
            some.resize(4096, 0);
            match more.read(&mut some) {
                Ok(n) if n > 0 => some.truncate(n),
                Ok(_) | Err(_) => break,
            }
        }
    });
    let limit = relay.heard.lock().unwrap().filter(|_| is_push).unwrap_or(usize::MAX);
    let (mut bytes, mut answered) = ([0; 1], 0);
    // Byte by byte, so that it is cut exactly there; the daemon goes on to its end.
    while let Ok(1) = from.read(&mut bytes) {
        if answered < limit {
            let _ = client.write_all(&bytes);
        }
        answered += 1;
        if answered == limit {
            relay.gone.fetch_or(relay.gone_then.load(Ordering::SeqCst), Ordering::SeqCst);
            let _ = client.shutdown(Shutdown::Both);
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = daemon.wait();
    let _ = up.join();
    if is_push {
        relay.answered.store(answered, Ordering::SeqCst);
        relay.served.fetch_add(1, Ordering::SeqCst);
    }
}

fn push(a: &Machine<'_>, state: &str) -> Done {
    a.run(&["set-state", state, "-b", "work", "--push", "--no-tick"])
}

/// K11: wherever the answer to a push is cut off, what is not known is 75 with how to ask, and never a failure.
#[test]
fn a_push_that_is_cut_at_a_daemon_is_neither_done_nor_failed() {
    let net = Net::new(&[]);
    let (a, relay) = (net.machine("a"), Arc::new(Relay::default()));
    a.git(&["remote", "set-url", "origin", &serve(&net, &relay)]);
    push(&a, "calm").expect(0);
    eventually("it is served", || (relay.served.load(Ordering::SeqCst) == 1).then_some(()));
    // Longer than the first: it names a branch that is there.
    push(&a, "calm").expect(0);
    eventually("it is served", || (relay.served.load(Ordering::SeqCst) == 2).then_some(()));
    let whole = relay.answered.load(Ordering::SeqCst);
    let mut moved_unheard = 0;
    for gone in [false, true] {
        for heard in [whole - 1, whole - 5, whole - 20, whole - 40, whole / 2, 1] {
            relay.gone_then.store(gone, Ordering::SeqCst);
            relay.gone.store(false, Ordering::SeqCst);
            *relay.heard.lock().unwrap() = Some(heard);
            let served = relay.served.load(Ordering::SeqCst);
            let done = push(&a, "cut");
            eventually("the daemon is done", || (relay.served.load(Ordering::SeqCst) > served).then_some(()));
            let (id, there) = (a.git(&["rev-parse", "work"]), net.rev("work"));
            let told = format!("heard {heard} of {whole}, gone: {gone}, {there}: {done:?}");
            match done.code {
                Some(0) => assert_eq!(id, there, "{told}"),
                Some(75) => assert!(done.stderr.contains("hint: git push origin work"), "{told}"),
                _ => panic!("{told}"),
            }
            if gone && id == there && done.code == Some(75) {
                let unknown = format!("whether 'origin' has {} is not known", &id[..10]);
                assert!(done.stderr.contains(&unknown), "{told}");
                assert!(done.stderr.contains("hint: git ls-remote origin refs/heads/work"), "{told}");
                moved_unheard += 1;
            }
            // What the hint says brings both together.
            relay.gone.store(false, Ordering::SeqCst);
            *relay.heard.lock().unwrap() = None;
            a.git(&["push", "-q", "origin", "work"]);
        }
    }
    assert!(moved_unheard > 0, "otherwise nothing was shown");
}
