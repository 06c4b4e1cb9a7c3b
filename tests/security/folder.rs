//! What a branch may bring below `.aynig/`: a rule that shows logs to Git, a link that leads elsewhere. Row S32.

use super::*;
use std::os::unix::fs::symlink;

/// Checks out what a branch holds beyond `main`.
fn check_out(world: &World, dir: &Path, files: &[(&str, &str)]) {
    world.git(dir, &["branch", "-q", "evil", "main"]);
    world.commit_files(dir, "evil", files, "evil");
    world.git(dir, &["checkout", "-q", "evil"]);
}

/// What a commit of everything would hold.
fn committed(world: &World, dir: &Path) -> String {
    world.git(dir, &["add", "-A"]);
    world.git(dir, &["ls-files"])
}

/// K16, K45, S32: whatever rules a branch brings, after a tick no log is where Git would take it
#[test]
fn s32_a_branch_with_rules_of_its_own_gets_no_logs_into_commits() {
    for rules in ["!*\n", "*\n!*.log\n", "", "*\n!.gitignore\n"] {
        let world = World::any();
        let dir = repo(&world, &[("show", &format!("echo secret\n{DONE}"))]);
        tick(&world, &dir, "show", "before").expect(0);
        let root = if rules.is_empty() { "!/.aynig/logs/\n!/.aynig/logs/**\n" } else { "!.aynig/logs\n" };
        check_out(&world, &dir, &[(".aynig/logs/.gitignore", &format!("{rules}\n")), (".gitignore", root)]);
        let said = tick(&world, &dir, "show", "after").expect(0);
        assert!(said.out.contains("show -> done"), "{}{}", said.out, said.err);
        let harmless = rules.starts_with("*\n!.gitignore");
        assert_eq!(said.err.contains("a .gitignore that lets logs into commits"), !harmless, "{}", said.err);
        let all = committed(&world, &dir);
        assert!(!all.contains(".log"), "{rules:?}: {all}");
        // They are found where they went, the older one too, and the branch's own file is as it was.
        for branch in ["before", "after"] {
            assert_eq!(world.aynig(&dir, &["logs", branch]).expect(0).out.lines().next(), Some("secret"));
        }
        let kept = std::fs::read_to_string(dir.join(".aynig/logs/.gitignore")).unwrap();
        assert_eq!(kept, format!("{rules}\n"));
        assert_eq!(dir.join(".git/aynig/logs").exists(), !harmless);
    }
}

/// K16, S32: rules that a merge or a rebase brings find no log that is there already: the hooks of both, and any
/// verb, have moved them away
#[test]
fn s32_rules_that_come_later_let_no_older_logs_into_commits() {
    for how in ["merge", "rebase", "status"] {
        let world = World::any();
        let dir = repo(&world, &[("show", &format!("echo secret\n{DONE}"))]);
        tick(&world, &dir, "show", "before").expect(0);
        world.git(&dir, &["branch", "-q", "evil", "main"]);
        world.commit_files(&dir, "evil", &[(".aynig/logs/.gitignore", "!*\n")], "evil");
        world.git(&dir, &["commit", "-q", "--allow-empty", "-m", "mine"]);
        if how != "status" {
            world.aynig(&dir, &["hooks", "install"]).expect(0);
        }
        match how {
            "rebase" => world.git(&dir, &["rebase", "-q", "evil"]),
            _ => world.git(&dir, &["merge", "-q", "--no-edit", "evil"]),
        };
        if how == "status" {
            assert!(world.git(&dir, &["status", "--porcelain", "-uall"]).contains(".stdout.log"));
            world.aynig(&dir, &["status"]).expect(0);
        }
        let all = committed(&world, &dir);
        assert!(!all.contains(".log") && all.contains(".aynig/logs/.gitignore"), "{how}: {all}");
        assert_eq!(world.aynig(&dir, &["logs", "before"]).expect(0).out.lines().next(), Some("secret"));
    }
}

/// K16, K34, S32: before trust no program is started to find which logs are committed
#[test]
fn s32_logs_stay_where_they_are_where_nothing_is_trusted_any_more() {
    let world = World::any();
    let dir = repo(&world, &[("show", DONE)]);
    tick(&world, &dir, "show", "before").expect(0);
    check_out(&world, &dir, &[(".aynig/logs/.gitignore", "!*\n")]);
    world.aynig(&dir, &["trust", "--revoke"]).expect(0);
    world.aynig(&dir, &["status"]);
    assert!(world.git(&dir, &["status", "--porcelain", "-uall"]).contains(".stdout.log"));
}

/// K16, K45, S32: what a branch has committed there is the user's, whatever it is called
#[test]
fn s32_a_committed_file_that_is_called_like_a_log_stays() {
    let world = World::any();
    let dir = repo(&world, &[("show", DONE)]);
    let name = format!(".aynig/logs/{}.stdout.log", "1".repeat(40));
    check_out(&world, &dir, &[(".aynig/logs/.gitignore", "!*\n"), (&name, "theirs\n")]);
    tick(&world, &dir, "show", "work").expect(0);
    assert_eq!(world.git(&dir, &["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(dir.join(name)).unwrap(), "theirs\n");
}

/// S32: verbs that write below `.aynig/` go through no link
#[test]
fn s32_nothing_is_written_through_a_link_below_the_folder() {
    let world = World::any();
    let elsewhere = world.root().join("elsewhere");
    for (n, link) in [".aynig", ".aynig/command", ".aynig/logs", ".aynig/command/hello"].iter().enumerate() {
        let dir = world.init(format!("r{n}"));
        Place::new(&world, &dir).seed();
        world.git(&dir, &["reset", "-q", "--hard"]);
        let _ = std::fs::remove_dir_all(&elsewhere);
        std::fs::create_dir(&elsewhere).unwrap();
        let at = dir.join(link);
        let _ = std::fs::remove_dir_all(&at);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        let to = if link.ends_with("hello") { elsewhere.join("made") } else { elsewhere.clone() };
        symlink(to, &at).unwrap();
        world.git(&dir, &["add", "-A"]);
        world.git(&dir, &["commit", "-q", "-m", "link"]);
        let said = world.aynig(&dir, &["init"]);
        let refused = matches!(*link, ".aynig" | ".aynig/command");
        assert_eq!(said.code, if refused { 128 } else { 0 }, "{link}: {}{}", said.out, said.err);
        assert_eq!(said.err.contains("it is a symbolic link"), refused, "{link}: {}", said.err);
        world.git(&dir, &["clean", "-qdfx"]);
        let pack = world.init(format!("pack{n}"));
        let files = [(".aynig/command/packed", "#!/bin/sh\n"), (".aynig/logs/x", "x")];
        world.commit_files(&pack, "main", &files, "pack");
        let said = world.aynig(&dir, &["install", pack.to_str().unwrap()]);
        assert_eq!(said.code != 0, refused, "{link}: {}{}", said.out, said.err);
        world.aynig(&dir, &["trust", "--branches"]).expect(0);
        world.aynig(&dir, &["tick"]);
        world.aynig(&dir, &["tick", "--detach"]);
        world.aynig(&dir, &["gc"]);
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "{link}");
    }
}
