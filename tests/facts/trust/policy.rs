//! Branches, prefixes, environments, signatures, owners (K35).

use super::*;

/// K35
#[test]
fn branches_outside_the_patterns_are_never_ticked() {
    let world = World::any();
    let dir = asked(&world);
    world.aynig(&dir, &["trust"]).expect(0);
    global(&world, &["--add", "aynig.branches", "job/*"]);
    global(&world, &["--add", "aynig.branches", "refs/heads/only"]);
    for branch in ["job/a", "job/a/b", "only"] {
        world.aynig(&dir, &["set-state", "build", "-b", branch]).unwrap_state(branch);
    }
    let before = head(&world, &dir, "work");
    let said = world.aynig(&dir, &["tick"]).expect(0);
    assert!(
        said.out.contains("job/a: build -> review") && said.out.contains("only: build -> review"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("work") && !said.err.contains("work"), "silently: {}{}", said.out, said.err);
    let said = world.aynig(&dir, &["tick", "work"]).expect(2);
    assert!(said.out.contains("work: refused: 'aynig.branches'"), "{}", said.out);
    assert_eq!(head(&world, &dir, "work"), before);
    let doctor = world.aynig(&dir, &["doctor"]);
    assert!(doctor.out.contains(" with a state event, 1 of them left out"), "{}", doctor.out);
    // Pasted, what it prints lets the branch in, in this repository and no other.
    let hint = said.err.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    let patterns = || world.git(&dir, &["config", "--global", "--get-all", "aynig.branches"]);
    let all = patterns();
    world.run("sh", &dir, &["-ec", hint]).expect(0);
    assert_eq!(patterns(), all);
    let said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert!(said.out.contains("work: build -> review"), "{}", said.out);
}

trait UnwrapState {
    fn unwrap_state(self, branch: &str);
}

impl UnwrapState for Said {
    /// `job/a/b` can't be beside `job/a`: git says no, and so do we.
    fn unwrap_state(self, branch: &str) {
        let expected = branch != "job/a/b";
        assert_eq!(self.code == 0, expected, "{branch}: {}{}", self.out, self.err);
    }
}

/// K35
#[test]
fn a_prefix_stands_before_every_command() {
    let world = World::any();
    let dir = asked(&world);
    command(&world, &dir, "show", &format!("echo \"MARK=$MARK\"\n{DONE}"));
    global(&world, &["aynig.exec", "env 'MARK=one word'"]);
    assert!(output_of(&world, &dir, "show", "a").starts_with("MARK=one word\n"));
    global(&world, &["--unset-all", "aynig.exec"]);
    for word in ["env", "MARK=two  'words'"] {
        global(&world, &["--add", "aynig.exec", word]);
    }
    assert!(output_of(&world, &dir, "show", "b").starts_with("MARK=two  'words'\n"));
    global(&world, &["--unset-all", "aynig.exec"]);
    global(&world, &["aynig.exec", "/nowhere/sandbox"]);
    for branch in ["c", "e"] {
        world.aynig(&dir, &["set-state", "show", "-b", branch]).expect(0);
    }
    // K13: that it is not here is known before the claim, for all branches at once.
    let before = (head(&world, &dir, "c"), head(&world, &dir, "e"));
    let said = world.aynig(&dir, &["tick", "c", "e"]).expect(128);
    let error = "cannot start '/nowhere/sandbox', which 'aynig.exec' names";
    assert_eq!(said.err.matches(error).count(), 1, "{}", said.err);
    assert!(
        said.err.contains("hint: git config --show-origin --get-regexp '^aynig\\.(.*\\.)?exec$'"),
        "{}",
        said.err
    );
    assert_eq!((head(&world, &dir, "c"), head(&world, &dir, "e")), before);
    world.aynig(&dir, &["set-state", "show", "-b", "d"]).expect(0);
    global(&world, &["--replace-all", "aynig.exec", "env 'open"]);
    let before = head(&world, &dir, "d");
    world.aynig(&dir, &["tick", "d"]).expect(128);
    assert_eq!(head(&world, &dir, "d"), before);
}

/// K35, K15
#[test]
fn s21_commands_get_of_the_runners_environment_what_is_named() {
    let mut world = World::any();
    let dir = asked(&world);
    command(&world, &dir, "show", &format!("env | sort\n{DONE}"));
    for (name, value) in
        [("SECRET_TOKEN", "s3"), ("TOOL_HOME", "/t"), ("TOOL_MODE", "m"), ("AYNIG_FAKE", "f")]
    {
        world.set(name, value);
    }
    world.set("GIT_CONFIG_COUNT", "1");
    world.set("GIT_CONFIG_KEY_0", "user.name");
    world.set("GIT_CONFIG_VALUE_0", "Eve");
    let all = output_of(&world, &dir, "show", "a");
    assert!(all.contains("SECRET_TOKEN=s3\n") && all.contains("TOOL_HOME=/t\n"), "{all}");
    assert!(!all.contains("AYNIG_FAKE") && !all.contains("GIT_CONFIG_COUNT"), "{all}");
    global(&world, &["aynig.passEnv", "TOOL_*"]);
    let some = output_of(&world, &dir, "show", "b");
    assert!(!some.contains("SECRET_TOKEN") && some.contains("TOOL_HOME=/t\n"), "{some}");
    assert!(some.contains("TOOL_MODE=m\n") && some.contains("\nPATH=") && some.contains("\nHOME="), "{some}");
    assert!(some.contains("AYNIG_BRANCH=b\n"), "{some}");
}

fn signing(world: &World) -> PathBuf {
    let key = world.root().join("key");
    world
        .run("ssh-keygen", &world.root(), &["-q", "-t", "ed25519", "-N", "", "-f", key.to_str().unwrap()])
        .expect(0);
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    let allowed = world.root().join("allowed");
    std::fs::write(&allowed, format!("ada@example.com {public}")).unwrap();
    global(world, &["gpg.format", "ssh"]);
    global(world, &["user.signingKey", key.to_str().unwrap()]);
    global(world, &["gpg.ssh.allowedSignersFile", allowed.to_str().unwrap()]);
    key
}

/// K35
#[test]
fn where_signatures_are_asked_for_only_signed_heads_are_dispatched_and_ours_are_signed() {
    for git in gits() {
        let world = World::new(&git);
        let dir = asked(&world);
        world.aynig(&dir, &["trust"]).expect(0);
        let key = signing(&world);
        global(&world, &["aynig.requireSignature", "true"]);
        let before = head(&world, &dir, "work");
        for args in [&["tick", "--dry-run", "work"][..], &["tick", "work"]] {
            let said = world.aynig(&dir, args).expect(2);
            assert!(said.out.contains("no signature"), "{}", said.out);
        }
        assert_eq!(head(&world, &dir, "work"), before, "nothing is claimed");
        world.git(&dir, &["checkout", "-q", "-b", "good"]);
        let message = "go\n\ndwp-state: build\ndwp-branch: good";
        world.git(&dir, &["commit", "-q", "--allow-empty", "-S", "-m", message]);
        world.git(&dir, &["checkout", "-q", "main"]);
        // Signing is impossible: refused before the claim.
        std::fs::rename(&key, key.with_extension("away")).unwrap();
        let before = head(&world, &dir, "good");
        let said = world.aynig(&dir, &["tick", "good"]).expect(2);
        assert!(said.out.contains("cannot sign"), "{}", said.out);
        assert_eq!(head(&world, &dir, "good"), before, "nothing is claimed");
        std::fs::rename(key.with_extension("away"), &key).unwrap();
        let said = world.aynig(&dir, &["tick", "good"]).expect(0);
        assert!(said.out.contains("build -> review"), "{}", said.out);
        world.git(&dir, &["verify-commit", "good", "good~1", "good~2"]);
        assert_eq!(world.states(&dir, "good", &before), ["review", "working"]);
        world.assert_sound(&dir);
        // What set-state writes there is signed too, or no runner would ever answer it.
        world.aynig(&dir, &["set-state", "build", "-b", "good"]).expect(0);
        world.aynig(&dir, &["tick", "good"]).expect(0);
    }
}

/// K35: whom to believe, and the key that signs, may be said for one call by its caller.
#[test]
fn a_caller_says_by_git_c_how_commits_are_signed() {
    for git in gits() {
        let world = World::new(&git);
        let dir = asked(&world);
        world.aynig(&dir, &["trust"]).expect(0);
        signing(&world);
        let said: Vec<String> = ["gpg.format", "user.signingKey", "gpg.ssh.allowedSignersFile"]
            .map(|key| {
                let value = world.git(&dir, &["config", "--global", "--get", key]);
                global(&world, &["--unset", key]);
                format!("{key}={}", value.trim())
            })
            .to_vec();
        global(&world, &["aynig.requireSignature", "true"]);
        world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(2);
        let options: Vec<&str> = said.iter().flat_map(|said| ["-c", said.as_str()]).collect();
        let by_git = |args: &[&str]| world.try_git(&dir, &[&options[..], &["aynig"], args].concat());
        by_git(&["set-state", "build", "-b", "work"]).expect(0);
        let said = by_git(&["tick", "work"]).expect(0);
        assert!(said.out.contains("build -> review"), "{}", said.out);
    }
}

/// K33, S16
#[test]
fn s16_a_repository_of_another_user_is_refused_as_git_refuses_it() {
    if !crate::support::world::is_root() {
        return crate::support::skipped("giving files to another user takes root");
    }
    for git in gits() {
        let world = World::new(&git);
        let dir = asked(&world);
        world.aynig(&dir, &["trust"]).expect(0);
        let path = dir.to_str().unwrap();
        world.run("chown", &world.root(), &["-R", "12345:12345", path]).expect(0);
        let theirs = world.try_git(&dir, &["rev-parse", "--git-dir"]).expect(128);
        for args in [&["tick"][..], &["tick", "work"], &["trust"], &["set-state", "build", "-b", "work"]] {
            let ours = world.aynig(&dir, args).expect(128);
            let words =
                |said: &Said| said.err.trim_start_matches("error: ").trim_start_matches("fatal: ").to_owned();
            assert!(words(&ours).starts_with("detected dubious ownership in repository at"), "{}", ours.err);
            assert!(words(&ours).contains(path) && words(&theirs).contains(path), "{}", ours.err);
            assert!(ours.err.contains("safe.directory"), "{}", ours.err);
        }
        global(&world, &["--add", "safe.directory", path]);
        let said = world.aynig(&dir, &["tick"]).expect(0);
        assert!(said.out.contains("build -> review"), "{}", said.out);
    }
}

/// Section 13
#[test]
fn switched_off_by_the_environment_a_tick_does_nothing() {
    let mut world = World::any();
    let dir = asked(&world);
    world.aynig(&dir, &["trust"]).expect(0);
    let before = head(&world, &dir, "work");
    world.set("AYNIG", "0");
    for args in [&["tick"][..], &["tick", "work"], &["run"]] {
        let said = world.aynig(&dir, args).expect(0);
        assert_eq!(said.out + &said.err, "AYNIG=0 is set: nothing is ticked\nhint: unset AYNIG\n");
        let said = world.aynig(&dir, &[&["-q"], args].concat()).expect(0);
        assert_eq!(said.out + &said.err, "");
    }
    assert_eq!(head(&world, &dir, "work"), before);
    world.set("AYNIG", "1");
    world.aynig(&dir, &["tick"]).expect(0);
    assert_ne!(head(&world, &dir, "work"), before);
}
