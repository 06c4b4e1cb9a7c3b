use crate::support::skipped;
use crate::support::world::{World, is_root, now};
use crate::verbs::rig::Rig;
use serde_json::Value;

const SCHEMA: &str = "aynig.doctor/1";

impl Rig {
    /// Runs doctor, which must end with this code.
    fn doctor(&self, code: i32) -> Vec<Value> {
        self.json(&["doctor", "--json"], code, SCHEMA)
    }
}

/// The one finding of this level about this subject whose text contains these words.
#[track_caller]
fn found<'a>(findings: &'a [Value], level: &str, subject: &str, words: &str) -> &'a Value {
    let is = |f: &&Value| {
        f["level"] == level && f["subject"] == subject && f["text"].as_str().unwrap().contains(words)
    };
    findings.iter().find(is).unwrap_or_else(|| panic!("no {level} about {subject} '{words}': {findings:#?}"))
}

fn levels(findings: &[Value], level: &str) -> usize {
    findings.iter().filter(|f| f["level"] == level).count()
}

#[test]
fn where_all_is_well_doctor_says_so() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let findings = rig.doctor(0);
    assert_eq!(levels(&findings, "ok"), findings.len(), "{findings:#?}");
    found(&findings, "ok", "commands", "command/fail, command/ok, command/wait in refs/heads/main");
    found(&findings, "ok", "identity", "Ada <ada@example.com>");
    assert!(
        findings.iter().any(|f| f["subject"] == "git") && findings.iter().any(|f| f["subject"] == "disk")
    );
    let text = rig.aynig(&["doctor"]).expect(0).out;
    assert!(text.lines().all(|line| line.starts_with("ok ")), "{text}");
}

#[test]
fn what_would_stop_a_tick_is_an_error_with_the_command_that_mends_it() {
    let rig = Rig::untrusted();
    assert_eq!(found(&rig.doctor(1), "error", "trust", "not trusted")["hint"], "git aynig trust");
    rig.aynig(&["trust", "--ref", "gone"]).expect(0);
    found(&rig.doctor(1), "error", "trust", "'refs/heads/gone', where commands come from, does not exist");
    rig.aynig(&["trust", "--ref", "main"]).expect(0);
    rig.doctor(0);
    let text = rig.aynig(&["-q", "doctor"]).expect(0).out;
    assert!(text.is_empty(), "{text}");
}

#[test]
fn a_repository_with_reftable_is_as_well() {
    let rig = Rig::new();
    let migrated =
        rig.world.command("git", &rig.dir).args(["refs", "migrate", "--ref-format=reftable"]).output();
    if !migrated.unwrap().status.success() {
        return crate::support::skipped("this git can't migrate refs");
    }
    rig.doctor(0);
}

/// K42: what others push is as durable as `core.fsync` says, seen from either side.
#[test]
fn a_server_that_syncs_no_pushes_is_warned_of() {
    let net = crate::support::net::Net::new(&[]);
    let a = net.machine("a");
    let text = format!("what is pushed to '{}' is not synced there", net.origin().display());
    let hint = format!("hint: git -C '{}' config core.fsync committed", net.origin().display());
    a.git(&["config", "aynig.remote", "origin"]);
    let ask = |here: bool| {
        let mut command = a.aynig(&["doctor"]);
        if here {
            command.current_dir(net.origin());
        }
        let said = crate::support::life::done(command.output().unwrap());
        assert!(matches!(said.code, Some(0 | 1)), "{said:?}");
        said.stdout
    };
    for here in [true, false] {
        let said = ask(here);
        assert!(said.contains(&text) && said.contains(&hint), "{said}");
        net.life.repo.command("sh").args(["-c", &hint["hint: ".len()..]]).output().unwrap();
        assert!(!ask(here).contains("durability"));
        net.git(&["config", "--unset", "core.fsync"]);
    }
}

/// K43: what keeps pushes out of a remote on this machine is named, and whose it may be while a process is there.
#[test]
fn a_lock_in_a_remote_is_named_with_what_removes_it() {
    let net = crate::support::net::Net::new(&[]);
    let a = net.machine("a");
    a.git(&["config", "aynig.remote", "origin"]);
    let origin = std::fs::canonicalize(net.origin()).unwrap();
    let ask = || crate::support::life::done(a.aynig(&["doctor"]).output().unwrap()).stdout;
    let lock = origin.join("refs/heads/work.lock");
    std::fs::write(&lock, "").unwrap();
    assert!(!ask().contains("work.lock"), "it may be of a push that goes on");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
    // A process is at work there.
    let mut git = net.life.repo.command("git");
    git.current_dir(&origin).args(["cat-file", "--batch"]).stdin(std::process::Stdio::piped());
    let mut git = git.stdout(std::process::Stdio::null()).spawn().unwrap();
    let remove = format!("rm '{}'", lock.display());
    let said = crate::support::life::eventually("it is seen", || {
        Some(ask()).filter(|said| said.contains(&format!("(process {})", git.id())))
    });
    assert!(said.contains("perhaps by a git that is at work there"), "{said}");
    assert!(said.contains(&format!("hint: if no git process is at work: {remove}")), "{said}");
    git.kill().unwrap();
    git.wait().unwrap();
    let said = ask();
    assert!(said.contains("keeps pushes out; it was left by a process that is gone"), "{said}");
    assert!(said.contains(&format!("hint: {remove}\n")), "{said}");
    net.life.repo.command("sh").args(["-c", &remove]).output().unwrap();
    assert!(!lock.exists() && !ask().contains("work.lock"));
    // A runner of that repository removes its own.
    let twin = origin.join("aynig/locks/twin");
    std::fs::create_dir_all(twin.parent().unwrap()).unwrap();
    std::fs::write(&twin, "").unwrap();
    std::fs::hard_link(&twin, &lock).unwrap();
    let said = ask();
    let gc = format!("git -C '{}' aynig gc", origin.display());
    assert!(said.contains("was left by a runner of that repository") && said.contains(&gc), "{said}");
    assert!(lock.exists(), "doctor removes nothing");
}

