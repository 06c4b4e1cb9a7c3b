//! A command that gets rid of who watches it: what K17 says of S19 and S22.

use super::*;
use support::life::{eventually, lives};

/// K17, S22: a command that kills its guardian is not free: it and all that it left in the background end, and the
/// next run in its slot is alone
#[test]
fn s22_a_command_that_kills_its_guardian_leaves_nobody_behind() {
    let mut world = World::any();
    let pids = world.root().join("pids");
    world.set("PIDS", &pids);
    // In sessions of their own, without parents, deaf to what may be ignored, three with an empty environment.
    let leaf = "trap '' TERM HUP INT\necho $$ >>\"$1\"\nwhile :; do echo tampered >\"$2/file.txt\"; sleep 0.05; done\n";
    let script = r#"L="$AYNIG_DIR/lib/leaf"
for i in 1 2 3; do (setsid env -i PATH="$PATH" sh "$L" "$PIDS" "$PWD" >/dev/null 2>&1 &); done
(setsid sh -c '(sh "$0" "$1" "$2" & exit 0) & exit 0' "$L" "$PIDS" "$PWD" >/dev/null 2>&1 &)
until [ -e "$PIDS" ] && [ "$(wc -l <"$PIDS")" -ge 4 ]; do sleep 0.01; done
kill -9 $PPID
sleep 300"#;
    let dir = repo(&world, &[("kill", script)]);
    world.commit_files(&dir, "main", &[(".aynig/lib/leaf", leaf)], "leaf");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["set-state", "kill", "-b", "bad"]).expect(0);
    let said = world.aynig(&dir, &["tick", "bad"]);
    let all = std::fs::read_to_string(&pids).unwrap();
    assert!(all.lines().count() >= 4, "{all}{}{}", said.out, said.err);
    let left: Vec<&str> = all.lines().filter(|pid| lives(pid)).collect();
    assert!(left.is_empty(), "{left:?} of {all}: {}{}", said.out, said.err);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(said.out.contains("its supervisor was killed"), "{}", said.out);
    let said = tick(&world, &dir, "build", "good").expect(0);
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
    assert_eq!(world.git(&dir, &["show", "good:file.txt"]), "one\nedited");
}

/// K17, K18, S28: a command that stops its guardian is ended, and what ended it is said
#[test]
fn s28_a_command_that_stops_its_guardian_is_ended_by_its_runner() {
    let mut world = World::any();
    let pids = world.root().join("pids");
    world.set("PIDS", &pids);
    let script = "kill -STOP $PPID\n(setsid sh -c 'echo $$ >>\"$PIDS\"; exec sleep 300' >/dev/null 2>&1 &)\n\
                  echo w >>file.txt; echo $$ >>\"$PIDS\"; sleep 300";
    let dir = repo(&world, &[("stop", script)]);
    let said = tick(&world, &dir, "stop", "bad").expect(1);
    assert!(said.out.contains("its supervisor was stopped"), "{}{}", said.out, said.err);
    let all = std::fs::read_to_string(&pids).unwrap();
    assert!(all.lines().count() == 2 && !all.lines().any(lives), "{all}");
    let body = world.git(&dir, &["log", "-1", "--format=%B", "bad"]);
    assert!(
        body.contains("The command ended after") && body.contains("its supervisor was stopped"),
        "{body}"
    );
    let attempt = body.split_whitespace().find(|word| word.starts_with("refs/aynig/attempts/")).unwrap();
    assert_eq!(world.git(&dir, &["show", &format!("{}:file.txt", attempt.trim_end_matches('.'))]), "one\nw");
    let said = tick(&world, &dir, "build", "good").expect(0);
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
}

