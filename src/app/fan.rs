//! `fan`, `choose` and `compare`: several attempts at one thing, side by side: schema `aynig.compare/1`.
//!
//! [`fan`] reads what was typed. [`Change::fan`] and [`Change::choose_attempt`] write; [`compare`] only
//! reads, and works in a repository that is not trusted. Implements K61.

use super::change::Change;
use super::config::Flags;
use super::diff::{self, PastError};
use super::session::Session;
use super::shown::{Shown, short};
use super::{AppError, Misuse, mend};
use crate::protocol::declaration::parse_trailer;
use crate::protocol::event::STALLED_RUN;
use crate::protocol::fan::ATTEMPTS_MAX;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::usage::{Usage, total, usage_of};
use crate::runner::change::ChangeError;
pub use crate::runner::change::fan::{Chosen, Fanned};
use crate::runner::{Runner, Tip};
use crate::store::RefName;
use crate::store::git_compare::Changed;
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The schema of the line of a compared attempt.
pub const COMPARE_SCHEMA: &str = "aynig.compare/1";
/// What each attempt is told besides the trigger: one list of trailers per attempt.
pub type Fan = Vec<Vec<Trailer>>;

/// How many attempts are made where the user gives no number.
const ATTEMPTS: usize = 3;
/// Most commits of a branch that are read.
const COMMITS_MAX: usize = 100_000;

/// Returns what each attempt is told. Each text of `each` is `key=value,value`, with one value per attempt,
/// or one for all.
pub fn fan(count: Option<usize>, each: &[String]) -> Result<Fan, AppError> {
    let mut lists = Vec::new();
    for text in each {
        let wrong = || Misuse::Trailer(format!("'{text}' is no '<key>=<value>,<value>..'"));
        let (key, values) = text.split_once('=').ok_or_else(wrong)?;
        let key = if key.starts_with("dwp-") { key.to_owned() } else { format!("dwp-{key}") };
        let made = values.split(',').map(|value| parse_trailer(&format!("{key}: {value}")));
        let made: Vec<Trailer> =
            made.collect::<Result<_, _>>().map_err(|why| Misuse::Trailer(why.to_string()))?;
        lists.push(made);
    }
    let several = lists.iter().map(Vec::len).filter(|len| *len > 1).max();
    let count = count.or(several).unwrap_or(ATTEMPTS);
    if count == 0 || count > ATTEMPTS_MAX {
        return Err(Misuse::Trailer(format!("{count} attempts are none, or more than {ATTEMPTS_MAX}")).into());
    }
    if let Some(wrong) = lists.iter().find(|list| list.len() > 1 && list.len() != count) {
        let key = wrong.first().map_or("", |trailer| &trailer.key);
        return Err(
            Misuse::Trailer(format!("'{key}' has {} values for {count} attempts", wrong.len())).into()
        );
    }
    let own = |at: usize| lists.iter().filter_map(|list| list.get(at).or(list.first()).cloned()).collect();
    Ok((0..count).map(own).collect())
}

impl Change<'_> {
    /// Has several attempts answer a branch's trigger.
    pub fn fan(&self, branch: Option<&OsStr>, fan: &Fan) -> Result<Fanned, AppError> {
        let branch = self.session.branch_or_current(branch, "fan <branch>")?;
        self.with(|runner| runner.fan(&branch, fan, self.inside.as_ref()))
    }

    /// Has the fanned branch go on with what this attempt made.
    pub fn choose_attempt(&self, branch: &OsStr) -> Result<Chosen, AppError> {
        let branch = self.session.branch(branch)?;
        self.with(|runner| runner.choose(&branch))
    }

    fn with<T>(&self, work: impl FnOnce(&Runner<'_>) -> Result<T, ChangeError>) -> Result<T, AppError> {
        let interrupt = Interrupt::never()?;
        let runner = self.session.runner(&self.settings, &interrupt, &crate::runner::Silent)?;
        work(&runner).map_err(|error| AppError::Change { error, remote: self.settings.remote.clone() })
    }
}

/// An attempt as it stands, compared with a base.
pub struct Compared {
    /// The attempt's branch.
    pub branch: RefName,
    /// The commit of its work: its head, or where it stalled the work that was kept.
    pub work: ObjectId,
    /// The commit that its work is compared with.
    pub base: ObjectId,
    /// The state of its head, where that has a valid one.
    pub state: Option<String>,
    /// How many of its runs have ended.
    pub runs: usize,
    /// How long those runs took together, in seconds.
    pub seconds: i64,
    /// What those runs used.
    pub used: Usage,
    /// How much its work changes.
    pub changed: Changed,
}

