//! `send` and `inbox`: what is said to a branch, who reads it, and what is refused.

use super::DONE;
use crate::support::Repo;
use crate::support::life::{Life, Running, eventually};
use nix::sys::signal::Signal;

/// K46: one commit and one ref, which Git finds sound, in every kind of repository.
#[test]
fn a_message_is_a_commit_that_waits_for_its_branch() {
    for kind in [Repo::build(), Repo::build().sha256(), Repo::build().reftable()] {
        let Some(repo) = kind.create() else { continue };
        drop(repo);
        let life = Life::of(kind, &[("build", DONE)]);
        let head = life.event("feature/x", "build", "");
        let sent =
            life.run(&["send", "feature/x", "-m", "One.", "-m", "Two.", "--trailer", "ticket: 7"]).expect(0);
        let [name] = &life.said_in("inbox")[..] else { panic!("{sent:?}") };
        let id = name.strip_prefix("feature/x/message/").unwrap();
        assert_eq!(sent.stdout, format!("feature/x: message {id} sent\n"));
        let commit = life.rev(&format!("refs/aynig/inbox/{name}"));
        let trailers = life.trailers(&commit);
        let said = |key: &str| trailers.get(key).map(String::as_str);
        assert_eq!(
            (said("dwp-message"), said("dwp-kind"), said("ticket")),
            (Some(id), Some("message"), Some("7"))
        );
        assert_eq!((said("dwp-hop"), said("dwp-seen")), (Some("0"), Some(&*head)));
        assert_eq!(said("dwp-from"), Some("person ada@example.com"));
        assert!(life.body(&commit).contains("\n\nOne.\n\nTwo.\n\n"), "{}", life.body(&commit));
        assert_eq!(life.git(&["show", "-s", "--format=%P%T", &commit]), life.repo.empty_tree());
        life.repo.assert_sound();
        // It is read as it was written, and its branch has not moved.
        let [read] = &life.run(&["inbox", "feature/x", "--json"]).expect(0).objects("aynig.message/1")[..]
        else {
            panic!()
        };
        assert_eq!((&read["id"], &read["text"]), (&id.into(), &"One.\n\nTwo.".into()));
        assert_eq!(read["trailers"][0]["value"], "7");
        assert_eq!(life.rev("refs/heads/feature/x"), head);
        let text = life.run(&["inbox", "feature/x"]).expect(0).stdout;
        assert!(
            text.starts_with(id)
                && text.ends_with("  from person ada@example.com\n    One.\n    \n    Two.\n"),
            "{text}"
        );
    }
}

/// K46, K47: what a head takes none of waits, and the sender is told.
#[test]
fn a_message_that_no_head_takes_is_told_to_its_sender() {
    let life = Life::new(&[("rework", DONE)]);
    // What is still to run may take it afterwards.
    life.event("work", "rework", "");
    assert_eq!(life.run(&["send", "work", "-m", "Early."]).expect(0).stderr, "");
    life.event("work", "rest", "");
    let said = life.run(&["send", "work", "-m", "Go on."]).expect(0);
    assert!(said.stderr.contains("the head of 'work' takes no 'message' (dwp-accepts)"), "{said:?}");
    assert_eq!(life.run(&["-q", "send", "work", "-m", "Go on."]).expect(0).stderr, "");
    let hint = said.stderr.lines().find_map(|line| line.strip_prefix("hint: git aynig ")).unwrap();
    let call =
        hint.replace('\'', "").replace("work --trailer dwp-accepts: ", "work\n--trailer\ndwp-accepts: ");
    let call = call.replace("=<state>", "=rework").replace("<state>", "rest");
    let call: Vec<&str> = call
        .split('\n')
        .flat_map(|part| match part.starts_with("dwp-") {
            true => vec![part],
            false => part.split(' ').collect(),
        })
        .collect();
    life.run(&call).expect(0);
    assert_eq!(life.run(&["send", "work", "-m", "Once more."]).expect(0).stderr, "");
    life.run(&["run", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), life.said_in("inbox").len()), ("done", 0));
}

/// K46: work that is handed over is the message's parent, and its tree.
#[test]
fn an_attachment_is_the_messages_only_parent() {
    let life = Life::new(&[]);
    life.git(&["branch", "work"]);
    life.event("topic", "done", "");
    let work = life.rev("topic");
    let sent = life.run(&["send", "work", "--attach", "topic", "--kind", "handoff", "-m", "Mine.", "--json"]);
    let [sent] = &sent.expect(0).objects("aynig.message/1")[..] else { panic!() };
    assert_eq!(
        (&sent["attached"], &sent["seen"], &sent["sent"]),
        (&work.as_str().into(), &().into(), &true.into())
    );
    let commit = sent["commit"].as_str().unwrap();
    assert_eq!(life.git(&["show", "-s", "--format=%P", commit]), work);
    assert_eq!(life.rev(&format!("{commit}^{{tree}}")), life.rev("topic^{tree}"));
    life.run(&["send", "work", "--attach", "nowhere", "-m", "x"]).expect(129);
}

