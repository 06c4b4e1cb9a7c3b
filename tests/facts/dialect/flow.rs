use crate::dialect::support_of::*;
use crate::support::life::{Life, eventually, lives};

/// K29, K10: the lease is as in the other dialect, with this one's prefix; the command's commit is the outcome.
#[test]
fn a_command_ends_its_run_by_a_commit_of_its_own() {
    let life = with(&[(
        "build",
        "cp \"$AYNIG_BODY_FILE\" made; env >\"$T/env\"; git add made; state review 'aynig-ticket: 8'",
    )]);
    let trigger = event(&life, "work", "build", "aynig-ticket: 7\naynig-log-level: debug\nIssue: 12\n");
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "own"));
    assert_eq!(states(&life, "work"), ["review", "working", "build"]);
    assert_eq!((life.show("work", "made"), life.rev("work~2")), ("the body".into(), trigger.clone()));
    let (report, lease) = (ran.1, life.trailers("work~1"));
    assert_eq!((report["next"].as_str(), report["exit"].as_str()), (Some("review"), Some("exit 0")));
    let expected = [
        ("aynig-hop", "1"),
        ("aynig-lease-seconds", "300"),
        ("aynig-log-level", "debug"),
        ("aynig-origin-state", "build"),
        ("aynig-run-id", report["run_id"].as_str().unwrap()),
        ("aynig-runner-id", &lease["aynig-runner-id"]),
        ("aynig-state", "working"),
        ("aynig-ticket", "7"),
        ("aynig-trigger", &trigger),
    ];
    assert_eq!(lease, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    let told = life.said("env");
    for line in [
        "LOG_LEVEL=debug",
        "AYNIG_LOG_LEVEL=debug",
        "ISSUE=12",
        "AYNIG_BODY=the body",
        "BODY=the body",
        "AYNIG_TRAILER_AYNIG_TICKET=7",
        "AYNIG_STATE=build",
        "AYNIG_HOP=1",
    ] {
        assert!(told.lines().any(|l| l == line), "{line}: {told}");
    }
    // K15: no trailer becomes a variable of ours.
    assert!(!told.contains("\nAYNIG_TICKET="), "{told}");
    assert_eq!((life.attempts(), life.git(&["for-each-ref", "refs/aynig/run"])), (vec![], String::new()));
    life.repo.assert_sound();
}

/// K29: heartbeats are forwarded while the command runs, and the runner adds nothing.
#[test]
fn heartbeats_are_forwarded_as_they_come_and_plain_commits_travel_below() {
    let life = asked(
        "echo one >>file; git commit -qam plain-1; echo $$ >\"$T/up\"; read x <\"$T/a\"\n\
         beat; read x <\"$T/b\"; plain plain-2; whole; read x <\"$T/c\"; echo two >>file; git commit -qam plain-3; state done",
    );
    let (mut a, mut b, mut c) = (life.gate("a"), life.gate("b"), life.gate("c"));
    let tick = life.start_tick(&["--json", "--lease", "10s", "work"]);
    life.hear("up");
    let lease = life.rev("work");
    a.open();
    eventually("the first", || (states(&life, "work").len() == 4).then_some(()));
    assert_eq!(states(&life, "work"), ["working", "-", "working", "build"]);
    let run = life.trailer(&lease, "aynig-run-id").unwrap();
    // A living run's ref follows (K44), and another runner finds it leased.
    assert_eq!(life.rev(&format!("refs/aynig/run/{run}")), life.rev("work"));
    life.tick(&["work"]).expect(3);
    b.open();
    eventually("the second", || (states(&life, "work").len() == 6).then_some(()));
    assert_eq!(life.trailers("work"), life.trailers(&lease));
    c.open();
    let report = tick.done().expect(0).json();
    assert_eq!(report["result"].as_str(), Some("own"));
    assert_eq!(states(&life, "work"), ["done", "-", "working", "-", "working", "-", "working", "build"]);
    assert_eq!(life.git(&["rev-list", "--merges", "work"]), "");
    assert_eq!(life.show("work", "file"), "one\none\ntwo");
    let by_runner = life.git(&["log", "--format=%s", "--grep=^aynig:", "work"]);
    assert_eq!(by_runner, "aynig: working on build");
    assert_eq!(life.attempts(), Vec::<String>::new());
    life.repo.assert_sound();
}

/// K29, K18: no process renews, and none stops it while its lease is the head.
#[test]
fn a_command_that_outlives_its_lease_goes_on_until_another_head_is_found() {
    let life = asked(
        "trap 'echo term >\"$T/term\"; exit 9' TERM; echo w >>file; echo $$ >\"$T/up\"; read x <\"$T/gate\"; state done",
    );
    let _gate = life.gate("gate");
    let tick = life.start_tick(&["--json", "--lease", "4s", "work"]);
    let pid = life.hear("up");
    // Until the lease has expired for every runner; a dry run says so.
    let expired = || {
        let done = life.tick(&["--dry-run", "--grace", "0", "--json", "work"]);
        (done.json()["result"].as_str() == Some("would-recover")).then_some(())
    };
    eventually("expiry", expired);
    assert_eq!(states(&life, "work"), ["working", "build"]);
    assert!(lives(&pid) && life.said("term").is_empty());
    let report = recovered(&life);
    assert_eq!(report["recovered"][0]["state"].as_str(), Some("build"));
    life.hear("term");
    let report = tick.done().expect(3).json();
    assert_eq!(report["result"].as_str(), Some("fenced"), "{report}");
    assert_eq!(states(&life, "work"), ["stalled", "working", "build"]);
    let attempt = report["attempt"].as_str().unwrap();
    assert_eq!(life.show(attempt, "file"), "one\nw");
    assert!(!lives(&pid));
}

