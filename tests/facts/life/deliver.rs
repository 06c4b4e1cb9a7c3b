//! Messages that wait for a branch: what brings them, what keeps them, and that each is brought once.

use crate::support::Repo;
use crate::support::life::{Life, eventually, now};
use aynig::protocol::inbox::{Kind, Letter, MessageId, heard_ref, inbox_ref};

const REVIEW: &str = "dwp-accepts: message=rework handoff=rework\ndwp-ticket: 7\n";

/// Says what came of it, and what its trigger brought.
const REWORK: &str = "printf '%s' \"$BODY\" >\"$T/body\"; cp \"$AYNIG_MESSAGES\" \"$T/messages\" 2>/dev/null\n\
    echo 'SET_STATE {\"state\":\"review\",\"keep_trailers\":true,\"trailers\":[\"dwp-accepts: message=rework handoff=rework\"]}'";

pub(super) fn id(n: u8) -> MessageId {
    MessageId::v7(now() * 1000, u16::from(n), [n; 8])
}

pub(super) fn text(ref_name: Vec<u8>) -> String {
    String::from_utf8(ref_name).unwrap()
}

/// Puts a message into a branch's inbox, as `send` does; gives its ref.
pub(super) fn send(
    life: &Life,
    branch: &str,
    kind: &str,
    id: MessageId,
    words: &str,
    work: Option<&str>,
) -> String {
    let kind = Kind::new(kind).unwrap();
    let letter = Letter {
        id,
        kind: kind.clone(),
        from: "Eve <eve@example.com>".into(),
        hop: 2,
        seen: None,
        attached: None,
        question: None,
        choice: None,
        trailers: Vec::new(),
        text: words.into(),
    };
    let message = String::from_utf8(letter.message().unwrap().render().unwrap()).unwrap();
    let tree = work.map_or_else(|| life.repo.empty_tree(), |work| life.rev(&format!("{work}^{{tree}}")));
    let file = life.shared().join("letter");
    std::fs::write(&file, message).unwrap();
    let mut args = vec!["commit-tree", &tree, "-F", file.to_str().unwrap()];
    args.extend(work.iter().flat_map(|work| ["-p", work]));
    let commit = life.git(&args);
    let name = text(inbox_ref(branch.as_bytes(), &kind, id));
    life.git(&["update-ref", &name, &commit, &"0".repeat(commit.len())]);
    name
}

pub(super) fn heard(life: &Life, id: MessageId) -> Option<String> {
    life.try_rev(&text(heard_ref(id)))
}

/// A commit with that file on top of another, on no branch.
fn work(life: &Life, base: &str, file: &str, content: &str) -> String {
    let blob = life.shared().join("blob");
    std::fs::write(&blob, content).unwrap();
    let blob = life.git(&["hash-object", "-w", blob.to_str().unwrap()]);
    let index = life.shared().join("index");
    let git = |args: &[&str]| {
        let output = life.repo.command("git").env("GIT_INDEX_FILE", &index).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["read-tree", base]);
    git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{file}")]);
    let tree = git(&["write-tree"]);
    git(&["commit-tree", &tree, "-p", base, "-m", "work"])
}

