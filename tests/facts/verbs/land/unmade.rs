//! What can't be made of a branch for its target is said on the branch, and no other branch waits for it.

use super::{CHECK, commit, life, subjects, work};
use crate::support::life::Life;
use std::io::Write;
use std::process::Stdio;

fn fed(life: &Life, args: &[&str], input: &str) -> String {
    let mut command = life.repo.command("git");
    let mut git = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Two branches whose bases are merges of merges: each level doubles what a merge of the two takes.
fn ladder(life: &Life, levels: usize, tops: [(&str, &str); 2]) {
    let (mut out, mut mark) = (String::new(), 0);
    let mut add = |parents: &[String], message: &str, name: &str| {
        mark += 1;
        let length = message.len();
        out += &format!("commit {name}\nmark :{mark}\ncommitter X <x@x> {} +0000\n", 1_700_000_000 + mark);
        out += &format!("data {length}\n{message}\nfrom {}\n", parents[0]);
        parents[1..].iter().for_each(|parent| out += &format!("merge {parent}\n"));
        format!(":{mark}")
    };
    let mut level = vec!["refs/heads/main".to_owned()];
    for _ in 0..levels {
        level = (0..3)
            .map(|n| {
                let parents: Vec<String> =
                    (0..level.len()).map(|k| level[(n + k) % level.len()].clone()).collect();
                add(&parents, "step", "refs/heads/ladder")
            })
            .collect();
    }
    for (name, message) in tops {
        add(&level, message, &format!("refs/heads/{name}"));
        level.reverse();
    }
    fed(life, &["fast-import", "--quiet", "--force"], &out);
    life.git(&["branch", "-qD", "ladder"]);
}

/// K60, K43: a history that Git would merge for days ends as one that can't be, and what is behind it has its turn.
#[test]
fn a_merge_that_takes_too_long_is_given_up() {
    let life = life(CHECK, "check: check\n");
    life.git(&["config", "aynig.timeout", "2s"]);
    let asks = "land\n\ndwp-state: land\ndwp-land-onto: main\n";
    ladder(&life, 26, [("first", asks), ("second", asks)]);
    work(&life, "third", "file", "x\n");
    life.event("third", "land", "dwp-land-onto: main\n");
    life.run(&["tick", "first"]).expect(0);
    let said = life.run(&["tick", "second"]).expect(1);
    assert!(said.stderr.contains("takes longer than 2s"), "{said:?}");
    assert_eq!(life.state("second"), "stalled");
    assert!(
        life.body("second").contains("Git takes longer than 2s to merge them"),
        "{}",
        life.body("second")
    );
    life.run(&["run", "third"]).expect(0);
    assert_eq!((life.state("third").as_str(), life.read("file").as_str()), ("landed", "x\n"));
}

/// K47: and so does one that a message brings; its text is heard.
#[test]
fn work_of_a_message_that_takes_too_long_to_merge_is_no_part_of_it() {
    let life = Life::new(&[("rework", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.git(&["config", "aynig.timeout", "2s"]);
    ladder(&life, 26, [("to", "idle\n\ndwp-state: idle\ndwp-accepts: message=rework\n"), ("work", "work")]);
    let (before, work) = (life.rev("to"), life.rev("work"));
    life.run(&["send", "to", "-m", "Take it.", "--attach", "work", "--no-tick"]).expect(0);
    life.run(&["tick", "to"]).expect(0);
    assert_eq!(life.state("to"), "done");
    assert_eq!(
        life.git(&["rev-list", "--count", &format!("{before}..to"), &format!("^{work}")]).trim_end(),
        "3"
    );
    assert_eq!(life.rev("to^{tree}"), life.rev(&format!("{before}^{{tree}}")));
}

/// K60: a state event's last words are trailers once ours are gone, and are the copy's as Git reads them.
#[test]
fn a_sign_off_above_a_state_lands_as_one() {
    let life = life(CHECK, "check: check\nhistory: linear\n");
    let body = |branch: &str, body: &str| {
        work(&life, branch, branch, "x\n");
        let message = format!("{branch}\n\n{body}\n\ndwp-state: done\n");
        life.git(&["checkout", "-q", branch]);
        life.git(&["commit", "-q", "--amend", "-m", &message]);
        life.git(&["checkout", "-q", "main"]);
    };
    body("signed", "Words.\n\nSigned-off-by: A <a@x>");
    body("hidden", "Words.\n\nReviewed-by: B <b@x>\ndwp-state: check");
    life.write("meanwhile", "x\n");
    commit(&life, "meanwhile");
    for branch in ["signed", "hidden"] {
        life.run(&["land", branch]).expect(0);
        assert_eq!(life.state(branch), "landed");
    }
    let said =
        |commit: &str| life.git(&["log", "-1", "--format=%s|%(trailers:only,unfold,separator=%x2C)", commit]);
    assert_eq!(said("main~1").trim_end(), "signed|Signed-off-by: A <a@x>");
    assert_eq!(said("main").trim_end(), "hidden|Reviewed-by: B <b@x>");
    assert_eq!(life.states("main"), Vec::<String>::new());
}

/// K60: what Git writes no copy of is named, with what lands all the same.
#[test]
fn a_commit_that_cannot_be_copied_is_named_and_lands_by_a_merge() {
    let life = life(CHECK, "check: check\nhistory: linear\n");
    work(&life, "topic", "file", "x\n");
    let tree = life.rev("topic^{tree}");
    let text = format!(
        "tree {tree}\nparent {}\nauthor X <x@x>\ncommitter X <x@x> 1700000000 +0000\n\nodd\n",
        life.rev("main")
    );
    let odd = fed(&life, &["hash-object", "-t", "commit", "-w", "--stdin", "--literally"], &text);
    life.git(&["update-ref", "refs/heads/topic", &odd]);
    life.write("meanwhile", "x\n");
    commit(&life, "meanwhile");
    let main = life.rev("main");
    let said = life.run(&["land", "topic"]).expect(1);
    assert!(!said.stderr.contains("sign") && said.stderr.contains(&odd), "{said:?}");
    assert_eq!((life.state("topic").as_str(), life.rev("main")), ("stalled", main));
    assert!(life.body("topic").contains("land it with --merge"), "{}", life.body("topic"));
    life.run(&["land", "topic", "--merge"]).expect(0);
    assert_eq!(subjects(&life, "main").first().map(String::as_str), Some("Merge branch 'topic'"));
}
