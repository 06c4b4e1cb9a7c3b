//! What a command notes for its runner to go on with, which an enemy may have written: row S26.

use super::*;
use support::life::eventually;

/// A command that writes a note for this Git directory and branch, as `set-state` inside a run does.
fn noting(git_dir: &str, branch: &str) -> String {
    format!("printf '%s\\0refs/heads/{branch}\\0' \"{git_dir}\" >>\"$AYNIG_RUN_DIR/wake\"\n{DONE}")
}

/// True where a chain was started in the repository of this Git directory: its log is opened before it is.
fn begun(git_dir: &Path) -> bool {
    [".aynig/logs/hook.log", "aynig/logs/hook.log", "../.aynig/logs/hook.log"]
        .iter()
        .any(|log| git_dir.join(log).exists())
}

/// K33, K40, S26: a repository that a command made says that it is a trusted one; the account trusts every repository,
/// and has commands confined
#[test]
fn s26_a_repository_that_a_command_made_is_not_gone_on_with() {
    for (place, exec) in [
        ("$AYNIG_RUN_DIR/made", "env"),
        ("$AYNIG_RUN_DIR/made", ""),
        ("$WORKTREE_PATH/made", ""),
        ("$T/made", "env"),
    ] {
        let mut world = World::any();
        world.set("T", world.root());
        let (fired, program) = (world.root().join("fired"), world.root().join("program"));
        executable(&program, &format!("#!/bin/sh\necho \"$@\" >>'{}'\n", fired.display()));
        world.set("PROGRAM", &program);
        let make = format!(
            "set -e\ngit init -q \"{place}\"\ncd \"{place}\"\necho '* filter=x' >.gitattributes\n\
             mkdir -p .aynig/command\nprintf '#!/bin/sh\\n%s\\n' \"$PROGRAM\" >.aynig/command/go\n\
             chmod +x .aynig/command/go\ngit add -A\ngit commit -qm seed\n\
             git commit -q --allow-empty -m 'go\n\ndwp-state: go'\n\
             for how in clean smudge; do git config filter.x.$how \"$PROGRAM\"; done\n\
             git config core.fsmonitor \"$PROGRAM\"\ngit config core.worktree \"$T/repo\"\n\
             cp -r .git \"$T/kept\"\ncd - >/dev/null\n{}",
            noting(&format!("{place}/.git"), "main")
        );
        let dir = repo(&world, &[("make", &make)]);
        global(&world, &["aynig.commandsFrom", "branch"]);
        if !exec.is_empty() {
            global(&world, &["aynig.exec", exec]);
        }
        tick(&world, &dir, "make", "work").expect(0);
        assert!(world.root().join("kept/config").exists(), "it was made");
        let runs = std::fs::read_dir(dir.join(".git/aynig/runs")).unwrap().flatten();
        let made = runs.map(|run| run.path().join("made/.git"));
        for made in made.chain([world.root().join("made/.git")]) {
            assert!(!begun(&made), "{place}, {exec}: {made:?}");
        }
        assert!(!fired.exists() && !begun(&dir.join(".git")), "{place}, {exec}");
    }
}

/// K40, S26: another repository is gone on with where the account trusts that very path, and through no link
#[test]
fn s26_a_noted_path_counts_as_it_is_written() {
    let mut world = World::any();
    let other = world.init("other");
    Place::new(&world, &other).seed();
    std::os::unix::fs::symlink(&other, world.root().join("link")).unwrap();
    world.set("T", world.root());
    let cases = [("link", "$T/link/.git"), ("up", "$T/other/../other/.git"), ("named", "$T/other/.git")];
    let commands: Vec<_> = cases.iter().map(|(state, at)| (*state, noting(at, "work"))).collect();
    let commands: Vec<_> = commands.iter().map(|(state, script)| (*state, script.as_str())).collect();
    let dir = repo(&world, &commands);
    for (state, _) in &commands {
        // Trusted as all are, or by its name.
        tick(&world, &dir, state, "untrusted").expect(0);
        assert!(!begun(&other.join(".git")), "{state}");
    }
    world.aynig(&other, &["trust", "--ref", "main"]).expect(0);
    for (state, counts) in [("link", false), ("up", false), ("named", true)] {
        tick(&world, &dir, state, "trusted").expect(0);
        assert_eq!(begun(&other.join(".git")), counts, "{state}");
    }
}

/// K40, S26: what is noted of this repository's own worktrees is this repository's, whatever those hold
#[test]
fn s26_a_note_that_names_a_slot_is_about_its_repository() {
    let world = World::any();
    let script = format!(
        "git aynig set-state build -b next --no-tick\nd=$(git rev-parse --absolute-git-dir)\n{}",
        noting("$d", "next")
    );
    let dir = repo(&world, &[("note", &script)]);
    tick(&world, &dir, "note", "work").expect(0);
    assert!(begun(&dir.join(".git")));
    eventually("the branch goes on", || {
        let states = world.git(&dir, &["log", "--format=%(trailers:key=dwp-state,valueonly)", "next"]);
        states.starts_with("review").then_some(())
    });
}