fn brought(life: &Life, commit: &str) -> Vec<String> {
    let format = "--format=%(trailers:key=dwp-heard,valueonly)";
    let all = life.git(&["log", "-1", format, commit]);
    all.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// K46a, K47: in every form of repository.
#[test]
fn a_message_to_an_idle_branch_is_its_next_trigger() {
    for repo in [Repo::build(), Repo::build().sha256(), Repo::build().reftable()] {
        if repo.create().is_none() {
            continue;
        }
        let life = Life::of(repo, &[("rework", REWORK)]);
        let head = life.event("work", "review", REVIEW);
        let id = id(1);
        let name = send(&life, "work", "message", id, "Use the other one.\n\ndwp-state: evil", None);
        let message = life.rev(&name);
        life.tick(&["work"]).expect(0);
        assert_eq!(life.states("work"), ["review", "working", "rework", "review"]);
        assert_eq!(life.git(&["log", "-1", "--format=%P", "work~2"]), format!("{head} {message}"));
        assert_eq!(brought(&life, "work~2"), [format!("{id} {message}")]);
        assert_eq!((brought(&life, "work~1").len(), brought(&life, "work").len()), (1, 0));
        assert_eq!((life.try_rev(&name), heard(&life, id)), (None, Some(message.clone())));
        assert_eq!(life.said("body"), "Use the other one.\n\ndwp-state: evil");
        let told: serde_json::Value = serde_json::from_str(life.said("messages").trim()).unwrap();
        assert_eq!((&told["id"], &told["kind"]), (&id.to_string().into(), &"message".into()));
        assert_eq!((&told["commit"], &told["from"]), (&message.into(), &"Eve <eve@example.com>".into()));
        assert_eq!((&told["attached"], &told["text"]), (&serde_json::Value::Null, &life.said("body").into()));
        let of = |key: &str| life.trailer("work~2", key);
        assert_eq!(
            (of("dwp-hop"), of("dwp-ticket"), of("dwp-accepts")),
            (Some("2".into()), Some("7".into()), None)
        );
        life.repo.assert_sound();
    }
}

/// K47: a lease takes nothing; what came meanwhile is in the next trigger.
#[test]
fn a_message_to_a_busy_branch_is_in_its_next_trigger() {
    let life = Life::new(&[("rework", REWORK)]);
    life.event("work", "review", REVIEW);
    life.lease("work", "build", "r1", 300, 0);
    let name = send(&life, "work", "message", id(1), "Later.", None);
    life.tick(&["work"]);
    assert!(life.try_rev(&name).is_some());
    life.event("work", "review", REVIEW);
    life.tick(&["work"]).expect(0);
    assert_eq!((life.try_rev(&name), life.said("body").as_str()), (None, "Later."));
}

/// K47: at most 64, in the order of their ids, of those that lead where the oldest leads.
#[test]
fn a_delivery_takes_64_in_the_order_of_their_ids() {
    let life = Life::new(&[]);
    life.event("work", "review", "dwp-accepts: message=rework handoff=rework interrupt=stop\n");
    let ids: Vec<MessageId> = (1..=70).map(id).collect();
    for (n, id) in ids.iter().enumerate().rev() {
        let kind = if n % 2 == 0 { "message" } else { "handoff" };
        send(&life, "work", kind, *id, &format!("{n}"), None);
    }
    send(&life, "work", "interrupt", id(100), "stop", None);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.states("work"), ["rework", "review"]);
    let first: Vec<String> = brought(&life, "work").iter().map(|line| line[..36].to_owned()).collect();
    assert_eq!(first, ids[..64].iter().map(MessageId::to_string).collect::<Vec<_>>());
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/"]).lines().count(), 7);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/heard/"]).lines().count(), 64);
}

