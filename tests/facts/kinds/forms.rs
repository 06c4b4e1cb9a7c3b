//! Repositories of every form.

use super::*;

/// K37
#[test]
fn a_plain_repository() {
    each_git(|world| {
        let dir = world.init("repo");
        seeded(world, &dir).flow();
    });
}

/// Section 13: what `init` prints next works as printed
#[test]
fn init_and_what_it_says_to_do_next() {
    each_git(|world| {
        let dir = world.init("repo");
        let said = world.aynig(&dir, &["init", "--trust"]).expect(0);
        let next = said.out.split_once("Next:\n").unwrap().1;
        let ran = world.command("sh", &dir).args(["-ec", next]).output().unwrap();
        let ran = crate::support::world::Said::from(ran).expect(0);
        assert!(ran.out.contains("try: hello -> done ("), "{}{}", ran.out, ran.err);
        assert!(world.git(&dir, &["cat-file", "blob", "try:hello.txt"]).starts_with("hello from run "));
        assert_eq!(world.git(&dir, &["status", "--porcelain"]), "");
    });
}

/// Section 13: `init` writes over nothing, and a sparse checkout leaves out what is committed.
#[test]
fn init_writes_over_nothing_that_a_sparse_checkout_leaves_out() {
    let world = World::any();
    let dir = world.init("repo");
    let mine = "#!/bin/sh\necho mine\n";
    world.commit_files(&dir, "main", &[(".aynig/command/hello", mine), ("small/file", "x\n")], "seed");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.git(&dir, &["sparse-checkout", "set", "small"]);
    assert!(!dir.join(".aynig").exists());
    world.aynig(&dir, &["init"]).expect(0);
    assert!(!dir.join(".aynig/command").exists());
    assert_eq!(world.git(&dir, &["ls-files", "-m"]), "");
}

/// K37, K16, K14
#[test]
fn a_bare_repository_with_commands_from_a_ref() {
    each_git(|world| {
        let dir = world.try_init("repo.git", &["--bare"]).unwrap();
        let place = Place::bare(world, &dir);
        place.seed().flow();
        assert!(dir.join("aynig/worktrees").is_dir(), "slots of a bare repository live in it");
    });
}

/// K37
#[test]
fn a_bare_repository_with_commands_from_the_branch() {
    each_git(|world| {
        let dir = world.try_init("repo.git", &["--bare"]).unwrap();
        let place = Place { trust: false, ..Place::bare(world, &dir) };
        place.seed().say(&["trust", "--branches"]).expect(0);
        place.flow();
    });
}

/// K37, K16: logs of a linked worktree's tick are in the main one
#[test]
fn a_linked_worktree() {
    each_git(|world| {
        let main = world.init("repo");
        seeded(world, &main);
        let linked = world.root().join("linked");
        world.git(&main, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap(), "main"]);
        Place { logs: main.join(".aynig/logs"), ..Place::new(world, &linked) }.flow();
    });
}

/// K37
#[test]
fn sha256_reftable_and_both() {
    for args in [
        &["--object-format=sha256"][..],
        &["--ref-format=reftable"],
        &["--object-format=sha256", "--ref-format=reftable"],
    ] {
        each_git(|world| {
            if let Some(dir) = world.try_init("repo", args) {
                seeded(world, &dir).flow();
            }
        });
    }
}

/// K37
#[test]
fn bare_sha256_and_reftable() {
    each_git(|world| {
        let args = ["--bare", "--object-format=sha256", "--ref-format=reftable"];
        if let Some(dir) = world.try_init("repo.git", &args) {
            Place::bare(world, &dir).seed().flow();
        }
    });
}

/// K37
#[test]
fn a_linked_worktree_of_a_reftable_repository() {
    each_git(|world| {
        let Some(main) = world.try_init("repo", &["--ref-format=reftable"]) else { return };
        seeded(world, &main);
        let linked = world.root().join("linked");
        world.git(&main, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap(), "main"]);
        Place { logs: main.join(".aynig/logs"), ..Place::new(world, &linked) }.flow();
    });
}

/// K37
#[test]
fn a_shallow_clone() {
    each_git(|world| {
        let url = format!("file://{}", origin(world).display());
        world.git(&world.root(), &["clone", "-q", "--depth=1", &url, "clone"]);
        let dir = world.root().join("clone");
        assert_eq!(world.git(&dir, &["rev-list", "--count", "HEAD"]), "1");
        world.git(&dir, &["rm", "-q", "old.txt"]);
        world.git(&dir, &["commit", "-q", "-m", "drop"]);
        Place::new(world, &dir).flow();
    });
}

