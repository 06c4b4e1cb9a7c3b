//! What follows from a turn: handoffs, new nodes and edges, promises, and how a node goes on. Each once.

use super::stage::{Stage, call, handoff};
use aynig::contract::words::{Mode, RunStatus};
use serde_json::json;

const LEAD: (&str, &str) = ("lead", "orchestrator");
const ONE: (&str, &str) = ("one", "implementer");
const TWO: (&str, &str) = ("two", "implementer");

/// N5, N6: the receiver's tree has the sender's work, and its message says who sent it and what.
#[test]
fn a_handoff_brings_the_outcome_of_the_turn_that_sent_it() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE]);
    stage.turn("lead", 1, "echo plan >plan.md", &[handoff("one", "do the plan")], &[]);
    stage.say("lead", "go").expect(0);
    assert_eq!((stage.turns("lead"), stage.turns("one")), (1, 1));
    let brought = stage.messages("one", 1);
    let [message] = brought.as_slice() else { panic!("{brought:?}") };
    assert_eq!((&message["kind"], &message["text"]), (&json!("handoff"), &json!("do the plan")));
    assert_eq!(message["merged"], "merged");
    let lead = stage.branch("lead");
    let attached = message["attached"].as_str().unwrap();
    assert_eq!(stage.life.trailer(attached, "dwp-state").as_deref(), Some("route"));
    assert_eq!(stage.life.show(&stage.branch("one"), "plan.md"), "plan");
    assert_eq!(
        (stage.life.state(&lead).as_str(), stage.life.state(&stage.branch("one")).as_str()),
        ("idle", "idle")
    );
    // The head says what was done, and takes the next message.
    assert!(stage.life.body(&lead).contains("\"name\":\"send_handoff\""), "{}", stage.life.body(&lead));
    stage.say("lead", "again").expect(0);
    assert_eq!((stage.turns("lead"), stage.turns("one")), (2, 1));
}

/// N5: what was done is found done, however often it is begun again.
#[test]
fn routing_again_sends_and_spawns_nothing_twice() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE]);
    let spawn =
        json!({"label": "New one", "alias": "new", "roleTemplate": "reviewer", "instructions": "look"});
    let calls = [
        call("spawn_node", spawn),
        call("create_edge", json!({"from": "one", "to": "new"})),
        handoff("one", "yours"),
        call("create_edge", json!({"from": "lead", "to": "new"})),
        handoff("new", "and yours"),
    ];
    stage.turn("lead", 1, "", &calls, &[]);
    stage.say("lead", "go").expect(0);
    let (flow, letters) = (stage.now(), stage.letters());
    assert_eq!((flow.nodes.len(), flow.edges.len()), (3, 3));
    assert_eq!((stage.turns("one"), stage.turns("new")), (1, 1), "both handoffs in one turn");
    assert_eq!(stage.messages("new", 1).len(), 2);
    again(&stage, &letters);
    // And once more, after the edges that it went along are gone.
    let mut less = stage.now();
    less.edges.clear();
    let stage = Stage { life: stage.life, flow: less };
    stage.write_flow();
    again(&stage, &letters);
}

/// Asks for what follows from the last turn once more.
fn again(stage: &Stage, letters: &[String]) {
    stage.life.event(&stage.branch("lead"), "route", "");
    stage.go().expect(0);
    assert_eq!(stage.letters(), letters);
    assert_eq!((stage.turns("lead"), stage.turns("one"), stage.turns("new")), (1, 1, 1));
    assert_eq!((stage.now().nodes.len(), stage.life.state(&stage.branch("lead")).as_str()), (3, "idle"));
}

