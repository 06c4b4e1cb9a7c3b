//! `git aynig install`: what comes from another repository's `.aynig/`, what is refused, what is never lost.
//!
//! Also K33: an installation trusts nothing.

use crate::support::life::tree_of;
use crate::support::world::{Said, World, gits};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A repository with a pack, and one to install it into.
struct Rig {
    world: World,
    from: PathBuf,
    to: PathBuf,
}

const BUILD: &str = "#!/bin/sh\n. \"$AYNIG_DIR/lib/words\"\nsay build\n";

impl Rig {
    fn new() -> Self {
        Self::of(World::any(), &[])
    }

    fn of(world: World, init: &[&str]) -> Self {
        let from = world.try_init("from", init).unwrap();
        let to = world.init("to");
        let rig = Self { world, from, to };
        rig.write(&rig.from, "command/build", BUILD);
        rig.write(&rig.from, "lib/words", "say() { echo \"$1\"; }\n");
        std::fs::create_dir_all(rig.from.join(".aynig/roles/ci/command")).unwrap();
        symlink("../../../command/build", rig.from.join(".aynig/roles/ci/command/build")).unwrap();
        rig.commit(&rig.from, "pack");
        rig.world.git(&rig.to, &["commit", "-q", "--allow-empty", "-m", "start"]);
        rig
    }