/// K43: a lock of ours is no other program's, whichever of our processes left it.
#[test]
fn the_lock_of_a_killed_child_is_told_from_others() {
    let rig = Rig::new();
    let lock = rig.git_dir().join("refs/heads/work.lock");
    std::fs::write(&lock, "").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
    found(&rig.doctor(1), "error", "locks", "is held by another process");
    let note = rig.git_dir().join("aynig/children/note");
    std::fs::create_dir_all(note.parent().unwrap()).unwrap();
    let began = old.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() - 5;
    let told = format!("begun {began}\nlife 3600\nlock {}\0\nended {}\n", lock.display(), began + 10);
    std::fs::write(&note, told).unwrap();
    let findings = rig.doctor(0);
    assert_eq!(found(&findings, "warning", "locks", "the next tick removes it")["hint"], "git aynig gc");
    rig.aynig(&["gc"]).expect(0);
    assert!(!lock.exists());
}

/// What a key of the configuration says is wrong with that key, not with an option.
#[test]
fn a_bad_value_is_named_with_its_key() {
    let rig = Rig::new();
    for (key, value) in [("leaseDuration", "0"), ("leaseDuration", "31d"), ("jobs", "0")] {
        rig.git(&["config", &format!("aynig.{key}"), value]);
        let said = rig.aynig(&["tick"]).expect(128);
        assert!(said.err.contains(&format!("bad value '{value}' for 'aynig.{key}'")), "{}", said.err);
        rig.git(&["config", "--unset", &format!("aynig.{key}")]);
    }
}

/// K38: what hooks are told to do is told, where there are any.
#[test]
fn what_the_key_of_hooks_says_is_reported() {
    let rig = Rig::new();
    rig.git(&["config", "aynig.hooks", "bogus"]);
    let findings = rig.doctor(1);
    let bad = found(&findings, "error", "configuration", "bad value 'bogus' for 'aynig.hooks'");
    assert!(bad["hint"].as_str().unwrap().ends_with("--get-regexp '^aynig\\.(.*\\.)?hooks$'"), "{bad}");
    rig.git(&["config", "aynig.hooks", "off"]);
    let off =
        |findings: &[Value]| findings.iter().any(|f| f["text"].as_str().unwrap().contains("aynig.hooks"));
    assert!(!off(&rig.doctor(0)));
    rig.aynig(&["hooks", "install"]).expect(0);
    found(&rig.doctor(0), "ok", "hooks", "off ('aynig.hooks'): nothing starts by itself");
    rig.git(&["config", "aynig.hooks", "wait"]);
    assert!(!off(&rig.doctor(0)));
}

#[test]
fn without_a_repository_or_a_usable_git_doctor_still_answers() {
    let mut world = World::any();
    let root = world.root();
    let said = world.aynig(&root, &["doctor"]).expect(1);
    assert!(said.out.contains("error") && said.out.contains("not a git repository"), "{}", said.out);
    assert!(said.out.contains("hint: "), "{}", said.out);
    let repo = world.init("repo");
    let real = std::fs::canonicalize(root.join("bin/git")).unwrap();
    std::fs::remove_file(root.join("bin/git")).unwrap();
    let old = format!(
        "#!/bin/sh\ncase \" $* \" in *' version '*) echo git version 2.29.1; exit;; esac\nexec {} \"$@\"\n",
        real.display()
    );
    std::fs::write(root.join("bin/git"), old).unwrap();
    world.run("chmod", &root, &["+x", "bin/git"]).expect(0);
    let said = world.aynig(&repo, &["doctor"]).expect(1);
    assert!(said.out.contains("2.29.1") && said.out.contains("2.31 is needed"), "{}", said.out);
    std::fs::remove_file(root.join("bin/git")).unwrap();
    world.set("PATH", root.join("bin"));
    let said = world.aynig(&repo, &["doctor"]).expect(1);
    assert!(said.out.contains("git was not found on PATH"), "{}", said.out);
}

