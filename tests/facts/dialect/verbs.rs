use crate::dialect::support_of::*;
use crate::support::life::Life;
use serde_json::Value;

fn json(life: &Life, args: &[&str]) -> Value {
    serde_json::from_str(life.run(args).expect(0).stdout.lines().next().unwrap()).unwrap()
}

/// K29, K22: inside a run it writes this dialect's trailers, and takes what the slot holds.
#[test]
fn set_state_inside_a_run_is_the_outcome() {
    let life = with(&[(
        "build",
        "echo w >>file; git commit -qam plain; echo n >new; git aynig set-state done -m finished --keep-trailers --trailer 'aynig-extra: e'",
    )]);
    let trigger = event(&life, "work", "build", "aynig-ticket: 7\n");
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "own"), "{ran:?}");
    assert_eq!(states(&life, "work"), ["done", "-", "working", "build"]);
    let run = ran.1["run_id"].as_str().unwrap();
    let expected = [
        ("aynig-extra", "e"),
        ("aynig-hop", "1"),
        ("aynig-origin-state", "build"),
        ("aynig-run-id", run),
        ("aynig-state", "done"),
        ("aynig-ticket", "7"),
        ("aynig-trigger", &trigger),
    ];
    assert_eq!(life.trailers("work"), expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    assert_eq!((life.show("work", "file"), life.show("work", "new")), ("one\nw".into(), "n".into()));
    assert_eq!((life.attempts(), life.git(&["rev-list", "--merges", "work"])), (vec![], String::new()));
}

/// K29: `set-working` inside a run is a heartbeat that later commits stand on.
#[test]
fn set_working_inside_a_run_is_a_heartbeat() {
    let life = asked(
        "echo w >>file; git aynig set-working >/dev/null; plain p; git aynig set-working >/dev/null\n\
         git diff --exit-code --cached >/dev/null; git commit -qam more; state done",
    );
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "own"), "{ran:?}");
    assert_eq!(states(&life, "work"), ["done", "-", "working", "-", "working", "working", "build"]);
    assert_eq!(life.trailers("work~2"), life.trailers("work~5"));
    assert_eq!((life.show("work", "file"), life.attempts()), ("one\nw".into(), vec![]));
}

/// K29, K9: on another branch it is that branch's dialect, and carries the hop.
#[test]
fn set_state_elsewhere_is_of_that_branchs_dialect() {
    let life = asked(
        "git aynig set-state b -b new; git aynig set-state c -b old; git aynig set-state d -b kept; state done",
    );
    life.event("old", "x", "");
    event(&life, "kept", "y", "");
    life.git(&["branch", "-q", "plain", "kept"]);
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "own"), "{ran:?}");
    for (branch, prefix, state) in [("new", "dwp", "b"), ("old", "dwp", "c"), ("kept", "aynig", "d")] {
        let expected =
            [(format!("{prefix}-hop"), "2".to_owned()), (format!("{prefix}-state"), state.to_owned())];
        assert_eq!(life.trailers(branch), expected.into(), "{branch}");
    }
}

/// K29: the branch's newest state event decides, below plain commits too; a flag stands over it.
#[test]
fn set_state_writes_the_dialect_of_the_branch_or_the_one_asked_for() {
    let life = asked("true");
    life.event_at("work", "plain\n", None);
    let of = |args: &[&str]| {
        life.run(&[&["set-state"], args].concat()).expect(0);
        let trailers = life.trailers(args[args.iter().position(|a| *a == "-b").unwrap() + 1]);
        trailers.keys().next().unwrap().clone()
    };
    assert_eq!(of(&["a", "-b", "work"]), "aynig-state");
    assert_eq!(of(&["a", "-b", "work", "--dialect", "dwp"]), "dwp-state");
    assert_eq!(of(&["a", "-b", "work"]), "dwp-state");
    assert_eq!(of(&["a", "-b", "new"]), "dwp-state");
    assert_eq!(of(&["a", "-b", "newer", "--dialect", "aynig"]), "aynig-state");
    assert_eq!(of(&["a", "-b", "newer"]), "aynig-state");
    life.run(&["set-state", "a", "-b", "work", "--dialect", "other"]).expect(129);
    // K4a: what a runner manages is managed in both.
    for key in ["aynig-state", "Aynig-Run-Id", "dwp-state"] {
        life.run(&["set-state", "a", "-b", "newer", "--trailer", &format!("{key}: x")]).expect(129);
    }
}

