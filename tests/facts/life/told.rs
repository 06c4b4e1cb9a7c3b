//! What a running command appends to the file that `AYNIG_EVENTS` names: who sees it, and what it may not cost.

use crate::support::life::{Life, eventually};
use std::fs;

const NEXT: &str = "echo 'SET_STATE {\"state\":\"next\"}'";

fn events(life: &Life, trigger: &str) -> std::path::PathBuf {
    life.path(&format!(".aynig/logs/{trigger}.events.jsonl"))
}

/// K48a: to people, to programs, and whole to a caller that asks for it; torn and foreign lines cost nothing.
#[test]
fn the_last_progress_of_a_running_branch_is_shown() {
    let script = format!(
        "echo '{{\"type\":\"progress\",\"text\":\"tests\\\\u001b[31m\",\"ratio\":0.4}}' >>\"$AYNIG_EVENTS\"\n\
         printf '\\377\\0 no json\\n{{\"type\":\"mine\"}}\\n{{\"type\":\"progress\",\"tex' >>\"$AYNIG_EVENTS\"\n\
         echo up >\"$T/up\"; read x <\"$T/gate\"; {NEXT}"
    );
    let life = Life::new(&[("build", &script)]);
    let trigger = life.event("work", "build", "");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["work"]);
    life.hear("up");
    let status = life.run(&["status", "work"]).expect(0).stdout;
    assert!(status.contains("running") && status.contains("40%: tests\\x1b[31m"), "{status}");
    let status = life.run(&["status", "--json", "work"]).expect(0).json();
    assert_eq!(status["progress"]["text"], "tests\u{1b}[31m");
    assert_eq!(status["progress"]["ratio"], 0.4);
    gate.open();
    tick.done().expect(0);
    let shown = life.aynig(&["logs", "--events", "work"]).output().unwrap();
    assert_eq!(shown.stdout, fs::read(events(&life, &trigger)).unwrap());
    assert!(shown.stdout.starts_with(b"{\"type\":\"progress\"") && shown.stdout.contains(&0xff));
    assert!(life.run(&["status", "--json", "work"]).json()["progress"].is_null());
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// K48a: no process makes it for a command that tells nothing, and there is nothing to show then.
#[test]
fn a_command_that_tells_nothing_leaves_no_file() {
    let life = Life::new(&[("build", &format!("test ! -e \"$AYNIG_EVENTS\" || exit 1; {NEXT}"))]);
    let trigger = life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert!(!events(&life, &trigger).exists());
    assert_eq!(life.run(&["logs", "--events", "work"]).expect(0).stdout, "");
    let path = life.run(&["logs", "--events", "--path", "work"]).expect(0).stdout;
    assert_eq!(path.trim_end(), events(&life, &trigger).display().to_string());
}

/// K48a: whom `aynig.exec` confines can be given the file, for it is there.
#[test]
fn a_confined_command_finds_the_file_made() {
    let life = Life::new(&[("build", &format!("test -f \"$AYNIG_EVENTS\" || exit 1; {NEXT}"))]);
    life.config("aynig.exec", "env");
    let trigger = life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(fs::read(events(&life, &trigger)).unwrap(), b"");
}

/// K48a: a second run of the same trigger tells its own, and what a stranger left under that name is not its.
#[test]
fn each_run_of_a_trigger_has_a_file_of_its_own() {
    let script =
        format!("echo '{{\"type\":\"mine\",\"run\":\"'$AYNIG_RUN_ID'\"}}' >>\"$AYNIG_EVENTS\"; {NEXT}");
    let life = Life::new(&[("build", &script)]);
    let trigger = life.event("one", "build", "");
    life.git(&["branch", "two", &trigger]);
    fs::create_dir_all(life.path(".aynig/logs")).unwrap();
    fs::write(events(&life, &trigger), "of nobody\n").unwrap();
    life.tick(&["one"]).expect(0);
    life.tick(&["two"]).expect(0);
    for branch in ["one", "two"] {
        let run = life.trailer(branch, "dwp-run-id").unwrap();
        let shown = life.run(&["logs", "--events", branch]).expect(0).stdout;
        assert_eq!(shown, format!("{{\"type\":\"mine\",\"run\":\"{run}\"}}\n"), "{branch}");
    }
}

/// K48a: it is bounded as logs are, and keeps head and tail.
#[test]
fn more_than_a_log_may_have_keeps_head_and_tail() {
    let line = "{\"type\":\"mine\",\"n\":%d}\\n";
    let script = format!("seq 1 20000 | xargs printf '{line}' >>\"$AYNIG_EVENTS\"; {NEXT}");
    let life = Life::new(&[("build", &script)]);
    life.config("aynig.logMaxBytes", "64k");
    let trigger = life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    let kept = fs::read_to_string(events(&life, &trigger)).unwrap();
    assert!(kept.len() <= (64 << 10) + 256, "{}", kept.len());
    assert!(kept.starts_with("{\"type\":\"mine\",\"n\":1}\n") && kept.ends_with("\"n\":20000}\n"));
    assert!(kept.contains("\n{\"type\":\"aynig.left-out\",\"bytes\":"), "no word of what is missing");
    assert_eq!(fs::read_dir(life.path(".aynig/logs")).unwrap().count(), 4, "nothing else is left there");
}

/// K48a: who follows sees what is appended, from before there is a file to the run's end.
#[test]
fn events_can_be_followed_from_before_there_are_any() {
    let script = format!(
        "echo up >\"$T/up\"; read x <\"$T/gate\"\necho '{{\"type\":\"mine\"}}' >>\"$AYNIG_EVENTS\"\n\
         read x <\"$T/end\"; {NEXT}"
    );
    let life = Life::new(&[("build", &script)]);
    life.event("work", "build", "");
    let (mut gate, mut end) = (life.gate("gate"), life.gate("end"));
    let tick = life.start_tick(&["work"]);
    life.hear("up");
    let out = life.shared().join("followed");
    let mut follow = life.aynig(&["logs", "-f", "--events", "work"]);
    let mut follow = follow.stdout(fs::File::create(&out).unwrap()).spawn().unwrap();
    gate.open();
    eventually("the line", || (fs::read(&out).unwrap() == b"{\"type\":\"mine\"}\n").then_some(()));
    end.open();
    tick.done().expect(0);
    assert!(follow.wait().unwrap().success());
    assert_eq!(fs::read(&out).unwrap(), b"{\"type\":\"mine\"}\n");
}

/// K48a, K16: `gc` removes it with the logs that it lies beside.
#[test]
fn it_goes_with_the_logs() {
    let life = Life::new(&[("build", &format!("echo '{{}}' >>\"$AYNIG_EVENTS\"; {NEXT}"))]);
    let trigger = life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    let file = events(&life, &trigger);
    assert!(file.exists());
    let touched = std::process::Command::new("touch").args(["-d", "40 days ago"]).arg(&file).status();
    assert!(touched.unwrap().success());
    life.run(&["gc"]).expect(0);
    assert!(!file.exists());
}