/// K47: attached work is merged, one after another, and its commits are on the branch.
#[test]
fn attached_work_is_merged() {
    let life = Life::new(&[("rework", REWORK)]);
    let base = life.event("work", "review", REVIEW);
    life.event("work", "review", REVIEW);
    let (one, two) = (work(&life, &base, "one", "1\n"), work(&life, &base, "two", "2\n"));
    send(&life, "work", "handoff", id(1), "Mine.", Some(&one));
    send(&life, "work", "message", id(2), "And mine.", Some(&two));
    send(&life, "work", "message", id(3), "Old.", Some(&base));
    life.tick(&["work"]).expect(0);
    assert_eq!((life.show("work", "one"), life.show("work", "two")), ("1".into(), "2".into()));
    life.git(&["merge-base", "--is-ancestor", &one, "work"]);
    life.git(&["merge-base", "--is-ancestor", &two, "work"]);
    let merged: Vec<String> = life
        .said("messages")
        .lines()
        .map(|line| {
            let told: serde_json::Value = serde_json::from_str(line).unwrap();
            told["merged"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(merged, ["merged", "merged", "nothing"]);
}

/// K47: nothing of either side is lost.
#[test]
fn work_that_conflicts_is_told_with_its_paths_and_kept() {
    let life = Life::new(&[("rework", REWORK)]);
    let base = life.event("work", "review", REVIEW);
    let theirs = work(&life, &base, "file", "theirs\n");
    let ours = work(&life, &base, "file", "ours\n");
    life.git(&["update-ref", "refs/heads/work", &ours]);
    life.event("work", "review", REVIEW);
    send(&life, "work", "handoff", id(1), "Mine.", Some(&theirs));
    let good = work(&life, &base, "good", "1\n");
    send(&life, "work", "handoff", id(2), "Good.", Some(&good));
    life.tick(&["work"]).expect(0);
    assert_eq!((life.show("work", "file"), life.show("work", "good")), ("ours".into(), "1".into()));
    assert_eq!(life.trailer("work~2", "dwp-conflict"), Some(theirs.clone()));
    assert_eq!(life.git(&["log", "-1", "--format=%P", "work~2"]).split(' ').count(), 2);
    let body = life.said("body");
    assert!(
        body.contains("Mine.") && body.contains("could not be merged:\n    file") && body.contains("Good."),
        "{body}"
    );
    let kept = heard(&life, id_of(&life, "work~2", 0)).unwrap();
    assert_eq!(life.rev(&format!("{kept}^1")), theirs);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/"]), "");
}

fn id_of(life: &Life, commit: &str, nth: usize) -> MessageId {
    brought(life, commit)[nth][..36].parse().unwrap()
}

/// K47a: a branch that names what it brought is finished by the next process to write to it; nothing is brought twice.
#[test]
fn a_delivery_that_was_killed_between_its_moves_is_finished_and_not_repeated() {
    let life = Life::new(&[("rework", REWORK)]);
    life.event("work", "review", REVIEW);
    for (n, created) in [(1, false), (2, true)] {
        let id = id(n);
        let name = send(&life, "work", "message", id, "Once.", None);
        let message = life.rev(&name);
        life.tick(&["work"]).expect(0);
        let ticks = life.states("work").len();
        // As it is where only the branch was moved, or also the first ref was put.
        life.git(&["update-ref", &name, &message]);
        if !created {
            life.git(&["update-ref", "-d", &text(heard_ref(id))]);
        }
        life.tick(&["work"]).expect(0);
        assert_eq!(life.states("work").len(), ticks, "it was brought twice");
        assert_eq!((life.try_rev(&name), heard(&life, id)), (None, Some(message)));
    }
    // The same with the trigger itself as the head: the claim finishes it.
    let id = id(3);
    let name = send(&life, "work", "message", id, "Again.", None);
    let message = life.rev(&name);
    life.tick(&["work"]).expect(0);
    life.git(&["update-ref", "refs/heads/work", "work~2"]);
    life.git(&["update-ref", &name, &message]);
    life.git(&["update-ref", "-d", &text(heard_ref(id))]);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.states("work")[..3], ["review", "working", "rework"]);
    assert_eq!((life.try_rev(&name), heard(&life, id)), (None, Some(message)));
}

/// K47a: a ref under `heard` alone proves nothing, as a killed delivery may have made it before the branch moved.
#[test]
fn a_message_that_only_its_heard_ref_knows_is_delivered() {
    let life = Life::new(&[("rework", REWORK)]);
    life.event("work", "review", REVIEW);
    let id = id(1);
    let name = send(&life, "work", "message", id, "Not lost.", None);
    life.git(&["update-ref", &text(heard_ref(id)), &name]);
    life.tick(&["work"]).expect(0);
    assert_eq!((life.said("body").as_str(), life.try_rev(&name)), ("Not lost.", None));
    // Another commit under an id that was delivered is the same message.
    send(&life, "work", "message", id, "Changed.", None);
    let states = life.states("work").len();
    life.tick(&["work"]).expect(0);
    assert_eq!((life.states("work").len(), life.try_rev(&name)), (states, None));
}

/// K46, K47: whatever was pushed there, the others are delivered.
#[test]
fn what_is_no_message_is_said_and_hides_no_other() {
    let life = Life::new(&[("rework", REWORK)]);
    let head = life.event("work", "review", REVIEW);
    let bad = id(1);
    life.git(&["update-ref", &format!("refs/aynig/inbox/work/message/{bad}"), &head]);
    life.git(&["update-ref", "refs/aynig/inbox/work/message/x", &head]);
    life.git(&["update-ref", &format!("refs/aynig/inbox/work/deeper/message/{}", id(2)), &head]);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.rev("work"), head);
    send(&life, "work", "message", id(3), "Good.", None);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.said("body"), "Good.");
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/"]).lines().count(), 3);
}

