//! Reports as lines for people; `app::report` has them as JSON.
//!
//! Everything that came from a repository is escaped before a person sees it. Implements K36.

use super::exit;
use super::hints::{self, Addressed};
use super::output;
use super::ran;
use crate::app::Exit;
use crate::app::report::TickLine;
use crate::protocol::decide::{Held, Idle, Overspent, Paused, Per};
use crate::protocol::landing::NotLanded;
use crate::protocol::name::STALLED;
use crate::protocol::pause::Holder;
use crate::protocol::resemble::Missed;
use crate::protocol::text::with_causes;
use crate::protocol::text::{escape, shell_word};
use crate::runner::RunnerError;
use crate::runner::report::{Note, Recovered, Refusal, Report, Skip, Unforwarded, Verdict};
use crate::runner::slot::Abandoned;
use crate::store::RefName;
use std::ffi::OsStr;
use std::path::PathBuf;

fn shown(branch: &RefName) -> String {
    escape(branch.short())
}

/// Returns a path, escaped for people.
fn place(path: &std::path::Path) -> String {
    escape(path.as_os_str().as_encoded_bytes())
}

/// Returns the first few of many names, escaped, and how many more there are.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let first = names.iter().take(SHOWN).map(|n| escape(n.as_bytes())).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => first,
        Some(more) => format!("{first} and {more} more"),
    }
}

pub(super) fn full(name: &RefName) -> String {
    String::from_utf8_lossy(name.as_bytes()).into_owned()
}

/// A report as text: a line about its branch, and what to print to standard error.
pub struct Text {
    /// The result; `None` where there is nothing to say.
    pub line: Option<String>,
    /// Warnings and hints.
    pub notes: Vec<String>,
}

fn messages_of(n: usize) -> String {
    if n == 1 { "1 message".to_owned() } else { format!("{n} messages") }
}

/// Returns the hint that ends what holds a head back, where a command does that.
fn held_hint(at: &Addressed, state: &str, by: &Held) -> Option<String> {
    match by {
        Held::Paused(Paused { holder: Holder::Flow(flow), .. }) => {
            Some(format!("hint: git aynig flow show {}", shell_word(flow.as_bytes())))
        }
        Held::Paused(_) => Some(format!("hint: {}", at.resume())),
        Held::NotBefore(Err(_)) => Some(format!("hint: {}", at.set(state))),
        Held::After(unmet) if !unmet.unreadable.is_empty() => Some(format!("hint: {}", at.set(state))),
        Held::Budget(Overspent { per, spent, limit }) => {
            let key = match per {
                Per::Day => "budgetPerDay",
                Per::Branch => "budgetPerBranch",
            };
            Some(format!("hint: git config --global aynig.{key} {}", spent.plus(*limit)))
        }
        Held::NotBefore(Ok(_)) | Held::After(_) => None,
    }
}

