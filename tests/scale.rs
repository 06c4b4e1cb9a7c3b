//! Many branches and many machines: what each of them costs, counted and not timed.
//!
//! `AYNIG_MANY=full` takes more of both.

mod support;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use support::life::{BIN, Life, done, eventually};
use support::net::{Machine, Net};
use support::{Repo, skipped};

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

fn full() -> bool {
    std::env::var("AYNIG_MANY").is_ok_and(|v| v == "full")
}

/// Branches with these messages on top of `main`, all in one step; returns their names.
fn branches(life: &Life, dir: &Path, folder: &str, messages: impl Iterator<Item = String>) -> Vec<String> {
    let (mut input, mut names) = (String::new(), Vec::new());
    for (n, message) in messages.enumerate() {
        names.push(format!("{folder}{n:05}"));
        let _ = write!(
            input,
            "commit refs/heads/{folder}{n:05}\ncommitter c <c@example.com> {} +0000\ndata {}\n{message}\n\
             from refs/heads/main^0\n\n",
            support::life::now(),
            message.len()
        );
    }
    let path = life.shared().join("import");
    std::fs::write(&path, input).unwrap();
    let mut import = life.repo.command("git");
    import.current_dir(dir).args(["fast-import", "--quiet"]).stdin(std::fs::File::open(&path).unwrap());
    assert!(import.status().unwrap().success());
    names
}

/// Has a machine's pushes counted in `$T/<name>`.
fn count_pushes(machine: &Machine<'_>, name: &str) {
    count_calls(machine, name, "receive-pack", "receivepack");
}

/// Has a program of the remote's counted in `$T/<name>` where this machine calls it.
fn count_calls(machine: &Machine<'_>, name: &str, program: &str, key: &str) {
    let script = machine.net.life.shared().join(format!("{name}-counts"));
    let count = machine.net.life.shared().join(name);
    let text = format!("#!/bin/sh\necho x >>'{}'\nexec git-{program} \"$@\"\n", count.display());
    crate::support::write_program(&script, &text);
    machine.git(&["config", &format!("remote.origin.{key}"), &format!("'{}'", script.display())]);
}

fn lines(net: &Net, name: &str) -> usize {
    net.life.said(name).lines().count()
}

fn all_done(net: &Net) -> bool {
    let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
    net.git(&["for-each-ref", format, "refs/heads/w*"]).lines().all(|state| state == "done")
}

/// K32: heads that others moved since the fetch cost one push that is lost, and none for each.
#[test]
fn what_others_answered_meanwhile_is_passed_over() {
    let waits = "echo x >>\"$T/runs\"; if mkdir \"$T/first\" 2>/dev/null; then echo up >\"$T/up\"; \
                 read x <\"$T/gate\"; fi; echo 'SET_STATE {\"state\":\"done\"}'";
    for verb in ["tick", "run"] {
        let net = Net::new(&[("build", waits)]);
        let names =
            branches(&net.life, &net.origin(), "w", (0..20).map(|n| format!("{n}\n\ndwp-state: build\n")));
        let (a, b) = (net.machine("a"), net.machine("b"));
        count_pushes(&a, "pushes");
        let mut gate = net.life.gate("gate");
        let first = support::life::Running::of(a.aynig(&[verb, "--remote", "origin", "--jobs", "1"]));
        net.life.hear("up");
        b.tick(&["--jobs", "1"]).expect(0);
        assert_eq!(lines(&net, "runs"), names.len());
        gate.open();
        first.done().expect(0);
        assert_eq!(lines(&net, "pushes"), 3, "{verb}: a lease, its outcome, and the race that was lost");
        assert_eq!(lines(&net, "runs"), names.len());
        assert!(all_done(&net));
    }
}

