//! The ticks that the fault sweeps disturb: one whole tick each, in a world that is put back for every point.
//!
//! A [`World`] is a repository (or a machine and its remote) ready for the tick, with a copy of everything
//! beside it. Commands write their run's id to `$T/runs` when they start and to `$T/finished` as the last
//! thing they do, so that the judge knows what must not be lost.

#![allow(dead_code, reason = "some sweeps run only on some systems")]

use super::support::faketime::faketime;
use super::support::life::{Done, Life, done};
use super::support::net::{Machine, Net};
use super::support::{Kind, Repo};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One kind of tick.
pub struct Scene {
    pub name: &'static str,
    kind: fn() -> Kind,
    pub remote: bool,
    /// What the command does between its two notes.
    script: &'static str,
    /// The branch that the user has checked out.
    checkout: bool,
    /// A tick of another branch came before: there is a slot, and junk in it.
    pub reused: bool,
    /// The head is a lease whose runner is long dead.
    pub leased: bool,
    /// The state that the command leads to, once everything is settled.
    pub end: &'static str,
}

const DECLARE: &str =
    "echo \"$AYNIG_RUN_ID\" >result; echo more >>file; echo 'SET_STATE {\"state\":\"done\"}'";

const PLAIN: Scene = Scene {
    name: "fresh",
    kind: Repo::build,
    remote: false,
    script: DECLARE,
    checkout: false,
    reused: false,
    leased: false,
    end: "done",
};

/// The maintenance that Git starts beside a commit is no part of a tick; `doctor` names what it leaves where it is killed.
const COMMITS: &str = "echo \"$AYNIG_RUN_ID\" >result; git add result; git -c maintenance.auto=false commit -qm mine; \
                       echo more >>file; \
                       echo 'SET_STATE {\"state\":\"done\"}'";
const FAILS: &str =
    "echo \"$AYNIG_RUN_ID\" >result; echo sorry >&2; echo $AYNIG_RUN_ID >>\"$T/finished\"; exit 3";

const SLOW: &str =
    "echo \"$AYNIG_RUN_ID\" >result; sleep 4.5; echo more >>file; echo 'SET_STATE {\"state\":\"done\"}'";

fn reftable() -> Kind {
    Repo::build().reftable()
}

pub const LOCAL: &[Scene] = &[
    PLAIN,
    Scene { name: "reused", reused: true, ..PLAIN },
    Scene { name: "checkout", checkout: true, ..PLAIN },
    Scene { name: "commits", script: COMMITS, reused: true, ..PLAIN },
    Scene { name: "fails", script: FAILS, end: "stalled", ..PLAIN },
    Scene { name: "leased", leased: true, end: "stalled", ..PLAIN },
    Scene { name: "reftable", kind: reftable, ..PLAIN },
];

pub const REMOTE: &[Scene] = &[
    Scene { name: "remote-fresh", remote: true, ..PLAIN },
    Scene { name: "remote-reused", remote: true, reused: true, ..PLAIN },
    Scene { name: "remote-fails", remote: true, script: FAILS, end: "stalled", ..PLAIN },
    // Longer than half of its lease, so that it is renewed.
    Scene { name: "remote-slow", remote: true, script: SLOW, ..PLAIN },
    Scene { name: "remote-leased", remote: true, leased: true, end: "stalled", ..PLAIN },
];

enum Place {
    Here(Life),
    There(Net),
}

/// A scene, ready for its tick.
pub struct World {
    pub scene: &'static Scene,
    place: Place,
    saved: Option<Saved>,
    /// What makes ten minutes go by: the library, or nothing.
    faketime: Option<&'static str>,
}

impl Scene {
    /// False, with a line saying so, where this machine's git can't make it.
    pub fn can_be_made(&self) -> bool {
        (self.kind)().create().is_some()
    }

    /// True where its tick takes seconds.
    pub fn is_slow(&self) -> bool {
        self.script == SLOW
    }
}

impl World {
    /// `None`, with a line saying so, where this machine's git can't make it.
    pub fn new(scene: &'static Scene) -> Option<Self> {
        if !scene.can_be_made() {
            return None;
        }
        let script = format!(
            "echo \"$AYNIG_RUN_ID\" >>\"$T/runs\"\n{}\necho \"$AYNIG_RUN_ID\" >>\"$T/finished\"",
            scene.script
        );
        let commands = [
            ("build", script.as_str()),
            ("junk", "echo junk >junk; mkdir -p target; date >target/x; exit 1"),
        ];
        let place = if scene.remote {
            Place::There(Net::new(&commands))
        } else {
            Place::Here(Life::of((scene.kind)(), &commands))
        };
        let mut world = Self { scene, place, saved: None, faketime: faketime() };
        world.prepare();
        world.saved = Some(Saved::of(world.base()));
        Some(world)
    }

