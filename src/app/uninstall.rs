//! `uninstall`: takes everything of ours out of a repository.
//!
//! The work is `runner::uninstall`'s. Keys of the configuration go last, so that what they say (for example
//! that hooks are off) holds for as long as there is something left that reads them.

use super::config::Flags;
use super::session::Session;
use super::{AppError, mend};
use crate::runner::Silent;
use crate::runner::gc::Collected;
use crate::runner::settings::Settings;
use crate::runner::uninstall::{Belongings, InUse, Uninstalled};
use crate::store::config;
use crate::supervisor::interrupt::Interrupt;

/// What a repository holds of ours.
pub struct Uninstall<'a> {
    session: &'a Session,
    settings: Settings,
    /// Files, worktrees and refs.
    pub belongings: Belongings,
    /// Our keys in the repository's own configuration.
    pub own: Vec<String>,
    /// Our keys for this repository in the account's configuration.
    pub global: Vec<String>,
}

impl<'a> Uninstall<'a> {
    /// Finds what the repository holds, and changes nothing.
    pub fn look(session: &'a Session) -> Result<Self, AppError> {
        let settings = session.settings(&Flags::here())?;
        let belongings = session.reader(&settings, &Interrupt::never()?)?.belongings()?;
        let is_for_this = |entry: &config::Entry| {
            let place = entry.of_ours().and_then(|(place, _)| place);
            place.is_some_and(|place| session.repo.site.is_only_this(place))
        };
        let (mut own, mut global) = (Vec::new(), Vec::new());
        for entry in config::read(&session.repo)? {
            let keys = match entry.protected {
                true if is_for_this(&entry) => &mut global,
                false if entry.of_ours().is_some() => &mut own,
                true | false => continue,
            };
            if !keys.contains(&entry.key) {
                keys.push(entry.key);
            }
        }
        Ok(Self { session, settings, belongings, own, global })
    }

    /// True where there is nothing to remove; work counts where `attempts` says that it goes too.
    pub fn is_empty(&self, attempts: bool) -> bool {
        self.belongings.is_empty(attempts) && self.own.is_empty() && self.global.is_empty()
    }

    /// Refuses while a run lives, or while a working tree has yet to follow its branch.
    pub fn refuse_in_use(&self) -> Result<(), AppError> {
        let interrupt = Interrupt::never()?;
        let in_use = self.session.reader(&self.settings, &interrupt)?.in_use()?;
        in_use.map_or(Ok(()), |why| Err(AppError::InUse(why)))
    }

    /// Mends what an earlier process left, so that it is not taken for something in use.
    pub fn mend(&self) {
        mend::all(self.session);
    }

    /// Removes everything but keys; with `attempts`, also the work that is on no branch. The answer says what
    /// failed.
    pub fn remove(&self, attempts: bool) -> Result<Collected, AppError> {
        let interrupt = Interrupt::never()?;
        let runner = self.session.runner(&self.settings, &interrupt, &Silent)?;
        match runner.remove_belongings(attempts)? {
            Uninstalled::Done(collected) => Ok(collected),
            Uninstalled::InUse(why) => Err(AppError::InUse(why)),
        }
    }

    /// Unsets the repository's own keys, and with `trust` the account's keys for it. To be called last, once
    /// all else is gone.
    pub fn unset_keys(&self, trust: bool) -> Result<(), AppError> {
        for key in &self.own {
            self.session.repo.git.unset_own(&self.session.repo.common_dir, key)?;
        }
        for key in self.global.iter().filter(|_| trust) {
            self.session.repo.git.set_global(key, None)?;
        }
        Ok(())
    }
}

impl std::fmt::Display for InUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |dir: &std::path::Path| crate::protocol::text::escape(dir.as_os_str().as_encoded_bytes());
        match self {
            InUse::Run => f.write_str("a run lives, or its worktree is kept for it"),
            InUse::Checkout(dir) => write!(f, "'{}' does not yet have what its branch holds", shown(dir)),
            InUse::Another(dir) => write!(f, "'{}' is another account's", shown(dir)),
        }
    }
}
