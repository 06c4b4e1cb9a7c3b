//! Links, trees and refs that lead elsewhere.

use super::*;

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