/// Returns a report for people. `named` is true where the user asked for the branch by name: only then does
/// the text say that there is nothing to do.
pub fn text(report: &Report, named: bool) -> Text {
    let at = Addressed::of(report);
    let branch = &*at.shown;
    let mut notes: Vec<String> = report.notes.iter().filter_map(|n| note(&at, n)).collect();
    let mut lines: Vec<String> = report.recovered.iter().map(|r| recovered(branch, r)).collect();
    let line = match &report.verdict {
        Verdict::Idle(Idle::NoState) => {
            named.then(|| format!("{branch}: nothing to do: the head is no state event"))
        }
        Verdict::Idle(Idle::NoCommand { state }) => {
            if state.as_str() == STALLED {
                notes.push(format!("hint: {}", at.call("retry")));
            }
            named.then(|| format!("{branch}: nothing to do: state '{state}' has no command"))
        }
        Verdict::Idle(Idle::InvalidState { raw, why }) => {
            notes.push(format!("hint: {}", at.set("<state>")));
            Some(format!("{branch}: state '{}' is not usable: {why}", escape(&raw[..raw.len().min(80)])))
        }
        Verdict::Idle(Idle::HopLimit { state, hop, max }) => {
            notes.push(format!("hint: {}", at.set(state.as_str())));
            Some(format!(
                "{branch}: '{state}' is not dispatched: {hop} dispatches led here, the limit is {max}"
            ))
        }
        Verdict::Idle(Idle::Held { state, by }) => {
            notes.extend(held_hint(&at, state.as_str(), by));
            Some(format!("{branch}: '{state}' is not dispatched: {by}"))
        }
        Verdict::Unusable { state, path, why, home } => {
            notes.push(format!("hint: {}", at.mend(home, path, why, state.as_str())));
            let path = escape(path.as_bytes());
            Some(format!("{branch}: the command of '{state}' cannot be used: .aynig/{path}: {why}"))
        }
        Verdict::Skipped(Skip::Missing) => {
            notes.push(format!("hint: {}", at.list()));
            let of = report.remote.as_deref().map(|remote| format!(" on '{}'", escape(remote.as_bytes())));
            Some(format!("{branch}: no such branch{}", of.unwrap_or_default()))
        }
        Verdict::Skipped(Skip::Busy(busy, dir)) => {
            let dir_word = shell_word(dir.as_os_str().as_encoded_bytes());
            notes.push(format!("hint: git -C {dir_word} status"));
            Some(format!("{branch}: skipped: it is being {busy} in '{}'", place(dir)))
        }
        Verdict::Skipped(Skip::Interrupted) => None,
        Verdict::Leased { left, run_id, runner_id, malformed, abandoned, .. } => {
            (named || *malformed).then(|| {
                let hint = match abandoned {
                    Some(Abandoned::WithItsWork) => Some(format!("once it is stalled: {}", at.call("retry"))),
                    Some(Abandoned::ByItsCommand | Abandoned::ByItsRunner) => Some(at.call("cancel")),
                    None => malformed.then(|| at.call("cancel")),
                };
                notes.extend(hint.map(|hint| format!("hint: {hint}")));
                let run = escape(run_id.as_deref().unwrap_or("unknown").as_bytes());
                let by =
                    runner_id.as_ref().map(|id| format!(" by {}", escape(id.as_bytes()))).unwrap_or_default();
                let gone = abandoned.map(|why| format!("; {why}")).unwrap_or_default();
                format!("{branch}: leased by run {run}{by} for {}s more{gone}", (*left).max(0))
            })
        }
        Verdict::LostRace => named.then(|| {
            notes.push(format!("hint: {}", at.call("status")));
            format!("{branch}: another runner took it first")
        }),
        Verdict::NoSlot => Some(format!("{branch}: all worktrees are in use")),
        Verdict::Refused(refusal) => {
            notes.extend(refusal_hint(refusal, &at));
            Some(format!("{branch}: {refusal}"))
        }
        Verdict::WouldRun { state, command } => {
            Some(format!("{branch}: would run .aynig/{command} for '{state}'"))
        }
        Verdict::WouldDeliver { state, messages } => {
            Some(format!("{branch}: would deliver {}, which brings '{state}'", messages_of(*messages)))
        }
        Verdict::Undelivered { messages, by } => {
            let waits = messages_of(*messages);
            Some(format!("{branch}: {waits} not delivered: something is in the way: {by}"))
        }
        Verdict::Unlanded { onto, why, .. } => {
            notes.extend(
                why.paths().iter().map(|path| format!("{branch}: conflict in '{}'", escape(path.as_bytes()))),
            );
            if let NotLanded::Unmade(why) = why {
                notes.push(format!("{branch}: {}", escape(why.as_bytes())));
            }
            notes.push(format!("hint: {}", at.call("retry")));
            Some(format!("{branch}: land stalled: '{}': {why}", shown(onto)))
        }
        Verdict::WouldRecover => Some(format!("{branch}: would recover an expired lease")),
        Verdict::Ran(ran) => {
            notes.extend(ran::notes(&at, ran));
            Some(ran::line(branch, ran))
        }
        Verdict::Failed(error) => {
            notes.extend(failed(&at, report, error));
            None
        }
    };
    lines.extend(line);
    Text { line: (!lines.is_empty()).then(|| lines.join("\n")), notes }
}