/// N7: what the flow does not allow is not done; the agent is told, and people can see it.
#[test]
fn a_call_that_is_not_allowed_is_refused_and_told() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE]);
    let calls = [
        call("spawn_node", json!({"label": "x", "roleTemplate": "reviewer"})),
        handoff("nobody", "hello"),
        call("finish_run", json!({"status": "completed", "summary": "over"})),
    ];
    stage.turn("one", 1, "", &calls, &[]);
    stage.say("one", "go").expect(0);
    assert_eq!((stage.now().nodes.len(), stage.now().run.status), (2, RunStatus::Running));
    let told: Vec<String> =
        stage.messages("one", 2).iter().map(|m| m["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().any(|text| text.contains("there is no node 'nobody'")), "{told:?}");
    let refused = stage.events().into_iter().filter(|event| {
        matches!(&event.body, aynig::contract::event::Body::ToolCompleted { result, .. } if !result.ok)
    });
    assert_eq!(refused.count(), 3);
    assert_eq!(stage.turns("one"), 2, "what was told is heard once");
}

/// N6: a required answer is an open promise of the flow until a handoff back arrives.
#[test]
fn a_required_answer_stays_open_until_it_is_given() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE, TWO]);
    let asks = |to| {
        call(
            "send_handoff",
            json!({"to": to, "message": "look at it\nclosely", "response": {"expectation": "required"}}),
        )
    };
    stage.turn("lead", 1, "", &[asks("one"), asks("two")], &[]);
    stage.turn("one", 2, "", &[handoff("lead", "done")], &[]);
    stage.say("lead", "go").expect(0);
    let open: Vec<_> = stage.now().run.promises.values().cloned().collect();
    assert_eq!(open.len(), 2);
    assert!(open.iter().all(|promise| promise.to == stage.id("lead") && promise.about == "look at it"));
    stage.say("one", "answer").expect(0);
    let open: Vec<_> = stage.now().run.promises.values().map(|promise| promise.from).collect();
    assert_eq!(open, [stage.id("two")]);
}

/// N10: an orchestrator goes on by itself until it says that the flow is over.
#[test]
fn an_orchestrator_goes_on_by_itself_until_it_finishes_the_run() {
    let stage = Stage::new(Mode::Auto, &[LEAD, ONE]);
    stage.turn("lead", 1, "", &[handoff("one", "do")], &[]);
    let finish = call("finish_run", json!({"status": "completed", "summary": "all is well"}));
    stage.turn("lead", 4, "", &[finish], &[]);
    stage.say("lead", "go").expect(0);
    assert_eq!((stage.turns("lead"), stage.turns("one")), (4, 1), "others do not go on by themselves");
    let run = stage.now().run;
    assert_eq!((run.status, run.summary.as_deref()), (RunStatus::Completed, Some("all is well")));
    assert_eq!(stage.life.state(&stage.branch("lead")), "idle");
    stage.say("lead", "one more").expect(0);
    assert_eq!(stage.turns("lead"), 4, "a flow that is over holds its nodes");
}

fn required(to: &str, message: &str) -> serde_json::Value {
    call("send_handoff", json!({"to": to, "message": message, "response": {"expectation": "required"}}))
}

fn finish() -> serde_json::Value {
    call("finish_run", json!({"status": "completed", "summary": "all is well"}))
}

/// N6, N10: an orchestrator that asked for an answer has its next turn with that, and none by itself before.
#[test]
fn an_orchestrator_waits_for_the_answers_that_it_requires() {
    let stage = Stage::new(Mode::Auto, &[LEAD, ONE, TWO]);
    stage.turn("lead", 1, "", &[required("one", "do"), required("two", "do too")], &[]);
    stage.turn("one", 1, "", &[handoff("lead", "done")], &[]);
    stage.turn("two", 1, "", &[handoff("lead", "done too")], &[]);
    for n in 2..4 {
        // Whatever the order in which they come: it goes on by itself once both did.
        let both = "cat \"$T\"/lead.?.messages | grep -c '\"done' | grep -q 2 && cp \"$T/end.json\" \"$AYNIG_RESULT\" && exit 0";
        stage.turn("lead", n, both, &[], &[]);
    }
    stage.turn("end", 1, "", &[finish()], &[]);
    std::fs::rename(stage.life.shared().join("end.1.json"), stage.life.shared().join("end.json")).unwrap();
    stage.say("lead", "go").expect(0);
    assert_eq!((stage.turns("one"), stage.turns("two")), (1, 1), "nothing is asked for twice");
    assert!((2..=3).contains(&stage.turns("lead")), "{}", stage.turns("lead"));
    assert_eq!(stage.now().run.status, RunStatus::Completed);
}

