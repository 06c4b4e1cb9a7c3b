//! Messages and pauses of branches that machines share: sent by one, delivered by another, each once. Implements the
//! proof of K46a, K47, K47a, K48, K50 in remote mode.

use crate::support::life::{Running, done};
use crate::support::net::{Machine, Net};
use aynig::protocol::inbox::{Kind, Letter, MessageId, heard_ref, inbox_ref};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const IDLE: &str = "dwp-accepts: message=rework handoff=rework\n";
/// Keeps what its trigger brought, and says whether attached work is here.
const REWORK: &str = "cat \"$AYNIG_MESSAGES\" >>\"$T/messages\"; sed -n 's/.*\"attached\":\"\\([0-9a-f]*\\)\".*/\\1/p' \
    \"$AYNIG_MESSAGES\" | while read id; do git cat-file -e \"$id:file\" && echo \"$id\" >>\"$T/here\"; done\n\
    echo 'SET_STATE {\"state\":\"review\",\"trailers\":[\"dwp-accepts: message=rework handoff=rework\"]}'";

fn id(n: u8) -> MessageId {
    MessageId::v7(1_792_000_000_000, u16::from(n), [n; 8])
}

fn heard(id: MessageId) -> String {
    String::from_utf8(heard_ref(id)).unwrap()
}

/// Sends a message to `work` from a machine, as `send` does; its ref and its commit.
fn send(from: &Machine<'_>, kind: &str, id: MessageId, words: &str, work: Option<&str>) -> (String, String) {
    let kind = Kind::new(kind).unwrap();
    let letter = Letter {
        id,
        kind: kind.clone(),
        from: "person eve@example.com".into(),
        hop: 0,
        seen: None,
        attached: None,
        question: None,
        choice: None,
        trailers: Vec::new(),
        text: words.into(),
    };
    let message = String::from_utf8(letter.message().unwrap().render().unwrap()).unwrap();
    let tree = match work {
        Some(work) => from.git(&["rev-parse", &format!("{work}^{{tree}}")]),
        None => from.net.life.repo.empty_tree(),
    };
    let mut args = vec!["commit-tree", &tree, "-m", &message];
    args.extend(work.iter().flat_map(|work| ["-p", work]));
    from.git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let commit = from.git(&args);
    let name = String::from_utf8(inbox_ref(b"work", &kind, id)).unwrap();
    from.git(&["push", "-q", "origin", &format!("{commit}:{name}")]);
    (name, commit)
}

fn there(net: &Net, name: &str) -> Option<String> {
    let all = net.git(&["for-each-ref", "--format=%(objectname) %(refname)", name]);
    all.lines()
        .find_map(|line| Some(line.split_once(' ')?).filter(|(_, found)| *found == name))
        .map(|(id, _)| id.into())
}

/// How often a commit was brought to the branch.
fn brought(net: &Net, commit: &str) -> usize {
    let parents = net.git(&["log", "--first-parent", "--format=%P", "work"]);
    parents.lines().filter(|line| line.split(' ').skip(1).any(|parent| parent == commit)).count()
}

