//! Commands that the kernel confines, and what they try. K59, row S37. Skipped where the kernel has no Landlock.

use super::support;
use super::support::life::{Life, tree_of};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

/// One a line. `$R` is the Git directory, `$M` the main working tree, `$O` another slot, `$V` a folder of others. A line
/// that begins with `!` has no effect that a file would show: it has succeeded where it exits with 0.
const ESCAPES: &str = r#"
git update-ref refs/heads/evil HEAD
git branch evil
git tag evil
git push -q . HEAD:refs/heads/evil
git fetch -q . HEAD:refs/heads/evil
git stash -u
git notes add -m evil
git replace HEAD HEAD~1
git pack-refs --all --prune
git reflog expire --expire=now --all
git symbolic-ref refs/heads/evil refs/heads/main
git worktree add -q "$V/evil" HEAD
git remote add evil /nowhere
git rev-parse HEAD >"$R/refs/heads/evil"
git rev-parse HEAD >"$R/refs/heads/main"
rm -f "$R/refs/heads/main"
echo 'ref: refs/heads/evil' >"$R/HEAD"
: >"$R/packed-refs"
touch "$R/refs/heads/main.lock"
touch "$R/index.lock"
mv "$R/refs" refs-of-others
git config evil.key x
git config --global evil.key x
git config core.hooksPath "$PWD/hooks"
echo '[evil]' >>"$R/config"
perl -e 'truncate("$ENV{R}/config", 0)'
truncate -s 0 "$R/config"
cp /dev/null "$R/config"
echo evil >>"$R/info/exclude"
echo '* filter=evil' >"$R/info/attributes"
echo '#!/bin/sh' >"$R/hooks/post-commit"
mkdir "$R/hooks2"
mv "$R/hooks" hooks-of-others
ln -s "$PWD" "$R/hooks/evil"
echo evil >"$O/file"
rm -rf "$O"
mv "$O" other
echo evil >"$R/worktrees/aynig-slot-1/HEAD"
echo evil >"$R/aynig/runs/other/result"
rm -rf "$R/aynig/runs/other"
mkdir "$R/aynig/runs/evil"
echo '{}' >"$R/aynig/slots/1.json"
rm -f "$R/aynig/slots/1.lock"
echo evil >>"$AYNIG_DIR/command/attack"
rm -rf "$AYNIG_DIR"
echo evil >"$HOME/evil"
echo evil >>"$HOME/.gitconfig"
echo evil >>"$HOME/keep"
mkdir "$HOME/.ssh"
rm -rf "$HOME/folder"
echo evil >../evil
mv "$PWD" "$PWD-evil"
echo evil >"$V/evil"
echo evil >>"$M/file"
rm -rf "$M/dir"
git -C "$M" checkout -q -b evil
ln -s "$HOME" l; echo evil >l/evil
ln -s "$R/config" c; echo '[evil]' >>c
ln "$HOME/keep" k; echo evil >>k
mv "$HOME/keep" .
mkdir m; mount --bind "$HOME" m; echo evil >m/evil; umount m
mkdir n; unshare -rm sh -c 'mount --bind "$HOME" n; echo evil >n/evil'
unshare -m sh -c 'mount -t tmpfs x "$HOME"' && false; unshare -m sh -c 'mount --bind "$V" "$PWD/m"; echo evil >m/evil'
!mount -t tmpfs evil "$V"
!unshare -rm mount -t tmpfs evil "$V"
!mount -o remount,rw /
echo evil >"/proc/self/root$HOME/evil"
echo evil >"/proc/$PPID/root$HOME/evil"
cd "/proc/$GUARDIAN/cwd" && echo evil >"./$HOME/evil"
exec 3<"$HOME/keep"; echo evil >/proc/self/fd/3
exec 3<"$HOME"; echo evil >/proc/self/fd/3/evil
for f in /proc/self/fd/* /proc/$GUARDIAN/fd/*; do case $(readlink "$f") in *log|*.lock|*.hold) echo evil >>"$f";; esac; done
!: 3<"/proc/$GUARDIAN/mem"
!perl -e 'exit(syscall(101, 16, $ENV{GUARDIAN}, 0, 0) == 0 ? 0 : 1)'
!perl -e 'exit(syscall(310, $ENV{GUARDIAN}, 0, 0, 0, 0, 0) == 0 ? 1 : syscall(101, 0x4206, $ENV{GUARDIAN}, 0, 0) == 0 ? 0 : 1)'
!cat /proc/sys/kernel/hostname >h && cat h >/proc/sys/kernel/hostname
!mknod disk b 8 0
!mknod mem c 1 1
git --git-dir="$R" --work-tree=. update-ref refs/heads/evil HEAD
GIT_DIR="$R" git commit -q --allow-empty -m evil
git clone -q --bare "$R" "$V/evil.git"
git init -q --separate-git-dir="$HOME/evil.git" sub
git -c protocol.file.allow=always submodule add -q "$R" mod && git -C mod push -q origin HEAD:refs/heads/evil
mkdir -p "$R/modules/evil"
python3 -c 'import os; open(os.environ["HOME"] + "/evil", "w")'
perl -e 'rename("$ENV{HOME}/keep", "$ENV{HOME}/kept")'
perl -e 'symlink("/", "$ENV{V}/link")'
perl -e 'chdir("/"); chroot("."); open(F, ">", "$ENV{HOME}/evil")'
(setsid sh -c 'echo evil >"$HOME/evil"' &) ; sleep 0.1
git -C "$R" gc -q --prune=now
git maintenance run --task=pack-refs
git bisect start HEAD HEAD~1
git aynig trust
git aynig hooks install
git aynig set-state evil -b evil
git aynig cancel main
"#;

pub fn confined() -> bool {
    if aynig::supervisor::confine::kernel_version() >= aynig::supervisor::confine::FOR_STRICT {
        return true;
    }
    support::skipped("S37: this kernel has no Landlock 4");
    false
}

/// Everything that no command may change: all but objects, what is its own, logs and the notes of its own slot.
fn outside(life: &Life, victims: &[&Path]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for root in
        [life.repo.path(), life.repo.home()].iter().map(PathBuf::as_path).chain(victims.iter().copied())
    {
        all.extend(tree_of(root).into_iter().map(|(path, content)| (root.join(path), content)));
    }
    let own = [
        "objects",
        "worktrees/aynig-slot-0",
        "aynig/slots/0.",
        "refs/aynig/",
        "refs/heads/attack",
        ".aynig/logs",
    ];
    let own = own.map(|name| name.to_owned());
    all.retain(|path, _| {
        let path = path.to_string_lossy();
        let slot = path.contains("/.cache/aynig/") && path.split('/').any(|part| part == "0");
        let run = path.contains("aynig/runs/") && !path.contains("runs/other");
        let runner = ["aynig/commands", "aynig/runner-", "aynig/turns", "aynig/children", "shared/"];
        let meant =
            own.iter().any(|own| path.contains(own.as_str())) || path.contains("logs/refs/heads/attack");
        !slot
            && !run
            && !meant
            && !runner.iter().any(|name| path.contains(name) && !path.contains("command/attack"))
    });
    all
}

/// S37, K59
#[test]
fn s37_a_confined_command_changes_nothing_but_its_own() {
    if !confined() {
        return;
    }
    let escapes: Vec<&str> = ESCAPES.lines().filter(|line| !line.is_empty()).collect();
    assert!(escapes.len() >= 60, "{}", escapes.len());
    let mut script = "cp \"$T/attacks\" attacks; n=0; GUARDIAN=$PPID; export GUARDIAN\n\
        while read -r line; do n=$((n + 1)); mkdir \"a$n\"; what=${line#!}\n\
        (cd \"a$n\" && printf '%s\\n' \"$what\" >../try && timeout 10 sh ../try) >out 2>&1 </dev/null; code=$?\n\
        case $line in !*) [ $code -ne 0 ] || echo \"$line\" >>breaches;; esac\n\
        done <attacks; cat breaches 2>/dev/null; cp breaches \"$AYNIG_RUN_DIR/breaches\" 2>/dev/null; rm -rf ./*\n"
        .to_owned();
    script.push_str(DONE);
    let life = Life::new(&[("attack", &script), ("hold", "echo >\"$T/held\"; read x <\"$T/gate\"; exit 1")]);
    let victims = life.shared().join("../victims");
    for folder in
        [victims.clone(), life.repo.home().join("folder/in"), life.repo.git_dir().join("aynig/runs/other")]
    {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("result"), "theirs\n").unwrap();
    }
    fs::write(life.repo.home().join("keep"), "mine\n").unwrap();
    fs::create_dir_all(life.path(".git/hooks")).unwrap();
    // There is another slot.
    let mut gate = life.gate("gate");
    life.event("holding", "hold", "");
    let first = life.start_tick(&["--jobs", "2", "holding"]);
    life.hear("held");
    life.command("warm", DONE);
    life.event("warm", "attack", "");
    fs::write(life.shared().join("attacks"), "true\n").unwrap();
    life.tick(&["--jobs", "2", "warm"]).expect(0);
    gate.open();
    first.done();
    fs::remove_file(life.shared().join("gate")).unwrap();
    life.config("aynig.sandbox", "write");
    fs::write(life.shared().join("attacks"), escapes.join("\n") + "\n").unwrap();
    life.event("attack", "attack", "");
    let victims = victims.canonicalize().unwrap();
    let before = outside(&life, &[&victims]);
    let mut tick = life.aynig(&["tick", "--jobs", "1", "attack"]);
    tick.env("R", life.repo.git_dir()).env("M", life.repo.path()).env("O", life.slot(1)).env("V", &victims);
    let done = support::life::done(tick.output().unwrap());
    let after = outside(&life, &[&victims]);
    let changed: Vec<&PathBuf> =
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(changed.is_empty(), "{changed:?}\n{done:?}");
    assert_eq!((done.code, life.state("attack")), (Some(0), "done".into()), "{done:?}");
    let log = fs::read_dir(life.path(".aynig/logs")).unwrap().flatten();
    let said: String = log
        .filter(|e| e.file_name().to_string_lossy().ends_with(".stdout.log"))
        .map(|e| fs::read_to_string(e.path()).unwrap())
        .collect();
    assert!(!said.lines().any(|line| line.starts_with('!')), "{said}");
    life.repo.assert_sound();
}

/// K59: what a command is there for works as without it.
#[test]
fn s37_work_goes_on_in_the_sandbox() {
    if !confined() {
        return;
    }
    let work = "set -e; echo two >>file; git add file; git commit -qm 'by hand'; git log -1 --format=%s >subject\n\
         cat >here <<E\nx\nE\nd=$(mktemp -d); echo \"$d\" >where; python3 -c 'import tempfile; tempfile.NamedTemporaryFile()'\n\
         printf '%s\\n' 'import unittest' 'class T(unittest.TestCase):' '  def test(self): self.assertTrue(True)' >t.py\n\
         python3 -m unittest -q t 2>/dev/null; rm -rf __pycache__; echo >/dev/null; git status --porcelain >status; git stash list\n\
         echo '{\"type\":\"progress\",\"text\":\"half\"}' >>\"$AYNIG_EVENTS\"; echo \"$AYNIG_SANDBOX\" >mode\n\
         echo '{\"state\":\"done\"}' >\"$AYNIG_RESULT\"; git rev-parse -q --verify \"refs/aynig/run/$AYNIG_RUN_ID\" >/dev/null";
    let life = Life::new(&[("work", work)]);
    life.config("aynig.sandbox", "write");
    life.event("a", "work", "");
    let done = life.tick(&["a"]);
    assert_eq!((done.code, life.state("a")), (Some(0), "done".into()), "{done:?} {}", life.body("a"));
    assert_eq!((life.show("a", "subject"), life.show("a", "mode")), ("by hand".into(), "write".into()));
    assert!(life.show("a", "where").contains("/aynig/runs/"), "{}", life.show("a", "where"));
    assert_eq!(life.git(&["log", "-1", "--format=%s", "a^2"]), "by hand");
    let runs = fs::read_dir(life.repo.git_dir().join("aynig/runs")).unwrap().flatten();
    assert!(runs.into_iter().all(|run| !run.path().join("tmp").exists()), "what was temporary is gone");
    life.repo.assert_sound();
}

/// K59: what builds and tests programs does so as without it: `cargo build`, `npm ci` with no network, tests in Python; what
/// uses POSIX semaphores once the account names where they are.
#[test]
fn s37_builds_and_tests_run_in_the_sandbox_as_without_it() {
    if !confined() {
        return;
    }
    let said = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let mut path = std::env::var("PATH").unwrap();
    let mut work = "set -e\n".to_owned();
    match said("rustc", &["--print", "sysroot"]) {
        Some(sysroot) => {
            path = format!("{sysroot}/bin:{path}");
            work +=
                "cargo build -q --offline; cargo test -q --offline >/dev/null; ./target/debug/made >cargo\n";
        }
        None => support::skipped("S37: cargo is not here"),
    }
    match said("npm", &["--version"]) {
        Some(_) => work += "npm ci -s --offline --no-audit --no-fund; node -p 'require(\"dep\")' >npm\n",
        None => support::skipped("S37: npm is not here"),
    }
    work += "python3 -m unittest -q t 2>/dev/null; rm -rf __pycache__\n";
    let life = Life::new(&[("work", &format!("{work}{DONE}"))]);
    life.write(".gitignore", "/target/\n/node_modules/\n");
    life.write("Cargo.toml", "[package]\nname = 'made'\nversion = '0.1.0'\nedition = '2021'\n");
    life.write("Cargo.lock", "version = 3\n[[package]]\nname = 'made'\nversion = '0.1.0'\n");
    life.write("src/main.rs", "fn main() { println!(\"built\") }\n#[test]\nfn holds() {}\n");
    life.write("dep/package.json", r#"{"name":"dep","version":"1.0.0","main":"i.js"}"#);
    life.write("dep/i.js", "module.exports = 'installed'\n");
    life.write("package.json", r#"{"name":"app","version":"1.0.0","dependencies":{"dep":"file:dep"}}"#);
    let lock = r#"{"name":"app","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"app","version":"1.0.0","dependencies":{"dep":"file:dep"}},"dep":{"version":"1.0.0"},"node_modules/dep":{"resolved":"dep","link":true}}}"#;
    life.write("package-lock.json", lock);
    life.write(
        "t.py",
        "import os, subprocess, tempfile, unittest\nclass T(unittest.TestCase):\n\
         \x20 def test(self):\n\
         \x20   with tempfile.TemporaryDirectory() as d:\n\
         \x20     with open(d + '/x', 'w') as f: f.write('x')\n\
         \x20   self.assertEqual(subprocess.run(['true']).returncode, 0)\n\
         \x20 @unittest.skipUnless('SHARED' in os.environ, 'no semaphores')\n\
         \x20 def test_shared(self):\n\
         \x20   import multiprocessing\n\
         \x20   q = multiprocessing.Queue(); q.put(1); self.assertEqual(q.get(), 1)\n",
    );
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "projects"]);
    let tick = |branch: &str, shared: bool| {
        life.event(branch, "work", "");
        let mut tick = life.aynig(&["tick", branch]);
        tick.env("PATH", &path);
        if shared {
            tick.env("SHARED", "1");
        }
        let done = support::life::done(tick.output().unwrap());
        assert_eq!(
            (done.code, life.state(branch)),
            (Some(0), "done".into()),
            "{done:?} {}",
            life.body(branch)
        );
        life.rev(&format!("{branch}^{{tree}}"))
    };
    let without = tick("without", false);
    life.config("aynig.sandbox", "write");
    assert_eq!(tick("within", false), without, "what they made is the same");
    if Path::new("/dev/shm").is_dir() {
        life.config("aynig.sandboxWrite", "/dev/shm");
        tick("shared", true);
    }
}

/// K59: places that the account names, and only the account.
#[test]
fn s37_more_places_are_the_account_s_to_name() {
    if !confined() {
        return;
    }
    let life = Life::new(&[(
        "work",
        &format!("echo x >\"$T/out\" 2>/dev/null; cat \"$T/out\" >seen 2>/dev/null; {DONE}"),
    )]);
    let shared = life.shared();
    let tick = |branch: &str| {
        let _ = fs::remove_file(shared.join("out"));
        life.event(branch, "work", "");
        life.tick(&[branch]).expect(0);
        shared.join("out").exists()
    };
    life.git(&["config", "aynig.sandbox", "write"]);
    assert!(tick("off"), "the repository's own configuration does not say it");
    life.config("aynig.sandbox", "write");
    life.git(&["config", "aynig.sandboxWrite", shared.to_str().unwrap()]);
    assert!(!tick("a"));
    life.config("aynig.sandboxWrite", shared.to_str().unwrap());
    assert!(tick("b"));
    for (key, value) in [("aynig.sandbox", "maybe"), ("aynig.sandboxWrite", "relative")] {
        life.git(&["-c", "x.y=z", "config", "--global", key, value]);
        life.event("c", "work", "");
        let done = life.tick(&["c"]).expect(128);
        assert!(done.stderr.contains(key), "{done:?}");
        life.config("aynig.sandbox", "write");
    }
}

/// K59: what leads Git elsewhere and can be written all the same.
#[test]
fn s37_a_changed_lead_ends_the_run_stalled_and_is_put_right() {
    if !confined() {
        return;
    }
    let evil = "git init -q --bare \"$PWD/evil.git\"; a=$(git rev-parse --git-dir); r=$(git rev-parse --git-common-dir)";
    for (what, how) in [
        ("commondir", "echo \"$PWD/evil.git\" >\"$a/commondir\""),
        ("gitdir", "echo /nowhere/.git >\"$a/gitdir\""),
        ("config.worktree", "printf '[core]\\n\\tfsmonitor = touch /tmp/evil\\n' >\"$a/config.worktree\""),
        (
            "objects/info",
            "mkdir -p \"$r/objects/info\"; echo \"$PWD/evil.git/objects\" >\"$r/objects/info/alternates\"",
        ),
    ] {
        let life = Life::new(&[("work", &format!("echo x >work; {evil}; {how}; {DONE}"))]);
        life.config("aynig.sandbox", "write");
        life.event("a", "work", "");
        let done = life.tick(&["a"]);
        assert_eq!((done.code, life.state("a")), (Some(1), "stalled".into()), "{what}: {done:?}");
        assert!(life.body("a").contains(what), "{what}: {}", life.body("a"));
        assert!(!life.path(".git/objects/info/alternates").exists());
        assert!(life.files(&life.attempts()[0]).contains(&"work".to_owned()), "{what}");
        life.repo.assert_sound();
        life.config("aynig.sandbox", "off");
        life.command("work", DONE);
        life.git(&["commit", "-qam", "harmless"]);
        life.git(&["branch", "-f", "b", "main"]);
        life.event("b", "work", "");
        life.tick(&["--jobs", "1", "b"]).expect(0);
    }
}

/// K59: a link in the place of what is put right, more names than are looked at, and two changes at once.
#[test]
fn s37_what_is_put_right_is_below_the_objects_alone() {
    if !confined() {
        return;
    }
    let ways = [
        "rm -rf \"$i\"; ln -s \"$HOME/precious\" \"$i\"",
        "mkdir -p \"$i\"; ln -s \"$HOME/precious\" \"$i/more\"; mkdir \"$i/deep\"; ln -s \"$HOME/precious\" \"$i/deep/more\"",
        "mkdir -p \"$i\"; echo /evil >\"$i/alternates\"; : >\"$(git rev-parse --absolute-git-dir)/config.worktree\"",
        "mkdir -p \"$i\"; ln -s \"$HOME/precious/a\" \"$i/alternates\"",
        "mkdir -p \"$i\"; cd \"$i\"; seq 10001 | xargs touch",
        "mkdir -p \"$i\"; cd \"$i\"; for n in $(seq 40); do mkdir d; cd d; done; : >evil",
        "mkdir -p \"$i/alternates\"",
        "mkdir -p \"$i/closed\"; : >\"$i/new\"; chmod 000 \"$i/closed\"",
    ];
    for way in ways {
        let script = format!(
            "i=$(git rev-parse --path-format=absolute --git-common-dir)/objects/info\n({way})\n{DONE}"
        );
        let life = Life::new(&[("work", &script)]);
        life.config("aynig.sandbox", "write");
        let precious = life.repo.home().join("precious");
        fs::create_dir_all(precious.join("deep")).unwrap();
        for file in ["a", "deep/b"] {
            fs::write(precious.join(file), "mine").unwrap();
        }
        life.event("a", "work", "");
        let done = life.tick(&["a"]);
        assert_eq!((done.code, life.state("a")), (Some(1), "stalled".into()), "{way}: {done:?}");
        let left = ["a", "deep/b"].map(|file| fs::read_to_string(precious.join(file)).ok());
        assert_eq!(left, [Some("mine".to_owned()), Some("mine".to_owned())], "{way}");
        let info = life.path(".git/objects/info");
        let names = if info.exists() { tree_of(&info) } else { BTreeMap::new() };
        let led = names.keys().filter(|name| name.ends_with("alternates"));
        assert_eq!((led.count(), names.len() < 100, info.is_symlink()), (0, true, false), "{way}: {names:?}");
        life.repo.assert_sound();
    }
}

/// K59: whatever stands in the place of what said where other objects are, it says so again.
#[test]
fn s37_where_other_objects_are_is_brought_back() {
    if !confined() {
        return;
    }
    for way in
        ["rm alternates", "rm alternates; mkdir -p alternates/x", "rm alternates; ln -s /evil alternates"]
    {
        let script = format!(
            "i=$(git rev-parse --path-format=absolute --git-common-dir)/objects/info\n(cd \"$i\"; {way})\n{DONE}"
        );
        let life = Life::new(&[("work", &script)]);
        life.config("aynig.sandbox", "write");
        let others = life.repo.home().join("others.git");
        life.git(&["init", "-q", "--bare", others.to_str().unwrap()]);
        let said = format!("{}\n", others.join("objects").display());
        let alternates = life.path(".git/objects/info/alternates");
        fs::create_dir_all(alternates.parent().unwrap()).unwrap();
        fs::write(&alternates, &said).unwrap();
        life.event("a", "work", "");
        let done = life.tick(&["a"]);
        assert_eq!((done.code, life.state("a")), (Some(1), "stalled".into()), "{way}: {done:?}");
        assert!(life.body("a").contains("objects/info"), "{way}: {}", life.body("a"));
        assert_eq!(fs::read_to_string(&alternates).ok(), Some(said), "{way}");
    }
}

/// K59, K18: a command that is told to end may still set its state.
#[test]
fn s37_what_is_asked_for_while_the_run_ends_is_answered() {
    if !confined() {
        return;
    }
    let script = "trap 'git aynig set-state done; exit 0' TERM; echo up >\"$T/up\"; sleep 300 & wait";
    let life = Life::new(&[("build", script)]);
    life.config("aynig.sandbox", "write");
    life.config("aynig.sandboxWrite", life.shared().to_str().unwrap());
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    support::life::eventually("it runs", || life.shared().join("up").exists().then_some(()));
    tick.signal(nix::sys::signal::Signal::SIGTERM);
    tick.done();
    assert_eq!(life.state("work"), "done");
}

/// K59, K40, K48: what a verb notes in the run's folder, outside of what confines the command, follows no link and
/// waits for no reader.
#[test]
fn s37_notes_in_the_run_s_folder_follow_no_link() {
    if !confined() {
        return;
    }
    let script = r#"
cd "$AYNIG_RUN_DIR"
id=$(git aynig send "$AYNIG_BRANCH" -m hi | grep -oE '[0-9a-f-]{36}' | head -n 1)
for to in "$HOME/.profile" "$HOME/made"; do
    ln -s "$to" taken; git aynig inbox --take "$id" >/dev/null 2>>"$T/err"; echo "take $?" >>"$T/said"; rm -f taken
    ln -s "$to" asking; timeout 1 git aynig ask 'ok?' --wait >/dev/null 2>>"$T/err"; rm -f asking
done
mkfifo taken; git aynig inbox --take "$id" >/dev/null 2>>"$T/err"; echo "fifo $?" >>"$T/said"; rm taken
ln -s "$HOME/.profile" wake; git aynig set-state done >>"$T/err" 2>&1; echo "set $?" >>"$T/said"
"#;
    for sandbox in ["write", "strict"] {
        let life = Life::new(&[("build", script)]);
        life.config("aynig.sandbox", sandbox);
        for key in ["aynig.sandboxWrite", "aynig.sandboxRead"] {
            life.config(key, life.shared().to_str().unwrap());
        }
        let own = Path::new(support::life::BIN).parent().unwrap();
        life.git(&["config", "--global", "--add", "aynig.sandboxRead", own.to_str().unwrap()]);
        life.run(&["hooks", "install"]).expect(0);
        fs::write(life.repo.home().join(".profile"), "# mine\n").unwrap();
        life.event("work;touch", "build", "");
        let done = life.tick(&["work;touch", "--timeout", "60s"]);
        let (said, err) = (life.said("said"), life.said("err"));
        assert_eq!(said, "take 128\ntake 128\nfifo 128\nset 0\n", "{sandbox}: {err}{done:?}");
        assert_eq!(fs::read_to_string(life.repo.home().join(".profile")).unwrap(), "# mine\n", "{sandbox}");
        assert!(!life.repo.home().join("made").exists(), "{sandbox}");
        assert_eq!(life.state("work;touch"), "done", "{sandbox}: {done:?}");
    }
}

/// K59
#[test]
fn s37_strict_reads_no_home_and_no_other_run_and_connects_nowhere() {
    if !confined() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let look = format!(
        "set -e; for f in \"$HOME/secret\" \"$R/aynig/runs/other/body\" \"$M/.env\" \"$R/aynig/slots/0.json\"; do\n\
         cat \"$f\" 2>/dev/null && echo \"BREACH $f\" >>breach; done\n\
         cat /proc/$PPID/environ 2>/dev/null | grep -q . && echo BREACH environ >>breach\n\
         ls \"$HOME\" 2>/dev/null && echo BREACH HOME >>breach\n\
         perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:{port}\") or exit 1' && echo connected >connected\n\
         git log -1 --format=%s >subject; git update-index --refresh; echo two >>file; git commit -qam x 2>/dev/null && echo BREACH commit >>breach\n\
         cat \"$AYNIG_BODY_FILE\" >told; d=$(mktemp); {DONE}"
    );
    let look = look.replace("set -e;", "");
    let life = Life::new(&[("look", &look)]);
    fs::write(life.repo.home().join("secret"), "s").unwrap();
    life.write(".env", "s");
    fs::create_dir_all(life.repo.git_dir().join("aynig/runs/other")).unwrap();
    fs::write(life.repo.git_dir().join("aynig/runs/other/body"), "s").unwrap();
    life.config("aynig.sandbox", "strict");
    for allowed in [false, true] {
        if allowed {
            life.config("aynig.sandboxConnect", &port.to_string());
        }
        let branch = format!("a{allowed}");
        life.event(&branch, "look", "");
        let mut tick = life.aynig(&["tick", &branch]);
        let output = tick.env("R", life.repo.git_dir()).env("M", life.repo.path()).output().unwrap();
        let done = support::life::done(output);
        assert_eq!(
            (done.code, life.state(&branch)),
            (Some(0), "done".into()),
            "{done:?} {}",
            life.body(&branch)
        );
        let files = life.files(&branch);
        assert!(!files.contains(&"breach".to_owned()), "{}", life.show(&branch, "breach"));
        assert_eq!(files.contains(&"connected".to_owned()), allowed);
        assert_eq!(
            (life.show(&branch, "subject"), life.show(&branch, "file")),
            (life.git(&["log", "-1", "--format=%s", &format!("{branch}~1")]), "one\ntwo".into())
        );
    }
}

/// S37, K59: a kernel without Landlock, or with one that its owner switched off, confines nothing, and nothing is run.
#[test]
fn s37_a_kernel_that_cannot_confine_runs_nothing() {
    if Command::new("strace").arg("-V").output().is_err() {
        return support::skipped("S37: strace is not here, to take Landlock away");
    }
    let life = Life::new(&[("build", &format!("echo ran >\"$T/ran\"; {DONE}"))]);
    let trigger = life.event("work", "build", "");
    for (sandbox, needs) in [("write", 3), ("strict", 4)] {
        life.git(&["config", "--global", "--replace-all", "aynig.sandbox", sandbox]);
        for error in ["ENOSYS", "EOPNOTSUPP"] {
            let without = |args: &[&str]| {
                let own = life.aynig(args);
                let mut strace = life.repo.command("strace");
                let inject = format!("inject=landlock_create_ruleset:error={error}");
                strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject]).arg(own.get_program());
                strace.args(own.get_args());
                strace.envs(own.get_envs().filter_map(|(key, value)| Some((key, value?))));
                support::life::done(strace.output().unwrap())
            };
            let said = without(&["tick", "work"]).expect(2);
            let why = format!("'aynig.sandbox' needs Landlock {needs}, and this kernel has none");
            assert!(said.stdout.contains(&why), "{said:?}");
            let report = without(&["tick", "--json", "work"]).expect(2).json();
            assert_eq!(report["result"], "refused", "{report}");
            assert_eq!(life.rev("work"), trigger, "nothing is claimed");
            assert_eq!(life.said("ran"), "");
            let doctor = without(&["doctor"]);
            let text = format!(
                "'{sandbox}' needs Landlock {needs}, and this kernel has no Landlock: every run is refused"
            );
            assert!(doctor.stdout.contains(&text) && doctor.code == Some(1), "{doctor:?}");
        }
    }
    // Where nothing is to be confined it is not asked for.
    life.git(&["config", "--global", "--replace-all", "aynig.sandbox", "off"]);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.said("ran"), "ran\n");
}

/// S37, K59: verbs that write refs are handed to the runner, about the run's own branch and nothing else.
#[test]
fn s37_verbs_are_handed_over_and_concern_the_own_branch_alone() {
    if !confined() {
        return;
    }
    let tries = r#"
{
git aynig send "$AYNIG_BRANCH" -m 'to myself' --kind note; echo "send $?"
git aynig send other -m hi; echo "other $?"
git aynig set-state evil -b other; echo "set-other $?"
git aynig inbox --json >"$T/inbox"; echo "inbox $?"
git aynig inbox --take "$(sed 's/.*"id":"\([^"]*\)".*/\1/' "$T/inbox")"; echo "take $?"
git aynig set-working; echo "renew $?"
git aynig ask 'ok?' --choice yes >"$T/question" 2>/dev/null; echo "ask $?"
git aynig ask 'ok?' --wait; echo "wait $?"
mkdir -p "$AYNIG_RUN_DIR/handed"; cd "$AYNIG_RUN_DIR/handed"
ask() { printf '%s' "$1" >x; id=$(cat /proc/sys/kernel/random/uuid); mv x "$id"; until [ -e "$id.done" ]; do sleep 0.02; done; cat "$id.done"; echo; }
ask '{"verb":"send","what":"other","text":"x","flags":[],"switches":[]}'
ask '{"verb":"set-state","what":"evil","text":null,"flags":[["branch","other"]],"switches":[]}'
ask '{"verb":"set-state","what":"evil","text":null,"flags":[["file","/etc/passwd"]],"switches":[]}'
ask '{"verb":"update-ref","flags":[],"switches":[]}'
id=$(cat /proc/sys/kernel/random/uuid); ln -s "$HOME/keep" "$id"; until [ -e "$id.done" ]; do sleep 0.02; done; cat "$id.done"; echo
cd "$WORKTREE_PATH"; echo made >made
git aynig set-state review -m 'By the verb' --trailer 'by: me'; echo "set $?"
} >>"$T/said" 2>>"$T/said-err"
"#;
    for sandbox in ["write", "strict"] {
        let life = Life::new(&[("build", tries)]);
        life.config("aynig.sandbox", sandbox);
        for key in ["aynig.sandboxWrite", "aynig.sandboxRead"] {
            life.config(key, life.shared().to_str().unwrap());
        }
        if sandbox == "strict" {
            let own = Path::new(support::life::BIN).parent().unwrap();
            life.git(&["config", "--global", "--add", "aynig.sandboxRead", own.to_str().unwrap()]);
        }
        let keep = life.repo.home().join("keep");
        fs::write(&keep, "secret").unwrap();
        life.event("other", "rest", "");
        let other = life.rev("other");
        life.event("work", "build", "");
        life.tick(&["work"]).expect(0);
        let said = life.said("said");
        let err = life.said("said-err");
        let ends: Vec<&str> = said
            .lines()
            .filter(|line| line.rsplit(' ').next().is_some_and(|n| n.parse::<u8>().is_ok()))
            .collect();
        assert_eq!(
            ends,
            ["send 0", "other 2", "set-other 2", "inbox 0", "take 0", "renew 0", "ask 0", "wait 2", "set 0"],
            "{sandbox}: {said}{err}"
        );
        let refused: Vec<&str> = said.lines().filter(|line| line.starts_with('{')).collect();
        assert_eq!(refused.len(), 5, "{said}");
        assert!(
            refused.iter().all(|line| line.contains("\"code\":2") && line.contains("refused")),
            "{refused:?}"
        );
        assert!(!said.contains("secret"), "{said}");
        assert_eq!(
            (life.state("work").as_str(), life.trailer("work", "by").as_deref()),
            ("review", Some("me"))
        );
        assert_eq!((life.rev("other"), life.show("work", "made")), (other, "made".into()));
        let waits = life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/inbox/"]);
        assert_eq!(waits, "", "what was taken is heard");
        assert_eq!(life.git(&["for-each-ref", "refs/aynig/heard/"]).lines().count(), 1);
        assert_eq!(fs::read(&keep).unwrap(), b"secret");
    }
}

