//! What a command may write, read and connect to, enforced by the kernel with Landlock.
//!
//! The guardian itself is not confined. One of its threads confines itself, starts the command, and ends: a
//! process inherits the domain of the thread that starts it, and can never leave that domain. Whatever is not
//! listed is refused; so are access to processes outside of the domain (`ptrace`, and from Landlock 6 on
//! signals) and every change of mounts. If the kernel can't enforce all that is required, the command is not
//! started. Implements K59.

use super::guardian::options::Place;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::{Child, Command};

/// The oldest version of Landlock that keeps a command from changing files elsewhere: before version 3 files
/// could be truncated.
pub const FOR_WRITE: u32 = 3;
/// The oldest version of Landlock that also keeps a command from connecting.
pub const FOR_STRICT: u32 = 4;

/// The places and ports that a command is confined to. Each path is the place itself: a symbolic link at its
/// end is not followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    write: Vec<Place>,
    /// `None`: the command may read all that its user may.
    read: Option<Vec<Place>>,
    /// The TCP ports that the command may connect to; they count only where `read` is set.
    connect: Vec<u16>,
}

impl Confinement {
    /// Returns a confinement under which a command may write below these places only, and read everywhere.
    pub fn write(places: Vec<PathBuf>) -> Self {
        Self { write: places.into_iter().map(Place::from).collect(), read: None, connect: Vec::new() }
    }

    /// Also limits reading: to these places, and those that may be written. TCP connections may go to these
    /// ports only.
    pub fn strict(self, read: Vec<PathBuf>, connect: Vec<u16>) -> Self {
        Self { read: Some(read.into_iter().map(Place::from).collect()), connect, ..self }
    }

    /// Adds places that may be written and, where reading is limited, places that may be read. Places that do
    /// not exist are left out, and symbolic links in the paths are followed: the caller names only places
    /// where no command could have put a link.
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
    /// Starts a helper from a thread that confines itself first: the helper is confined, and the caller is
    /// not.
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

/// Returns the version of Landlock that this kernel has: 0 where it has none, and 6 for all newer ones, as
/// nothing newer is used.
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

/// Returns 0: other systems have no Landlock.
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
        /// Confines the calling thread, and every process that it starts from now on.
        pub(in super::super) fn enforce(&self) -> Result<(), (Errno, String)> {
            let refused = |error: RulesetError| (Errno::EPERM, format!("sandbox: {error}"));
            let (write, read) = (AccessFs::from_write(FILES), AccessFs::from_read(FILES));
            let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
            ruleset = ruleset.handle_access(write).map_err(refused)?;
            if self.read.is_some() {
                ruleset = ruleset.handle_access(read).map_err(refused)?;
                ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4)).map_err(refused)?;
            }
            // Only where the kernel can do this (Landlock 6): a command can't signal its guardian, nor
            // connect to abstract Unix sockets.
            ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
            ruleset = ruleset.scope(Scope::from_all(ABI::V6)).map_err(refused)?;
            let created =
                ruleset.set_compatibility(CompatLevel::HardRequirement).create().map_err(refused)?;
            let mut created = created.set_compatibility(CompatLevel::HardRequirement);
            // A superuser could make a device node, and write to a disk through it.
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
    /// Fails: no other system can confine a process so.
    pub(super) fn enforce(&self) -> Result<(), (nix::errno::Errno, String)> {
        Err((nix::errno::Errno::ENOSYS, "sandbox".to_owned()))
    }
}
