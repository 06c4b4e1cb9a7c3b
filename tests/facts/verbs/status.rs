use crate::support::world::now;
use crate::verbs::rig::{Rig, is_plain};

const SCHEMA: &str = "aynig.status/1";

#[test]
fn each_branch_says_what_the_next_tick_makes_of_it() {
    let rig = Rig::new();
    rig.set("a-ready", "ok");
    rig.set("b-waits", "review");
    rig.set("c-stalled", "fail");
    rig.aynig(&["tick", "c-stalled"]).expect(1);
    let held = rig.git(&["rev-parse", "c-stalled"]);
    rig.world.raw_commit(&rig.dir, "d-bad", b"x\n\ndwp-state: ../x\n");
    rig.world.raw_commit(&rig.dir, "e-hops", b"x\n\ndwp-state: ok\ndwp-hop: 64\n");
    let all = rig.json(&["status", "--json"], 0, SCHEMA);
    let of = |branch: &str| all.iter().find(|o| o["branch"] == branch).unwrap();
    assert_eq!(all.len(), 5);
    assert_eq!(of("a-ready")["standing"], "ready");
    assert_eq!(of("a-ready")["command"], "command/ok");
    assert_eq!(of("b-waits")["standing"], "waits");
    assert_eq!(of("c-stalled")["commit"], *held);
    assert_eq!(of("c-stalled")["origin_state"], "fail");
    let run = of("c-stalled")["run_id"].as_str().unwrap();
    assert_eq!(of("c-stalled")["attempt"], format!("refs/aynig/attempts/{run}"));
    assert_eq!(of("d-bad")["standing"], "invalid-state");
    assert_eq!(of("e-hops")["standing"], "hop-limit");
    let text = rig.aynig(&["status"]).expect(0).out;
    assert!(text.contains("b-waits    review   no command: waits for a person"), "{text}");
    assert!(text.contains(&format!("work kept in refs/aynig/attempts/{run}")), "{text}");
}

#[test]
fn a_lease_says_who_holds_it_and_for_how_long() {
    let rig = Rig::new();
    let held = rig.hold("work");
    let [status] = &rig.json(&["status", "work", "--json"], 0, SCHEMA)[..] else { panic!() };
    assert_eq!((&status["standing"], &status["state"]), (&"leased".into(), &"working".into()));
    assert!((1..=300).contains(&status["seconds_left"].as_i64().unwrap()));
    assert!(!status["runner_id"].as_str().unwrap().is_empty());
    rig.go();
    assert!(held.wait_with_output().unwrap().status.success());
    let lease =
        |seconds: &str| format!("x\n\ndwp-state: working\ndwp-run-id: r1\ndwp-lease-seconds: {seconds}\n");
    rig.world.raw_commit_dated(&rig.dir, "old", &(now() - 400).to_string(), lease("300").as_bytes());
    rig.world.raw_commit(&rig.dir, "odd", lease("soon").as_bytes());
    let all = rig.json(&["status", "old", "odd", "--json"], 0, SCHEMA);
    assert_eq!((&all[0]["standing"], &all[0]["malformed"]), (&"expired".into(), &false.into()));
    assert!(all[0]["seconds_left"].as_i64().unwrap() < 0);
    assert_eq!((&all[1]["standing"], &all[1]["malformed"]), (&"leased".into(), &true.into()));
}

#[test]
fn status_works_where_nothing_is_trusted_and_leaves_nothing_behind() {
    let rig = Rig::untrusted();
    rig.git(&["branch", "work", "main"]);
    rig.world.raw_commit(&rig.dir, "work", b"x\n\ndwp-state: ok\n");
    rig.world.raw_commit(&rig.dir, "none", b"x\n\ndwp-state: nothing\n");
    let said = rig.aynig(&["status"]).expect(0);
    assert!(
        said.out.contains("work  ok       not trusted: the branch has .aynig/command/ok"),
        "{}",
        said.out
    );
    assert!(said.err.contains("aynig trust"), "{}", said.err);
    let all = rig.json(&["status", "--json"], 0, SCHEMA);
    assert_eq!((&all[0]["standing"], &all[0]["trusted"]), (&"waits".into(), &false.into()));
    assert!(!rig.git_dir().join("aynig").exists());
}

#[test]
fn a_ref_for_commands_that_does_not_exist_is_named() {
    let rig = Rig::new();
    rig.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/nosuch"]);
    rig.world.raw_commit(&rig.dir, "work", b"x\n\ndwp-state: ok\n");
    let said = rig.aynig(&["status"]).expect(0);
    assert!(
        said.err.contains("'refs/heads/nosuch', where commands come from, does not exist"),
        "{}",
        said.err
    );
    assert!(said.err.contains("hint: push it, or git -C "), "{}", said.err);
}

#[test]
fn nothing_from_a_commit_reaches_the_terminal_as_it_is() {
    let rig = Rig::new();
    let evil = "\x1b[2J\x1b]0;gone\x07 \u{202e}x";
    let message = format!("{evil}\n\ndwp-state: {evil}\n");
    rig.world.raw_commit(&rig.dir, "work", message.as_bytes());
    let lease = format!(
        "{evil}\n\ndwp-state: working\ndwp-run-id: {evil}\ndwp-runner-id: {evil}\ndwp-origin-state: {evil}\n"
    );
    rig.world.raw_commit(&rig.dir, "lease", lease.as_bytes());
    for args in
        [&["status"][..], &["status", "--porcelain"], &["events", "work"], &["events", "lease", "--history"]]
    {
        let said = rig.aynig(args).expect(0);
        assert!(is_plain(&said.out) && is_plain(&said.err), "{args:?}: {:?}", said.out);
        assert!(said.out.contains("\\x1b"), "{args:?}: {}", said.out);
    }
    let events = rig.json(&["events", "work", "--json"], 0, "aynig.events/1");
    assert_eq!(events[0]["subject"], evil);
}

#[test]
fn porcelain_lines_keep_their_fields() {
    let rig = Rig::new();
    let id = rig.set("work", "ok");
    let said = rig.aynig(&["status", "--porcelain"]).expect(0);
    assert_eq!(said.out, format!("work\t{id}\tok\tready\tcommand/ok\t-\t-\t-\t-\t-\t0\t-\n"));
    assert_eq!(
        rig.aynig(&["status", "main", "--porcelain"]).expect(0).out.split('\t').nth(3),
        Some("no-state")
    );
}

#[test]
fn a_branch_that_does_not_exist_is_an_error_and_the_others_are_shown() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let said = rig.aynig(&["status", "gone", "work"]).expect(128);
    assert!(said.err.contains("branch 'gone' does not exist"), "{}", said.err);
    assert!(said.out.starts_with("work"), "{}", said.out);
}

#[test]
fn more_is_said_where_it_is_asked_for() {
    let rig = Rig::new();
    let id = rig.set("work", "ok");
    let said = rig.aynig(&["status", "-v"]).expect(0).out;
    assert!(said.trim_end().ends_with(&format!("({} chore: set ok)", &id[..10])), "{said}");
}

#[test]
fn a_branch_that_is_being_rebased_says_so() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let folder = rig.git_dir().join("rebase-merge");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("head-name"), "refs/heads/work\n").unwrap();
    let all = rig.json(&["status", "--json"], 0, SCHEMA);
    assert_eq!(all[0]["busy"], "rebased");
}