/// A repository at `$1` that starts `$2` for each of its files that Git compares, and has one to compare.
const PLANTED: &str = "git init -q \"$1\"; printf '#!/bin/sh\\necho fired >>\"%s\"; cat\\n' \"$2-fired\" >\"$2\"; chmod +x \"$2\"\n\
    (cd \"$1\"; echo 1 >a; git add a; git commit -qm s; echo '* filter=x' >.git/info/attributes\n\
    git config filter.x.clean \"'$2'\"; sleep 0.05; rm a; echo 2 >a)\n";

/// Calls the binary as an account that folders can be closed to.
fn as_nobody(life: &Life, args: &[&str]) -> support::life::Done {
    const NOBODY: &str = "4242";
    let top = life.repo.home().parent().unwrap().to_owned();
    let owned = Command::new("chown").args(["-R", &format!("{NOBODY}:{NOBODY}")]).arg(&top).status().unwrap();
    assert!(owned.success());
    for above in top.ancestors().take_while(|path| *path != Path::new("/tmp")) {
        // Those above are others': they are open already.
        let _ = fs::set_permissions(above, std::os::unix::fs::PermissionsExt::from_mode(0o755));
    }
    let mut command = life.repo.command("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", support::life::BIN]).args(args);
    command.env("T", life.shared());
    support::life::done(command.output().unwrap())
}

