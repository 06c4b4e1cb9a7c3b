//! Beside Git's settings: what a slot is filled with, and what of it is a change, is asked once.

use crate::support::Repo;
use crate::support::life::Life;

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

/// A file's content, a command and a trigger that `refs/replace` shows as another.
fn replaced(life: &Life) {
    life.write("more", "mine\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "more"]);
    let other = |content: &str| {
        life.write(".other", content);
        let id = life.git(&["hash-object", "-w", "--no-filters", ".other"]);
        std::fs::remove_file(life.path(".other")).unwrap();
        id
    };
    for (path, content) in
        [("file", "leaked\n"), (".aynig/command/build", &*format!("#!/bin/sh\necho evil >evil\n{DONE}\n"))]
    {
        life.git(&["replace", &life.rev(&format!("main:{path}")), &other(content)]);
    }
    // A whole folder, too.
    life.git(&["replace", &life.rev("main:dir"), &life.git(&["mktree", "--missing"])]);
}

/// K1, K14, K37: what was hashed counts, whatever `refs/replace` shows instead of it.
#[test]
fn what_was_replaced_is_read_as_it_was_hashed() {
    let look = format!("cat file dir/other >>\"$T/seen\"; echo x >>more; {DONE}");
    for kind in [Repo::build(), Repo::build().reftable()] {
        if kind.create().is_none() {
            continue;
        }
        let life = Life::of(kind, &[("build", &look)]);
        replaced(&life);
        for branch in ["fresh", "again", "third"] {
            let id = life.event(branch, "build", &format!("dwp-name: {branch}\n"));
            // The trigger itself: to Git its message is another one.
            let other =
                life.git(&["commit-tree", "-m", "go\n\ndwp-state: nothing", &life.rev("main^{tree}")]);
            life.git(&["replace", &id, &other]);
            life.tick(&["--jobs", "1", branch]).expect(0);
            let changed = life.git(&["--no-replace-objects", "diff", "--name-only", "main", branch]);
            assert_eq!(changed, "more", "{branch}");
        }
        assert_eq!(life.said("seen"), "one\ntwo\n".repeat(3));
    }
}

/// K14, K25: a working tree's own configuration is that working tree's, and no slot's.
#[test]
fn the_ticking_working_tree_s_own_settings_make_no_change() {
    let life = Life::new(&[(
        "build",
        &format!("ls -l .aynig/command/build link | cut -c1 >\"$T/seen\"; echo x >>more; {DONE}"),
    )]);
    life.write("more", "mine\n");
    std::os::unix::fs::symlink("file", life.path("link")).unwrap();
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "more"]);
    life.git(&["config", "extensions.worktreeConfig", "true"]);
    for (key, value) in [("core.autocrlf", "true"), ("core.symlinks", "false"), ("core.filemode", "false")] {
        life.git(&["config", "--worktree", key, value]);
    }
    for branch in ["fresh", "again"] {
        life.event(branch, "build", "");
        life.tick(&["--jobs", "1", branch]).expect(0);
        assert_eq!(life.git(&["diff", "--name-only", "main", branch]), "more", "{branch}");
        assert_eq!(life.said("seen"), "-\nl\n");
        assert_eq!(life.show(branch, "more"), "mine\nx");
    }
}

/// A file in the place of a folder of ours is named, with the command that mends it; nothing is claimed.
#[test]
fn a_file_where_a_folder_of_ours_belongs_is_named() {
    let life = Life::new(&[("build", DONE)]);
    life.git(&["config", "--global", "--replace-all", "aynig.commandsFrom", "main"]);
    let trigger = life.event("work", "build", "");
    let place = life.repo.git_dir().join("aynig/commands");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(&place, "mine").unwrap();
    let said = life.tick(&["work"]).expect(128);
    let hint = said.stderr.lines().find_map(|line| line.strip_prefix("hint: mv "));
    let mend = hint.unwrap_or_else(|| panic!("{said:?}"));
    assert_eq!(life.rev("work"), trigger);
    assert!(life.repo.command("sh").args(["-c", &format!("mv {mend}")]).status().unwrap().success());
    life.tick(&["work"]).expect(0);
    assert_eq!(std::fs::read_to_string(place.with_extension("aside")).unwrap(), "mine");
}