/// K46, K46a: the id is a message's identity, wherever it is by now.
#[test]
fn a_message_that_is_sent_again_under_its_id_is_there_once() {
    let life = Life::new(&[]);
    life.git(&["branch", "work"]);
    let id = "01890000-0000-7000-8000-000000000001";
    let again = |text: &str| life.run(&["send", "work", "--id", id, "-m", text]).expect(0).stdout;
    assert_eq!(again("first"), format!("work: message {id} sent\n"));
    assert_eq!(again("second"), format!("work: message {id} was sent already, and waits\n"));
    let name = format!("refs/aynig/inbox/work/message/{id}");
    let commit = life.rev(&name);
    assert!(life.body(&commit).contains("first"));
    life.git(&["update-ref", &format!("refs/aynig/heard/{id}"), &commit]);
    life.git(&["update-ref", "-d", &name]);
    assert_eq!(again("third"), format!("work: message {id} was sent already, and heard\n"));
    assert_eq!(life.said_in("inbox"), Vec::<String>::new());
    // Two at once: each says that it is there.
    let other = "01890000-0000-7000-8000-000000000002";
    let start = || life.start(&["send", "work", "--id", other, "-m", "x", "--json"]);
    let both: Vec<Running> = (0..4).map(|_| start()).collect();
    let sent = both.into_iter().filter(|_| true).map(|one| one.done().expect(0).json()["sent"] == true);
    assert_eq!(sent.filter(|sent| *sent).count(), 1);
}

/// K46: an id is one message's: to another branch the second would be lost, so it is refused by name.
#[test]
fn an_id_that_was_sent_to_another_branch_is_refused_by_name() {
    let life = Life::new(&[]);
    let id = "01890000-0000-7000-8000-000000000001";
    let accepts = "dwp-accepts: message=rework\n";
    let [first, second] = ["one", "two"].map(|branch| life.event(branch, "review", accepts));
    let send = |branch: &str| life.run(&["send", branch, "--id", id, "-m", branch, "--no-tick"]);
    // As one that was quicker than the look for it: both wait.
    send("two").expect(0);
    let name = format!("refs/aynig/inbox/two/message/{id}");
    let raced = life.rev(&name);
    life.git(&["update-ref", "-d", &name]);
    send("one").expect(0);
    let refused = |at: &str| {
        let said = send("two").expect(2).stderr;
        assert!(said.contains(&format!("message {id} was sent to 'one'")), "{at}: {said}");
    };
    refused("waiting");
    life.tick(&["one"]);
    assert_eq!((life.state("one").as_str(), life.rev("one^1")), ("rework", first));
    refused("heard");
    life.git(&["update-ref", &name, &raced]);
    let (_, report) = life.report(&["two"]);
    let told = "it has the id of a message that 'one' has heard";
    assert!(report.to_string().contains(told), "{report}");
    assert_eq!((life.rev("two"), life.try_rev(&name)), (second, Some(raced)));
}

/// K46, K4a: what cannot be sent changes nothing, and says what mends it.
#[test]
fn what_is_no_message_is_refused_by_name() {
    let life = Life::new(&[]);
    life.git(&["branch", "work"]);
    let refused = |args: &[&str], code: i32, said: &str| {
        let done = life.run(&[&["send"], args].concat()).expect(code);
        assert!(done.stderr.contains(said), "{done:?}");
    };
    refused(&["nowhere", "-m", "x"], 2, "branch 'nowhere' does not exist");
    refused(&["work", "-m", "x", "--kind", "answer"], 2, "hint: git aynig answer");
    refused(&["work", "-m", "x", "--kind", "../heads"], 129, "kind '../heads' is not usable");
    refused(&["work", "-m", "x", "--id", "7"], 129, "'7' is not usable");
    for key in ["dwp-message", "DWP-From", "dwp-heard", "aynig-state", "dwp-hop"] {
        refused(&["work", "-m", "x", "--trailer", &format!("{key}: y")], 129, "set by the runner alone");
    }
    let text = life.shared().join("text");
    std::fs::write(&text, "x".repeat((1 << 20) + 1)).unwrap();
    refused(&["work", "-F", text.to_str().unwrap()], 129, "more than 1 MiB");
    assert_eq!(life.said_in("inbox"), Vec::<String>::new());
    std::fs::write(&text, "x".repeat(1 << 20)).unwrap();
    life.run(&["send", "work", "-F", text.to_str().unwrap()]).expect(0);
}