/// K30, K32: a machine reads the heads that are its share; what others answered before their turn came is looked at in
/// the next round, where there is one.
#[test]
fn heads_are_read_when_their_turn_comes() {
    let waits = "if mkdir \"$T/first\" 2>/dev/null; then echo up >\"$T/up\"; read x <\"$T/gate\"; fi; \
                 echo 'SET_STATE {\"state\":\"done\"}'";
    // The first 32, and `main`, which no machine moves.
    for (verb, least, most) in [("tick", 32, 33), ("run", 61, 61)] {
        let net = Net::new(&[("build", waits)]);
        branches(&net.life, &net.origin(), "w", (0..60).map(|n| format!("{n}\n\ndwp-state: build\n")));
        let (a, b) = (net.machine("a"), net.machine("b"));
        count_calls(&a, "asked", "upload-pack", "uploadpack");
        let mut gate = net.life.gate("gate");
        let first = support::life::Running::of(a.aynig(&[verb, "--remote", "origin", "--jobs", "1"]));
        net.life.hear("up");
        b.tick(&["--jobs", "1"]).expect(0);
        gate.open();
        first.done().expect(0);
        assert!(all_done(&net));
        let read = a.git(&["for-each-ref", "--format=x", "refs/aynig/remote/origin/"]).lines().count();
        assert!((least..=most).contains(&read), "{verb}: {read}");
        // What there is, the first heads, what moved since, and `main`; for `run` all of it once more.
        assert!(lines(&net, "asked") <= 6, "{verb}: {}", lines(&net, "asked"));
    }
}

/// K32: every round visits all branches, wherever the machine begins; a race that was lost is looked at again.
#[test]
fn machines_share_what_there_is_and_leave_nothing() {
    let (machines, count) = if full() { (64, 640) } else { (4, 24) };
    let net = Net::new(&[("build", &format!("echo \"$AYNIG_BRANCH\" >>\"$T/runs\"; {DONE}"))]);
    let all: Vec<_> = (0..machines).map(|n| net.machine(&format!("m{n}"))).collect();
    all.iter().for_each(|machine| count_pushes(machine, "pushes"));
    let mut before = 0;
    for (round, verb) in ["tick", "run"].into_iter().enumerate() {
        let folder = format!("w{round}");
        let events = (0..count).map(|n| format!("{n}\n\ndwp-state: build\n"));
        let mut names = branches(&net.life, &net.origin(), &folder, events);
        let start = |m: &Machine<'_>| {
            support::life::Running::of(m.aynig(&[verb, "--remote", "origin", "--jobs", "2", "-q"]))
        };
        let running: Vec<_> = all.iter().map(start).collect();
        running.into_iter().for_each(|r| drop(r.done().expect(0)));
        assert!(all_done(&net), "{verb}");
        let runs = net.life.said("runs");
        let mut ran: Vec<&str> = runs.lines().filter(|name| name.starts_with(&folder)).collect();
        ran.sort_unstable();
        names.sort_unstable();
        assert_eq!(ran, names, "each trigger has one run");
        let pushes = lines(&net, "pushes") - before;
        before += pushes;
        // In the same order each branch would cost every other machine a push.
        assert!(pushes < 2 * count + count * machines / 2, "{verb}: {pushes}");
    }
}

/// K6: a head that asks for nothing costs its commit, and nothing that is the same for all.
#[test]
fn a_scan_reads_what_branches_share_once() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skipped("strace is not installed");
    }
    let lease = "dwp-state: working\ndwp-origin-state: build\ndwp-run-id: r\ndwp-runner-id: elsewhere-1\n\
                 dwp-lease-seconds: 90000\n";
    let kinds = ["dwp-state: done\n", "dwp-state: review\n", lease, "dwp-state: ../x\n", "dwp-ticket: 7\n"];
    for from in ["branch", "refs/heads/main"] {
        let life = Life::new(&[("build", DONE)]);
        life.config("aynig.commandsFrom", from);
        let messages = (0..200).map(|n| format!("change {n}\n\nbody\n\n{}", kinds[n % kinds.len()]));
        branches(&life, &life.repo.path(), "b", messages);
        life.git(&["pack-refs", "--all"]);
        life.git(&["repack", "-adq"]);
        for args in [&["tick"][..], &["tick", "--json"], &["status"]] {
            let trace = life.shared().join("trace");
            let mut strace = life.repo.command("strace");
            strace.args(["-f", "-qq", "-e", "trace=open,openat", "-o"]).arg(&trace).arg(BIN).args(args);
            let done = done(strace.output().unwrap());
            assert_eq!(done.code, Some(0), "{done:?}");
            let opened = std::fs::read_to_string(&trace).unwrap();
            let packed = opened.lines().filter(|line| line.contains("/packed-refs\"")).count();
            assert!(packed < 10, "{from} {args:?}: packed-refs was opened {packed} times");
            assert!(opened.lines().count() < 200, "{from} {args:?}: {}", opened.lines().count());
        }
    }
}