/// K36: a file '.git' that leads to no repository is named with the command that moves it away.
#[test]
fn a_file_that_leads_to_no_repository_is_named() {
    let world = World::any();
    let dir = std::fs::canonicalize(world.root()).unwrap().join("plain");
    std::fs::create_dir_all(dir.join("below")).unwrap();
    let file = dir.join(".git");
    let moves = format!("hint: if no repository is to be there: mv '{0}' '{0}.aside'\n", file.display());
    let moves = if dir.to_str().unwrap().contains(' ') { moves } else { moves.replace('\'', "") };
    let long = "x".repeat(2 << 20);
    for text in ["", "gitdir: ", "gitdir: /gone/.git\n", "gitdir: ../gone\n", "gitdir: below\n", &long] {
        std::fs::write(&file, text).unwrap();
        for from in [&dir, &dir.join("below")] {
            let (status, doctor) = (world.aynig(from, &["status"]), world.aynig(from, &["doctor"]));
            assert!(status.code == 128 && status.err.ends_with(&moves), "{status:?}");
            assert!(doctor.code == 1 && doctor.out.ends_with(&moves), "{doctor:?}");
        }
    }
    // What seems a repository is not moved away.
    std::fs::write(dir.join("below/config"), "").unwrap();
    std::fs::write(&file, "gitdir: below\n").unwrap();
    let said = world.aynig(&dir, &["status"]).expect(128);
    assert!(!said.err.contains("mv "), "{said:?}");
}

/// K36: a linked working tree that its repository does not know any more, or that does not find it, is no stray file.
#[test]
fn a_working_tree_without_its_repository_is_told_with_what_mends_it() {
    let rig = Rig::new();
    let linked = std::fs::canonicalize(rig.world.root()).unwrap().join("linked");
    let word = linked.display().to_string();
    rig.git(&["worktree", "add", "-q", "-b", "side", &word]);
    let away = rig.world.root().join("away");
    std::fs::rename(&rig.dir, &away).unwrap();
    let said = rig.world.aynig(&linked, &["status"]).expect(128).err;
    let hint = said.lines().find_map(|line| line.strip_prefix("hint: where its repository is now: "));
    let hint = hint.unwrap_or_else(|| panic!("{said}"));
    assert!(said.contains("hint: if no repository is to be there: mv "), "{said}");
    let repair = hint.replace("<repository>", &format!("'{}'", away.display()));
    rig.world.run("sh", &linked, &["-c", &repair]).expect(0);
    rig.world.aynig(&linked, &["status"]).expect(0);
    std::fs::rename(&away, &rig.dir).unwrap();
    rig.world.run("sh", &linked, &["-c", &repair.replace("/away'", "/repo'")]).expect(0);
    // Git has no command that notes again what is there, so the hint keeps it beside a new one.
    std::fs::remove_dir_all(rig.git_dir().join("worktrees/linked")).unwrap();
    std::fs::write(linked.join("work"), "mine").unwrap();
    let said = rig.world.aynig(&linked, &["doctor"]).expect(1).out;
    let hint = said.lines().find_map(|line| line.trim_start().strip_prefix("hint: "));
    let again = hint.unwrap().replace("<branch>", "side");
    rig.world.run("sh", &linked, &["-c", &again]).expect(0);
    rig.world.aynig(&linked, &["status"]).expect(0);
    assert_eq!(std::fs::read_to_string(format!("{word}.aside/work")).unwrap(), "mine");
}

#[test]
fn a_value_that_cannot_be_read_is_an_error() {
    let rig = Rig::new();
    rig.git(&["config", "aynig.maxHops", "many"]);
    let findings = rig.doctor(1);
    assert!(
        found(&findings, "error", "configuration", "aynig.maxHops")["hint"]
            .as_str()
            .unwrap()
            .contains("git config")
    );
}

#[test]
fn keys_that_the_repository_may_not_set_are_named() {
    let rig = Rig::new();
    rig.git(&["config", "aynig.commandsFrom", "branch"]);
    let findings = rig.doctor(0);
    let finding = found(&findings, "warning", "configuration", "'aynig.commandsfrom'");
    assert!(
        finding["hint"].as_str().unwrap().contains("--local --unset-all aynig.commandsfrom"),
        "{finding}"
    );
}

#[test]
fn commands_that_cannot_be_started_are_named() {
    let rig = Rig::new();
    std::fs::write(rig.dir.join(".aynig/command/plain"), "#!/bin/sh\n").unwrap();
    std::os::unix::fs::symlink("../../outside", rig.dir.join(".aynig/command/link")).unwrap();
    rig.git(&["add", "."]);
    rig.git(&["commit", "-q", "-m", "bad"]);
    std::fs::write(rig.dir.join(".aynig/command/late"), "#!/bin/sh\n").unwrap();
    let findings = rig.doctor(0);
    let plain = found(&findings, "warning", "commands", ".aynig/command/plain: not executable");
    let mends = "git switch main && chmod +x .aynig/command/plain && \
                 git add --chmod=+x .aynig/command/plain && git commit";
    assert_eq!(plain["hint"], mends);
    found(&findings, "warning", "commands", ".aynig/command/link: a symbolic link that leaves .aynig/");
    found(
        &findings,
        "warning",
        "commands",
        ".aynig/command/late is in the working tree, not in refs/heads/main",
    );
    // Asked for, it stops that branch's tick.
    rig.set("work", "plain");
    let findings = rig.doctor(1);
    let asked = found(&findings, "error", "branches", "work: .aynig/command/plain: not executable");
    assert_eq!(asked["hint"], mends);
    rig.aynig(&["tick", "work"]).expect(2);
}

