//! `status`: how branches stand, for people, for scripts, for programs.
//!
//! What came from the repository is escaped before it is shown, in `--porcelain` too; JSON holds it as it is.
//! Implements git-aynig-status(1), K36, K49b, K55.

use super::args::Status;
use super::fail::Failure;
use super::hints::{self, Addressed};
use super::session::{Global, Session};
use super::{exit, output, render, watch};
use crate::app::Exit;
use crate::app::asking::Asking;
use crate::app::events;
use crate::app::govern::next::{GOVERN_RUN, TURN};
use crate::app::status::{
    self, Filter, Group, StatusLine, Statuses, by_a_run, is_paused, left, run_of, stalled_why, standing_name,
    waits,
};
use crate::flow::outcome::BLOCKED;
use crate::protocol::event::{Event, Key, ORIGIN_STATE, RUN_ID, RUNNER_ID};
use crate::protocol::flow::rests;
use crate::protocol::inbox::QUESTION;
use crate::protocol::message::Message;
use crate::protocol::name::{ENDS, STALLED};
use crate::protocol::question::Question;
use crate::protocol::resemble::missed_state;
use crate::protocol::run_events::Progress;
use crate::protocol::text::{escape, shell_word, with_causes};
use crate::runner::settings::CommandsFrom;
use crate::runner::slot::Abandoned;
use crate::runner::survey::{BranchStatus, Standing};
use crate::runner::talk::pause::Paused;
use crate::store::RefName;
use std::path::Path;

/// Runs `git aynig status`.
pub fn run(global: &Global, args: &Status) -> Result<i32, Failure> {
    let since = args.since.as_deref().map(events::since).transpose()?;
    let session = global.open()?;
    let named = args.branches.iter().map(|arg| session.branch(arg)).collect::<Result<_, _>>()?;
    let programs = args.json || args.porcelain;
    let filter = Filter { named, programs, waiting: args.waiting, running: args.running, since };
    if args.watch {
        return watch::run(global, &session, args, &filter);
    }
    let mut found = status::look(&session, &args.branches, args.remote.clone())?;
    found.surveyed.branches.retain(|status| filter.wants(status, &found.asking));
    filter.order(&mut found.surveyed.branches);
    let Statuses { surveyed, asking, pauses, settings, now, .. } = &found;
    if args.json {
        let mut lines = output::Lines::begin();
        surveyed
            .branches
            .iter()
            .all(|s| lines.offer_json(&StatusLine::of(s, (asking, pauses), settings, *now)));
    } else if args.porcelain {
        let mut lines = output::Lines::begin();
        surveyed.branches.iter().all(|s| lines.offer(&porcelain(s, *now)));
    } else {
        let narrowed = filter.waiting || filter.running || since.is_some();
        if surveyed.branches.is_empty() && narrowed && !global.quiet {
            output::note("no branch is as asked for");
        } else if surveyed.branches.is_empty() && args.branches.is_empty() && !global.quiet {
            output::note("no branch's head is a state event");
            let set = || "git aynig set-state <state> -b <branch>".to_owned();
            let hint = session.unasked(settings).map_or_else(set, hints::same_with_remote);
            output::note(&format!("hint: {hint}"));
        }
        people(global, &session, &found, &filter);
        if let Some(name) = found.absent.as_ref().filter(|_| !global.quiet) {
            output::error(&absent(name, session.place()));
        }
    }
    Ok(problems(&session, &found))
}

/// Returns the notice that no state has a command, since the ref that commands come from does not exist.
/// `place` is a folder of the repository.
pub(super) fn absent(name: &RefName, place: &Path) -> String {
    let (name, place) = (escape(name.as_bytes()), hints::place(place));
    format!(
        "nothing runs here: '{name}', where commands come from, does not exist\nhint: push it, or git -C {place} aynig \
         trust --ref <branch>\n"
    )
}

