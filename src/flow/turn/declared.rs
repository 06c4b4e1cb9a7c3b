//! What a turn declares, or why it failed.
//!
//! A turn that its provider answered, or that a user interrupted, goes to `route`. If the provider has too
//! much to do, or its quota is used up, the turn asks for itself again, later and not for ever. Everything
//! else is a failure in the provider's own words, with what mends it: the run stalls, and what came stays
//! unanswered. Implements N4 (the declaration), N9 (every ending), K51 (the wait).

use super::active::{Active, Due, Untold};
use super::changed::Changed;
use super::{Came, Ended, Ground, TurnError};
use crate::agents::ending::Next;
use crate::agents::said::Wait;
use crate::agents::spent::Spent;
use crate::agents::tool_calls::apart;
use crate::agents::{Ending, Told, custom};
use crate::contract::event::Body;
use crate::contract::shown;
use crate::contract::words::{FinalStatus, Provider};
use crate::flow::outcome::{ANSWER, CALL, DIFF_HASH, ENDED, OUTPUT_HASH, REFUSED, SESSION, VERIFICATION};
use crate::flow::turns::Sum;
use crate::protocol::accepts::ACCEPTS;
use crate::protocol::declaration::{Declaration, NotBefore};
use crate::protocol::dialect::Dialect;
use crate::protocol::flow::{IDLE, ROUTE, TURN, accepts};
use crate::protocol::message::Trailer;
use crate::protocol::name::StateName;
use crate::protocol::text::{hex, tail_block};
use crate::protocol::usage::{Usage, Usd};
use sha2::{Digest, Sha256};

/// Most characters of a summary.
const SUMMARY_MAX: usize = 200;
/// Most bytes of a final text.
const TEXT_MAX: usize = 512 << 10;
/// How often in a row a turn waits for its provider, and the longest of these waits, in seconds.
const WAITS_MAX: u32 = 12;
const WAIT_MAX: u64 = 7 * 24 * 3600;
/// The first wait, where the provider does not say how long it takes, and the longest such wait, in seconds.
const FIRST_WAIT: u64 = 60;
const LONGEST_WAIT: u64 = 3600;
/// The trailer that names the program's ending, where the turn did not end well.
const ENDING: &str = "dwp-ending";

/// Returns the agent's last words, its calls of tools included.
pub fn text_of(ground: &Ground<'_>, told: &Told) -> String {
    let text = custom::text_of(told);
    if ground.is_jsonl() { text } else { text.trim_end().to_owned() }
}

