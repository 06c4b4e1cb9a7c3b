//! Trailers that would become code: a list of names is never complete. Row S27.

use super::*;
use aynig::protocol::environment::is_reserved;
use std::collections::BTreeMap;

/// Names that change what programs do, beyond those of the reserved list.
const NAMES: &str = include_str!("../corpus/environment-names.txt");

/// Shows the command's environment to `$TOOL_OUT`.
const SHOW: &str = "env -0 >\"$TOOL_OUT\"\necho 'SET_STATE {\"state\":\"done\"}'";

type Variables = BTreeMap<String, String>;

fn variables(path: &Path) -> Variables {
    let raw = std::fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&raw).into_owned();
    let pairs = text.split('\0').filter_map(|v| v.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Names of variables whose value is a pusher's, but for those that are told always.
fn bare(found: &Variables) -> Vec<&str> {
    let pushed = |(name, value): &(&String, &String)| {
        value.contains("pushed") && !name.starts_with("AYNIG_") && *name != "BODY"
    };
    found.iter().filter(pushed).map(|(name, _)| name.as_str()).collect()
}

/// A program for `aynig.exec` that notes its environment and its arguments.
fn wrapper(world: &World) -> (PathBuf, PathBuf) {
    let (program, noted) = (world.root().join("wrapper"), world.root().join("wrapped"));
    let n = noted.display();
    let script =
        format!("#!/bin/sh\nenv -0 >'{n}'; tr '\\0' '\\n' </proc/$$/cmdline >'{n}.args'\nexec \"$@\"\n");
    executable(&program, &script);
    (program, noted)
}

/// K15, K35, S27: a pusher who is not trusted with code sets the variables that a user named; in front of the
/// command's sandbox no pusher sets any
#[test]
fn s27_only_named_trailers_become_variables_where_commands_come_from_a_ref() {
    let mut world = World::any();
    let dir = repo(&world, &[("show", SHOW)]);
    let out = world.root().join("told");
    world.set("TOOL_OUT", &out);
    world.set("NINJA_STATUS", "mine");
    global(&world, &["aynig.trailerEnv", "ticket RELEASE_*"]);
    let (program, noted) = wrapper(&world);
    let mut message = "attack\n\nthe pushed body\n\ndwp-state: show\ndwp-ticket: pushed\n".to_owned();
    let names: Vec<&str> = NAMES.lines().chain(["TICKET", "RELEASE_NOTES", "UID", "PPID"]).collect();
    assert!(names.len() > 500, "{}", names.len());
    for name in &names {
        message += &format!("{}: pushed\n", name.to_lowercase().replace('_', "-"));
    }
    message += "dwp-log-level: pushed\n";
    for (n, (source, prefixed)) in
        [("refs/heads/main", false), ("refs/heads/main", true), ("branch", false), ("branch", true)]
            .into_iter()
            .enumerate()
    {
        let branch = format!("work{n}");
        world.raw_commit(&dir, &branch, message.as_bytes());
        let exec = format!("aynig.exec={}", if prefixed { program.to_str().unwrap() } else { "" });
        let from = format!("aynig.commandsFrom={source}");
        let said = world.run("git", &dir, &["-c", &from, "-c", &exec, "aynig", "tick", &branch]).expect(0);
        assert!(said.out.contains("show -> done"), "{}{}", said.out, said.err);
        let found = variables(&out);
        let mut want: Vec<&str> = match source {
            "branch" => names.iter().copied().filter(|name| !is_reserved(name)).collect(),
            _ => vec!["TICKET", "RELEASE_NOTES"],
        };
        want.extend(["DWP_TICKET", "DWP_LOG_LEVEL", "LOG_LEVEL"]);
        want.retain(|name| *name != "NINJA_STATUS");
        want.sort_unstable();
        // Whether a shell has these two of its own hangs on the shell.
        let of_shells = |name: &&str| !matches!(*name, "UID" | "PPID");
        want.retain(of_shells);
        let got: Vec<&str> = bare(&found).into_iter().filter(of_shells).collect();
        let differ: Vec<_> = got
            .iter()
            .filter(|n| !want.contains(n))
            .chain(want.iter().filter(|n| !got.contains(n)))
            .collect();
        assert!(differ.is_empty(), "{source} {prefixed}: {differ:?}");
        assert_eq!(found["NINJA_STATUS"], "mine");
        assert_eq!(found["BODY"], "the pushed body");
        for name in &names {
            assert_eq!(found[&format!("AYNIG_TRAILER_{name}")], "pushed", "{name}");
        }
        if prefixed {
            let told = std::fs::read(&noted).unwrap();
            assert!(!String::from_utf8_lossy(&told).contains("pushed"), "{:?}", bare(&variables(&noted)));
            assert_eq!(variables(&noted)["AYNIG_BRANCH"], branch);
            let args = std::fs::read_to_string(noted.with_extension("args")).unwrap_or_default();
            assert!(!args.contains("pushed"), "{args}");
        }
    }
}

/// K15, S27: the trailer that `make` ran
#[test]
fn s27_a_trailer_that_make_would_evaluate_is_no_variable() {
    let world = World::any();
    if world.run("/bin/sh", &world.root(), &["-c", "command -v make"]).code != 0 {
        return support::skipped("S27: no make here");
    }
    let makefile = "printf 'all: part\\npart:\\n\\t@echo made\\n' | make -f -";
    let dir = repo(&world, &[("build", &format!("{makefile}\n{DONE}"))]);
    let ran = world.root().join("ran");
    let message = format!("attack\n\ndwp-state: build\nvpath: $(shell touch {})\n", ran.display());
    for (branch, source, fires) in [("theirs", "branch", true), ("work", "refs/heads/main", false)] {
        world.raw_commit(&dir, branch, message.as_bytes());
        let from = format!("aynig.commandsFrom={source}");
        world.run("git", &dir, &["-c", &from, "aynig", "tick", branch]).expect(0);
        // Where a pusher brings the commands, that is as it was: there the trap shows that it works.
        assert_eq!(ran.exists(), fires, "{source}");
        let _ = std::fs::remove_file(&ran);
    }
}

/// K15, S27: what stands behind a prefix gets every byte, and nothing that the prefix had set is replaced
#[test]
fn s27_behind_a_prefix_a_command_is_told_every_byte() {
    let mut world = World::any();
    let show = format!("printf %s \"$BODY\" >\"$TOOL_OUT\"; printf %s \"$MARK\" >\"$TOOL_OUT.mark\"\n{DONE}");
    let dir = repo(&world, &[("show", &show)]);
    let out = world.root().join("told");
    world.set("TOOL_OUT", &out);
    let mut body: Vec<u8> = (1..=255).filter(|b| !matches!(b, b'\r')).collect();
    body.extend(b"'\\''$(x)`y`\\\n".repeat(4000));
    body.extend(b"last");
    let message = [b"go\n\n", &body[..], b"\n\ndwp-state: show\nmark: pushed\n"].concat();
    world.raw_commit(&dir, "work", &message);
    global(&world, &["aynig.exec", "env MARK=set"]);
    global(&world, &["aynig.trailerEnv", "MARK"]);
    let said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert!(said.out.contains("show -> done"), "{}{}", said.out, said.err);
    let told = std::fs::read(&out).unwrap();
    // A shell's `$(...)` drops the last line breaks, and no other byte; so does `printf` here.
    assert!(told.starts_with(&body), "{} of {}", told.len(), body.len());
    assert_eq!(std::fs::read_to_string(out.with_extension("mark")).unwrap(), "set");
}

/// K15, S27: a prefix that keeps standard input to itself starts nothing
#[test]
fn s27_a_prefix_that_hands_on_no_input_starts_nothing() {
    let mut world = World::any();
    let dir = repo(&world, &[("show", SHOW)]);
    let out = world.root().join("told");
    world.set("TOOL_OUT", &out);
    for (branch, exec) in [
        ("none", "sh -c 'exec \"$@\" </dev/null' sh"),
        ("part", "sh -c 'head -c 90 | \"$@\"' sh"),
        ("closed", "sh -c 'exec \"$@\" <&-' sh"),
    ] {
        global(&world, &["aynig.exec", exec]);
        let said = {
            world.aynig(&dir, &["set-state", "show", "-b", branch, "-m", "go", "-m", "a body"]).expect(0);
            world.aynig(&dir, &["tick", branch]).expect(1)
        };
        assert!(said.out.contains("stalled"), "{branch}: {}{}", said.out, said.err);
        assert!(!out.exists(), "{branch}");
        if branch == "none" {
            let body = world.git(&dir, &["log", "-1", "--format=%B", branch]);
            assert!(body.contains("did not hand on its standard input"), "{body}");
        }
    }
}