/// K59, K25, S7: what a command staged as a submodule is not asked for its changes, also where its folder can't be listed.
#[test]
fn s37_a_repository_that_is_staged_as_a_submodule_starts_nothing() {
    if !confined() {
        return;
    }
    let is_root = support::world::is_root();
    if is_root && which::which("setpriv").is_err() {
        return support::skipped("S37: root can list every folder, and setpriv is not here");
    }
    let script = format!(
        "set -- \"$PWD/sub\" \"$PWD/mon\"\n{PLANTED}echo new >new\n\
         git update-index --add --cacheinfo \"160000,$(git -C sub rev-parse HEAD),sub\"; chmod 111 sub; {DONE}"
    );
    let life = Life::new(&[("build", &script)]);
    life.config("aynig.sandbox", "write");
    life.event("work", "build", "");
    let args = ["tick", "work"];
    let done = if is_root { as_nobody(&life, &args) } else { life.tick(&["work"]) };
    assert_eq!(done.code, Some(0), "{done:?}");
    let (fired, made) = (life.slot(0).join("mon-fired"), life.slot(0).join("mon"));
    assert!(!fired.exists() && made.exists(), "{done:?}");
    life.git(&["config", "--global", "--add", "safe.directory", "*"]);
    assert_eq!((life.state("work"), life.show("work", "new")), ("done".into(), "new".into()));
    // As the command staged it.
    assert!(life.git(&["ls-tree", "work", "sub"]).starts_with("160000 commit"));
}