/// K47, K29
#[test]
fn an_aynig_head_is_not_receptive() {
    let life = Life::new(&[]);
    let head = life.event_at("work", "go\n\naynig-state: review\ndwp-accepts: message=rework\n", None);
    let name = send(&life, "work", "message", id(1), "Hello.", None);
    life.tick(&["work"]).expect(0);
    assert_eq!((life.rev("work"), life.try_rev(&name).is_some()), (head, true));
}

/// K47: a retried run hears the same.
#[test]
fn a_retry_hears_the_same() {
    let life = Life::new(&[("rework", "cp \"$AYNIG_MESSAGES\" \"$T/messages\"; exit 1")]);
    life.event("work", "review", REVIEW);
    let id = id(1);
    send(&life, "work", "message", id, "Hello.", None);
    life.tick(&["work"]).expect(1);
    let first = life.said("messages");
    assert_eq!((life.state("work").as_str(), brought(&life, "work").len()), ("stalled", 1));
    std::fs::remove_file(life.shared().join("messages")).unwrap();
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(brought(&life, "work").len(), 1);
    life.tick(&["work"]).expect(1);
    assert_eq!(life.said("messages"), first);
}

/// K47, K28
#[test]
fn local_work_in_the_way_keeps_the_messages_waiting() {
    let life = Life::new(&[("rework", REWORK)]);
    let base = life.event("work", "review", REVIEW);
    let theirs = work(&life, &base, "file", "theirs\n");
    life.git(&["checkout", "-q", "work"]);
    life.write("file", "mine, not committed\n");
    let name = send(&life, "work", "handoff", id(1), "Mine.", Some(&theirs));
    let done = life.tick(&["work"]);
    assert_eq!(done.code, Some(3), "{} {}", done.stdout, done.stderr);
    assert_eq!((life.rev("work"), life.try_rev(&name).is_some()), (base, true));
    assert_eq!(life.read("file"), "mine, not committed\n");
    life.git(&["checkout", "-q", "--", "file"]);
    life.tick(&["work"]).expect(0);
    assert_eq!((life.read("file").as_str(), life.try_rev(&name)), ("theirs\n", None));
}

/// K47b: where commands come from the branch, a message brings none.
#[test]
fn a_message_brings_no_commands() {
    let life = Life::new(&[("rework", REWORK)]);
    life.run(&["trust", "--branches"]).expect(0);
    let base = life.event("work", "review", REVIEW);
    let evil = work(&life, &base, ".aynig/command/rework", "#!/bin/sh\necho evil >\"$T/evil\"\n");
    send(&life, "work", "handoff", id(1), "Mine.", Some(&evil));
    life.tick(&["work"]);
    assert_eq!(life.trailer("work~2", "dwp-conflict"), Some(evil));
    assert!(!life.shared().join("evil").exists());
}

/// K47a: the quicker runner delivers, and the other finds it done.
#[test]
fn two_runners_deliver_once() {
    let life = Life::new(&[]);
    life.event("work", "review", REVIEW);
    for n in 1..=5 {
        send(&life, "work", "message", id(n), "Hello.", None);
    }
    let ticks: Vec<_> = (0..4).map(|_| life.start_tick(&["work"])).collect();
    ticks.into_iter().for_each(|tick| drop(tick.done()));
    life.tick(&["work"]).expect(0);
    let all: usize = life.git(&["log", "--format=%H", "work"]).lines().map(|c| brought(&life, c).len()).sum();
    assert_eq!((all, life.git(&["for-each-ref", "refs/aynig/inbox/"])), (5, String::new()));
}