fn recovered(branch: &str, recovered: &Recovered) -> String {
    let kept = recovered.attempt.as_ref().map(|name| format!("; its work is kept in {}", full(name)));
    format!(
        "{branch}: {} stalled: the lease of run {} expired{}",
        escape(recovered.state.as_bytes()),
        escape(recovered.run_id.as_bytes()),
        kept.unwrap_or_default()
    )
}

fn refusal_hint(refusal: &Refusal, at: &Addressed) -> Option<String> {
    match refusal {
        Refusal::NotTrusted => Some("hint: git aynig trust".to_owned()),
        Refusal::Changed => Some(format!("hint: {}", at.call("tick"))),
        Refusal::Branch(key) => {
            let key = shell_word(key.as_bytes());
            Some(format!("hint: git config --global --add {key} {}", at.word))
        }
        Refusal::Target { onto, key } => {
            let (key, onto) = (shell_word(key.as_bytes()), shell_word(onto.short()));
            Some(format!("hint: git config --global --add {key} {onto}"))
        }
        Refusal::NoCommandsRef(_) => Some("hint: git aynig trust --ref <branch>".to_owned()),
        Refusal::Unsigned => Some(format!("hint: git verify-commit {}", at.here())),
        Refusal::SignedElsewhere { .. } => Some(format!("hint: {}", at.set("<state>"))),
        Refusal::NoSandbox { .. } => Some("hint: git config --global aynig.sandbox off".to_owned()),
        Refusal::CannotSign(_) => Some("hint: git config --get-regexp '^(gpg|user)\\.'".to_owned()),
    }
}

/// True for an error that came of a claim which may stand: no verdict about it arrived, or the disk did not say
/// that it took the claim.
fn may_be_claimed(error: &RunnerError) -> bool {
    matches!(error, RunnerError::Unknown { .. })
        || matches!(error, RunnerError::Store(inner) if inner.is_unsynced())
}

/// Returns what failed, how that leaves the branch, and what mends it.
fn failed(at: &Addressed, report: &Report, error: &RunnerError) -> Vec<String> {
    let mut hints = hints::of(error, Some(&report.branch));
    let left = match (&report.claimed, error) {
        (Some(run), _) => {
            format!("run {run} had claimed it: its lease, where it is still there, ends by itself")
        }
        (None, error) if may_be_claimed(error) => {
            "it may be claimed: a lease that no runner holds ends by itself".to_owned()
        }
        (None, _) => "nothing was claimed".to_owned(),
    };
    if report.claimed.is_some() || may_be_claimed(error) {
        hints.push(at.call("status"));
    }
    let branch = &at.shown;
    let said = [format!("error: {branch}: {}", with_causes(error)), format!("{branch}: {left}")];
    said.into_iter().chain(hints.iter().map(|h| format!("hint: {}", escape(h.as_bytes())))).collect()
}

