//! A repository that several accounts share (`core.sharedRepository`): what is made in it is the group's.

use crate::support::life::{BIN, Done, Life, done, eventually};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

const OTHER: u32 = 54321;
const GROUP: u32 = 54322;

fn all(folder: &Path, each: &mut dyn FnMut(&Path)) {
    each(folder);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.symlink_metadata().unwrap().is_dir() { all(&path, each) } else { each(&path) }
    }
}

/// Opens the folders above a path to every account.
fn make_reachable(path: &Path) {
    for above in path.ancestors().skip(1).take_while(|p| *p != Path::new("/tmp")) {
        std::fs::set_permissions(above, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Makes a repository the group's, as `git init --shared` leaves it, and reachable.
fn give_to_group(repository: &Path) {
    all(repository, &mut |path| {
        chown(path, None, Some(GROUP)).unwrap();
        let meta = path.symlink_metadata().unwrap();
        let mode = meta.permissions().mode() | if meta.is_dir() { 0o2070 } else { 0o060 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    });
    make_reachable(repository);
}

/// Returns what below a Git directory lacks the bits of its group, but for what is private.
fn closed(git: &Path, private: &[PathBuf]) -> Vec<String> {
    let mut closed = Vec::new();
    all(git, &mut |path| {
        let meta = path.symlink_metadata().unwrap();
        let mode = meta.permissions().mode();
        let wanted = match (meta.is_dir(), mode & 0o200 == 0) {
            (true, false) => 0o2070,
            (true, true) => 0o050,
            (false, true) => 0o040,
            (false, false) => 0o060,
        };
        if mode & wanted != wanted && !private.iter().any(|p| path.starts_with(p) && path != *p) {
            closed.push(format!("{mode:o} {}", path.strip_prefix(git).unwrap().display()));
        }
    });
    closed
}

/// K14, K42: the same whichever verb is the first in a repository that was just made.
#[test]
fn whatever_verb_is_the_first_what_it_makes_is_the_groups() {
    let verbs: [&[&str]; 20] = [
        &["set-state", "build", "-b", "new"],
        &["hooks", "install"],
        &["tick", "main"],
        &["tick", "work"],
        &["run"],
        &["send", "work", "-m", "hello"],
        &["pause"],
        &["cancel", "work"],
        &["retry", "work"],
        &["inbox", "work"],
        &["land", "work", "--onto", "main"],
        &["fan", "work", "-n", "2"],
        &["trust"],
        &["gc"],
        &["install", ".", "HEAD", "examples/none"],
        &["flow", "new", "x"],
        &["govern", "start"],
        &["set-state", "build", "-b", "new", "--remote", "origin"],
        &["tick", "--remote", "origin", "work"],
        &["doctor", "--network"],
    ];
    let mut made = 0;
    for verb in verbs {
        for shape in [&[][..], &["--bare"]] {
            let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
            let home = life.repo.home();
            life.event("work", "build", "");
            let at = home.to_str().unwrap();
            life.git(&["-C", at, "init", "-q", "--bare", "origin.git"]);
            life.git(&["push", "-q", home.join("origin.git").to_str().unwrap(), "main", "work"]);
            let dir = home.join("ours");
            let init = ["-C", at, "init", "-q", "--shared=group", "-b", "main"];
            life.git(&[&init, shape, &["ours"]].concat());
            let here = dir.to_str().unwrap();
            life.git(&["-C", here, "fetch", "-q", "../origin.git", "main", "work:work"]);
            life.git(&["-C", here, "remote", "add", "origin", "../origin.git"]);
            match shape {
                [] => life.git(&["-C", here, "reset", "-q", "--hard", "FETCH_HEAD"]),
                _ => life.git(&["-C", here, "update-ref", "refs/heads/main", "FETCH_HEAD"]),
            };
            life.config(&format!("aynig.{here}.commandsFrom"), "branch");
            let said = done(life.repo.command(BIN).current_dir(&dir).args(verb).output().unwrap());
            let git = if shape.is_empty() { dir.join(".git") } else { dir.clone() };
            let private = ["aynig/runs", "aynig/logs", "aynig/worktrees"].map(|name| git.join(name));
            if git.join("aynig").exists() {
                let closed = closed(&git.join("aynig"), &private);
                assert_eq!(closed, Vec::<String>::new(), "{verb:?} {said:?}");
            }
            made += usize::from(git.join("aynig/locks").exists() || git.join("aynig/runs").exists());
            for hook in ["post-commit", "post-receive"].map(|name| git.join("hooks").join(name)) {
                let mode = hook.metadata().map_or(0o775, |meta| meta.permissions().mode());
                assert_eq!(mode & 0o7777, 0o775, "{}", hook.display());
            }
        }
    }
    assert!(made > 12, "{made}");
}

/// K41, K42: a hook that is there keeps the mode that its owner gave it, and a working tree has the umask's modes.
#[test]
fn what_is_the_users_keeps_its_mode() {
    let life = Life::new(&[("build", "echo x >file; echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.git(&["config", "core.sharedRepository", "group"]);
    let hook = life.repo.git_dir().join("hooks/post-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    for kept in [0o755, 0o700, 0o500] {
        std::fs::write(&hook, "#!/bin/sh\nexit 0\n").unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(kept)).unwrap();
        life.run(&["hooks", "install"]).expect(0);
        assert_eq!(mode(&hook), kept);
        life.run(&["hooks", "uninstall"]).expect(0);
        assert_eq!(mode(&hook), kept);
        std::fs::remove_file(&hook).unwrap();
    }
    let hooks = life.path("tracked/hooks");
    life.git(&["config", "core.hooksPath", "tracked/hooks"]);
    life.run(&["hooks", "install"]).expect(0);
    for path in [&hooks, hooks.parent().unwrap(), &hooks.join("post-commit")] {
        assert_eq!(mode(path) & 0o2020, 0, "{}", path.display());
    }
}

/// K41, K42: a hook that is made has what the umask leaves of the rights of a program, and what the setting adds.
#[test]
fn a_hook_that_is_made_has_the_mode_that_git_would_give_it() {
    for (setting, umask, wanted) in [
        ("umask", "022", 0o755),
        ("umask", "077", 0o700),
        ("group", "022", 0o775),
        ("group", "077", 0o770),
        ("all", "077", 0o775),
        ("0640", "022", 0o750),
        // Git ignores a hook that its owner may not execute.
        ("umask", "133", 0o744),
    ] {
        let life = Life::new(&[]);
        life.git(&["config", "core.sharedRepository", setting]);
        let call = format!("umask {umask}; exec '{BIN}' hooks install");
        done(life.repo.command("sh").args(["-c", &call]).output().unwrap()).expect(0);
        // A newer Git is told of scripts of ours.
        let places = ["hooks/post-commit", "aynig/hooks/post-commit"].map(|at| life.repo.git_dir().join(at));
        let made: Vec<_> = places.iter().filter_map(|place| place.metadata().ok()).collect();
        assert_eq!(made.len(), 1);
        let mode = made[0].permissions().mode() & 0o7777;
        assert_eq!(format!("{mode:o}"), format!("{wanted:o}"), "{setting} {umask}");
    }
}

/// K42: what is below the Git directory is told from what is in a working tree by the place that a path leads to.
#[test]
fn a_place_is_told_by_what_its_path_leads_to() {
    let life = Life::new(&[]);
    let home = life.repo.home();
    let at = home.to_str().unwrap();
    life.git(&["-C", at, "clone", "-q", "--bare", life.repo.path().to_str().unwrap(), "bare"]);
    let bare = home.join("bare");
    let here = bare.to_str().unwrap();
    life.git(&["-C", here, "worktree", "add", "-q", "--detach", "tree"]);
    let (ours, inner) = (life.repo.path(), bare.join("tree"));
    for tree in [&ours, &inner] {
        std::fs::create_dir(tree.join("sub")).unwrap();
        life.git(&["-C", tree.to_str().unwrap(), "config", "core.sharedRepository", "group"]);
    }
    for (tree, path, is_git) in [
        (&ours, "sub/../.git/other/hooks", true),
        (&ours, ".git/../tracked/hooks", false),
        (&inner, "sub/../../other/hooks", true),
        (&inner, "tracked/hooks", false),
    ] {
        life.git(&["-C", tree.to_str().unwrap(), "config", "core.hooksPath", path]);
        done(life.repo.command(BIN).current_dir(tree).args(["hooks", "install"]).output().unwrap()).expect(0);
        if life.repo.git_dir().join("aynig/hooks.gitconfig").exists() {
            return crate::support::skipped("this git is told of hooks by its configuration");
        }
        let folder = tree.join(path);
        for (path, bits) in [(&folder, 0o2020), (&folder.join("post-receive"), 0o020)] {
            let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode & bits, if is_git { bits } else { 0 }, "{mode:o} {}", path.display());
        }
    }
}

/// K26, K42: the folder of repositories that are kept is the group's.
#[test]
fn the_folder_of_kept_repositories_is_the_groups() {
    let life = Life::new(&[("build", "git init -q sub; git -C sub commit -q --allow-empty -m x; exit 3")]);
    life.git(&["config", "core.sharedRepository", "group"]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(1);
    let kept = life.repo.git_dir().join("aynig/submodules");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o2070, 0o2070);
}

/// K14, K42: Git's own rule for every file and folder that is made below the Git directory, but for what is private.
#[test]
fn another_account_of_the_group_adds_worktrees_and_ticks() {
    if !nix::unistd::geteuid().is_root() || which::which("setpriv").is_err() {
        return crate::support::skipped("only root can be two accounts");
    }
    let life = Life::new(&[("build", "echo x >>file; echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.git(&["config", "core.sharedRepository", "group"]);
    life.config("safe.directory", "*");
    // The other account has a home of its own.
    let home = life.repo.home().join("other");
    std::fs::create_dir(&home).unwrap();
    std::fs::copy(life.repo.home().join(".gitconfig"), home.join(".gitconfig")).unwrap();
    all(&home, &mut |path| chown(path, Some(OTHER), Some(GROUP)).unwrap());
    let top = life.repo.path();
    give_to_group(&top);
    life.event("work", "build", "");
    life.event("next", "build", "dwp-n: 1\n");
    life.tick(&["--jobs", "1", "work"]).expect(0);
    let git = life.repo.git_dir();
    let private = [git.join("aynig/runs"), git.join("aynig/logs")];
    assert_eq!(closed(&git, &private), Vec::<String>::new());
    let ignore = life.path(".aynig/logs/.gitignore").metadata().unwrap();
    assert_eq!(ignore.permissions().mode() & 0o060, 0o060, "each account's Git reads it");
    let runs = std::fs::read_dir(&private[0]).unwrap().flatten();
    assert!(runs.into_iter().all(|run| run.metadata().unwrap().permissions().mode() & 0o077 == 0));
    let as_other = |program: &str, args: &[&str]| {
        let mut command = life.repo.command("setpriv");
        command.env("HOME", &home).env_remove("XDG_CACHE_HOME");
        command.args([&format!("--reuid={OTHER}"), &format!("--regid={GROUP}"), "--clear-groups", program]);
        done(command.args(args).output().unwrap())
    };
    as_other("git", &["worktree", "add", "-q", "--detach", home.join("tree").to_str().unwrap()]).expect(0);
    as_other(BIN, &["tick", "--jobs", "1", "next"]).expect(0);
    assert_eq!(life.show("next", "file"), "one\nx");
    // And back.
    life.event("last", "build", "dwp-n: 2\n");
    life.tick(&["--jobs", "1", "last"]).expect(0);
    // What is dispatched in the background is told in one log, whichever account began it.
    life.run(&["hooks", "install"]).expect(0);
    life.run(&["set-state", "build", "-b", "mine"]).expect(0);
    eventually("the first account's chain is through", || (life.state("mine") == "done").then_some(()));
    let said = as_other(BIN, &["set-state", "build", "-b", "theirs"]);
    assert!(said.code == Some(0) && !said.stderr.contains("not dispatched"), "{said:?}");
    eventually("the second account's chain is through", || (life.state("theirs") == "done").then_some(()));
    // What one account leaves behind is its own to collect, and keeps no other's collection from its end.
    let left = git.join("aynig/.retired-11111111-2222-4333-8444-555555555555");
    std::fs::create_dir_all(left.join("x")).unwrap();
    for path in [left.join("x"), left.clone()] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        done(life.repo.command("touch").args(["-d", "3 days ago"]).arg(&path).output().unwrap()).expect(0);
    }
    for dry in [&["-n"][..], &[]] {
        let said = as_other(BIN, &[&["gc"], dry].concat()).expect(0);
        assert!(left.exists() && !said.stdout.contains(".retired-"), "{said:?}");
    }
    life.run(&["gc"]).expect(0);
    assert!(!left.exists());
}

/// K16: root's first tick makes the folder of logs in a working tree that is not the group's.
#[test]
fn logs_that_another_account_began_keep_no_account_from_a_tick() {
    if !nix::unistd::geteuid().is_root() || which::which("setpriv").is_err() {
        return crate::support::skipped("only root can be two accounts");
    }
    let life = Life::new(&[("build", "echo \"by $(id -u)\"; echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.config("safe.directory", "*");
    life.git(&["config", "core.sharedRepository", "group"]);
    // All three have one trigger.
    life.event("one", "build", "");
    for branch in ["two", "three"] {
        life.git(&["branch", branch, "one"]);
    }
    give_away(&life);
    give_to_group(&life.repo.git_dir());
    let answer = |account: u32, branch: &str| {
        let mut command = program(&life, account);
        command.env("XDG_CACHE_HOME", life.repo.home().join(format!("cache-{account}")));
        done(command.args(["tick", "--jobs", "2", branch]).output().unwrap()).expect(0);
    };
    answer(0, "one");
    assert!(life.path(".aynig/logs").is_dir());
    answer(OTHER, "two");
    answer(0, "three");
    for (branch, account) in [("one", 0), ("two", OTHER), ("three", 0)] {
        let told = life.run(&["logs", branch]).expect(0).stdout;
        assert!(told.starts_with(&format!("by {account}\n")), "{branch}: {told}");
    }
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// K14, K57: an account takes a slot of its own before another's, whose files it may not write and would leave behind.
#[test]
fn accounts_that_take_turns_keep_their_slots() {
    if !nix::unistd::geteuid().is_root() || which::which("setpriv").is_err() {
        return crate::support::skipped("only root can be two accounts");
    }
    let life = Life::new(&[
        ("build", "echo x >>file; echo 'SET_STATE {\"state\":\"done\"}'"),
        ("look", "echo 'SET_STATE {\"state\":\"done\"}'"),
    ]);
    life.config("safe.directory", "*");
    life.config("aynig.commandsFrom", "branch");
    let (here, bare) = (life.repo.path(), life.repo.home().join("bare"));
    let at = bare.to_str().unwrap().to_owned();
    life.git(&["clone", "-q", "--bare", here.to_str().unwrap(), &at]);
    life.git(&["-C", &at, "config", "core.sharedRepository", "group"]);
    give_to_group(&bare);
    std::fs::set_permissions(life.repo.home().join(".gitconfig"), std::fs::Permissions::from_mode(0o644))
        .unwrap();
    let answer = |account: u32, jobs: &str, state: &str, branch: &str| {
        let set = life.repo.command(BIN).current_dir(&bare).args(["set-state", state, "-b", branch]).output();
        done(set.unwrap()).expect(0);
        let mut command = life.repo.command("setpriv");
        command.args([&format!("--reuid={account}"), &format!("--regid={GROUP}"), "--clear-groups", BIN]);
        done(command.current_dir(&bare).args(["tick", "--jobs", jobs, branch]).output().unwrap()).expect(0);
    };
    for turn in 0..3 {
        for account in [OTHER, OTHER + 2] {
            answer(account, "2", "build", &format!("b{turn}-{account}"));
        }
    }
    let slots: Vec<_> = std::fs::read_dir(bare.join("aynig/worktrees")).unwrap().flatten().collect();
    let mut names: Vec<_> = slots.iter().map(|slot| slot.file_name()).collect();
    names.sort();
    assert_eq!(names, ["0", "1"]);
    // Where all are others', the files are the own account's all the same, also where they would be right as they are.
    answer(OTHER, "1", "look", "seen");
    answer(OTHER + 2, "1", "build", "built");
    assert_eq!(life.git(&["-C", &at, "show", "built:file"]), "one\nx");
    // Root's commands find no files that another account may have written either.
    answer(OTHER + 2, "1", "look", "before");
    let slot = bare.join("aynig/worktrees/0");
    for (account, state, branch) in
        [(OTHER + 2, "build", "theirs"), (0, "look", "roots"), (OTHER + 2, "build", "after")]
    {
        answer(account, "1", state, branch);
        let owner = std::os::unix::fs::MetadataExt::uid(&slot.metadata().unwrap());
        assert_eq!(owner, account, "{branch}");
    }
    assert_eq!(life.git(&["-C", &at, "show", "after:file"]), "one\nx");
    // What another account filled is left to that one's collection.
    let collect = |account: u32| {
        let mut command = life.repo.command("setpriv");
        command.args([
            &format!("--reuid={account}"),
            &format!("--regid={GROUP}"),
            "--clear-groups",
            BIN,
            "gc",
        ]);
        done(command.current_dir(&bare).output().unwrap()).expect(0).stdout
    };
    assert!(!collect(OTHER).contains("worktrees/0") && slot.exists());
    assert!(collect(OTHER + 2).contains("worktrees/0") && !slot.exists());
}

/// K14, K42: the same of what a slot's registration has where refs are in tables.
#[test]
fn a_slot_with_tables_of_refs_is_the_groups() {
    if crate::support::Repo::build().reftable().create().is_none() {
        return crate::support::skipped("this git knows no reftable");
    }
    let kind = crate::support::Repo::build().reftable();
    let life = Life::of(kind, &[("build", "echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.git(&["config", "core.sharedRepository", "group"]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    let (mut closed, mut seen) = (Vec::new(), 0);
    all(&life.repo.git_dir().join("worktrees"), &mut |path| {
        let mode = path.symlink_metadata().unwrap().permissions().mode();
        seen += 1;
        if mode & 0o060 != 0o060 {
            closed.push(format!("{mode:o} {}", path.display()));
        }
    });
    assert!(closed.is_empty() && seen > 5, "{seen}: {closed:?}");
}

/// Makes the repository and the home another account's, and returns the repository's top.
fn give_away(life: &Life) -> PathBuf {
    let top = life.repo.path();
    for folder in [&top, &life.repo.home()] {
        all(folder, &mut |path| chown(path, Some(OTHER), Some(GROUP)).unwrap());
    }
    make_reachable(&top);
    top
}

/// The program as this account.
fn program(life: &Life, account: u32) -> std::process::Command {
    let mut command = life.repo.command("setpriv");
    command.args([&format!("--reuid={account}"), &format!("--regid={GROUP}"), "--clear-groups", BIN]);
    command
}

/// Runs a verb in the repository as this account.
fn by(life: &Life, account: u32, args: &[&str]) -> Done {
    done(program(life, account).args(args).output().unwrap())
}

/// K14, K40: the lock of a slot that another account made, as one `sudo git aynig tick --jobs 2` does, keeps that slot alone
/// from use.
#[test]
fn a_slot_that_another_account_locked_first_stalls_no_branch() {
    if !nix::unistd::geteuid().is_root() || which::which("setpriv").is_err() {
        return crate::support::skipped("only root can be two accounts");
    }
    let life = Life::new(&[("build", "echo x >>file; echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.config("safe.directory", "*");
    for branch in ["one", "two", "three"] {
        life.event(branch, "build", "");
    }
    let top = give_away(&life);
    let as_other = |args: &[&str]| by(&life, OTHER, args);
    as_other(&["tick", "--jobs", "1", "one"]).expect(0);
    let locks = life.repo.git_dir().join("aynig/slots");
    let lock = |number: u32| locks.join(format!("{number}.lock"));
    std::fs::write(lock(1), "").unwrap();
    std::fs::set_permissions(lock(1), std::fs::Permissions::from_mode(0o600)).unwrap();
    as_other(&["tick", "--jobs", "2", "two"]).expect(0);
    // Also where it comes first.
    std::fs::rename(lock(0), lock(2)).unwrap();
    std::fs::rename(lock(1), lock(0)).unwrap();
    as_other(&["tick", "--jobs", "2", "three"]).expect(0);
    assert_eq!(["two", "three"].map(|branch| life.state(branch)), ["done", "done"]);
    let mend = format!("sudo chown -R \"$(id -un)\" '{}'", lock(0).display());
    let found = as_other(&["doctor"]).stdout;
    assert!(found.contains(&mend), "{found}");
    as_other(&["gc"]).expect(0);
    // A lease whose run had that slot is recovered all the same.
    let run = "11111111-2222-4333-8444-555555555555";
    life.event("lost", "build", "");
    let lease = life.lease("lost", "build", run, 10, 3600);
    let note = locks.join("0.json");
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    record["run"] =
        serde_json::json!({"run_id": run, "branch": "refs/heads/lost", "lease": lease, "lingering": false});
    std::fs::write(&note, record.to_string()).unwrap();
    std::fs::set_permissions(&note, std::fs::Permissions::from_mode(0o644)).unwrap();
    life.event("four", "build", "");
    all(&top, &mut |path| {
        if !path.starts_with(&locks) {
            chown(path, Some(OTHER), Some(GROUP)).unwrap();
        }
    });
    let said = as_other(&["tick", "--jobs", "2", "lost"]).expect(1);
    assert_eq!(life.state("lost"), "stalled", "{said:?}");
    assert!(said.stderr.contains("could not be made ready"), "{said:?}");
    // Where there is no other slot, that is said, and nothing is claimed.
    let head = life.rev("four");
    let said = as_other(&["tick", "--jobs", "1", "four"]);
    assert!(said.code == Some(128) && said.stderr.contains("0.lock"), "{said:?}");
    assert_eq!(life.rev("four"), head);
}

/// K57: what is kept between runs is the files' account's: another one could not write them.
#[test]
fn what_is_kept_stays_for_the_account_that_wrote_it() {
    if !nix::unistd::geteuid().is_root() || which::which("setpriv").is_err() {
        return crate::support::skipped("only root can be two accounts");
    }
    let life = Life::new(&[(
        "build",
        "mkdir -p target/deep && touch target/deep/$(id -u) && ls target/deep >list && echo 'SET_STATE {\"state\":\"done\"}'",
    )]);
    life.config("safe.directory", "*");
    life.config("aynig.keep", "target/");
    life.write(".gitignore", "target/\n");
    life.git(&["add", ".gitignore"]);
    life.git(&["commit", "-qm", "ignored"]);
    life.event("one", "build", "");
    let top = give_away(&life);
    let answered = |account: u32| {
        by(&life, account, &["tick", "--jobs", "1", "one"]).expect(0);
        let list = life.git(&["show", "one:list"]);
        life.event("one", "build", "");
        all(&top, &mut |path| {
            // What root writes is the account's, but for the slot: the folder of an object may be the next one's, too.
            if !path.to_str().unwrap().contains("worktrees") {
                chown(path, Some(OTHER), Some(GROUP)).unwrap();
            }
        });
        list
    };
    let other = OTHER.to_string();
    assert_eq!(answered(OTHER), other);
    assert_eq!(answered(0), format!("0\n{other}"));
    let slot = life.repo.git_dir().join("worktrees/aynig-slot-0");
    all(&slot, &mut |path| chown(path, Some(OTHER), Some(GROUP)).unwrap());
    assert_eq!(answered(OTHER), other);
}

/// K13, K14: a slot that another account registered, as one `sudo git aynig tick` does, is found before a claim.
#[test]
fn a_slot_that_another_account_registered_stalls_no_branch() {
    if !nix::unistd::geteuid().is_root() || which::which("setpriv").is_err() {
        return crate::support::skipped("only root can be two accounts");
    }
    let life = Life::new(&[("build", "echo x >>file; echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.config("safe.directory", "*");
    for branch in ["one", "two"] {
        life.event(branch, "build", "");
    }
    give_away(&life);
    let as_other = |args: &[&str]| by(&life, OTHER, args);
    as_other(&["tick", "--jobs", "1", "one"]).expect(0);
    let slot = life.repo.git_dir().join("worktrees/aynig-slot-0");
    all(&slot, &mut |path| chown(path, Some(0), Some(0)).unwrap());
    let head = life.rev("two");
    let said = as_other(&["tick", "--jobs", "1", "two"]);
    assert!(said.code == Some(128) && said.stderr.contains("nothing was claimed"), "{said:?}");
    let mend = format!("sudo chown -R \"$(id -un)\" '{}'", slot.display());
    assert!(said.stderr.contains(&mend), "{said:?}");
    assert_eq!(life.rev("two"), head);
    let found = as_other(&["doctor"]).stdout;
    assert!(found.contains(&mend), "{found}");
    // Another slot is used where there may be one.
    as_other(&["tick", "--jobs", "2", "two"]).expect(0);
    assert_eq!(life.state("two"), "done");
}
