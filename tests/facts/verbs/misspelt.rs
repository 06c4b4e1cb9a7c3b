//! A state that nothing answers because of a letter, and a trailer that is none: every user who looks hears it.

use crate::support::flow::{head, repo};
use crate::support::world::World;
use crate::verbs::rig::Rig;

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

/// K6, K56
#[test]
fn a_misspelt_state_is_asked_about_wherever_somebody_looks() {
    let world = World::any();
    let dir = repo(&world, &[("deploy", DONE)]);
    let asks = "no command answers 'depoly': did you mean 'deploy'?";
    let said = world.aynig(&dir, &["set-state", "depoly", "-b", "work"]).expect(0);
    assert!(said.err.contains(asks), "{}", said.err);
    let before = head(&world, &dir, "work");
    for args in [&["tick"][..], &["tick", "work"], &["run"]] {
        let said = world.aynig(&dir, args).expect(0);
        assert!(said.err.contains(asks), "{args:?}: {}{}", said.out, said.err);
    }
    assert_eq!(head(&world, &dir, "work"), before, "nothing is guessed");
    let said = world.aynig(&dir, &["status"]).expect(0);
    assert!(said.out.contains("waits for a person; did you mean 'deploy'?"), "{}", said.out);
    let said = world.aynig(&dir, &["doctor"]);
    assert!(
        said.out.contains("work: no command answers its state 'depoly': did you mean 'deploy'?"),
        "{}",
        said.out
    );
    assert!(said.out.contains("git aynig set-state deploy -b work"), "{}", said.out);
    // States that have a meaning, and those that are far from all others, are no mistake.
    for state in ["done", "waiting", "failed", "review"] {
        let said = world.aynig(&dir, &["set-state", state, "-b", "other"]).expect(0);
        let ticked = world.aynig(&dir, &["tick", "other"]).expect(0);
        assert!(!(said.err + &ticked.err).contains("did you mean"), "{state}");
    }
}

/// K6, K56: what a command says of its own work is no slip of its name.
#[test]
fn a_state_that_a_command_comes_to_is_not_taken_for_its_own() {
    let world = World::any();
    let drafts = "echo 'SET_STATE {\"state\":\"drafted\",\"trailers\":[\"dwp-accepts: message=draft\"]}'";
    let dir = repo(&world, &[("draft", drafts), ("slip", "echo 'SET_STATE {\"state\":\"dratf\"}'")]);
    world.aynig(&dir, &["set-state", "draft", "-b", "work"]).expect(0);
    let mut all = String::new();
    for args in [&["tick", "work"][..], &["run"], &["status"], &["status", "--waiting"], &["doctor"]] {
        let said = world.aynig(&dir, args);
        all += &(said.out + &said.err);
    }
    assert!(
        all.contains("drafted") && !all.contains("did you mean") && !all.contains("set-state draft"),
        "{all}"
    );
    // Nor is a state that accepts messages, whoever set it.
    let waits = ["set-state", "drafted", "-b", "waits", "--trailer", "dwp-accepts: message=draft"];
    let said = world.aynig(&dir, &waits).expect(0);
    let ticked = world.aynig(&dir, &["tick", "waits"]).expect(0);
    assert!(!(said.err + &ticked.err).contains("did you mean"));
    // Another command's is.
    world.aynig(&dir, &["set-state", "slip", "-b", "other"]).expect(0);
    let said = world.aynig(&dir, &["tick", "other"]).expect(0);
    assert_eq!(
        said.err.matches("no command answers 'dratf': did you mean 'draft'?").count(),
        1,
        "{}",
        said.err
    );
    let said = world.aynig(&dir, &["status", "other"]).expect(0);
    assert!(said.out.contains("did you mean 'draft'?"), "{}", said.out);
    // And so is a person's, whichever branch a look at all of them comes to first.
    for by_hand in ["a", "z"] {
        world.aynig(&dir, &["set-state", "drafted", "-b", by_hand]).expect(0);
    }
    let all = world.aynig(&dir, &["run"]).expect(0).err;
    let asked: Vec<_> = all.lines().filter(|line| line.contains("'drafted': did you mean")).collect();
    assert_eq!(asked.len(), 2, "{all}");
    assert!(asked.iter().all(|line| !line.starts_with("work")), "{all}");
}

