//! `uninstall`: everything of ours goes, nothing of anybody's does, and work stays unless it is asked for.

use crate::rig::Rig;

/// What a repository of Git's alone has in its Git directory.
fn ours(rig: &Rig) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["aynig", "worktrees", "hooks/post-commit"] {
        found.extend(rig.git_dir().join(name).exists().then(|| name.to_owned()));
    }
    found.extend(rig.dir.join(".aynig/logs").exists().then(|| "logs".to_owned()));
    let refs = rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig"]);
    found.extend(refs.lines().map(str::to_owned));
    let config = std::fs::read_to_string(rig.git_dir().join("config")).unwrap();
    found.extend(
        config.lines().filter(|line| line.contains("aynig") || line.contains("advertise")).map(str::to_owned),
    );
    found
}

/// K26, K41, K45
#[test]
fn all_that_is_ours_goes_and_work_and_trust_stay_unless_asked_for() {
    let rig = Rig::new();
    let config = std::fs::read_to_string(rig.git_dir().join("config")).unwrap();
    rig.set("bad", "fail");
    rig.aynig(&["tick", "bad"]).expect(1);
    rig.aynig(&["hooks", "install"]).expect(0);
    rig.git(&["config", "aynig.jobs", "2"]);
    rig.git(&["update-ref", "refs/aynig/remote/origin/x", "main"]);
    let branches = rig.git(&["for-each-ref", "refs/heads"]);
    let attempt = rig.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts"]);
    assert!(!attempt.is_empty());
    // Shown first, and nothing is done where nobody says yes.
    let dry = rig.aynig(&["uninstall", "--dry-run"]).expect(0).out;
    let folder = rig.dir.join(".aynig/logs").display().to_string();
    for line in [
        &format!("remove folder '{folder}'"),
        "remove ref refs/aynig/remote/origin/x",
        "remove configuration aynig.jobs",
        &format!("keep   work in {attempt}"),
        "keep   your configuration aynig.",
    ] {
        assert!(dry.contains(line), "{line}: {dry}");
    }
    let before = ours(&rig);
    let said = rig.aynig(&["uninstall"]).expect(2);
    assert!(said.out == dry && said.err.contains("hint: git aynig uninstall --force"), "{}", said.err);
    assert_eq!(ours(&rig), before);
    let said = rig.aynig(&["uninstall", "--force"]).expect(0);
    assert!(said.err.contains("hint: git config --global --unset-all "), "{}", said.err);
    assert_eq!(ours(&rig), [&*attempt]);
    assert_eq!(std::fs::read_to_string(rig.git_dir().join("config")).unwrap(), config);
    assert_eq!(rig.git(&["for-each-ref", "refs/heads"]), branches);
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    // Work and trust go where that is said; after that there is nothing.
    rig.aynig(&["uninstall", "--force", "--attempts", "--trust"]).expect(0);
    assert_eq!(ours(&rig), [""; 0]);
    assert_eq!(rig.aynig(&["trust", "--list"]).expect(0).out, "");
    assert_eq!(rig.aynig(&["uninstall"]).expect(0).out, "");
}

/// K14: nobody's run is taken from under it.
#[test]
fn while_a_run_lives_nothing_is_removed() {
    let rig = Rig::new();
    let held = rig.hold("work");
    let before = ours(&rig);
    let said = rig.aynig(&["uninstall", "--force", "--attempts"]).expect(3);
    assert!(said.err.contains("a run lives"), "{}", said.err);
    assert_eq!(ours(&rig), before);
    rig.go();
    assert!(held.wait_with_output().unwrap().status.success());
    rig.aynig(&["uninstall", "--force"]).expect(0);
    assert_eq!(ours(&rig), [""; 0]);
}
