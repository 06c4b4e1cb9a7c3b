//! K54: `usage` adds up what commits say, each run once.

use crate::support::life::Life;
use serde_json::Value;
use std::process::Stdio;

fn commit(life: &Life, branch: &str, run: &str, more: &str, date: u64) -> String {
    let message = format!("done\n\ndwp-state: done\ndwp-run-id: {run}\ndwp-origin-state: build\n{more}\n");
    life.event_at(branch, &message, Some(date))
}

fn lines(life: &Life, args: &[&str]) -> Vec<Value> {
    let said = life.run(&[&["usage", "--json"], args].concat()).expect(0).stdout;
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn named<'a>(lines: &'a [Value], name: &str) -> &'a Value {
    lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}: {lines:?}"))
}

const DAY: u64 = 24 * 3600;
const NOON: u64 = 1_900_000_000 - 1_900_000_000 % DAY + DAY / 2;

/// K54: several branches contain an outcome, a landing repeats it, a merge brings it: it counts once, for the branch
/// that it moved.
#[test]
fn each_run_counts_once_for_the_branch_that_it_moved() {
    let life = Life::new(&[]);
    commit(&life, "work", "r1", "dwp-usage: input=10 output=1 cost-usd=0.1 model=a", NOON);
    commit(&life, "work", "r1", "dwp-usage: input=10 output=1 cost-usd=0.1 model=a", NOON + 1);
    commit(
        &life,
        "work",
        "r2",
        "dwp-usage: input=1 output=0 cost-usd=0.2 model=a\ndwp-usage: input=2 output=0 model=b",
        NOON + 2,
    );
    life.git(&["branch", "zcopy", "work"]);
    life.git(&["branch", "acopy", "main"]);
    // Merged: not what 'acopy' was moved by.
    let tree = life.rev("main^{tree}");
    let merge = life.git(&["commit-tree", "-p", "main", "-p", "work", "-m", "merge", &tree]);
    life.git(&["update-ref", "refs/heads/acopy", &merge]);
    commit(&life, "other", "r3", "dwp-usage: input=100 output=5 provider=p", NOON + DAY);
    // A lease repeats nothing, a plain commit says nothing.
    life.event_at("other", "x\n\ndwp-usage: input=5000 output=5\n", Some(NOON));

    let all = lines(&life, &[]);
    assert_eq!((all.len(), &all[0]["by"], &all[0]["name"]), (1, &"total".into(), &Value::Null));
    assert_eq!((&all[0]["runs"], &all[0]["unpriced"]), (&3.into(), &1.into()));
    assert_eq!((&all[0]["input_tokens"], &all[0]["output_tokens"]), (&113.into(), &6.into()));
    assert_eq!(all[0].to_string().matches("\"cost_usd\":0.3").count(), 1, "{}", all[0]);
    let by = lines(&life, &["--by", "branch"]);
    assert_eq!(by.len(), 3, "{by:?}");
    assert_eq!((&named(&by, "work")["runs"], &named(&by, "other")["input_tokens"]), (&2.into(), &100.into()));
    let by = lines(&life, &["--by", "model"]);
    assert_eq!((&named(&by, "a")["input_tokens"], &named(&by, "b")["cost_usd"]), (&11.into(), &Value::Null));
    let by = lines(&life, &["--by", "state"]);
    assert_eq!(named(&by, "build")["runs"], 3);
    let by = lines(&life, &["--by", "day"]);
    let days: Vec<_> = by.iter().map(|line| line["name"].as_str().unwrap_or("total")).collect();
    assert_eq!(days, ["2030-03-17", "2030-03-18", "total"]);
    let shown = life.run(&["usage", "--by", "branch"]).expect(0);
    assert_eq!(
        shown.stdout,
        "branch  runs  input  output   cost\nwork       2     13       1  $0.30\n\
                              other      1    100       5      -\ntotal      3    113       6  $0.30\n"
    );
    assert!(shown.stderr.contains("1 of 3 runs said no cost"), "{}", shown.stderr);
}

/// K54: what ended before is not read.
#[test]
fn since_is_a_duration_a_day_or_a_moment() {
    let life = Life::new(&[]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for (run, ago) in [("r1", 10 * DAY), ("r2", 3 * DAY), ("r3", 60)] {
        commit(&life, "work", run, "dwp-usage: input=1 output=0", now - ago);
    }
    let runs = |since: &str| lines(&life, &["--since", since])[0]["runs"].as_u64().unwrap();
    assert_eq!((runs("1h"), runs("7d"), runs("100"), runs("30 days")), (1, 2, 1, 3));
    let day = |ago: u64| {
        humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + std::time::Duration::from_secs(now - ago))
            .to_string()
    };
    assert_eq!((runs(&day(4 * DAY)), runs(&day(4 * DAY)[..10]), runs("2001-01-01")), (2, 2, 3));
    let said = life.run(&["usage", "--since", "soon"]).expect(129);
    assert!(said.stderr.contains("'soon' is no moment"), "{}", said.stderr);
}

/// K54, K36: what a commit says is shown escaped, counted as far as it can be read, and never a reason to fail.
#[test]
fn what_a_pusher_writes_is_counted_as_far_as_it_goes() {
    let life = Life::new(&[]);
    let more = "dwp-usage: input=18446744073709551615 output=1 cost-usd=99999999999999999999 model=%1b[31m\n\
                dwp-usage: input=5 output=x model=%zz\ndwp-usage: nonsense";
    commit(&life, "work", "r1", more, NOON);
    let said = life.run(&["usage", "--by", "model"]).expect(0).stdout;
    assert!(
        said.contains("\\x1b[31m") && !said.contains('\x1b') && said.contains("18446744073709551615"),
        "{said}"
    );
    let empty = Life::new(&[]);
    let said = empty.run(&["usage"]).expect(0);
    assert!(
        said.stdout.is_empty() && said.stderr.contains("no run has said what it used"),
        "{}",
        said.stderr
    );
    let mut gone = life.aynig(&["usage"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(gone.stdout.take());
    assert!(gone.wait().is_ok());
}