/// K13: many states cost no more programs than one, where each tree that is read is a process.
#[test]
fn a_scan_of_many_states_reads_their_commands_tree_once() {
    if Repo::build().reftable().create().is_none() {
        return skipped("this git knows no reftable");
    }
    let life = Life::of(Repo::build().reftable(), &[("build", DONE)]);
    let names = life.shared().join("counted");
    for from in ["branch", "refs/heads/main"] {
        life.config("aynig.commandsFrom", from);
        let count = |many: usize, folder: &str| {
            let messages = (0..many).map(|n| format!("change\n\ndwp-state: {folder}/{n}\n"));
            branches(&life, &life.repo.path(), folder, messages);
            let mut tick = life.aynig(&["tick"]);
            done(tick.env("GIT_TRACE2_EVENT", &names).output().unwrap()).expect(0);
            let trace = std::fs::read_to_string(&names).unwrap();
            std::fs::remove_file(&names).unwrap();
            trace.lines().filter(|line| line.contains("\"event\":\"start\"")).count()
        };
        let few = count(2, &format!("few-{}", from.len()));
        let many = count(60, &format!("many-{}", from.len()));
        assert!(few > 0 && many <= few + 5, "{from}: {few} and {many}");
    }
}

/// A head that asks for nothing is reported as it would be by its name.
#[test]
fn a_scan_says_what_each_branch_says_alone() {
    for from in ["branch", "refs/heads/main", "refs/heads/nowhere"] {
        let life = Life::new(&[("build", DONE)]);
        life.config("aynig.commandsFrom", from);
        // A command that is not where it counts, and one that is no program.
        life.write(".aynig/command/near", "#!/bin/sh\n");
        life.write(".aynig/command/plain", "x\n");
        life.git(&["add", ".aynig/command/plain"]);
        life.git(&["commit", "-qm", "plain"]);
        let messages = [
            "dwp-state: done",
            "dwp-state: near",
            "dwp-state: plain",
            "dwp-state: ../x",
            "dwp-state: build\ndwp-hop: 64",
            "aynig-state: done",
            "dwp-state: working\ndwp-runner-id: elsewhere-1\ndwp-run-id: r\ndwp-lease-seconds: 90000",
            "dwp-state: working\ndwp-runner-id: elsewhere-1\ndwp-run-id: r\ndwp-lease-seconds: often",
        ];
        let names =
            branches(&life, &life.repo.path(), "b", messages.iter().map(|text| format!("x\n\n{text}\n")));
        let all = life.run(&["tick", "--json"]);
        assert_eq!(all.stdout.lines().count(), names.len(), "{all:?}");
        let mut said: Vec<serde_json::Value> =
            all.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        said.sort_by_key(|report| report["branch"].to_string());
        for (name, mut report) in names.iter().zip(said) {
            let mut alone = life.run(&["tick", "--json", name]).json();
            for report in [&mut report, &mut alone] {
                // Names decide about exit codes, and time passes.
                for field in ["exit_code", "until", "seconds_left"] {
                    report.as_object_mut().unwrap().remove(field);
                }
            }
            assert_eq!(report, alone, "{from}");
        }
    }
}

/// K14 (pending), K39: more branches in one push than fit into the arguments of a process.
#[test]
fn a_push_of_thousands_of_branches_is_answered_whole() {
    let count = if full() { 10_000 } else { 5_000 };
    // Ends its runner: what was not begun is left to the process that comes next.
    let halt = "echo x >>\"$T/runs\"; kill -TERM \"$(sed -n 's/^PPid:\\t//p' /proc/$PPID/status)\"; sleep 60";
    let life = Life::new(&[("halt", halt)]);
    let server = Repo::build().bare().create().unwrap();
    let url = format!("file://{}", server.path().display());
    life.git(&["push", "-q", &url, "main"]);
    server.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/main"]);
    server.git(&["config", "--global", "aynig.passEnv", "T"]);
    let installed = done(server.command(BIN).args(["hooks", "install"]).output().unwrap());
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let names =
        branches(&life, &life.repo.path(), "w", (0..count).map(|n| format!("{n}\n\ndwp-state: halt\n")));
    let mut push = life.repo.command("git");
    let path = format!("{}:{}", Path::new(BIN).parent().unwrap().display(), std::env::var("PATH").unwrap());
    push.env("PATH", path).env("T", life.shared());
    let receive = format!("--receive-pack=env HOME='{}' git-receive-pack", server.home().display());
    let output: Output =
        push.args(["push", "-q", &receive, &url, "refs/heads/w*:refs/heads/w*"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}", &said[..said.len().min(2000)]);
    let told: Vec<&str> =
        said.lines().filter(|line| line.contains(" on w") && line.contains(" (run ")).collect();
    assert_eq!(told.len(), names.len(), "{}", &said[..said.len().min(2000)]);
    let pending = server.git_dir().join("aynig/pending");
    // The one that is begun ends its runner; the others, noted before it began, wait.
    let noted = || std::fs::read_dir(&pending).map_or(0, Iterator::count);
    eventually("one is begun, and all others are noted", || {
        (life.said("runs").lines().count() == 1 && noted() == names.len() - 1).then_some(())
    });
}

/// The calls of these names that a process of ours makes; `None` without strace.
fn calls(life: &Life, names: &str, args: &[&str]) -> Option<Vec<String>> {
    if Command::new("strace").arg("-V").output().is_err() {
        skipped("strace is not installed");
        return None;
    }
    let trace = life.shared().join("trace");
    let mut strace = life.repo.command("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={names}"), "-o"]).arg(&trace).arg(BIN).args(args);
    let done = done(strace.output().unwrap());
    assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
    Some(std::fs::read_to_string(&trace).unwrap().lines().map(str::to_owned).collect())
}

