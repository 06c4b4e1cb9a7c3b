//! What puts the program on a machine: the two scripts of `install/`, the units, the cron line, the package.
//!
//! `uninstall.sh` undoes exactly what `install.sh` did: the tree is compared byte for byte, modes included.

use crate::support::life::{differences, tree_of};
use crate::support::skipped;
use crate::support::world::{Said, World};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder to install into, with a binary that takes no time to copy.
struct Rig {
    folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("aynig install ").tempdir().unwrap();
        let rig = Self { folder };
        std::fs::write(rig.path("binary"), "#!/bin/sh\necho 'git-aynig 0'\n").unwrap();
        std::fs::create_dir(rig.path("machine")).unwrap();
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn machine(&self) -> PathBuf {
        self.path("machine")
    }

    fn sh(&self, script: &Path, args: &[&str], destdir: Option<&Path>) -> Said {
        let mut command = Command::new("sh");
        command.arg(script).args(args).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.envs(destdir.map(|d| ("DESTDIR", d))).stdin(Stdio::null()).current_dir("/");
        command.output().unwrap().into()
    }

    /// `install.sh`, into the machine's folder `prefix`.
    fn install(&self, prefix: &str) -> Said {
        let (prefix, binary) = (self.machine().join(prefix), self.path("binary"));
        let args = ["--prefix", prefix.to_str().unwrap(), "--binary", binary.to_str().unwrap()];
        self.sh(&root().join("install/install.sh"), &args, None)
    }

    fn uninstall(&self, prefix: &str) -> Said {
        let prefix = self.machine().join(prefix);
        self.sh(&root().join("install/uninstall.sh"), &["--prefix", prefix.to_str().unwrap()], None)
    }
}

#[track_caller]
fn assert_same(before: &Tree, after: &Tree) {
    let differ = differences(before, after);
    assert!(differ.is_empty(), "{differ:#?}");
}

type Tree = std::collections::BTreeMap<PathBuf, Vec<u8>>;

#[test]
fn uninstall_undoes_exactly_what_install_did() {
    for prefix in ["usr", "deep/er/pre fix"] {
        let rig = Rig::new();
        // Neighbours: in folders that it uses, and one that begins as ours do.
        for file in ["usr/bin/other", "usr/share/man/man1/git-aynig-other.1", "usr/share/zsh/x"] {
            let path = rig.machine().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "theirs\n").unwrap();
        }
        let before = tree_of(&rig.machine());
        rig.install(prefix).expect(0);
        let installed = tree_of(&rig.machine());
        assert!(differences(&before, &installed).len() > 20, "{installed:?}");
        let has = |name: &str| rig.machine().join(prefix).join(name).is_file();
        for name in [
            "bin/git-aynig",
            "share/man/man1/git-aynig-install.1",
            "share/bash-completion/completions/git-aynig",
            "share/zsh/site-functions/_git-aynig",
            "share/fish/vendor_completions.d/git-aynig.fish",
            "share/systemd/user/git-aynig@.timer",
        ] {
            assert!(has(name), "{name}");
        }
        let said = Command::new(rig.machine().join(prefix).join("bin/git-aynig")).output().unwrap();
        assert_eq!(said.stdout, b"git-aynig 0\n");
        // Twice is once.
        rig.install(prefix).expect(0);
        assert_same(&installed, &tree_of(&rig.machine()));
        rig.uninstall(prefix).expect(0);
        assert_same(&before, &tree_of(&rig.machine()));
        let said = rig.uninstall(prefix).expect(1);
        assert!(said.err.contains("nothing was installed below"), "{}", said.err);
    }
}

#[test]
fn the_copy_that_is_installed_uninstalls_too() {
    let rig = Rig::new();
    let before = tree_of(&rig.machine());
    rig.install("usr").expect(0);
    rig.sh(&rig.machine().join("usr/share/git-aynig/uninstall.sh"), &[], None).expect(0);
    assert_same(&before, &tree_of(&rig.machine()));
}

