//! Power loss after a reported outcome: an ext4 of its own, shut down without its journal, and mounted again.
//!
//! What a tick reported is there, nothing is corrupt, no lock blocks (V14, K42). Under a bare remote the same
//! is measured, not promised: an outcome there is as durable as the remote. Needs root, loop devices and
//! python3 (for one ioctl).

use super::judge;
use super::row::Sweep;
use super::scene::{LOCAL, REMOTE, Scene, World};
use super::support::life::done;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// `EXT4_IOC_SHUTDOWN` with `NOLOGFLUSH`: everything that was not synced is gone.
const CUT: &str = "import fcntl,os,struct,sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))";

/// An ext4 in a file, mounted on a folder.
struct Disk {
    at: PathBuf,
    image: tempfile::NamedTempFile,
}

fn sh(program: &str, args: &[&Path]) -> Result<(), String> {
    let output = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {said}")) }
}

impl Disk {
    fn make(at: &Path) -> Result<Self, String> {
        let image = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
        image.as_file().set_len(48 << 20).map_err(|e| e.to_string())?;
        sh("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), image.path()])?;
        let disk = Self { at: at.to_owned(), image };
        disk.mount()?;
        Ok(disk)
    }

    fn mount(&self) -> Result<(), String> {
        sh("mount", &["-o".as_ref(), "loop".as_ref(), self.image.path(), &self.at])
    }

    fn unmount(&self) -> Result<(), String> {
        let mut tried = Ok(());
        for _ in 0..50 {
            tried = sh("umount", &[&self.at]);
            if tried.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        tried
    }

    /// The power is gone, and comes back.
    fn cut(&self) {
        sh("python3", &["-c".as_ref(), CUT.as_ref(), &self.at]).unwrap();
        self.unmount().unwrap();
        self.mount().unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.unmount();
    }
}

/// Why there is no power to cut here.
fn unable() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("not root".to_owned());
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = match Disk::make(folder.path()) {
        Ok(disk) => disk,
        Err(why) => return Some(why),
    };
    sh("python3", &["-c".as_ref(), CUT.as_ref(), &disk.at]).err()
}

fn seconds(n: usize) -> u64 {
    [0, 1, 6][n % 3]
}

/// One tick that reports, and one cut; what is wrong then.
fn here(scene: &'static Scene, wait: u64) -> Vec<String> {
    let world = World::new(scene).unwrap();
    let disk = Disk::make(&world.base()).unwrap();
    world.reset();
    sh("sync", &["-f".as_ref(), &world.base()]).unwrap();
    let report = done(world.tick().output().unwrap()).json();
    std::thread::sleep(Duration::from_secs(wait));
    disk.cut();
    let mut bad = Vec::new();
    let head = world.git(&["rev-parse", "refs/heads/work"]);
    if report["commit"].as_str() != Some(&head) {
        bad.push(format!("V14: '{head}' is the head, reported was {report}"));
    }
    if judge::state(&world) != scene.end {
        bad.push(format!("V14: the state is '{}'", judge::state(&world)));
    }
    // An attempt that was reported is there too.
    if let Some(attempt) = report["attempt"].as_str()
        && world.git(&["cat-file", "-t", &format!("{attempt}:result")]) != "blob"
    {
        bad.push(format!("V14: {attempt} is lost"));
    }
    bad.extend(judge::settle(&world));
    drop(disk);
    bad.into_iter().map(|what| format!("{} after {wait} s: {what}", scene.name)).collect()
}

#[test]
fn local() {
    let what = "power loss after a reported outcome (ext4, 0, 1 and 6 s later; files and reftable)";
    let sweep = Sweep::begin("power-local", what, "50 cuts: 0 lost, 0 corrupt, 0 blocking locks");
    if let Some(why) = unable() {
        return sweep.skip(&why);
    }
    let names = ["fresh", "reftable", "commits", "fails", "reused"];
    let scenes = LOCAL.iter().filter(|s| names.contains(&s.name));
    // A scene that this git can't make is no cut: the others get its share.
    let (scenes, not): (Vec<&'static Scene>, Vec<_>) = scenes.partition(|s| s.can_be_made());
    sweep.count("scenes not made", not.len() as u64);
    sweep.at_least("cuts", scenes.len() as u64, 50);
    for n in 0..sweep.size(scenes.len(), 50) {
        let wait = sweep.size(0, seconds(n / scenes.len()) as usize) as u64;
        here(scenes[n % scenes.len()], wait).into_iter().for_each(|bad| sweep.bad(bad));
        sweep.count("cuts", 1);
    }
    sweep.end();
}

/// What is left of an outcome on a remote whose power went.
fn there(wait: u64) -> &'static str {
    let world = World::new(&REMOTE[0]).unwrap();
    let origin = world.branch_dir();
    let aside = world.base().join("aside");
    std::fs::rename(&origin, &aside).unwrap();
    std::fs::create_dir(&origin).unwrap();
    let disk = Disk::make(&origin).unwrap();
    sh("cp", &["-a".as_ref(), &aside.join("."), &origin]).unwrap();
    world.git(&["config", "core.fsync", "committed"]);
    sh("sync", &["-f".as_ref(), &origin]).unwrap();
    let report = done(world.tick().output().unwrap()).json();
    assert_eq!(report["result"], "advanced", "{report}");
    std::thread::sleep(Duration::from_secs(wait));
    disk.cut();
    let head = world.git(&["rev-parse", "refs/heads/work"]);
    let sound = world.git_at(&origin, &["fsck", "--strict", "--no-dangling"]).status.success();
    let locked = origin.join("refs/heads/work.lock").exists();
    match (report["commit"].as_str() == Some(&head), sound, locked) {
        (_, false, _) => "corrupt",
        (true, true, false) => "kept",
        (true, true, true) => "kept, with a lock left",
        (false, true, false) => "lost",
        (false, true, true) => "lost, with a lock left",
    }
}

#[test]
fn remote() {
    let what = "power loss under a bare remote with core.fsync=committed, after a reported outcome";
    let sweep = Sweep::begin("power-remote", what, "20 cuts, measured: as durable as the remote");
    if let Some(why) = unable() {
        return sweep.skip(&why);
    }
    sweep.at_least("cuts", 1, 20);
    for n in 0..sweep.size(1, 20) {
        let wait = sweep.size(0, seconds(n) as usize) as u64;
        sweep.count("cuts", 1);
        sweep.count(&format!("{} after {wait} s", there(wait)), 1);
    }
    sweep.end();
}

/// Whether a machine whose power goes after a tick of a remote's branch can tick again. `idle`: that tick has
/// heard of commits, and found nothing to do.
fn asking(scene: &'static Scene, idle: bool) -> Vec<String> {
    let world = World::new(scene).unwrap();
    let machine = world.work_dir();
    let aside = world.base().join("aside");
    std::fs::rename(&machine, &aside).unwrap();
    std::fs::create_dir(&machine).unwrap();
    let disk = Disk::make(&machine).unwrap();
    sh("cp", &["-a".as_ref(), &aside.join("."), &machine]).unwrap();
    sh("sync", &["-f".as_ref(), &machine]).unwrap();
    let event = world.git(&["rev-parse", "refs/heads/work"]);
    if idle {
        let head =
            ["-c", "user.name=U", "-c", "user.email=u@x", "commit-tree", "main^{tree}", "-p", "main", "-m"];
        let plain = world.git(&[&head[..], &["no event"]].concat());
        world.git(&["update-ref", "refs/heads/work", &plain]);
        world.git(&["update-ref", "refs/heads/new", &plain]);
    }
    let mut bad = Vec::new();
    let mut ticked = |when: &str| {
        let tick = done(world.tick().output().unwrap());
        if !matches!(tick.code, Some(0 | 1)) {
            bad.push(format!("V11: {when}: {tick:?}"));
        }
    };
    ticked("before the cut");
    // A sync of anything writes the journal, and with it the names and sizes of what has no content yet.
    std::fs::File::create(machine.join(".git/other")).and_then(|file| file.sync_all()).unwrap();
    disk.cut();
    ticked("after the cut");
    if idle {
        world.git(&["update-ref", "refs/heads/work", &event]);
        ticked("an event after the cut");
    }
    let fsck = world.git_at(&machine, &["fsck", "--strict", "--no-dangling"]);
    if !fsck.status.success() {
        bad.push(format!("V13: {}", String::from_utf8_lossy(&fsck.stderr)));
    }
    bad.extend(judge::settle(&world));
    drop(disk);
    bad.into_iter().map(|what| format!("{}, idle {idle}: {what}", scene.name)).collect()
}

#[test]
fn polling() {
    let what = "power loss on a machine that ticks a remote's branches, with and without work for it";
    let sweep =
        Sweep::begin("power-polling", what, "20 cuts: 0 corrupt, 0 machines that can't fetch any more");
    if let Some(why) = unable() {
        return sweep.skip(&why);
    }
    let scenes: Vec<&'static Scene> = REMOTE.iter().filter(|s| !s.is_slow()).collect();
    sweep.at_least("cuts", scenes.len() as u64 + 1, 20);
    for n in 0..sweep.size(scenes.len() + 1, 20) {
        let bad = asking(scenes[n % scenes.len()], n % (scenes.len() + 1) == scenes.len());
        bad.into_iter().for_each(|bad| sweep.bad(bad));
        sweep.count("cuts", 1);
    }
    sweep.end();
}