/// K37: objects that are missing here are fetched by git where they are needed
#[test]
fn a_partial_clone() {
    each_git(|world| {
        let url = format!("file://{}", origin(world).display());
        world.git(&world.root(), &["clone", "-q", "--filter=blob:none", "--no-checkout", &url, "clone"]);
        let dir = world.root().join("clone");
        let missing = world.git(&dir, &["rev-list", "--objects", "--missing=print", "main"]);
        assert!(missing.contains("\n?"), "nothing is missing: {missing}");
        world.git(&dir, &["checkout", "-q", "main"]);
        world.git(&dir, &["reset", "-q", "--hard"]);
        Place::new(world, &dir).flow();
    });
}

/// K37: a bare partial clone has no blob at all before the tick
#[test]
fn a_bare_partial_clone() {
    each_git(|world| {
        let url = format!("file://{}", origin(world).display());
        world.git(&world.root(), &["clone", "-q", "--bare", "--filter=blob:none", &url, "clone.git"]);
        Place::bare(world, &world.root().join("clone.git")).flow();
    });
}

/// K37
#[test]
fn the_repository_of_a_submodule() {
    each_git(|world| {
        let inner = world.init("inner");
        seeded(world, &inner);
        let outer = world.init("outer");
        world.git(&outer, &["submodule", "add", "-q", inner.to_str().unwrap(), "part"]);
        world.git(&outer, &["commit", "-q", "-m", "with a part"]);
        let status = world.git(&outer, &["status", "--porcelain"]);
        Place::new(world, &outer.join("part")).flow();
        assert_eq!(world.git(&outer, &["status", "--porcelain"]), status, "the outer one sees nothing");
    });
}

/// A submodule in the tree is no file of ours: its folder stays, empty
#[test]
fn a_repository_with_a_submodule() {
    each_git(|world| {
        let inner = world.init("inner");
        seeded(world, &inner);
        let outer = world.init("outer");
        seeded(world, &outer);
        world.git(&outer, &["submodule", "add", "-q", inner.to_str().unwrap(), "part"]);
        world.git(&outer, &["commit", "-q", "-m", "with a part"]);
        Place::new(world, &outer).flow();
        Place::new(world, &outer).on("again").flow();
    });
}

/// K37
#[test]
fn a_separate_git_dir() {
    each_git(|world| {
        let elsewhere = world.root().join("else where");
        let arg = format!("--separate-git-dir={}", elsewhere.display());
        let dir = world.try_init("repo", &[&arg]).unwrap();
        seeded(world, &dir).flow();
    });
}

/// K28, K45: the slot has every file, the user's working tree still has few
#[test]
fn a_sparse_checkout_of_the_users() {
    each_git(|world| {
        for (mode, logs) in [("--cone", ".git/aynig/logs"), ("--no-cone", ".aynig/logs")] {
            let dir = world.init(format!("repo{mode}"));
            seeded(world, &dir);
            world.git(&dir, &["sparse-checkout", "set", mode, "nothing"]);
            assert!(!dir.join("sub").exists());
            let place = || Place { logs: dir.join(logs), ..Place::new(world, &dir) };
            place().flow();
            place().on("more").flow();
            assert!(!dir.join("sub").exists());
        }
    });
}

/// K16, K45: logs have no sparse index expanded, not by the tick and not by what the user calls after it; they are
/// where the cone has room for them, and found wherever they were when it had
#[test]
fn a_sparse_index_stays_sparse() {
    each_git(|world| {
        if !world.git_is(2, 37) {
            return crate::support::skipped("a sparse index needs git 2.37");
        }
        let dir = world.init("repo");
        let place = seeded(world, &dir);
        world.git(&dir, &["sparse-checkout", "set", "--cone", "--sparse-index", "deep"]);
        // `git fsck` always does, and would say so.
        world.git(&dir, &["config", "advice.sparseIndexExpanded", "false"]);
        let collapsed = || world.git(&dir, &["ls-files", "--sparse"]);
        assert_eq!(collapsed(), ".aynig/\nfile.txt\nsub/");
        let linked = world.root().join("linked");
        world.git(&dir, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap(), "main"]);
        let inside = dir.join(".git/aynig/logs");
        let out = Place { logs: inside.clone(), ..Place::new(world, &dir) }.flow();
        Place { logs: inside, ..Place::new(world, &linked) }.on("from-linked").flow();
        // An outcome arrives in the very working tree.
        world.aynig(&dir, &["set-state", "build"]).expect(0);
        world.aynig(&dir, &["tick"]).expect(0);
        assert_eq!(collapsed(), ".aynig/\ndeep/er/made.txt\nfile.txt\nsub/");
        assert!(!dir.join(".aynig").exists());
        let told = world.root().join("told");
        for call in
            [&["status", "--short"][..], &["commit", "-q", "--allow-empty", "-m", "x"], &["diff", "HEAD"]]
        {
            let mut git = world.command("git", &dir);
            assert!(git.args(call).env("GIT_TRACE2_EVENT", &told).status().unwrap().success());
        }
        let told = std::fs::read_to_string(told).unwrap();
        assert!(told.contains("\"index\"") && !told.contains("ensure_full_index"), "{told}");
        world.git(&dir, &["reset", "-q", "--hard", "work~3"]);
        world.git(&dir, &["sparse-checkout", "reapply"]);
        let found = |what: &str| world.aynig(&dir, &["logs", what]).expect(0).out;
        assert!(found(&out).contains("SET_STATE"));
        // Wider, and narrower again.
        world.git(&dir, &["sparse-checkout", "set", "--sparse-index", "deep", ".aynig"]);
        // Another trigger each, as a second run of one would have a number.
        world.git(&dir, &["commit", "-q", "--allow-empty", "-m", "wide"]);
        let wide = place.on("wide").flow();
        world.git(&dir, &["commit", "-q", "--allow-empty", "-m", "whole"]);
        world.git(&dir, &["sparse-checkout", "disable"]);
        let whole = Place::new(world, &dir).on("whole").flow();
        for trigger in [&out, &wide, &whole] {
            assert!(found(trigger).contains("SET_STATE"), "{trigger}");
        }
        world.git(&dir, &["config", "aynig.logExpire", "0"]);
        let removed = world.aynig(&dir, &["gc"]).expect(0).out;
        for (folder, trigger) in [(".git/aynig/logs", &out), (".aynig/logs", &wide), (".aynig/logs", &whole)]
        {
            assert!(removed.contains(&format!("{folder}/{trigger}.stdout.log")), "{removed}");
        }
    });
}