#[test]
fn a_packagers_destdir_is_filled_and_emptied() {
    let rig = Rig::new();
    let before = tree_of(&rig.machine());
    let destdir = rig.machine().join("not/yet");
    let binary = rig.path("binary");
    let args = ["--prefix=/usr", "--binary", binary.to_str().unwrap()];
    rig.sh(&root().join("install/install.sh"), &args, Some(&destdir)).expect(0);
    let manifest = std::fs::read_to_string(destdir.join("usr/share/git-aynig/manifest")).unwrap();
    assert!(manifest.contains("\t/usr/bin/git-aynig\n") && !manifest.contains("machine"), "{manifest}");
    rig.sh(&root().join("install/uninstall.sh"), &["--prefix", "/usr"], Some(&destdir)).expect(0);
    std::fs::remove_dir(rig.machine().join("not")).unwrap();
    assert_same(&before, &tree_of(&rig.machine()));
}

#[test]
fn what_is_not_ours_is_neither_overwritten_nor_removed() {
    let rig = Rig::new();
    let theirs = rig.machine().join("usr/bin/git-aynig");
    std::fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    std::fs::write(&theirs, "theirs\n").unwrap();
    let before = tree_of(&rig.machine());
    let said = rig.install("usr").expect(1);
    assert!(said.err.contains("is there, and is not ours") && said.err.contains("hint: rm "), "{}", said.err);
    assert_same(&before, &tree_of(&rig.machine()));
    std::fs::remove_file(&theirs).unwrap();
    rig.install("usr").expect(0);
    let page = rig.machine().join("usr/share/man/man1/git-aynig.1");
    std::fs::write(&page, "changed\n").unwrap();
    std::fs::write(rig.machine().join("usr/share/man/man1/new.1"), "new\n").unwrap();
    let said = rig.uninstall("usr").expect(1);
    assert_eq!(said.err, format!("left: '{}' was changed since\n", page.display()));
    let left: Vec<_> = tree_of(&rig.machine().join("usr")).into_keys().collect();
    let left: Vec<_> = left.iter().map(|p| p.to_str().unwrap()).collect();
    assert_eq!(
        left,
        ["bin", "share", "share/man", "share/man/man1", "share/man/man1/git-aynig.1", "share/man/man1/new.1"]
    );
}

#[test]
fn a_newer_version_takes_the_place_of_an_older_one() {
    let rig = Rig::new();
    let before = tree_of(&rig.machine());
    rig.install("usr").expect(0);
    // As if that version had had a page more.
    let (page, manifest) = ("usr/share/man/man1/git-aynig-old.1", "usr/share/git-aynig/manifest");
    let page = rig.machine().join(page);
    std::fs::write(&page, "old\n").unwrap();
    let noted = std::fs::read_to_string(rig.machine().join(manifest)).unwrap();
    let line = format!("f\t0 0\t{}\n", page.display());
    std::fs::write(rig.machine().join(manifest), noted + &line).unwrap();
    std::fs::write(rig.path("binary"), "newer\n").unwrap();
    rig.install("usr").expect(0);
    assert!(!page.exists());
    assert_eq!(std::fs::read_to_string(rig.machine().join("usr/bin/git-aynig")).unwrap(), "newer\n");
    rig.uninstall("usr").expect(0);
    assert_same(&before, &tree_of(&rig.machine()));
}