/// K50: neither dispatched nor delivered to, and said; leases go on.
#[test]
fn a_paused_branch_waits_and_goes_on_when_the_pause_is_over() {
    let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'"), ("rework", REWORK)]);
    life.event("work", "build", "");
    life.event("feature/x", "review", REVIEW);
    life.event("other", "build", "");
    let pause = "aynig: pause\n\nThe quota is used up.\n\ndwp-holder: person ada@example.com\ndwp-paused: work\ndwp-paused: feature/*\n";
    let commit = life.git(&["commit-tree", &life.repo.empty_tree(), "-m", pause]);
    let name = format!("refs/aynig/paused/{}", id(9));
    life.git(&["update-ref", &name, &commit]);
    let message = send(&life, "feature/x", "message", id(1), "Hello.", None);
    let done = life.tick(&["work"]).expect(0);
    assert!(
        done.stdout.contains("paused by person ada@example.com: The quota is used up."),
        "{} {}",
        done.stdout,
        done.stderr
    );
    life.tick(&["feature/x"]).expect(0);
    life.tick(&["other"]).expect(0);
    assert_eq!(["work", "feature/x", "other"].map(|b| life.state(b)), ["build", "review", "done"]);
    assert!(life.try_rev(&message).is_some());
    life.git(&["update-ref", "-d", &name]);
    life.tick(&["work", "feature/x"]).expect(0);
    assert_eq!(["work", "feature/x"].map(|b| life.state(b)), ["done", "review"]);
    assert_eq!(life.said("body"), "Hello.");
}

/// K51, K52
#[test]
fn a_head_that_waits_for_an_hour_or_a_branch_is_not_dispatched_before() {
    let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.event("hour", "build", &format!("dwp-not-before: {}\n", now() + 3600));
    life.event("past", "build", "dwp-not-before: 2001-01-01T00:00:00Z\n");
    life.event("odd", "build", "dwp-not-before: soon\n");
    life.event("one", "build", "");
    life.event("after", "build", "dwp-after: one=done\ndwp-after: two=done\n");
    for branch in ["hour", "past", "odd", "after"] {
        life.tick(&[branch]).expect(0);
    }
    assert_eq!(["hour", "past", "odd", "after"].map(|b| life.state(b)), ["build", "done", "build", "build"]);
    life.tick(&["one"]).expect(0);
    let said = life.tick(&["after"]).expect(0).stdout;
    assert!(said.contains("waits for 'two' in 'done'"), "{said}");
    life.event("two", "done", "");
    life.tick(&["after"]).expect(0);
    assert_eq!(life.state("after"), "done");
    // A user is told before anything is written that would hold.
    for (wait, want) in [
        ("dwp-not-before: tomorrow", "want a moment as 2026-01-31T12:00:00Z, or seconds since 1970"),
        ("dwp-not-before:", "want a moment"),
        ("dwp-after: one", "want <branch>=<state>"),
        ("dwp-after: one=a b", "want <branch>=<state>"),
    ] {
        for verb in [&["set-state", "build", "-b", "typed"][..], &["set-state", "build", "--emit"]] {
            let said = life.run(&[verb, &["--trailer", wait]].concat()).expect(129).stderr;
            assert!(
                said.contains(&format!("'{}", wait.split_once(':').unwrap().0)) && said.contains(want),
                "{said}"
            );
        }
        assert_eq!(life.try_rev("typed"), None);
    }
    let moment = "dwp-not-before: 2099-01-01t00:00:00+01:00";
    life.run(&["set-state", "build", "-b", "typed", "--trailer", moment, "--trailer", "dwp-after: a=b=done"])
        .expect(0);
    // What is another branch's name is in no state: it holds, and stops no other branch.
    life.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/one"]);
    life.event("named", "build", "dwp-after: alias=done\n");
    let said = life.tick(&["named"]).expect(0).stdout;
    assert!(said.contains("waits for 'alias' in 'done'"), "{said}");
}

/// K52, K40: what waits for others is started by the chain that finishes the last of them, once.
#[test]
fn a_branch_that_waits_for_five_others_is_started_by_the_last() {
    let build = "echo 'SET_STATE {\"state\":\"done\"}'";
    let life = Life::new(&[("build", build), ("merge", &format!("echo x >>\"$T/merged\"; {build}"))]);
    life.run(&["hooks", "install"]).expect(0);
    let names: Vec<String> = (1..=5).map(|n| format!("b{n}")).collect();
    let waits: String = names.iter().map(|name| format!("dwp-after: {name}=done\n")).collect();
    // In these orders, and all at once.
    let orders: [Option<[usize; 5]>; 4] =
        [Some([4, 3, 2, 1, 0]), Some([0, 1, 2, 3, 4]), Some([2, 4, 0, 3, 1]), None];
    for (round, order) in orders.iter().enumerate() {
        names.iter().for_each(|name| drop(life.event(name, "new", "")));
        life.event("all", "merge", &waits);
        life.event("chained", "merge", "dwp-after: all=done\n");
        assert_eq!(life.said("merged").lines().count(), 2 * round);
        let begin = |name: &String| life.run(&["set-state", "build", "-b", name]).expect(0);
        match order {
            Some(order) => order.iter().for_each(|nth| drop(begin(&names[*nth]))),
            None => std::thread::scope(|scope| {
                names.iter().for_each(|name| drop(scope.spawn(move || begin(name))));
            }),
        }
        eventually("the last", || (life.state("chained") == "done").then_some(()));
        assert_eq!(
            (life.state("all").as_str(), life.said("merged").lines().count()),
            ("done", 2 * (round + 1)),
            "{order:?}"
        );
    }
}

