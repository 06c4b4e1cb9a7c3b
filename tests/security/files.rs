//! Links, fifos, devices and permissions where files of ours are expected: rows S15, S17 and S20 of modes.

use super::*;
use std::os::unix::fs::{MetadataExt, symlink};

fn fifo(path: &Path) {
    let _ = std::fs::remove_file(path);
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

/// Runs a tick that must end by itself.
fn ends(world: &World, dir: &Path, args: &[&str]) -> Said {
    let bin = world.root().join("bin/git-aynig");
    let said = world.run("timeout", dir, &[&["-k", "1", "60", bin.to_str().unwrap()], args].concat());
    assert!(!matches!(said.code, 124 | 137 | 143), "{args:?} hangs: {}{}", said.out, said.err);
    said
}

/// K16, S15: at each level where logs go, and whatever stands there, nothing is written through it
#[test]
fn s15_logs_are_made_new_at_every_level() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let logs = dir.join(".aynig/logs");
    tick(&world, &dir, "build", "first").expect(0);
    let victim = world.root().join("victim");
    std::fs::write(&victim, "precious\n").unwrap();
    for what in ["fifo", "hard link", "link", "device", "folder"] {
        let branch = format!("log-{}", what.replace(' ', "-"));
        world.aynig(&dir, &["set-state", "build", "-b", &branch]).expect(0);
        let trigger = head(&world, &dir, &branch);
        for name in [format!("{trigger}.stdout.log"), format!("{trigger}.2.stderr.log"), "hook.log".into()] {
            let at = logs.join(name);
            let _ = std::fs::remove_file(&at);
            match what {
                "fifo" => fifo(&at),
                "hard link" if !at.ends_with("hook.log") => std::fs::hard_link(&victim, &at).unwrap(),
                "link" => symlink(&victim, &at).unwrap(),
                "folder" if !at.ends_with("hook.log") => std::fs::create_dir(&at).unwrap(),
                "device" if nix::unistd::geteuid().is_root() => {
                    let (kind, mode) = (nix::sys::stat::SFlag::S_IFCHR, nix::sys::stat::Mode::S_IRWXU);
                    // /dev/zero, which would never end; not every container lets root make one.
                    if nix::sys::stat::mknod(&at, kind, mode, nix::sys::stat::makedev(1, 5)).is_err() {
                        support::skipped("S15: no device can be made here");
                    }
                }
                "device" => support::skipped("S15: making a device takes root"),
                _ => {}
            }
        }
        let said = ends(&world, &dir, &["tick", &branch]).expect(0);
        assert!(said.out.contains("build -> review"), "{what}: {}{}", said.out, said.err);
        // What runs in the background must not wait, nor write there.
        ends(&world, &dir, &["tick", "--detach", &branch]);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n", "{what}");
    }
}

