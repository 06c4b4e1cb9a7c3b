//! What a repository says of itself, against what its account's owner says of it: row S25.
//!
//! One repository is trusted, by its Git directory, by its working tree and by a glob. Another one, whose every
//! byte another user wrote, says with each key that there is that it is the trusted one, or trusted itself.

use super::*;

/// How the hostile repository lies where it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lie {
    Plain,
    Bare,
    Linked,
    Separate,
    Submodule,
}

/// How it is called: from inside, by flag, by variable.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Call {
    Inside,
    Flag,
    Variables,
}

/// What `core.worktree` may say; `@` is the trusted repository, `^` the way up to it from the Git directory.
const WORKTREES: &[Option<&str>] =
    &[None, Some("@"), Some("@/.git"), Some("^good"), Some("^good/.git"), Some("^link"), Some("@/")];

/// Every other key that could speak for its repository; `$` is the repository's own Git directory.
const KEYS: &[(&str, &str)] = &[
    ("aynig.commandsFrom", "branch"),
    ("aynig.branches", "*"),
    ("aynig.exec", "touch ^fired"),
    ("aynig.notify", "touch ^fired"),
    ("aynig.passEnv", "*"),
    ("aynig.requireSignature", "false"),
    ("aynig.worktreeDir", "^slots"),
    ("aynig.$.commandsFrom", "branch"),
    ("aynig.@.commandsFrom", "branch"),
    ("aynig.@/.git.commandsFrom", "branch"),
    ("aynig./**.commandsFrom", "branch"),
    ("aynig.*.commandsFrom", "branch"),
    ("aynig.remote", "origin"),
    ("core.bare", "true"),
    ("core.bare", "false"),
    ("core.gitDir", "@/.git"),
    ("core.sharedRepository", "all"),
    ("extensions.worktreeConfig", "true"),
    ("extensions.noop", "true"),
    ("extensions.partialClone", "origin"),
    ("extensions.preciousObjects", "true"),
    ("safe.directory", "*"),
    ("safe.bareRepository", "all"),
    ("include.path", "^said"),
    ("includeIf.gitdir:/**.path", "^said"),
    ("includeIf.onbranch:**.path", "^said"),
    ("includeIf.hasconfig:remote.*.url:**.path", "^said"),
    ("remote.origin.url", "@"),
    ("remote.@.url", "@"),
    ("branch.main.remote", "@"),
    ("url.@.insteadOf", "x"),
    ("init.defaultBranch", "main"),
    ("gpg.program", "true"),
];

struct Scene {
    world: World,
    fired: PathBuf,
}

impl Scene {
    /// The trusted repository `good`, and what the hostile one is to run.
    fn new() -> Self {
        let world = World::any();
        let good = world.init("good");
        Place::new(&world, &good).seed();
        for place in ["good/.git", "good", "goo?"] {
            let key = format!("aynig.{}.commandsFrom", world.root().join(place).display());
            global(&world, &[&key, "branch"]);
        }
        std::os::unix::fs::symlink(&good, world.root().join("link")).unwrap();
        let fired = world.root().join("fired");
        let said = format!(
            "[aynig]\n\tcommandsFrom = branch\n[aynig \"{0}\"]\n\tcommandsFrom = branch\n[core]\n\tworktree = {0}\n",
            good.display()
        );
        std::fs::write(world.root().join("said"), said).unwrap();
        Self { world, fired }
    }

