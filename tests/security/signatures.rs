//! Which branches a pattern names, and for which branch a user signed. Row S33.

use super::*;

/// Signs with a key of its own, whatever is configured elsewhere; false where that can't be.
fn signing(world: &World) -> bool {
    let key = world.home().join("key");
    let path = key.to_str().unwrap();
    let made = world
        .command("ssh-keygen", &world.root())
        .args(["-q", "-t", "ed25519", "-N", "", "-f", path])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        support::skipped("S33: no ssh-keygen");
        return false;
    }
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    let allowed = world.home().join("allowed");
    std::fs::write(&allowed, format!("ada@example.com {public}")).unwrap();
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("user.signingKey", path),
        ("gpg.ssh.allowedSignersFile", allowed.to_str().unwrap()),
        ("aynig.requireSignature", "true"),
    ] {
        global(world, &[name, value]);
    }
    true
}

/// K35, S33: a full pattern matches full names, any other short ones
#[test]
fn s33_a_full_pattern_does_not_match_a_branch_that_is_called_like_one() {
    let world = World::any();
    let dir = repo(&world, &[("show", DONE)]);
    for (pattern, branch, takes) in [
        ("refs/heads/ci/*", "refs/heads/ci/good", true),
        ("refs/heads/ci/*", "refs/heads/refs/heads/ci/evil", false),
        ("refs/heads/refs/heads/ci/*", "refs/heads/refs/heads/ci/meant", true),
        ("ci/*", "refs/heads/ci/short", true),
        ("ci/*", "refs/heads/refs/heads/ci/short", false),
        ("refs/*", "refs/heads/ci/crossing", false),
        ("refs/**", "refs/heads/ci/all", true),
    ] {
        let id = world.raw_commit(&dir, "scratch", b"go\n\ndwp-state: show\n");
        world.git(&dir, &["update-ref", "-d", "refs/heads/scratch"]);
        world.git(&dir, &["update-ref", branch, &id]);
        let only = format!("aynig.branches={pattern}");
        world.run("git", &dir, &["-c", &only, "aynig", "tick"]).expect(0);
        assert_eq!(world.git(&dir, &["rev-parse", branch]) != id, takes, "{pattern} {branch}");
        let said = world.run("git", &dir, &["-c", &only, "aynig", "tick", branch]);
        assert_eq!(said.code, if takes { 0 } else { 2 }, "{pattern} {branch}: {}{}", said.out, said.err);
        world.git(&dir, &["update-ref", "-d", branch]);
    }
}

/// K35, S33: what was signed for one branch is no trigger on another, whichever user wrote it and however it came there
#[test]
fn s33_a_signed_trigger_counts_on_the_branch_that_it_was_signed_for() {
    let world = World::any();
    let ran = world.root().join("ran");
    let note = format!("echo \"$AYNIG_BRANCH\" >>'{}'\n", ran.display());
    let next = "echo 'SET_STATE {\"state\":\"ship\"}'";
    let dir = repo(&world, &[("build", &format!("{note}{next}")), ("ship", &format!("{note}{DONE}"))]);
    if !signing(&world) {
        return;
    }
    let ran_on = || std::fs::read_to_string(&ran).unwrap_or_default();
    for (n, dialect) in ["dwp", "aynig"].into_iter().enumerate() {
        let branch = format!("work{n}");
        world.aynig(&dir, &["set-state", "build", "-b", &branch, "--dialect", dialect]).expect(0);
        let signed = head(&world, &dir, &branch);
        world.git(&dir, &["update-ref", "refs/heads/other", &signed]);
        for args in [&["tick", "--dry-run", "other"][..], &["tick", "other"]] {
            let said = world.aynig(&dir, args).expect(2);
            let want = format!("signed for another branch ('{dialect}-branch: {branch}')");
            assert!(said.out.contains(&want), "{}{}", said.out, said.err);
        }
        assert_eq!((head(&world, &dir, "other"), ran_on()), (signed, String::new()));
    }
    world.aynig(&dir, &["tick", "work0"]).expect(0);
    assert_eq!(ran_on(), "work0\n");
    // What came of it, and the lease below it, are signed for that branch as well.
    for below in ["work0", "work0~1"] {
        let commit = world.git(&dir, &["rev-parse", below]);
        let said = world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-branch,valueonly)", &commit]);
        assert_eq!(said, "work0");
    }
    world.git(&dir, &["update-ref", "refs/heads/other", "work0"]);
    world.aynig(&dir, &["tick", "other"]).expect(2);
    assert_eq!(ran_on(), "work0\n");
    // A user who goes back on the branch itself has it answered again.
    world.aynig(&dir, &["tick", "work0"]).expect(0);
    world.git(&dir, &["update-ref", "refs/heads/work0", "work0~4"]);
    world.aynig(&dir, &["tick", "work0"]).expect(0);
    assert_eq!(ran_on(), "work0\nwork0\nwork0\n");
}

