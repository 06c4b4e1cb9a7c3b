//! The basic flow in every kind of repository, for each git of this machine. Implements nothing; asks K37.

mod support;

use std::path::{Path, PathBuf};
use support::flow::Place;
use support::world::{World, gits};

/// Runs a fact once for each git.
fn each_git(fact: impl Fn(&World)) {
    for git in gits() {
        eprintln!("with {}", git.version);
        fact(&World::new(&git));
    }
}

fn seeded<'a>(world: &'a World, dir: &Path) -> Place<'a> {
    let place = Place::new(world, dir);
    place.seed();
    place
}

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
        let ran = support::world::Said::from(ran).expect(0);
        assert!(ran.out.contains("try: hello -> done ("), "{}{}", ran.out, ran.err);
        assert!(world.git(&dir, &["cat-file", "blob", "try:hello.txt"]).starts_with("hello from run "));
        assert_eq!(world.git(&dir, &["status", "--porcelain"]), "");
    });
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

fn origin(world: &World) -> PathBuf {
    let dir = world.init("origin");
    world.git(&dir, &["config", "uploadpack.allowFilter", "true"]);
    world.git(&dir, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    world.commit_files(&dir, "main", &[("old.txt", "older\n")], "older");
    seeded(world, &dir);
    dir
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

fn executable(path: &Path, content: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// K14, S6: with every hook in place none fires
#[test]
fn no_hook_fires() {
    each_git(|world| {
        for (name, args) in [("files", &[][..]), ("reftable", &["--ref-format=reftable"][..])] {
            let Some(dir) = world.try_init(name, args) else { continue };
            let place = Place { trust: false, ..seeded(world, &dir) };
            let fired = world.root().join("fired");
            let hooks = world.root().join(format!("hooks-{name}"));
            std::fs::create_dir(&hooks).unwrap();
            for folder in [&hooks, &dir.join(".git/hooks")] {
                for hook in HOOKS {
                    executable(
                        &folder.join(hook),
                        &format!("#!/bin/sh\necho {hook} >>'{}'\n", fired.display()),
                    );
                }
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
fn no_file_system_monitor_runs() {
    each_git(|world| {
        let dir = world.init("repo");
        let place = seeded(world, &dir);
        let ran = world.root().join("monitored");
        let monitor = world.root().join("monitor");
        executable(&monitor, &format!("#!/bin/sh\necho x >>'{}'\nexit 1\n", ran.display()));
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
        executable(&script, &format!("#!/bin/sh\necho {name} >>'{}'\nexec {program}\n", log.display()));
        world.git(dir, &["config", &format!("filter.swap.{name}"), script.to_str().unwrap()]);
    }
}

/// S7: locally the user's drivers run, both ways
#[test]
fn filter_drivers_run_locally() {
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
fn filter_drivers_do_not_run_in_a_bare_repository() {
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

/// K28, K45: the slot has every file, the user's working tree still has few
#[test]
fn a_sparse_checkout_of_the_users() {
    each_git(|world| {
        for mode in ["--cone", "--no-cone"] {
            let dir = world.init(format!("repo{mode}"));
            let place = seeded(world, &dir);
            world.git(&dir, &["sparse-checkout", "set", mode, "nothing"]);
            assert!(!dir.join("sub").exists());
            place.flow();
            Place::new(world, &dir).on("more").flow();
            assert!(!dir.join("sub").exists());
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

/// K11: a stale `packed-refs.lock` stops no tick
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
