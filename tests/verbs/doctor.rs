use crate::rig::Rig;
use crate::support::world::{World, now};
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
    assert!(said.out.contains("2.29.1") && said.out.contains("2.30 is needed"), "{}", said.out);
    std::fs::remove_file(root.join("bin/git")).unwrap();
    world.set("PATH", root.join("bin"));
    let said = world.aynig(&repo, &["doctor"]).expect(1);
    assert!(said.out.contains("git was not found on PATH"), "{}", said.out);
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
    assert_eq!(plain["hint"], "git add --chmod=+x .aynig/command/plain && git commit");
    found(&findings, "warning", "commands", ".aynig/command/link: a symbolic link that leaves .aynig/");
    found(
        &findings,
        "warning",
        "commands",
        ".aynig/command/late is in the working tree, not in refs/heads/main",
    );
    // Asked for, it stops that branch's tick.
    rig.set("work", "plain");
    found(&rig.doctor(1), "error", "branches", "work: .aynig/command/plain: not executable");
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
    let finding = found(&findings, "error", "locks", "held by somebody else");
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
        eprintln!("skipped: no ssh-keygen here");
        return;
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

#[test]
fn what_switches_ticks_off_is_said() {
    let mut rig = Rig::new();
    rig.world.set("AYNIG", "0");
    assert_eq!(found(&rig.doctor(1), "error", "environment", "AYNIG=0")["hint"], "unset AYNIG");
}