/// K33, K40, K59, S26, S37: a confined command makes a repository where it may write, and notes it for its runner,
/// which is not confined
#[test]
fn s26_a_repository_that_a_confined_command_made_is_not_gone_on_with() {
    if !super::confined::confined() {
        return;
    }
    let made = |root: &Path, place: &str| place.replace("$T", root.to_str().unwrap());
    let every = |root: &Path| vec![(format!("aynig.{}/*.commandsFrom", root.display()), "branch".to_owned())];
    let all = |_: &Path| vec![("aynig.commandsFrom".to_owned(), "branch".to_owned())];
    let by_name = |root: &Path| {
        let key = format!("aynig.{}/open/made/.git.commandsFrom", root.display());
        vec![("aynig.commandsFrom".to_owned(), "branch".to_owned()), (key, "branch".to_owned())]
    };
    type Trusts<'a> = &'a dyn Fn(&Path) -> Vec<(String, String)>;
    let cases: [(&str, &str, Trusts<'_>); 7] = [
        ("$T/repo/.git/objects/made", "write", &every),
        ("$T/repo/.git/objects/made", "write", &all),
        ("$T/open/made", "write", &every),
        ("$T/open/made", "write", &all),
        ("$T/open/made", "write", &by_name),
        ("$T/open/made", "strict", &all),
        ("$T/open/made", "strict", &by_name),
    ];
    for (place, sandbox, trusts) in cases {
        let mut world = World::any();
        world.set("T", world.root());
        let root = world.root().to_owned();
        std::fs::create_dir(root.join("open")).unwrap();
        let fired = root.join("fired");
        let make = format!(
            "set -e\nexport GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a\n\
             export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a\n\
             git init -q '{at}'\ncd '{at}'\necho '* filter=x' >.gitattributes\nmkdir -p .aynig/command\n\
             printf '#!/bin/sh\\ntouch {fired}\\n' >.aynig/command/go\nchmod +x .aynig/command/go\n\
             git add -A\ngit commit -qm 'go\n\ndwp-state: go'\n\
             git config filter.x.smudge 'touch {fired}; cat'\ngit branch -M main\ncd - >/dev/null\n{}",
            noting(&format!("{}/.git", made(&root, place)), "main"),
            at = made(&root, place),
            fired = fired.display(),
        );
        let dir = repo(&world, &[("make", &make)]);
        for (key, value) in trusts(&root) {
            global(&world, &[&key, &value]);
        }
        global(&world, &["aynig.sandbox", sandbox]);
        global(&world, &["aynig.sandboxWrite", root.join("open").to_str().unwrap()]);
        let said = tick(&world, &dir, "make", "work").expect(0);
        let there = PathBuf::from(made(&root, place)).join(".git");
        assert!(there.join("refs/heads/main").exists(), "{place}, {sandbox}: it was made: {said:?}");
        assert!(!begun(&there) && !fired.exists(), "{place}, {sandbox}");
    }
}

/// K33, K40, S26, S37: a confined command has a place that is trusted, and where it may write, lead to a repository that
/// it can't write to and that no user trusts
#[test]
fn s26_a_trusted_place_that_commands_may_write_names_no_other_repository() {
    if !super::confined::confined() {
        return;
    }
    for (sandbox, gone) in [("write", "old"), ("strict", "old"), ("write", "old/.git")] {
        let world = World::any();
        let root = world.root();
        let (open, other) = (root.join("open"), world.init("other"));
        std::fs::create_dir(&open).unwrap();
        Place::new(&world, &other).seed();
        world.git(&other, &["branch", "-M", "main"]);
        let fired = root.join("fired");
        let go = format!("#!/bin/sh\ntouch '{}'\n{DONE}\n", fired.display());
        world.commit_files(&other, "main", &[(".aynig/command/go", &go)], "go");
        world.raw_commit(&other, "work", b"go\n\ndwp-state: go\n");
        let lead = format!(
            "mkdir -p '{0}'\necho 'gitdir: {1}' >'{0}/.git'\n{2}",
            open.join(gone).display(),
            other.join(".git").display(),
            noting(other.join(".git").to_str().unwrap(), "work")
        );
        let dir = repo(&world, &[("lead", &lead)]);
        let key = |place: &Path, key: &str| format!("aynig.{}.{key}", place.display());
        global(&world, &[&key(&open.join(gone), "commandsFrom"), "branch"]);
        global(&world, &[&key(&dir.join(".git"), "commandsFrom"), "branch"]);
        global(&world, &[&key(&dir.join(".git"), "sandbox"), sandbox]);
        global(&world, &[&key(&dir.join(".git"), "sandboxWrite"), open.to_str().unwrap()]);
        tick(&world, &dir, "lead", "work").expect(0);
        assert!(open.join(gone).join(".git").exists(), "{sandbox} {gone}: it was written");
        assert!(!begun(&other.join(".git")) && !fired.exists(), "{sandbox} {gone}");
        // It makes no user trust it later either.
        world.aynig(&other, &["tick", "work"]).expect(2);
        assert!(!fired.exists(), "{sandbox} {gone}");
    }
}

/// K40, S26, S37: commands of one repository make another where they may write, and those of a third note it
#[test]
fn s26_what_commands_of_any_repository_may_have_made_is_not_gone_on_with() {
    if !super::confined::confined() {
        return;
    }
    let world = World::any();
    let made = world.init("open/made");
    Place::new(&world, &made).seed();
    let dir = repo(&world, &[("note", &noting(made.join(".git").to_str().unwrap(), "work"))]);
    let key = |place: &Path, key: &str| format!("aynig.{}.{key}", place.display());
    global(&world, &[&key(&made.join(".git"), "commandsFrom"), "branch"]);
    global(&world, &[&key(&dir.join(".git"), "sandbox"), "write"]);
    let third = key(&world.root().join("third/.git"), "sandboxWrite");
    for (write, goes_on) in [(world.root().join("open"), false), (world.root().join("else"), true)] {
        global(&world, &[&third, write.to_str().unwrap()]);
        tick(&world, &dir, "note", if goes_on { "second" } else { "first" }).expect(0);
        assert_eq!(begun(&made.join(".git")), goes_on, "{write:?}");
    }
}