/// N6: who owes an answer and ends its turn without one does not keep an orchestrator waiting for good.
#[test]
fn who_waits_for_an_answer_is_told_of_a_turn_without_it() {
    let stage = Stage::new(Mode::Auto, &[LEAD, ONE]);
    stage.turn("lead", 1, "", &[required("one", "do it")], &[]);
    stage.turn("lead", 2, "", &[finish()], &[]);
    stage.say("lead", "go").expect(0);
    let told = stage.messages("lead", 2);
    let [told] = told.as_slice() else { panic!("{told:?}") };
    let text = told["text"].as_str().unwrap();
    assert!(text.starts_with("one ended its turn without the answer that you wait for (do it)"), "{text}");
    assert_eq!((stage.turns("lead"), stage.now().run.promises.len()), (2, 0));
    // Where people lead, they see it.
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE]);
    stage.turn("lead", 1, "", &[required("one", "do it")], &[]);
    stage.say("lead", "go").expect(0);
    assert_eq!((stage.turns("lead"), stage.now().run.promises.len()), (1, 1));
    let said = stage.life.run(&["status"]).expect(0).stdout;
    let line =
        |node: &str| said.lines().find(|line| line.starts_with(&stage.branch(node))).unwrap().to_owned();
    assert!(line("one").ends_with("; owes lead an answer: do it"), "{said}");
    assert!(line("lead").ends_with("; waits for the answer of one: do it"), "{said}");
}

/// N6: a handoff that could not be sent is waited for by no orchestrator.
#[test]
fn a_handoff_that_was_not_sent_is_owed_no_answer() {
    let stage = Stage::new(Mode::Auto, &[LEAD, ONE]);
    let gone = format!("git update-ref -d refs/heads/{}", stage.branch("one"));
    stage.turn("lead", 1, &gone, &[required("one", "do it")], &[]);
    stage.turn("lead", 2, "", &[finish()], &[]);
    stage.say("lead", "go").expect(0);
    assert_eq!((stage.turns("lead"), stage.now().run.promises.len()), (2, 0));
    assert_eq!(stage.now().run.status, RunStatus::Completed);
}

/// N4, N12: what asked a turn to end and says nothing is no message to the next one, whichever process sent it
/// and was killed.
#[test]
fn an_interrupt_that_says_nothing_is_gone_with_its_turn() {
    let stage = Stage::new(Mode::Interactive, &[LEAD]);
    let asks = "git aynig send \"$AYNIG_BRANCH\" --kind interrupt -m '' --no-tick; git aynig send \"$AYNIG_BRANCH\" --kind interrupt -m ' ' --no-tick";
    stage.turn("lead", 1, asks, &[], &[]);
    stage.say("lead", "go").expect(0);
    assert_eq!((stage.turns("lead"), stage.life.state(&stage.branch("lead")).as_str()), (1, "idle"));
    assert!(!stage.letters().iter().any(|name| name.contains("/inbox/")), "{:?}", stage.letters());
}