    /// Makes the hostile repository anew: the folder to stand in, and its Git directory.
    fn hostile(&self, lie: Lie) -> (PathBuf, PathBuf) {
        let (world, root) = (&self.world, self.world.root());
        for name in ["evil", "elsewhere.git", "super"] {
            let _ = std::fs::remove_dir_all(root.join(name));
        }
        let go = format!("#!/bin/sh\ntouch '{}'\n{DONE}\n", self.fired.display());
        let main = match lie {
            Lie::Bare => world.try_init("evil", &["--bare"]).unwrap(),
            Lie::Separate => {
                let at = format!("--separate-git-dir={}", root.join("elsewhere.git").display());
                world.try_init("evil", &[&at]).unwrap()
            }
            Lie::Plain | Lie::Linked | Lie::Submodule => world.init("evil"),
        };
        world.commit_files(&main, "main", &[(".aynig/command/go", &go)], "seed");
        world.raw_commit(&main, "work", b"go\n\ndwp-state: go\n");
        let dir = match lie {
            Lie::Linked => {
                world.git(&main, &["worktree", "add", "-q", "linked", "-b", "linked", "main"]);
                main.join("linked")
            }
            Lie::Submodule => {
                let outer = world.init("super");
                world.git(&outer, &["submodule", "--quiet", "add", main.to_str().unwrap(), "sub"]);
                let sub = outer.join("sub");
                world.raw_commit(&sub, "work", b"go\n\ndwp-state: go\n");
                sub
            }
            Lie::Plain | Lie::Bare | Lie::Separate => main,
        };
        let common = world.git(&dir, &["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        (dir, PathBuf::from(common))
    }

    /// Writes keys where the repository has its own say, without Git, which would judge them.
    fn say(&self, common: &Path, file: &str, keys: &[(&str, &str)]) {
        let root = self.world.root();
        let up = "../".repeat(common.strip_prefix(&root).unwrap().components().count());
        let mut text = std::fs::read_to_string(common.join(file)).unwrap_or_default();
        for (key, value) in keys {
            let fill = |text: &str| {
                let text = text.replace('@', root.join("good").to_str().unwrap());
                text.replace('$', common.to_str().unwrap()).replace('^', &up)
            };
            let (key, value) = (fill(key), fill(value));
            let (section, rest) = key.split_once('.').unwrap();
            text += &match rest.rsplit_once('.') {
                Some((sub, key)) => format!("[{section} \"{sub}\"]\n\t{key} = {value}\n"),
                None => format!("[{section}]\n\t{rest} = {value}\n"),
            };
        }
        std::fs::write(common.join(file), text).unwrap();
    }

    /// Ticks the hostile repository: it is refused, and nothing of it ran.
    #[track_caller]
    fn refused(&mut self, what: &str, dir: &Path, common: &Path, call: Call, by_git: bool) {
        let (world, root) = (&mut self.world, self.fired.parent().unwrap().to_owned());
        if by_git {
            // Then git is asked for the configuration, not gix.
            world.set("GIT_CONFIG_PARAMETERS", "'user.name'='Ada'");
        }
        let flag = format!("--git-dir={}", common.display());
        let mut command = match call {
            Call::Inside => world.command(root.join("bin/git-aynig"), dir),
            Call::Flag => {
                let mut command = world.command(root.join("bin/git-aynig"), &root);
                command.arg(&flag);
                command
            }
            Call::Variables => {
                let mut command = world.command(root.join("bin/git-aynig"), dir);
                command.env("GIT_DIR", common).env("GIT_WORK_TREE", root.join("good"));
                command
            }
        };
        let said = Said::from(command.args(["tick", "work"]).output().unwrap());
        world.vars.remove(std::ffi::OsStr::new("GIT_CONFIG_PARAMETERS"));
        let (fired, slots) = (self.fired.exists(), root.join("slots").exists());
        // 128: Git itself has no use for such a configuration.
        let refused = said.code == 2 && said.err.contains("not trusted") || said.code == 128;
        assert!(refused && !fired && !slots, "{what}, {call:?}, by git: {by_git}: {said:?}");
    }
}

/// K33, S25: each key of a repository's own configuration, and all of them together, wherever they stand
#[test]
fn s25_nothing_that_a_repository_says_of_itself_makes_it_trusted() {
    let mut scene = Scene::new();
    let (dir, common) = scene.hostile(Lie::Plain);
    let clean = std::fs::read_to_string(common.join("config")).unwrap();
    for file in ["config", "config.worktree"] {
        let worktrees = WORKTREES.iter().flatten().map(|value| ("core.worktree", *value));
        for (key, value) in KEYS.iter().copied().chain(worktrees) {
            std::fs::write(common.join("config"), &clean).unwrap();
            let _ = std::fs::remove_file(common.join("config.worktree"));
            if file != "config" {
                scene.say(&common, "config", &[("extensions.worktreeConfig", "true")]);
            }
            scene.say(&common, file, &[(key, value)]);
            for by_git in [false, true] {
                scene.refused(&format!("{key} = {value} in {file}"), &dir, &common, Call::Inside, by_git);
            }
        }
    }
}

/// K33, S25: the same from a linked worktree, a bare repository, a Git directory elsewhere and a submodule
#[test]
fn s25_wherever_it_lies_and_however_it_is_called() {
    let mut scene = Scene::new();
    let all = times(1, 0) == 1;
    for lie in [Lie::Plain, Lie::Bare, Lie::Linked, Lie::Separate, Lie::Submodule] {
        let (dir, common) = scene.hostile(lie);
        let clean = std::fs::read_to_string(common.join("config")).unwrap();
        for (n, worktree) in WORKTREES.iter().enumerate() {
            for together in [false, true] {
                std::fs::write(common.join("config"), &clean).unwrap();
                if together {
                    // What Git refuses outright would hide the rest.
                    let fatal = ["core.bare", "extensions.noop", "extensions.partialClone", "remote.@.url"];
                    let keys: Vec<_> = KEYS.iter().filter(|(k, _)| !fatal.contains(k)).copied().collect();
                    scene.say(&common, "config", &keys);
                    scene.say(&common, "config", &[("core.bare", "false")]);
                }
                scene.say(
                    &common,
                    "config",
                    &worktree.map(|w| ("core.worktree", w)).into_iter().collect::<Vec<_>>(),
                );
                let calls = [Call::Inside, Call::Flag, Call::Variables];
                for (m, call) in calls.into_iter().enumerate() {
                    for by_git in [false, true] {
                        if all || (n + m + usize::from(by_git)) % 3 == 0 {
                            let what = format!("{lie:?}, core.worktree {worktree:?}, together: {together}");
                            scene.refused(&what, &dir, &common, call, by_git);
                        }
                    }
                }
            }
        }
    }
}

/// K33, S25: a Git directory that calls itself a worktree of the trusted repository is none of it
#[test]
fn s25_a_git_directory_that_names_another_as_its_own_is_not_that_one() {
    let mut scene = Scene::new();
    let good = scene.world.root().join("good");
    scene.world.git(&good, &["config", "extensions.worktreeConfig", "true"]);
    scene.world.aynig(&good, &["set-state", "build", "-b", "work"]).expect(0);
    let (dir, common) = scene.hostile(Lie::Plain);
    let program = scene.world.root().join("program");
    executable(&program, &format!("#!/bin/sh\ntouch '{}'\n", scene.fired.display()));
    std::fs::write(common.join("commondir"), format!("{}\n", good.join(".git").display())).unwrap();
    let fsmonitor = ("core.fsmonitor", program.to_str().unwrap());
    scene.say(&common, "config.worktree", &[fsmonitor, ("filter.x.smudge", program.to_str().unwrap())]);
    for by_git in [false, true] {
        for call in [Call::Inside, Call::Flag] {
            scene.refused("commondir", &dir, &common, call, by_git);
        }
    }
}

/// K33: a working tree names its repository where its `.git` leads there, by a folder or by a file. From outside of one
/// whose `.git` is a file nothing may run: a user who may write there says which repository that file
/// leads to.
#[test]
fn s25_a_working_tree_speaks_for_the_git_directory_that_its_own_dot_git_leads_to() {
    for (key, value) in [("commandsFrom", "branch"), ("commandsFrom", "none"), ("sandbox", "write")] {
        let scene = Scene::new();
        for lie in [Lie::Plain, Lie::Linked, Lie::Separate, Lie::Submodule] {
            let (dir, common) = scene.hostile(lie);
            // Of a linked worktree it is the main one that is meant.
            let main = if lie == Lie::Linked { dir.parent().unwrap() } else { &dir };
            let key = format!("aynig.{}.{key}", main.display());
            let inside = || scene.world.aynig(&dir, &["tick", "-n", "work"]);
            let flag = format!("--git-dir={}", common.display());
            let outside = || scene.world.aynig(&scene.world.root(), &[&flag, "tick", "-n", "work"]);
            for said in [inside(), outside()] {
                said.expect(2);
            }
            let trusted = if value == "branch" { 0 } else { 2 };
            global(&scene.world, &[&key, value]);
            inside().expect(trusted);
            if value == "write" {
                // What confines commands is no key that another process could lose.
                global(&scene.world, &["aynig.commandsFrom", "branch"]);
                inside().expect(0);
            }
            let apart = matches!(lie, Lie::Separate | Lie::Submodule);
            let said = outside().expect(if apart {
                2
            } else if value == "write" {
                0
            } else {
                trusted
            });
            let is_said =
                said.err.to_lowercase().contains(&format!("'{}' is for a working tree", key.to_lowercase()));
            assert_eq!(is_said, apart, "{lie:?}, {key}: {said:?}");
            global(&scene.world, &["--unset", &key]);
            let _ = scene.world.try_git(&dir, &["config", "--global", "--unset", "aynig.commandsFrom"]);
        }
    }
}
