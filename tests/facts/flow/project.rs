//! What a flow looks like: its events, its state, its files, however often and by whomever they are made.

use super::stage::{Stage, call, handoff};
use aynig::contract::event::Body;
use aynig::contract::words::{ArtifactKind, Mode, NodeStatus};
use nix::fcntl::{Flock, FlockArg};
use serde_json::json;
use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

fn played() -> Stage {
    let stage = Stage::new(Mode::Interactive, &[("lead", "orchestrator"), ("one", "implementer")]);
    stage.turn(
        "lead",
        1,
        "echo plan >plan.md",
        &[handoff("one", "do the plan")],
        &["dwp-session: s-1".into()],
    );
    stage.turn("one", 1, "echo work >work.txt", &[handoff("lead", "done")], &[]);
    stage.turn(
        "lead",
        2,
        "",
        &[call("spawn_node", json!({"label": "new", "roleTemplate": "reviewer"}))],
        &[],
    );
    stage.say("lead", "go").expect(0);
    stage
}

/// N13: every event once, with an id and a time that does not go back; the state is what they make.
#[test]
fn a_flow_is_told_by_its_events() {
    let stage = played();
    let events = stage.events();
    let ids: HashSet<_> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), events.len());
    assert!(events.windows(2).all(|pair| pair[0].ts <= pair[1].ts));
    let count = |word: &str| events.iter().filter(|event| event.body.word() == word).count();
    assert_eq!((count("handoff.sent"), count("message.user"), count("edge.created")), (2, 1, 1));
    assert_eq!(count("turn.status"), 6, "three turns began and ended");
    assert_eq!(count("tool.completed"), 3);
    let run = stage.run();
    let shown = stage.life.run(&["flow", "show", "play", "--json"]).expect(0).json();
    assert_eq!(shown["run"], serde_json::to_value(&run).unwrap());
    assert_eq!(run.nodes.len(), 3);
    assert!(run.nodes.values().all(|node| node.status == NodeStatus::Idle && node.inbox_count == Some(0)));
    let lead = &run.nodes[&stage.id("lead")];
    assert_eq!((lead.session.session_id.as_str(), lead.usage.unwrap().total_tokens), ("s-1", 220));
    assert_eq!(run.usage.unwrap().total_tokens, 330);
    let mut made = events[0].clone();
    let Body::RunPatch { patch } = &mut made.body else { panic!("{made:?}") };
    let mut made = patch.made().unwrap();
    events.iter().for_each(|event| made.apply(event));
    assert_eq!(made, run);
}

/// N13: a turn that said nothing of its end, as it was killed or taken away, is told as over before what its node does next.
#[test]
fn a_turn_that_was_cut_off_is_told_as_over() {
    let stage = Stage::new(Mode::Interactive, &[("lead", "orchestrator")]);
    let statuses = || -> Vec<(String, bool)> {
        let told = stage.events().into_iter().filter_map(|event| match event.body {
            Body::TurnStatus { status, detail, .. } => Some((status.to_string(), detail.is_some())),
            _ => None,
        });
        told.collect()
    };
    let (life, branch) = (&stage.life, stage.branch("lead"));
    stage.turn("lead", 1, "kill -9 $$", &[], &[]);
    stage.say("lead", "go");
    assert_eq!(life.state(&branch), "stalled");
    let started = ("turn.started".to_owned(), false);
    let failed = ("turn.failed".to_owned(), true);
    assert_eq!(statuses(), [started.clone(), failed.clone()]);
    let events = stage.events();
    let last = |word: &str| events.iter().rposition(|event| event.body.word() == word);
    assert!(last("turn.status") < last("node.patch") && last("turn.status") < last("node.progress"));
    life.event(&branch, "turn", "");
    life.lease(&branch, "turn", "0192f0c1-2345-7abc-8def-0123456789ab", 3600, 0);
    life.run(&["cancel", &branch]).expect(0);
    let taken = ("turn.interrupted".to_owned(), true);
    assert_eq!(statuses(), [started.clone(), failed, started, taken]);
}

/// N13: both files may go: the same events come again; what is there is not written twice.
#[test]
fn deleting_both_files_loses_nothing() {
    let stage = played();
    let events = stage.events();
    let ids = |events: &[aynig::contract::event::Event]| events.iter().map(|e| e.id).collect::<HashSet<_>>();
    let log = stage.folder().join("events.jsonl");
    let before = fs::read(&log).unwrap();
    assert_eq!(stage.events(), events);
    fs::remove_file(stage.folder().join("state.json")).unwrap();
    assert_eq!(stage.events(), events);
    assert_eq!(fs::read(&log).unwrap(), before, "nothing is there twice");
    // A process that was killed left half a line.
    fs::write(&log, [&before[..], b"{\"id\":\"torn"].concat()).unwrap();
    assert_eq!(stage.events(), events);
    assert_eq!(fs::read(&log).unwrap(), before);
    // One that was killed before it wrote the state down.
    let cut = before[..before.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    fs::write(&log, &before[..cut]).unwrap();
    assert_eq!(ids(&stage.events()), ids(&events));
    fs::remove_dir_all(stage.folder()).unwrap();
    assert_eq!(ids(&stage.events()), ids(&events));
}

/// N13: a part and the rest make the whole.
#[test]
fn looking_in_between_changes_no_event() {
    let whole: Vec<&str> = played().events().iter().map(|event| event.body.word()).collect();
    let stage = Stage::new(Mode::Interactive, &[("lead", "orchestrator"), ("one", "implementer")]);
    let look = "git aynig flow events play --json >/dev/null";
    stage.turn(
        "lead",
        1,
        &format!("{look}; echo plan >plan.md"),
        &[handoff("one", "do the plan")],
        &["dwp-session: s-1".into()],
    );
    stage.turn("one", 1, &format!("{look}; echo work >work.txt"), &[handoff("lead", "done")], &[]);
    stage.turn(
        "lead",
        2,
        look,
        &[call("spawn_node", json!({"label": "new", "roleTemplate": "reviewer"}))],
        &[],
    );
    stage.events();
    stage.say("lead", "go").expect(0);
    let parts: Vec<&str> = stage.events().iter().map(|event| event.body.word()).collect();
    let sorted = |mut words: Vec<&'static str>| {
        words.retain(|word| *word != "node.patch");
        words.sort_unstable();
        words
    };
    let leak = |words: Vec<&str>| {
        words.into_iter().map(|word| &*word.to_owned().leak()).collect::<Vec<&'static str>>()
    };
    assert_eq!(sorted(leak(parts)), sorted(leak(whole)));
    let events = stage.events();
    let ids: HashSet<_> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), events.len());
}

