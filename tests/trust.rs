//! What may run: nothing until the account's owner says so, and then only what that says (K33-K35).

mod support;

use std::path::{Path, PathBuf};
use support::flow::{FILES, Place};
use support::world::{Said, World, gits};

/// A repository with the usual command on `main`, and `work` asking for it; nothing is trusted.
fn asked(world: &World) -> PathBuf {
    let dir = world.init("repo");
    Place::new(world, &dir).seed();
    world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
    dir
}

fn global(world: &World, args: &[&str]) {
    world.git(&world.root(), &[&["config", "--global"], args].concat());
}

fn head(world: &World, dir: &Path, branch: &str) -> String {
    world.git(dir, &["rev-parse", &format!("refs/heads/{branch}")])
}

fn hint(said: &Said) -> String {
    said.err
        .lines()
        .find_map(|l| l.strip_prefix("hint: "))
        .unwrap_or_else(|| panic!("{}", said.err))
        .to_owned()
}

fn paste(world: &World, from: &Path, line: &str) -> Said {
    world.command("sh", from).args(["-c", line]).output().unwrap().into()
}

/// Commits a command of this name on `main` and trusts `main`.
fn command(world: &World, dir: &Path, name: &str, script: &str) {
    let path = format!(".aynig/command/{name}");
    world.commit_files(dir, "main", &[(&path, &format!("#!/bin/sh\nset -eu\n{script}\n"))], name);
    world.aynig(dir, &["trust", "--ref", "main"]).expect(0);
}

/// Has a state's command run on a branch: what it printed.
fn output_of(world: &World, dir: &Path, state: &str, branch: &str) -> String {
    output_with(world, dir, state, branch, &[])
}

fn output_with(world: &World, dir: &Path, state: &str, branch: &str, args: &[&str]) -> String {
    // Two branches at one commit that ask for the same in the same second are one trigger, with one log.
    world.aynig(dir, &["set-state", state, "-b", branch, "-m", branch]).expect(0);
    let trigger = head(world, dir, branch);
    world.aynig(dir, &[&["tick", branch], args].concat()).expect(0);
    std::fs::read_to_string(dir.join(format!(".aynig/logs/{trigger}.stdout.log"))).unwrap()
}

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

/// K33, K34: nothing runs, nothing is claimed, and the printed command mends it
#[test]
fn an_untrusted_repository_runs_nothing_and_says_what_mends_it() {
    for git in gits() {
        for name in ["repo", "mein tölles 'repo' $x`y`\\z"] {
            let world = World::new(&git);
            let dir = world.init(name);
            Place::new(&world, &dir).seed();
            world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
            let before = world.git(&dir, &["for-each-ref"]);
            let said = world.aynig(&dir, &["tick"]).expect(2);
            assert!(said.err.contains("not trusted"), "{}", said.err);
            let named = world.aynig(&dir, &["tick", "work"]).expect(2);
            assert_eq!(world.git(&dir, &["for-each-ref"]), before, "nothing is claimed");
            assert!(!dir.join(".aynig/logs").exists());
            paste(&world, &world.root(), &hint(&named)).expect(0);
            let said = world.aynig(&dir, &["tick"]).expect(0);
            assert!(said.out.starts_with("work: build -> review"), "{}", said.out);
        }
    }
}

/// K34: the hint works where HEAD is detached, in bare repositories, and without HOME
#[test]
fn the_hint_works_wherever_it_is_printed() {
    let world = World::any();
    let dir = asked(&world);
    world.git(&dir, &["checkout", "-q", "--detach"]);
    let said = world.aynig(&dir, &["tick"]).expect(2);
    paste(&world, &world.root(), &hint(&said)).expect(0);
    assert!(world.aynig(&dir, &["tick"]).expect(0).out.contains("build -> review"));

    let bare = world.try_init("bare.git", &["--bare"]).unwrap();
    Place::bare(&world, &bare).seed();
    world.aynig(&bare, &["set-state", "build", "-b", "work"]).expect(0);
    let said = world.aynig(&bare, &["tick"]).expect(2);
    paste(&world, &world.root(), &hint(&said)).expect(0);
    assert!(world.aynig(&bare, &["tick"]).expect(0).out.contains("build -> review"));

    let mut world = World::any();
    let dir = asked(&world);
    world.vars.remove(std::ffi::OsStr::new("HOME"));
    let said = world.aynig(&dir, &["tick"]).expect(2);
    let said = paste(&world, &world.root(), &hint(&said)).expect(0);
    assert!(said.out.contains("build -> review"), "{}", said.out);
}