/// K47, K40: a message that came while a command ran is delivered by the same chain.
#[test]
fn a_message_that_came_meanwhile_is_delivered_by_the_chain_of_the_run() {
    let build = "git update-ref \"$(cat \"$T/name\")\" \"$(cat \"$T/held\")\"\n\
        echo 'SET_STATE {\"state\":\"review\",\"trailers\":[\"dwp-accepts: message=rework\"]}'";
    let life = Life::new(&[("build", build), ("rework", REWORK)]);
    life.run(&["hooks", "install"]).expect(0);
    let id = id(1);
    let name = send(&life, "work", "message", id, "Meanwhile.", None);
    std::fs::write(life.shared().join("held"), life.rev(&name)).unwrap();
    std::fs::write(life.shared().join("name"), &name).unwrap();
    life.git(&["update-ref", "-d", &name]);
    life.git(&["branch", "work"]);
    life.run(&["set-state", "build", "-b", "work"]).expect(0);
    eventually("delivery", || heard(&life, id));
    eventually("its end", || (life.states("work").len() == 6).then_some(()));
    assert_eq!(life.said("body"), "Meanwhile.");
}

/// K47a, K20: what a command marked as heard is a parent of its outcome, and of no other end.
#[test]
fn a_message_that_a_command_took_goes_with_its_outcome() {
    for end in ["echo 'SET_STATE {\"state\":\"done\"}'", "git aynig set-state done -m mine"] {
        goes_with_its_outcome(end);
    }
}

fn goes_with_its_outcome(end: &str) {
    let take = "cp \"$T/mark\" \"$AYNIG_RUN_DIR/taken\"; test -e \"$T/fine\" || exit 1\n";
    let life = Life::new(&[("build", &format!("{take}{end}"))]);
    let base = life.event("work", "build", "");
    let (one, two, three) = (id(1), id(2), id(3));
    let name = send(&life, "work", "message", one, "Stop.", None);
    let other = send(&life, "work", "message", two, "Not taken.", None);
    let theirs = work(&life, &base, "theirs", "1\n");
    let handed = send(&life, "work", "message", three, "Not merged.", Some(&theirs));
    let message = life.rev(&name);
    let mark =
        format!("message {one} {message}\nmessage {two} {message}\nmessage {three} {}\n", life.rev(&handed));
    std::fs::write(life.shared().join("mark"), mark).unwrap();
    life.tick(&["work"]).expect(1);
    assert_eq!((life.try_rev(&name), heard(&life, one)), (Some(message.clone()), None));
    std::fs::write(life.shared().join("fine"), "").unwrap();
    life.run(&["retry", "work"]).expect(0);
    life.tick(&["work"]).expect(0);
    assert_eq!((life.state("work").as_str(), life.rev("work^2")), ("done", message.clone()));
    assert_eq!((life.try_rev(&name), heard(&life, one)), (None, Some(message)));
    assert!(life.try_rev(&other).is_some() && life.try_rev(&handed).is_some());
}