/// N13: a turn's diff is Git's, and is made anew where it is missing.
#[test]
fn what_a_turn_changed_is_a_file() {
    let stage = played();
    let run = stage.run();
    let diffs: Vec<_> = run.artifacts.values().filter(|a| a.kind == ArtifactKind::Diff).collect();
    assert_eq!(diffs.len(), 2, "{:?}", run.artifacts);
    let plan = diffs.iter().find(|diff| diff.node_id == stage.id("lead")).unwrap();
    let files = plan.metadata.as_ref().unwrap().files_changed.clone().unwrap();
    assert_eq!(files, ["plan.md"]);
    let text = fs::read_to_string(&plan.path).unwrap();
    assert!(text.starts_with("diff --git a/plan.md b/plan.md\n") && text.contains("\n+plan\n"), "{text}");
    fs::remove_file(&plan.path).unwrap();
    let listed = stage.life.run(&["flow", "artifacts", "play"]).expect(0).stdout;
    assert!(listed.contains(&plan.path), "{listed}");
    assert_eq!(fs::read_to_string(&plan.path).unwrap(), text);
}

/// N13: what the flow once said and can't be read, by another version or by a mistake, stops nothing once it was taken
/// back; nor does a tree that is small to push and large to walk.
#[test]
fn a_past_commit_that_cannot_be_read_is_left_out() {
    let stage = played();
    let count = stage.events().len();
    fs::remove_dir_all(stage.folder()).unwrap();
    let (life, name) = (&stage.life, format!("refs/aynig/flows/{}", stage.flow.run.id));
    let good = life.rev(&format!("{name}^{{tree}}"));
    let put = |tree: &str, say: &str| {
        let head = life.rev(&name);
        let commit = life.git(&["commit-tree", "-p", &head, "-m", say, tree]);
        life.git(&["update-ref", &name, commit.trim()]);
    };
    let mktree = |lines: &str| {
        let file = life.shared().join("tree");
        fs::write(&file, lines).unwrap();
        let mut git = life.repo.command("git");
        let output = git.arg("mktree").stdin(fs::File::open(&file).unwrap()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    // Another version of the contract.
    let run =
        life.show(&name, "run.json").replace("\"contractVersion\": \"1\"", "\"contractVersion\": \"2\"");
    assert!(run.contains("\"2\""), "{run}");
    let file = life.shared().join("run.json");
    fs::write(&file, run).unwrap();
    let blob = life.git(&["hash-object", "-w", file.to_str().unwrap()]);
    let rest = life.git(&["ls-tree", &good]);
    let rest = rest.lines().filter(|line| !line.ends_with("\trun.json")).map(|line| format!("{line}\n"));
    let other = mktree(&format!("{}100644 blob {}\trun.json\n", rest.collect::<String>(), blob.trim()));
    put(&other, "the next version");
    life.run(&["flow", "events", "play", "--json"]).expect(2);
    put(&good, "revert");
    // A tree that holds itself ten times, ten times over.
    let mut deep = mktree(&format!("100644 blob {}\tx\n", blob.trim()));
    for _ in 0..10 {
        deep = mktree(&(0..10).map(|n| format!("040000 tree {deep}\t{n}\n")).collect::<String>());
    }
    put(&deep, "large");
    put(&good, "revert again");
    let said = life.run(&["flow", "events", "play", "--json"]).expect(0);
    assert_eq!(said.stdout.lines().count(), count);
    assert_eq!(said.stderr.matches("of the flow").count(), 2, "{}", said.stderr);
    assert!(!life.run(&["flow", "events", "play", "--json"]).expect(0).stderr.contains("cannot read"));
}

/// N13: a process that holds a flow and does not get on keeps no other from ending: it is named, with what has it go on.
#[test]
fn a_stopped_process_keeps_none_that_looks_waiting() {
    let stage = played();
    let count = stage.events().len();
    let path = stage.folder().join("lock");
    let said = fs::read_to_string(&path).unwrap();
    assert!(said.trim_end().parse::<u32>().is_ok(), "who has it says so: {said:?}");
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
    fs::write(&path, "4711\n").unwrap();
    let began = Instant::now();
    let refused = stage.life.start(&["flow", "events", "play", "--json"]).done().expect(75);
    assert!(began.elapsed() >= Duration::from_secs(10), "{:?}", began.elapsed());
    let wanted = format!("error: process 4711 holds '{}', and has told nothing new", path.display());
    assert!(refused.stderr.contains(&wanted), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: ps -o stat,args -p 4711; kill -CONT 4711"), "{}", refused.stderr);
    drop(lock);
    assert_eq!(stage.events().len(), count);
}