/// K33: what a repository says about itself is not heard, whichever file says it
#[test]
fn trust_from_the_repositorys_own_configuration_does_not_count() {
    for by_git in [false, true] {
        let mut world = World::any();
        let dir = asked(&world);
        if by_git {
            // Then git is asked for the configuration, not gix.
            world.set("GIT_CONFIG_PARAMETERS", "'user.name'='Ada'");
        }
        let refused = |what: &str| {
            let said = world.aynig(&dir, &["tick"]).expect(2);
            let warned = said.err.contains("warning:") && said.err.contains("commandsfrom");
            assert!(warned && said.err.contains("ignored"), "{what}, by git: {by_git}: {}", said.err);
        };
        world.git(&dir, &["config", "aynig.commandsFrom", "branch"]);
        refused("plain");
        world.git(&dir, &["config", "--unset", "aynig.commandsFrom"]);
        world.git(&dir, &["config", &format!("aynig.{}.commandsFrom", dir.join(".git").display()), "branch"]);
        refused("by path");
        world.git(&dir, &["config", "--remove-section", &format!("aynig.{}", dir.join(".git").display())]);
        std::fs::write(dir.join("included"), "[aynig]\n\tcommandsFrom = branch\n").unwrap();
        world.git(&dir, &["config", "include.path", "../included"]);
        refused("included");
        world.git(&dir, &["config", "--unset", "include.path"]);
        world.git(&dir, &["config", "extensions.worktreeConfig", "true"]);
        world.git(&dir, &["config", "--worktree", "aynig.commandsFrom", "branch"]);
        refused("of the worktree");
    }
}

/// K33
#[test]
fn other_protected_keys_of_the_repository_are_ignored_with_a_warning() {
    for by_git in [false, true] {
        let mut world = World::any();
        let dir = asked(&world);
        world.aynig(&dir, &["trust"]).expect(0);
        let elsewhere = world.root().join("elsewhere");
        for (key, value) in [
            ("branches", "nothing"),
            ("exec", "false"),
            ("passEnv", "NOTHING"),
            ("requireSignature", "true"),
            ("worktreeDir", elsewhere.to_str().unwrap()),
        ] {
            world.git(&dir, &["config", &format!("aynig.{key}"), value]);
        }
        if by_git {
            world.set("GIT_CONFIG_PARAMETERS", "'user.name'='Ada'");
        }
        let said = world.aynig(&dir, &["tick"]).expect(0);
        assert!(said.out.contains("build -> review"), "{}", said.out);
        for key in ["branches", "exec", "passenv", "requiresignature", "worktreedir"] {
            assert!(said.err.contains(&format!("'aynig.{key}'")), "{key}: {}", said.err);
        }
        assert!(!elsewhere.exists());
    }
}

/// K33: per repository, by path or glob
#[test]
fn trust_may_name_one_repository_or_several() {
    let cases: &[(&str, bool)] = &[
        ("{}/repo/.git", true),
        ("{}/repo/.git/", true),
        ("{}/repo", true),
        ("{}/*", true),
        ("{}/r?po/.git", true),
        ("{}", false),
        ("{}/rep", false),
        ("{}/repo/.git/x", false),
        ("{}/Repo", false),
        ("*/other/*", false),
    ];
    for (place, counts) in cases {
        let world = World::any();
        let dir = asked(&world);
        let place = place.replace("{}", world.root().to_str().unwrap());
        global(&world, &[&format!("aynig.{place}.commandsFrom"), "branch"]);
        world.aynig(&dir, &["tick"]).expect(if *counts { 0 } else { 2 });
    }
}

/// K33: the path that `trust` writes is no glob
#[test]
fn trust_of_a_path_with_glob_characters_trusts_no_other() {
    let world = World::any();
    for name in ["r[ab]", "ra", "r*", "r?", "r\\a"] {
        let dir = world.init(name);
        Place::new(&world, &dir).seed();
        world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
    }
    for name in ["r[ab]", "r*", "r?", "r\\a"] {
        let dir = world.root().join(name);
        world.aynig(&dir, &["tick"]).expect(2);
        world.aynig(&dir, &["trust"]).expect(0);
        world.aynig(&dir, &["tick"]).expect(0);
    }
    world.aynig(&world.root().join("ra"), &["tick"]).expect(2);
}