#[test]
fn what_a_killed_installation_left_is_undone_too() {
    for nth in [1, 2, 9, 20] {
        let rig = Rig::new();
        let before = tree_of(&rig.machine());
        // A cp that kills the script which calls it, in the middle of the nth copy.
        let bin = rig.path("bin");
        std::fs::create_dir(&bin).unwrap();
        let count = rig.path("count");
        let script = format!(
            "#!/bin/sh\necho >>'{0}'\n[ $(wc -l <'{0}') -lt {nth} ] || {{ echo half >\"$2\"; kill -9 $PPID; }}\n\
             exec /bin/cp \"$@\"\n",
            count.display()
        );
        crate::support::write_program(&bin.join("cp"), &script);
        let (prefix, binary) = (rig.machine().join("usr"), rig.path("binary"));
        let killed = Command::new("sh")
            .arg(root().join("install/install.sh"))
            .args(["--prefix", prefix.to_str().unwrap(), "--binary", binary.to_str().unwrap()])
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("TMPDIR", rig.path(""))
            .output()
            .unwrap();
        assert!(!killed.status.success(), "{killed:?}");
        assert_ne!(before, tree_of(&rig.machine()));
        rig.uninstall("usr").expect(0);
        assert_same(&before, &tree_of(&rig.machine()));
    }
}

#[test]
fn wrong_calls_change_nothing() {
    let rig = Rig::new();
    let before = tree_of(&rig.machine());
    for args in [
        ["--prefix", "relative"],
        ["--binary", "/nonexistent"],
        ["--wrong", "x"],
        ["--prefix=/x", "--binary"],
    ] {
        let said = rig.sh(&root().join("install/install.sh"), &args, Some(&rig.machine())).expect(1);
        assert!(said.err.starts_with("error: "), "{}", said.err);
    }
    let help = rig.sh(&root().join("install/install.sh"), &["--help"], None).expect(0);
    assert!(help.out.contains("--prefix DIR") && !help.out.contains('#'), "{}", help.out);
    assert_same(&before, &tree_of(&rig.machine()));
}

/// What `install/package` makes, with binaries that take no time to build; `SHA256SUMS` names it.
fn packages(rig: &Rig) -> PathBuf {
    let (from, name) = (rig.path("from"), format!("git-aynig-0.9-{}-linux", std::env::consts::ARCH));
    let tree = from.join(&name);
    std::fs::create_dir_all(tree.join("bin")).unwrap();
    std::fs::copy(rig.path("binary"), tree.join("bin/git-aynig")).unwrap();
    std::fs::write(tree.join("bin/git-aynig-serve"), "#!/bin/sh\necho page\n").unwrap();
    let script = "cp -R \"$1\"/install \"$1\"/man \"$2\" && cd \"$3\" && tar -czf \"$4.tar.gz\" \"$4\" && rm -r \"$4\" &&\n\
                  sha256sum \"$4.tar.gz\" >SHA256SUMS";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(root()).arg(&tree).arg(&from).arg(&name);
    Said::from(command.output().unwrap()).expect(0);
    from
}

#[test]
fn get_sh_installs_what_the_checksums_name() {
    let rig = Rig::new();
    let (from, before) = (packages(&rig), tree_of(&rig.machine()));
    let prefix = rig.machine().join("usr");
    let get = root().join("install/get.sh");
    let args = ["--from", from.to_str().unwrap(), "--prefix", prefix.to_str().unwrap()];
    rig.sh(&get, &args, None).expect(0);
    for (program, says) in [("git-aynig", "git-aynig 0\n"), ("git-aynig-serve", "page\n")] {
        let said = Said::from(Command::new(prefix.join("bin").join(program)).output().unwrap()).expect(0);
        assert_eq!(said.out, says);
    }
    rig.uninstall("usr").expect(0);
    assert_same(&before, &tree_of(&rig.machine()));
    // The sum that a person had elsewhere counts beside the list.
    let sums = std::fs::read_to_string(from.join("SHA256SUMS")).unwrap();
    let (sum, _) = sums.split_once(' ').unwrap();
    rig.sh(&get, &[&args[..], &["--sha256", sum]].concat(), None).expect(0);
}

