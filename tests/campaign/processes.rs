//! Nothing of a run outlives the run, and nothing that a command prints costs its runner anything.
//!
//! Promises V16, V17 (K14, K16, K17, K18, K24, K26): eight ways to leave a process group, each ended in three ways; a
//! process counts as a survivor if it still carries the run's environment or stands in its slot one second later.
//! Output without end, without a line, without sense, and held open by others. A runner that was stopped for longer
//! than its lease, and comes back to a branch that another runner has recovered.

use super::row::Sweep;
use super::support::leaving::{self, WAYS, Way};
use super::support::life::{LONG, Life, eventually, lives};
use super::support::skipped;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Nothing that was killed may be left after this long, however busy the machine is; what is to be ended sleeps longer.
const LATE: Duration = LONG;

/// Beside what everyone tries.
const ESCAPES: [Way; 4] = [
    ("200 forks", "i=0; while [ $i -lt 200 ]; do setsid sh -c \"$LEAF\" & i=$((i+1)); done", 200),
    ("ptrace-stopped", "TRACED", 1),
    ("closed descriptors", "(exec <&- >&- 2>&-; sh -c \"$LEAF\" & exit 0) &", 1),
    (
        "deaf daemon",
        "(setsid sh -c 'trap \"\" TERM HUP INT; cd /; (sh -c \"$LEAF\" & exit 0) & exit 0' &)",
        1,
    ),
];

#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Normal,
    Fence,
    Killed,
}

/// What starts a child that is traced and never continued; `None` where there is no tracer.
fn traced() -> Option<&'static str> {
    let has = |program: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|d| d.join(program).exists())
    };
    if has("strace") {
        // Its tracer stops it for as long as it lives, at the first call that is delayed.
        Some(
            "strace -f -qq -o /dev/null -e trace=execve -e inject=execve:delay_exit=290000000:when=2 \
              sh -c 'echo up >>\"$U\"; exec sleep 290' &",
        )
    } else {
        None
    }
}

fn script(start: &str, up: usize, end: End) -> String {
    let then = match end {
        End::Normal => "echo 'SET_STATE {\"state\":\"next\"}'; exit 0",
        End::Fence | End::Killed => "echo up >\"$T/up\"; sleep 280",
    };
    leaving::script("$T/leaves", start, up, then)
}

#[derive(Debug)]
struct Left {
    /// Its process id and its arguments.
    #[allow(dead_code, reason = "shown")]
    who: String,
    /// It was sent SIGKILL: it runs no more, and waits for a processor to end on.
    doomed: bool,
}

/// True where SIGKILL is pending.
fn is_doomed(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pending = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    let has = |mask: Option<&str>| {
        mask.and_then(|m| u64::from_str_radix(m, 16).ok()).is_some_and(|m| m & 1 << 8 != 0)
    };
    has(pending("SigPnd:")) || has(pending("ShdPnd:"))
}

/// Processes that belong to a run in this home: by environment, or by where they stand.
fn survivors(home: &Path) -> Vec<Left> {
    let needle = home.as_os_str().as_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|b| b.is_ascii_digit()) || !lives(&name) {
            continue;
        }
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let run = environment.split(|b| *b == 0).any(|var| {
            var.starts_with(b"AYNIG_RUN_DIR=") && var.windows(needle.len().max(1)).any(|w| w == needle)
        });
        let there = fs::read_link(entry.path().join("cwd")).is_ok_and(|d| d.starts_with(home.join(".cache")));
        if run || there {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let who = format!("{name} {}", String::from_utf8_lossy(&line).replace('\0', " "));
            found.push(Left { who, doomed: is_doomed(&name) });
        }
    }
    found
}