/// K33: with a ref a pushed branch can't bring commands, nor change what they reach
#[test]
fn with_a_ref_nothing_of_the_branch_itself_runs() {
    let world = World::any();
    let dir = world.init("repo");
    let build = "#!/bin/sh\n. \"$AYNIG_DIR/lib/say.sh\"\n\"$(dirname \"$0\")/../lib/tool\"\nsay\n\
                 echo 'SET_STATE {\"state\":\"done\"}'\n";
    let files =
        [(".aynig/command/build", build), (".aynig/lib/say.sh", "say() { echo from main; }\n"), ("f", "1\n")];
    world.commit_files(&dir, "main", &files, "seed");
    // Not below a folder named 'command', so that its mode is set by hand.
    let tool = world.git_in(&dir, &["hash-object", "-w", "--stdin"], b"#!/bin/sh\necho tool of main\n");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.git(&dir, &["update-index", "--add", "--cacheinfo", &format!("100755,{tool},.aynig/lib/tool")]);
    world.git(&dir, &["commit", "-q", "-m", "tool"]);
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.git(&dir, &["branch", "evil"]);
    let evil = "#!/bin/sh\necho evil\necho 'SET_STATE {\"state\":\"done\"}'\n";
    let files = [
        (".aynig/command/build", evil),
        (".aynig/command/extra", evil),
        (".aynig/lib/say.sh", "say() { echo evil; }\n"),
        (".aynig/lib/tool", evil),
    ];
    world.commit_files(&dir, "evil", &files, "evil");
    let out = output_of(&world, &dir, "build", "evil");
    assert_eq!(out, "tool of main\nfrom main\nSET_STATE {\"state\":\"done\"}\n");
    world.aynig(&dir, &["set-state", "extra", "-b", "evil"]).expect(0);
    let before = head(&world, &dir, "evil");
    let said = world.aynig(&dir, &["tick", "evil"]).expect(0);
    assert!(said.err.contains("commands come from refs/heads/main"), "{}", said.err);
    assert_eq!(head(&world, &dir, "evil"), before);
    // And the branch's own, where that was said.
    world.aynig(&dir, &["trust", "--branches"]).expect(0);
    assert!(output_of(&world, &dir, "extra", "evil").starts_with("evil\n"));
    // A ref that is not there is said, and nothing runs.
    world.aynig(&dir, &["set-state", "build", "-b", "evil"]).expect(0);
    world.aynig(&dir, &["trust", "--ref", "gone"]).expect(0);
    let said = world.aynig(&dir, &["tick", "evil"]).expect(2);
    assert!(said.out.contains("'refs/heads/gone'") && said.out.contains("does not exist"), "{}", said.out);
}

/// K33
#[test]
fn trust_is_listed_and_revoked() {
    let world = World::any();
    let dir = asked(&world);
    let git_dir = dir.join(".git").display().to_string();
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, "");
    world.aynig(&dir, &["trust"]).expect(0);
    let said = world.aynig(&dir, &["trust", "--list"]).expect(0);
    assert_eq!(said.out, format!("refs/heads/main {git_dir}\n"));
    world.aynig(&dir, &["trust", "--branches"]).expect(0);
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, format!("branch {git_dir}\n"));
    world.aynig(&dir, &["trust", "--ref", "refs/tags/v1"]).expect(0);
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, format!("refs/tags/v1 {git_dir}\n"));
    world.aynig(&dir, &["trust", "--revoke"]).expect(0);
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, "");
    world.aynig(&dir, &["tick"]).expect(2);
    world.aynig(&dir, &["trust", "--revoke"]).expect(0);
    // What still trusts it is said.
    global(&world, &["aynig.commandsFrom", "branch"]);
    let said = world.aynig(&dir, &["trust", "--revoke"]).expect(2);
    assert!(said.err.contains("still"), "{}", said.err);
    world.aynig(&dir, &["trust", "--ref", "a..b"]).expect(129);
}

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
    world.aynig(&dir, &["set-state", "show", "-b", "c"]).expect(0);
    let said = world.aynig(&dir, &["tick", "c"]).expect(1);
    assert!(said.out.contains("stalled") && said.out.contains("/nowhere/sandbox"), "{}", said.out);
    world.aynig(&dir, &["set-state", "show", "-b", "d"]).expect(0);
    global(&world, &["--replace-all", "aynig.exec", "env 'open"]);
    let before = head(&world, &dir, "d");
    world.aynig(&dir, &["tick", "d"]).expect(128);
    assert_eq!(head(&world, &dir, "d"), before);
}