/// K13, K56: the tick that comes to a state says of it what the next one would.
#[test]
fn a_tick_says_of_its_outcome_what_the_next_tick_says_of_the_head() {
    let world = World::any();
    let to = |state: &str| format!("echo 'SET_STATE {{\"state\":\"{state}\"}}'");
    let own = "git aynig set-state dratf";
    let dir = repo(
        &world,
        &[
            ("draft", DONE),
            ("slip", &to("dratf")),
            ("own", own),
            ("new", &to("drafy")),
            ("off", &to("drafx")),
            ("drafx", ""),
        ],
    );
    world.git(&dir, &["update-index", "--chmod=-x", ".aynig/command/drafx"]);
    world.git(&dir, &["commit", "-qm", "off"]);
    std::fs::write(dir.join(".aynig/command/drafy"), "#!/bin/sh\n").unwrap();
    for (state, says) in [
        ("slip", Some("no command answers 'dratf': did you mean 'draft'?")),
        ("own", Some("no command answers 'dratf': did you mean 'draft'?")),
        ("new", Some(".aynig/command/drafy is in the working tree")),
        ("off", None),
        ("draft", None),
    ] {
        world.aynig(&dir, &["set-state", state, "-b", state]).expect(0);
        let said = world.aynig(&dir, &["tick", state]).expect(0);
        let asks = said.err.contains("did you mean") || said.err.contains("in the working tree");
        assert_eq!(asks, says.is_some(), "{state}: {}", said.err);
        assert!(says.is_none_or(|says| said.err.contains(says)), "{state}: {}", said.err);
    }
    // Where it is yet to be said which commands count, one that is there is not called missing.
    let untold = dir.with_file_name("untold");
    world.git(&dir, &["clone", "-q", ".", untold.to_str().unwrap()]);
    for (state, asks) in [("draft", false), ("drafx", false), ("drafq", true)] {
        let said = world.aynig(&untold, &["set-state", state, "-b", "work"]).expect(0);
        assert_eq!(said.err.contains("did you mean"), asks, "{}", said.err);
        assert!(!said.err.contains("in the working tree"), "{}", said.err);
    }
    // One that is looked at again is asked about once.
    world.aynig(&dir, &["set-state", "slip", "-b", "again"]).expect(0);
    let said = world.aynig(&dir, &["run", "again"]).expect(0);
    assert_eq!(said.err.matches("did you mean").count(), 1, "{}", said.err);
}

/// K6, K61: a choice goes on with what a command said, which is no slip there either.
#[test]
fn a_state_that_was_chosen_is_not_taken_for_its_commands() {
    let world = World::any();
    let dir = repo(&world, &[("draft", "echo 'SET_STATE {\"state\":\"drafted\"}'")]);
    world.aynig(&dir, &["set-state", "draft", "-b", "work"]).expect(0);
    world.aynig(&dir, &["fan", "work", "-n", "2"]).expect(0);
    world.aynig(&dir, &["run"]).expect(0);
    let mut all = String::new();
    for args in [&["choose", "work-2"][..], &["run"], &["status"]] {
        let said = world.aynig(&dir, args).expect(0);
        all += &(said.out + &said.err);
    }
    assert!(all.contains("drafted") && !all.contains("did you mean"), "{all}");
}