/// K59: a verb that a strict command hands over stages what the command may read, and nothing that a link which it puts in
/// the place of a folder leads to meanwhile.
#[test]
fn s37_what_is_handed_over_reads_no_more_than_its_command() {
    if !confined() {
        return;
    }
    // Git has listed the folder when it comes to this file, and goes on once there is a link.
    let wait = "i=0; while [ ! -L d ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done; cat";
    let script = "mkdir d; echo x >d/secret; echo x >d/.gitconfig; echo y >a\n\
         cat \"$HOME/secret\" >leak 2>/dev/null; rm leak\n\
         git aynig set-state done -m 'By the verb' &\n\
         [ ! -s .gitattributes ] || { sleep 3; mkdir t; mv d t/; ln -s \"$HOME\" d; }; wait $!";
    for attributes in ["a filter=wait\n", ""] {
        let life = Life::new(&[("build", script)]);
        life.write(".gitattributes", attributes);
        life.git(&["add", "-A"]);
        life.git(&["commit", "-qm", "attributes"]);
        life.config("filter.wait.clean", wait);
        life.config("aynig.sandbox", "strict");
        let own = Path::new(support::life::BIN).parent().unwrap();
        life.config("aynig.sandboxRead", own.to_str().unwrap());
        fs::write(life.repo.home().join("secret"), "top secret").unwrap();
        life.event("work", "build", "");
        let done = life.tick(&["work"]);
        let all = life.git(&["rev-list", "--objects", "--all", "--", "d"]);
        for line in all.lines() {
            if let Some((id, "d/secret" | "d/.gitconfig")) = line.split_once(' ') {
                assert_eq!(life.git(&["cat-file", "blob", id]), "x", "{line}: {done:?}");
            }
        }
        // Unhindered it works, and holds what was there.
        let outcome = (life.state("work"), life.git(&["log", "-1", "--format=%s", "work"]));
        if attributes.is_empty() {
            assert_eq!(outcome, ("done".into(), "By the verb".into()), "{done:?}");
            assert_eq!(life.show("work", "d/secret"), "x");
        } else {
            assert_ne!(outcome.0, "done", "Git could not read what it had listed: {done:?}");
        }
    }
}