/// K16, K19, K23, S15: what a command puts in the place of files that are read after it is neither waited for nor
/// followed
#[test]
fn s15_a_command_cannot_hold_its_runner_with_a_fifo_or_lead_it_with_a_link() {
    let world = World::any();
    let secret = world.root().join("secret");
    std::fs::write(&secret, "do-not-copy-this\n").unwrap();
    let secret = secret.display();
    let admin = "admin=$(git rev-parse --git-dir)";
    let traps: Vec<(&str, String)> = vec![
        ("log", "rm \"$STDOUT_LOG_PATH\"; mkfifo \"$STDOUT_LOG_PATH\"; exit 3".into()),
        ("loglink", format!("ln -sf {secret} \"$STDERR_LOG_PATH\"; exit 3")),
        ("result", "mkfifo \"$AYNIG_RESULT\"; exit 0".into()),
        ("wake", "mkfifo \"$AYNIG_RUN_DIR/wake\"; exit 3".into()),
        ("zero", "ln -s /dev/zero \"$AYNIG_RUN_DIR/wake\"; exit 3".into()),
        (
            "ignore",
            format!("mkfifo .gitignore .gitattributes .gitmodules sub/.gitignore; echo x >new\n{DONE}"),
        ),
        ("index", format!("{admin}; rm -f \"$admin/index\"; mkfifo \"$admin/index\"; echo x >new\n{DONE}")),
        ("head", format!("{admin}; rm \"$admin/HEAD\"; mkfifo \"$admin/HEAD\"; exit 3")),
        ("nothing", format!("{admin}; echo x >new; printf '%040d' 1 >\"$admin/HEAD\"; exit 3")),
        (
            "zeros",
            format!("{admin}; : >\"$admin/HEAD\"; truncate -s 3G \"$admin/HEAD\"; echo x >new\n{DONE}"),
        ),
    ];
    let commands: Vec<(&str, &str)> = traps.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let dir = repo(&world, &commands);
    for (name, _) in &traps {
        world.aynig(&dir, &["set-state", name, "-b", name]).expect(0);
        let said = ends(&world, &dir, &["tick", name]);
        assert!([0, 1].contains(&said.code), "{name}: {}{}", said.out, said.err);
        // A HEAD without end, which Git would take into memory, is written again before any Git reads it.
        assert!(*name != "zeros" || said.code == 0, "{name}: {}{}", said.out, said.err);
        let body = world.git(&dir, &["log", "-1", "--format=%B", name]);
        assert!(!body.contains("do-not-copy-this"), "{name}: {body}");
        // The next run has a sound slot.
        let said = ends(&world, &dir, &["tick", name]);
        assert!([0, 1].contains(&said.code), "{name}: {}{}", said.out, said.err);
        world.aynig(&dir, &["set-state", "build", "-b", &format!("after-{name}")]).expect(0);
        let said = ends(&world, &dir, &["tick", &format!("after-{name}")]).expect(0);
        assert!(said.out.contains("build -> review"), "{name}: {}{}", said.out, said.err);
    }
    world.assert_sound(&dir);
}

/// K16, S15: links in the Git directory lead nothing of ours elsewhere
#[test]
fn s15_notes_in_the_git_directory_are_not_written_through_links() {
    let world = World::any();
    let dir = repo(&world, &[]);
    tick(&world, &dir, "build", "first").expect(0);
    let victim = world.root().join("victim");
    std::fs::write(&victim, "precious\n").unwrap();
    let slots = dir.join(".git/aynig/slots");
    for (n, name) in ["0.json", "0.hold", "0.lock", "0.index"].iter().enumerate() {
        let branch = format!("b{n}");
        let at = slots.join(name);
        let kept = std::fs::read(&at).unwrap_or_default();
        std::fs::remove_file(&at).unwrap();
        symlink(&victim, &at).unwrap();
        world.aynig(&dir, &["set-state", "build", "-b", &branch]).expect(0);
        ends(&world, &dir, &["tick", &branch]);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n", "{name}");
        let _ = std::fs::remove_file(&at);
        std::fs::write(&at, kept).unwrap();
        std::fs::set_permissions(&at, PermissionsExt::from_mode(0o600)).unwrap();
    }
}

/// K16, S17: nothing of ours can be written to by every user, and what was printed can be read by no other user
#[test]
fn s17_whatever_the_umask_files_of_ours_are_closed() {
    for umask in ["000", "022", "077"] {
        let world = World::any();
        let dir = repo(&world, &[("fail", "ls -ld . >&2; exit 3")]);
        for (n, state) in ["build", "fail"].iter().enumerate() {
            world.aynig(&dir, &["set-state", state, "-b", &format!("b{n}")]).expect(0);
            let line = format!("umask {umask}; git aynig tick b{n}; git aynig status >/dev/null");
            world.run("/bin/sh", &dir, &["-c", &line]).expect(0);
        }
        let mut folders =
            vec![dir.join(".git/aynig"), dir.join(".aynig/logs"), world.home().join(".cache/aynig")];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap().flatten() {
                let meta = entry.path().symlink_metadata().unwrap();
                let (name, mode) = (entry.path().display().to_string(), meta.mode() & 0o777);
                assert!(meta.is_symlink() || mode & 0o002 == 0, "umask {umask}: {name} {mode:o}");
                if name.ends_with(".log")
                    || name.contains("/runs/") && !name.ends_with("/runs") && meta.is_dir()
                {
                    assert_eq!(mode & 0o077, 0, "umask {umask}: {name} {mode:o}");
                }
                if meta.is_dir() {
                    folders.push(entry.path());
                }
                seen += 1;
            }
        }
        assert!(seen > 20, "{seen}");
    }
}