/// N10: what leads to itself without a person stops for one, with everything that was handed on waiting.
#[test]
fn a_flow_that_goes_too_far_waits_for_a_person() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE]);
    stage.life.config("aynig.flowHops", "8");
    // What stops any other chain is not what stops a flow.
    stage.life.config("aynig.maxHops", "3");
    for n in 1..20 {
        stage.turn("lead", n, "", &[handoff("one", &format!("ping {n}"))], &[]);
        stage.turn("one", n, "", &[handoff("lead", &format!("pong {n}"))], &[]);
    }
    stage.say("lead", "go").expect(0);
    let had = stage.turns("lead") + stage.turns("one");
    assert!((2..=4).contains(&had), "{had}");
    assert_eq!(stage.now().run.status, RunStatus::Paused);
    let waits = stage.letters().iter().filter(|name| name.contains("/inbox/")).count();
    assert_eq!(waits, 1, "what was handed on waits: {:?}", stage.letters());
    let blocked: Vec<_> = ["lead", "one"]
        .into_iter()
        .filter(|node| stage.life.state(&stage.branch(node)) == "blocked")
        .collect();
    assert_eq!(blocked.len(), 1);
    assert!(stage.life.body(&stage.branch(blocked[0])).starts_with("hop limit: "));
}

/// N11: the same again and again pauses the flow, with the evidence.
#[test]
fn a_node_that_goes_in_a_circle_pauses_the_flow() {
    let stage = Stage::new(Mode::Auto, &[LEAD]);
    stage.life.config("aynig.stallTurns", "2");
    for n in 1..9 {
        let output = if n < 3 { format!("dwp-output-hash: {n}") } else { "dwp-output-hash: same".into() };
        stage.turn("lead", n, "", &[], &[output]);
    }
    stage.say("lead", "go").expect(0);
    assert_eq!(stage.turns("lead"), 5, "the first and two repetitions");
    assert_eq!(stage.now().run.status, RunStatus::Paused);
    assert_eq!(stage.life.state(&stage.branch("lead")), "blocked");
    let waits = stage.life.run(&["status", "--waiting"]).expect(0).stdout;
    assert!(waits.contains("git aynig flow resume play") && !waits.contains("set-state"), "{waits}");
    let stalled = stage.events().into_iter().find_map(|event| match event.body {
        aynig::contract::event::Body::RunStalled { evidence } => Some(evidence),
        _ => None,
    });
    let evidence = stalled.unwrap();
    assert_eq!(evidence.output_hash.as_deref(), Some("same"));
    assert_eq!(evidence.summaries, ["lead 3", "lead 4", "lead 5"]);
}

/// N11, K33: how often a node may repeat itself is the account's to say, not the repository's.
#[test]
fn a_repository_says_nothing_of_circles() {
    let stage = Stage::new(Mode::Interactive, &[LEAD]);
    stage.life.git(&["config", "--local", "aynig.stallTurns", "1"]);
    for n in 1..4 {
        stage.turn("lead", n, "", &[], &["dwp-output-hash: same".into()]);
        stage.say("lead", "go").expect(0);
    }
    assert_eq!((stage.turns("lead"), stage.now().run.status), (3, RunStatus::Running));
}

/// N6, K47: two implementers' work meets where both hand it.
#[test]
fn the_work_of_two_meets_in_the_third() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE, TWO]);
    stage.turn("lead", 1, "", &[handoff("one", "a"), handoff("two", "b")], &[]);
    stage.turn("one", 1, "echo one >one.txt", &[handoff("lead", "mine")], &[]);
    stage.turn("two", 1, "echo two >two.txt", &[handoff("lead", "mine too")], &[]);
    stage.say("lead", "go").expect(0);
    let files = stage.life.files(&stage.branch("lead"));
    assert!(["one.txt", "two.txt"].iter().all(|file| files.contains(&(*file).to_owned())), "{files:?}");
}

