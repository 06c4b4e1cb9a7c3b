//! Links, trees and refs that lead elsewhere.

use super::*;
use crate::support::life::BIN;
use crate::support::life::{Life, done};

/// K16, S15: logs go through no link
#[test]
fn s15_logs_are_not_written_through_links() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let outside = world.root().join("outside");
    let tick = |branch: &str| {
        world.aynig(&dir, &["set-state", "build", "-b", branch, "-m", branch]).expect(0);
        let trigger = head(&world, &dir, branch);
        let said = world.aynig(&dir, &["tick", branch]).expect(0);
        (trigger, said)
    };
    let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
    // The folder itself, to a folder that exists and to one that does not.
    let logs = dir.join(".aynig/logs");
    std::fs::create_dir(&outside).unwrap();
    for target in [outside.clone(), world.root().join("nowhere")] {
        link(&target, &logs);
        let (trigger, said) = tick(if target == outside { "a" } else { "b" });
        assert!(said.err.contains("symbolic link"), "{}", said.err);
        assert!(dir.join(format!(".git/aynig/logs/{trigger}.stdout.log")).exists());
        std::fs::remove_file(&logs).unwrap();
    }
    // What is in it.
    std::fs::create_dir(&logs).unwrap();
    link(&outside.join("ignored"), &logs.join(".gitignore"));
    world.aynig(&dir, &["set-state", "build", "-b", "c", "-m", "c"]).expect(0);
    let trigger = head(&world, &dir, "c");
    link(&outside.join("out"), &logs.join(format!("{trigger}.stdout.log")));
    link(&outside.join("err"), &logs.join(format!("{trigger}.2.stderr.log")));
    let said = world.aynig(&dir, &["tick", "c"]).expect(0);
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
    link(&outside.join("hook"), &logs.join("hook.log"));
    let _ = world.aynig(&dir, &["tick", "--detach", "c"]);
    // The folder above.
    std::fs::rename(dir.join(".aynig"), world.root().join("kept")).unwrap();
    link(&outside, &dir.join(".aynig"));
    let (trigger, _) = tick("d");
    assert!(dir.join(format!(".git/aynig/logs/{trigger}.stdout.log")).exists());
    let there: Vec<_> = std::fs::read_dir(&outside).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(there.is_empty(), "{there:?}");
}

/// A tree object of these entries, whatever their names.
fn raw_tree(world: &World, dir: &Path, entries: &[(&str, &str, &str)]) -> String {
    let mut raw = Vec::new();
    for (mode, name, id) in entries {
        raw.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        raw.extend((0..id.len()).step_by(2).map(|i| u8::from_str_radix(&id[i..i + 2], 16).unwrap()));
    }
    world.git_in(dir, &["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &raw)
}

/// S3, CVE-2018-11235 and its kin: nothing is written outside the slot or into a Git directory
#[test]
fn s03_trees_with_paths_that_lead_elsewhere_are_not_checked_out() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let blob =
        world.git_in(&dir, &["hash-object", "-w", "--stdin"], b"[core]\n\tfsmonitor = touch /tmp/evil\n");
    let inner = raw_tree(&world, &dir, &[("100644", "config", &blob)]);
    let link = world.git_in(&dir, &["hash-object", "-w", "--stdin"], b"../..");
    let aynig = world.git(&dir, &["rev-parse", "main:.aynig"]);
    let parent = head(&world, &dir, "main");
    for (n, entry) in [
        vec![("40000", ".git", &inner)],
        vec![("40000", ".GIT", &inner)],
        vec![("40000", "..", &inner)],
        vec![("40000", ".", &inner)],
        vec![("100644", "a/b", &blob)],
        vec![("100644", "../escaped", &blob)],
        vec![("100644", "/tmp/escaped", &blob)],
        vec![("120000", "link", &link), ("40000", "link", &inner)],
        vec![("100644", "twice", &blob), ("100644", "twice", &blob)],
        vec![("100644", "", &blob)],
    ]
    .iter()
    .enumerate()
    {
        let mut entries = vec![("40000", ".aynig", &*aynig)];
        entries.extend(entry.iter().map(|(mode, name, id)| (*mode, *name, id.as_str())));
        let tree = raw_tree(&world, &dir, &entries);
        let raw = format!(
            "tree {tree}\nparent {parent}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\ngo\n\ndwp-state: build\n"
        );
        let branch = format!("tree-{n}");
        let trigger = world.raw_object(&dir, &branch, raw.as_bytes());
        let said = world.aynig(&dir, &["tick", &branch]);
        assert!([0, 1, 128].contains(&said.code), "{entry:?}: {}: {}{}", said.code, said.out, said.err);
        // Stalled, or refused before anything moved; never between.
        let at = head(&world, &dir, &branch);
        if at != trigger {
            assert_eq!(
                world.states(&dir, &branch, &trigger)[0],
                "stalled",
                "{entry:?}: {}{}",
                said.out,
                said.err
            );
        }
        for escaped in ["escaped", "config"] {
            assert!(
                crate::support::flow::files_below(&world.home(), &|f| f == escaped.as_bytes()).is_empty(),
                "{entry:?}"
            );
        }
        assert!(!Path::new("/tmp/escaped").exists());
        let own = std::fs::read_to_string(dir.join(".git/config")).unwrap();
        assert!(!own.contains("evil"), "{entry:?}");
    }
    // And the pool works on.
    world.aynig(&dir, &["set-state", "build", "-b", "fine"]).expect(0);
    let said = world.aynig(&dir, &["tick", "fine"]).expect(0);
    assert!(said.out.contains("build -> review"), "{}{}", said.out, said.err);
}

/// K11: a branch that is another name for one is left to that one
#[test]
fn a_symbolic_branch_is_not_moved() {
    let world = World::any();
    let dir = repo(&world, &[]);
    world.aynig(&dir, &["set-state", "build", "-b", "real"]).expect(0);
    let trigger = head(&world, &dir, "real");
    world.git(&dir, &["symbolic-ref", "refs/heads/alias", "refs/heads/real"]);
    let said = world.aynig(&dir, &["tick", "alias"]);
    assert_ne!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.err.contains("'real'"), "{}", said.err);
    assert_eq!(head(&world, &dir, "real"), trigger);
    let said = world.aynig(&dir, &["tick"]).expect(0);
    assert!(said.out.contains("real: build -> review"), "{}{}", said.out, said.err);
    assert_eq!(world.states(&dir, "real", &trigger), ["review", "working"], "once");
    assert_eq!(world.git(&dir, &["symbolic-ref", "refs/heads/alias"]), "refs/heads/real");
}

