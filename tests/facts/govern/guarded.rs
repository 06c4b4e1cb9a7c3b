//! What a pushed branch, a worker and a folder of another user's can't make governed runs read or write. Its tests
//! are row S31 of CONTRACT.md's section on security.

use crate::govern::rig::*;
use crate::support::life::Life;
use crate::support::skipped;
use serde_json::json;
use std::os::unix::fs::symlink;

/// S31, G13: links that were pushed are not followed, whatever they lead to: files, devices, what the system makes up.
#[test]
fn s31_a_pushed_link_is_read_nowhere() {
    for target in ["secret", "/proc/self/environ", "/dev/zero"] {
        let life = life(|config| config["workflow_kit"] = json!({}));
        govern(&life, &["start", "-b", "work"]).expect(0);
        std::fs::write(life.shared().join("secret"), "the-secret-of-the-account\n").unwrap();
        let target = if target == "secret" { life.shared().join("secret") } else { target.into() };
        life.git(&["checkout", "-q", "work"]);
        symlink(&target, life.path("PLAN.md")).unwrap();
        life.git(&["add", "PLAN.md"]);
        life.git(&["commit", "-qm", "plan\n\ndwp-state: turn/pm"]);
        life.git(&["checkout", "-q", "main"]);
        worker(&life, "exit 1");
        life.run(&["tick", "work"]).expect(0);
        let turn = state(&life)["active_turns"].as_object().unwrap().keys().next().unwrap().clone();
        let context = show(&life, &format!(".agentxchain/dispatch/turns/{turn}/CONTEXT.md"));
        assert!(context.contains("`PLAN.md`: missing"), "{context}");
        assert!(!context.contains("the-secret") && !context.contains("PATH="), "{context}");
    }
}

/// S31, G1: what a branch brings of a process at work is forgotten: no journal is done that was never begun here, and none
/// that is garbled stops anyone.
#[test]
fn s31_a_journal_that_a_branch_brings_is_forgotten() {
    let swap = [
        (
            ".agentxchain/transactions/accept/a.json",
            r#"{"kind":"x","appends":[],"removals":[".git"],"prepared_at":"1"}"#,
        ),
        (
            ".agentxchain/transactions/accept/b.json",
            r#"{"kind":"x","appends":[],"moves":[{"from":"fg","to":".git"}],"prepared_at":"2"}"#,
        ),
    ];
    let garbage =
        [(".agentxchain/transactions/lifecycle/x.json", "garbage"), (".agentxchain/locks", "a file")];
    for brought in [&swap[..], &garbage[..]] {
        for act in ["tick", "assign", "block"] {
            let life = life(|_| {});
            let fired = life.shared().join("fired");
            let fake = life.repo.home().join("fake");
            life.git(&["init", "-q", fake.to_str().unwrap()]);
            let fake = fake.to_str().unwrap();
            life.git(&["-C", fake, "commit", "-q", "--allow-empty", "-m", "x"]);
            let program = format!("sh -c 'echo fired >>{}; cat'", fired.display());
            life.git(&["-C", fake, "config", "filter.x.clean", &program]);
            govern(&life, &["start", "-b", "work"]).expect(0);
            life.git(&["checkout", "-q", "work"]);
            let copied = std::process::Command::new("cp")
                .args(["-r", &format!("{fake}/.git")])
                .arg(life.path("fg"))
                .status();
            assert!(copied.unwrap().success());
            std::fs::remove_dir_all(life.path("fg/hooks")).unwrap();
            life.write("fg/refs/keep", "");
            life.write("fg/info/attributes", "* filter=x\n");
            brought.iter().for_each(|(path, text)| life.write(path, text));
            life.git(&["add", "-f", "-A"]);
            life.git(&["commit", "-qm", "innocent\n\ndwp-state: turn/pm"]);
            life.git(&["checkout", "-q", "main"]);
            let said = match act {
                "tick" => life.run(&["tick", "work"]),
                "assign" => govern(&life, &["assign", "-b", "work", "pm"]),
                _ => govern(&life, &["block", "-b", "work", "-m", "no"]),
            };
            assert!(!fired.exists(), "{act}: {said:?}");
            let said = said.expect(0);
            let left = life.git(&["ls-tree", "-r", "--name-only", "work", ".agentxchain/"]);
            assert!(!left.contains("transactions") && !left.contains("locks"), "{act} {left} {said:?}");
        }
    }
}