/// Reports the branches that are missing or could not be read, and returns the exit code.
fn problems(session: &Session, found: &Statuses) -> i32 {
    for branch in &found.missing {
        output::error(&Failure::from(session.no_branch(&found.settings, branch)).render());
    }
    let failed = &found.surveyed.failed;
    for (branch, error) in failed {
        output::note(&format!("error: {}: {}", escape(branch.short()), with_causes(error)));
        let mended = hints::of(error, Some(branch));
        mended.iter().for_each(|hint| output::note(&format!("hint: {}", escape(hint.as_bytes()))));
    }
    let failed = failed.iter().map(|(_, error)| Exit::from(error)).max().unwrap_or_default();
    exit::code(if found.missing.is_empty() { failed } else { Exit::Failed })
}

fn people(global: &Global, session: &Session, found: &Statuses, filter: &Filter) {
    let Statuses { surveyed, pauses, settings, now, .. } = found;
    let (all, now, waiting) = (&surveyed.branches, *now, filter.waiting);
    let more = |status: &BranchStatus| match global.verbose {
        0 => String::new(),
        _ => {
            let subject = Message::parse(&status.tip.commit.message).subject;
            format!("  ({} {})", status.tip.id().short(10), escape(&subject))
        }
    };
    let say = |status: &BranchStatus| match waiting {
        true => answered(status, &found.asking, now, settings.remote.as_deref(), global.verbose > 0),
        false => {
            let remote = settings.remote.as_deref();
            told(status, now, remote, global.verbose > 0) + &asked_of(status, &found.asking, now, remote)
        }
    };
    let rows: Vec<[String; 3]> = all
        .iter()
        .map(|s| [escape(s.branch.short()), state(s), say(s) + &owing(found, s) + &more(s)])
        .collect();
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0).min(40);
    let (first, second) = (width(0), width(1));
    let mut lines = output::Lines::begin();
    let shown = rows.iter().all(|[branch, state, words]| {
        lines.offer(format!("{branch:<first$}  {state:<second$}  {words}").trim_end())
    });
    let shown = shown
        && pauses
            .of_any(&filter.named)
            .all(|paused| lines.offer(&held(paused, now, settings.remote.as_deref())));
    drop(lines);
    if shown && settings.commands_from == CommandsFrom::Nowhere && !global.quiet {
        output::note("not trusted: nothing runs here until you say which commands may");
        output::note(&format!("hint: git -C {} aynig trust", hints::place(session.place())));
    }
}

/// Returns what a pause holds, since when, by whom and why, and the command that takes it back.
pub(super) fn held(paused: &Paused, now: i64, remote: Option<&str>) -> String {
    let since = paused.since.map(|at| format!(" for {}", span(now.saturating_sub(at))));
    let by = escape(paused.pause.holder.to_string().as_bytes());
    let what = match &paused.pause.patterns[..] {
        [] => "every branch".to_owned(),
        some => some.iter().map(|one| escape(one.as_bytes())).collect::<Vec<_>>().join(", "),
    };
    let why = paused.pause.reason.lines().next().map(|first| format!(": {}", escape(first.as_bytes())));
    let (since, why, remote) =
        (since.unwrap_or_default(), why.unwrap_or_default(), hints::remote_option(remote));
    format!("paused{since} by {by}: {what}{why}; git aynig resume {}{remote}", paused.id)
}

/// Returns the state as written, escaped; `-` where the head is no state event.
pub(super) fn state(status: &BranchStatus) -> String {
    match status.tip.event.as_ref().map(|e| &e.state) {
        None => "-".to_owned(),
        Some(Ok(state)) => state.to_string(),
        Some(Err((raw, _))) => escape(&raw[..raw.len().min(80)]),
    }
}

fn field(event: Option<&Event>, key: Key) -> Option<String> {
    event.and_then(|e| e.text(key)).map(|v| escape(v.as_bytes()))
}

fn short(run: &str) -> String {
    escape(run.as_bytes()).chars().take(8).collect()
}