    /// Writes a file below `.aynig/`, executable where it is a command.
    fn write(&self, repo: &Path, name: &str, content: &str) {
        let path = repo.join(".aynig").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        let mode = if name.contains("command/") { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }

    fn commit(&self, repo: &Path, message: &str) -> String {
        self.world.git(repo, &["add", "-Af"]);
        self.world.git(repo, &["commit", "-q", "-m", message]);
        self.world.git(repo, &["rev-parse", "HEAD"])
    }

    fn aynig(&self, args: &[&str]) -> Said {
        self.world.aynig(&self.to, args)
    }

    /// Installs from a path, with more arguments.
    fn install(&self, more: &[&str]) -> Said {
        self.aynig(&[&["install", "../from"], more].concat())
    }

    /// Installs, killed at the nth system call of this name; true where it came to its end before.
    fn install_killed_at(&self, call: &str, nth: usize) -> bool {
        let inject = format!("inject=/^{call}:signal=KILL:when={nth}");
        let mut command = self.world.command("strace", &self.to);
        command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace=/^{call}"), "-e", &inject]);
        command.arg(self.world.root().join("bin/git-aynig")).args(["install", "../from"]);
        command.output().unwrap().status.success()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.to.join(".aynig").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Everything of the user's: the working tree, and what Git knows of it.
    fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = tree_of(&self.to);
        all.retain(|path, _| !path.starts_with(".git/aynig") && path != Path::new(".git"));
        all
    }

    /// Nothing of an installation is left beside what it installed.
    #[track_caller]
    fn nothing_is_left(&self) {
        assert!(!self.to.join(".aynig/.installing").exists());
        let names = |dir: PathBuf| {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let left = names(self.to.join(".git/aynig"));
        assert!(left.iter().all(|name| name == "install.lock"), "{left:?}");
    }
}

#[test]
fn s23_a_pack_is_copied_shown_and_neither_committed_nor_trusted() {
    for git in gits() {
        let rig = Rig::of(World::new(&git), &[]);
        let before = rig.world.git(&rig.to, &["config", "--list", "--show-origin"]);
        let said = rig.install(&[]).expect(0);
        let id = &rig.world.git(&rig.from, &["rev-parse", "HEAD"])[..8];
        assert_eq!(
            said.out,
            format!(
                " .aynig/command/build          | 3 +++\n .aynig/lib/words              | 1 +\n \
                 .aynig/roles/ci/command/build | 1 +\n 3 files changed, 5 insertions(+)\n \
                 create mode 100755 .aynig/command/build\n create mode 100644 .aynig/lib/words\n \
                 create mode 120000 .aynig/roles/ci/command/build\n\
                 installed {from} ({id}): 3 new, 0 overwritten, 0 unchanged\n\
                 Next, after reading what came:\n  \
                 git add .aynig && git commit -m 'aynig: install {from} ({id})'\n  git aynig trust\n  \
                 git aynig set-state build -b try\n  git aynig run\n",
                from = rig.from.display()
            )
        );
        assert_eq!(said.err, "");
        assert_eq!(rig.read("command/build"), BUILD);
        let mode = |name: &str| std::fs::metadata(rig.to.join(name)).unwrap().permissions().mode();
        assert_eq!((mode(".aynig/command/build") & 0o111, mode(".aynig/lib/words") & 0o111), (0o111, 0));
        let link = std::fs::read_link(rig.to.join(".aynig/roles/ci/command/build")).unwrap();
        assert_eq!(link, Path::new("../../../command/build"));
        // Nothing is staged, and nothing is trusted (K33).
        let status = rig.world.git(&rig.to, &["status", "--porcelain"]);
        assert_eq!(status, "?? .aynig/");
        assert_eq!(rig.world.git(&rig.to, &["config", "--list", "--show-origin"]), before);
        rig.nothing_is_left();
        // What is said next works as it is said.
        let next = said.out.lines().find_map(|l| l.strip_prefix("  git add")).unwrap();
        rig.world.run("sh", &rig.to, &["-c", &format!("git add{next}")]).expect(0);
        let again = rig.install(&[]).expect(0);
        assert_eq!(
            again.out,
            format!("installed {} ({id}): 0 new, 0 overwritten, 3 unchanged\n", rig.from.display())
        );
    }
}

#[test]
fn what_is_overwritten_is_shown_and_what_is_only_here_stays() {
    let rig = Rig::new();
    rig.write(&rig.to, "command/build", "#!/bin/sh\nexit 1\n");
    rig.write(&rig.to, "lib/mine", "mine\n");
    rig.commit(&rig.to, "mine");
    let before = rig.snapshot();
    let said = rig.install(&["-n"]).expect(0);
    assert!(said.out.contains("would install "), "{}", said.out);
    assert!(said.out.contains(": 2 new, 1 overwritten, 0 unchanged\n"), "{}", said.out);
    assert!(!said.out.contains("git add"), "{}", said.out);
    assert_eq!(before, rig.snapshot(), "a dry run changes nothing");
    let said = rig.install(&[]).expect(0);
    assert!(said.out.contains(" .aynig/command/build          | 3 ++-\n"), "{}", said.out);
    assert_eq!((rig.read("command/build").as_str(), rig.read("lib/mine").as_str()), (BUILD, "mine\n"));
    rig.world.git(&rig.to, &["restore", "."]);
    assert_eq!(rig.read("command/build"), "#!/bin/sh\nexit 1\n");
}

#[test]
fn it_is_refused_over_changes_that_are_not_committed() {
    let rig = Rig::new();
    let ways: [(&str, &dyn Fn()); 4] = [
        ("'.aynig/lib/new'", &|| rig.write(&rig.to, "lib/new", "x")),
        ("'.aynig/command/build'", &|| rig.write(&rig.to, "command/build", "mine\n")),
        ("'.aynig/lib/old'", &|| std::fs::remove_file(rig.to.join(".aynig/lib/old")).unwrap()),
        ("'.aynig/lib/old'", &|| {
            rig.write(&rig.to, "lib/old", "staged");
            rig.world.git(&rig.to, &["add", "."]);
        }),
    ];
    rig.write(&rig.to, "lib/old", "old");
    rig.commit(&rig.to, "old");
    for (named, change) in ways {
        change();
        let before = rig.snapshot();
        let said = rig.install(&[]).expect(1);
        assert!(said.err.contains("error: '.aynig' has changes that are not committed\n"), "{}", said.err);
        assert!(said.err.contains(named) && said.err.contains("hint: git add .aynig"), "{}", said.err);
        assert_eq!(before, rig.snapshot());
        rig.world.git(&rig.to, &["reset", "-q", "--hard"]);
        rig.world.git(&rig.to, &["clean", "-qfd"]);
    }
    // Changes elsewhere do not matter, nor do logs.
    std::fs::write(rig.to.join("elsewhere"), "x").unwrap();
    rig.write(&rig.to, "logs/some.stdout.log", "x");
    rig.install(&[]).expect(0);
}

#[test]
fn a_file_that_git_does_not_watch_is_not_overwritten() {
    let rig = Rig::new();
    std::fs::write(rig.to.join(".gitignore"), ".aynig/lib/\n").unwrap();
    rig.write(&rig.to, "lib/words", "my words, nowhere else\n");
    rig.world.git(&rig.to, &["add", "."]);
    rig.world.git(&rig.to, &["commit", "-q", "-m", "ignores"]);
    let said = rig.install(&[]).expect(1);
    assert!(
        said.err.contains("'.aynig/lib/words': it is not committed here, and would be lost"),
        "{}",
        said.err
    );
    assert_eq!(rig.read("lib/words"), "my words, nowhere else\n");
    assert!(!rig.to.join(".aynig/command").exists(), "all or nothing");
    // Git takes this one for unchanged, whatever it holds.
    rig.world.git(&rig.to, &["add", "-f", ".aynig/lib/words"]);
    rig.world.git(&rig.to, &["commit", "-q", "-m", "words"]);
    rig.world.git(&rig.to, &["update-index", "--assume-unchanged", ".aynig/lib/words"]);
    rig.write(&rig.to, "lib/words", "changed\n");
    rig.install(&[]).expect(1);
    assert_eq!(rig.read("lib/words"), "changed\n");
}

#[test]
fn nothing_is_written_through_links_or_over_folders() {
    let rig = Rig::new();
    let outside = rig.world.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::create_dir(rig.to.join(".aynig")).unwrap();
    symlink(&outside, rig.to.join(".aynig/command")).unwrap();
    rig.commit(&rig.to, "a link");
    let said = rig.install(&[]).expect(1);
    assert!(
        said.err.contains("'.aynig/command/build': the pack has a folder where a file is here"),
        "{}",
        said.err
    );
    std::fs::remove_file(rig.to.join(".aynig/command")).unwrap();
    rig.write(&rig.to, "lib/words/deep", "x");
    rig.commit(&rig.to, "a folder");
    let said = rig.install(&[]).expect(1);
    assert!(
        said.err.contains("'.aynig/lib/words': the pack has a file where something else is"),
        "{}",
        said.err
    );
    std::fs::remove_dir_all(rig.to.join(".aynig")).unwrap();
    symlink(&outside, rig.to.join(".aynig")).unwrap();
    rig.commit(&rig.to, "all of it");
    rig.install(&[]).expect(1);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn s23_a_pack_with_more_than_files_is_refused_whole_and_named() {
    let rig = Rig::new();
    let bad = rig.world.init("bad");
    let head = rig.world.git(&rig.from, &["rev-parse", "HEAD"]);
    let blob = rig.world.git_in(&bad, &["hash-object", "-w", "--stdin"], b"x\n");
    let link = |target: &[u8]| rig.world.git_in(&bad, &["hash-object", "-w", "--stdin"], target);
    let links = [link(b"/etc/passwd"), link(b"../../../x"), link(b"inner/.."), link(b"../lib/fine")];
    let index = format!(
        "100755 {blob}\t.aynig/command/fine\n160000 {head}\t.aynig/sub\n120000 {}\t.aynig/command/abs\n\
         120000 {}\t.aynig/command/up\n120000 {}\t.aynig/zigzag\n120000 {}\t.aynig/command/ok\n\
         100644 {blob}\t.aynig/.installing/x\n100644 {blob}\t.aynig/a\\b\n",
        links[0], links[1], links[2], links[3]
    );
    rig.world.git_in(&bad, &["update-index", "--index-info"], index.as_bytes());
    rig.world.git(&bad, &["commit", "-q", "-m", "bad"]);
    let before = rig.snapshot();
    let said = rig.aynig(&["install", "../bad"]).expect(2);
    for line in [
        "caused by: '.aynig/.installing/x': a name that the installation itself uses",
        "caused by: '.aynig/a\\b': a name that is not safe in a working tree",
        "caused by: '.aynig/command/abs': a symbolic link that leaves .aynig/",
        "caused by: '.aynig/command/up': a symbolic link that leaves .aynig/",
        "caused by: '.aynig/sub': a submodule",
        "caused by: '.aynig/zigzag': a symbolic link that leaves .aynig/",
    ] {
        assert!(said.err.contains(line), "{line}: {}", said.err);
    }
    assert!(!said.err.contains("fine") && !said.err.contains("command/ok"), "{}", said.err);
    assert_eq!(before, rig.snapshot());
    rig.nothing_is_left();
}

#[test]
fn s23_names_that_only_a_forged_tree_holds_are_refused() {
    let rig = Rig::new();
    let bad = rig.world.init("bad");
    let blob = rig.world.git_in(&bad, &["hash-object", "-w", "--stdin"], b"[core]\n");
    for name in ["..", ".git", ".GIT", "git~1"] {
        let tree = |entries: &str| rig.world.git_in(&bad, &["mktree"], entries.as_bytes());
        // mktree takes what fsck would not.
        let inner = tree(&format!("100644 blob {blob}\tconfig\n"));
        let pack = tree(&format!("040000 tree {inner}\t{name}\n"));
        let top = tree(&format!("040000 tree {pack}\t.aynig\n"));
        let commit = rig.world.git(&bad, &["commit-tree", "-m", "forged", &top]);
        rig.world.git(&bad, &["update-ref", "refs/heads/main", &commit]);
        let said = rig.aynig(&["install", "../bad"]);
        assert_ne!(said.code, 0, "{name}: {}", said.out);
        assert!(!rig.to.join(".aynig").exists() && !rig.world.root().join("config").exists(), "{name}");
    }
}

#[test]
fn logs_are_left_out_and_left_alone() {
    let rig = Rig::new();
    rig.write(&rig.from, "logs/forged.stdout.log", "forged\n");
    rig.commit(&rig.from, "with logs");
    rig.write(&rig.to, "logs/.gitignore", "*\n");
    rig.write(&rig.to, "logs/mine.stdout.log", "mine\n");
    let said = rig.install(&[]).expect(0);
    assert!(said.err.contains("left out 1 file below .aynig/logs/"), "{}", said.err);
    assert_eq!(rig.read("logs/mine.stdout.log"), "mine\n");
    assert!(!rig.to.join(".aynig/logs/forged.stdout.log").exists());
}

#[test]
fn any_ref_and_any_folder_can_be_asked_for() {
    let rig = Rig::new();
    let first = rig.world.git(&rig.from, &["rev-parse", "HEAD"]);
    rig.world.git(&rig.from, &["tag", "-m", "one", "v1"]);
    rig.world.git(&rig.from, &["switch", "-q", "-c", "topic/two"]);
    rig.write(&rig.from.join("packs/deep"), "command/other", "#!/bin/sh\n");
    let second = rig.commit(&rig.from, "two");
    rig.world.git(&rig.from, &["switch", "-q", "main"]);
    let shown = |said: Said| said.expect(0).out;
    for (name, id) in [
        ("v1", &first),
        ("refs/tags/v1", &first),
        ("HEAD", &first),
        ("topic/two", &second),
        ("refs/heads/topic/two", &second),
        (second.as_str(), &second),
    ] {
        assert!(shown(rig.install(&["-n", name])).contains(&id[..8]), "{name}");
    }
    for folder in ["packs/deep", "./packs//deep/", "packs/deep/.aynig"] {
        let said = rig.install(&["-n", "topic/two", folder]).expect(0);
        assert!(said.out.contains(" create mode 100755 .aynig/command/other\n"), "{folder}: {}", said.out);
        assert!(said.out.contains(": 1 new,"), "{folder}: {}", said.out);
    }
    let said = rig.install(&["main", "packs/deep"]).expect(128);
    assert!(said.err.contains("has no folder 'packs/deep/.aynig' at "), "{}", said.err);
    rig.install(&["nowhere"]).expect(128);
    for usage in [["main", "../x"], ["main", "/etc"], ["refs/notes/x", "x"]] {
        rig.install(&usage).expect(129);
    }
}

#[test]
fn a_sha256_repository_gives_its_pack_to_a_sha1_one() {
    let rig = Rig::of(World::any(), &["--object-format=sha256"]);
    let id = rig.world.git(&rig.from, &["rev-parse", "HEAD"]);
    assert_eq!(id.len(), 64);
    rig.install(&["-n", &id]).expect(0);
    rig.install(&[]).expect(0);
    assert_eq!(rig.read("command/build"), BUILD);
}

#[test]
fn a_name_on_github_is_fetched_from_there_as_git_is_configured_to() {
    let rig = Rig::new();
    let base = format!("url.file://{}/.insteadOf", rig.world.root().display());
    rig.world.git(&rig.to, &["config", "--global", &base, "https://github.com/ada/"]);
    let said = rig.aynig(&["install", "ada/from"]).expect(0);
    assert_eq!(said.err, "fetching https://github.com/ada/from\n");
    assert!(said.out.contains("installed https://github.com/ada/from ("), "{}", said.out);
    assert_eq!(rig.read("command/build"), BUILD);
}

#[test]
fn transports_stay_as_narrow_as_git_has_them() {
    let mut rig = Rig::new();
    let trap = rig.world.root().join("trap");
    for bad in [
        format!("ext::sh -c touch% {}", trap.display()),
        format!("--upload-pack=touch {}", trap.display()),
        format!("ssh://-oProxyCommand=touch {}/x", trap.display()),
        format!("-oProxyCommand=touch${{IFS}}{}:x", trap.display()),
    ] {
        let said = rig.aynig(&["install", "--", &bad]).expect(128);
        assert!(said.err.starts_with("error: ") || said.err.starts_with("fetching "), "{}", said.err);
        assert!(!trap.exists(), "{bad}");
    }
    rig.world.set("GIT_ALLOW_PROTOCOL", "https");
    let said = rig.install(&[]).expect(128);
    assert!(said.err.contains("transport 'file' not allowed"), "{}", said.err);
    rig.nothing_is_left();
}

#[test]
fn s23_nothing_of_the_other_repository_is_run() {
    let rig = Rig::new();
    let trap = rig.world.root().join("trap");
    let script = format!("#!/bin/sh\ntouch {}\n", trap.display());
    for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-receive"] {
        std::fs::create_dir_all(rig.from.join(".git/hooks")).unwrap();
        let path = rig.from.join(".git/hooks").join(hook);
        crate::support::write_program(&path, &script);
    }
    let run = format!("touch {}; cat", trap.display());
    for key in ["core.fsmonitor", "filter.x.smudge", "uploadpack.packObjectsHook", "core.sshCommand"] {
        rig.world.git(&rig.from, &["config", key, &run]);
    }
    rig.write(&rig.from, ".gitattributes", "* filter=x diff=x\n");
    rig.world.git(&rig.from, &["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "-A"]);
    rig.world.git(
        &rig.from,
        &["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "commit", "-qm", "x"],
    );
    let _ = std::fs::remove_file(&trap);
    rig.install(&[]).expect(0);
    assert!(!trap.exists());
}

#[test]
fn without_a_working_tree_or_a_repository_it_says_so() {
    let rig = Rig::new();
    let bare = rig.world.try_init("bare.git", &["--bare"]).unwrap();
    let said = rig.world.aynig(&bare, &["install", "../from"]).expect(128);
    assert!(said.err.contains("no working tree") && said.err.contains("hint: "), "{}", said.err);
    let said = rig.aynig(&["install", "../nothing"]).expect(128);
    assert!(said.err.contains("'../nothing' is no repository"), "{}", said.err);
    let said = rig.aynig(&["install", "../bare.git"]).expect(128);
    assert!(said.err.contains("' has no commit"), "{}", said.err);
    rig.world.commit_files(&bare, "main", &[("file", "x")], "no pack");
    rig.aynig(&["install", "../bare.git"]).expect(128);
    rig.nothing_is_left();
}

#[test]
fn a_linked_working_tree_gets_its_own() {
    let rig = Rig::new();
    let tree = rig.world.root().join("tree");
    rig.world.git(&rig.to, &["worktree", "add", "-q", tree.to_str().unwrap(), "-b", "side"]);
    std::fs::create_dir(tree.join("below")).unwrap();
    rig.world.aynig(&tree.join("below"), &["install", "../../from"]).expect(0);
    assert!(tree.join(".aynig/command/build").exists() && !rig.to.join(".aynig").exists());
}

#[test]
fn killed_anywhere_each_file_is_old_or_new_and_the_next_one_succeeds() {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return crate::support::skipped("there is no strace here");
    }
    let rig = Rig::new();
    let names = ["command/build", "lib/words", "lib/more", "lib/last"];
    for name in names {
        rig.write(&rig.to, name, "old\n");
        rig.write(&rig.from, name, "new\n");
    }
    rig.commit(&rig.to, "old");
    rig.commit(&rig.from, "new");
    let mut seen = std::collections::BTreeSet::new();
    for call in ["rename", "mkdir", "symlink", "fsync", "unlink"] {
        for nth in 1.. {
            assert!(nth < 60, "{call} never ends");
            let ended = rig.install_killed_at(call, nth);
            let olds = names.iter().filter(|name| match rig.read(name).as_str() {
                "old\n" => true,
                "new\n" => false,
                other => panic!("{name} is neither: {other:?}"),
            });
            seen.insert(olds.count());
            let status = rig.world.git(&rig.to, &["status", "--porcelain", "-uall"]);
            assert!(!status.contains("installing"), "{call} {nth}: {status}");
            rig.world.git(&rig.to, &["reset", "-q", "--hard"]);
            rig.world.git(&rig.to, &["clean", "-qfd"]);
            if ended {
                break;
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    rig.install(&[]).expect(0);
    assert!(names.iter().all(|name| rig.read(name) == "new\n"));
    assert!(!rig.to.join(".aynig/.installing").exists());
}

/// A folder that holds what `.aynig/` would is a pack too, where it is named.
#[test]
fn a_subfolder_may_be_the_pack_itself() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.from.join("packs")).unwrap();
    rig.world.git(&rig.from, &["mv", ".aynig", "packs/ci"]);
    rig.commit(&rig.from, "moved");
    rig.install(&["main", "packs"]).expect(128);
    rig.install(&["main", "packs/ci"]).expect(0);
    assert_eq!(rig.read("command/build"), BUILD);
    assert_eq!(rig.read("lib/words"), "say() { echo \"$1\"; }\n");
}

/// What a README says is shown, and only a command that starts what the pack answers.
#[test]
fn s23_a_readme_is_shown_and_gives_no_other_command() {
    let rig = Rig::new();
    rig.write(&rig.from, "command/test", "#!/bin/sh\n");
    for (line, shown) in [
        ("Start: `git aynig set-state test -b it`", "  git aynig set-state test -b it\n  git aynig run\n"),
        ("Start: rm -rf ~", "  git aynig set-state <state> -b <branch>    # it answers build, test: "),
        ("Start: git aynig trust --branches", "  git aynig set-state <state> "),
    ] {
        let text = format!("# Pack\n\nBuilds \u{1b}[2Jand\ntests.\n\n{line}\n");
        std::fs::write(rig.from.join("README.md"), text).unwrap();
        rig.commit(&rig.from, line);
        let out = rig.install(&["-n"]).expect(0).out;
        let about = format!("README: README.md in {} (", rig.from.display());
        assert!(out.contains(&about) && out.contains(")\n  Builds \\x1b[2Jand tests.\n"), "{out}");
        assert!(out.contains(&format!("trusted:\n{shown}")), "{out}");
        assert!(!out.contains("rm -rf") && !out.contains("trust --branches"), "{out}");
    }
    // Neither a link, nor a folder, nor a large file is read.
    std::fs::remove_file(rig.from.join("README.md")).unwrap();
    symlink("/etc/passwd", rig.from.join("README.md")).unwrap();
    rig.commit(&rig.from, "link");
    let out = rig.install(&[]).expect(0).out;
    assert!(!out.contains("README:") && !out.contains("root:"), "{out}");
}