#[test]
fn get_sh_installs_nothing_whose_checksum_differs() {
    let rig = Rig::new();
    let (from, before) = (packages(&rig), tree_of(&rig.machine()));
    let prefix = rig.machine().join("usr");
    let get = root().join("install/get.sh");
    let args = ["--from", from.to_str().unwrap(), "--prefix", prefix.to_str().unwrap()];
    let said = rig.sh(&get, &[&args[..], &["--sha256", &"0".repeat(64)]].concat(), None).expect(1);
    assert!(said.err.contains("not the one that you named: nothing was installed"), "{}", said.err);
    let said = rig.sh(&get, &[&args[..], &["--version", "0.8"]].concat(), None).expect(1);
    assert!(said.err.contains("names no 'git-aynig-0.8-"), "{}", said.err);
    let archive = from.join(format!("git-aynig-0.9-{}-linux.tar.gz", std::env::consts::ARCH));
    let whole = std::fs::read(&archive).unwrap();
    for broken in [whole[..whole.len() - 1].to_vec(), [&whole[..], b"x"].concat(), Vec::new()] {
        std::fs::write(&archive, broken).unwrap();
        let said = rig.sh(&get, &args, None).expect(1);
        assert!(said.err.contains("is not the listed one: nothing was installed\nhint: "), "{}", said.err);
    }
    std::fs::remove_file(from.join("SHA256SUMS")).unwrap();
    let said = rig.sh(&get, &args, None).expect(1);
    assert!(said.err.contains("there is no '") && said.err.contains("/SHA256SUMS'"), "{}", said.err);
    assert_same(&before, &tree_of(&rig.machine()));
}

#[test]
fn systemd_reads_the_units_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(root().join("install/systemd")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--user", "--man=no"]).env("XDG_RUNTIME_DIR", folder.path());
    let units = [
        "git-aynig@srv-x.timer",
        "git-aynig@srv-x.service",
        "git-aynig-every@srv-x.service",
        "git-aynig-serve@srv-x.socket",
        "git-aynig-serve@srv-x.service",
    ];
    for unit in units {
        command.arg(folder.path().join(unit));
    }
    let Ok(said) = command.output().map(Said::from) else {
        return skipped("there is no systemd-analyze here");
    };
    assert!(said.code == 0 && said.err.is_empty(), "{}{}", said.out, said.err);
}

#[test]
fn the_cron_line_and_the_unit_tick_a_repository() {
    let world = World::any();
    let dir = world.init("home/src/project");
    let script = "#!/bin/sh\necho 'SET_STATE {\"state\":\"done\"}'\n";
    world.commit_files(&dir, "main", &[(".aynig/command/go", script)], "go");
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    let cron = std::fs::read_to_string(root().join("install/crontab.example")).unwrap();
    let line = cron.lines().rfind(|l| l.starts_with("* * * * * ")).unwrap().trim_start_matches(['*', ' ']);
    let unit = std::fs::read_to_string(root().join("install/systemd/git-aynig@.service")).unwrap();
    let start = unit.lines().find_map(|l| l.strip_prefix("ExecStart=")).unwrap();
    let start = start.replace("%f", dir.to_str().unwrap());
    let has_flock = Command::new("flock").arg("--version").output().is_ok();
    let lines = [line, &start];
    for (number, line) in lines.iter().enumerate().filter(|(n, _)| has_flock || *n > 0) {
        let branch = format!("job{number}");
        world.aynig(&dir, &["set-state", "go", "-b", &branch]).expect(0);
        // As cron does: a shell, a short environment, another folder.
        world.run("sh", Path::new("/"), &["-c", line]).expect(0);
        assert_eq!(world.states(&dir, &branch, "main"), ["done", "working", "go"], "{line}");
    }
}