/// Returns a note for people, the branch first.
pub fn note(at: &Addressed, note: &Note) -> Option<String> {
    let branch = &at.shown;
    let text = match note {
        Note::InvalidDeclaration(line, why) => {
            format!("ignored '{}': {}", escape(line.as_bytes()), escape(why.as_bytes()))
        }
        Note::MoreInvalid(n) => format!("ignored {n} more invalid SET_STATE lines"),
        Note::TrailersLeftOut(names) => {
            format!("trailers too large for the environment were left out: {}", some(names))
        }
        Note::NestedRepositories(names) => {
            format!("repositories inside the worktree were left out: {}", some(names))
        }
        Note::SubmodulesKept(folder, names) => {
            let run: String = folder.file_name().map(OsStr::to_string_lossy).unwrap_or_default().chars().take(8).collect();
            let publish = |name: &PathBuf| {
                let git = format!("git --git-dir={}", shell_word(folder.join(name).as_os_str().as_encoded_bytes()));
                format!("\nhint: {git} log --all --not --remotes\nhint: {git} push origin HEAD:refs/heads/aynig-{run}")
            };
            let hints: String = names.iter().map(publish).collect();
            let kept = place(folder);
            format!("commits in submodules that their remotes are not known to have are kept in '{kept}'{hints}")
        }
        Note::RepositoriesKept(folder, names) => {
            let look = |name: &PathBuf| {
                let git_dir = shell_word(folder.join(name).as_os_str().as_encoded_bytes());
                format!("\nhint: git --git-dir={git_dir} log --all")
            };
            let hints: String = names.iter().map(look).collect();
            let what = match names.is_empty() {
                true => "what no tree can hold is",
                false => "repositories inside the worktree are",
            };
            format!("{what} kept in '{}'{hints}", place(folder))
        }
        Note::NotCommitted { state, path, home } => {
            let hint = at.commit(home, "git add .aynig", state.as_str());
            return Some(format!("{branch}: .aynig/{path} is in the working tree, not in {}\n{hint}", home.shown()));
        }
        Note::StateCommitted(dialect, state) => {
            format!(
                "its command committed '{}state: {state}' and declared nothing: that commit is no outcome; 'git aynig \
                 set-state {state}' in the command writes one, and a SET_STATE line declares it",
                dialect.prefix()
            )
        }
        Note::NearlyAState(state, meant) => {
            format!("no command answers '{state}': {}", did_you_mean(meant))
        }
        Note::NearlyAnEvent(missed) => missed_state(missed),
        Note::Delivered { messages, state } => {
            format!("{} delivered, which brought '{state}'", messages_of(*messages))
        }
        Note::PassedOver(name, why) => {
            format!("'{}' is not delivered: {}", escape(name.as_bytes()), escape(why.as_bytes()))
        }
        Note::NotInRef { state, path, home } => {
            let take = format!("git checkout {} -- {}", at.here(), shell_word(format!(".aynig/{path}").as_bytes()));
            let hint = at.commit(home, &take, state.as_str());
            let from = home.shown();
            format!("the branch has .aynig/{path}, but commands come from {from}, which has not\n{hint}")
        }
        Note::Landed(onto, commit) => format!("landed on '{}' as {}", shown(onto), commit.short(8)),
        Note::HasLanded(onto) => format!("'{}' has all of it", shown(onto)),
        Note::LandedAgainBy => format!("{} asks for it again", at.land()),
        Note::AskedAgainBy(state) => format!("{} asks for it again, without its text and trailers", at.set(state.as_str())),
        Note::CommandsRestored => {
            "the copy of .aynig/ that commands start from had been changed; it was written anew".to_owned()
        }
        Note::LogsElsewhere(path) => {
            format!(
                "'.aynig/logs' is a symbolic link or a file, or has a .gitignore that lets logs into commits; they are in '{}'",
                place(path)
            )
        }
        Note::LogFailed(what) => format!("a log could not be written: {}", escape(what.as_bytes())),
        Note::OutputHeldOpen => "a background process held the command's output open".to_owned(),
        Note::NotRemoved(dir, words) => {
            format!("in '{}', which follows the branch: {}", place(dir), escape(words.as_bytes()))
        }
        Note::CheckoutBlocked(dir, by) => format!(
            "'{}' could not follow the branch: {}\nhint: {}, then git aynig status",
            place(dir),
            escape(by.to_string().as_bytes()),
            hints::of_obstacle(by)
        ),
        Note::Blocked(by) => format!(
            "{}: {}\nhint: {}, then git aynig status",
            by.kind(),
            escape(by.to_string().as_bytes()),
            hints::of_obstacle(by)
        ),
        Note::RenewalFailed(why) => {
            format!("its lease could not be looked at or renewed, which is tried again: {}", escape(why.as_bytes()))
        }
        Note::WorkNotKept(why) => {
            format!(
                "its work could not be kept yet and is still in its worktree: {}\nhint: git aynig gc",
                escape(why.as_bytes())
            )
        }
        Note::OutcomeKept(name) => format!(
            "its outcome is kept in {}; once the run is stalled, {} lands it",
            full(name),
            at.call("retry")
        ),
        Note::LeftOutKept(name) => format!("what its outcome leaves out is kept in {}", full(name)),
        Note::NotPublished(name, why) => {
            let hint = at.push(&full(name)).map(|push| format!("\nhint: {push}")).unwrap_or_default();
            format!("its work is kept here alone, in {}: {}{hint}", full(name), escape(why.as_bytes()))
        }
        Note::SetAside(dir, why) => format!(
            "what a run left could not be kept, and is as it was in '{}' (start no program there that believes it, as Git \
             does): {}",
            place(dir),
            escape(why.as_bytes())
        ),
        Note::SlotLeft(dir, why) => format!(
            "the worktree '{}' could not be made ready for another run: {}\nhint: git aynig doctor",
            place(dir),
            escape(why.as_bytes())
        ),
        Note::MalformedLease => {
            "its lease has an unusable date or length and is judged by observation".to_owned()
        }
        Note::FoundAttempt(name, whose) => {
            format!("work of an earlier run on '{}' was found and is kept in {}", shown(whose), full(name))
        }
        Note::DeclarationIgnored => {
            "what its command declared is ignored: in the aynig dialect the command commits the next state itself"
                .to_owned()
        }
        Note::NotForwarded(id, why) => {
            format!("commit {} of the command did not become the head: {}", id.short(8), unforwarded(why))
        }
        Note::NotPrepared(why) => format!("its command was not started: {}", escape(why.as_bytes())),
    };
    Some(format!("{branch}: {text}"))
}

