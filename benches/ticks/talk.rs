//! What it costs to talk: sending, delivering, following an inbox, and what a tick pays that has nothing to hear.

use super::{Limit, Place, Row, measure, rounds, wanted};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const FOLLOW: &str = "inbox --follow, from the start of a send to the message's line";
const UNHEARD: &str = "idle tick of one branch, 10,000 messages wait for others";
/// No line takes so long.
const LONGEST: Duration = Duration::from_secs(20);

pub fn all(place: &Place, rows: &mut Vec<Row>) {
    for durable in [false, true] {
        sends(place, durable, rows);
        delivers(place, durable, rows);
    }
    if wanted(UNHEARD) {
        unheard(place, rows);
    }
    if wanted(FOLLOW) {
        follows(place, rows);
    }
}

/// A repository whose branch `work` takes messages.
fn receptive(place: &Place, name: &str, durable: bool) -> PathBuf {
    let dir = place.repository(name, 10);
    place.git(&dir, &["config", "aynig.fsync", if durable { "true" } else { "false" }]);
    rest(place, &dir);
    dir
}

/// Puts `work` back on a head that takes messages, and empties its inbox.
fn rest(place: &Place, dir: &Path) {
    let message = b"rest\n\ndwp-state: idle\ndwp-accepts: message=rework\n";
    let id = place.git_says(dir, &["commit-tree", "main^{tree}", "-p", "main"], message);
    place.git(dir, &["update-ref", "refs/heads/work", &id]);
    let all = place.git_says(dir, &["for-each-ref", "--format=delete %(refname)", "refs/aynig/inbox"], b"");
    if !all.is_empty() {
        place.git_says(dir, &["update-ref", "--stdin"], format!("{all}\n").as_bytes());
    }
}

/// How the yardstick of that durability is called, and its first arguments.
fn plain(durable: bool) -> (&'static str, &'static [&'static str]) {
    if durable { ("durable", &["-c", "core.fsync=committed"]) } else { ("aynig.fsync=false", &[]) }
}

fn sends(place: &Place, durable: bool, rows: &mut Vec<Row>) {
    let (kind, first) = plain(durable);
    let name = format!("send of one message, {kind}");
    if !wanted(&name) {
        return;
    }
    let dir = receptive(place, &format!("send {durable}"), durable);
    let args = [first, &["commit", "-q", "--allow-empty", "-m", "x"]].concat();
    rows.extend(measure(
        &name,
        &format!("git {}", args[..args.len() - 2].join(" ")),
        Limit::Ratio(1.5),
        rounds(),
        |_| place.time(&dir, &place.bin, &["send", "work", "-m", "hello", "--no-tick"], 0),
        |_| place.time(&dir, Path::new("git"), &args, 0),
    ));
}

/// One message with work, brought to a branch that is not checked out; and the merge of the same work where it is.
fn delivers(place: &Place, durable: bool, rows: &mut Vec<Row>) {
    let (kind, first) = plain(durable);
    let name = format!("delivery of one message with work, {kind}");
    if !wanted(&name) {
        return;
    }
    let dir = receptive(place, &format!("deliver {durable}"), durable);
    place.git(&dir, &["checkout", "-q", "-b", "side"]);
    std::fs::write(dir.join("side.txt"), "side\n").expect("file");
    place.git(&dir, &["add", "side.txt"]);
    place.git(&dir, &["commit", "-q", "-m", "side"]);
    place.git(&dir, &["checkout", "-q", "-b", "yardstick", "main"]);
    let args = [first, &["merge", "-q", "--no-ff", "-m", "x", "side"]].concat();
    rows.extend(measure(
        &name,
        &format!("git {}", args[..args.len() - 3].join(" ")),
        Limit::Ratio(1.5),
        rounds(),
        |_| {
            rest(place, &dir);
            let send = ["send", "work", "-m", "hello", "--attach", "side", "--no-tick"];
            place.time(&dir, &place.bin, &send, 0);
            place.time(&dir, &place.bin, &["tick", "work"], 0)
        },
        |_| {
            place.git(&dir, &["reset", "-q", "--hard", "main"]);
            place.time(&dir, Path::new("git"), &args, 0)
        },
    ));
}

fn unheard(place: &Place, rows: &mut Vec<Row>) {
    let (with, without) = (place.repository("unheard", 10), place.repository("silent", 10));
    let id = place.git_says(&with, &["rev-parse", "main"], b"");
    let mut refs = String::new();
    for n in 0..10_000 {
        let _ = writeln!(refs, "create refs/aynig/inbox/other/message/0192f0c1-2345-7abc-8def-{n:012x} {id}");
    }
    place.git_says(&with, &["update-ref", "--stdin"], refs.as_bytes());
    for dir in [&with, &without] {
        place.git(dir, &["pack-refs", "--all"]);
    }
    rows.extend(measure(
        UNHEARD,
        "the same where none waits",
        Limit::Ratio(1.02),
        rounds() * 5,
        |_| place.time(&with, &place.bin, &["tick", "work"], 0),
        |_| place.time(&without, &place.bin, &["tick", "work"], 0),
    ));
}

fn follows(place: &Place, rows: &mut Vec<Row>) {
    let dir = receptive(place, "follow", true);
    let (mut child, lines) = follow(place, &dir);
    let send = ["send", "work", "-m", "hello", "--no-tick"];
    rows.extend(measure(
        FOLLOW,
        "the same send",
        Limit::More(300.0),
        rounds(),
        |_| {
            let started = Instant::now();
            place.time(&dir, &place.bin, &send, 0);
            lines.recv_timeout(LONGEST).expect("it is told");
            started.elapsed()
        },
        |_| {
            let took = place.time(&dir, &place.bin, &send, 0);
            lines.recv_timeout(LONGEST).expect("it is told");
            took
        },
    ));
    let _ = child.kill();
    let _ = child.wait();
}

/// A process that follows the inbox, and its lines as they come.
fn follow(place: &Place, dir: &Path) -> (Child, Receiver<()>) {
    let mut command = place.command(&place.bin, dir);
    let command = command.args(["inbox", "--follow", "--json", "work"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let (tell, lines) = channel();
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|_| tell.send(())));
    (child, lines)
}
