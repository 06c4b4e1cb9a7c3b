//! The judge's material: the moves that a repository accepted, and the commits that they name.
//!
//! [`moves`] reads a branch's reflog, [`Ledger`] is kept by a hook of a bare remote and also knows branches
//! that were deleted (their reflog goes with them). `aynig::protocol::invariants::check` judges (V1-V7).
#![allow(dead_code, reason = "each test file uses its own part")]

use aynig::protocol::id::ObjectId;
use aynig::protocol::invariants::{Move, Recorded, Violation, check};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every commit that the repository of `git` holds, whether or not anything names it.
pub fn commits(mut git: Command) -> HashMap<ObjectId, Recorded> {
    git.args(["cat-file", "--batch", "--batch-all-objects", "--unordered"]);
    let output = git.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut all, mut rest) = (HashMap::new(), &output.stdout[..]);
    while let Some(end) = rest.iter().position(|b| *b == b'\n') {
        let header: Vec<&str> = std::str::from_utf8(&rest[..end]).unwrap().split(' ').collect();
        let size: usize = header[2].parse().unwrap();
        let raw = &rest[end + 1..end + 1 + size];
        if header[1] == "commit" {
            all.insert(header[0].parse().unwrap(), recorded(raw));
        }
        rest = &rest[end + size + 2..];
    }
    all
}

fn recorded(raw: &[u8]) -> Recorded {
    let middle = raw.windows(2).position(|w| w == b"\n\n").unwrap_or(raw.len() - 2);
    let head = String::from_utf8_lossy(&raw[..middle]).into_owned();
    let parents = head.lines().filter_map(|l| l.strip_prefix("parent ")?.parse().ok()).collect();
    Recorded { parents, message: raw[middle + 2..].to_vec() }
}

fn id(hex: &str) -> Option<ObjectId> {
    hex.parse::<ObjectId>().ok().filter(|id| !id.is_null())
}

/// The moves of a ref, oldest first, as its reflog names them. `git` is called in the repository.
pub fn moves(mut git: Command, name: &str) -> Vec<Move> {
    let output = git.args(["log", "-g", "--format=%H", name, "--"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut before = None;
    let all: Vec<&str> = text.lines().collect();
    all.into_iter()
        .rev()
        .map(|new| Move { old: std::mem::replace(&mut before, id(new)), new: id(new) })
        .collect()
}

/// What a bare remote accepted, noted by a hook while the refs were locked: in order, deletions too.
pub struct Ledger(PathBuf);

impl Ledger {
    /// Begins one in a bare repository.
    pub fn keep(origin: &Path, at: &Path) -> Self {
        let hook = origin.join("hooks/reference-transaction");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        // One write a line: the kernel appends whole lines. Git 2.50 and later name updates too that a push was
        // refused: they do not hold the ref's lock, which has the new value.
        let script = format!(
            "#!/bin/sh\ncase $1 in prepared | committed) ;; *) exit 0 ;; esac\nwhile read -r old new ref; do\n\
             case $ref in refs/heads/*) ;; *) continue ;; esac\n\
             if [ \"$1\" = prepared ]; then\n\
             held=none\n{{ read -r held <\"$ref.lock\"; }} 2>/dev/null\n\
             case $new in *[!0]*) ;; *) new= ;; esac\n\
             [ \"$held\" = \"$new\" ] || continue\n\
             [ -n \"$new\" ] || new=$(echo \"$old\" | tr 0-9a-f 0)\n\
             fi\necho \"$1 $old $new $ref\"\ndone >>'{}'\n",
            at.display()
        );
        crate::support::write_program(&hook, &script);
        Self(at.to_owned())
    }

    /// The moves of each branch (`refs/heads/...`), oldest first.
    pub fn moves(&self) -> BTreeMap<String, Vec<Move>> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(' ').collect()).collect();
        let mut committed: HashMap<(&str, &str, &str), usize> = HashMap::new();
        for line in lines.iter().filter(|l| l[0] == "committed") {
            *committed.entry((line[1], line[2], line[3])).or_default() += 1;
        }
        let mut all: BTreeMap<String, Vec<Move>> = BTreeMap::new();
        for line in lines.iter().filter(|l| l[0] == "prepared") {
            match committed.get_mut(&(line[1], line[2], line[3])) {
                Some(left) if *left > 0 => *left -= 1,
                _ => continue,
            }
            all.entry(line[3].to_owned()).or_default().push(Move { old: id(line[1]), new: id(line[2]) });
        }
        all
    }
}

/// What is wrong with these branches' moves, each with its branch.
pub fn judge<'a>(
    moves: impl IntoIterator<Item = (&'a String, &'a Vec<Move>)>,
    commits: &HashMap<ObjectId, Recorded>,
) -> Vec<(String, Violation)> {
    let found = moves.into_iter().flat_map(|(name, moves)| {
        check(moves, commits).into_iter().map(|violation| (name.clone(), violation))
    });
    found.collect()
}

/// Puts one commit with these trailers on each of these branches, from `from`, in one process.
pub fn events(mut git: Command, from: &str, branches: &[String], trailers: &str) {
    use std::io::Write;
    let now = super::life::now();
    let mut child =
        git.args(["fast-import", "--quiet", "--force"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for branch in branches {
        let message = format!("go {branch}\n\n{trailers}\n");
        write!(
            stdin,
            "commit refs/heads/{branch}\ncommitter Ada <ada@example.com> {now} +0000\ndata {}\n{message}\nfrom {from}\n\n",
            message.len()
        )
        .unwrap();
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