/// K29: what an expired lease was never recovered from is still its command's.
#[test]
fn a_late_heartbeat_holds_the_branch_again() {
    let life = asked("echo $$ >\"$T/up\"; read x <\"$T/a\"; whole; read x <\"$T/b\"; state done");
    let (mut a, mut b) = (life.gate("a"), life.gate("b"));
    let tick = life.start_tick(&["--json", "--lease", "4s", "work"]);
    life.hear("up");
    let lease = life.rev("work");
    let dry = || life.tick(&["--dry-run", "--grace", "0", "--json", "work"]).json();
    eventually("expiry", || (dry()["result"].as_str() == Some("would-recover")).then_some(()));
    a.open();
    eventually("the heartbeat", || (life.rev("work") != lease).then_some(()));
    b.open();
    tick.done().expect(0);
    assert_eq!(states(&life, "work"), ["done", "working", "working", "build"]);
}

/// K29, K9: a command that does not say its hop can't run for ever.
#[test]
fn the_hop_limit_holds_for_commits_that_do_not_say_their_hop() {
    let life = with(&[
        ("ping", "echo x >>\"$T/runs\"; state pong"),
        ("pong", "echo x >>\"$T/runs\"; state ping 'aynig-hop: 0'"),
    ]);
    life.config("aynig.maxHops", "5");
    event(&life, "work", "ping", "");
    life.run(&["run", "work"]).expect(0);
    assert_eq!(life.said("runs").lines().count(), 5);
    let report = life.tick(&["--json", "work"]).expect(0).json();
    let told = (report["reason"].as_str(), report["hop"].as_u64(), report["max_hops"].as_u64());
    assert_eq!(told, (Some("hop-limit"), Some(5), Some(5)));
    let status: serde_json::Value =
        serde_json::from_str(&life.run(&["status", "--json", "work"]).stdout).unwrap();
    assert_eq!((status["hop"].as_u64(), status["dialect"].as_str()), (Some(5), Some("aynig")));
    // A person's own event begins anew.
    life.run(&["set-state", "ping", "-b", "work"]).expect(0);
    assert_eq!(life.trailer("work", "aynig-state").as_deref(), Some("ping"));
    life.tick(&["work"]).expect(0);
    assert_eq!(life.said("runs").lines().count(), 6);
}

/// K29: the two may follow each other, each by its own head.
#[test]
fn a_commit_with_both_states_is_dwp() {
    let life = with(&[("build", "echo 'SET_STATE {\"state\":\"review\"}'")]);
    life.event_at("work", "go\n\naynig-state: nothing\ndwp-state: build\n", None);
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "advanced"));
    assert_eq!(life.trailer("work", "dwp-state").as_deref(), Some("review"));
    assert_eq!(life.trailer("work~1", "dwp-origin-state").as_deref(), Some("build"));
}

/// K29, K37: the same in every kind of repository.
#[test]
fn it_is_the_same_in_every_kind_of_repository() {
    use crate::support::Repo;
    for kind in [Repo::build().sha256(), Repo::build().reftable()] {
        if kind.create().is_none() {
            continue;
        }
        let script = format!(
            "{COMMIT}echo w >>file; git commit -qam plain; beat; git aynig set-working >/dev/null; state done"
        );
        let life = Life::of(kind, &[("build", &script)]);
        event(&life, "work", "build", "");
        let ran = ticked(&life, &[]);
        assert_eq!(result(&ran), (Some(0), "own"), "{ran:?}");
        assert_eq!(states(&life, "work"), ["done", "working", "working", "-", "working", "build"]);
        assert_eq!(life.attempts(), Vec::<String>::new());
        life.repo.assert_sound();
    }
}

/// K29, K37: in a bare repository too, where no user has anything checked out.
#[test]
fn a_bare_repository_forwards_as_well() {
    let life = asked("echo w >>file; git commit -qam plain; git aynig set-working >/dev/null; state done");
    let bare = life.repo.home().join("bare.git");
    let bare = bare.to_str().unwrap();
    life.git(&["clone", "-q", "--bare", ".", bare]);
    life.run(&["-C", bare, "tick", "work"]).expect(0);
    assert_eq!(life.git(&["-C", bare, "show", "work:file"]), "one\nw");
    let subjects = life.git(&["-C", bare, "log", "--format=%s", "main..work"]);
    assert_eq!(subjects, "to done\naynig: working on build\nplain\naynig: working on build\ngo");
    assert_eq!(life.git(&["-C", bare, "for-each-ref", "refs/aynig"]), "");
}

/// K30: the kernel contract's way to say whose branch it is; a remote that is not configured is none
#[test]
fn a_head_that_pins_a_configured_remote_is_judged_there() {
    let life = asked("state done");
    let server = life.repo.home().join("server.git");
    life.git(&["init", "-q", "--bare", server.to_str().unwrap()]);
    life.git(&["remote", "add", "far", server.to_str().unwrap()]);
    for (remote, there) in [("nowhere", false), ("far", true)] {
        event(&life, "pinned", "build", &format!("aynig-remote: {remote}\n"));
        let head = life.rev("pinned");
        life.git(&["push", "-q", "far", "+pinned"]);
        life.tick(&["pinned"]).expect(0);
        assert_eq!(life.rev("pinned") == head, there, "{remote}: the local branch");
        let far = life.git(&["ls-remote", "far", "refs/heads/pinned"]);
        assert_eq!(!far.starts_with(&head), there, "{remote}: the remote's");
    }
}