impl Active<'_> {
    /// Reports what was used since the last such report.
    pub(super) fn used(&mut self, told: &Told, sum: &mut Option<Sum>) {
        let provider = self.ground.config().provider;
        let spent = match provider {
            // Codex reports the sum over its thread.
            Provider::Codex => {
                let before: Spent = sum.unwrap_or_default().into();
                // A program that ended badly reports no sum, so the sum that is known of its thread is kept.
                if told.spent == Spent::default() {
                    return;
                }
                *sum = Some((&told.spent).into());
                told.spent.since(&before)
            }
            Provider::Claude | Provider::Gemini | Provider::Custom => told.spent.clone(),
        };
        let usage = Usage {
            input: spent.input,
            output: spent.output,
            cost: spent.micro_usd.map(Usd::from_micros),
            model: spent.model.or_else(|| self.ground.program.model.clone()),
            provider: Some(provider.word().to_owned()),
        };
        if usage.input > 0 || usage.output > 0 || usage.cost.is_some() {
            self.events.used(&usage);
        }
    }

    /// Reports the pieces of a message that the program did not end, as one message.
    pub(super) fn say_rest(&mut self, told: &Told, ending: &Ending) {
        let content = told.open.trim_end();
        if content.is_empty() {
            return;
        }
        let (node_id, content) = (self.ground.node, apart(content, false).text);
        let status = (*ending != Ending::Completed).then_some(FinalStatus::Interrupted);
        self.events.say(&Body::MessageFinal { node_id, content, status, tool_calls: None });
    }

    /// Decides how the turn ends.
    pub(super) fn end(&mut self, came: &Came, waits: u32) -> Result<Ended, TurnError> {
        let provider = self.ground.config().provider;
        let asked = self.interrupted && came.ending.name() == "interrupted";
        match came.ending.next() {
            Next::Nothing => self.declare(came, None),
            _ if asked => self.declare(came, Some("interrupted")),
            Next::Later(wait) if waits < WAITS_MAX => {
                let not_before = NotBefore::In(seconds(wait, waits, self.ground.runner.clock.now()));
                self.wait(came, not_before)
            }
            Next::Later(_) | Next::Afresh | Next::Mend => {
                self.drop_calls("its turn failed");
                Ok(Ended::Failed { why: words(provider, &came.ending), mend: self.mend(came) })
            }
        }
    }

    /// Returns what mends an ending.
    fn mend(&self, came: &Came) -> String {
        let told = &came.told;
        let is_mute = self.ground.is_jsonl() && told.text.is_none() && told.open.is_empty();
        if is_mute && matches!(came.ending, Ending::Silent { .. }) {
            // The program may not know that there is only one line, and still wait for the end of its input.
            return "a jsonl program is told one line and its input stays open: it must not read to the end; or set \
                    'aynig.provider.custom.protocol' to raw"
                .to_owned();
        }
        came.ending.mend(self.ground.config().provider)
    }

    fn declare(&mut self, came: &Came, ended: Option<&str>) -> Result<Ended, TurnError> {
        let ground = self.ground;
        let changed = ground.changed()?;
        self.untold.extend(changed.left_out.clone().map(Untold::from));
        if let Some(why) = &changed.left_out {
            self.note(why);
        }
        let verified = if changed.any && ended.is_none() { self.verify()? } else { None };
        // If the verification was interrupted, the outcome still has what was to be verified, but the node
        // does not go on by itself.
        let ended = ended.or(self.interrupted.then_some("interrupted"));
        let whole = text_of(ground, &came.told);
        let text = apart(&whole, ground.is_jsonl()).text;
        let Changed { take, hash, .. } = changed;
        let mut trailers = self.trailers(came, ended);
        trailers.push(Trailer::new(OUTPUT_HASH, hex(&Sha256::digest(text.trim().as_bytes()))));
        trailers.extend(hash.map(|hash| Trailer::new(DIFF_HASH, hash)));
        trailers.extend(verified.map(|signature| Trailer::new(VERIFICATION, signature)));
        for call in &self.calls.wanted {
            trailers.extend(serde_json::to_vec(call).ok().map(|call| Trailer::new(CALL, call)));
        }
        if ended.is_none() {
            trailers.extend(self.for_next_turn());
        }
        let subject = summary(&text).unwrap_or_else(|| ended.unwrap_or("completed").to_owned());
        let declaration =
            Declaration { take, trailers, ..declaration(ROUTE, subject, &text).ok_or(TurnError::NoTurn)? };
        Ok(Ended::Declared(Box::new(writable(declaration))))
    }

    /// Takes out what the node needs another turn for, as trailers, from which `route` tells the node.
    fn for_next_turn(&mut self) -> Vec<Trailer> {
        let (due, untold): (Vec<_>, _) =
            std::mem::take(&mut self.untold).into_iter().partition(|one| one.due != Due::Never);
        self.untold = untold;
        let trailer = |one: &Untold| {
            let key = if one.due == Due::Answered { ANSWER } else { REFUSED };
            serde_json::to_vec(&one.line).ok().map(|line| Trailer::new(key, line))
        };
        due.iter().filter_map(trailer).collect()
    }

    /// Declares that the turn is asked for once more.
    fn wait(&mut self, came: &Came, not_before: NotBefore) -> Result<Ended, TurnError> {
        let provider = self.ground.config().provider;
        let why = words(provider, &came.ending);
        self.drop_calls("its turn has to wait for its provider");
        self.note(&why);
        let subject = summary(&why).unwrap_or_default();
        // The next turn goes on with what this one wrote, as far as the node may change it.
        let take = self.ground.changed()?.take;
        let trailers = self.trailers(came, Some("interrupted"));
        let declaration = declaration(TURN, subject, &why).ok_or(TurnError::NoTurn)?;
        let declaration = Declaration { take, trailers, not_before: Some(not_before), ..declaration };
        Ok(Ended::Declared(Box::new(writable(declaration))))
    }

    fn trailers(&self, came: &Came, ended: Option<&str>) -> Vec<Trailer> {
        let mut trailers = Vec::new();
        trailers.extend(ended.map(|ended| Trailer::new(ENDED, ended)));
        trailers.extend(ended.map(|_| Trailer::new(ENDING, came.ending.name())));
        trailers.extend(
            came.session.as_ref().map(|session| Trailer::new(SESSION, shown::line(session.as_bytes()))),
        );
        trailers
    }
}