/// K29: a run's own branch has the run's dialect.
#[test]
fn a_run_does_not_change_its_dialect() {
    let life =
        asked("git aynig set-state done --dialect dwp && exit 5; git aynig set-state done --dialect aynig");
    let ran = ticked(&life, &[]);
    assert_eq!((result(&ran), ran.1["exit"].as_str()), ((Some(0), "own"), Some("exit 0")));
    assert_eq!(states(&life, "work")[0], "done");
}

/// K29
#[test]
fn a_lease_taken_by_hand_is_of_the_heads_dialect() {
    let life = asked("true");
    let run = json(&life, &["set-working", "-b", "work", "--json"])["run_id"].as_str().unwrap().to_owned();
    assert_eq!(life.trailer("work", "aynig-run-id"), Some(run));
    life.run(&["set-state", "x", "-b", "work"]).expect(3);
    life.run(&["cancel", "work"]).expect(0);
    assert_eq!(states(&life, "work"), ["canceled", "working", "build"]);
}

/// K29: who looks reads both.
#[test]
fn status_events_logs_and_doctor_read_both() {
    let life = asked("echo words; whole; exit 1");
    ticked(&life, &[]).0.expect(1);
    let status = json(&life, &["status", "--json", "work"]);
    let told = ["dialect", "state", "standing", "origin_state"]
        .map(|key| status[key].as_str().unwrap_or("-").to_owned());
    assert_eq!(told, ["aynig", "working", "leased", "build"]);
    assert_eq!(status["trigger"].as_str(), Some(&*life.rev("work~2")));
    let left = status["seconds_left"].as_i64().unwrap();
    assert!((300..=330).contains(&left), "{left}");
    assert!(life.run(&["status", "work"]).expect(0).stdout.contains("build in run "));
    let newest = json(&life, &["events", "work", "--history", "--json"]);
    assert_eq!(
        (newest["dialect"].as_str(), newest["run_id"].as_str()),
        (Some("aynig"), status["run_id"].as_str())
    );
    let shown = life.run(&["events", "work"]).expect(0).stdout;
    assert!(shown.lines().count() == 1 && shown.contains("build"), "{shown}");
    assert_eq!(life.run(&["logs", "work"]).expect(0).stdout, "words\n");
    life.run(&["doctor"]).expect(0);
    life.run(&["gc"]).expect(0);
    life.run(&["cancel", "work"]).expect(0);
    assert_eq!(json(&life, &["status", "--json", "work"])["state"].as_str(), Some("canceled"));
}

/// K29, K35: what a command commits is forwarded as it is; unsigned it is dispatched no further.
#[test]
fn an_unsigned_outcome_is_not_dispatched_where_signatures_are_asked_for() {
    let life = asked(
        "if [ \"$(git config sign.it)\" ]; then git config commit.gpgSign true; fi; whole; state build \"aynig-branch: $AYNIG_BRANCH\"",
    );
    let key = life.repo.home().join("key");
    let made =
        life.repo.command("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    if !made.is_ok_and(|s| s.success()) {
        return crate::support::skipped("no ssh-keygen");
    }
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    let allowed = life.repo.home().join("allowed");
    std::fs::write(&allowed, format!("ada@example.com {public}")).unwrap();
    life.config("gpg.format", "ssh");
    life.config("user.signingKey", key.to_str().unwrap());
    life.config("gpg.ssh.allowedSignersFile", allowed.to_str().unwrap());
    life.config("aynig.requireSignature", "true");
    life.tick(&["work"]).expect(2);
    life.run(&["set-state", "build", "-b", "work"]).expect(0);
    let ran = ticked(&life, &[]);
    assert_eq!(result(&ran), (Some(0), "own"), "{ran:?}");
    // The runner's own lease is signed; the command's commits are the command's business.
    life.git(&["verify-commit", "work~2"]);
    assert_eq!(result(&ticked(&life, &[])), (Some(2), "refused"));
    life.run(&["set-state", "build", "-b", "work"]).expect(0);
    life.config("sign.it", "yes");
    assert_eq!(result(&ticked(&life, &[])), (Some(0), "own"));
    life.git(&["verify-commit", "work"]);
    assert_eq!(result(&ticked(&life, &[])), (Some(0), "own"));
}