/// S31: the pack's worker writes through no link that another user left.
#[test]
fn s31_the_worker_of_the_pack_writes_to_the_worktree() {
    let life = life(|_| {});
    let target = life.shared().join("profile");
    std::fs::write(&target, "kept\n").unwrap();
    symlink(&target, life.path("PLAN.md")).unwrap();
    life.git(&["add", "PLAN.md"]);
    life.git(&["commit", "-qm", "link"]);
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept\n");
    assert_eq!(life.state("work"), "gate");
}

/// S31, S7: on a server a turn starts nothing that pushed attributes name.
#[test]
fn s31_a_turn_on_a_server_starts_no_driver() {
    let life = life(|_| {});
    life.write(".gitattributes", "* filter=evil diff=evil\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "attributes"]);
    let bare = life.repo.home().join("server.git");
    life.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let fired = life.shared().join("fired");
    let program = format!("sh -c 'echo fired >>\"{}\"; cat'", fired.display());
    for key in ["filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.command"] {
        life.config(key, &program);
    }
    let run = |args: &[&str]| {
        let output = life.aynig(args).current_dir(&bare).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run(&["govern", "start", "-b", "work"]);
    run(&["run", "work"]);
    let gate = life.git(&["--git-dir", bare.to_str().unwrap(), "log", "-1", "--format=%B", "work"]);
    assert!(gate.contains("dwp-state: gate"), "{gate}");
    assert!(!fired.exists(), "{}", std::fs::read_to_string(&fired).unwrap_or_default());
}

/// S31, G13: a configuration of another owner's, in the folder or above it, is refused as Git refuses a repository.
#[test]
fn s31_a_folder_of_somebody_elses_says_nothing() {
    if !nix::unistd::geteuid().is_root() {
        return skipped("S31: only root may give a folder away");
    }
    let life = Life::new(&[]);
    let theirs = life.repo.home().join("theirs");
    let inner = theirs.join("mine");
    std::fs::create_dir_all(&inner).unwrap();
    let ran = life.shared().join("ran");
    let config = std::fs::read_to_string(format!("{PACK}/govern/agentxchain.json")).unwrap();
    let script = format!("[\"sh\", \"-c\", \"touch '{}'\"]", ran.display());
    std::fs::write(theirs.join("agentxchain.json"), config.replace("[\".aynig/govern/worker\"]", &script))
        .unwrap();
    for path in [&theirs, &theirs.join("agentxchain.json")] {
        std::os::unix::fs::chown(path, Some(12345), Some(12345)).unwrap();
    }
    let root = inner.to_str().unwrap();
    for args in [&["loop", "--root", root][..], &["status", "--root", root], &["start", "--root", root]] {
        let said = govern(&life, args);
        assert!(said.code == Some(128) && said.stderr.contains("owned by another user"), "{said:?}");
        assert!(said.stderr.contains("safe.directory"), "{said:?}");
    }
    assert!(!ran.exists() && !theirs.join(".agentxchain").exists());
    life.config("safe.directory", theirs.to_str().unwrap());
    govern(&life, &["start", "--root", root]).expect(0);
    assert!(theirs.join(".agentxchain/state.json").exists());
}

/// S31, G13: a worker's result is a plain file, or none.
#[test]
fn s31_a_result_that_is_a_link_is_none() {
    let life = life(|_| {});
    worker(&life, "ln -sf /etc/passwd \"$AGENTXCHAIN_RESULT\"");
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(life.state("work"), "turn/pm");
    assert!(life.git(&["log", "-1", "--format=%B", "work"]).contains("left no result"));
    assert!(!life.git(&["ls-tree", "-r", "work"]).contains("120000"));
}

/// S31, G13: a file that is longer than any result may be is neither read nor hashed: the attempt is rejected.
#[test]
fn s31_a_result_that_is_too_long_is_rejected() {
    let life = life(|config| config["rules"]["max_turn_retries"] = json!(2));
    worker(&life, "truncate -s 100G \"$AGENTXCHAIN_RESULT\"");
    govern(&life, &["start", "-b", "work"]).expect(0);
    let begun = std::time::Instant::now();
    life.run(&["tick", "work"]).expect(0);
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(life.state("work"), "turn/pm");
    let said = life.git(&["log", "-1", "--format=%B", "work"]);
    assert!(said.contains("its result is larger than 16777216 bytes"), "{said}");
    life.run(&["tick", "work"]).expect(0);
    let state = state(&life);
    assert_eq!((life.state("work").as_str(), &state["status"]), ("blocked", &json!("blocked")), "{state}");
    let kept = life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts/"]);
    for name in kept.lines() {
        assert!(!life.git(&["ls-tree", "-r", "--name-only", name]).contains("turn-result.json"), "{name}");
    }
}

/// G13: nor is a result that a user brings, or what a worker made too long of the run's own files.
#[test]
fn what_is_too_long_is_named_and_not_read() {
    let life = life(|config| config["rules"]["max_turn_retries"] = json!(3));
    worker(&life, "truncate -s 300M .agentxchain/state.json .agentxchain/staging/turn-result.json");
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let said = life.git(&["log", "-1", "--format=%B", "work"]);
    assert!(life.state("work") == "turn/pm" && said.contains("the run's own"), "{said}");
    let folder = life.repo.home().join("plain");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(life.path("agentxchain.json"), folder.join("agentxchain.json")).unwrap();
    let root = folder.to_str().unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
    let assigned = govern(&life, &["assign", "--json", "--root", root]).expect(0).json();
    let staged = folder.join(assigned["facts"]["staging"].as_str().unwrap());
    std::fs::create_dir_all(staged.parent().unwrap()).unwrap();
    std::fs::File::create(&staged).unwrap().set_len(300 << 20).unwrap();
    let said = govern(&life, &["accept", "--root", root]).expect(2);
    assert!(said.stderr.contains("its result is larger than 16777216 bytes"), "{said:?}");
}

/// G13: what a turn changes of the run's own files is put back, and the turn rejected.
#[test]
fn a_worker_that_edits_the_state_skips_no_gate() {
    let forged = r#"sed -i 's/"phase": "planning"/"phase": "qa"/' .agentxchain/state.json"#;
    let planted = r#"mkdir -p .agentxchain/transactions/accept
echo '{"transaction_id":"txn_1","kind":"x","prepared_at":"2026-01-01T00:00:00.000Z","appends":[],"removals":["file"]}' \
    >.agentxchain/transactions/accept/txn_1.json"#;
    let linked = "rm -r .agentxchain/dispatch; ln -s /etc .agentxchain/dispatch";
    let talk = "echo forged >TALK.md";
    for meddling in [forged, planted, linked, talk, "rm .agentxchain/state.json"] {
        let life = life(|config| config["rules"]["max_turn_retries"] = json!(3));
        let script = std::fs::read_to_string(format!("{PACK}/govern/worker")).unwrap();
        let script = script
            .replace("set -eu", &format!("set -eu\n[ \"$AGENTXCHAIN_ATTEMPT\" -gt 1 ] || {{ {meddling}\n}}"));
        worker(&life, script.trim_start_matches("#!/bin/sh\n"));
        govern(&life, &["start", "-b", "work"]).expect(0);
        life.run(&["tick", "work"]).expect(0);
        let said = life.git(&["log", "-1", "--format=%B", "work"]);
        assert!(life.state("work") == "turn/pm" && said.contains("the run's own"), "{meddling}: {said}");
        let state = state(&life);
        assert_eq!((state["phase"].as_str(), state["status"].as_str()), (Some("planning"), Some("active")));
        assert!(life.git(&["ls-tree", "-r", "--name-only", "work"]).contains("\nfile"), "{meddling}");
        life.run(&["tick", "work"]).expect(0);
        assert_eq!(life.state("work"), "gate", "{meddling}");
    }
}

/// G13: in a plain folder too.
#[test]
fn a_worker_in_a_folder_skips_no_gate() {
    let life = Life::new(&[]);
    let folder = life.repo.home().join("plain");
    std::fs::create_dir(&folder).unwrap();
    let config = std::fs::read_to_string(format!("{PACK}/govern/agentxchain.json")).unwrap();
    std::fs::write(folder.join("agentxchain.json"), config).unwrap();
    let root = folder.to_str().unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
    let script = r#"sed -i 's/"phase": "planning"/"phase": "qa"/' .agentxchain/state.json"#;
    govern(&life, &["turn", "--root", root, "--role", "pm", "--", "sh", "-c", script]).expect(0);
    let state = std::fs::read_to_string(folder.join(".agentxchain/state.json")).unwrap();
    assert!(state.contains("\"phase\": \"planning\"") && state.contains("the run's own"), "{state}");
}

/// G7, G13: a worker sets no state of its own branch: that would be the run's outcome, and the turn never judged.
#[test]
fn a_worker_that_sets_its_own_state_skips_no_judgement() {
    for trick in [
        "git aynig set-state done -m x",
        "git aynig set-state done -b work",
        "git aynig set-working",
        "echo '{\"state\":\"done\"}' >\"$AYNIG_RESULT\"",
        "echo 'SET_STATE {\"state\":\"done\"}'",
    ] {
        let life = life(|_| {});
        worker(&life, &format!("echo smuggled >evil.txt; {trick}\nexit 0"));
        govern(&life, &["start", "-b", "work"]).expect(0);
        life.run(&["tick", "work"]).expect(0);
        let said = life.git(&["log", "-1", "--format=%B", "work"]);
        assert!(life.state("work") == "turn/pm" && said.contains("left no result"), "{trick}: {said}");
        assert!(
            !life.git(&["log", "--format=", "--name-only", "-m", "work"]).contains("evil.txt"),
            "{trick}"
        );
    }
}

/// G8: where something gave the branch another state than the run's, `status` names what gives it back.
#[test]
fn a_head_that_is_not_where_the_run_is_is_said() {
    let life = life(|_| {});
    worker(&life, "env -u AGENTXCHAIN_KERNEL_RUN_ID git aynig set-state done");
    govern(&life, &["start", "-b", "work"]).expect(0);
    let said = govern(&life, &["status", "-b", "work"]).expect(0).stdout;
    assert!(said.contains("next      a turn of pm"), "{said}");
    life.run(&["tick", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), &state(&life)["status"]), ("done", &json!("active")));
    let said = govern(&life, &["status", "-b", "work"]).expect(0).stdout;
    assert!(said.contains("the head's state 'done' is not the run's"), "{said}");
    let mend = said.lines().find_map(|line| line.split_once("; git aynig ")).expect("a command").1;
    life.run(&mend.split(' ').collect::<Vec<_>>()).expect(0);
    assert_eq!(life.state("work"), "turn/pm");
    let said = govern(&life, &["status", "-b", "work"]).expect(0).stdout;
    assert!(said.contains("next      a turn of pm"), "{said}");
}

/// G7: a run that a worker starts on another branch is none of its turn, and ends as its command says.
#[test]
fn a_run_that_a_worker_starts_sets_its_own_state() {
    let life = life(|_| {});
    life.write(".aynig/command/other", "#!/bin/sh\ngit aynig set-state done -m x\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(life.path(".aynig/command/other"), mode).unwrap();
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "other"]);
    life.run(&["set-state", "other", "-b", "beside", "--no-tick"]).expect(0);
    worker(&life, &format!("git -C '{}' aynig tick -j 2 beside >&2; exit 1", life.repo.path().display()));
    govern(&life, &["start", "-b", "work"]).expect(0);
    let said = life.run(&["tick", "-j", "2", "work"]);
    let log = life.run(&["logs", "--stderr", "work"]).stdout;
    assert_eq!(life.state("beside"), "done", "{said:?} {log}");
}
