//! How a repository is named, and what is in the environment then.

use super::*;

/// K37
#[test]
fn a_path_with_spaces_and_an_umlaut() {
    each_git(|world| {
        let dir = world.init("mein tölles 'repo' $x");
        seeded(world, &dir).flow();
    });
}

/// K37, K33: no configuration key can name such a path, a glob does
#[test]
fn a_path_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    each_git(|world| {
        let dir = world.init(std::ffi::OsStr::from_bytes(b"r\xffepo"));
        seeded(world, &dir).flow();
    });
}

/// K33, K14: hooks of hosting users have no HOME
#[test]
fn without_home() {
    for git in gits() {
        let mut world = World::new(&git);
        let dir = world.init("repo");
        Place::new(&world, &dir).seed();
        world.vars.remove(std::ffi::OsStr::new("HOME"));
        let place = Place { trust: false, ..Place::new(&world, &dir) };
        place.by_git(&["-c", "aynig.commandsFrom=branch"]).flow();
    }
}

/// Section 13: `-C`, `--git-dir`, `GIT_DIR` and subfolders work as in Git
#[test]
fn every_way_to_name_the_repository() {
    each_git(|world| {
        let dir = world.init("repo");
        let dot_git = dir.join(".git").into_os_string().into_string().unwrap();
        let (sub, root) = (dir.join("sub"), world.root());
        let path = dir.to_str().unwrap();
        seeded(world, &dir);
        let at = || Place::new(world, &dir);
        at().on("a").by_git::<&str>(&[]).flow();
        at().on("b").by_git(&["-C", path]).from(&root).flow();
        at().on("c").from(&sub).flow();
        at().on("d").by_git::<&str>(&[]).from(&sub).flow();
        at().on("e").by_git(&["--git-dir", &dot_git]).flow();
        at().on("f").by_git(&["--git-dir=.git"]).flow();
        at().on("g").by_git(&["--git-dir=.git", "--work-tree=."]).flow();
        at().on("h").by_git(&["--git-dir", &dot_git, "--work-tree", path]).from(&root).flow();
        let mut place = at().on("i").from(&root);
        place.call.extend(["-C", path].map(Into::into));
        place.flow();
        let mut place = at().on("j").from(&root);
        place.call.extend(["--git-dir", "repo/.git"].map(Into::into));
        place.flow();
        at().on("k").by_git::<&str>(&[]).from(&dir.join(".git")).flow();
    });
}

/// Section 13
#[test]
fn git_dir_in_the_environment() {
    for git in gits() {
        let mut world = World::new(&git);
        let dir = world.init("repo");
        Place::new(&world, &dir).seed();
        world.set("GIT_DIR", dir.join(".git"));
        world.set("GIT_WORK_TREE", &dir);
        let (root, at) = (world.root(), || Place::new(&world, &dir));
        at().on("a").from(&root).flow();
        at().on("b").by_git::<&str>(&[]).from(&root).flow();
    }
}

/// What git sets for hooks (K15): none of it reaches the slot
#[test]
fn the_environment_of_a_hook() {
    for git in gits() {
        let mut world = World::new(&git);
        let dir = world.init("repo");
        Place::new(&world, &dir).seed().say(&["trust", "--ref", "main"]).expect(0);
        world.set("GIT_DIR", ".git");
        world.set("GIT_INDEX_FILE", ".git/index");
        world.set("GIT_PREFIX", "");
        world.set("GIT_AUTHOR_DATE", "@1 +0000");
        world.set("GIT_REFLOG_ACTION", "commit");
        Place { trust: false, ..Place::new(&world, &dir) }.flow();
    }
}

/// K37: names that Git allows
#[test]
fn branch_names_of_every_sort() {
    use std::os::unix::ffi::OsStrExt;
    each_git(|world| {
        let dir = world.init("repo");
        seeded(world, &dir);
        let long = "l".repeat(200);
        for name in ["a/b/c", "wörk/größe", "x#y%z!&'()+,;=$\"", "v1.0.lock-not", "日本", "-in/side", &long]
        {
            // Git refuses a name that begins with '-' only where it could be an option.
            let name = name.trim_start_matches('-');
            Place::new(world, &dir).on(name).flow();
        }
        let raw = std::ffi::OsStr::from_bytes(b"not\xff\xfeutf8/x");
        Place::new(world, &dir).on(raw).flow();
    });
}

/// The same name needs a binary-backed store to cope too
#[test]
fn branch_names_in_a_reftable_repository() {
    use std::os::unix::ffi::OsStrExt;
    each_git(|world| {
        let Some(dir) = world.try_init("repo", &["--ref-format=reftable"]) else { return };
        seeded(world, &dir);
        Place::new(world, &dir).on("wörk/größe").flow();
        Place::new(world, &dir).on(std::ffi::OsStr::from_bytes(b"not\xff\xfeutf8/x")).flow();
    });
}

/// K41: lines that are to be added by hand work as printed, wherever the program is
#[test]
fn lines_for_a_hook_that_is_left_alone_name_a_program_whose_path_is_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::any();
    let dir = world.init("repo");
    let place = seeded(&world, &dir);
    place.say(&["trust", "--ref", "main"]).expect(0);
    let odd = world.root().join(std::ffi::OsStr::from_bytes(b"it's od\xffd\\0101"));
    let outside = world.root().join("their hooks");
    std::fs::create_dir_all(&odd).unwrap();
    std::fs::create_dir_all(&outside).unwrap();
    let program = odd.join("git-aynig");
    std::fs::copy(env!("CARGO_BIN_EXE_git-aynig"), &program).unwrap();
    world.git(&dir, &["config", "core.hooksPath", outside.to_str().unwrap()]);
    world.git(&dir, &["config", "aynig.hooks", "wait"]);
    let said = world.run(&program, &dir, &["hooks", "install"]).expect(1).err;
    let lines = said.split_once("to that post-commit hook yourself:\n").unwrap().1;
    let lines: Vec<&str> = lines.lines().take_while(|line| !line.starts_with("hint: ")).collect();
    write_program(&outside.join("post-commit"), &format!("#!/bin/sh\n{}\n", lines.join("\n")));
    // Found by these lines alone.
    let mut commit = world.command("git", &dir);
    commit.env("PATH", std::env::var_os("PATH").unwrap());
    commit.args(["commit", "-q", "--allow-empty", "-m", "go", "--trailer", "dwp-state: build"]);
    let said = crate::support::world::Said::from(commit.output().unwrap()).expect(0);
    assert!(
        world.git(&dir, &["log", "-1", "--format=%(trailers)"]).contains("dwp-state: review"),
        "{said:?} {lines:?}"
    );
}
