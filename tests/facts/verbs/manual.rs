//! The examples of the manual pages, typed as they are printed, each in a repository where it has something to do.

use crate::support::world::World;
use std::path::Path;

/// What is there before each example: a command each of three ways to end, and a branch to work on.
const REPOSITORY: &str = "\
git init -q . && git commit -q --allow-empty -m start
mkdir -p .aynig/command
printf '#!/bin/sh\\nset -e\\nmake\\necho \"SET_STATE {\\\"state\\\":\\\"review\\\"}\"\\n' >.aynig/command/build
printf '#!/bin/sh\\necho said >&2; exit 1\\n' >.aynig/command/fail
chmod +x .aynig/command/*
git add .aynig && git commit -q -m commands && git branch work && git aynig trust";

/// What an example needs beyond that.
fn needs(example: &str) -> &'static str {
    match example {
        "git aynig set-working -b job --lease 1h" => "git aynig set-state build -b job",
        "git aynig cancel job" => "git aynig set-state build -b job && git aynig set-working -b job",
        "git aynig cancel 'feature/*'" => {
            "git aynig set-state build -b feature/x && git aynig set-working -b feature/x"
        }
        "git aynig logs --stderr job" | "git aynig logs -f job" | "git aynig logs -f --events job" => {
            "git aynig set-state fail -b job && ! git aynig tick job"
        }
        example if example.starts_with("git aynig diff job") || example.starts_with("git aynig shell ") => {
            "git aynig set-state fail -b job && ! git aynig tick job"
        }
        "git aynig wait job --timeout 10m" => "git aynig set-state review -b job",
        "git aynig wait job --for done && git merge job" => "git aynig set-state done -b job",
        "git aynig retry job && git aynig tick job" => {
            "git aynig set-state build -b job; ! git aynig tick job && git switch -q job && printf 'all:\\n' >Makefile && \
             git add Makefile && git commit -qm mended && git switch -q main"
        }
        "git add .aynig && git commit -m 'aynig: first command'" => {
            "git aynig trust --revoke; git rm -qr .aynig; git commit -qm none; git aynig init --trust"
        }
        "git aynig init --trust" => "git aynig trust --revoke; git rm -qr .aynig; git commit -qm none",
        "git aynig events job" | "git aynig events --history -n 20 --json job" => {
            "git aynig set-state build -b job"
        }
        "git aynig status --porcelain job" | "git aynig status" => "git aynig set-state build -b job",
        "git aynig tick --tee --timeout 10m job" | "git aynig tick --dry-run" => {
            "printf 'all:\\n' >Makefile; git add Makefile; git commit -qm make; git aynig set-state build -b job"
        }
        "git aynig doctor --network" => {
            "git init -q --bare ../hub.git; git config aynig.remote origin; \
             git remote add origin ../hub.git; git push -q origin main; git aynig trust"
        }
        "git aynig doctor --history work" => "git aynig set-state build -b work",
        "git aynig govern approve-phase -b work" => "git aynig govern start -b work && git aynig run",
        "git aynig hooks status" | "git aynig hooks uninstall" => "git aynig hooks install",
        "git aynig govern status -b work" => "git aynig govern start -b work",
        "git aynig send job -m 'Use the other library, please.'" | "git aynig inbox job" => "git branch job",
        "git aynig send job --kind handoff --attach topic -F notes.md" => {
            "git branch job && git branch topic && echo x >notes.md"
        }
        "git aynig answer job yes -m 'After six, please.'"
        | "git aynig approve job"
        | "git aynig reject job -m 'Not on a Friday.'" => ASKS,
        example if example.starts_with("git aynig fan topic") => "git aynig set-state build -b topic",
        "git aynig choose topic-2"
        | "git aynig compare topic"
        | "git aynig compare topic-1 topic-2 --json"
        | "git diff topic-1 topic-2" => FANNED,
        example if example.starts_with("git aynig land ") => LANDS,
        _ => "true",
    }
}

/// A branch that waits for an answer.
const ASKS: &str = r#"cat >.aynig/command/ask <<'END'
#!/bin/sh
id=$(git aynig -q ask Go? --choice yes --choice no) &&
git aynig set-state waiting --emit --trailer "dwp-question: $id" --trailer "dwp-accepts: answer=go"
END
chmod +x .aynig/command/ask && git add .aynig && git commit -qm ask && git aynig set-state ask -b job && git aynig tick job"#;

/// A branch whose trigger three others answer.
const FANNED: &str = r#"set -e
printf 'all:\n' >Makefile && git add Makefile && git commit -qm make
git aynig set-state build -b topic && git aynig fan topic -n 3 --no-tick && git aynig tick topic-2"#;

/// Branches with work that passes its check.
const LANDS: &str = r#"set -e
printf '#!/bin/sh\ntrue\n' >.aynig/command/check && chmod +x .aynig/command/check && echo 'check: check' >.aynig/land
git add .aynig && git commit -qm land && git branch release
git config --global aynig.landOnto '*'
for branch in topic a b c first second; do
    git switch -qc $branch main && echo $branch >$branch && git add $branch && git commit -qm $branch
done
git switch -q main"#;

/// Where no network is, its addresses are folders.
const ADDRESSES: &str = "\
git init -q ../packs && cd ../packs && git commit -q --allow-empty -m start
mkdir -p .aynig/command review/.aynig/command
printf '#!/bin/sh\\n' >.aynig/command/x && cp .aynig/command/x review/.aynig/command/x
git add -A && git commit -qm packs && git tag v2
git config --global url.\"$PWD\".insteadOf https://github.com/ada/packs
git config --global url.\"$PWD\".pushInsteadOf none
git config --global --add url.\"$PWD\".insteadOf https://example.com/packs.git";

fn sh(world: &World, dir: &Path, script: &str) -> (i32, String) {
    let said = world.run("sh", dir, &["-c", &format!("exec 2>&1\n{script}")]);
    (said.code, said.out)
}

#[test]
fn every_example_of_a_manual_page_does_what_it_is_there_for() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut typed = 0;
    for page in std::fs::read_dir(top.join("man")).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        let Some(verb) = name.strip_prefix("git-aynig-").and_then(|n| n.strip_suffix(".1")) else { continue };
        let world = World::any();
        let help = world.aynig(&world.root(), &[verb, "--help"]).expect(0).out;
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{verb} has none"));
        for (nth, example) in examples.lines().map_while(|line| line.strip_prefix("  ")).enumerate() {
            let dir = world.root().join(format!("{verb}-{nth}"));
            std::fs::create_dir(&dir).unwrap();
            let (code, out) = sh(&world, &dir, &format!("set -e\n{REPOSITORY}"));
            assert_eq!(code, 0, "{example}: {out}");
            if verb == "govern" {
                let pack = top.join("examples/govern/.aynig");
                let copy = format!("cp -R '{}' . && cp .aynig/govern/agentxchain.json .", pack.display());
                let (code, out) = sh(
                    &world,
                    &dir,
                    &format!("{copy} && git add -A && git commit -qm govern && git branch -qD work"),
                );
                assert_eq!(code, 0, "{example}: {out}");
            }
            if verb == "install" && nth == 0 {
                let (code, out) = sh(&world, &dir, ADDRESSES);
                assert_eq!(code, 0, "{out}");
                let packs =
                    format!("cp -R '{}' . && git init -q && git add -A", top.join("examples").display());
                let (code, out) = sh(
                    &world,
                    &dir,
                    &format!("mkdir ../git-aynig && cd ../git-aynig && {packs} && git commit -qm x"),
                );
                assert_eq!(code, 0, "{out}");
            }
            if verb == "flow" {
                // Each goes on from those above it.
                let above: Vec<&str> = examples.lines().take(nth).map(str::trim).collect();
                let start = "git aynig flow init -q && git add .aynig && git commit -qm flows";
                let (code, out) = sh(&world, &dir, &format!("set -e\n{start}\n{}", above.join("\n")));
                assert_eq!(code, 0, "{example}: {out}");
            }
            let (code, out) = sh(&world, &dir, needs(example));
            assert_eq!(code, 0, "{example}, before: {out}");
            let line = match example {
                // It never ends by itself.
                "git aynig run --every 30s" => "timeout -s TERM 3 git aynig run --every 30s; [ $? = 124 ]",
                "git aynig inbox --follow --kind interrupt" => {
                    "timeout -s TERM 1 git aynig inbox --follow; [ $? = 124 ]"
                }
                "git aynig flow events review --follow" => {
                    "timeout -s TERM 1 git aynig flow events review --follow; [ $? = 124 ]"
                }
                // A commit of a run.
                "git aynig shell 1b671a64" => "git aynig shell $(git rev-parse --short=8 job)",
                // Only a run asks.
                inside if verb == "ask" && inside.contains("$(git aynig ask") => "true",
                // No user is asked here, and nothing goes without a word.
                "git aynig uninstall" => "! git aynig uninstall",
                // A package of its own, whose tests start it; here its arguments are read.
                other if verb == "serve" || verb == "mcp" => &format!("{other} -h"),
                other if other.contains("| jq ") && !has_jq(&world) => "true",
                other => other,
            };
            // Nothing of a test's is outside of its folder.
            let (code, out) = sh(&world, &dir, &line.replace("/tmp/", "../"));
            let broken = out.contains("error:") && example != "git aynig uninstall";
            assert!(code == 0 && !broken, "{verb}: {example}\n{code}\n{out}");
            typed += 1;
        }
    }
    assert!(typed >= 40, "{typed}");
}

fn has_jq(world: &World) -> bool {
    world.run("sh", &world.root(), &["-c", "command -v jq"]).code == 0
}