/// N6, K47: one line, changed by both: told with its path, nothing lost, and plain Git resolves it.
#[test]
fn a_conflict_is_told_and_loses_nothing() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE, TWO]);
    stage.turn("lead", 1, "", &[handoff("one", "a"), handoff("two", "b")], &[]);
    let mends = "work=$(grep -o '\"attached\":\"[0-9a-f]*\",\"merged\":\"conflict' \"$AYNIG_MESSAGES\" | cut -d'\"' -f4)\n\
        if [ -n \"$work\" ]; then git merge -q \"$work\" >/dev/null 2>&1; echo both >file; git add file; git commit -qm merged; fi";
    stage.turn("lead", 2, mends, &[], &[]);
    stage.turn("lead", 3, mends, &[], &[]);
    stage.turn("one", 1, "echo theirs >file", &[handoff("lead", "mine")], &[]);
    stage.turn("two", 1, "echo others >file", &[handoff("lead", "mine too")], &[]);
    stage.say("lead", "go").expect(0);
    let brought: Vec<_> = (2..=stage.turns("lead")).flat_map(|n| stage.messages("lead", n)).collect();
    let conflicts: Vec<_> = brought.iter().filter(|message| message["merged"] == "conflict").collect();
    let [conflict] = conflicts.as_slice() else { panic!("{brought:?}") };
    let work = conflict["attached"].as_str().unwrap();
    let said = stage.life.git(&["log", "--format=%B", &stage.branch("lead")]);
    assert!(said.contains(work) && said.contains("\n    file"), "{said}");
    assert_eq!(stage.life.show(&stage.branch("lead"), "file"), "both");
    stage.life.git(&["merge-base", "--is-ancestor", work, &stage.branch("lead")]);
}

/// N3: what follows from a turn is asked for again where it was cut off, and no oftener than three times.
#[test]
fn a_route_that_is_cut_off_is_asked_for_again_three_times() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE]);
    let ended =
        "echo x >>\"$T/routes\"\n[ \"$(wc -l <\"$T/routes\")\" -gt \"$(cat \"$T/fails\")\" ] || exit 1\n";
    stage.life.command("route", &format!("{ended}exec git aynig flow route"));
    stage.life.git(&["commit", "-qam", "route"]);
    // The nodes' branches bring commands of their own: those of before.
    stage.life.config("aynig.commandsFrom", "refs/heads/main");
    stage.turn("lead", 1, "", &[handoff("one", "yours")], &[]);
    std::fs::write(stage.life.shared().join("fails"), "3").unwrap();
    stage.say("lead", "go");
    assert_eq!(stage.life.said("routes").lines().count(), 5, "three times again, and that of the other node");
    assert_eq!((stage.turns("one"), stage.life.state(&stage.branch("lead")).as_str()), (1, "idle"));
    // One that fails each time ends as a run that stalled; the next turn's route brings what it had not.
    std::fs::write(stage.life.shared().join("routes"), "").unwrap();
    stage.turn("lead", 2, "", &[handoff("one", "late")], &[]);
    std::fs::write(stage.life.shared().join("fails"), "99").unwrap();
    stage.say("lead", "more");
    assert_eq!(stage.life.said("routes").lines().count(), 4);
    assert_eq!((stage.turns("one"), stage.life.state(&stage.branch("lead")).as_str()), (1, "stalled"));
    std::fs::write(stage.life.shared().join("fails"), "0").unwrap();
    stage.say("lead", "and now").expect(0);
    assert_eq!((stage.turns("lead"), stage.turns("one")), (3, 2));
    assert_eq!(stage.messages("one", 2)[0]["text"], "late");
}

/// K47a: what a node's line brought is read once for a delivery, to choose the branch and to evaluate it.
#[test]
#[cfg(target_os = "linux")]
fn a_delivery_reads_a_branch_once() {
    let stage = Stage::new(Mode::Interactive, &[("solo", "implementer")]);
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return crate::support::skipped("there is no strace");
    }
    // No `route` here: it reads the line for what the turns before were.
    let takes = ["dwp-accepts: message=turn".to_owned()];
    (1..=4).for_each(|n| stage.declares("solo", n, "", "idle", "done", &[], &takes));
    (0..3).for_each(|n| drop(stage.say("solo", &format!("{n}")).expect(0)));
    let branch = stage.branch("solo");
    let old = stage.life.rev(&format!("{branch}~5"));
    stage.life.run(&["send", &branch, "-m", "again", "--no-tick"]).expect(0);
    let log = stage.life.shared().join("strace");
    let mut traced = stage.life.repo.command("strace");
    let run = stage.life.aynig(&["run"]);
    traced.args(["-f", "-e", "trace=openat", "-o"]).arg(&log).arg(run.get_program()).args(run.get_args());
    traced.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(traced.output().unwrap().status.success());
    assert_eq!(stage.turns("solo"), 4);
    let file = format!("objects/{}/{}", &old[..2], &old[2..]);
    let log = std::fs::read_to_string(log).unwrap();
    let read = log.lines().filter(|line| line.contains(&file) && !line.contains("ENOENT")).count();
    assert_eq!(read, 1, "{file}");
}

