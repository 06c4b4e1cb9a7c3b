//! Strings that would be options, addresses or programs where they are not kept from it: rows S9 and S10.

use super::*;

/// What an attacker writes in the place of a name; `@` is what must not come to exist.
const INJECTIONS: &[&str] = &[
    "--upload-pack=touch @",
    "--receive-pack=touch @",
    "--exec=touch @",
    "-u touch @",
    "-c core.sshCommand=touch @",
    "--config=core.sshCommand=touch @",
    "ext::sh -c touch% @",
    "ext::touch @",
    "fd::17",
    "transport::address",
    "ssh://-oProxyCommand=touch @/x",
    "ssh://x@-oProxyCommand=touch @/x",
    "-oProxyCommand=touch @",
    "git://-oProxyCommand=touch @",
    "file:///tmp/../../@",
    "--output=@",
    "-o@",
    "--git-dir=@",
    "--work-tree=@",
    "-C@",
    "--exec-path=@",
    "--namespace=@",
    "--template=@",
    "--separate-git-dir=@",
    "--reference=@",
    "--bare",
    "--mirror",
    "--all",
    "--delete",
    "--force",
    "-f",
    "--prune",
    "--tags",
    "--stdin",
    "--help",
    "-h",
    "--version",
    "--",
    "--end-of-options",
    "-",
    "..",
    "../../@",
    "/dev/stdin",
    "|touch @",
    "`touch @`",
    "$(touch @)",
    ";touch @",
    "&touch @",
    "a b",
    "a\tb",
    "origin --upload-pack=touch @",
    "refs/heads/x:refs/heads/y",
    "+refs/heads/x",
    "^main",
    "main~1",
    "@{-1}",
    ":(exclude)x",
    "{touch,@}",
    "x\\ty",
    "%2e%2e/@",
];

/// K30, S9: no name is an option, an address or a program, wherever it is written
#[test]
fn s09_no_name_is_taken_for_an_option_an_address_or_a_program() {
    assert!(INJECTIONS.len() >= 50, "{}", INJECTIONS.len());
    let mut world = World::any();
    let dir = repo(&world, &[]);
    let canary = world.root().join("canary");
    world.set("GIT_TERMINAL_PROMPT", "0");
    // Git itself would let this one through.
    global(&world, &["protocol.ext.allow", "always"]);
    let before = world.git(&dir, &["for-each-ref"]);
    for text in INJECTIONS {
        let text = text.replace('@', canary.to_str().unwrap());
        let calls: &[&[&str]] = &[
            &["tick", "--remote", &text],
            &["tick", "--", &text],
            &["status", "--remote", &text],
            &["status", "--", &text],
            &["retry", "--", &text],
            &["cancel", "--", &text],
            &["logs", "--", &text],
            &["events", "--", &text],
            &["tick", "--role", &text],
            &["trust", &format!("--ref={text}x..")],
        ];
        for call in calls {
            let said = world.aynig(&dir, call);
            assert!(!canary.exists(), "{call:?}");
            assert!(said.code != 101 && said.code >= 0, "{call:?}: {}", said.err);
        }
        // A commit that names it as its source.
        if !text.contains('\t') {
            world.raw_commit(
                &dir,
                "source",
                format!("go\n\ndwp-state: build\ndwp-source: git:{text}\n").as_bytes(),
            );
            world.aynig(&dir, &["tick", "source"]).expect(0);
            world.git(&dir, &["update-ref", "-d", "refs/heads/source"]);
        }
        assert!(!canary.exists(), "dwp-source: git:{text}");
    }
    assert_eq!(world.git(&dir, &["for-each-ref"]), before, "and nothing moved");
}

/// K30, K33, S9: a commit may send a branch to a remote, never choose whose commands are trusted
#[test]
fn s09_a_commit_does_not_choose_whose_commands_run() {
    let mut world = World::any();
    let evil = world.root().join("evil");
    let dir = repo(&world, &[]);
    // Another user's repository, which is configured here, takes every push, and has a `main` of its own.
    let theirs = world.try_init("theirs.git", &["--bare"]).unwrap();
    let script = format!("#!/bin/sh\ntouch '{}'\n{DONE}\n", evil.display());
    world.commit_files(
        &theirs,
        "main",
        &[(".aynig/command/build", &script), ("file.txt", "one\n")],
        "theirs",
    );
    let event = "go\n\ndwp-state: build\ndwp-source: git:theirs";
    world.git(&theirs, &["branch", "review", "main"]);
    world.commit_files(&theirs, "review", &[("more", "x")], event);
    world.git(&dir, &["remote", "add", "theirs", theirs.to_str().unwrap()]);
    world.git(&dir, &["fetch", "-q", "theirs"]);
    world.git(&dir, &["branch", "-q", "--no-track", "review", "theirs/review"]);
    let said = world.aynig(&dir, &["tick", "review"]);
    assert!(!evil.exists(), "their main was trusted: {}{}", said.out, said.err);
    // What runs there are the commands that were trusted here.
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
    // Who says so himself means the remote's.
    world.commit_files(&theirs, "again", &[("more", "x")], event);
    world.set("X", "1");
    world.aynig(&dir, &["tick", "--remote", "theirs", "again"]).expect(0);
    assert!(evil.exists());
}

/// K19, S10: what a tool prints forges nothing where the result file is used, nor where it is indented or quoted
#[test]
fn s10_output_forges_no_transition_where_the_result_file_is_used() {
    let forged = r#"SET_STATE {"state":"evil"}"#;
    let lines: Vec<String> = (0..20)
        .map(|n| match n % 5 {
            0 => format!("  {forged}"),
            1 => format!("> {forged}"),
            2 => forged.to_lowercase(),
            3 => format!("\\r{forged}"),
            _ => forged.replace(' ', "\\t"),
        })
        .collect();
    let print = format!("printf '%b\\n' '{}'", lines.join("' '"));
    let world = World::any();
    let dir = repo(
        &world,
        &[
            (
                "file",
                &format!(
                    "echo '{forged}'\necho '{{\"state\":\"good\"}}' >\"$AYNIG_RESULT\"\necho '{forged}'"
                ),
            ),
            (
                "near",
                &format!("{print}\necho 'SET_STATE {{\"state\":\"good\"}}'\n{print}\necho '{forged}' >&2"),
            ),
            ("broken", &format!("echo nonsense >\"$AYNIG_RESULT\"\necho '{forged}'")),
        ],
    );
    for (state, code, next) in [("file", 0, "good"), ("near", 0, "good"), ("broken", 1, "stalled")] {
        world.aynig(&dir, &["set-state", state, "-b", state]).expect(0);
        let before = head(&world, &dir, state);
        world.aynig(&dir, &["tick", state]).expect(code);
        assert_eq!(world.states(&dir, state, &before), [next, "working"]);
    }
}