/// Compares these branches with what they have in common. A fanned branch alone stands for its attempts, and
/// an attempt alone for all attempts of its group.
pub fn compare(
    session: &Session,
    names: &[OsString],
    remote: Option<String>,
) -> Result<Vec<Compared>, AppError> {
    let settings = session.settings(&Flags { remote: remote.clone(), ..Flags::default() })?;
    mend::all(session);
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    let mut branches = match names {
        [] => vec![session.branch_or_current(None, "compare <branch>")?],
        names => names.iter().map(|name| session.branch(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let failed = |error| AppError::Change { error, remote: settings.remote.clone() };
    let mut base = None;
    if let [one] = &branches[..] {
        let group = runner.group_of(one).map_err(failed)?;
        let group = match group {
            Some(group) => group,
            None if runner.fresh_tip(one)?.is_none() => {
                return Err(failed(ChangeError::NoBranch(one.clone())));
            }
            None => return Err(failed(ChangeError::NotFanned(one.clone()))),
        };
        base = group.tip.commit.parents.first().copied();
        branches = group.attempts.iter().map(|(name, _)| RefName::branch(name)).collect();
    }
    let mut tips = Vec::new();
    for branch in branches {
        match runner.fresh_tip(&branch)? {
            Some(tip) => tips.push((branch, tip)),
            None if names.len() > 1 => return Err(session.no_branch(&settings, &branch)),
            // An attempt whose branch was deleted is left out.
            None => {}
        }
    }
    let heads: Vec<ObjectId> = tips.iter().map(|(_, tip)| tip.id()).collect();
    let base = match base {
        Some(base) => base,
        None => session
            .repo
            .git
            .common_base(&heads)?
            .ok_or_else(|| Misuse::Trailer("these branches have no common history".into()))?,
    };
    tips.into_iter().map(|(branch, tip)| one(session, &runner, branch, &tip, base)).collect()
}

fn one(
    session: &Session,
    runner: &Runner<'_>,
    branch: RefName,
    tip: &Tip,
    base: ObjectId,
) -> Result<Compared, AppError> {
    let remote = runner.settings.remote.clone();
    let stalled = tip.event.as_ref().is_some_and(|event| event.text(STALLED_RUN).is_some());
    let found = stalled.then(|| diff::find(session, Some(OsStr::from_bytes(branch.short())), remote));
    let work = match found.transpose() {
        Ok(found) => found.and_then(|found| found.work).unwrap_or(tip.id()),
        Err(AppError::Past(
            PastError::NoRun { .. } | PastError::NoSuch { .. } | PastError::Running { .. },
        )) => tip.id(),
        Err(error) => return Err(error),
    };
    let (mut ended, mut first, mut used) = (HashMap::new(), HashMap::new(), Vec::new());
    let (mut at, mut met) = (tip.clone(), HashSet::new());
    while at.id() != base && met.len() < COMMITS_MAX && met.insert(at.id()) {
        if let Some(event) = &at.event {
            let run = event.run_id().or_else(|| event.text(STALLED_RUN)).map(str::to_owned);
            match run {
                Some(run) if event.is_working() => drop(first.insert(run, at.commit.committed)),
                Some(run) => {
                    let is_first = ended.insert(run, at.commit.committed).is_none();
                    used.extend(is_first.then(|| usage_of(&event.message)).into_iter().flatten());
                }
                None => {}
            }
        }
        let Some(parent) = at.commit.parents.first() else { break };
        if runner.store.history_ends_at(at.id())? {
            break;
        }
        at = runner.store.read_commit(*parent)?.into();
    }
    let took = |(run, end): (&String, &Option<i64>)| Some(((*end)? - first.get(run).copied()??).max(0));
    Ok(Compared {
        changed: session.repo.git.changed_between(base, work)?,
        state: tip.event.as_ref().and_then(|event| event.state_name()).map(ToString::to_string),
        runs: ended.len(),
        seconds: ended.iter().filter_map(took).sum(),
        used: total(&used),
        branch,
        work,
        base,
    })
}

/// A compared attempt as programs read it.
#[derive(Serialize)]
pub struct CompareLine<'a> {
    schema: &'static str,
    branch: Cow<'a, str>,
    commit: Shown<&'a ObjectId>,
    base: Shown<&'a ObjectId>,
    state: Option<&'a str>,
    runs: usize,
    seconds: i64,
    files: u64,
    insertions: u64,
    deletions: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: Option<f64>,
}

impl<'a> CompareLine<'a> {
    /// Makes the line of an attempt.
    pub fn new(of: &'a Compared) -> Self {
        Self {
            schema: COMPARE_SCHEMA,
            branch: short(&of.branch),
            commit: Shown(&of.work),
            base: Shown(&of.base),
            state: of.state.as_deref(),
            runs: of.runs,
            seconds: of.seconds,
            files: of.changed.files,
            insertions: of.changed.insertions,
            deletions: of.changed.deletions,
            input_tokens: of.used.input,
            output_tokens: of.used.output,
            cost_usd: of.used.cost.and_then(|cost| cost.to_string().parse().ok()),
        }
    }
}