/// N14: two clones drive one flow through one remote: each turn once, each handoff once.
#[test]
fn two_clones_drive_one_flow_through_one_remote() {
    let stage = Stage::new(Mode::Interactive, &[LEAD, ONE, TWO]);
    let life = &stage.life;
    let origin = life.repo.home().parent().unwrap().join("origin.git");
    life.git(&["clone", "-q", "--mirror", ".", origin.to_str().unwrap()]);
    stage.turn("lead", 1, "", &[handoff("one", "a"), handoff("two", "b")], &[]);
    stage.turn("one", 1, "echo one >one.txt", &[handoff("lead", "mine")], &[]);
    stage.turn("two", 1, "echo two >two.txt", &[handoff("lead", "mine too")], &[]);
    let url = format!("file://{}", origin.display());
    let clone = |name: &str| {
        let dir = life.repo.home().parent().unwrap().join(name);
        life.git(&["clone", "-q", &url, dir.to_str().unwrap()]);
        dir
    };
    let clones = [clone("a"), clone("b")];
    let there = |dir: &std::path::Path, args: &[&str]| {
        let mut command = life.aynig(args);
        command.current_dir(dir);
        command
    };
    let at =
        |dir: &std::path::Path, args: &[&str]| crate::support::life::done(there(dir, args).output().unwrap());
    let lead = stage.branch("lead");
    at(&clones[0], &["send", &lead, "-m", "go", "--no-tick", "--remote", "origin"]).expect(0);
    let origin_git = |args: &[&str]| {
        let output = life.repo.command("git").current_dir(&origin).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let state = |node: &str| {
        let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
        origin_git(&["log", "-1", format, &stage.branch(node)])
    };
    for _ in 0..20 {
        let running: Vec<_> = clones
            .iter()
            .map(|dir| crate::support::life::Running::of(there(dir, &["run", "--remote", "origin"])))
            .collect();
        running.into_iter().for_each(|run| drop(run.done()));
        let rests = ["lead", "one", "two"].iter().all(|node| state(node) == "idle");
        if rests && origin_git(&["for-each-ref", "refs/aynig/inbox"]).is_empty() {
            break;
        }
    }
    let heard = |node: &str| -> Vec<String> {
        let all = (1..=stage.turns(node)).flat_map(|n| stage.messages(node, n));
        let mut texts: Vec<String> =
            all.map(|message| message["text"].as_str().unwrap().to_owned()).collect();
        texts.sort();
        texts
    };
    assert_eq!((heard("one"), heard("two")), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(heard("lead"), ["go", "mine", "mine too"]);
    let files = origin_git(&["ls-tree", "-r", "--name-only", &lead]);
    assert!(files.contains("one.txt") && files.contains("two.txt"), "{files}");
    // Each of them tells the same.
    let ids = |dir: &std::path::Path| {
        let said = at(dir, &["flow", "events", "play", "--json", "--remote", "origin"]).expect(0).stdout;
        let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].to_string();
        let mut ids: Vec<String> = said.lines().map(id).collect();
        ids.sort();
        ids
    };
    let told = ids(&clones[0]);
    assert!(told.len() > 30, "{}", told.len());
    assert_eq!(ids(&clones[1]), told);
}