/// K6, K17: what slots are noted for is read once for one look, however many leases are this runner's own.
#[test]
fn a_look_at_many_leases_of_ones_own_reads_the_slots_once() {
    let life = Life::new(&[("build", DONE)]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    let notes = std::fs::read_dir(life.repo.git_dir().join("aynig")).unwrap().flatten();
    let named = notes.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("/runner-"));
    let runner = std::fs::read_to_string(named.unwrap()).unwrap();
    let lease = |n: usize| {
        format!(
            "{n}\n\ndwp-state: working\ndwp-origin-state: build\ndwp-run-id: r{n}\ndwp-runner-id: {}\n\
             dwp-lease-seconds: 90000\n",
            runner.trim()
        )
    };
    branches(&life, &life.repo.path(), "b", (0..100).map(lease));
    std::fs::remove_dir_all(life.repo.git_dir().join("aynig/seen")).ok();
    for args in [&["tick"][..], &["status"]] {
        let Some(calls) = calls(&life, "open,openat", args) else { return };
        let of = |what: &str| calls.iter().filter(|call| call.contains(what)).count();
        assert!(of("aynig/slots") < 10, "{args:?}: the slots were opened {} times", of("aynig/slots"));
        assert_eq!(of("aynig/seen/"), 0, "{args:?}: nothing was noted");
    }
}

/// K40: the look at a chain's end holds no more than what it recovers, whatever the heads say.
#[test]
fn a_chain_ends_with_a_look_that_keeps_nothing() {
    let life = Life::new(&[("build", DONE)]);
    let long = "as long as messages are that tools write\n".repeat(1600);
    branches(&life, &life.repo.path(), "b", (0..400).map(|n| format!("{n}\n\n{long}")));
    life.event("work", "done", "");
    let Some(calls) = calls(&life, "brk", &["chain", "work"]) else { return };
    let ends = calls.iter().filter_map(|call| call.rsplit_once("= 0x"));
    let ends: Vec<u64> = ends.filter_map(|(_, end)| u64::from_str_radix(end.trim(), 16).ok()).collect();
    let grown = ends.iter().max().unwrap() - ends.iter().min().unwrap();
    // The messages are 26 MB.
    assert!(grown < 8 << 20, "the heap grew by {grown} bytes");
}

/// K41: a hook that reads what Git says starts one program for that, and leaves all of it to what follows.
#[test]
fn a_hook_of_a_push_starts_few_programs() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skipped("strace is not installed");
    }
    let server = Repo::build().bare().create().unwrap();
    let hook = server.git_dir().join("hooks/post-receive");
    for shell in ["sh", "bash"] {
        let theirs = format!("#!/bin/{shell}\nwhile read -r line; do echo \"$line\" >&3; done\n");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        crate::support::write_program(&hook, &theirs);
        done(server.command(BIN).args(["hooks", "install"]).output().unwrap()).expect(0);
        if !std::fs::read_to_string(&hook).unwrap().contains("aynig") {
            return skipped("this git runs hooks by configuration");
        }
        let id = "1".repeat(40);
        let said: String = (0..3000).map(|n| format!("{id} {id} refs/heads/$b`{n}\n")).collect();
        let [input, output, trace] = ["said", "heard", "trace"].map(|name| server.home().join(name));
        std::fs::write(&input, &said).unwrap();
        let mut strace = server.command("strace");
        strace.args(["-f", "-qq", "-e", "trace=execve", "-o"]).arg(&trace);
        strace.args(["sh", "-c", "exec \"$1\" <\"$2\" 3>\"$3\"", "-"]).args([&hook, &input, &output]);
        let done = done(strace.env("GIT_DIR", ".").output().unwrap());
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(std::fs::read_to_string(&output).unwrap(), said, "{shell}");
        let trace = std::fs::read_to_string(&trace).unwrap();
        let started = trace.lines().filter(|call| call.contains("execve(") && call.ends_with(" = 0"));
        // Ours that gives it its descriptors, its own shell, what reads, and git-aynig.
        assert_eq!(started.count(), 4, "{shell}: {trace}");
    }
}