/// Ends a turn for which nothing came but an interrupt of an earlier turn.
pub fn nothing() -> Result<Ended, TurnError> {
    let said = declaration(IDLE, "nothing came but an interrupt of a turn that is over".to_owned(), "");
    let trailers = vec![Trailer::new(ACCEPTS, accepts())];
    Ok(Ended::Declared(Box::new(Declaration { trailers, ..said.ok_or(TurnError::NoTurn)? })))
}

/// Returns an ending in words for people: the provider, the ending's name, and the program's own words.
pub fn words(provider: Provider, ending: &Ending) -> String {
    let name = ending.name();
    match ending {
        Ending::MissingProgram { program } => format!("{provider}: {name}: there is no program '{program}'"),
        Ending::Silent { seconds } => format!("{provider}: {name}: it said nothing for {seconds} s"),
        Ending::OutOfTime { seconds } => format!("{provider}: {name}: it took more than {seconds} s"),
        Ending::Crashed { exit, words } => format!("{provider}: {name}: {}{words}", left(exit)),
        Ending::Completed
        | Ending::Interrupted { .. }
        | Ending::LoginEnded { .. }
        | Ending::Quota { .. }
        | Ending::Overload { .. }
        | Ending::Unreachable { .. }
        | Ending::RequestRefused { .. }
        | Ending::LimitReached { .. }
        | Ending::SessionLost { .. }
        | Ending::Misconfigured { .. } => format!("{provider}: {name}: {}", ending.words()),
    }
}

/// Returns an ending as [`words`] does, but on one line. Of what a program printed before it crashed that is
/// the last line, which most often says why.
pub fn in_short(provider: Provider, ending: &Ending) -> String {
    let says = |line: &&str| !line.trim().is_empty();
    if let Ending::Crashed { exit, words } = ending {
        let last = words.lines().rev().find(says).unwrap_or_default();
        return format!("{provider}: {}: {}{last}", ending.name(), left(exit));
    }
    words(provider, ending).lines().find(says).unwrap_or_default().to_owned()
}

fn left(exit: &crate::agents::Exit) -> String {
    use crate::agents::Exit;
    match exit {
        Exit::Code(code) => format!("exit {code}: "),
        Exit::Signal(signal) => format!("signal {signal}: "),
        Exit::Missing(_) | Exit::NotStarted(_) => String::new(),
    }
}

/// Returns how long the provider is waited for, in seconds.
fn seconds(wait: Wait, waits: u32, now: i64) -> u64 {
    let known = match wait {
        // Clocks differ, so a moment that is over by this clock may not be over for the provider.
        Wait::Until(at) => u64::try_from(at.0 / 1000 - now).unwrap_or(0).max(1) + 5,
        Wait::Seconds(seconds) => seconds.max(1),
        Wait::Unknown => (FIRST_WAIT << waits.min(10)).min(LONGEST_WAIT),
    };
    known.min(WAIT_MAX)
}

/// Returns the first line of a text that says something, as a summary; `None` where no line does.
fn summary(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(|line| line.trim_start_matches(['#', ' ', '\t', '*']).trim())
        .find(|line| !line.is_empty())?;
    let line = shown::line(line.as_bytes());
    Some(line.chars().take(SUMMARY_MAX).collect::<String>().trim_end().to_owned())
}

fn declaration(state: &str, subject: String, text: &str) -> Option<Declaration> {
    let end = (0..=TEXT_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let cut = if end < text.len() { format!("\n[of {} bytes]", text.len()) } else { String::new() };
    Some(Declaration {
        state: StateName::new(state).ok()?,
        subject,
        body: format!("{}{cut}", &text[..end]),
        keep_trailers: false,
        trailers: Vec::new(),
        take: Default::default(),
        not_before: None,
        usage: None,
    })
}

/// Returns the declaration with a body that a commit can have: it is indented and escaped if Git would
/// otherwise read something in it.
fn writable(declaration: Declaration) -> Declaration {
    if declaration.message(Dialect::Dwp, &[]).render().is_ok() {
        return declaration;
    }
    let body = tail_block(declaration.body.as_bytes(), usize::MAX / 8);
    Declaration { body, ..declaration }
}