/// K43: a ref that can't be read is an error of its own and blocks no other
#[test]
fn a_broken_branch_blocks_no_other() {
    let world = World::any();
    let dir = repo(&world, &[]);
    world.aynig(&dir, &["set-state", "build", "-b", "fine"]).expect(0);
    std::fs::write(dir.join(".git/refs/heads/broken"), "garbage\n").unwrap();
    std::fs::write(dir.join(".git/refs/heads/absent"), format!("{}\n", "1".repeat(40))).unwrap();
    let blob = world.git(&dir, &["rev-parse", "main:file.txt"]);
    std::fs::write(dir.join(".git/refs/heads/blob"), format!("{blob}\n")).unwrap();
    let said = world.aynig(&dir, &["tick"]);
    assert!(said.out.contains("fine: build -> review"), "{}{}", said.out, said.err);
    assert_eq!(said.code, 128, "{}{}", said.out, said.err);
    for name in ["broken", "absent", "blob"] {
        assert!(said.err.contains(name), "{name}: {}", said.err);
    }
    let _ = FILES;
}

/// K33, K43: what anyone may push can be as large as they like, and is packed small: it is read no further than it counts.
#[test]
fn what_is_large_or_many_on_a_branch_costs_nobody_a_look() {
    let life = Life::new(&[("build", DONE)]);
    let piped = |script: &str, args: &[&str]| {
        let mut shell = life.repo.command("sh");
        let output =
            shell.args(["-c", &format!("{script} | git -c core.compression=1 \"$@\""), "sh"]).args(args);
        let output = output.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let tree = |lines: &str| piped(&format!("printf '{lines}'"), &["mktree"]);
    let pushed = |branch: &str, aynig: &str, message: &str| {
        let tree = tree(&format!("040000 tree {aynig}\t.aynig\\n"));
        let commit = life.git(&["commit-tree", &tree, "-p", "main", "-m", message]);
        life.git(&["branch", branch, &commit]);
    };
    life.config("aynig.commandsFrom", "refs/heads/main");
    life.config("aynig.jobs", "1");
    let large = piped("head -c 268435456 /dev/zero", &["hash-object", "-w", "--stdin"]);
    pushed("rules", &tree(&format!("100644 blob {large}\tland\\n")), "x");
    pushed("request", &tree(""), "x\n\ndwp-state: land\ndwp-land-onto: rules");
    let links = tree(&format!("120000 blob {large}\tlarge\\n"));
    pushed("link", &tree(&format!("040000 tree {links}\tcommand\\n")), "x\n\ndwp-state: large");
    // One folder, in 2^40 places.
    let blob = life.git(&["rev-parse", "main:.aynig/command/build"]);
    let mut folder = tree(&format!("100755 blob {blob}\tbuild\\n"));
    for _ in 0..40 {
        folder = tree(&format!("040000 tree {folder}\ta\\n040000 tree {folder}\tb\\n"));
    }
    // And one that is the commands of thousands of roles.
    let wide = |mode: &str, id: &str| {
        let lines = format!("for i in $(seq 3000); do printf '{mode} {id}\\tb%d\\n' $i; done");
        piped(&lines, &["mktree"])
    };
    let role = tree(&format!("040000 tree {}\tcommand\\n", wide("100755 blob", &blob)));
    pushed(
        "roles",
        &tree(&format!("040000 tree {}\troles\\n", wide("040000 tree", &role))),
        "x\n\ndwp-state: bb7",
    );
    pushed("many", &tree(&format!("040000 tree {folder}\tcommand\\n")), "x\n\ndwp-state: buidl");
    life.event("work", "build", "");
    let began = std::time::Instant::now();
    for trust in ["refs/heads/main", "none", "refs/heads/many", "refs/heads/roles"] {
        life.config("aynig.commandsFrom", trust);
        for args in [&["status"][..], &["tick"], &["set-state", "biuld", "-b", "many"], &["doctor"]] {
            let mut shell = life.repo.command("sh");
            let bounded = shell.args(["-c", "ulimit -v 260000; exec \"$@\"", "sh", BIN]).args(args);
            let said = done(bounded.output().unwrap());
            assert!(
                matches!(said.code, Some(0..=2 | 128)) && !said.stderr.contains("memory"),
                "{args:?}: {said:?}"
            );
        }
    }
    assert_eq!(life.state("work"), "done");
    assert!(began.elapsed().as_secs() < 120, "{:?}", began.elapsed());
}

/// K13: a pushed tree that holds itself stands for any number of files: it is written nowhere, and is said.
#[test]
fn commands_that_are_too_many_to_copy_are_refused_by_name() {
    let life = Life::new(&[("build", DONE)]);
    life.config("aynig.commandsFrom", "branch");
    let script = r#"blob=$(printf '#!/bin/sh\n' | git hash-object -w --stdin)
tree() { for i in $(seq 100); do printf '%s\tn%s\n' "$1" "$i"; done | git mktree; }
of() { printf '100755 blob %s\tbuild\n' "$blob" | git mktree; }
folder=$(tree "100644 blob $blob"); for i in 1 2 3; do folder=$(tree "040000 tree $folder"); done
aynig=$(printf '040000 tree %s\tcommand\n040000 tree %s\tjunk\n' "$(of)" "$folder" | git mktree)
top=$(printf '040000 tree %s\t.aynig\n' "$aynig" | git mktree)
git update-ref refs/heads/many "$(printf 'x\n\ndwp-state: build\n' | git commit-tree "$top" -p main)""#;
    done(life.repo.command("sh").args(["-ec", script]).output().unwrap()).expect(0);
    life.event("work", "build", "");
    let head = life.rev("many");
    let said = life.tick(&["many"]).expect(2);
    assert!(said.stdout.contains("too many files"), "{said:?}");
    assert!(
        said.stderr.contains("hint: git switch many && git rm -r .aynig/<folder> && git commit"),
        "{said:?}"
    );
    life.tick(&[]).expect(2);
    assert_eq!((life.rev("many"), life.state("work").as_str()), (head, "done"));
    let copies: Vec<_> =
        std::fs::read_dir(life.repo.git_dir().join("aynig/commands")).unwrap().flatten().collect();
    assert_eq!(copies.len(), 1, "that of 'work' alone: {copies:?}");
}

/// K25: an index that is larger than what is read of one ends the run without an outcome: what only it has would be gone.
#[test]
fn an_index_that_is_too_large_to_read_is_no_empty_one() {
    let life =
        Life::new(&[("build", &format!("truncate -s 1100M \"$(git rev-parse --git-path index)\"; {DONE}"))]);
    life.write(".gitignore", "kept\n");
    life.write("kept", "tracked, and ignored\n");
    life.git(&["add", "-f", ".gitignore", "kept"]);
    life.git(&["commit", "-qm", "kept"]);
    for stage in ["all", "index"] {
        life.config("aynig.stage", stage);
        life.event("work", "build", "");
        life.tick(&["work"]).expect(1);
        assert_eq!(
            (life.state("work").as_str(), life.show("work", "kept").as_str()),
            ("stalled", "tracked, and ignored")
        );
        // The slot is of use again.
        life.command("quick", DONE);
        life.git(&["add", "-A"]);
        life.git(&["commit", "-q", "--allow-empty", "-m", "quick"]);
        life.event("next", "quick", "");
        life.tick(&["--jobs", "1", "next"]).expect(0);
        assert_eq!(life.state("next"), "done");
    }
}