/// K46, K9: what a run sends says so, and counts as one hop more.
#[test]
fn a_run_says_that_it_is_one_and_how_far_it_is() {
    let life = Life::new(&[("build", &format!("git aynig send main -m hi && {DONE}"))]);
    life.event("work", "build", "dwp-hop: 4\n");
    life.tick(&["work"]).expect(0);
    let [name] = &life.said_in("inbox")[..] else { panic!() };
    let trailers = life.trailers(&format!("refs/aynig/inbox/{name}"));
    assert_eq!(trailers["dwp-hop"], "6");
    let run = life.trailer("refs/heads/work", "dwp-run-id").unwrap();
    assert_eq!(trailers["dwp-from"], format!("run {run}"));
}

/// K48: exactly this branch's messages, in the order of their ids; what cannot be read hides no other.
#[test]
fn an_inbox_is_one_branchs_and_shows_what_it_cannot_read() {
    let life = Life::new(&[]);
    for branch in ["work", "work2", "other"] {
        life.git(&["branch", branch]);
    }
    let send = |branch: &str, id: u32, kind: &str| {
        let id = format!("01890000-0000-7000-8000-{id:012}");
        life.run(&["send", branch, "--id", &id, "--kind", kind, "-m", branch]).expect(0);
        life.rev(&format!("refs/aynig/inbox/{branch}/{kind}/{id}"))
    };
    send("work2", 1, "message");
    send("work", 3, "message");
    let first = send("work", 2, "zeta");
    // Deeper names are other branches'; others are no branch's; a text that steers a terminal is escaped.
    let id = "01890000-0000-7000-8000-000000000009";
    for name in [format!("work/deeper/message/{id}"), "work/message/nothing".into(), "work/Message/x".into()]
    {
        life.git(&["update-ref", &format!("refs/aynig/inbox/{name}"), &first]);
    }
    life.git(&["update-ref", &format!("refs/aynig/inbox/work/message/{id}"), &life.rev("main")]);
    let found = life.run(&["inbox", "work", "--json"]).expect(0).objects("aynig.message/1");
    let ids: Vec<&str> = found.iter().map(|one| &one["id"].as_str().unwrap()[24..]).collect();
    assert_eq!(ids, ["000000000002", "000000000003", "000000000009"]);
    assert!(found[2]["problem"].as_str().unwrap().contains("dwp-message") && found[0]["problem"].is_null());
    let kinds = life.run(&["inbox", "work", "--kind", "zeta", "--json"]).expect(0);
    assert_eq!(kinds.objects("aynig.message/1").len(), 1);
    let evil = life.run(&["send", "other", "-m", "a\u{1b}[2Jb\u{202e}c"]).expect(0);
    assert!(evil.stdout.starts_with("other: message "));
    let text = life.run(&["inbox", "other"]).expect(0).stdout;
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    life.run(&["inbox", "nowhere"]).expect(128);
}

/// K48: a command that follows its inbox hears at once, and a signal ends it.
#[test]
fn a_run_that_follows_its_inbox_hears_while_it_works() {
    let follow = "git aynig inbox --follow --json >\"$T/heard\" & p=$!\n\
                  while ! grep -q interrupt \"$T/heard\"; do sleep 0.02; done\n\
                  kill -TERM $p; wait $p; echo $? >\"$T/code\"\n";
    let life = Life::new(&[("build", &format!("{follow}{DONE}"))]);
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    eventually("it follows", || life.shared().join("heard").exists().then_some(()));
    life.run(&["send", "work", "-m", "first"]).expect(0);
    eventually("it is heard", || life.said("heard").contains("first").then_some(()));
    life.run(&["send", "work", "--kind", "interrupt", "-m", "stop"]).expect(0);
    tick.done().expect(0);
    assert_eq!((life.said("heard").lines().count(), life.said("code").trim()), (2, "143"));
    // What was read still waits.
    assert_eq!(life.said_in("inbox").len(), 2);
    let outside = life.start(&["inbox", "work", "--follow"]);
    eventually("it is at work", || crate::support::life::lives(&outside.pid().to_string()).then_some(()));
    std::thread::yield_now();
    outside.signal(Signal::SIGKILL);
}

/// K48: only a run takes.
#[test]
fn nobody_takes_outside_of_a_run() {
    let life = Life::new(&[]);
    life.git(&["branch", "work"]);
    let id = "01890000-0000-7000-8000-000000000001";
    life.run(&["send", "work", "--id", id, "-m", "x"]).expect(0);
    let said = life.run(&["inbox", "--take", id]).expect(128).stderr;
    assert!(said.contains("no run of this repository is under way here"), "{said}");
}