    fn prepare(&self) {
        match &self.place {
            Place::Here(life) => {
                life.git(&["config", "gc.auto", "0"]);
                self.events(&|branch, state| drop(life.event(branch, state, "dwp-ticket: 7\n")));
                if self.scene.leased {
                    life.lease("work", "build", "11111111-2222-4333-8444-555555555555", 60, 4000);
                }
                if self.scene.checkout {
                    life.git(&["checkout", "-q", "work"]);
                }
            }
            Place::There(net) => {
                net.machine("a");
                self.events(&|branch, state| drop(net.event(branch, state, "dwp-ticket: 7\n")));
                if self.scene.leased {
                    net.life.git(&["fetch", "-q", "origin", "work:work"]);
                    net.life.lease("work", "build", "11111111-2222-4333-8444-555555555555", 60, 4000);
                    net.life.git(&["push", "-q", "origin", "work"]);
                    net.life.git(&["branch", "-qD", "work"]);
                }
            }
        }
        if self.scene.reused {
            self.aynig(&["tick", "other"], false).output().unwrap();
        }
    }

    fn events(&self, event: &dyn Fn(&str, &str)) {
        if self.scene.reused {
            event("other", "junk");
        }
        event("work", "build");
    }

    pub fn life(&self) -> &Life {
        match &self.place {
            Place::Here(life) => life,
            Place::There(net) => &net.life,
        }
    }

    /// The folder of everything.
    pub fn base(&self) -> PathBuf {
        self.life().repo.home().parent().unwrap().to_owned()
    }

    /// Puts everything back as it was before the tick.
    pub fn reset(&self) {
        self.saved.as_ref().unwrap().restore();
    }

    /// The Git directory of the process that ticks.
    pub fn git_dir(&self) -> PathBuf {
        match &self.place {
            Place::Here(life) => life.repo.git_dir(),
            Place::There(_) => self.base().join("a/.git"),
        }
    }

    /// The Git directory that the branch is in.
    pub fn branch_dir(&self) -> PathBuf {
        match &self.place {
            Place::Here(life) => life.repo.git_dir(),
            Place::There(net) => net.origin(),
        }
    }

    /// The binary, now or ten minutes later.
    pub fn aynig(&self, args: &[&str], later: bool) -> Command {
        let mut command = match &self.place {
            Place::Here(life) => life.aynig(args),
            Place::There(net) => {
                let machine = Machine { net, dir: self.base().join("a") };
                machine.aynig(&[&args[..1], &["--remote", "origin"], &args[1..]].concat())
            }
        };
        if later {
            self.age(&mut command);
        }
        command
    }

    /// Has a command be ten minutes later.
    pub fn age(&self, command: &mut Command) {
        let Some(library) = &self.faketime else { return };
        command.env("LD_PRELOAD", library).env("FAKETIME", "+600s").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// The tick that is disturbed.
    pub fn tick(&self) -> Command {
        // What a remote refuses for now is tried until the lease ends.
        let lease = match (&self.faketime, self.scene.remote) {
            (Some(_), false) => &[][..],
            (Some(_), true) => &["--lease", "8s"],
            (None, _) => &["--lease", "3s"],
        };
        self.aynig(&[&["tick", "--json"], lease, &["work"]].concat(), false)
    }

    /// Lets the lease run out: its three seconds, a remote's grace, and one more, as whole seconds are compared.
    pub fn wait(&self) {
        if self.faketime.is_none() {
            let seconds = if self.scene.remote { 34 } else { 4 };
            std::thread::sleep(std::time::Duration::from_millis(seconds * 1000 + 500));
        }
    }

    pub fn later(&self, args: &[&str]) -> Done {
        done(self.aynig(args, true).output().unwrap())
    }

    /// git, in a folder, ten minutes later.
    pub fn git_at(&self, dir: &Path, args: &[&str]) -> Output {
        let mut command = self.life().repo.command("git");
        self.age(&mut command);
        command.current_dir(dir).args(args).output().unwrap()
    }

    /// git, where the branch is.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.git_at(&self.branch_dir(), args);
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The working tree of the process that ticks.
    pub fn work_dir(&self) -> PathBuf {
        self.git_dir().parent().unwrap().to_owned()
    }

    /// What the commands noted.
    pub fn noted(&self, name: &str) -> Vec<String> {
        self.life().said(name).lines().map(str::to_owned).collect()
    }
}

/// Everything below a folder, as it was when this was made: each point begins there.
pub struct Saved {
    base: PathBuf,
    folder: tempfile::TempDir,
}

impl Saved {
    pub fn of(base: PathBuf) -> Self {
        let folder = tempfile::Builder::new().prefix("aynig saved ").tempdir().unwrap();
        copy(&base, folder.path());
        Self { base, folder }
    }

    /// Puts all of it back.
    pub fn restore(&self) {
        for entry in std::fs::read_dir(&self.base).unwrap().flatten() {
            if std::fs::remove_dir_all(entry.path()).is_err() {
                Command::new("chmod").args(["-R", "u+rwX"]).arg(entry.path()).output().unwrap();
                std::fs::remove_dir_all(entry.path()).unwrap();
            }
        }
        copy(self.folder.path(), &self.base);
    }
}

fn copy(from: &Path, to: &Path) {
    let mut source = from.as_os_str().to_owned();
    source.push("/.");
    let output = Command::new("cp").arg("-a").arg(&source).arg(to).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
