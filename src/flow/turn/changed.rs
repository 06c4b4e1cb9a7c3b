//! What a turn changed: judged by its paths, whichever program changed them, to decide what of it the turn's
//! outcome takes.
//!
//! If all changes are allowed, the outcome is what the slot holds. If some are not, the outcome takes the
//! allowed paths and nothing else; all of the changes are kept as an attempt, and the agent is told with its
//! next prompt. Implements N10.

use super::{Ground, TurnError};
use crate::contract::limits::{Beyond, beyond};
use crate::contract::shown;
use crate::protocol::declaration::{Rest, Take, is_inside};
use crate::protocol::id::ObjectId;
use crate::protocol::text::hex;
use crate::runner::talk::TalkError;
use crate::store::{FOLDER, TreeEntry};
use sha2::{Digest, Sha256};

/// Most paths that a declaration takes.
const TAKEN_MAX: usize = 1000;
/// Most paths that an agent is told of.
const TOLD_MAX: usize = 20;

/// What a turn changed.
#[derive(Debug, Default)]
pub struct Changed {
    /// The part of the changes that the outcome takes.
    pub take: Take,
    /// What the agent and people are told of the rest; `None` where there is none.
    pub left_out: Option<String>,
    /// The hash by which the changes are compared with those of other turns; `None` where nothing changed
    /// that may change.
    pub hash: Option<String>,
    /// Whether the outcome takes any file that changed.
    pub any: bool,
}

/// A path that changed, and what it holds now; `None` where it is gone.
struct Path {
    path: Vec<u8>,
    now: Option<(u32, ObjectId)>,
}

impl Ground<'_> {
    /// Judges what this turn changed.
    pub(super) fn changed(&self) -> Result<Changed, TurnError> {
        let work = self.runner.own_work(self.inside)?;
        let mut paths = Vec::new();
        self.compare(&mut Vec::new(), Some(work.before), Some(work.now), &mut paths)?;
        let (mode, may) = (self.kept.flow.run.global_mode, &self.config().capabilities);
        let judged = paths.iter().map(|changed| (changed, beyond(&changed.path, mode, may)));
        let (allowed, beyond): (Vec<_>, Vec<_>) = judged.partition(|(_, beyond)| beyond.is_none());
        let mut changed = Changed { any: !allowed.is_empty(), hash: hash(&allowed), ..Changed::default() };
        if let Some((_, Some(first))) = beyond.first() {
            changed.take.rest = Rest::Kept;
            let names = allowed.iter().map(|(changed, _)| std::str::from_utf8(&changed.path).ok());
            let names: Option<Vec<String>> =
                names.map(|name| name.filter(|n| is_inside(n)).map(str::to_owned)).collect();
            // If a path can't be named, or there are too many, all of them are kept with the rest: nothing is
            // lost, and nothing slips in.
            changed.take.paths = names.filter(|names| names.len() <= TAKEN_MAX).unwrap_or_default();
            changed.any = !changed.take.paths.is_empty();
            let lost = if changed.any { 0 } else { allowed.len() };
            changed.left_out = Some(self.left_out(*first, &beyond, lost));
        }
        Ok(changed)
    }

    /// Returns in words what of a turn's changes is not part of its outcome; `lost` more paths may be
    /// changed, but were not taken either.
    fn left_out(&self, first: Beyond, beyond: &[(&Path, Option<Beyond>)], lost: usize) -> String {
        let named = beyond.iter().take(TOLD_MAX).map(|(changed, _)| shown::line(&changed.path));
        let named: Vec<String> = named.collect();
        let more = beyond.len().saturating_sub(TOLD_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let run = &self.inside.run_id;
        let lost = match lost {
            0 => String::new(),
            _ => format!(
                ". With them nothing was taken of {lost} paths that may change: beside what may not, at most {TAKEN_MAX} \
                 are, and none whose name is no UTF-8. All of it is in there; do it again without the others"
            ),
        };
        format!(
            "not part of your work, kept under refs/aynig/attempts/{run}-rejected ({}): {}{more}{lost}",
            first.why(),
            named.join(", ")
        )
    }

    /// Collects the paths of files that differ between two trees.
    fn compare(
        &self,
        at: &mut Vec<u8>,
        before: Option<ObjectId>,
        now: Option<ObjectId>,
        paths: &mut Vec<Path>,
    ) -> Result<(), TurnError> {
        let read = |tree: Option<ObjectId>| -> Result<Vec<TreeEntry>, TurnError> {
            let read = tree.map_or(Ok(Vec::new()), |tree| self.runner.store.read_tree(tree));
            Ok(read.map_err(TalkError::from)?)
        };
        if before == now {
            return Ok(());
        }
        let (before, now) = (read(before)?, read(now)?);
        let mut names: Vec<&[u8]> = before.iter().chain(&now).map(|entry| &*entry.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let of = |side: &[TreeEntry]| {
                side.iter().find(|entry| entry.name == name).map(|entry| (entry.mode, entry.id))
            };
            let (old, new) = (of(&before), of(&now));
            if old == new {
                continue;
            }
            let length = at.len();
            at.extend_from_slice(name);
            let is_folder = |side: &Option<(u32, ObjectId)>| side.is_some_and(|(mode, _)| mode == FOLDER);
            let file = |side: Option<(u32, ObjectId)>| side.filter(|_| !is_folder(&side));
            if file(old) != file(new) {
                paths.push(Path { path: at.clone(), now: file(new) });
            }
            let folder = |side: Option<(u32, ObjectId)>| side.filter(|_| is_folder(&side)).map(|(_, id)| id);
            if folder(old) != folder(new) {
                at.push(b'/');
                self.compare(at, folder(old), folder(new), paths)?;
            }
            at.truncate(length);
        }
        Ok(())
    }
}

/// Returns a hash of the paths that changed and of what they hold now; `None` where nothing changed.
fn hash(changed: &[(&Path, Option<Beyond>)]) -> Option<String> {
    if changed.is_empty() {
        return None;
    }
    let mut all = Sha256::new();
    for (changed, _) in changed {
        all.update((changed.path.len() as u64).to_be_bytes());
        all.update(&changed.path);
        match changed.now {
            Some((mode, id)) => all.update([&mode.to_be_bytes()[..], id.as_bytes()].concat()),
            None => all.update(b"gone"),
        }
    }
    Some(hex(&all.finalize()))
}
