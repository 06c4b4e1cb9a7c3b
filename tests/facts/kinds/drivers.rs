//! What the user's configuration starts on a checkout: hooks, monitors, filters.

use super::*;

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// K14, S6: with every hook in place none fires
#[test]
fn s06_with_every_hook_in_place_none_fires() {
    each_git(|world| {
        for (name, args) in [("files", &[][..]), ("reftable", &["--ref-format=reftable"][..])] {
            let Some(dir) = world.try_init(name, args) else { continue };
            let place = Place { trust: false, ..seeded(world, &dir) };
            let fired = world.root().join("fired");
            let hooks = world.root().join(format!("hooks-{name}"));
            std::fs::create_dir(&hooks).unwrap();
            for folder in [&hooks, &dir.join(".git/hooks")] {
                for hook in HOOKS {
                    write_program(
                        &folder.join(hook),
                        &format!("#!/bin/sh\necho {hook} >>'{}'\n", fired.display()),
                    );
                }
            }
            if world.git_is(2, 55) {
                let config = dir.join(".git/config");
                let mut text = std::fs::read_to_string(&config).unwrap();
                for hook in HOOKS {
                    let command = format!("echo {hook} >>'{}'", fired.display());
                    text += &format!("[hook \"our-{hook}\"]\n\tevent = {hook}\n\tcommand = \"{command}\"\n");
                }
                std::fs::write(&config, text).unwrap();
            }
            place.say(&["trust", "--ref", "main"]).expect(0);
            place.say(&["set-state", "build", "-b", "other"]).expect(0);
            place.say(&["tick"]).expect(0);
            world.git(&dir, &["branch", "more", "main"]);
            let _ = std::fs::remove_file(&fired);
            world.git(&dir, &["config", "core.hooksPath", hooks.to_str().unwrap()]);
            place.flow();
            assert!(!fired.exists(), "hooks fired: {}", std::fs::read_to_string(&fired).unwrap());
            // The files of the second fill differ from the first's: Git's own read-tree is at work.
            world.commit_files(&dir, "more", &[("more.txt", "more\n")], "more");
            std::fs::remove_file(&fired).unwrap();
            place.say(&["set-state", "build", "-b", "more"]).expect(0);
            place.say(&["tick"]).expect(0);
            let said = std::fs::read_to_string(&fired).unwrap_or_default();
            assert_eq!(said, "", "hooks fired");
            world.git(&dir, &["commit", "-q", "--allow-empty", "-m", "by hand"]);
            assert!(fired.exists(), "the hooks would have fired");
            std::fs::remove_file(&fired).unwrap();
        }
    });
}

/// K14, S7
#[test]
fn s07_no_file_system_monitor_runs() {
    each_git(|world| {
        let dir = world.init("repo");
        let place = seeded(world, &dir);
        let ran = world.root().join("monitored");
        let monitor = world.root().join("monitor");
        write_program(&monitor, &format!("#!/bin/sh\necho x >>'{}'\nexit 1\n", ran.display()));
        world.git(&dir, &["config", "core.fsmonitor", monitor.to_str().unwrap()]);
        // The check of the flow and the command use git as the user does: told not to.
        let command = "#!/bin/sh\ngit -c core.fsmonitor=false status >/dev/null\necho edited >>file.txt\n\
                       echo 'SET_STATE {\"state\":\"done\"}'\n";
        world.commit_files(&dir, "main", &[(".aynig/command/quiet", command)], "quiet");
        place.say(&["trust", "--ref", "main"]).expect(0);
        for branch in ["a", "b"] {
            place.say(&["set-state", "quiet", "-b", branch]).expect(0);
            place.say(&["tick", branch]).expect(0);
        }
        place.say(&["set-state", "quiet", "-b", "main"]).expect(0);
        place.say(&["tick", "main"]).expect(0);
        assert!(!ran.exists(), "the monitor ran");
        world.git(&dir, &["status"]);
        assert!(ran.exists(), "the monitor would have run");
    });
}

