//! What would stop a tick in a repository: findings, with what mends each.
//!
//! The checks look at what a tick would use, in the order in which it would: messages, trust, commands,
//! signing, worktrees, disks, locks, branches, clock; and at a remote, if there is one. They change nothing
//! but what a tick itself would create. An error would stop a tick, or the tick of one branch; a warning is
//! worth knowing. Implements git-aynig-doctor(1), K1, K13, K33, K43.

mod branches;
mod commands;
mod durability;
mod far_locks;
mod history;
mod hooks;
mod inboxes;
mod mend;
mod places;
mod queue;
mod remotes;

pub(crate) use mend::Mend;

use super::preflight::{OWN, TALK, own_folders, writable};
use super::{Runner, RunnerError, logs};
use crate::protocol::text::escape;
use crate::protocol::text::with_causes;
use crate::store::config;
use crate::store::gix_store::Backend;
use crate::store::remote::heard_folders;
use crate::store::{NewCommit, RefName, StoreError, Unread, command_copy};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Warning,
    /// It would stop a tick.
    Error,
}

impl Level {
    /// Returns the level's name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// One thing that was looked at. All texts are safe to print.
#[derive(Debug)]
pub struct Finding {
    /// How much the finding matters.
    pub level: Level,
    /// What was looked at.
    pub subject: &'static str,
    /// What was found.
    pub text: String,
    /// What mends the finding, where that is known.
    pub mend: Option<Mend>,
}

impl Finding {
    /// Makes a finding without a hint at what mends it.
    pub fn new(level: Level, subject: &'static str, text: impl Into<String>) -> Self {
        Self { level, subject, text: text.into(), mend: None }
    }
    /// Adds what mends the finding.
    pub fn mend(mut self, mend: Mend) -> Self {
        self.mend = Some(mend);
        self
    }
}

use Level::{Error, Ok as Fine, Warning};

fn name(name: &RefName) -> String {
    escape(name.as_bytes())
}

fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes())
}

type Findings = Vec<Finding>;