/// K17, S28, promise 2: nor do two commands of one branch live where it stops its guardian and its runner is killed
#[test]
fn s28_a_stopped_guardian_of_a_dead_runner_is_ended_before_the_branch_is_recovered() {
    let mut world = World::any();
    let pids = world.root().join("pids");
    world.set("PIDS", &pids);
    // As often as it is woken, it is stopped again.
    let script = "G=$PPID; (while kill -STOP $G; do :; done) & echo $$ $! >>\"$PIDS\"; sleep 300";
    let dir = repo(&world, &[("stop", script)]);
    world.aynig(&dir, &["set-state", "stop", "-b", "bad"]).expect(0);
    let bin = world.root().join("bin/git-aynig");
    let mut runner = world.command(bin, &dir);
    let mut runner = runner.args(["tick", "--lease", "4s", "bad"]).spawn().unwrap();
    let all =
        eventually("the command runs", || std::fs::read_to_string(&pids).ok().filter(|p| p.ends_with('\n')));
    runner.kill().unwrap();
    runner.wait().unwrap();
    let recovered = |said: &Said| said.code == 1 && said.out.contains("stalled");
    let said = eventually("its lease ends", || Some(world.aynig(&dir, &["tick", "bad"])).filter(recovered));
    let left: Vec<&str> = all.split_whitespace().filter(|pid| lives(pid)).collect();
    assert!(left.is_empty(), "{left:?} of {all}: {}{}", said.out, said.err);
    let said = world.aynig(&dir, &["status", "bad"]);
    assert!(said.out.contains("stalled"), "{}{}", said.out, said.err);
}

/// True where there is what a command traces with.
fn can_trace(world: &World) -> bool {
    let found = world.command("python3", &world.root()).arg("-V").output();
    let found = found.is_ok_and(|said| said.status.success());
    if !found {
        support::skipped("no python3, which traces");
    }
    found
}

/// A repository whose branch `bad` asks for a command that has its guardian traced, by this request with these options,
/// and then does this. The tracer's process id comes first in `$PIDS`.
fn traced(world: &World, name: &str, (request, options): (u32, u32), then: &str) -> std::path::PathBuf {
    let tracer = format!(
        "import ctypes,os,sys,time\nl=ctypes.CDLL(None)\nassert l.ptrace({request},int(sys.argv[1]),0,{options})==0\n\
         open(os.environ['PIDS'],'a').write('%d\\n'%os.getpid())\ntime.sleep(300)"
    );
    let script = format!(
        "#!/bin/sh\npython3 -c \"{tracer}\" $PPID & until [ -s \"$PIDS\" ]; do sleep 0.02; done\n{then}\n"
    );
    let dir = world.init(name);
    Place::new(world, &dir).seed();
    world.commit_files(&dir, "main", &[(".aynig/command/trace", &script)], "trace");
    world.aynig(&dir, &["trust"]).expect(0);
    world.aynig(&dir, &["set-state", "trace", "-b", "bad"]).expect(0);
    dir
}

/// K17, S28: one that traces its guardian keeps it from ending, and from being waited for: it ends all the same.
#[test]
fn s28_a_command_that_traces_its_guardian_is_ended() {
    let mut world = World::any();
    if !can_trace(&world) {
        return;
    }
    let pids = world.root().join("pids");
    world.set("PIDS", &pids);
    // PTRACE_ATTACH; PTRACE_SEIZE, which stops at a signal, alone and with PTRACE_O_TRACEEXIT.
    for (n, (request, options)) in [(16, 0), (0x4206, 0), (0x4206, 0x40)].into_iter().enumerate() {
        let _ = std::fs::remove_file(&pids);
        let then = "echo w >>file.txt; echo $$ >>\"$PIDS\"; sleep 300";
        let dir = traced(&world, &format!("traced-{n}"), (request, options), then);
        world.git(&dir, &["config", "aynig.timeout", "2s"]);
        world.git(&dir, &["config", "aynig.killGrace", "1s"]);
        let began = std::time::Instant::now();
        let said = world.aynig(&dir, &["tick", "bad"]);
        let all = std::fs::read_to_string(&pids).unwrap_or_default();
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", began.elapsed());
        assert!(all.lines().count() == 2 && !all.lines().any(lives), "{all}{}{}", said.out, said.err);
        assert_eq!(said.code, 1, "{}{}", said.out, said.err);
        let body = world.git(&dir, &["log", "-1", "--format=%B", "bad"]);
        assert!(body.contains("refs/aynig/attempts/"), "{body}");
    }
}

