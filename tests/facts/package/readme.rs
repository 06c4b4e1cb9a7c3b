//! The tutorial of README.md, typed again: every command runs, and prints what is printed there.
//!
//! In a `console` block `$ ` begins a command and `> ` goes on with it; the rest is its output. Ids,
//! times and the runner's name are compared by shape. Commands that only look are tried again for a while,
//! because what they look at happens in the background. Every other block of commands is typed too, or named as one
//! that can't be, with what tries it instead.

use crate::support::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    let text = readme();
    let folder = home();
    let mut here = PathBuf::from(folder.path());
    // Where most of it is typed.
    let mut first = None;
    let steps = steps(&text);
    assert!(steps.len() > 30, "{steps:#?}");
    for step in steps {
        if let Some(to) = step.command.strip_prefix("cd ") {
            here.push(to);
            first.get_or_insert(here.clone());
            continue;
        }
        let started = Instant::now();
        let want = shape(&step.output);
        loop {
            let printed = run(&step.command, folder.path(), &here);
            if shape(&printed) == want {
                break;
            }
            let again = only_looks(&step.command) && started.elapsed() < crate::support::life::LONG;
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
    let doctor = run("git aynig doctor", folder.path(), &first.unwrap());
    let block = blocks(&text).into_iter().find(|block| block.lines[0].starts_with("ok  ")).unwrap();
    for line in block.lines {
        let parts = shape(&line);
        // What is committed after that place of the tutorial is there too.
        let known = shape(&doctor).lines().any(|l| l == parts || is_longer_list(l, &parts));
        assert!(known, "README.md:{}: {line}\n{doctor}", block.line);
    }
}

/// True where a line of `doctor` says the same of more commands, or of more branches.
fn is_longer_list(said: &str, written: &str) -> bool {
    let words = |text: &str| text.split([' ', ',']).map(str::to_owned).collect::<Vec<_>>();
    let (said, written) = (words(said), words(written));
    said.first() == written.first() && written.iter().all(|w| w.parse::<u32>().is_ok() || said.contains(w))
}

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// A home of its own, with a name to commit by.
fn home() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n";
    std::fs::write(folder.path().join(".gitconfig"), config).unwrap();
    folder
}

/// A block that is no part of the tutorial: indented, or fenced as anything but `console`.
struct Block {
    line: usize,
    lines: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut fence, mut open) = (None, false);
    for (number, line) in text.lines().enumerate() {
        let content = match (fence, line.strip_prefix("```")) {
            (None, Some(kind)) => {
                (fence, open) = (Some(kind), false);
                continue;
            }
            (Some(_), Some(_)) => {
                (fence, open) = (None, false);
                continue;
            }
            (Some("console"), None) => None,
            (Some(_), None) => Some(line),
            (None, None) => line.strip_prefix("    "),
        };
        match (content, open, blocks.last_mut()) {
            (Some(content), true, Some(block)) => block.lines.push(content.to_owned()),
            (Some(content), ..) => {
                blocks.push(Block { line: number + 1, lines: vec![content.to_owned()] });
                open = true;
            }
            (None, ..) => open = false,
        }
    }
    blocks
}

/// A line without the remark behind it.
fn bare(line: &str) -> &str {
    line.split("  # ").next().unwrap_or(line).trim_end()
}

/// Where the blocks that are no part of the tutorial are typed.
struct Desk {
    home: tempfile::TempDir,
}

impl Desk {
    /// Types a line in a folder, and hears that it did well.
    fn types(&self, line: &str, folder: &str) -> String {
        let here = self.home.path().join(folder);
        std::fs::create_dir_all(&here).unwrap();
        let said = run(&format!("{line}\necho \"ended: $?\""), self.home.path(), &here);
        let (out, status) = said.rsplit_once("ended: ").unwrap();
        assert_eq!(status, "0\n", "{line}\n{out}");
        out.to_owned()
    }

    /// A repository with the first command of `init`, trusted.
    fn start(&self, folder: &str) {
        self.types("git init -q && git commit -q --allow-empty -m start && git aynig init --trust", folder);
        self.types("git add .aynig && git commit -qm 'aynig: first command'", folder);
    }