impl Runner<'_> {
    /// Runs all checks, those of trust, branches and pauses with `ticked`, a runner that may work on a remote's
    /// branches. A check that fails is a finding too.
    pub fn checkup(&self, ticked: &Self) -> Findings {
        type Check<'r, 'a> = fn(&'r Runner<'a>, &mut Findings) -> Result<(), RunnerError>;
        let checks: [(&str, Check<'_, '_>); 17] = [
            ("repository", Self::check_backend),
            ("trailers", Self::check_trailers),
            ("trust", Self::check_trust),
            ("commands", Self::check_wrapper),
            ("signing", Self::check_signing),
            ("hooks", Self::check_hooks),
            ("worktrees", Self::check_worktrees),
            ("pending", Self::check_queue),
            ("paused", Self::check_pauses),
            ("sandbox", Self::check_sandbox),
            ("disk", Self::check_disks),
            ("durability", Self::check_durability),
            ("locks", Self::check_locks),
            ("branches", Self::check_branches),
            ("inbox", Self::check_inboxes),
            ("checkouts", Self::check_checkouts),
            ("clock", Self::check_clock),
        ];
        let mut found = Findings::new();
        for (subject, check) in checks {
            let runner = if ["trust", "branches", "paused"].contains(&subject) { ticked } else { self };
            if let Err(error) = check(runner, &mut found) {
                found.push(Finding::new(Error, subject, with_causes(&error)));
            }
        }
        found
    }

    fn check_backend(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let how = match &self.repo.backend {
            Backend::Gix => "read in process".to_owned(),
            Backend::Git(why) => format!("read through git: {}", escape(why.as_bytes())),
        };
        let bare = if self.repo.bare { "bare, " } else { "" };
        found.push(Finding::new(
            Fine,
            "repository",
            format!("{} ({bare}{how})", shown(&self.repo.common_dir)),
        ));
        let remotes = self.repo.remotes();
        let heard = remotes.iter().flat_map(|remote| heard_folders(remote));
        let mut looked = HashSet::new();
        // One ref may be in the way of several remotes, and is reported once.
        let names = own_folders(OWN.into_iter().chain(TALK)).chain(heard);
        for error in self.in_the_way_of_refs(names.filter(|(other, _)| looked.insert(other.clone()))) {
            let mut finding = Finding::new(Error, "repository", with_causes(&error));
            if let RunnerError::Store(StoreError::NameConflict { other, .. }) = &error {
                finding = finding.mend(Mend::MoveRefAway(other.clone()));
            }
            if let RunnerError::Store(StoreError::UnreadableRef { name, cause: Unread::Symbolic(_) }) = &error
            {
                finding = finding.mend(Mend::RemoveSymbolicRef(name.clone()));
            }
            found.push(finding);
        }
        // Such a ref keeps every 'git gc' from its end.
        for (name, error) in self.store.read_heads("refs/aynig/")?.failed {
            if let StoreError::Object { .. } = &error {
                let text = format!("'{}' leads nowhere: {}", self::name(&name), with_causes(&error));
                found.push(Finding::new(Error, "repository", text).mend(Mend::RemoveBrokenRef(name)));
            }
        }
        found.extend(self.unwritable().iter().map(|place| unwritable(place)));
        Ok(())
    }

    /// Warns of configuration under which Git shows other trailers than this program acts on.
    fn check_trailers(&self, found: &mut Findings) -> Result<(), RunnerError> {
        const SHOWN: usize = 5;
        let keys = config::other_trailers(self.repo)?;
        if keys.is_empty() {
            return Ok(());
        }
        let more = if keys.len() > SHOWN { " and more" } else { "" };
        let named: Vec<String> = keys.iter().take(SHOWN).map(|key| format!("'{}'", escape(key))).collect();
        let text = format!(
            "{}{more}: Git itself may show trailers that no runner acts on, and none where one does",
            named.join(", ")
        );
        found.push(Finding::new(Warning, "trailers", text).mend(Mend::ShowTrailers));
        Ok(())
    }

    /// Returns those of the folders that a claim and its run write to that can't be written to.
    fn unwritable(&self) -> Vec<PathBuf> {
        let (common, aynig) = (&self.repo.common_dir, self.repo.aynig_dir());
        // With reftable, `refs/heads` is a plain file that only says that reftable is used.
        let refs = if self.repo.reftable { "reftable" } else { "refs/heads" };
        let places = [
            aynig.clone(),
            common.join("objects"),
            common.join(refs),
            aynig.join("runs"),
            logs::folder(self.repo).0,
            aynig.join("slots"),
            command_copy::folder(self.repo),
            common.join("worktrees"),
        ];
        let pool = self.known_pool();
        let slots = pool.registered().into_iter().map(|n| pool.admin(n));
        let places: Vec<PathBuf> = places.into_iter().chain(slots).collect();
        let mut found = Vec::new();
        for (place, _) in places.iter().filter_map(|place| writable(place).err()) {
            if !found.contains(&place) {
                found.push(place);
            }
        }
        found
    }

    fn check_signing(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let (user, email) = &self.settings.identity;
        let who = format!("{} <{}>", escape(user.as_bytes()), escape(email.as_bytes()));
        found.push(Finding::new(Fine, "identity", format!("commits are written as {who}")));
        if !self.settings.require_signature {
            return Ok(());
        }
        let tree = self.repo.empty_tree()?;
        let message = b"aynig: can it be signed?\n".to_vec();
        let commit = NewCommit { tree, parents: Vec::new(), signature: self.signature(), message };
        found.push(match self.repo.git.commit_signed(&commit) {
            Ok(id) if self.repo.git.verify_commit(id)? => {
                Finding::new(Fine, "signing", "what is written can be signed and verified")
            }
            Ok(_) => Finding::new(Error, "signing", "git verify-commit does not accept our own signature")
                .mend(Mend::ShowSigning),
            Err(error) => Finding::new(Error, "signing", format!("cannot sign: {}", with_causes(&error)))
                .mend(Mend::ShowSigning),
        });
        Ok(())
    }
}

/// Says what is wrong with a folder that can't be written.
fn unwritable(place: &Path) -> Finding {
    let shown = shown(place);
    if !place.is_dir() {
        let text = format!("'{shown}' is no folder");
        return Finding::new(Error, "repository", text).mend(Mend::MoveAside(place.to_owned()));
    }
    let read_only = statvfs(place).is_ok_and(|s| s.flags().contains(FsFlags::ST_RDONLY));
    let ours = place.metadata().is_ok_and(|m| m.uid() == geteuid().as_raw());
    let (text, mend) = match (read_only, ours) {
        (true, _) => {
            (format!("'{shown}' is on a disk that is mounted read-only"), Mend::Remount(place.to_owned()))
        }
        (false, true) => (format!("'{shown}' cannot be written"), Mend::MakeWritable(place.to_owned())),
        (false, false) => (format!("'{shown}' cannot be written"), Mend::TakeOver(place.to_owned())),
    };
    Finding::new(Error, "repository", text).mend(mend)
}

/// Returns the path, or the nearest folder above it that exists.
fn existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|p| p.exists()).map(Path::to_owned)
}