fn with_filters(world: &World, dir: &Path) {
    let log = world.root().join("filtered");
    for (name, program) in [("clean", "sed s/OUT/IN/"), ("smudge", "sed s/IN/OUT/")] {
        let script = world.root().join(name);
        write_program(&script, &format!("#!/bin/sh\necho {name} >>'{}'\nexec {program}\n", log.display()));
        world.git(dir, &["config", &format!("filter.swap.{name}"), script.to_str().unwrap()]);
    }
}

/// S7: locally the user's drivers run, both ways
#[test]
fn s07_filter_drivers_run_locally() {
    each_git(|world| {
        let dir = world.init("repo");
        with_filters(world, &dir);
        let command = "#!/bin/sh\ngrep -q OUT kept.swap && echo 'more OUT' >made.swap\n\
                       echo 'SET_STATE {\"state\":\"done\"}'\n";
        let files = [
            (".gitattributes", "*.swap filter=swap\n"),
            (".aynig/command/go", command),
            ("kept.swap", "an IN\n"),
        ];
        world.commit_files(&dir, "main", &files, "seed");
        world.git(&dir, &["reset", "-q", "--hard"]);
        world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
        for branch in ["a", "b"] {
            world.aynig(&dir, &["set-state", "go", "-b", branch]).expect(0);
            world.aynig(&dir, &["tick"]).expect(0);
            assert_eq!(world.git(&dir, &["show", &format!("{branch}:made.swap")]), "more IN");
            assert_eq!(world.git(&dir, &["show", &format!("{branch}:kept.swap")]), "an IN");
        }
    });
}

/// S7: in a bare repository none runs, whatever a pushed attribute names
#[test]
fn s07_filter_drivers_do_not_run_in_a_bare_repository() {
    each_git(|world| {
        let dir = world.try_init("repo.git", &["--bare"]).unwrap();
        with_filters(world, &dir);
        let command = "#!/bin/sh\ngrep -q IN kept.swap && echo 'more OUT' >made.swap\n\
                       echo 'SET_STATE {\"state\":\"done\"}'\n";
        let files = [
            (".gitattributes", "*.swap filter=swap\n"),
            (".aynig/command/go", command),
            ("kept.swap", "an IN\n"),
        ];
        world.commit_files(&dir, "main", &files, "seed");
        world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
        for branch in ["a", "b"] {
            world.aynig(&dir, &["set-state", "go", "-b", branch]).expect(0);
            world.aynig(&dir, &["tick"]).expect(0);
            assert_eq!(world.git(&dir, &["show", &format!("{branch}:made.swap")]), "more OUT");
        }
        assert!(!world.root().join("filtered").exists(), "a driver ran");
    });
}

/// K37: what the user's configuration does to line ends it does in the slot too, and nothing else changes
#[test]
fn automatic_line_ends() {
    each_git(|world| {
        let dir = world.init("repo");
        world.git(&dir, &["config", "core.autocrlf", "true"]);
        let command = "#!/bin/sh\ngrep -q \"$(printf 'one\\r')\" file.txt || exit 9\necho two >>file.txt\n\
                       echo 'SET_STATE {\"state\":\"done\"}'\n";
        let attributes = ".aynig/** -text\n";
        let files = [(".aynig/command/go", command), ("file.txt", "one\n"), (".gitattributes", attributes)];
        world.commit_files(&dir, "main", &files, "seed");
        world.git(&dir, &["reset", "-q", "--hard"]);
        world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
        world.aynig(&dir, &["set-state", "go", "-b", "work"]).expect(0);
        world.aynig(&dir, &["tick"]).expect(0);
        assert_eq!(world.git(&dir, &["cat-file", "blob", "work:file.txt"]), "one\ntwo");
        assert_eq!(world.git(&dir, &["diff", "--name-only", "main", "work"]), "file.txt");
        assert_eq!(world.git(&dir, &["status", "--porcelain"]), "");
    });
}
