//! Many who send to one branch at once, while many tick it: each message is delivered once, and those of one sender in
//! the order in which it sent them.
//!
//! Real processes, nothing killed: what is between them is the refs alone. For K46, K47, K47a.

use super::row::{Sweep, full, seconds};
use super::support::life::Life;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Notes what it heard, in order, and takes the next.
const HEARS: &str = "grep -o '\"id\":\"[^\"]*' \"$AYNIG_MESSAGES\" | cut -d'\"' -f4 >>\"$T/heard\"\n\
    echo \"SET_STATE {\\\"state\\\":\\\"idle\\\",\\\"trailers\\\":[\\\"dwp-accepts: message=rework\\\"]}\"";
/// How long all of them send at most: `AYNIG_SECONDS`, or as long as a busy machine takes for all of them.
fn sends_for() -> Duration {
    seconds().unwrap_or(Duration::from_secs(3600))
}
/// Most messages.
const MOST: usize = 10_000;

/// One that sends until it is time to end; the ids, in its order.
fn sender(
    life: &Life,
    sent: &AtomicUsize,
    until: Instant,
    each: usize,
    bad: &Mutex<Vec<String>>,
) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < each && Instant::now() < until && sent.fetch_add(1, Ordering::Relaxed) < MOST {
        let done = life.run(&["send", "work", "-m", "hello", "--no-tick", "--json"]);
        match serde_json::from_str::<serde_json::Value>(&done.stdout) {
            Ok(said) if done.code == Some(0) => ids.push(said["id"].as_str().unwrap_or_default().to_owned()),
            _ => bad.lock().unwrap().push(format!("send: {done:?}")),
        }
    }
    ids
}

#[test]
fn one_branch() {
    let sweep = Sweep::begin(
        "talk-crowd",
        "64 processes at a time send to one branch, 8 tick it",
        "10,000 messages: each delivered once, in order per sender",
    );
    sweep.at_least("messages", 8, MOST as u64);
    let (senders, tickers) = (sweep.size(4, 64), sweep.size(2, 8));
    let each = if full() { MOST } else { 2 };
    let life = Life::new(&[("rework", HEARS)]);
    life.git(&["config", "gc.auto", "0"]);
    life.event("work", "idle", "dwp-accepts: message=rework\n");
    let (over, number, bad) = (AtomicBool::new(false), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let ticks = AtomicUsize::new(0);
    let until = Instant::now() + sends_for();
    let sent: Vec<Vec<String>> = std::thread::scope(|scope| {
        let (life, over, number, bad, ticks) = (&life, &over, &number, &bad, &ticks);
        for _ in 0..tickers {
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let done = life.tick(&["work"]);
                    // 3: another was quicker, or holds the branch.
                    if !matches!(done.code, Some(0 | 3)) {
                        bad.lock().unwrap().push(format!("tick: {done:?}"));
                    }
                    ticks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let all: Vec<_> =
            (0..senders).map(|_| scope.spawn(move || sender(life, number, until, each, bad))).collect();
        let sent = all.into_iter().map(|one| one.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        sent
    });
    // What came last is taken in by ticks alone.
    let waiting = || life.git(&["for-each-ref", "refs/aynig/inbox"]).lines().count();
    let mut left = waiting();
    sweep.count("left for the last ticks", left as u64);
    while left > 0 {
        let done = life.tick(&["work"]);
        let now = waiting();
        if now >= left {
            sweep.bad(format!("V11: {now} wait, and it goes no further: {done:?}"));
            break;
        }
        left = now;
    }
    judge(&sweep, &life, &sent);
    bad.into_inner().unwrap().into_iter().for_each(|what| sweep.bad(what));
    sweep.count("ticks", ticks.into_inner() as u64);
    sweep.count("senders at a time", senders as u64);
    sweep.end();
}

fn judge(sweep: &Sweep, life: &Life, sent: &[Vec<String>]) {
    let heard = life.said("heard");
    let mut at: HashMap<&str, Vec<usize>> = HashMap::new();
    heard.lines().enumerate().for_each(|(n, id)| at.entry(id).or_default().push(n));
    let brought = life.git(&[
        "log",
        "--first-parent",
        "--merges",
        "--format=%(trailers:key=dwp-heard,valueonly)",
        "work",
    ]);
    let mut times: HashMap<&str, usize> = HashMap::new();
    let ids = brought.lines().filter_map(|line| line.split_once(' ')).map(|(id, _)| id);
    ids.for_each(|id| *times.entry(id).or_default() += 1);
    for ids in sent {
        for id in ids {
            if times.get(&**id) != Some(&1) {
                sweep.bad(format!("K47a: {id} is {:?} times on the branch", times.get(&**id)));
            }
            if at.get(&**id).map(Vec::len) != Some(1) {
                sweep.bad(format!("K47: {id} was heard at {:?}", at.get(&**id)));
            }
        }
        let order: Vec<usize> = ids.iter().filter_map(|id| at.get(&**id)?.first().copied()).collect();
        if !order.is_sorted() {
            sweep.bad(format!("K47: one sender's were heard in the order {order:?}"));
        }
    }
    let all: usize = sent.iter().map(Vec::len).sum();
    if heard.lines().count() != all {
        sweep.bad(format!("{} were heard, and {all} sent", heard.lines().count()));
    }
    let merges = life.git(&["rev-list", "--first-parent", "--merges", "--count", "work"]);
    sweep.count("messages", all as u64);
    sweep.count("deliveries", merges.parse().unwrap());
    if !life.repo.try_git(&["fsck", "--strict", "--no-dangling"]).status.success() {
        sweep.bad("V13: fsck");
    }
}