#[test]
fn locks_are_told_apart() {
    let rig = Rig::new();
    let foreign = rig.git_dir().join("refs/heads/main.lock");
    std::fs::write(&foreign, "").unwrap();
    rig.doctor(0);
    rig.age(&foreign, 1);
    let findings = rig.doctor(1);
    let finding = found(&findings, "error", "locks", "held by another process");
    assert!(finding["hint"].as_str().unwrap().ends_with(&format!("rm {}", foreign.display())), "{finding}");
    std::fs::remove_file(&foreign).unwrap();
    std::fs::create_dir_all(rig.git_dir().join("aynig/locks")).unwrap();
    std::fs::write(rig.git_dir().join("aynig/locks/twin"), "").unwrap();
    std::fs::hard_link(rig.git_dir().join("aynig/locks/twin"), &foreign).unwrap();
    found(&rig.doctor(0), "warning", "locks", "left by a runner that was killed");
}

#[test]
fn branches_that_are_in_trouble_are_named() {
    let rig = Rig::new();
    let lease = b"x\n\ndwp-state: working\ndwp-run-id: r\ndwp-lease-seconds: 10\n";
    rig.world.raw_commit_dated(&rig.dir, "expired", &(now() - 60).to_string(), lease);
    rig.world.raw_commit(&rig.dir, "odd", b"x\n\ndwp-state: working\ndwp-lease-seconds: soon\n");
    rig.world.raw_commit(&rig.dir, "state", b"x\n\ndwp-state: ../x\n");
    rig.world.raw_commit_dated(&rig.dir, "future", &(now() + 7200).to_string(), b"x\n");
    rig.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    let findings = rig.doctor(0);
    assert_eq!(
        found(&findings, "warning", "branches", "expired: its lease has expired")["hint"],
        "git aynig tick expired"
    );
    found(&findings, "warning", "branches", "odd: its lease has an unusable date or length");
    found(&findings, "warning", "branches", "state: its state is not usable");
    found(&findings, "warning", "branches", "refs/heads/alias is another name for refs/heads/main");
    found(&findings, "warning", "clock", "ahead of this machine's clock");
    std::fs::write(rig.git_dir().join("refs/heads/torn"), "nonsense\n").unwrap();
    found(&rig.doctor(1), "error", "branches", "torn: ");
}

#[test]
fn signing_is_tried_where_it_is_required() {
    let rig = Rig::new();
    rig.git(&["config", "--global", "aynig.requireSignature", "true"]);
    rig.git(&["config", "--global", "gpg.format", "ssh"]);
    rig.git(&["config", "--global", "user.signingKey", "/nonexistent"]);
    found(&rig.doctor(1), "error", "signing", "cannot sign");
    let key = rig.world.home().join("key");
    let made = rig
        .world
        .command("ssh-keygen", &rig.dir)
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .output();
    if !made.is_ok_and(|o| o.status.success()) {
        return skipped("no ssh-keygen here");
    }
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    std::fs::write(rig.world.home().join("signers"), format!("ada@example.com {public}")).unwrap();
    rig.git(&["config", "--global", "user.signingKey", key.to_str().unwrap()]);
    rig.git(&[
        "config",
        "--global",
        "gpg.ssh.allowedSignersFile",
        rig.world.home().join("signers").to_str().unwrap(),
    ]);
    found(&rig.doctor(0), "ok", "signing", "can be signed and verified");
}

#[test]
fn a_killed_runners_slot_is_seen() {
    let rig = Rig::new();
    let mut held = rig.hold("work");
    found(&rig.doctor(0), "ok", "worktrees", "in use by run ");
    held.kill().unwrap();
    held.wait().unwrap();
    let findings = rig.doctor(0);
    let slot = |f: &&Value| f["subject"] == "worktrees" && f["level"] == "warning";
    assert!(findings.iter().any(|f| slot(&f)), "{findings:#?}");
}

/// Between two runs a runner has a worktree and has not said for which.
#[test]
fn a_worktree_that_is_held_for_no_run_yet_is_in_use() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let slots = std::fs::read_dir(rig.git_dir().join("aynig/slots")).unwrap().flatten();
    let lock =
        slots.map(|entry| entry.path()).find(|path| path.extension() == Some("lock".as_ref())).unwrap();
    let file = std::fs::File::options().write(true).open(&lock).unwrap();
    let held = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusiveNonblock).unwrap();
    let said = rig.doctor(0);
    let text = format!("{} is in use", lock.file_stem().unwrap().to_str().unwrap());
    assert_eq!(found(&said, "ok", "worktrees", "in use")["text"], text);
    drop(held);
    let said = rig.doctor(0);
    let in_use = |f: &Value| f["text"].as_str().unwrap().contains("in use");
    assert!(!said.iter().any(in_use), "{said:#?}");
}

#[test]
fn what_switches_ticks_off_is_said() {
    let mut rig = Rig::new();
    rig.world.set("AYNIG", "0");
    assert_eq!(found(&rig.doctor(1), "error", "environment", "AYNIG=0")["hint"], "unset AYNIG");
}

