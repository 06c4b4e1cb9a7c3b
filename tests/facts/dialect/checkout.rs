use crate::dialect::support_of::*;
use crate::support::life::{Life, eventually};

/// A repository that stands on `work`, whose head asks for `build`.
fn checked_out(script: &str) -> Life {
    let life = with(&[("build", script)]);
    life.git(&["checkout", "-qb", "work"]);
    event(&life, "work", "build", "");
    life
}

const EDITS: &str =
    "echo run >>file; rm dir/other; mkdir new; echo n >new/file; git add -A; git commit -qm plain;";

/// K28, K29: forwarded commits arrive in the user's working tree, heartbeats too, beside what it has of its own.
#[test]
fn forwarded_commits_arrive_where_the_branch_is_checked_out() {
    let life = checked_out(&format!(
        "{EDITS} beat; echo up >\"$T/up\"; read x <\"$T/gate\"; echo 2 >>file; git commit -qam more; state next"
    ));
    life.write("mine", "untracked\n");
    life.write("staged", "s\n");
    life.git(&["add", "staged"]);
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["--json", "work"]);
    life.hear("up");
    // Git replaces a file by taking the old one away first: for a moment there is none.
    eventually("the heartbeat's files", || {
        let arrived = std::fs::read_to_string(life.path("file")).is_ok_and(|text| text == "one\nrun\n");
        (arrived && !life.path("dir").exists()).then_some(())
    });
    eventually("a settled index", || {
        (life.git(&["status", "--porcelain"]) == "A  staged\n?? mine").then_some(())
    });
    gate.open();
    tick.done().expect(0);
    assert_eq!(life.read("file"), "one\nrun\n2\n");
    assert_eq!(life.git(&["status", "--porcelain"]), "A  staged\n?? mine");
    assert_eq!(std::fs::read_dir(life.path(".git/aynig/checkouts")).unwrap().count(), 0);
}

/// K28, K29, K55: where local work is in the way nothing moves; the outcome is kept whole, and `retry` lands it.
#[test]
fn local_changes_in_the_way_keep_the_lease_and_retry_lands_the_outcome() {
    let life = checked_out(&format!("echo x >>\"$T/runs\"; {EDITS} state next 'aynig-ticket: 9'"));
    life.write("file", "mine\n");
    let ran = ticked(&life, &["--lease", "4s"]);
    assert_eq!(result(&ran), (Some(0), "lease-left"), "{ran:?}");
    assert!(note_with(&ran.1, "local changes are in the way").is_some(), "{ran:?}");
    assert_eq!(
        (life.read("file"), states(&life, "work")),
        ("mine\n".into(), vec!["working".into(), "build".into()])
    );
    let attempt = ran.1["attempt"].as_str().unwrap().to_owned();
    assert_eq!(life.trailer(&attempt, "aynig-state").as_deref(), Some("next"));
    let outcome = life.rev(&attempt);
    recovered(&life);
    life.run(&["retry", "work"]).expect(1);
    life.git(&["stash", "-q"]);
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(states(&life, "work"), ["next", "stalled", "working", "build"]);
    assert_eq!((life.read("file"), life.said("runs")), ("one\nrun\n".into(), "x\n".into()));
    assert_eq!(life.trailer("work", "aynig-ticket").as_deref(), Some("9"));
    // All that its command committed is in the branch's history.
    assert_eq!(life.rev("work^2"), outcome);
    assert_eq!((life.attempts(), life.git(&["status", "--porcelain"])), (vec![], String::new()));
    let shown = life.run(&["diff", "work", "--", "--stat"]).expect(0);
    assert!(shown.stdout.contains("new/file") && shown.stderr.is_empty(), "{shown:?}");
    life.repo.assert_sound();
}

/// K26: a command dates its commits as it likes; what is kept of its work is as young as its run.
#[test]
fn an_outcome_of_an_old_date_is_no_old_attempt() {
    let life = checked_out(&format!(
        "export GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_AUTHOR_DATE='2020-01-01T00:00:00Z'; {EDITS} beat; state next"
    ));
    life.write("file", "mine\n");
    let ran = ticked(&life, &["--lease", "4s"]);
    assert_eq!(result(&ran), (Some(0), "lease-left"), "{ran:?}");
    let attempt = ran.1["attempt"].as_str().unwrap().to_owned();
    assert_eq!(
        life.git(&["log", "-1", "--format=%cs %(trailers:valueonly,key=aynig-state)", &attempt]),
        "2020-01-01 next"
    );
    let attempts = life.attempts();
    // While its lease is the head no age counts.
    life.config("aynig.attemptExpire", "0");
    life.run(&["gc"]).expect(0);
    assert_eq!(life.attempts(), attempts);
    recovered(&life);
    life.config("aynig.attemptExpire", "90 days");
    life.run(&["gc"]).expect(0);
    assert_eq!(life.attempts(), attempts);
    life.config("aynig.attemptExpire", "0");
    life.run(&["gc"]).expect(0);
    assert_eq!(life.attempts(), Vec::<String>::new());
}

/// K29: local changes that are gone by the next look are in the way no more.
#[test]
fn what_was_in_the_way_is_tried_again_at_the_next_look() {
    let life = checked_out(&format!("{EDITS} state next; echo up >\"$T/up\"; read x <\"$T/gate\""));
    life.write("file", "mine\n");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["--json", "work"]);
    life.hear("up");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(states(&life, "work"), ["working", "build"]);
    life.git(&["stash", "-q"]);
    eventually("the outcome", || (states(&life, "work")[0] == "next").then_some(()));
    gate.open();
    let report = tick.done().expect(0).json();
    assert_eq!((report["result"].as_str(), report["attempt"].as_str()), (Some("own"), None), "{report}");
    assert_eq!(life.read("file"), "one\nrun\n");
}