/// K59: where objects are kept no link stands when the run is over, and nothing is written where one led.
#[test]
fn s37_a_link_in_the_place_of_objects_is_taken_out_before_the_outcome() {
    if !confined() {
        return;
    }
    let script = format!(
        "o=$(git rev-parse --git-common-dir)/objects; i=0\n\
         while [ $i -lt 256 ]; do h=$(printf %02x $i); [ -d \"$o/$h\" ] || ln -s \"$HOME/victim\" \"$o/$h\"; i=$((i + 1)); done\n\
         echo x >x; {DONE}"
    );
    let life = Life::new(&[("build", &script)]);
    life.config("aynig.sandbox", "write");
    let victim = life.repo.home().join("victim");
    fs::create_dir(&victim).unwrap();
    life.event("work", "build", "");
    let done = life.tick(&["work"]);
    assert_eq!((done.code, life.state("work")), (Some(1), "stalled".into()), "{done:?}");
    assert!(life.body("work").contains("objects"), "{}", life.body("work"));
    let links = fs::read_dir(life.repo.git_dir().join("objects")).unwrap().flatten();
    assert_eq!(links.filter(|entry| entry.file_type().unwrap().is_symlink()).count(), 0);
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    life.repo.assert_sound();
}

/// K59: a fifo that is in Git's way is removed where it lies, and nothing is through a link that came in the place of its
/// folder meanwhile.
#[test]
fn s37_what_is_in_the_way_is_removed_through_no_link() {
    if !confined() {
        return;
    }
    // The kernel tells when the folder with the fifo was listed, and there are enough others to list after it.
    let script = "mkdir zz; mkfifo zz/.gitconfig; ln -s \"$HOME\" lnk; seq -f 'aa/%g' 3000 | xargs mkdir -p\n\
cat >swap.py <<'E'\nimport ctypes, os, signal\nsignal.alarm(30)\n\
c = ctypes.CDLL(None); fd = c.inotify_init(); c.inotify_add_watch(fd, b'zz', 0x18); open('ready', 'w')\n\
os.read(fd, 4096); os.rename('zz', 'yy'); os.rename('lnk', 'zz')\nE\n\
python3 swap.py & until [ -e ready ]; do sleep 0.02; done\ngit aynig set-state done; wait; exit 1";
    let life = Life::new(&[("build", script)]);
    life.config("aynig.sandbox", "write");
    life.event("work", "build", "");
    let config = life.repo.home().join(".gitconfig");
    let done = life.tick(&["work"]);
    assert!(config.exists(), "a file of the account's is gone: {done:?}");
    assert!(life.slot(0).join("yy").exists() || life.attempts().len() == 1, "it came between: {done:?}");
}