pub(super) fn words(status: &BranchStatus, now: i64, remote: Option<&str>, verbose: bool) -> String {
    let event = status.tip.event.as_ref();
    let mut words = match &status.standing {
        Standing::NoState => match missed_state(&status.tip.commit.message) {
            Some(missed) => format!("no state event: {}", render::missed_state(&missed)),
            None => "no state event".to_owned(),
        },
        Standing::InvalidState(_, why) => format!("unusable state: {why}"),
        Standing::Waits if state(status) == STALLED && event.is_some_and(by_a_run) => {
            let what = field(event, ORIGIN_STATE).unwrap_or_default();
            let run = run_of(status).map(|r| format!(" in run {}", short(r))).unwrap_or_default();
            let why = stalled_why(status).map(|why| format!(": {}", escape(why.as_bytes())));
            let retry = Addressed::new(&status.branch, remote).call("retry");
            format!("{what}{run}{}; waits for {retry}", why.unwrap_or_default()).trim_start().to_owned()
        }
        Standing::Waits if event.is_some_and(is_paused) => {
            format!("ended by a pause: git aynig resume{} asks for it again", hints::remote_option(remote))
        }
        Standing::Waits if ENDS.contains(&&*state(status)) => "no command: an end".to_owned(),
        Standing::Waits if event.is_some_and(rests) => "waits for a message".to_owned(),
        Standing::Waits if !status.alike.is_empty() => {
            format!("no command: waits for a person; {}", render::did_you_mean(&status.alike))
        }
        Standing::Waits => "no command: waits for a person".to_owned(),
        Standing::Ready => match &status.command {
            Some(command) => format!("ready: .aynig/{}", escape(command.as_bytes())),
            None => "ready".to_owned(),
        },
        Standing::NotTrusted => match &status.command {
            Some(command) => format!("not trusted: the branch has .aynig/{}", escape(command.as_bytes())),
            None => "not trusted".to_owned(),
        },
        Standing::LeftOut => "left out by 'aynig.branches'".to_owned(),
        Standing::Unusable(path, why) => {
            format!("unusable command: .aynig/{}: {why}", escape(path.as_bytes()))
        }
        Standing::HopLimit { hop, max } => {
            format!("not dispatched: {hop} dispatches led here, the limit is {max}")
        }
        Standing::Held(by) => format!("held: {by}"),
        Standing::Leased { until, malformed, abandoned } => {
            let lease = format!("its lease ends in {}", span(until.saturating_sub(now).max(0)));
            let at = Addressed::new(&status.branch, remote);
            let cancel = at.call("cancel");
            let began = status.began.filter(|_| abandoned.is_none());
            let running = began.map(|at| format!("running {}", span(now.saturating_sub(at))));
            // A runner renews its lease until the command ends. When the lease ends is news only where no
            // runner renews it.
            let ends = (verbose || running.is_none() || *malformed).then_some(lease);
            let told = std::iter::once(holder(event)).chain(running).chain(ends);
            let told: Vec<String> = told.chain(status.progress.as_ref().map(progress)).collect();
            let gone = abandoned.map(|why| match why {
                Abandoned::ByItsCommand | Abandoned::ByItsRunner => format!("; {why}: {cancel} ends it now"),
                Abandoned::WithItsWork => {
                    let retry = at.call("retry");
                    format!("; {why}: once the run is stalled, {retry} lands it where it was finished, else asks again")
                }
            });
            let gone = gone.unwrap_or_default();
            format!("{}{}{gone}", told.join(", "), unbelieved(*malformed))
        }
        Standing::Expired { since, malformed } => {
            let ago = now.saturating_sub(*since);
            format!("{}, expired {} ago{}", holder(event), span(ago), unbelieved(*malformed))
        }
    };
    if let Some(seconds) = waits(status) {
        let since = span(seconds);
        words += &match status.hooks_off {
            true => {
                let tick = Addressed::new(&status.branch, remote).call("tick");
                format!("; waits since {since}: hooks are off ('aynig.hooks'), {tick} takes it on")
            }
            false => format!(
                "; waits for a worktree since {since}: 'aynig.jobs' says how many commands run at once"
            ),
        };
    }
    if let Some(attempt) = &status.attempt {
        words += &format!("; work kept in {}", escape(attempt.as_bytes()));
    }
    if let Some((busy, dir)) = &status.busy {
        words += &format!("; being {busy} in '{}'", escape(dir.as_os_str().as_encoded_bytes()));
    }
    words
}