/// One run that tries to leave something behind.
fn escape(sweep: &Sweep, (name, start, up): Way, end: End) {
    let start = match (start, traced()) {
        ("TRACED", Some(traced)) => traced,
        ("TRACED", None) => {
            skipped("a child that its tracer stops: strace is not installed; SIGSTOP stops it instead");
            sweep.count("runs with SIGSTOP in place of a tracer", 1);
            "sleep 290 & kill -STOP $!; echo up >>\"$U\""
        }
        _ => start,
    };
    let life = Life::new(&[("build", &script(start, up, end))]);
    life.config("aynig.killGrace", "1s");
    life.event("work", "build", "");
    let home = life.repo.home().parent().unwrap().to_owned();
    let what = format!("{name}, {end:?}");
    let mut tick = life.start_tick(&["work"]);
    if end != End::Normal {
        life.hear("up");
    }
    match end {
        End::Normal => {}
        End::Fence => drop(life.event("work", "elsewhere", "")),
        End::Killed => tick.signal(Signal::SIGKILL),
    }
    // The run is over when its runner says so.
    eventually(&what, || tick.is_over().then_some(()));
    let since = Instant::now();
    // Nothing of a run may be left after a second; beside all other tests, on whatever machine, it may take its time.
    let soon = sweep.size(LATE.as_secs() as usize, 1);
    let soon = Duration::from_secs(soon as u64);
    let mut left = survivors(&home);
    while left.iter().any(|l| !l.doomed) && since.elapsed() < soon
        || !left.is_empty() && since.elapsed() < LATE
    {
        std::thread::sleep(Duration::from_millis(5));
        let doomed = left.iter().filter(|l| l.doomed).count() as u64;
        if since.elapsed() > soon && left.iter().all(|l| l.doomed) {
            sweep.most("killed within 1 s, and not yet scheduled to die", doomed);
        } else if since.elapsed() > soon {
            break;
        }
        left = survivors(&home);
    }
    let took = since.elapsed().as_millis() as u64;
    sweep.most("ms until the last was gone", took);
    sweep.count("runs", 1);
    if !left.is_empty() {
        sweep.bad(format!(
            "{what}: {} survivors after {soon:?}: {:?}",
            left.len(),
            &left[..left.len().min(3)]
        ));
    }
    let said = tick.done();
    let expected = match end {
        End::Normal => (Some(0), "next"),
        End::Fence => (Some(3), "elsewhere"),
        End::Killed => (None, "working"),
    };
    if (said.code, &*life.state("work")) != expected {
        sweep.bad(format!("{what}: {said:?}, the branch says {}", life.state("work")));
    }
}

/// K17
#[test]
fn escapes() {
    let sweep = Sweep::begin(
        "processes-escapes",
        "8 ways to leave a process group x {normal end, fence, runner killed}",
        "20 each: 0 survivors after 1 s",
    );
    sweep.at_least("rounds", 1, 20);
    // The sample has both quick ends of each, and one fence.
    sweep.at_least("runs", 17, 480);
    for _ in 0..sweep.size(1, 20) {
        for shape in WAYS.into_iter().chain(ESCAPES) {
            for end in [End::Normal, End::Fence, End::Killed] {
                // The sample leaves out what takes long.
                if sweep.size(0, 1) == 1 || end != End::Fence || shape.0 == "deaf daemon" {
                    escape(&sweep, shape, end);
                }
            }
        }
        sweep.count("rounds", 1);
    }
    sweep.end();
}

/// The most memory that a process ever held, in KiB.
fn peak(pid: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn parent(pid: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|l| l.strip_prefix("PPid:"))?.trim().to_owned())
}

/// One command that prints `what`; memory of runner and guardian is looked at before it may end.
fn prints(sweep: &Sweep, what: &str, script: &str, gib: f64) {
    let all = format!(
        "echo $$ >\"$T/pid\"\n{script}\necho\necho 'SET_STATE {{\"state\":\"next\"}}'\necho up >\"$T/up\"; read x <\"$T/gate\""
    );
    let life = Life::new(&[("build", &all)]);
    let trigger = life.event("work", "build", "");
    let mut gate = life.gate("gate");
    let mut tick = life.start_tick(&["--json", "work"]);
    let guardian = parent(&life.hear("pid")).unwrap();
    let limit = Instant::now() + Duration::from_secs(600);
    while life.said("up").is_empty() && !tick.is_over() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    let memory = [peak(&tick.pid().to_string()), peak(&guardian)].map(|kib| kib.unwrap_or(u64::MAX));
    gate.open();
    let said = tick.done();
    if said.code != Some(0) || life.state("work") != "next" {
        sweep.bad(format!("{what}: {said:?}, the branch says {}", life.state("work")));
    }
    memory.iter().for_each(|kib| sweep.most("KiB resident at most", *kib));
    if memory.iter().any(|kib| *kib > 64 << 10) {
        sweep.bad(format!("{what}: {memory:?} KiB resident (runner, guardian)"));
    }
    let log = fs::metadata(life.path(&format!(".aynig/logs/{trigger}.stdout.log"))).unwrap().len();
    sweep.most("bytes of a log at most", log);
    if log > (64 << 20) + 4096 {
        sweep.bad(format!("{what}: a log of {log} bytes"));
    }
    sweep.count("MiB printed", (gib * 1024.0) as u64);
}