#[test]
fn a_remotes_branch_from_the_future_is_a_clock_that_is_off() {
    let rig = Rig::new();
    let id = rig.world.raw_commit_dated(&rig.dir, "ahead", &(now() + 400).to_string(), b"x\n");
    rig.git(&["update-ref", "refs/remotes/origin/work", &id]);
    rig.git(&["update-ref", "-d", "refs/heads/ahead"]);
    let findings = rig.doctor(0);
    let finding = found(&findings, "warning", "clock", "refs/remotes/origin/work is ");
    assert!(finding["hint"].as_str().unwrap().contains("; git config aynig.leaseGrace "), "{finding}");
    // What the grace covers is said no more.
    rig.git(&["config", "aynig.leaseGrace", "10m"]);
    found(&rig.doctor(0), "ok", "clock", "no branch is ahead of it");
}

#[test]
fn the_remote_that_runners_share_is_asked_only_where_that_is_wanted() {
    let rig = Rig::new();
    let none = |findings: &[Value]| !findings.iter().any(|f| f["subject"] == "remote");
    assert!(none(&rig.doctor(0)), "no remote, no word");
    let network = |code| rig.json(&["doctor", "--network", "--json"], code, SCHEMA);
    found(&network(0), "ok", "remote", "none is configured");
    rig.git(&["config", "aynig.remote", "shared"]);
    let findings = rig.doctor(1);
    let missing =
        found(&findings, "error", "remote", "'shared', which aynig.remote names, is no remote here");
    assert!(missing["hint"].as_str().unwrap().starts_with("git remote add shared "), "{missing}");
    rig.git(&["remote", "add", "shared", "https://ada:s3cret@gone.invalid/x.git"]);
    let at = "'shared' is at https://gone.invalid/x.git";
    found(&rig.doctor(0), "ok", "remote", at);
    rig.git(&["remote", "set-url", "shared", "../nowhere"]);
    let findings = network(1);
    let silent = found(&findings, "error", "remote", "'shared' is at ../nowhere, and does not answer");
    assert_eq!(silent["hint"], "git ls-remote shared HEAD");
    // Relative to the repository, wherever doctor was called.
    let other = rig.world.try_init("there.git", &["--bare"]).unwrap();
    rig.world.commit_files(&other, "main", &[("file", "x")], "x");
    rig.git(&["remote", "set-url", "shared", "../there.git"]);
    found(&network(0), "ok", "remote", "'shared' is at ../there.git, and answers (");
    // Commands come from the remote's own branch, as it was last heard of (K33).
    found(&rig.doctor(0), "ok", "trust", "refs/heads/main of 'shared', which was not fetched yet");
    rig.git(&["update-ref", "refs/aynig/remote/shared/main", "main"]);
    found(&rig.doctor(0), "ok", "trust", "commands come from refs/heads/main of 'shared'");
    // So are its branches; this repository's own are not ticked.
    rig.aynig(&["set-state", "build", "--remote", ".", "-b", "here"]).expect(0);
    found(&rig.doctor(0), "ok", "branches", "0 with a state event");
    rig.git(&["update-ref", "refs/aynig/remote/shared/there", "here"]);
    found(&rig.doctor(0), "ok", "branches", "1 with a state event");
    // A value that Git would take for a flag is no name.
    rig.git(&["config", "aynig.remote", "--upload-pack=x"]);
    found(&network(1), "error", "remote", "is no remote here");
}