/// Returns how far a command says that it is: the share of the work that is done, and its words, escaped.
fn progress(told: &Progress) -> String {
    let text = escape(told.text.as_bytes());
    let percent = told.ratio.map(|ratio| format!("{:.0}%", ratio * 100.0));
    match (percent, text.is_empty()) {
        (Some(percent), true) => percent,
        (Some(percent), false) => format!("{percent}: {text}"),
        (None, _) => format!("it says: {text}"),
    }
}

/// Returns [`words`], followed by what the run printed last.
pub(super) fn told(status: &BranchStatus, now: i64, remote: Option<&str>, verbose: bool) -> String {
    let words = words(status, now, remote, verbose);
    // For a run that no runner works on any more, what counts is the command that frees the branch.
    let is_abandoned = matches!(&status.standing, Standing::Leased { abandoned: Some(_), .. });
    let last = status.last_line.as_ref().filter(|_| status.progress.is_none() && !is_abandoned);
    last.map_or(words.clone(), |line| format!("{words}: {}", escape(line.as_bytes())))
}

/// Returns [`told`] with since when the branch waits for a person, and the command that answers; for a
/// question also what is asked.
pub(super) fn answered(
    status: &BranchStatus,
    asking: &Asking,
    now: i64,
    remote: Option<&str>,
    verbose: bool,
) -> String {
    let (words, group) = (told(status, now, remote, verbose), Group::of(status));
    let asks = asked_of(status, asking, now, remote);
    let since = status.tip.commit.committed.map(|at| format!("{}: ", span(now.saturating_sub(at))));
    match group {
        Group::Waiting => {
            let is_asked_again = matches!(status.standing, Standing::HopLimit { .. });
            let known = if is_asked_again { Some(state(status)) } else { status.alike.first().cloned() };
            let at = Addressed::new(&status.branch, remote);
            let event = status.tip.event.as_ref();
            // A node of a flow went in a circle, or too far, and so did its flow: resuming the flow lets both
            // go on.
            let stopped = at.resume_flow().filter(|_| state(status) == BLOCKED);
            let rests = status.standing == Standing::Waits && !state(status).starts_with(TURN);
            let governed = event.filter(|event| rests && event.message.last(GOVERN_RUN).is_some());
            let asked = event.is_some_and(|event| event.message.last(QUESTION).is_some());
            let set = match governed {
                _ if asked && !asks.is_empty() => asks,
                // What lets a governed run go on depends on its state, which its own `status` reads.
                Some(_) => {
                    format!("; git aynig govern status{} -b {}{asks}", hints::remote_option(remote), at.word)
                }
                None if stopped.is_some() => format!("; {}{asks}", stopped.unwrap_or_default()),
                None => format!("; {}{asks}", at.set(&known.unwrap_or_else(|| "<state>".to_owned()))),
            };
            format!("{}{words}{set}", since.unwrap_or_default())
        }
        Group::Stalled => format!("{}{words}{asks}", since.unwrap_or_default()),
        Group::Running | Group::Queued | Group::Ready | Group::Done | Group::Other => words + &asks,
    }
}