/// K17, S28, promise 2: one that stops its guardian and its runner is ended by who recovers the branch, and the slot is
/// free again.
#[test]
fn s28_a_command_that_stops_guardian_and_runner_is_ended_before_the_branch_is_recovered() {
    let mut world = World::any();
    let pids = world.root().join("pids");
    world.set("PIDS", &pids);
    let script = "G=$PPID; R=$(awk '/^PPid/{print $2}' /proc/$G/status)\n\
                  (while kill -STOP $R $G; do sleep 0.01; done) & echo $$ $! >>\"$PIDS\"; sleep 300";
    let dir = repo(&world, &[("stop", script)]);
    world.aynig(&dir, &["set-state", "stop", "-b", "bad"]).expect(0);
    let bin = world.root().join("bin/git-aynig");
    let mut runner = world.command(bin, &dir);
    let mut runner = runner.args(["tick", "--lease", "4s", "bad"]).spawn().unwrap();
    let all =
        eventually("the command runs", || std::fs::read_to_string(&pids).ok().filter(|p| p.ends_with('\n')));
    let recovered = |said: &Said| said.code == 1 && said.out.contains("stalled");
    let said = eventually("its lease ends", || Some(world.aynig(&dir, &["tick", "bad"])).filter(recovered));
    let left: Vec<&str> = all.split_whitespace().filter(|pid| lives(pid)).collect();
    assert!(left.is_empty(), "{left:?} of {all}: {}{}", said.out, said.err);
    // Its runner goes on, and finds that the run is another's.
    eventually("the runner ends", || runner.try_wait().unwrap());
    world.git(&dir, &["config", "aynig.jobs", "1"]);
    let said = tick(&world, &dir, "build", "good").expect(0);
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
}

/// K17, S28, promise 2: nor does one live on that traces its guardian and stops or kills its runner.
#[test]
fn s28_a_command_that_traces_its_guardian_is_ended_before_the_branch_is_recovered() {
    let mut world = World::any();
    if !can_trace(&world) {
        return;
    }
    let pids = world.root().join("pids");
    world.set("PIDS", &pids);
    for signal in ["STOP", "KILL"] {
        let _ = std::fs::remove_file(&pids);
        let then = format!(
            "R=$(awk '/^PPid/{{print $2}}' /proc/$PPID/status)\nkill -{signal} $R; echo $$ >>\"$PIDS\"; sleep 300"
        );
        let dir = traced(&world, &format!("traced-{signal}"), (16, 0), &then);
        let bin = world.root().join("bin/git-aynig");
        let mut runner = world.command(bin, &dir);
        let mut runner = runner.args(["tick", "--lease", "4s", "bad"]).spawn().unwrap();
        let both = || std::fs::read_to_string(&pids).ok().filter(|pids| pids.lines().count() == 2);
        let all = eventually("the command runs", both);
        let recovered = |said: &Said| said.code == 1 && said.out.contains("stalled");
        let said =
            eventually("its lease ends", || Some(world.aynig(&dir, &["tick", "bad"])).filter(recovered));
        let left: Vec<&str> = all.lines().filter(|pid| lives(pid)).collect();
        assert!(
            left.is_empty() && all.lines().count() == 2,
            "{signal}: {left:?} of {all}: {}{}",
            said.out,
            said.err
        );
        eventually("the runner ends", || runner.try_wait().unwrap());
    }
}

/// K40, S19: a command can't have a chain started in a folder that no user trusts
#[test]
fn s19_a_noted_repository_that_nobody_trusts_is_left_alone() {
    let mut world = World::any();
    let wild = world.init("wild");
    Place::new(&world, &wild).seed();
    let outside = world.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    world.git(&wild, &["config", "core.worktree", outside.to_str().unwrap()]);
    world.set("WILD", wild.join(".git"));
    let dir = repo(
        &world,
        &[("wake", &format!("printf '%s\\0refs/heads/main\\0' \"$WILD\" >>\"$AYNIG_RUN_DIR/wake\"\n{DONE}"))],
    );
    tick(&world, &dir, "wake", "work").expect(0);
    let there = std::fs::read_dir(&outside).unwrap().count();
    assert_eq!(there, 0, "something was written outside");
    eventually("nothing starts", || (!wild.join(".git/aynig/slots").exists()).then_some(()));
}