#[test]
fn locks_of_gits_own_are_named_with_what_they_keep_from_happening() {
    let rig = Rig::new();
    let tree = rig.world.root().join("tree");
    rig.git(&["worktree", "add", "-q", tree.to_str().unwrap(), "-b", "side"]);
    for (lock, why) in [
        ("index.lock", "outcomes cannot be brought into that working tree"),
        ("worktrees/tree/index.lock", "outcomes cannot be brought into that working tree"),
        ("config.lock", "the configuration cannot be changed"),
        ("shallow.lock", "nothing can be fetched"),
        ("objects/maintenance.lock", "'git maintenance' does nothing, gc included"),
    ] {
        let path = rig.git_dir().join(lock);
        std::fs::write(&path, "").unwrap();
        // A process may be at work right now.
        assert_eq!(levels(&rig.doctor(0), "warning"), 0, "{lock}");
        rig.age(&path, 1);
        let findings = rig.doctor(0);
        let finding = found(&findings, "warning", "locks", why);
        assert!(finding["hint"].as_str().unwrap().ends_with(&format!("rm {}", path.display())), "{finding}");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_disk_on_which_no_file_can_be_made_any_more_is_an_error() {
    let rig = Rig::new();
    let at = rig.world.root().join("small");
    std::fs::create_dir(&at).unwrap();
    let mount = |options: &str| {
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&at);
        command.output().is_ok_and(|m| m.status.success())
    };
    if !mount("nr_inodes=200,size=900m,mode=755") {
        return crate::support::skipped("this user can't mount a disk");
    }
    // Objects there, and everything else elsewhere.
    let objects = rig.git_dir().join("objects");
    rig.world.run("cp", &rig.dir, &["-R".as_ref(), objects.as_os_str(), at.as_os_str()]).expect(0);
    std::fs::remove_dir_all(&objects).unwrap();
    std::os::unix::fs::symlink(at.join("objects"), &objects).unwrap();
    let few = rig.aynig(&["doctor", "--json"]);
    let more = mount("remount,nr_inodes=5k");
    let some = rig.aynig(&["doctor", "--json"]);
    std::process::Command::new("umount").arg("-l").arg(&at).status().unwrap();
    let read = |said: &str| said.lines().map(|l| serde_json::from_str(l).unwrap()).collect::<Vec<Value>>();
    assert_eq!(few.code, 1, "{}", few.out);
    found(&read(&few.out), "error", "disk", " files may still be made where '");
    if more {
        assert_eq!(some.code, 0, "{}", some.out);
        found(&read(&some.out), "warning", "disk", " files may still be made where '");
    }
}

/// What a real history says, and what it says once an attacker forged it.
#[test]
fn the_history_of_a_branch_is_judged() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let trigger = rig.git(&["rev-parse", "work"]);
    rig.aynig(&["tick", "work"]).expect(0);
    rig.set("other", "fail");
    rig.aynig(&["tick", "other"]).expect(1);
    let judged =
        |args: &[&str], code| rig.json(&[&["doctor", "--json", "--history"], args].concat(), code, SCHEMA);
    found(&judged(&["work"], 0), "ok", "history", "work: 3 state events were judged");
    found(&judged(&[], 0), "ok", "history", "3 branches: 6 state events were judged");
    assert!(!rig.doctor(0).iter().any(|f| f["subject"] == "history"));
    // A person may rewind, and merge.
    let outcome = rig.git(&["rev-parse", "work"]);
    rig.git(&["update-ref", "-m", "reset", "refs/heads/work", &trigger]);
    rig.aynig(&["tick", "work"]).expect(0);
    found(&judged(&["work"], 0), "ok", "history", "work: 3 state events were judged");
    // The first outcome once more, on top of itself.
    let message = rig.git(&["log", "-1", "--format=%B", &outcome]);
    let again = rig.git(&["commit-tree", "-p", &outcome, "-m", &message, &format!("{outcome}^{{tree}}")]);
    rig.git(&["update-ref", "-m", "forged", "refs/heads/forged", &again]);
    let said = judged(&["forged"], 1);
    let finding = found(&said, "error", "history", "forged: V2: run ");
    assert_eq!(finding["hint"], "git aynig events --history forged");
    found(&said, "error", "history", &format!("forged: V4: {again} does not stand on a lease of its run"));
    found(&judged(&[], 1), "error", "history", "forged: V2: run ");
    found(&judged(&["work"], 0), "ok", "history", "work: ");
    // What only the reflog tells: a move of this tool that dropped a commit.
    let mine = rig.git(&["commit-tree", "-p", "work", "-m", "mine", "work^{tree}"]);
    rig.git(&["update-ref", "-m", "commit", "refs/heads/work", &mine]);
    rig.git(&["update-ref", "-m", "aynig: ok -> done", "refs/heads/work", &outcome]);
    let text = format!("work: V5: {outcome} dropped what was accepted before");
    found(&judged(&["work"], 1), "error", "history", &text);
    let gone = judged(&["gone"], 1);
    assert_eq!(found(&gone, "error", "history", "branch 'gone' does not exist")["hint"], "git branch --list");
}

#[test]
fn a_folder_that_a_claim_cannot_write_to_is_an_error_with_the_command_that_mends_it() {
    use std::os::unix::fs::PermissionsExt;
    if is_root() {
        return skipped("root writes everywhere");
    }
    let rig = Rig::new();
    rig.set("work", "ok");
    for name in ["objects", "refs/heads", "../.aynig/logs", "worktrees", "aynig/slots", "aynig/commands"] {
        let folder = rig.git_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o500)).unwrap();
        let findings = rig.doctor(1);
        let finding = found(
            &findings,
            "error",
            "repository",
            &format!("{}' cannot be written", name.trim_start_matches("../")),
        );
        rig.world.run("sh", &rig.dir, &["-c", finding["hint"].as_str().unwrap()]).expect(0);
        rig.doctor(0);
    }
}