/// Returns the command that answers a question, with a placeholder that lists its choices: a shell that is
/// given the line as it stands declines it, so that no user chooses by accident. It names the branch or, where
/// the branch asks `more` than one question, the question's id.
pub(super) fn answer_call(question: &Question, at: &Addressed, more: bool) -> String {
    // A choice that looks like an option stands behind the end of the options.
    let dashes = if question.choices.iter().any(|choice| choice.starts_with('-')) { "-- " } else { "" };
    let choices = question.choices.iter().map(|choice| shell_word(choice.as_bytes()));
    let choices = choices.collect::<Vec<_>>().join("|");
    let choices = if choices.is_empty() { "answer" } else { &choices };
    let call = at.call("answer");
    let answer = match call.strip_suffix(&*at.word).filter(|_| more) {
        Some(call) => format!("{call}{}", question.id),
        None => call,
    };
    format!("{answer} {dashes}<{choices}>")
}

/// Returns what a branch asks, the command that answers, and for how long each question has been open; then
/// the questions that are not believed.
fn asked_of(status: &BranchStatus, asking: &Asking, now: i64, remote: Option<&str>) -> String {
    let all = asking.open_of(&status.branch);
    let at = Addressed::new(&status.branch, remote);
    let told = all.iter().map(|asked| {
        let text = escape(asked.question.text.lines().next().unwrap_or_default().as_bytes());
        let answer = answer_call(&asked.question, &at, all.len() > 1);
        let since = asked.asked.map(|at| format!(" (for {})", span(now.saturating_sub(at))));
        format!("; it asks '{text}': {answer}{}", since.unwrap_or_default())
    });
    let unsigned = asking.unsigned_of(&status.branch);
    told.chain(unsigned.iter().map(|unsigned| format!("; not believed: {unsigned}"))).collect()
}

/// Returns which answers a node of a flow owes, and which it waits for.
fn owing(found: &Statuses, status: &BranchStatus) -> String {
    let told = found.owed.iter().map(|owed| {
        let about = escape(owed.about.as_bytes());
        let name = |(_, name): &(RefName, String)| escape(name.as_bytes());
        match (owed.from.0 == status.branch, owed.to.0 == status.branch) {
            (true, _) => format!("; owes {} an answer: {about}", name(&owed.to)),
            (false, true) => format!("; waits for the answer of {}: {about}", name(&owed.from)),
            (false, false) => String::new(),
        }
    });
    told.collect()
}

fn holder(event: Option<&Event>) -> String {
    let state = field(event, ORIGIN_STATE).unwrap_or_else(|| "?".to_owned());
    let run = event.and_then(|e| e.text(RUN_ID)).map_or_else(|| "unknown".to_owned(), short);
    let runner = field(event, RUNNER_ID).unwrap_or_else(|| "unknown".to_owned());
    format!("{state} in run {run} by {runner}")
}

fn unbelieved(malformed: bool) -> &'static str {
    if malformed { " (malformed lease, judged by observation)" } else { "" }
}

/// Returns a number of seconds as people say it, in at most two units.
pub(super) fn span(seconds: i64) -> String {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let text = humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// Returns a line of `--porcelain`: fields separated by tabs, `-` for none. New fields are only ever added at
/// the end.
fn porcelain(status: &BranchStatus, now: i64) -> String {
    let event = status.tip.event.as_ref();
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    [
        escape(status.branch.short()),
        status.tip.id().to_string(),
        state(status),
        standing_name(&status.standing).to_owned(),
        or_dash(status.command.as_ref().map(|c| escape(c.as_bytes()))),
        or_dash(field(event, ORIGIN_STATE)),
        or_dash(run_of(status).map(|r| escape(r.as_bytes()))),
        or_dash(field(event, RUNNER_ID)),
        or_dash(left(&status.standing, now).map(|(left, _)| left.to_string())),
        or_dash(status.attempt.as_ref().map(|name| escape(name.as_bytes()))),
        or_dash(event.map(|e| e.hop().to_string())),
        or_dash(waits(status).map(|seconds| seconds.to_string())),
    ]
    .join("\t")
}