/// K1, K6, K38, K39
#[test]
fn what_is_nearly_a_state_event_is_said_by_hooks_tick_status_and_doctor() {
    for (message, says) in [
        (
            "go\n\ndwp-sate: build",
            "'dwp-sate' is not the trailer that names a state: did you mean 'dwp-state'?",
        ),
        ("go\n\nDWP-State: build", "'DWP-State' is not the trailer"),
        ("go\n\ndwp-state: build\n\nthanks", "'dwp-state: build' is not in the message's last paragraph"),
    ] {
        let world = World::any();
        let dir = repo(&world, &[("build", DONE)]);
        world.aynig(&dir, &["hooks", "install"]).expect(0);
        world.git(&dir, &["checkout", "-q", "-b", "work"]);
        let said = world.try_git(&dir, &["commit", "-q", "--allow-empty", "-m", message]).expect(0);
        assert!(said.err.contains(says), "post-commit: {}", said.err);
        for args in [&["tick", "work"][..], &["tick"], &["run"]] {
            let said = world.aynig(&dir, args).expect(0);
            assert!(said.err.contains(says), "{args:?}: {}{}", said.out, said.err);
        }
        for args in [&["status", "work"][..], &["status"]] {
            let said = world.aynig(&dir, args).expect(0);
            assert!(said.out.contains(says), "{args:?}: {}{}", said.out, said.err);
        }
        // Programs ask for state events, and this is none.
        for form in ["--porcelain", "--json"] {
            assert_eq!(world.aynig(&dir, &["status", form]).expect(0).out, "");
        }
        let said = world.aynig(&dir, &["doctor"]);
        assert!(said.out.contains("work: its head"), "doctor: {}", said.out);
        // The pusher hears it too; a plain commit says nothing.
        let server = world.init("server");
        world.git(&server, &["config", "receive.denyCurrentBranch", "ignore"]);
        world.aynig(&server, &["hooks", "install"]).expect(0);
        let said = world.try_git(&dir, &["push", server.to_str().unwrap(), "work"]).expect(0);
        assert!(said.err.contains(&format!("aynig: work: {says}")), "push: {}", said.err);
        let said = world.try_git(&dir, &["commit", "-q", "--allow-empty", "-m", "plain: words"]).expect(0);
        assert_eq!(said.err, "");
        let said = world.try_git(&dir, &["push", server.to_str().unwrap(), "work"]).expect(0);
        assert!(!said.err.contains("aynig:"), "push: {}", said.err);
    }
}

/// K6, K38, K39, K56
#[test]
fn hooks_ask_about_a_misspelt_state() {
    let world = World::any();
    let dir = repo(&world, &[("build", DONE)]);
    world.aynig(&dir, &["hooks", "install"]).expect(0);
    world.git(&dir, &["checkout", "-q", "-b", "work"]);
    let said =
        world.try_git(&dir, &["commit", "-q", "--allow-empty", "-m", "go\n\ndwp-state: biuld"]).expect(0);
    assert!(said.err.contains("no command answers 'biuld': did you mean 'build'?"), "{}", said.err);
    let server = world.init("server");
    world.git(&server, &["config", "receive.denyCurrentBranch", "ignore"]);
    world.git(&dir, &["push", "-q", server.to_str().unwrap(), "main"]);
    world.aynig(&server, &["hooks", "install"]).expect(0);
    world.aynig(&server, &["trust", "--ref", "main"]).expect(0);
    let said = world.try_git(&dir, &["push", server.to_str().unwrap(), "work"]).expect(0);
    let says = "aynig: work: no command answers 'biuld': did you mean 'build'?";
    assert!(said.err.contains(says), "{}", said.err);
}

/// K4, K13: what no runner can have as its role answers nothing
#[test]
fn commands_of_a_role_that_cannot_be_are_named() {
    use std::os::unix::ffi::OsStrExt;
    let rig = Rig::new();
    for role in [&b"two words"[..], b"r\xff"] {
        let folder = rig.dir.join(".aynig/roles").join(std::ffi::OsStr::from_bytes(role)).join("command");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(rig.dir.join(".aynig/command/ok"), folder.join("ok")).unwrap();
    }
    rig.git(&["add", "-A"]);
    rig.git(&["commit", "-q", "-m", "roles"]);
    let told = rig.aynig(&["doctor"]).expect(0).out;
    for role in ["two words", "r\u{fffd}"] {
        let words = format!(".aynig/roles/{role}/command/ok answers no state: only letters");
        assert!(told.contains(&words), "{role}: {told}");
    }
    assert!(told.contains("command/fail, command/ok, command/wait in refs/heads/main"), "{told}");
}