/// K46a, K47, K48: the merge and the moves of the refs are one push, and the command reads what it brings.
#[test]
fn what_one_machine_sends_another_one_delivers() {
    let net = Net::new(&[("rework", REWORK)]);
    let head = net.event("work", "review", IDLE);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let (name, commit) = send(&a, "message", id(1), "Use the other one.", None);
    // Deeper names are other branches'.
    net.git(&["update-ref", &format!("refs/aynig/inbox/work/x/message/{}", id(9)), &commit]);
    net.hook("update", "echo \"$1\" >>updates");
    b.tick(&["work"]).expect(0);
    assert_eq!(net.states("work"), ["review", "working", "rework", "review"]);
    assert_eq!(net.git(&["log", "-1", "--format=%P", "work~2"]), format!("{head} {commit}"));
    assert_eq!((there(&net, &name), there(&net, &heard(id(1)))), (None, Some(commit.clone())));
    let told: serde_json::Value = serde_json::from_str(net.life.said("messages").trim()).unwrap();
    assert_eq!(
        (told["commit"].as_str(), told["text"].as_str()),
        (Some(&*commit), Some("Use the other one."))
    );
    assert_eq!(net.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/inbox"]).lines().count(), 1);
    // Nothing of it is under the machine's own names, and no machine has it twice.
    assert_eq!(b.git(&["for-each-ref", "refs/aynig/inbox", "refs/aynig/heard", "refs/heads/work"]), "");
    a.tick(&["work"]).expect(0);
    b.tick(&[]).expect(0);
    assert_eq!((net.states("work").len(), brought(&net, &commit)), (4, 1));
    // Sent again under its id it is not brought again.
    net.git(&["update-ref", &name, &commit]);
    a.tick(&["work"]).expect(0);
    assert_eq!((net.states("work").len(), brought(&net, &commit), there(&net, &name)), (4, 1, None));
    net.git(&["fsck", "--strict", "--no-dangling"]);
}

/// K47: work that conflicts is under `heard` on the remote, and here before the command of another machine starts.
#[test]
fn work_that_conflicts_is_fetched_before_the_command_starts() {
    let net = Net::new(&[("rework", REWORK)]);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let file = |content: &str| {
        let work = a.dir.join("file");
        std::fs::write(work, content).unwrap();
        a.git(&["commit", "-qam", content.trim()]);
        let made = a.git(&["rev-parse", "HEAD"]);
        a.git(&["reset", "-q", "--hard", "origin/main"]);
        made
    };
    let (theirs, ours) = (file("theirs\n"), file("ours\n"));
    a.git(&["push", "-q", "origin", &format!("{ours}:refs/heads/work")]);
    let event = a.git(&[
        "commit-tree",
        "-m",
        &format!("x\n\ndwp-state: review\n{IDLE}"),
        "-p",
        &ours,
        &format!("{ours}^{{tree}}"),
    ]);
    a.git(&["push", "-q", "origin", &format!("{event}:refs/heads/work")]);
    let (_, commit) = send(&a, "handoff", id(1), "Take mine.", Some(&theirs));
    // The machine that delivers it gets no further.
    net.hook("update", "! git log -1 --format=%B \"$3\" | grep -q '^dwp-state: working$'");
    a.tick(&["work"]).expect(2);
    assert_eq!(net.states("work")[0], "rework");
    assert_eq!(net.trailer("work", "dwp-conflict"), theirs);
    assert_eq!(there(&net, &heard(id(1))), Some(commit.clone()));
    std::fs::remove_file(net.origin().join("hooks/update")).unwrap();
    b.tick(&["work"]).expect(0);
    assert_eq!(net.states("work")[0], "review");
    let told: serde_json::Value = serde_json::from_str(net.life.said("messages").trim()).unwrap();
    assert_eq!((told["merged"].as_str(), told["attached"].as_str()), (Some("conflict"), Some(&*theirs)));
    assert_eq!(net.life.said("here").trim(), theirs);
    assert_eq!((net.show("work", "file"), brought(&net, &commit)), ("ours".into(), 0));
}

/// K30, K47a: what another machine took is forgotten by the fetch that finds it gone, and nothing is pushed for it,
/// whatever bytes the branch's name has.
#[test]
fn a_message_that_is_gone_from_the_remote_is_forgotten() {
    let net = Net::new(&[("rework", REWORK)]);
    let head = net.event("work", "review", IDLE);
    let b = net.machine("b");
    let (_, commit) = send(&b, "message", id(1), "Use the other one.", None);
    let pushed = net.life.shared().join("pushed");
    let receive = net.life.shared().join("receive");
    let script = format!("#!/bin/sh\necho >>'{}'\nexec git receive-pack \"$@\"\n", pushed.display());
    crate::support::write_program(&receive, &script);
    b.git(&["config", "remote.origin.receivepack", &format!("'{}'", receive.display())]);
    for branch in [&b"work"[..], b"w\xffrk"] {
        let kind = Kind::new("message").unwrap();
        let waiting = OsString::from_vec(inbox_ref(branch, &kind, id(1)));
        let full = OsString::from_vec([b"refs/heads/", branch].concat());
        let update = |args: &[&OsStr]| net.git(&[&[OsStr::new("update-ref")], args].concat());
        update(&[&full, OsStr::new(&head)]);
        update(&[&waiting, OsStr::new(&commit)]);
        let tick = || {
            let args = ["tick", "--remote", "origin"].map(OsStr::new);
            done(b.aynig(&[&args[..], &[OsStr::from_bytes(branch)]].concat()).output().unwrap())
        };
        let kept = || b.git(&["for-each-ref", "--format=%(objectname)", "refs/aynig/shared/origin/inbox"]);
        net.hook("update", "exit 1");
        tick().expect(2);
        assert_eq!((kept(), pushed.exists()), (commit.clone(), true), "{branch:?}");
        std::fs::remove_file(&pushed).unwrap();
        std::fs::remove_file(net.origin().join("hooks/update")).unwrap();
        update(&[OsStr::new("-d"), &waiting]);
        tick().expect(0);
        assert_eq!((kept(), pushed.exists()), (String::new(), false), "{branch:?}");
    }
}

/// K32, K47a: whichever machine ticks, at once and again.
#[test]
fn of_many_machines_each_message_is_delivered_by_one() {
    let net = Net::new(&[("rework", REWORK)]);
    net.event("work", "review", IDLE);
    let machines = ["a", "b", "c"].map(|name| net.machine(name));
    let sent: Vec<(String, String)> = (1..=6)
        .map(|n| send(&machines[usize::from(n) % 3], "message", id(n), &format!("number {n}"), None))
        .collect();
    for _ in 0..3 {
        let ticks = machines.each_ref().map(|machine| machine.start_tick(&["work"]));
        for done in ticks.map(|tick| tick.done()) {
            assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
        }
    }
    for (n, (name, commit)) in sent.iter().enumerate() {
        assert_eq!((brought(&net, commit), there(&net, name)), (1, None), "message {}", n + 1);
        assert_eq!(there(&net, &heard(id_of(name))), Some(commit.clone()));
    }
    let told = net.life.said("messages");
    assert_eq!(told.lines().count(), 6, "{told}");
    assert_eq!(net.states("work")[0], "review");
    net.git(&["fsck", "--strict", "--no-dangling"]);
}

fn id_of(name: &str) -> MessageId {
    name.rsplit('/').next().unwrap().parse().unwrap()
}

/// K12, K47: a remote that can't move refs as one gets no deliveries, and everything else.
#[test]
fn a_remote_without_atomic_pushes_gets_no_deliveries() {
    let net = Net::new(&[("rework", REWORK), ("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    net.event("work", "review", IDLE);
    net.event("other", "build", "");
    let a = net.machine("a");
    let (name, commit) = send(&a, "message", id(1), "Hello.", None);
    net.git(&["config", "receive.advertiseAtomic", "false"]);
    let said = a.tick(&["work"]).expect(2);
    assert!(said.stderr.contains("it can't move several refs as one"), "{said:?}");
    assert!(said.stderr.contains("hint: ") && said.stderr.contains("receive.advertiseAtomic"), "{said:?}");
    assert_eq!((net.states("work"), there(&net, &name)), (vec!["review".to_owned()], Some(commit)));
    a.tick(&["other"]).expect(0);
    assert_eq!(net.states("other")[0], "done");
    net.git(&["config", "receive.advertiseAtomic", "true"]);
    a.tick(&["work"]).expect(0);
    assert_eq!((net.states("work")[0].as_str(), there(&net, &name)), ("review", None));
}

/// K50: pauses are the remote's, for all machines; one that comes between lease and start counts too.
#[test]
fn a_pause_of_the_remote_holds_every_machine() {
    let net = Net::new(&[("build", "echo ran >>\"$T/ran\"; echo 'SET_STATE {\"state\":\"done\"}'")]);
    net.event("work", "build", "");
    let (a, b) = (net.machine("a"), net.machine("b"));
    let pause = a.git(&["commit-tree", "-m", "lunch\n\ndwp-holder: person eve@example.com", "main^{tree}"]);
    let name = format!("refs/aynig/paused/{}", id(1));
    a.git(&["push", "-q", "origin", &format!("{pause}:{name}")]);
    for machine in [&a, &b] {
        machine.tick(&[]).expect(0);
        let said = machine.tick(&["work"]);
        assert!(format!("{}{}", said.stdout, said.stderr).contains("paused"), "{said:?}");
    }
    assert_eq!((net.states("work"), net.life.said("ran")), (vec!["build".to_owned()], String::new()));
    // It comes when the lease does: nothing is started, and nothing is lost.
    net.git(&["update-ref", "-d", &name]);
    let push = format!("case $1 in refs/heads/work) git update-ref {name} {pause};; esac");
    net.hook("post-update", &push);
    b.tick(&["work"]);
    assert_eq!(
        (net.states("work")[..2].to_vec(), net.life.said("ran")),
        (vec!["build".to_owned(), "working".into()], String::new())
    );
    std::fs::remove_file(net.origin().join("hooks/post-update")).unwrap();
    a.tick(&["work"]);
    assert_eq!(net.life.said("ran"), "");
    net.git(&["update-ref", "-d", &name]);
    a.tick(&["work"]).expect(0);
    assert_eq!((net.states("work")[0].as_str(), net.life.said("ran").as_str()), ("done", "ran\n"));
}

const ASKS: &str = "id=$(git aynig ask 'Deploy?' --choice yes --choice no --json | sed 's/.*\"id\":\"\\([^\"]*\\).*/\\1/')\n\
    echo \"SET_STATE {\\\"state\\\":\\\"waiting\\\",\\\"trailers\\\":[\\\"dwp-question: $id\\\",\\\"dwp-accepts: answer=go\\\"]}\"";

/// K49, K49a: a question of a run on one machine is answered on another, by one of two people, and a third one goes on.
#[test]
fn a_question_is_answered_on_another_machine() {
    let go = "cat \"$AYNIG_MESSAGES\" >>\"$T/messages\"; echo 'SET_STATE {\"state\":\"done\"}'";
    let net = Net::new(&[("build", ASKS), ("go", go)]);
    net.event("work", "build", "");
    let machines = ["a", "b", "c"].map(|name| net.machine(name));
    let [a, b, c] = &machines;
    a.tick(&["work"]).expect(0);
    assert_eq!(net.states("work")[0], "waiting");
    let asked = net.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/asked"]);
    assert_eq!(asked.lines().count(), 1, "{asked}");
    let answer = |machine: &Machine<'_>, choice: &str| {
        machine.run(&["answer", "work", choice, "--remote", "origin", "--no-tick"])
    };
    let older = answer(b, "maybe").expect(2);
    assert!(older.stderr.contains("'yes', 'no'"), "{older:?}");
    let said = b
        .run(&["answer", "work", "yes", "--remote", "origin", "--no-tick", "--seen", "origin/main"])
        .expect(2);
    assert!(said.stderr.contains("is not about"), "{said:?}");
    answer(b, "yes").expect(0);
    let late = answer(c, "no").expect(3);
    assert!(late.stderr.contains("was answered by person"), "{late:?}");
    assert_eq!(net.git(&["for-each-ref", "refs/aynig/asked"]), "");
    c.tick(&["work"]).expect(0);
    let told: serde_json::Value = serde_json::from_str(net.life.said("messages").trim()).unwrap();
    assert_eq!((told["choice"].as_str(), net.states("work")[0].as_str()), (Some("yes"), "done"));
    assert_eq!(net.git(&["for-each-ref", "refs/aynig/inbox"]), "");
    // Too late for every machine, also for one that has not heard.
    assert_ne!(answer(a, "no").code, Some(0));
}

/// K49a: two people answer at once on two machines: one wins, the other is told by whom.
#[test]
fn of_two_machines_that_answer_at_once_one_wins() {
    let net = Net::new(&[("build", ASKS)]);
    net.event("work", "build", "");
    let machines = ["a", "b", "c"].map(|name| net.machine(name));
    machines[0].tick(&["work"]).expect(0);
    let answers = [("ada@example.com", "yes"), ("eve@example.com", "no")];
    let both: Vec<Running> = std::iter::zip(&machines[1..], answers)
        .map(|(machine, (who, choice))| {
            let mut call = machine.aynig(&["answer", "work", choice, "--remote", "origin", "--no-tick"]);
            call.env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", "user.email")
                .env("GIT_CONFIG_VALUE_0", who);
            Running::of(call)
        })
        .collect();
    let ended: Vec<_> = both.into_iter().map(Running::done).collect();
    let won = ended.iter().position(|done| done.code == Some(0)).unwrap_or_else(|| panic!("{ended:?}"));
    let lost = &ended[1 - won];
    let told = format!("was answered by person {}: {}", answers[won].0, answers[won].1);
    assert!(lost.code == Some(3) && lost.stderr.contains(&told), "{ended:?}");
    let answer = net.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/inbox"]);
    assert_eq!(net.trailer(&answer, "dwp-choice"), answers[won].1);
}

/// K50: where the remote can't be asked for pauses between claim and start, the lease is given back and nothing runs.
#[test]
fn a_look_for_pauses_that_fails_after_the_claim_gives_the_lease_back() {
    let net = Net::new(&[("build", "echo ran >>\"$T/ran\"; echo 'SET_STATE {\"state\":\"done\"}'")]);
    net.event("work", "build", "dwp-ticket: 7\n");
    let a = net.machine("a");
    let deaf = net.life.shared().join("deaf");
    net.hook("post-update", &format!("case $1 in refs/heads/work) : >'{}';; esac", deaf.display()));
    let serve = net.life.shared().join("serve");
    let script = format!("#!/bin/sh\n[ ! -e '{}' ] || exit 1\nexec git upload-pack \"$@\"\n", deaf.display());
    crate::support::write_program(&serve, &script);
    a.git(&["config", "remote.origin.uploadpack", &format!("'{}'", serve.display())]);
    let ticked = a.tick(&["work"]);
    assert!(deaf.exists() && ticked.code != Some(0), "{ticked:?}");
    assert_eq!(
        (net.states("work")[..2].to_vec(), net.life.said("ran")),
        (vec!["build".into(), "working".into()], String::new())
    );
    assert_eq!(net.trailer("work", "dwp-ticket"), "7");
    std::fs::remove_file(net.origin().join("hooks/post-update")).unwrap();
    std::fs::remove_file(&deaf).unwrap();
    a.tick(&["work"]).expect(0);
    assert_eq!((net.states("work")[0].as_str(), net.life.said("ran").as_str()), ("done", "ran\n"));
}

/// K46, K50: what is said and held by the verbs of one machine concerns all.
#[test]
fn what_is_sent_and_paused_by_one_machine_concerns_all() {
    let net = Net::new(&[
        ("rework", REWORK),
        ("build", "echo ran >>\"$T/ran\"; echo 'SET_STATE {\"state\":\"done\"}'"),
    ]);
    net.event("work", "review", IDLE);
    net.event("other", "build", "");
    let (a, b) = (net.machine("a"), net.machine("b"));
    let id = id(3).to_string();
    let send = |machine: &Machine<'_>| {
        machine.run(&["send", "work", "--remote", "origin", "-m", "Hello.", "--id", &id, "--no-tick"])
    };
    send(&a).expect(0);
    let inbox = |machine: &Machine<'_>| {
        machine.run(&["inbox", "work", "--remote", "origin", "--json"]).expect(0).stdout
    };
    assert!(inbox(&b).contains(&id), "{}", inbox(&b));
    a.run(&["pause", "--remote", "origin", "-m", "lunch"]).expect(0);
    b.tick(&[]);
    assert_eq!((net.states("work").len(), net.life.said("ran")), (1, String::new()));
    // The same person takes it back on a machine that has heard nothing yet.
    let c = net.machine("c");
    c.run(&["resume", "--remote", "origin", "--no-tick"]).expect(0);
    assert_eq!(net.git(&["for-each-ref", "refs/aynig/paused"]), "");
    a.tick(&[]).expect(0);
    b.tick(&[]).expect(0);
    assert_eq!((net.states("work")[0].as_str(), net.states("other")[0].as_str()), ("review", "done"));
    assert_eq!(net.life.said("messages").lines().count(), 1);
    // Sent again by who does not know that it was heard.
    send(&b).expect(0);
    b.tick(&["work"]).expect(0);
    assert_eq!(net.life.said("messages").lines().count(), 1);
    assert_eq!(inbox(&a), "");
}
