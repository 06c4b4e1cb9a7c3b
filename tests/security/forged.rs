//! Ids that a commit names and that are another's: row S30. Who may push to one branch says with them what becomes
//! of that branch, and of nothing else.

use super::support::life::{Life, now};

const GO: &str = "echo up >\"$T/up\"; read x <\"$T/gate\"; git rev-parse refs/aynig/run/$AYNIG_RUN_ID >\"$T/seen\"; \
                  echo 'SET_STATE {\"state\":\"done\"}'";
const EDITS: &str = "echo secret; echo more >>file; echo 'SET_STATE {\"state\":\"done\"}'";

fn run_id(life: &Life, branch: &str) -> String {
    let head = format!("refs/heads/{branch}");
    let said = |key| life.trailer(&head, key);
    said("dwp-run-id").or_else(|| said("dwp-stalled-run")).unwrap()
}

/// `work` stalled over a local change: its whole outcome is an attempt, whose run and ref these are.
fn held_up(life: &Life) -> (String, String) {
    life.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/main"]);
    life.event("work", "edit", "dwp-ticket: 7\n");
    life.git(&["checkout", "-q", "work"]);
    life.write("file", "mine\n");
    life.tick(&["work"]).expect(1);
    life.git(&["stash", "-q"]);
    let run = run_id(life, "work");
    (run.clone(), format!("refs/aynig/attempts/{run}"))
}

fn stalled(life: &Life, branch: &str, run: &str, trigger: &str) -> String {
    let message = format!(
        "stalled\n\ndwp-state: stalled\ndwp-stalled-run: {run}\ndwp-origin-state: other\ndwp-trigger: {trigger}\n"
    );
    life.event_at(branch, &message, None)
}

/// K44, S30: a commit that names a living run's id, on another branch, is recovered; that run goes on, and its ref stays
#[test]
fn s30_a_forged_run_id_removes_nobodys_run_ref() {
    let life = Life::new(&[("build", GO)]);
    let mut gate = life.gate("gate");
    life.event("work", "build", "");
    let ticking = life.start_tick(&["work"]);
    life.hear("up");
    let (run, lease) = (run_id(&life, "work"), life.rev("work"));
    // Of its own making, on top of the victim's own lease, and that very lease in an old copy.
    life.event("evil", "other", "");
    life.lease("evil", "build", &run, 60, 4000);
    life.git(&["branch", "-q", "above", &lease]);
    life.lease("above", "build", &run, 60, 4000);
    for branch in ["evil", "above"] {
        life.tick(&[branch]).expect(1);
        assert_eq!(
            (life.state(branch).as_str(), life.try_rev(&format!("refs/aynig/run/{run}"))),
            ("stalled", Some(lease.clone()))
        );
    }
    life.run(&["gc", "-q"]).expect(0);
    gate.open();
    ticking.done().expect(0);
    assert_eq!((life.said("seen").trim_end(), life.state("work").as_str()), (&*lease, "done"));
    assert_eq!(life.git(&["for-each-ref", "refs/aynig"]), "");
}

/// K26, K28, S30: the attempt of a run is neither shown as, nor named as, nor landed as another branch's
#[test]
fn s30_a_forged_run_id_makes_nobodys_attempt_ones_own() {
    let life = Life::new(&[("edit", EDITS)]);
    let (run, attempt) = held_up(&life);
    let kept = life.rev(&attempt);
    let other = life.event("evil", "other", "");
    stalled(&life, "evil", &run, &other);
    let status = life.run(&["status", "evil", "--json"]).expect(0).json();
    assert!(status["attempt"].is_null(), "{status}");
    assert_eq!(life.run(&["logs", "evil"]).expect(128).stdout, "");
    life.run(&["retry", "evil"]).expect(0);
    assert_eq!((life.state("evil").as_str(), life.rev(&attempt)), ("other", kept.clone()));
    // A lease that is recovered names no work of another's either.
    life.lease("evil", "other", &run, 60, 4000);
    let (_, report) = life.report(&["evil"]);
    assert!(report["recovered"][0]["attempt"].is_null(), "{report}");
    assert!(!life.body("evil").contains("refs/aynig/attempts"), "{}", life.body("evil"));
    // Its own branch has it still.
    life.run(&["retry", "work"]).expect(0);
    assert_eq!(
        (life.state("work").as_str(), life.read("file").as_str(), life.attempts()),
        ("done", "one\nmore\n", vec![])
    );
}

/// K28, S30: a user who copied a stalled branch lands the copy's outcome, and takes it from no other branch
#[test]
fn s30_an_attempt_that_two_branches_name_goes_with_the_second() {
    let life = Life::new(&[("edit", EDITS)]);
    let (_, attempt) = held_up(&life);
    life.git(&["branch", "-q", "copy", "work"]);
    life.run(&["retry", "copy"]).expect(0);
    assert_eq!((life.state("copy").as_str(), life.attempts()), ("done", vec![attempt]));
    life.run(&["retry", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), life.attempts()), ("done", vec![]));
}

/// K27, S30: a trigger that is not in the branch's own history is not asked for again
#[test]
fn s30_a_forged_trigger_asks_for_nothing() {
    let life = Life::new(&[("edit", EDITS)]);
    let victim =
        life.event_at("private", "go\n\nonly for us\n\ndwp-state: edit\ndwp-key: hidden\n", Some(now()));
    life.event("evil", "other", "");
    let head = stalled(&life, "evil", "11111111-2222-4333-8444-555555555555", &victim);
    let said = life.run(&["retry", "evil"]).expect(128).stderr;
    assert!(
        said.contains("is not in its history") && said.contains("hint: git aynig set-state <state> -b evil"),
        "{said}"
    );
    assert_eq!(life.rev("evil"), head);
}

/// K26, S30: nothing that is kept here goes to a remote because a commit there names it
#[test]
fn s30_a_forged_run_id_publishes_nothing() {
    use super::support::net::Net;
    let net = Net::new(&[("edit", EDITS)]);
    let a = net.machine("a");
    let run = "11111111-2222-4333-8444-555555555555";
    let private = a.git(&["commit-tree", "-m", "private", "-p", "HEAD", "HEAD^{tree}"]);
    a.git(&["update-ref", &format!("refs/aynig/attempts/{run}"), &private]);
    net.event("work", "other", "");
    net.life.git(&["fetch", "-q", "origin", "work:work"]);
    net.life.lease("work", "other", run, 60, 4000);
    net.life.git(&["push", "-q", "origin", "work"]);
    a.tick(&["work"]).expect(1);
    assert_eq!(
        (net.states("work")[0].as_str(), net.git(&["for-each-ref", "refs/aynig"])),
        ("stalled", String::new())
    );
}