/// K37
#[test]
fn worktree_configuration() {
    each_git(|world| {
        let dir = world.init("repo");
        let place = seeded(world, &dir);
        world.git(&dir, &["config", "extensions.worktreeConfig", "true"]);
        world.git(&dir, &["config", "--worktree", "core.sparseCheckout", "false"]);
        world.git(&dir, &["config", "--worktree", "user.name", "Lin"]);
        place.flow();
        assert_eq!(world.git(&dir, &["log", "-1", "--format=%cn", "work"]), "Lin");
    });
}

/// K37: a bare repository whose worktree is linked, as `extensions.worktreeConfig` is often used
#[test]
fn a_linked_worktree_of_a_bare_repository() {
    each_git(|world| {
        let bare = world.try_init("repo.git", &["--bare"]).unwrap();
        Place::bare(world, &bare).seed();
        let linked = world.root().join("linked");
        world.git(&bare, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap(), "main"]);
        Place { logs: bare.join("aynig/logs"), ..Place::new(world, &linked) }.flow();
    });
}

/// K37
#[test]
fn alternates() {
    each_git(|world| {
        let dir = origin(world);
        world.git(&world.root(), &["clone", "-q", "--shared", dir.to_str().unwrap(), "clone"]);
        let clone = world.root().join("clone");
        assert_eq!(world.git(&clone, &["count-objects"]), "0 objects, 0 kilobytes");
        Place::new(world, &clone).flow();
    });
}

/// K37, gix P2, P5
#[test]
fn packed_refs_and_packed_objects() {
    each_git(|world| {
        let dir = world.init("repo");
        let place = seeded(world, &dir);
        place.say(&["trust", "--ref", "main"]).expect(0);
        place.say(&["set-state", "idle", "-b", "work"]).expect(0);
        world.git(&dir, &["pack-refs", "--all", "--prune"]);
        world.git(&dir, &["gc", "-q", "--prune=now"]);
        assert!(!dir.join(".git/refs/heads/work").exists());
        place.flow();
        world.git(&dir, &["gc", "-q", "--prune=now"]);
        Place::new(world, &dir).on("after").flow();
        // A name below a packed one is refused as Git refuses it.
        let said = place.say(&["set-state", "build", "-b", "work/below"]);
        assert_ne!(said.code, 0, "{}{}", said.out, said.err);
        place.world.git(&dir, &["for-each-ref"]);
    });
}

/// K37: what repack and commit-graph write beside the objects
#[test]
fn with_a_commit_graph_and_a_bitmap() {
    each_git(|world| {
        let dir = world.init("repo");
        let place = seeded(world, &dir);
        world.git(&dir, &["config", "gc.writeCommitGraph", "true"]);
        world.git(&dir, &["repack", "-q", "-a", "-d", "--write-bitmap-index"]);
        world.git(&dir, &["commit-graph", "write", "--reachable"]);
        world.git(&dir, &["multi-pack-index", "write"]);
        place.flow();
    });
}

/// K37: a repository that looks bare to gix and is none
#[test]
fn a_working_tree_by_configuration() {
    each_git(|world| {
        let (git_dir, tree) = (world.root().join("store.git"), world.root().join("tree"));
        std::fs::create_dir(&tree).unwrap();
        world.try_init("store.git", &["--bare"]).unwrap();
        world.git(&git_dir, &["config", "core.bare", "false"]);
        world.git(&git_dir, &["config", "core.worktree", "../tree"]);
        let place = Place { logs: tree.join(".aynig/logs"), ..Place::new(world, &git_dir) };
        place.seed();
        place.flow();
    });
}