/// K35, K15
#[test]
fn commands_get_of_the_runners_environment_what_is_named() {
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
        let said = world.aynig(&dir, &["tick", "work"]).expect(2);
        assert!(said.out.contains("no signature"), "{}", said.out);
        assert_eq!(head(&world, &dir, "work"), before, "nothing is claimed");
        world.git(&dir, &["checkout", "-q", "-b", "good"]);
        let message = "go\n\ndwp-state: build";
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
        // What set-state writes there is signed too, or nobody would ever answer it.
        world.aynig(&dir, &["set-state", "build", "-b", "good"]).expect(0);
        world.aynig(&dir, &["tick", "good"]).expect(0);
    }
}

/// K33, S16
#[test]
fn a_repository_of_another_user_is_refused_as_git_refuses_it() {
    if !support::world::is_root() {
        eprintln!("skipped: giving files to another user takes root");
        return;
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
        assert_eq!(said.out + &said.err, "");
    }
    assert_eq!(head(&world, &dir, "work"), before);
    world.set("AYNIG", "1");
    world.aynig(&dir, &["tick"]).expect(0);
    assert_ne!(head(&world, &dir, "work"), before);
}

/// K13
#[test]
fn a_command_that_is_not_committed_is_said_with_what_mends_it() {
    let world = World::any();
    let dir = asked(&world);
    world.aynig(&dir, &["trust", "--branches"]).expect(0);
    std::fs::write(dir.join(".aynig/command/later"), "#!/bin/sh\n").unwrap();
    world.aynig(&dir, &["set-state", "later"]).expect(0);
    let said = world.aynig(&dir, &["tick", "main"]).expect(0);
    assert!(
        said.err.contains(".aynig/command/later is in the working tree, not in the commit"),
        "{}",
        said.err
    );
    assert!(said.err.contains("hint: git add .aynig && git commit"), "{}", said.err);
}

/// K13, K4
#[test]
fn the_roles_own_command_goes_first_and_others_stand_in() {
    let mut world = World::any();
    let dir = asked(&world);
    command(&world, &dir, "who", &format!("echo \"everyone's, ROLE=$ROLE\"\n{DONE}"));
    let qa = format!("#!/bin/sh\necho \"qa's, ROLE=$ROLE\"\n{DONE}\n");
    world.commit_files(&dir, "main", &[(".aynig/roles/qa/command/who", &qa)], "qa");
    world.git(&dir, &["reset", "-q", "--hard"]);
    let run = |world: &World, branch: &str, args: &[&str]| {
        output_with(world, &dir, "who", branch, args).lines().next().unwrap().to_owned()
    };
    assert_eq!(run(&world, "a", &[]), "everyone's, ROLE=");
    assert_eq!(run(&world, "b", &["--role", "qa"]), "qa's, ROLE=qa");
    assert_eq!(run(&world, "c", &["--role", "dev"]), "everyone's, ROLE=dev");
    world.set("ROLE", "qa");
    assert_eq!(run(&world, "d", &[]), "qa's, ROLE=qa");
    assert_eq!(run(&world, "e", &["--role", "dev"]), "everyone's, ROLE=dev");
    world.set("ROLE", "");
    world.aynig(&dir, &["set-state", "who", "-b", "bad"]).expect(0);
    for bad in ["../..", "a/b", ".", "..", "-x", "a b", "x\ny", ""] {
        world.set("ROLE", bad);
        let code = world.aynig(&dir, &["tick", "bad"]).code;
        assert_eq!(code, if bad.is_empty() { 0 } else { 129 }, "{bad:?}");
    }
}