/// K46a: what was heard goes by its age, and never before a branch has its work.
#[test]
fn what_was_heard_goes_by_its_age_but_not_work_that_no_branch_has() {
    let life = Life::new(&[]);
    let base = life.event("work", "review", REVIEW);
    let (theirs, ours) = (work(&life, &base, "file", "theirs\n"), work(&life, &base, "file", "ours\n"));
    life.git(&["update-ref", "refs/heads/work", &ours]);
    life.event("work", "review", REVIEW);
    send(&life, "work", "message", id(1), "A text.", None);
    send(&life, "work", "handoff", id(2), "A conflict.", Some(&theirs));
    life.tick(&["work"]).expect(0);
    let kept = || life.git(&["for-each-ref", "refs/aynig/heard/"]).lines().count();
    life.run(&["gc"]).expect(0);
    assert_eq!(kept(), 2);
    life.git(&["config", "aynig.attemptExpire", "0"]);
    life.run(&["gc"]).expect(0);
    assert_eq!((kept(), heard(&life, id_of(&life, "work", 1)).is_some()), (1, true));
}

/// K47b, K35: where signatures are asked for, a message that carries none waits, and that is said.
#[test]
fn a_message_without_a_signature_is_not_delivered_where_one_is_asked_for() {
    let life = Life::new(&[("rework", REWORK)]);
    let head = life.event("work", "review", REVIEW);
    let name = send(&life, "work", "message", id(1), "Trust me.", None);
    life.config("aynig.requireSignature", "true");
    let done = life.tick(&["work"]);
    assert_eq!((life.rev("work"), life.try_rev(&name).is_some()), (head, true));
    assert!(
        format!("{}{}", done.stdout, done.stderr).contains("not signed"),
        "{} {}",
        done.stdout,
        done.stderr
    );
}

/// K47a: a user who pushes a second ref of one id keeps no tick busy, and hides nothing.
#[test]
fn two_refs_of_one_id_are_delivered_as_one() {
    for (one, other) in [("handoff", "message"), ("message", "zzz"), ("answer", "message")] {
        let life = Life::new(&[("rework", REWORK)]);
        life.event("work", "review", REVIEW);
        let id = id(1);
        send(&life, "work", one, id, "This one.", None);
        send(&life, "work", other, id, if one == "answer" { "This one." } else { "Not this one." }, None);
        life.tick(&["work"]).expect(0);
        assert_eq!(life.said("body"), "This one.");
        let states = life.states("work").len();
        life.tick(&["work"]).expect(0);
        assert_eq!((life.states("work").len(), heard(&life, id).is_some()), (states, true));
        assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/"]), "");
    }
}

/// K47a: a killed delivery with two refs of one id is finished by the claim.
#[test]
fn a_killed_delivery_of_an_id_with_two_refs_is_finished() {
    let life = Life::new(&[("rework", REWORK)]);
    life.event("work", "review", REVIEW);
    let id = id(1);
    let name = send(&life, "work", "message", id, "Once.", None);
    let message = life.rev(&name);
    life.tick(&["work"]).expect(0);
    life.git(&["update-ref", "refs/heads/work", "work~2"]);
    life.git(&["update-ref", &name, &message]);
    life.git(&["update-ref", "-d", &text(heard_ref(id))]);
    send(&life, "work", "aaa", id, "Other.", None);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.states("work")[..3], ["review", "working", "rework"]);
    assert_eq!(
        (life.git(&["for-each-ref", "refs/aynig/inbox/"]), heard(&life, id)),
        (String::new(), Some(message))
    );
}

/// K47a: a sender's clock may be hours ahead of the runner's.
#[test]
fn a_message_from_a_clock_ahead_is_not_repeated_after_a_kill() {
    let life = Life::new(&[("rework", REWORK)]);
    life.event("work", "review", REVIEW);
    let id = MessageId::v7((now() + 3 * 3600) * 1000, 1, [1; 8]);
    let name = send(&life, "work", "message", id, "Once.", None);
    let message = life.rev(&name);
    life.tick(&["work"]).expect(0);
    let states = life.states("work").len();
    life.git(&["update-ref", &name, &message]);
    life.tick(&["work"]).expect(0);
    assert_eq!((life.states("work").len(), life.try_rev(&name)), (states, None));
}

/// K47: one trigger brings no more than 1 MiB of text.
#[test]
fn a_delivery_ends_at_a_mebibyte() {
    let life = Life::new(&[]);
    life.event("work", "review", REVIEW);
    for n in 1..=3 {
        send(&life, "work", "message", id(n), &"x".repeat(400 << 10), None);
    }
    life.tick(&["work"]).expect(0);
    assert_eq!(brought(&life, "work").len(), 2);
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/inbox/"]).lines().count(), 1);
}
