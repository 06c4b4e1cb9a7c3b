use crate::support::life::{Done, Life, now};
use serde_json::Value;

/// What commands commit with: `beat`, `state <name> [trailer...]`, `plain <subject>`.
pub const COMMIT: &str = r#"set -e
say() { subject=$1; shift; git commit -q --allow-empty -m "$subject" -m "$(printf '%s\n' "$@")"; }
beat() { say beat 'aynig-state: working' "aynig-run-id: $AYNIG_RUN_ID" "$@"; }
whole() { git commit -q --allow-empty -m beat -m "$(git log -1 --format='%(trailers:only,unfold)' "$AYNIG_LEASE_COMMIT")"; }
state() { name=$1; shift; say "to $name" "aynig-state: $name" "$@"; }
plain() { git commit -q --allow-empty -m "$1"; }
"#;

/// A repository with one command `build` whose branch `work` asks for it in the `aynig` dialect.
pub fn asked(script: &str) -> Life {
    let life = with(&[("build", script)]);
    event(&life, "work", "build", "");
    life
}

pub fn with(commands: &[(&str, &str)]) -> Life {
    let whole: Vec<(&str, String)> = commands.iter().map(|(s, c)| (*s, format!("{COMMIT}{c}"))).collect();
    Life::new(&whole.iter().map(|(s, c)| (*s, c.as_str())).collect::<Vec<_>>())
}

pub fn event(life: &Life, branch: &str, state: &str, more: &str) -> String {
    life.event_at(branch, &format!("go\n\nthe body\n\naynig-state: {state}\n{more}"), None)
}

/// The states of both dialects along first parents, newest first; `-` for a plain commit.
pub fn states(life: &Life, branch: &str) -> Vec<String> {
    let format = "--format=%(trailers:only,unfold,valueonly,key=aynig-state,key=dwp-state,separator=%x2C)";
    let all = life.git(&["log", "--first-parent", format, &format!("main..refs/heads/{branch}")]);
    all.lines().map(|l| if l.is_empty() { "-".to_owned() } else { l.to_owned() }).collect()
}

/// A lease of this dialect on top of a branch, `ago` seconds old.
pub fn lease(life: &Life, branch: &str, run_id: &str, seconds: u64, ago: u64) -> String {
    let trigger = life.rev(&format!("refs/heads/{branch}"));
    let message = format!(
        "aynig: working on build\n\naynig-state: working\naynig-origin-state: build\naynig-run-id: {run_id}\n\
         aynig-runner-id: other-1\naynig-lease-seconds: {seconds}\naynig-trigger: {trigger}\naynig-hop: 1\n"
    );
    life.event_at(branch, &message, Some(now() - ago))
}

#[track_caller]
pub fn ticked(life: &Life, args: &[&str]) -> (Done, Value) {
    life.report(&[&["work"], args].concat())
}

/// Result and exit code of the tick's only report.
pub fn result((done, report): &(Done, Value)) -> (Option<i32>, &str) {
    (done.code, report["result"].as_str().unwrap())
}

pub fn note_with<'a>(report: &'a Value, words: &str) -> Option<&'a str> {
    report["notes"].as_array().unwrap().iter().filter_map(|n| n.as_str()).find(|n| n.contains(words))
}

/// Ticks until an expired lease was recovered, and nothing else.
#[track_caller]
pub fn recovered(life: &Life) -> Value {
    let ticks = || Some(ticked(life, &["--grace", "0"])).filter(|(done, _)| done.code != Some(3));
    let (_, report) = crate::support::life::eventually("the lease to expire", ticks);
    report
}
