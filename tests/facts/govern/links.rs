//! How governed runs name files to the system: one name at a time from an opened folder, and no link followed.
//! Row S31 of CONTRACT.md's section on security.

use crate::govern::rig::*;
use crate::support::life::{BIN, Life};
use crate::support::skipped;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text as it is: a tracer writes bytes that are no ASCII as octal numbers.
fn plain(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// The paths that a traced call names: the folder that it names them from (`None`: where the process is), the name.
fn named(call: &str) -> Vec<(Option<PathBuf>, String)> {
    let (mut found, mut from, mut rest) = (Vec::new(), None, call);
    while let Some(at) = rest.find(['<', '"', 'A']) {
        let tail = &rest[at..];
        if let Some(tail) = tail.strip_prefix("AT_FDCWD") {
            // Its own place follows, in angles.
            rest = tail.split_once('>').map_or(tail, |(_, rest)| rest);
            from = None;
        } else if let Some((folder, after)) = tail.strip_prefix('<').and_then(|tail| tail.split_once('>')) {
            (from, rest) = (Some(PathBuf::from(plain(folder))), after);
        } else if let Some((name, after)) = tail.strip_prefix('"').and_then(|tail| tail.split_once('"')) {
            found.push((from.take(), plain(name)));
            rest = after;
        } else {
            rest = &tail[1..];
        }
    }
    found
}

/// True where a call, by what it is or by what it was told, follows no link at the end of a name.
fn follows_none(call: &str) -> bool {
    let never = ["unlinkat(", "renameat(", "renameat2(", "mkdirat(", "readlinkat(", "readlink(", "lstat("];
    never.iter().any(|name| call.starts_with(name))
        || ["O_NOFOLLOW", "AT_SYMLINK_NOFOLLOW", "O_EXCL"].iter().any(|flag| call.contains(flag))
}

/// Runs a verb and judges each of the calls that its process makes on names below the project.
fn judge(life: &Life, project: &Path, args: &[&str], code: i32) -> usize {
    let trace = life.repo.home().join("trace");
    let mut strace = life.repo.command("strace");
    let path = format!("{}:{}", Path::new(BIN).parent().unwrap().display(), std::env::var("PATH").unwrap());
    strace.env("PATH", path).args(["-y", "-qq", "-s", "4096", "-e", "trace=%file", "-o"]);
    let done = strace.arg(&trace).arg(BIN).arg("govern").args(args).output().unwrap();
    assert_eq!(done.status.code(), Some(code), "{args:?}: {done:?}");
    let mut judged = 0;
    for call in std::fs::read_to_string(&trace).unwrap().lines() {
        let Some((call, _)) = call.rsplit_once(") = ") else { continue };
        // No name at all is what was opened already.
        for (from, name) in named(call).into_iter().filter(|(_, name)| !name.is_empty()) {
            let whole = from.as_deref().map_or(PathBuf::from(&name), |from| from.join(&name));
            let Ok(below) = whole.strip_prefix(project) else { continue };
            // The project itself is the caller's word, and what Git looks for there is no file of a run.
            let is_gits = [".git", "HEAD", "commondir", "objects", "refs", "gitdir"].iter();
            if below.as_os_str().is_empty() || is_gits.clone().any(|own| below.starts_with(own)) {
                continue;
            }
            judged += 1;
            // From the project's folder a name may be given in full: it is one name.
            let is_one = below.components().count() == 1 || from.is_some() && !name.contains('/');
            assert!(is_one && follows_none(call), "{args:?}: {call}");
        }
    }
    judged
}

/// S31, G13: what a run reads and writes is opened name by name, each without a link.
#[test]
fn s31_every_file_of_a_run_is_opened_by_one_name() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skipped("S31: strace is not installed");
    }
    let life = Life::new(&[]);
    let project = life.repo.home().join("plain").canonicalize().unwrap_or(life.repo.home().join("plain"));
    std::fs::create_dir(&project).unwrap();
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(format!("{PACK}/govern/agentxchain.json")).unwrap()).unwrap();
    config["rules"] = json!({ "max_turn_retries": 3 });
    std::fs::write(project.join("agentxchain.json"), config.to_string()).unwrap();
    let root = project.to_str().unwrap();
    let worker = format!("{PACK}/govern/worker");
    let result = life.repo.home().join("result.json");
    std::fs::write(&result, "{}").unwrap();
    let judge = |args: &[&str], code| judge(&life, &project, args, code);
    let mut judged = judge(&["start", "--root", root], 0);
    judged += judge(&["assign", "--root", root, "pm"], 0);
    judged += judge(&["accept", "--root", root, "-F", result.to_str().unwrap()], 2);
    judged += judge(&["reject", "--root", root, "-m", "no result"], 0);
    judged += judge(&["escalate", "--root", root, "-m", "which?"], 0);
    judged += judge(&["unblock", "--root", root], 0);
    judged += judge(&["turn", "--root", root, "--role", "pm", "--", &worker], 0);
    judged += judge(&["status", "--root", root], 0);
    judged += judge(&["approve-phase", "--root", root], 0);
    judged += judge(&["loop", "--root", root, "--approve", "--", &worker], 0);
    let state = std::fs::read_to_string(project.join(".agentxchain/state.json")).unwrap();
    assert!(state.contains("\"status\": \"completed\""), "{state}");
    assert!(judged > 300, "{judged}");
}

/// S31, G13: so is the copy of an index that hides something, in a repository.
#[test]
fn s31_a_copy_of_the_index_is_written_by_one_name() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skipped("S31: strace is not installed");
    }
    let life = life(|_| {});
    life.git(&["update-index", "--assume-unchanged", "file"]);
    let project = life.path("").canonicalize().unwrap();
    let root = project.to_str().unwrap();
    judge(&life, &project, &["start", "--root", root], 0);
    assert!(judge(&life, &project, &["assign", "--root", root, "pm"], 0) > 30);
    let trace = std::fs::read_to_string(life.repo.home().join("trace")).unwrap();
    assert!(trace.contains("\"index-"), "{trace}");
}
