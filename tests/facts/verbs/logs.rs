use crate::support::skipped;
use crate::verbs::rig::Rig;
use std::io::{BufRead, BufReader, Read};

#[test]
fn a_branch_and_each_commit_of_a_run_lead_to_its_log() {
    let rig = Rig::new();
    let trigger = rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let said = "fine\nSET_STATE {\"state\":\"done\"}\n";
    for what in ["work", "work~1", &trigger, &trigger[..12]] {
        assert_eq!(rig.aynig(&["logs", what]).expect(0).out, said, "{what}");
    }
    assert_eq!(rig.aynig(&["logs", "--stderr", "work"]).expect(0).out, "bad\n");
    let path = rig.aynig(&["logs", "--path", "work"]).expect(0).out;
    assert_eq!(std::fs::read_to_string(path.trim_end()).unwrap(), said);
}

#[test]
fn after_a_retry_the_last_run_is_shown_until_the_next_one() {
    let rig = Rig::new();
    rig.set("work", "fail");
    rig.aynig(&["tick", "work"]).expect(1);
    rig.aynig(&["retry", "work", "--no-tick"]).expect(0);
    assert_eq!(rig.aynig(&["logs", "--stderr", "work"]).expect(0).out, "broken\n");
}

#[test]
fn each_of_two_branches_with_one_trigger_shows_its_own_run() {
    let rig = Rig::new();
    let which = "#!/bin/sh\necho \"$AYNIG_BRANCH\"\nexit 1\n";
    rig.world.commit_files(&rig.dir, "main", &[(".aynig/command/which", which)], "which");
    let id = rig.world.raw_commit(&rig.dir, "one", b"x\n\ndwp-state: which\n");
    rig.git(&["branch", "two", &id]);
    rig.aynig(&["tick"]).expect(1);
    for branch in ["one", "two"] {
        assert_eq!(rig.aynig(&["logs", branch]).expect(0).out, format!("{branch}\n"));
    }
}

#[test]
fn following_ends_with_the_run_and_misses_nothing() {
    let rig = Rig::new();
    let held = rig.hold("work");
    let mut child = rig.spawn(&["logs", "-f", "work"]);
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    assert_eq!(first, "one\n");
    rig.go();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "two\nSET_STATE {\"state\":\"done\"}\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(held.wait_with_output().unwrap().status.success());
    assert_eq!(rig.aynig(&["logs", "-f", "work"]).expect(0).out, format!("{first}{rest}"));
}

#[test]
fn following_a_lease_commit_finds_its_branch() {
    let rig = Rig::new();
    let held = rig.hold("work");
    let lease = rig.git(&["rev-parse", "work"]);
    let child = rig.spawn(&["logs", "-f", &lease]);
    rig.go();
    let output = child.wait_with_output().unwrap();
    assert!(held.wait_with_output().unwrap().status.success());
    assert!(output.stdout.ends_with(b"\"done\"}\n"), "{output:?}");
}

#[test]
fn bytes_go_out_as_they_are_where_no_terminal_is() {
    let rig = Rig::new();
    let noise = "#!/bin/sh\nprintf '\\033[31m\\377\\000x\\n'\nexit 1\n";
    rig.world.commit_files(&rig.dir, "main", &[(".aynig/command/noise", noise)], "noise");
    rig.set("work", "noise");
    rig.aynig(&["tick", "work"]).expect(1);
    let output = rig.spawn(&["logs", "work"]).wait_with_output().unwrap();
    assert_eq!(output.stdout, b"\x1b[31m\xff\0x\n");
}

#[test]
fn a_terminal_gets_no_control_characters() {
    let rig = Rig::new();
    let noise = "#!/bin/sh\nprintf 'gr\\303\\266\\303\\237e\\t\\033[31m\\377x\\n'\nexit 1\n";
    rig.world.commit_files(&rig.dir, "main", &[(".aynig/command/noise", noise)], "noise");
    rig.set("work", "noise");
    rig.aynig(&["tick", "work"]).expect(1);
    let said = rig.world.run("script", &rig.dir, &["-qec", "git aynig logs work", "/dev/null"]);
    if said.code == 127 || said.err.contains("No such file") {
        return skipped("no script(1) here");
    }
    assert_eq!(said.out.trim_end(), "größe\t\\x1b[31m\\xffx");
}

#[test]
fn where_there_is_no_log_the_error_says_what_to_do() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let said = rig.aynig(&["logs", "work"]).expect(128);
    assert!(said.err.contains("no command ran on 'work' yet") && said.err.contains("hint: "), "{}", said.err);
    rig.aynig(&["tick", "work"]).expect(0);
    std::fs::remove_dir_all(rig.dir.join(".aynig/logs")).unwrap();
    let said = rig.aynig(&["logs", "work"]).expect(128);
    assert!(said.err.contains("no log of ") && said.err.contains("hint: "), "{}", said.err);
    assert!(rig.aynig(&["logs", "nonsense"]).expect(128).err.contains("neither a branch nor a commit"));
}

/// Who looks for why a command failed that printed nothing is told where that is.
#[test]
fn a_command_that_only_complained_is_not_shown_as_one_that_said_nothing() {
    let rig = Rig::new();
    let mute = [(".aynig/command/mute", "#!/bin/sh\necho broken >&2\nexit 3\n")];
    rig.world.commit_files(&rig.dir, "main", &mute, "mute");
    rig.set("work", "mute");
    rig.aynig(&["tick", "work"]).expect(1);
    let said = rig.aynig(&["logs", "work"]).expect(0);
    assert_eq!(said.out, "");
    assert!(said.err.ends_with("and complained\nhint: git aynig logs --stderr work\n"), "{said:?}");
    assert_eq!(rig.aynig(&["-q", "logs", "work"]).expect(0).err, "");
    assert_eq!(rig.aynig(&["logs", "--stderr", "work"]).expect(0).out, "broken\n");
    rig.world.git(&rig.dir, &["update-ref", "refs/heads/-x", "work"]);
    let said = rig.aynig(&["logs", "--", "-x"]).expect(0);
    assert!(said.err.ends_with("\nhint: git aynig logs --stderr -- -x\n"), "{said:?}");
    assert_eq!(rig.aynig(&["logs", "--stderr", "--", "-x"]).expect(0).out, "broken\n");
}