/// K13, K36: what the system would refuse to start is named, with what mends it, and is in no list of what is well.
#[test]
fn a_command_that_can_not_be_started_is_a_warning_with_its_mend() {
    let rig = Rig::new();
    let cases = [
        ("empty", "", "it is empty", "begin it with #!/bin/sh"),
        ("bare", "echo hi\n", "its first line does not begin with #!", "begin it with #!/bin/sh"),
        (
            "crlf",
            "#!/bin/sh\r\necho\r\n",
            "ends in a carriage return",
            "sed -i 's/\\r$//' .aynig/command/crlf",
        ),
        ("maybe", "#!/bin/sh -e\r\n", "ends in a carriage return", "sed -i 's/\\r$//' .aynig/command/maybe"),
        (
            "lost",
            "#!/no/\u{1b}[2Jx\n",
            "'/no/\\x1b[2Jx' is not here",
            "install that, or name another program",
        ),
        (
            "env",
            "#!/usr/bin/env no-such-x\n",
            "env does not find 'no-such-x'",
            "install that, or name another",
        ),
        ("rel", "#!sh\n", "'sh' is looked for in the worktree", "name it from the root on"),
    ];
    let files: Vec<_> = cases.iter().map(|case| (format!(".aynig/command/{}", case.0), case.1)).collect();
    let files: Vec<_> = files.iter().map(|(path, content)| (&**path, *content)).collect();
    rig.world.commit_files(&rig.dir, "main", &files, "more");
    let findings = rig.doctor(0);
    for (name, _, words, mend) in cases {
        let finding = found(&findings, "warning", "commands", &format!(".aynig/command/{name}: "));
        let (text, hint) = (finding["text"].as_str().unwrap(), finding["hint"].as_str().unwrap());
        assert!(text.contains(words) && hint.contains(mend), "{finding}");
        assert!(
            hint.contains(&format!(".aynig/command/{name}")) && hint.contains("git switch main && "),
            "{hint}"
        );
    }
    let list = found(&findings, "ok", "commands", "in refs/heads/main");
    assert_eq!(list["text"], "command/fail, command/ok, command/wait in refs/heads/main");
    // Where what is doubtful is all that there is, it is not said that nothing would run.
    let doubtful = Rig::new();
    let gone = [".aynig/command/fail", ".aynig/command/ok", ".aynig/command/wait"];
    doubtful.git(&["switch", "-q", "main"]);
    doubtful.git(&[&["rm", "-q"][..], &gone].concat());
    doubtful.git(&["commit", "-qm", "none"]);
    let none = |found: &[Value]| found.iter().any(|f| f["text"].as_str().unwrap().contains("has none"));
    assert!(none(&doubtful.doctor(0)));
    doubtful.world.commit_files(
        &doubtful.dir,
        "main",
        &[(".aynig/command/maybe", "#!/bin/sh -e\r\n")],
        "one",
    );
    assert!(!none(&doubtful.doctor(0)));
    // A branch that asks for one would not get far.
    rig.set("work", "bare");
    found(&rig.doctor(1), "error", "branches", "work: .aynig/command/bare: its first line does not begin");
    // Started by another program, in another place, what is missing here is no finding.
    rig.git(&["config", "--global", "aynig.exec", "env -C /elsewhere"]);
    let findings = rig.doctor(0);
    assert!(!findings.iter().any(|f| f["text"].as_str().unwrap().contains("is not here")), "{findings:#?}");
}

/// K13, K35: what every command is started with has to be here, by its path or on the path.
#[test]
fn a_program_of_aynig_exec_that_is_not_here_is_an_error() {
    let rig = Rig::new();
    for program in ["/no/such/wrapper", "no-such-wrapper -x", "/etc/passwd"] {
        rig.git(&["config", "--global", "aynig.exec", program]);
        let name = program.split(' ').next().unwrap();
        let text = format!("cannot start '{name}', which 'aynig.exec' names");
        let findings = rig.doctor(1);
        let finding = found(&findings, "error", "commands", &text);
        assert_eq!(finding["hint"], "git config --show-origin --get-regexp '^aynig\\.(.*\\.)?exec$'");
    }
    // A script is there for nothing without what its first line names.
    let script = |name: &str, text: &str| {
        let path = rig.dir.parent().unwrap().join(name);
        crate::support::write_program(&path, text);
        path.to_str().unwrap().to_owned()
    };
    for (first, why) in [
        #[cfg(target_os = "linux")]
        ("", "its first line does not begin with #!"),
        ("#!/bin/sh\r", "its first line ends in a carriage return (CRLF)"),
        ("#!/no/such/shell", "its interpreter '/no/such/shell' is not here"),
        ("#!/usr/bin/env no-such-shell", "env does not find 'no-such-shell' on PATH"),
    ] {
        let program = script("wrapper", &format!("{first}\nexec \"$@\"\n"));
        rig.git(&["config", "--global", "aynig.exec", &program]);
        found(
            &rig.doctor(1),
            "error",
            "commands",
            &format!("cannot start '{program}', which 'aynig.exec' names: {why}"),
        );
        rig.set("work", "ok");
        let before = rig.git(&["rev-parse", "work"]);
        let said = rig.aynig(&["tick", "work"]).expect(128).err;
        assert!(said.contains(why), "{said}");
        assert_eq!(rig.git(&["rev-parse", "work"]), before, "nothing is claimed");
    }
    // The system goes on along PATH where what the first line names is not there, a carriage return in it or not.
    for first in ["#!/bin/sh\r", "#!/no/such/shell"] {
        let folder = rig.dir.parent().unwrap().join(format!("lacking-{}", first.len()));
        std::fs::create_dir(&folder).unwrap();
        crate::support::write_program(&folder.join("env"), &format!("{first}\n"));
        let path = format!(
            "{}:{}",
            folder.display(),
            rig.world.vars[std::ffi::OsStr::new("PATH")].to_string_lossy()
        );
        rig.git(&["config", "--global", "aynig.exec", "env"]);
        let mut command = rig.world.command(rig.world.root().join("bin/git-aynig"), &rig.dir);
        let said = crate::support::world::Said::from(
            command.env("PATH", path).args(["tick", "work"]).output().unwrap(),
        )
        .expect(0);
        assert!(said.out.contains("work: ok -> done"), "{}{}", said.out, said.err);
        rig.set("work", "ok");
    }
    rig.git(&["update-ref", "-d", "refs/heads/work"]);
    // One that is looked for in the slot, and what another program does with its arguments, can't be judged here.
    for program in ["env A=1", "/bin/sh -c 'exec \"$@\"' sh", "tools/wrapper"] {
        rig.git(&["config", "--global", "aynig.exec", program]);
        rig.doctor(0);
    }
}