const TAKE: &str = "id=$(git aynig inbox --json | sed 's/.*\"id\":\"\\([^\"]*\\).*/\\1/')\n\
                    git aynig inbox --take \"$id\" >\"$T/took\" || exit 9\n";

/// K48: what a run took goes with its outcome, however that is written, and stays where the run fails.
#[test]
fn what_a_run_took_goes_with_its_outcome_and_with_nothing_else() {
    let life = Life::new(&[
        ("build", &format!("{TAKE}echo new >made; {DONE}")),
        ("self", &format!("{TAKE}git aynig set-state done -m mine")),
        ("fail", &format!("{TAKE}exit 3")),
    ]);
    for (n, state) in ["build", "self", "fail"].into_iter().enumerate() {
        life.event(state, state, "");
        let id = format!("01890000-0000-7000-8000-{n:012}");
        life.run(&["send", state, "--id", &id, "-m", "hear"]).expect(0);
        let waits = format!("refs/aynig/inbox/{state}/message/{id}");
        let message = life.rev(&waits);
        life.tick(&[state]);
        assert_eq!(life.said("took"), format!("{state}: message {id} taken\n"));
        let (head, heard) = (format!("refs/heads/{state}"), format!("refs/aynig/heard/{id}"));
        if state == "fail" {
            assert_eq!((life.state(state).as_str(), life.try_rev(&waits)), ("stalled", Some(message)));
            assert_eq!(life.try_rev(&heard), None);
            continue;
        }
        assert_eq!(life.state(state), "done");
        let parents = life.git(&["show", "-s", "--format=%P", &head]);
        assert_eq!(parents.split(' ').skip(1).collect::<Vec<_>>(), [&*message], "{state}");
        assert_eq!((life.try_rev(&waits), life.try_rev(&heard)), (None, Some(message)));
    }
    assert_eq!(life.show("refs/heads/build", "made"), "new");
    life.repo.assert_sound();
}

/// K39, K46: a message that is pushed counts as its branch, which is dispatched with what it brings.
#[test]
fn a_pushed_message_is_delivered_by_the_server() {
    let life = Life::new(&[("rework", &format!("cat \"$AYNIG_MESSAGES\" >heard; {DONE}"))]);
    let server = Repo::build().bare().create().unwrap();
    let url = format!("file://{}", server.path().display());
    life.event("work", "review", "dwp-accepts: message=rework\n");
    life.event("other", "review", "dwp-accepts: message=rework\n");
    life.git(&["push", "-q", &url, "main", "work", "other"]);
    server.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/main"]);
    let mut install = server.command(crate::support::life::BIN);
    assert!(install.args(["hooks", "install"]).output().unwrap().status.success());
    for branch in ["work", "other"] {
        life.run(&["send", branch, "--no-tick", "--kind", if branch == "work" { "message" } else { "note" }])
            .expect(0);
    }
    let bin = std::path::Path::new(crate::support::life::BIN).parent().unwrap().display();
    let mut push = life.repo.command("git");
    push.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap()));
    let receive = format!("--receive-pack=env HOME='{}' git-receive-pack", server.home().display());
    let pushed =
        push.args(["push", "-q", &receive, &url, "refs/aynig/inbox/*:refs/aynig/inbox/*"]).output().unwrap();
    let said = String::from_utf8_lossy(&pushed.stderr).into_owned();
    assert!(pushed.status.success() && said.contains("aynig: rework dispatched on work"), "{said}");
    assert!(!said.contains("other"), "{said}");
    let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
    eventually("done", || (server.git(&["log", "-1", format, "work"]) == "done").then_some(()));
    assert!(server.git(&["show", "work:heard"]).contains("\"kind\":\"message\""));
    server.assert_sound();
}

/// K46, K53: what waits for no branch is named, and so is a program for notices that is not there.
#[test]
fn doctor_names_an_inbox_without_a_branch_and_a_missing_notify_program() {
    let life = Life::new(&[("build", DONE)]);
    life.event("work", "review", "");
    life.run(&["send", "work", "-m", "Hello."]).expect(0);
    let doctor = || life.run(&["doctor", "--json"]).stdout;
    assert!(!doctor().contains("which does not exist") && !doctor().contains("notify"), "{}", doctor());
    life.git(&["update-ref", "-d", "refs/heads/work"]);
    life.config("aynig.notify", "no-such-program --loud");
    let said = doctor();
    assert!(said.contains("a message waits for 'refs/heads/work', which does not exist"), "{said}");
    assert!(
        said.contains("'no-such-program', which 'aynig.notify' names, is no program that is found"),
        "{said}"
    );
}
