//! Clocks that are wrong, and dates that cannot be read.
//!
//! Promises V11, V18 (K7, K8, K18): a runner whose clock is off by a second or by ten years claims, renews and,
//! judging by observation, takes over as any other; thirty committer lines that no Git would write are dispatched,
//! recovered or reported, and none of them panics, is taken early, or holds up its branch or another.

use super::row::Sweep;
use super::support::faketime::faketime;
use super::support::life::{Done, LONG, Life, done, now};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

const SKEWS: [(&str, i64); 12] = [
    ("+1s", 1),
    ("-1s", -1),
    ("-10y", -315_360_000),
    ("+10y", 315_360_000),
    ("+5s", 5),
    ("-5s", -5),
    ("+30s", 30),
    ("-30s", -30),
    ("+5m", 300),
    ("-5m", -300),
    ("+1d", 86_400),
    ("-1d", -86_400),
];

fn tick(life: &Life, skew: Option<&str>, args: &[&str]) -> Done {
    let mut command = life.aynig(&[&["tick", "--json"], args].concat());
    if let (Some(skew), Some(library)) = (skew, faketime()) {
        command.env("LD_PRELOAD", library).env("FAKETIME", skew).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    done(command.output().unwrap())
}

fn claim(sweep: &Sweep, life: &Life, skew: &str, branch: &str) {
    life.event(branch, "build", "");
    let said = tick(life, Some(skew), &[branch]);
    if said.code != Some(0) || life.state(branch) != "next" {
        sweep.bad(format!("claim at {skew}: {said:?}"));
    }
    sweep.count("claims", 1);
}

/// A runner whose lease ends by itself while the command goes on renews it whatever the clock says.
fn renew(sweep: &Sweep, life: &Life, skew: &str, branch: &str) {
    life.event(branch, "long", "");
    let said = tick(life, Some(skew), &["--lease", "4s", branch]);
    let states = life.states(branch);
    let leases = states.iter().filter(|s| *s == "working").count();
    if said.code != Some(0) || life.state(branch) != "next" || leases < 2 {
        sweep.bad(format!("renewal at {skew}: {said:?} {states:?}"));
    }
    sweep.count("renewals", leases.saturating_sub(1) as u64);
}

/// Waits for a takeover; how long it took, by a clock that is not faked.
fn taken(life: &Life, skew: Option<&str>, branch: &str) -> (Duration, Done) {
    let since = Instant::now();
    loop {
        let said = tick(life, skew, &["--grace", "0s", branch]);
        if said.code != Some(3) || since.elapsed() > LONG {
            return (since.elapsed(), said);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Of a lease of 2 s: neither early nor late. A sample runs beside all other tests, on whatever machine.
fn in_time(sweep: &Sweep, took: Duration) -> bool {
    let late = sweep.size(LONG.as_secs() as usize, 8) as u64;
    took >= Duration::from_millis(1900) && took < Duration::from_secs(late)
}

fn takeover(sweep: &Sweep, life: &Life, skew: &(&str, i64), branch: &str) {
    let run = "11111111-1111-4111-8111-111111111111";
    // A fresh lease of an honest runner, judged by one that is off.
    life.event(branch, "build", "");
    life.lease(branch, "build", run, 2, 0);
    let (took, said) = taken(life, Some(skew.0), branch);
    let over = said.code == Some(1) && life.state(branch) == "stalled";
    if !over || !in_time(sweep, took) {
        sweep.bad(format!("takeover at {} after {took:?}: {said:?}", skew.0));
    }
    // A lease that the one that is off wrote, judged by an honest one.
    let other = format!("{branch}-back");
    let id = life.event(&other, "build", "");
    life.lease(&other, "build", run, 2, 0);
    let dated = (now() as i64 + skew.1) as u64;
    let message = life.body(&format!("refs/heads/{other}"));
    life.git(&["update-ref", &format!("refs/heads/{other}"), &id]);
    life.event_at(&other, &message, Some(dated));
    let (took, said) = taken(life, None, &other);
    let over = said.code == Some(1) && life.state(&other) == "stalled";
    if !over || !in_time(sweep, took) {
        sweep.bad(format!("a lease dated {} taken over after {took:?}: {said:?}", skew.0));
    }
    sweep.count("takeovers", 2);
}

/// K7, K8, K18
#[test]
fn skews() {
    let sweep = Sweep::begin(
        "clocks-skews",
        "12 skews from 1 s to 10 years, both ways x {claim, takeover by observation, renewal}",
        "all as with a right clock; nothing is taken early, nothing stays",
    );
    if faketime().is_none() {
        return sweep.skip("libfaketime is not installed");
    }
    let commands = [
        ("build", "echo 'SET_STATE {\"state\":\"next\"}'"),
        ("long", "sleep 4; echo 'SET_STATE {\"state\":\"next\"}'"),
    ];
    let skews = SKEWS.len() as u64;
    sweep.at_least("claims", 1, skews);
    sweep.at_least("renewals", 1, skews);
    sweep.at_least("takeovers", 2, 2 * skews);
    let some = sweep.dice().sample(SKEWS.to_vec(), sweep.size(1, SKEWS.len()));
    for (n, skew) in some.iter().enumerate() {
        let life = Life::new(&commands);
        claim(&sweep, &life, skew.0, &format!("claim{n}"));
        renew(&sweep, &life, skew.0, &format!("renew{n}"));
        life.config("aynig.takeover", "observe");
        takeover(&sweep, &life, skew, &format!("takeover{n}"));
        life.repo.assert_sound();
    }
    sweep.end();
}

/// What stands after `committer `; `None`: no such line at all.
const COMMITTERS: [Option<&str>; 31] = [
    Some("Ada <ada@example.com> 0 +0000"),
    Some("Ada <ada@example.com> -1 +0000"),
    Some("Ada <ada@example.com> -99999999999 +0000"),
    Some("Ada <ada@example.com> 99999999999999999999 +0000"),
    Some("Ada <ada@example.com> 18446744073709551615 +0000"),
    Some("Ada <ada@example.com> 9223372036854775807 +0000"),
    Some("Ada <ada@example.com> 9223372036854775808 +0000"),
    Some("Ada <ada@example.com> 10000000000000 +0000"),
    Some("Ada <ada@example.com> 4102444800 +0000"),
    Some("Ada <ada@example.com> 1e9 +0000"),
    Some("Ada <ada@example.com> 0x10 +0000"),
    Some("Ada <ada@example.com> soon +0000"),
    Some("Ada <ada@example.com>  +0000"),
    Some("Ada <ada@example.com> "),
    Some("Ada <ada@example.com>"),
    Some("Ada <ada@example.com> NOW"),
    Some("Ada <ada@example.com> NOW "),
    Some("Ada <ada@example.com> NOW +9999"),
    Some("Ada <ada@example.com> NOW -99999999"),
    Some("Ada <ada@example.com> NOW UTC"),
    Some("Ada <ada@example.com> NOW +0"),
    Some("Ada <ada@example.com> NOW +0000 and more"),
    Some("Ada <ada@example.com> NOW.5 +0000"),
    Some("Ada ada@example.com NOW +0000"),
    Some("Ada <ada@example.com NOW +0000"),
    Some("Ada ada@example.com> NOW +0000"),
    Some("Ada <a> <b> NOW +0000"),
    Some("<> NOW +0000"),
    Some(""),
    Some("\u{1b}[31mA\u{7f}da <ada@example.com> NOW +0000"),
    None,
];

/// A commit with this committer on a branch, as `hash-object --literally` takes it.
fn raw(life: &Life, branch: &str, committer: Option<&str>, message: &str) -> String {
    let (parent, tree) = (life.rev("main"), life.rev("main^{tree}"));
    let mut text = format!("tree {tree}\nparent {parent}\nauthor Ada <ada@example.com> 1 +0000\n");
    if let Some(committer) = committer {
        text += &format!("committer {}\n", committer.replace("NOW", &now().to_string()));
    }
    text += &format!("\n{message}");
    let file = life.shared().join("raw");
    fs::write(&file, text).unwrap();
    let id = life.git(&["hash-object", "-t", "commit", "-w", "--literally", file.to_str().unwrap()]);
    // Git would not point a ref at some of these; a file does.
    fs::write(life.path(&format!(".git/refs/heads/{branch}")), format!("{id}\n")).unwrap();
    id
}

/// The last words on each branch of one tick of all.
fn all_of(life: &Life, sweep: &Sweep) -> BTreeMap<String, (String, i64)> {
    let said = tick(life, None, &["--grace", "0s"]);
    if said.stderr.contains("panicked") || said.code.is_none_or(|c| c == 101 || c == 134) {
        sweep.bad(format!("panic: {said:?}"));
    }
    let reports = said.stdout.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
    reports
        .map(|r| {
            let text = |key: &str| r[key].as_str().unwrap_or_default().to_owned();
            (text("branch"), (text("result"), r["exit_code"].as_i64().unwrap_or(-1)))
        })
        .collect()
}

/// K7, K12 (V12)
#[test]
fn raw_committers() {
    let sweep = Sweep::begin(
        "clocks-committers",
        "committer lines that no Git writes, as trigger and as lease, all in one repository",
        "30 of them: no panic, none taken early, none stuck, none in the way of another",
    );
    sweep.at_least("triggers", 30, 30);
    sweep.at_least("leases recovered", 30, 30);
    let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"next\"}'")]);
    let run = "11111111-1111-4111-8111-111111111111";
    let lease = format!(
        "aynig: working\n\ndwp-state: working\ndwp-origin-state: build\ndwp-run-id: {run}\n\
         dwp-runner-id: elsewhere-1\ndwp-lease-seconds: 3\n"
    );
    for (n, committer) in COMMITTERS.into_iter().enumerate() {
        raw(&life, &format!("event{n:02}"), committer, "go\n\ndwp-state: build\n");
    }
    let began = Instant::now();
    let mut held = BTreeMap::new();
    for (n, committer) in COMMITTERS.into_iter().enumerate() {
        held.insert(format!("lease{n:02}"), raw(&life, &format!("lease{n:02}"), committer, &lease));
    }
    let set = Instant::now();
    let first = all_of(&life, &sweep);
    for (n, committer) in COMMITTERS.into_iter().enumerate() {
        judge_event(&sweep, &life, &format!("event{n:02}"), committer, first.get(&format!("event{n:02}")));
    }
    let until = Instant::now() + Duration::from_secs(12);
    let mut open: Vec<String> = held.keys().cloned().collect();
    // On a slow machine a few looks take as long.
    let mut looks = 0;
    while !open.is_empty() && (Instant::now() < until || looks < 6) {
        looks += 1;
        open.retain(|branch| {
            let head =
                fs::read_to_string(life.path(&format!(".git/refs/heads/{branch}"))).unwrap_or_default();
            let gone = head.trim_end() != held[branch];
            let n: usize = branch[5..].parse().unwrap();
            let believed = COMMITTERS[n].is_some_and(|c| c.contains("> 0 +0000") || c.contains("e9"));
            if gone
                && !believed
                && Instant::now() < set + Duration::from_secs(3)
                && began.elapsed().as_secs() < 3
            {
                sweep.bad(format!("{branch}: {:?} was taken over early", COMMITTERS[n]));
            }
            sweep.count("leases recovered", u64::from(gone));
            !gone
        });
        all_of(&life, &sweep);
    }
    for branch in open {
        judge_stuck(&sweep, &life, &branch);
    }
    sweep.end();
}

/// A trigger was answered, or its branch's report says why not.
fn judge_event(
    sweep: &Sweep,
    life: &Life,
    branch: &str,
    committer: Option<&str>,
    said: Option<&(String, i64)>,
) {
    sweep.count("triggers", 1);
    match said {
        Some((result, 0)) if result == "advanced" => sweep.count("triggers answered", 1),
        Some((result, 128)) if result == "failed" => sweep.count("triggers reported as unreadable", 1),
        other => sweep.bad(format!("{branch}: {committer:?}: {other:?}, {}", life.state(branch))),
    }
}

/// A lease that stayed: then at least a person can go on from it.
fn judge_stuck(sweep: &Sweep, life: &Life, branch: &str) {
    let n: usize = branch[5..].parse().unwrap();
    sweep.bad(format!("{branch}: {:?} was never recovered", COMMITTERS[n]));
    let said = life.run(&["cancel", branch]);
    eprintln!("cancel {branch}: {said:?}");
}