/// K14, S34: what a run writes to only after the claim is looked at all the same, and each of these folders is named.
#[test]
fn what_stands_in_the_place_of_a_folder_is_an_error_with_the_command_that_mends_it() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let places = ["worktrees", "aynig/slots", "aynig/commands"];
    for name in places {
        let place = rig.git_dir().join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, "").unwrap();
    }
    let findings = rig.doctor(1);
    for name in places {
        let finding = found(&findings, "error", "repository", &format!("/{name}' is no folder"));
        rig.world.run("sh", &rig.dir, &["-c", finding["hint"].as_str().unwrap()]).expect(0);
    }
    rig.doctor(0);
    rig.aynig(&["tick", "work"]).expect(0);
}

/// K1: what Git itself is told of trailers changes what it sees, never what is done here, and that is said
#[test]
fn configuration_under_which_git_sees_other_trailers_is_warned_of() {
    let rig = Rig::new();
    let plain = "s\n\nb\n\nTicket: 1\ndwp-state: ok\n# note\n";
    let mixed = "s\n\nb\n\nwords\nTicket: 1\ndwp-state: ok\n";
    let odd = "s\n\nb\n\nTicket: 1\ndwp-state= ok\n";
    // (key, value, a message, how often our key is a trailer of it by default and by that configuration)
    let configured = [
        ("trailer.separators", "=:", odd, (0, 1)),
        ("trailer.separators", "=", plain, (1, 0)),
        ("trailer.t.key", "Ticket", mixed, (0, 1)),
        ("trailer.Ticket.where", "end", mixed, (0, 1)),
        ("core.commentChar", ";", plain, (1, 0)),
        ("core.commentString", "//", plain, (1, 0)),
        ("trailer.separators", ":", plain, (1, 1)),
        ("trailer.where", "end", mixed, (0, 0)),
        ("trailer.Ticket.nothing", "x", mixed, (0, 0)),
        ("core.commentChar", "#", plain, (1, 1)),
    ];
    for (at, (key, value, message, (here, there))) in configured.into_iter().enumerate() {
        if key == "core.commentString" && !rig.world.git_is(2, 45) {
            continue;
        }
        let sees = || {
            let seen = rig.world.git_in(&rig.dir, &["interpret-trailers", "--parse"], message.as_bytes());
            seen.lines().filter(|line| line.starts_with("dwp-state")).count()
        };
        assert_eq!(sees(), here, "{message}");
        rig.git(&["config", key, value]);
        assert_eq!(sees(), there, "{key}={value}: {message}");
        // Here nothing changed.
        let branch = format!("b{at}");
        rig.world.raw_commit(&rig.dir, &branch, message.as_bytes());
        let told = rig.json(&["status", "--json", &branch], 0, "aynig.status/1");
        assert_eq!(told[0]["state"] == "ok", here == 1, "{key}={value}: {told:?}");
        let findings = rig.doctor(0);
        if here == there {
            assert!(findings.iter().all(|f| f["subject"] != "trailers"), "{key}={value}: {findings:#?}");
        } else {
            let (section, rest) = key.split_once('.').unwrap();
            let (token, last) =
                rest.rsplit_once('.').map_or((String::new(), rest), |(t, l)| (format!("{t}."), l));
            let named = format!("'{section}.{token}{}': Git itself may", last.to_lowercase());
            let hint = found(&findings, "warning", "trailers", &named)["hint"].as_str().unwrap().to_owned();
            let shown = rig.world.run("sh", &rig.dir, &["-c", &hint]).expect(0).out;
            assert!(shown.contains("file:.git/config"), "{hint}: {shown}");
        }
        rig.git(&["config", "--unset", key]);
    }
    // Of what replaces each other the last counts.
    rig.git(&["config", "--global", "core.commentChar", ";"]);
    rig.git(&["config", "core.commentChar", "#"]);
    assert!(rig.doctor(0).iter().all(|f| f["subject"] != "trailers"));
}

/// K50: a pause is no error, and is named with what takes it back
#[test]
fn a_pause_is_named_with_the_command_that_ends_it() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["pause", "-m", "moving house"]).expect(0);
    let findings = rig.doctor(0);
    let pause =
        found(&findings, "warning", "paused", "every branch: paused by person ada@example.com: moving house");
    let resume = pause["hint"].as_str().unwrap().to_owned();
    assert_eq!(rig.aynig(&["tick", "work"]).expect(0).out.lines().count(), 1);
    rig.world.run("sh", &rig.dir, &["-c", &format!("{resume} --no-tick")]).expect(0);
    assert!(rig.doctor(0).iter().all(|finding| finding["subject"] != "paused"));
    rig.git(&["update-ref", "refs/aynig/paused/none", "HEAD"]);
    let findings = rig.doctor(0);
    assert_eq!(
        found(&findings, "warning", "paused", "every branch: paused")["hint"],
        "git aynig resume --all"
    );
}