/// Puts `.aynig` entries with any mode on a branch: (mode, path, content).
fn entries(world: &World, dir: &Path, branch: &str, entries: &[(&str, &str, &str)]) {
    let mut stream =
        format!("commit refs/heads/{branch}\ncommitter Ada <ada@example.com> 1 +0000\ndata 1\nx\n");
    for (mode, path, content) in entries {
        stream += &format!("M {mode} inline {path}\ndata {}\n{content}\n", content.len());
    }
    world.git_in(dir, &["fast-import", "--quiet", "--force"], stream.as_bytes());
}

/// K13, S4
#[test]
fn only_an_executable_file_inside_the_folder_is_a_command() {
    let world = World::any();
    let dir = asked(&world);
    let script = format!("#!/bin/sh\necho \"at $(basename \"$0\")\"\n{DONE}\n");
    let outside = world.root().join("outside");
    std::fs::write(&outside, format!("#!/bin/sh\ntouch '{}'\n{DONE}\n", world.root().join("ran").display()))
        .unwrap();
    world.run("chmod", &world.root(), &["755", outside.to_str().unwrap()]).expect(0);
    entries(
        &world,
        &dir,
        "commands",
        &[
            ("100755", ".aynig/lib/real", &script),
            ("100644", ".aynig/command/plain", &script),
            ("120000", ".aynig/command/inside", "../lib/real"),
            ("120000", ".aynig/command/chain", "inside"),
            ("120000", ".aynig/command/folder", "../lib"),
            ("120000", ".aynig/command/self", "self"),
            ("120000", ".aynig/command/up", "../../outside"),
            ("120000", ".aynig/command/absolute", outside.to_str().unwrap()),
            ("120000", ".aynig/command/dangling", "../lib/none"),
            ("100755", "outside", &script),
        ],
    );
    world.aynig(&dir, &["trust", "--ref", "commands"]).expect(0);
    let run = |state: &str| {
        world.aynig(&dir, &["set-state", state, "-b", "try"]).expect(0);
        let trigger = head(&world, &dir, "try");
        let said = world.aynig(&dir, &["tick", "try"]);
        (said.code, said.out, head(&world, &dir, "try") == trigger)
    };
    for state in ["inside", "chain"] {
        let (code, out, _) = run(state);
        assert_eq!(code, 0, "{state}: {out}");
        assert!(out.contains(&format!("{state} -> done")), "{out}");
    }
    assert!(run("folder/real").1.contains("folder/real -> done"), "through a linked folder");
    for (state, code, why) in [
        ("plain", 2, "not executable"),
        ("up", 2, "leaves .aynig/"),
        ("absolute", 2, "leaves .aynig/"),
        ("self", 2, "too many symbolic links"),
        ("folder", 0, "has no command"),
        ("dangling", 0, "has no command"),
    ] {
        let (ended, out, untouched) = run(state);
        assert_eq!(ended, code, "{state}: {out}");
        assert!(out.contains(why) && untouched, "{state}: {out}");
    }
    assert!(!world.root().join("ran").exists());
}

/// K13: the whole folder is written once and read-only, whatever the umask
#[test]
fn the_copy_that_commands_start_from_is_read_only_and_written_once() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let world = World::any();
    let dir = asked(&world);
    let mut files = FILES.to_vec();
    files.push((".aynig/lib/deep/data", "data\n"));
    world.commit_files(&dir, "main", &files, "more");
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    let tick = |umask: &str, branch: &str| {
        world.aynig(&dir, &["set-state", "build", "-b", branch]).expect(0);
        let line = format!("umask {umask}; git aynig tick {branch}");
        paste(&world, &dir, &line).expect(0);
    };
    tick("000", "a");
    let tree = world.git(&dir, &["rev-parse", "main:.aynig"]);
    let place = dir.join(".git/aynig/commands").join(tree);
    let stamp = || {
        ["", "command", "command/build", "lib/deep", "lib/deep/data"].map(|path| {
            let meta = place.join(path).metadata().unwrap();
            (path, meta.permissions().mode() & 0o7777, meta.ino(), meta.mtime_nsec())
        })
    };
    let first = stamp();
    for (path, mode, ..) in first {
        assert_eq!(mode, if path.ends_with("data") { 0o444 } else { 0o555 }, "{path}");
    }
    tick("077", "b");
    assert_eq!(stamp(), first, "written once");
    let copies = std::fs::read_dir(dir.join(".git/aynig/commands")).unwrap().count();
    assert_eq!(copies, 1, "nothing half-made is left");
}