/// K36: when a run began is looked for among its own leases, not in all that the branch ever was.
#[test]
fn a_status_reads_no_history_below_a_run() {
    let life = Life::new(&[("build", DONE)]);
    let mut input = String::new();
    for n in 0..60 {
        let from = if n == 0 { "from refs/heads/main^0\n" } else { "" };
        let commit = format!(
            "commit refs/heads/work\ncommitter c <c@example.com> 1700000000 +0000\ndata 2\nx\n{from}\n"
        );
        input += &commit;
    }
    let path = life.shared().join("import");
    std::fs::write(&path, input).unwrap();
    let mut import = life.repo.command("git");
    import.args(["fast-import", "--quiet"]).stdin(std::fs::File::open(&path).unwrap());
    assert!(import.status().unwrap().success());
    life.lease("work", "build", "r1", 90000, 20);
    life.lease("work", "build", "r1", 90000, 10);
    let Some(calls) = calls(&life, "open,openat", &["status", "work"]) else { return };
    let read = calls.iter().filter(|call| call.contains("/objects/") && call.contains("O_RDONLY")).count();
    assert!(read < 30, "{read} objects were opened for two leases");
    assert!(life.run(&["status", "work"]).stdout.contains("running "), "and what it asks is found");
}

/// Messages to `work`, all in one step.
fn messages(life: &Life, count: usize) {
    let mut input = String::new();
    for n in 0..count {
        let id = format!("0192f0c1-{n:04x}-7abc-8def-0123456789ab");
        let text = format!(
            "message\n\nhello\n\ndwp-message: {id}\ndwp-kind: message\ndwp-from: person ada@example.com\ndwp-branch: work\n"
        );
        let _ = write!(
            input,
            "commit refs/aynig/inbox/work/message/{id}\ncommitter c <c@example.com> 1700000000 +0000\ndata {}\n{text}\n",
            text.len()
        );
    }
    let path = life.shared().join("import");
    std::fs::write(&path, input).unwrap();
    let mut import = life.repo.command("git");
    import.args(["fast-import", "--quiet"]).stdin(std::fs::File::open(&path).unwrap());
    assert!(import.status().unwrap().success());
}

/// K47, K42: what waits behind a delivery costs the reading of its refs, and no more the more waits; the refs of one delivery
/// wait for the disk together, not one behind the other.
#[test]
fn a_delivery_out_of_many_messages_costs_little_for_those_that_wait_on() {
    let idle = "echo 'SET_STATE {\"state\":\"idle\",\"trailers\":[\"dwp-accepts: message=rework\"]}'";
    let mut read = Vec::new();
    for count in [100, 1100] {
        let life = Life::new(&[("rework", idle)]);
        life.event("work", "idle", "dwp-accepts: message=rework\n");
        messages(&life, count);
        let Some(calls) = calls(&life, "open,openat,fsync", &["tick", "work"]) else { return };
        let left = life.git(&["for-each-ref", "refs/aynig/inbox"]).lines().count();
        assert_eq!(left, count - 64);
        let syncs: Vec<&String> = calls.iter().filter(|call| call.contains("fsync(")).collect();
        assert!(syncs.len() < 64 + 40, "{} syncs", syncs.len());
        let threads: std::collections::HashSet<&str> =
            syncs.iter().filter_map(|call| call.split_whitespace().next()).collect();
        assert!(threads.len() > 4, "{} syncs by {} threads", syncs.len(), threads.len());
        read.push(calls.iter().filter(|call| call.contains("refs/aynig/inbox/work/message/")).count());
    }
    let each = (read[1] - read[0]) as f64 / 1000.0;
    assert!(each <= 3.0, "{read:?}: each message that waits on is read {each} times");
}
