//! What a command may write, read and connect to, enforced by the kernel: Landlock.
//!
//! The guardian itself is not confined. A thread of it confines itself, starts the command, and ends: what a thread
//! starts inherits its domain, and nothing takes that off again. What is not listed is refused, and so is every process outside of
//! the domain (`ptrace`, and signals from Landlock 6 on) and every change of mounts. All is required of the kernel or the command is not
//! started. Implements K59.

use super::guardian::options::Place;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::{Child, Command};

/// The oldest Landlock that keeps a command from writing elsewhere: before it files could be truncated.
pub const FOR_WRITE: u32 = 3;
/// The oldest that also keeps it from connecting.
pub const FOR_STRICT: u32 = 4;

/// Places and ports that a command is confined to. Each path is the place itself: no link at its end is followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    write: Vec<Place>,
    /// `None`: it may read all that its user may.
    read: Option<Vec<Place>>,
    /// With `read`: the ports that it may connect to.
    connect: Vec<u16>,
}

impl Confinement {
    /// Writes below these alone.
    pub fn write(places: Vec<PathBuf>) -> Self {
        Self { write: places.into_iter().map(Place::from).collect(), read: None, connect: Vec::new() }
    }

    /// Reads below these too, and below no others; connects by TCP to these ports.
    pub fn strict(self, read: Vec<PathBuf>, connect: Vec<u16>) -> Self {
        Self { read: Some(read.into_iter().map(Place::from).collect()), connect, ..self }
    }

    /// Writes below these places too, and, where it reads no others, below these; those that there are, with links in their
    /// paths followed: none of them is one that a command could have put a link at.
    pub fn with(mut self, write: Vec<PathBuf>, read: Vec<PathBuf>) -> Self {
        let there = |places: Vec<PathBuf>| places.into_iter().filter_map(|place| place.canonicalize().ok());
        self.write.extend(there(write).map(Place::from));
        if let Some(all) = &mut self.read {
            all.extend(there(read).map(Place::from));
        }
        self
    }
}

impl Confinement {
    /// Starts a helper from a thread that confined itself: what that starts is confined, and the caller is not.
    pub(super) fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        std::thread::scope(|scope| {
            let start = || {
                let refused = |(errno, text): (nix::errno::Errno, String)| {
                    std::io::Error::other(format!("{text}: {}", errno.desc()))
                };
                self.enforce().map_err(refused)?;
                command.spawn()
            };
            let thread = std::thread::Builder::new().spawn_scoped(scope, start)?;
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(std::io::Error::other("the thread of the sandbox ended")))
        })
    }
}

/// The version of Landlock that this kernel has, as far as it matters here: 0 where it has none, 6 at most.
#[cfg(target_os = "linux")]
pub fn kernel_version() -> u32 {
    use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
    let ruleset = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = |abi| ruleset().handle_access(AccessFs::from_all(abi));
    let works = |version: u32| {
        let made = match version {
            1 => files(ABI::V1),
            2 => files(ABI::V2),
            3 => files(ABI::V3),
            4 => files(ABI::V3).and_then(|made| made.handle_access(AccessNet::from_all(ABI::V4))),
            5 => files(ABI::V5),
            _ => files(ABI::V5).and_then(|made| made.scope(Scope::from_all(ABI::V6))),
        };
        made.and_then(Ruleset::create).is_ok()
    };
    (1..=6).rev().find(|version| works(*version)).unwrap_or(0)
}

/// There is none elsewhere.
#[cfg(not(target_os = "linux"))]
pub fn kernel_version() -> u32 {
    0
}

#[cfg(target_os = "linux")]
mod enforce {
    use super::{Confinement, Place};
    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
        RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    };
    use nix::errno::Errno;
    use nix::fcntl::{OFlag, open};
    use nix::sys::stat::{Mode, SFlag, fstat};

    const FILES: ABI = ABI::V3;

    impl Confinement {
        /// Confines the calling thread, and what it starts from now on.
        pub(in super::super) fn enforce(&self) -> Result<(), (Errno, String)> {
            let refused = |error: RulesetError| (Errno::EPERM, format!("sandbox: {error}"));
            let (write, read) = (AccessFs::from_write(FILES), AccessFs::from_read(FILES));
            let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
            ruleset = ruleset.handle_access(write).map_err(refused)?;
            if self.read.is_some() {
                ruleset = ruleset.handle_access(read).map_err(refused)?;
                ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4)).map_err(refused)?;
            }
            // Where the kernel has it: a command can't signal its guardian, or speak to who listens outside of files.
            ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
            ruleset = ruleset.scope(Scope::from_all(ABI::V6)).map_err(refused)?;
            let created =
                ruleset.set_compatibility(CompatLevel::HardRequirement).create().map_err(refused)?;
            let mut created = created.set_compatibility(CompatLevel::HardRequirement);
            // A device that a superuser makes leads to a disk.
            let writes = write & !(AccessFs::MakeBlock | AccessFs::MakeChar);
            for place in &self.write {
                let access = if self.read.is_some() { writes | read } else { writes };
                created = allow(created, place, access)?;
            }
            for place in self.read.iter().flatten() {
                created = allow(created, place, read)?;
            }
            for port in &self.connect {
                let rule = NetPort::new(*port, AccessNet::ConnectTcp);
                created = created.add_rule(rule).map_err(refused)?;
            }
            let status = created.restrict_self().map_err(refused)?;
            match status.ruleset {
                RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced if status.no_new_privs => {
                    Ok(())
                }
                RulesetStatus::FullyEnforced
                | RulesetStatus::PartiallyEnforced
                | RulesetStatus::NotEnforced => Err((Errno::EPERM, "sandbox: it is not enforced".to_owned())),
            }
        }
    }

    fn allow(
        created: RulesetCreated,
        place: &Place,
        access: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, (Errno, String)> {
        let path = place.path();
        let named = |errno| (errno, format!("sandbox: '{}'", path.display()));
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let opened = open(path, flags, Mode::empty()).map_err(named)?;
        let kind = SFlag::from_bits_truncate(fstat(&opened).map_err(named)?.st_mode & SFlag::S_IFMT.bits());
        let access = match kind {
            SFlag::S_IFDIR => access,
            SFlag::S_IFLNK => return Err(named(Errno::ELOOP)),
            _ => access & AccessFs::from_file(FILES),
        };
        let refused = |error: RulesetError| (Errno::EPERM, format!("sandbox: '{}': {error}", path.display()));
        created.add_rule(PathBeneath::new(opened, access)).map_err(refused)
    }
}

#[cfg(not(target_os = "linux"))]
impl Confinement {
    /// No other system can.
    pub(super) fn enforce(&self) -> Result<(), (nix::errno::Errno, String)> {
        Err((nix::errno::Errno::ENOSYS, "sandbox".to_owned()))
    }
}
