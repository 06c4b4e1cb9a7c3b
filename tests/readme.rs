//! The tutorial of README.md, typed again: every command runs, and prints what is printed there.
//!
//! In a `console` block `$ ` begins a command and `> ` goes on with it; the rest is its output. Ids,
//! times and the runner's name are compared by shape. Commands that only look are tried again for a while,
//! because what they look at happens in the background.

#[path = "support/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for what happens in the background.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command and what it prints.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    output: String,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => {
                if let Some(command) = line.strip_prefix("$ ") {
                    steps.push(Step { line: number + 1, command: command.to_owned(), output: String::new() });
                } else if let (Some(more), Some(step)) = (line.strip_prefix("> "), steps.last_mut()) {
                    step.command = format!("{}\n{more}", step.command);
                } else if let Some(step) = steps.last_mut() {
                    step.output += &format!("{line}\n");
                }
            }
            (false, _) => {}
        }
    }
    steps
}

/// The text with what differs from run to run replaced: ids, times, numbers of seconds, the runner.
fn shape(text: &str) -> String {
    let mut shaped = String::new();
    for line in text.lines() {
        let words = line.split(' ').map(|word| {
            let core = word.trim_matches(|c: char| "(),.;:".contains(c));
            let shaped = shape_of(core);
            if shaped == core { word.to_owned() } else { word.replacen(core, &shaped, 1) }
        });
        shaped += words.collect::<Vec<_>>().join(" ").trim_end();
        shaped.push('\n');
    }
    shaped.trim_end().to_owned()
}

fn shape_of(word: &str) -> String {
    let hex = |s: &str| s.len() >= 7 && s.bytes().all(|b| b.is_ascii_hexdigit());
    let uuid = |s: &str| {
        s.len() == 36 && s.split('-').count() == 5 && s.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
    };
    let seconds = |s: &str| {
        s.ends_with('s') && s.trim_end_matches(['m', 's']).bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    let (path, last) = word.rsplit_once('/').map_or(("", word), |(path, last)| (path, last));
    let slash = if path.is_empty() { "" } else { "/" };
    if hex(word) {
        "ID".to_owned()
    } else if uuid(last) {
        format!("{path}{slash}RUN")
    } else if word.len() > 1 && seconds(word) {
        "TIME".to_owned()
    } else if word.split('-').count() == 3 && word.starts_with("20") {
        "DATE".to_owned()
    } else if word.ends_with('Z') && word.contains(':') {
        "CLOCK".to_owned()
    } else if let Some((_, random)) = word.rsplit_once('-')
        && random.len() == 8
        && hex(random)
    {
        "RUNNER".to_owned()
    } else {
        word.to_owned()
    }
}

fn run(command: &str, home: &Path, here: &Path) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_git-aynig")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(here)
        .env_clear()
        .envs([("PATH", path.as_str()), ("TERM", "dumb"), ("LC_ALL", "C")])
        .env("HOME", home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn only_looks(command: &str) -> bool {
    ["git aynig status", "git aynig logs", "git aynig events", "cat .aynig/logs"]
        .iter()
        .any(|c| command.starts_with(c))
}

#[test]
fn the_tutorial_prints_what_it_says() {
    if Command::new("make").arg("--version").output().is_err() {
        return skipped("there is no make here");
    }
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n";
    std::fs::write(folder.path().join(".gitconfig"), config).unwrap();
    let mut here = PathBuf::from(folder.path());
    let steps = steps(&text);
    assert!(steps.len() > 30, "{steps:#?}");
    for step in steps {
        if let Some(to) = step.command.strip_prefix("cd ") {
            here.push(to);
            continue;
        }
        let started = Instant::now();
        let want = shape(&step.output);
        loop {
            let printed = run(&step.command, folder.path(), &here);
            if shape(&printed) == want {
                break;
            }
            let again = only_looks(&step.command) && started.elapsed() < PATIENCE;
            assert!(
                again,
                "README.md:{}: {}\n--- says\n{want}\n--- printed\n{}",
                step.line,
                step.command,
                shape(&printed)
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn shapes_hide_only_what_differs() {
    assert_eq!(shape("job: build (7cd30380) (new branch)"), "job: build (ID) (new branch)");
    assert_eq!(shape("job: build stalled: exit 2 (9fae7fc0, 0.1s)"), "job: build stalled: exit 2 (ID, TIME)");
    let kept = "kept in refs/aynig/attempts/d87a8ec3-906c-4f23-8593-481779cf86f3.";
    assert_eq!(shape(kept), "kept in refs/aynig/attempts/RUN.");
}