#[test]
fn the_guides_settings_and_sandbox_work_on_a_server_without_home() {
    let mut world = World::any();
    let dir = world.try_init("project.git", &["--bare"]).unwrap();
    let guide = std::fs::read_to_string(root().join("src/cli/manual/server.txt")).unwrap();
    let code: Vec<&str> = guide.lines().filter_map(|l| l.strip_prefix("    ")).collect();
    // The sandbox, from its first line to the end of its one long command.
    let script = code.iter().skip_while(|l| **l != "#!/bin/sh");
    let mut open = true;
    let script: Vec<&str> = script
        .take_while(|line| {
            let take = open;
            open &= !line.ends_with("\"$@\"");
            take
        })
        .copied()
        .collect();
    let sandbox = world.root().join("sandbox");
    crate::support::write_program(&sandbox, &(script.join("\n") + "\n"));
    let command = "#!/bin/sh\ntouch \"$GUIDE/made\" made\n[ -e /usr/bin/env ] && ls / >roots\n\
                   echo 'SET_STATE {\"state\":\"done\"}'\n";
    let command = command.replace("$GUIDE", &world.root().display().to_string());
    world.commit_files(&dir, "main", &[(".aynig/command/go", &command)], "go");
    world.git(&dir, &["config", "receive.hideRefs", "refs/aynig/run"]);
    // As the guide has it, with a file of this test's in the place of /etc/gitconfig.
    world.set("GIT_CONFIG_SYSTEM", world.root().join("gitconfig"));
    world.vars.remove(std::ffi::OsStr::new("GIT_CONFIG_NOSYSTEM"));
    world.vars.remove(std::ffi::OsStr::new("HOME"));
    // The kernel's confinement is another way to the same, and not for the same command.
    let settings =
        code.iter().filter_map(|l| l.strip_prefix("sudo ")).filter(|l| !l.contains("aynig.sandbox "));
    for line in settings.filter(|l| l.starts_with("git config --system")) {
        let line = line.replace("/srv/git/project.git", dir.to_str().unwrap());
        let line = line.replace("/usr/local/libexec/aynig-sandbox", sandbox.to_str().unwrap());
        world.run("sh", &dir, &["-c", &line]).expect(0);
    }
    world.aynig(&dir, &["set-state", "go", "-b", "job"]).expect(0);
    let works = ["--ro-bind", "/", "/", "--proc", "/proc", "--unshare-net", "--unshare-pid", "true"];
    if !Command::new("bwrap").args(works).output().is_ok_and(|o| o.status.success()) {
        return skipped("there is no bwrap here, or it may not make namespaces");
    }
    world.aynig(&dir, &["tick", "job"]).expect(0);
    assert_eq!(world.states(&dir, "job", "main"), ["done", "working", "go"]);
    assert!(!world.root().join("made").exists());
    let roots = world.git(&dir, &["show", "job:roots"]);
    assert!(roots.lines().any(|l| l == "usr") && !roots.lines().any(|l| l == "root"), "{roots}");
    assert_eq!(world.git(&dir, &["ls-tree", "--name-only", "job", "made"]), "made");
}

/// The binary that was built last is installed, static or not; one of another machine's kind never.
#[test]
fn a_binary_of_a_target_is_found() {
    let rig = Rig::new();
    let target = rig.path("target");
    let put = |folder: &str, version: &str, date: &str| {
        let path = target.join(folder).join("release/git-aynig");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{version}\n")).unwrap();
        let run = |program: &str, args: &[&str]| {
            assert!(Command::new(program).args(args).arg(&path).status().unwrap().success());
        };
        run("chmod", &["755"]);
        run("touch", &["-d", date]);
    };
    let installed = |want: &str| {
        let mut command = Command::new("sh");
        let prefix = rig.machine().join("usr");
        command.arg(root().join("install/install.sh")).arg("--prefix").arg(&prefix).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("CARGO_TARGET_DIR", &target);
        let said = Said::from(command.output().unwrap()).expect(0);
        let text = std::fs::read_to_string(prefix.join("bin/git-aynig")).unwrap();
        assert!(text.contains(want), "{want}: {text}\n{}", said.out);
    };
    put("x86_64-unknown-linux-gnu", "echo static", "2 hours ago");
    installed("echo static");
    put("", "echo plain", "1 hour ago");
    installed("echo plain");
    put("aarch64-unknown-linux-gnu", "exit 126", "1 minute ago");
    installed("echo plain");
    put("x86_64-unknown-linux-gnu", "echo static", "2 minutes ago");
    installed("echo static");
}