    /// A commit on the server's branch 'work', which is told to the pusher.
    fn hooks(&self, lines: &[String]) {
        self.start("hooks");
        self.types(&lines[0], "hooks");
        self.types("git clone -q --bare hooks server.git", ".");
        self.types("git aynig trust --ref refs/heads/main && git aynig hooks install", "server.git");
        self.types("git remote add server ../server.git && git switch -qc work", "hooks");
        let commit = "git -c aynig.hooks=off commit -q --allow-empty -m x -m 'dwp-state: hello'";
        self.types(commit, "hooks");
        let told = self.types("git push -q -o aynig.wait server work", "hooks");
        let text = readme();
        let want = text.lines().find_map(|line| line.strip_prefix("    remote: ")).unwrap();
        let want = shape(want).replace("build", "hello").replace("1f3a52c0", "ID");
        let told: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("remote: ")).collect();
        assert!(told.iter().any(|line| shape(line) == want), "{want}: {told:?}");
        assert!(told.iter().any(|line| line.starts_with("work: hello -> done ")), "{told:?}");
        self.types("git aynig hooks uninstall && ! grep -l aynig .git/hooks/*", "hooks");
    }

    /// A process that polls a remote, until it has done what was there.
    fn polls(&self, line: &str) {
        self.start("polls");
        self.types("git clone -q --bare polls hub.git", ".");
        self.types("git remote add origin ../hub.git && git push -q origin main && git fetch -q", "polls");
        self.types("git aynig set-state hello -b job --push --no-tick", "polls");
        let until = "git --git-dir=../hub.git log -1 --format=%B job | grep -q 'dwp-state: done'";
        let wait = "for try in $(seq 300); do sleep 0.1; ! DONE || break; done".replace("DONE", until);
        let out = self.types(
            &format!("{line} & pid=$!; {wait}; kill $pid; wait $pid; [ $? = 143 ] && {until}"),
            "polls",
        );
        assert!(out.contains("job: hello -> done "), "{out}");
    }

    /// A declaration as it is printed there.
    fn declares(&self, line: &str) {
        self.start("declares");
        let command = format!(
            "printf '%s\\n' '#!/bin/sh' \"echo '{}'\" >.aynig/command/hello",
            line.replace('"', "\\\"")
        );
        self.types(&command, "declares");
        self.types("git commit -qam said && git aynig set-state hello -b it && git aynig run", "declares");
        let said = self.types("git log -1 --format=%B it", "declares");
        for part in ["build: ready\n\n...\n", "dwp-state: review\n", "dwp-ticket: 7\n"] {
            assert!(said.contains(part), "{part:?}: {said}");
        }
    }

    /// The installation of what was built.
    fn installs(&self, line: &str) {
        let bin = env!("CARGO_BIN_EXE_git-aynig");
        let release = self.home.path().join("target/release");
        std::fs::create_dir_all(&release).unwrap();
        std::fs::copy(bin, release.join("git-aynig")).unwrap();
        let top = env!("CARGO_MANIFEST_DIR");
        let line = format!("CARGO_TARGET_DIR=~/target '{top}'/{}", bare(line));
        self.types(&line, ".");
        self.types("PATH=~/.local/bin:/usr/bin:/bin git aynig -h | grep -q set-state", ".");
        self.types(&format!("'{top}'/install/uninstall.sh --prefix ~/.local"), ".");
        self.types("! find .local -type f | grep .", ".");
    }

    /// One line of the governed run, and what it prints.
    fn governs(&self, line: &str) -> String {
        self.types(&line.replace("<this repository>", "../packs"), "governed")
    }
}

/// Blocks that can't be typed here, by how they begin, and what tries them.
const NOT_TYPED: [(&str, &str); 4] = [
    ("cargo test", "this is it"),
    (
        "sudo apt install",
        "tests/packages/run builds each package and installs it; get.sh is tried by tests/facts/package/packaging.rs",
    ),
    ("RUSTFLAGS=", "a second build; tests/facts/package/packaging.rs finds such a binary"),
    ("systemctl", "tests/facts/package/packaging.rs has systemd read the units, and plays what they start"),
];

#[test]
fn every_other_block_of_commands_does_what_it_says() {
    let text = readme();
    let desk = Desk { home: home() };
    let mut governed = String::new();
    let mut known = 0;
    for Block { line, lines } in blocks(&text) {
        let first = lines[0].as_str();
        known += 1;
        match first {
            _ if NOT_TYPED.iter().any(|(begin, _)| first.starts_with(begin)) => {}
            "cargo run --release -- demo" => {
                let shown = desk.types("git aynig demo", ".");
                assert!(shown.contains("git log"), "{shown}");
            }
            "cargo build --release" => desk.installs(&lines[1]),
            "git aynig hooks install" => desk.hooks(&lines),
            _ if first.starts_with("git aynig run --remote") => desk.polls(first),
            _ if first.starts_with("SET_STATE ") => desk.declares(first),
            _ if first.starts_with("git aynig install <this repository>") => {
                let top = env!("CARGO_MANIFEST_DIR");
                desk.types(
                    &format!("cp -R '{top}'/examples . && git init -q && git add -A && git commit -qm x"),
                    "packs",
                );
                desk.types("git init -q && git commit -q --allow-empty -m start", "governed");
                governed = lines.iter().map(|line| desk.governs(line)).collect();
            }
            _ if first.starts_with("git aynig govern") => {
                governed = lines.iter().map(|line| desk.governs(line)).collect();
                assert!(governed.contains(" rejected\n") && governed.contains("approved"), "{governed}");
            }
            _ if first.starts_with("status ") => {
                assert!(lines.iter().all(|l| governed.contains(&format!("{l}\n"))), "{line}: {governed}");
            }
            // Compared in the tutorial; told to a pusher.
            _ if first.starts_with("ok  ") || first.starts_with("remote: ") => {}
            _ => panic!("README.md:{line}: nobody types '{first}'"),
        }
    }
    assert!(known >= 13, "{known} blocks");
}

#[test]
fn shapes_hide_only_what_differs() {
    assert_eq!(shape("job: build (7cd30380) (new branch)"), "job: build (ID) (new branch)");
    assert_eq!(shape("job: build stalled: exit 2 (9fae7fc0, 0.1s)"), "job: build stalled: exit 2 (ID, TIME)");
    let kept = "kept in refs/aynig/attempts/d87a8ec3-906c-4f23-8593-481779cf86f3.";
    assert_eq!(shape(kept), "kept in refs/aynig/attempts/RUN.");
}