/// K35, S33: by hand the trailer is written by hand, and a user who forgot it hears how it is called
#[test]
fn s33_a_commit_by_hand_names_its_branch() {
    let world = World::any();
    let dir = repo(&world, &[("build", DONE)]);
    if !signing(&world) {
        return;
    }
    world.git(&dir, &["checkout", "-q", "-b", "hand"]);
    let commit = |trailers: &str| {
        let message = format!("go\n\ndwp-state: build\n{trailers}");
        world.git(&dir, &["commit", "-q", "--allow-empty", "-S", "-m", &message]);
    };
    commit("");
    let said = world.aynig(&dir, &["tick", "hand"]).expect(2);
    assert!(said.out.contains("signed without the trailer 'dwp-branch: hand'"), "{}", said.out);
    let hint = said.err.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    assert_eq!(hint, "git aynig set-state <state> -b hand");
    commit("dwp-branch: hand");
    let said = world.aynig(&dir, &["tick", "hand"]).expect(0);
    assert!(said.out.contains("build -> done"), "{}", said.out);
    // No other process writes it: a command, or a pusher through one, can't name another branch.
    world.aynig(&dir, &["set-state", "build", "-b", "hand", "--trailer", "dwp-branch: x"]).expect(129);
    world.aynig(&dir, &["set-state", "build", "-b", "hand"]).expect(0);
    world.aynig(&dir, &["tick", "hand"]).expect(0);
}

/// K35, K61, S33: nor does a user who has several branches answer a trigger, or chooses one, sign what no user signed
#[test]
fn s33_nothing_unsigned_is_signed_by_a_fan_or_a_choice() {
    let world = World::any();
    let ran = world.root().join("ran");
    let note = format!("echo \"$AYNIG_BRANCH\" >>'{}'\n{DONE}", ran.display());
    let dir = repo(&world, &[("deploy", &note), ("show", "echo 'SET_STATE {\"state\":\"review\"}'")]);
    if !signing(&world) {
        return;
    }
    let refs = || world.git(&dir, &["for-each-ref", "refs/heads/"]);
    let refused = |args: &[&str], commit: &str, branch: &str| {
        let before = refs();
        let said = world.aynig(&dir, args).expect(2);
        assert!(said.err.contains(&format!("{commit} is not signed for '{branch}'")), "{}", said.err);
        assert_eq!(refs(), before);
    };
    let pushed = world.raw_commit(&dir, "topic", b"go\n\ndwp-state: deploy\n");
    refused(&["fan", "topic", "-n", "2"], &pushed, "topic");
    world.aynig(&dir, &["set-state", "show", "-b", "job"]).expect(0);
    world.aynig(&dir, &["fan", "job", "-n", "2"]).expect(0);
    world.aynig(&dir, &["run", "job-1", "job-2"]).expect(0);
    let fanned = head(&world, &dir, "job");
    let pushed = world.raw_commit(&dir, "job-1", b"go\n\ndwp-state: deploy\n");
    refused(&["choose", "job-1"], &pushed, "job-1");
    // Nor by the other's, on a branch that says by a stranger's commit which those are.
    let list = world.git(&dir, &["log", "-1", "--format=%B", "job"]);
    let forged = world.raw_commit(&dir, "job", list.as_bytes());
    refused(&["choose", "job-2"], &forged, "job");
    world.git(&dir, &["update-ref", "refs/heads/job", &fanned]);
    world.aynig(&dir, &["choose", "job-2"]).expect(0);
    world.git(&dir, &["verify-commit", "job"]);
    assert!(!ran.exists());
}

/// K8, K35, S33: an unsigned lease that is over makes no user's signature
#[test]
fn s33_nothing_unsigned_is_signed_by_its_recovery_or_its_retry() {
    let world = World::any();
    let ran = world.root().join("ran");
    let note = format!("echo \"$AYNIG_STATE\" >>'{}'\n{DONE}", ran.display());
    let dir = repo(&world, &[("stalled", &note), ("deploy", &note)]);
    if !signing(&world) {
        return;
    }
    let trigger = world.raw_commit(&dir, "work", b"go\n\ndwp-state: deploy\n");
    let lease = format!(
        "lease\n\ndwp-state: working\ndwp-origin-state: deploy\ndwp-run-id: x\ndwp-lease-seconds: 1\ndwp-trigger: {trigger}\n"
    );
    world.raw_commit_dated(&dir, "work", "1000000000", lease.as_bytes());
    let said = world.aynig(&dir, &["tick", "work"]);
    assert!(said.out.contains("lease of run x expired") && said.out.contains("no signature"), "{}", said.out);
    assert_eq!(world.try_git(&dir, &["verify-commit", "work"]).code, 1);
    let said = world.aynig(&dir, &["retry", "work"]).expect(2);
    assert!(said.err.contains(&format!("{trigger} is not signed for 'work'")), "{}", said.err);
    assert!(!ran.exists());
    // One that a user signed for this branch speaks for itself: what follows from it is answered.
    world.git(&dir, &["checkout", "-q", "-b", "ours"]);
    let lease = format!("{lease}dwp-branch: ours\n");
    let mut commit = world.command("git", &dir);
    commit.args(["commit", "-q", "--allow-empty", "-S", "-m", &lease]);
    commit.env("GIT_COMMITTER_DATE", "1000000000 +0000");
    Said::from(commit.output().unwrap()).expect(0);
    let said = world.aynig(&dir, &["tick", "ours"]);
    assert!(said.out.contains("stalled -> done"), "{}{}", said.out, said.err);
    assert_eq!(std::fs::read_to_string(&ran).unwrap(), "stalled\n");
    world.assert_sound(&dir);
}