/// K16, K19
#[test]
fn output() {
    let sweep = Sweep::begin(
        "processes-output",
        "10 GB of lines, a line of 10 GB, binary, held open for ever",
        "<= 64 MiB resident, the right answer, logs <= 64 MiB",
    );
    sweep.at_least("MiB printed", 160, 21_504);
    // The longest log is a full one: it was really printed.
    sweep.at_least("bytes of a log at most", 64 << 20, 64 << 20);
    let (lines, one, binary) = (sweep.size(64, 10 << 10), sweep.size(64, 10 << 10), sweep.size(16, 512));
    let mib = |n: usize| n as f64 / 1024.0;
    let line = "'2026-03-01 a line as programs print them, 64 bytes and no more..'";
    prints(&sweep, "lines", &format!("yes {line} | head -c {lines}M"), mib(lines));
    prints(
        &sweep,
        "one line",
        &format!("printf 'SET_STATE '; head -c {one}M /dev/zero | tr '\\0' x"),
        mib(one),
    );
    prints(&sweep, "binary", &format!("head -c {binary}M /dev/urandom"), mib(binary));
    prints(&sweep, "zeros", &format!("head -c {binary}M /dev/zero"), mib(binary));
    prints(&sweep, "never closed", "setsid sh -c 'exec sleep 250' & yes held | head -c 1M", 0.001);
    sweep.end();
}

/// One runner that is stopped past its lease; what it did is kept, and its branch is another runner's.
fn stopped(sweep: &Sweep, life: &Life, n: usize) {
    let branch = format!("b{n}");
    life.event(&branch, "build", "");
    let tick = life.start_tick(&["--lease", "4s", "--grace", "0s", "--json", &branch]);
    let pid = life.hear(&format!("pid-{branch}"));
    let guardian = parent(&pid);
    tick.signal(Signal::SIGSTOP);
    let recovered = eventually("recovered", || {
        let said = life.tick(&["--grace", "0s", "--json", &branch]);
        (said.code != Some(3)).then_some(said)
    });
    let head = life.rev(&branch);
    let mut states = life.states(&branch);
    // It may have been renewed before it was stopped.
    states.dedup();
    if recovered.code != Some(1) || states != ["stalled", "working", "build"] {
        sweep.bad(format!("{branch}: {recovered:?}, {:?}", life.states(&branch)));
    }
    tick.signal(Signal::SIGCONT);
    let since = Instant::now();
    let said = tick.done();
    let report = said.json();
    if (said.code, report["result"].as_str()) != (Some(3), Some("fenced")) {
        sweep.bad(format!("{branch}: woke up to {said:?}"));
    }
    sweep.most("ms from waking to the end", since.elapsed().as_millis() as u64);
    eventually("the command is gone", || (!lives(&pid)).then_some(()));
    eventually("the guardian is gone", || (!guardian.as_deref().is_some_and(lives)).then_some(()));
    if life.rev(&branch) != head {
        sweep.bad(format!("{branch}: moved after it was recovered: {:?}", life.states(&branch)));
    }
    let run = report["run_id"].as_str().unwrap_or_default();
    let kept: BTreeSet<String> = life.attempts().into_iter().collect();
    if !kept.contains(&format!("refs/aynig/attempts/{run}")) {
        sweep.bad(format!("{branch}: the work of run {run} is nowhere"));
    }
    sweep.count("runners stopped and woken", 1);
}

/// K8, K18, K24, K26
#[test]
fn stopped_past_the_lease() {
    let sweep = Sweep::begin(
        "processes-stopped",
        "a runner is stopped past its lease, another recovers the branch, the first wakes up",
        "50 times: fenced, nothing on the branch, the command dead, its work kept",
    );
    let life = Life::new(&[(
        "build",
        "echo work >>file; echo $$ >\"$T/pid-$AYNIG_BRANCH\"; sleep 200; echo 'SET_STATE {\"state\":\"next\"}'",
    )]);
    life.config("aynig.jobs", "4");
    life.config("aynig.killGrace", "1s");
    sweep.at_least("runners stopped and woken", 2, 50);
    for n in 0..sweep.size(2, 50) {
        stopped(&sweep, &life, n);
    }
    life.repo.assert_sound();
    sweep.end();
}