fn unforwarded(why: &Unforwarded) -> String {
    match why {
        Unforwarded::ForeignHead => "it does not descend from the lease".to_owned(),
        Unforwarded::ForeignLease => "it says 'working' without the run's id".to_owned(),
        Unforwarded::ForeignEvent => "it carries the id of another run, or of a recovery".to_owned(),
        Unforwarded::OtherDialect => "it is a state event of the dwp dialect".to_owned(),
        Unforwarded::Checkout(by) => {
            format!("{}: {}\nhint: {}", by.kind(), escape(by.to_string().as_bytes()), hints::of_obstacle(by))
        }
        Unforwarded::Unreadable(why) => escape(why.as_bytes()),
    }
}

/// Prints a report as one JSON object. Where the user asked for the branch by name, the exit code that it states is
/// another.
pub fn json(report: &Report, named: bool) {
    let at = Addressed::of(report);
    let notes = report.notes.iter().filter_map(|n| note(&at, n)).collect();
    let code = exit::code(Exit::of_report(report, named));
    output::line(&output::json(&TickLine::new(report, code, notes)));
}

/// Prints the text of a report; with `quiet`, warnings and hints only where it failed.
pub fn print(report: &Report, text: &Text, quiet: bool) {
    if let Some(line) = &text.line {
        output::line(line);
    }
    let failed = matches!(report.verdict, Verdict::Failed(_));
    if !quiet || failed {
        text.notes.iter().for_each(|n| output::note(n));
    }
}

/// Returns a question that offers names that are nearly what was written.
pub fn did_you_mean(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("did you mean {}?", names.join(" or "))
}

/// Returns what a commit without a state has in place of one.
pub fn missed_state(missed: &Missed) -> String {
    match missed {
        Missed::Key(said, meant) => {
            format!(
                "'{}' is not the trailer that names a state: did you mean '{meant}'?",
                escape(said.as_bytes())
            )
        }
        Missed::Outside(key, state) => {
            format!("'{key}: {state}' is not in the message's last paragraph, so it is no trailer")
        }
    }
}