/// K14, K26: a command that takes the rights away from what it made, or from all of its slot, loses no work by that, and no
/// slot.
#[test]
fn s37_rights_that_a_command_took_away_keep_no_slot_and_lose_no_work() {
    let is_root = support::world::is_root();
    if is_root && which::which("setpriv").is_err() {
        return support::skipped("S37: root may read everything, and setpriv is not here");
    }
    let ways = [
        ("mkdir d; echo mine >d/x; chmod 000 d; exit 1", "d/x"),
        ("mkdir d; echo mine >d/x; chmod 000 .; exit 1", "d/x"),
        ("echo mine >x; chmod 000 x; exit 1", "x"),
        ("mkdir p; git init -q p/s; echo mine >p/s/x; chmod 555 p; exit 1", ""),
        ("mkdir -p p/d; git init -q p/d/s; echo mine >p/d/s/x; chmod 000 p; exit 1", ""),
    ];
    for (way, file) in ways {
        let life = Life::new(&[("build", way), ("fine", DONE)]);
        life.config("aynig.jobs", "1");
        life.git(&["config", "--global", "--add", "safe.directory", "*"]);
        life.event("work", "build", "");
        life.event("next", "fine", "");
        let tick =
            |branch: &str| if is_root { as_nobody(&life, &["tick", branch]) } else { life.tick(&[branch]) };
        let done = tick("work");
        assert_eq!((done.code, life.state("work")), (Some(1), "stalled".into()), "{way}: {done:?}");
        if file.is_empty() {
            assert!(done.stderr.contains("repositories inside the worktree are kept in"), "{way}: {done:?}");
        } else {
            let attempts = life.attempts();
            let [attempt] = &attempts[..] else { panic!("{way}: {attempts:?} {done:?}") };
            assert_eq!(life.show(attempt, file), "mine", "{way}");
        }
        let done = tick("next");
        assert_eq!((done.code, life.state("next")), (Some(0), "done".into()), "{way}: {done:?}");
    }
    // What is declared holds it too.
    let life = Life::new(&[("build", &format!("mkdir d; echo mine >d/x; chmod 000 d; {DONE}"))]);
    life.git(&["config", "--global", "--add", "safe.directory", "*"]);
    life.event("work", "build", "");
    let done = if is_root { as_nobody(&life, &["tick", "work"]) } else { life.tick(&["work"]) };
    assert_eq!((done.code, life.show("work", "d/x")), (Some(0), "mine".into()), "{done:?}");
}
