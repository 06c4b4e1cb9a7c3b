//! One run of an agent's program: from its start to its end, with everything that happens meanwhile.
//!
//! One loop waits for the program's lines, the next look at the inbox, the answers of people, the limits and a request to stop, and
//! each starves no other: a program that floods is still stopped, one that hangs is ended. Ending it is a ladder: what it
//! understands, SIGINT, SIGTERM, SIGKILL, a step apart. Time in which a person is asked something is no time of the
//! program's. What lines mean is `lines`'. Implements N4 (interrupts), N8 (the wait), N9 (limits, the ladder).

use super::TurnError;
use super::active::{About, Active};
use super::program::{Launch, Program, Step};
use crate::agents::ending::{End, Exit};
use crate::agents::{Ending, Stop, Talk, Told};
use crate::contract::event::Body;
use crate::protocol::inbox::{Kind, MessageId};
use std::time::{Duration, Instant};

/// The longest step of the ladder; it is a fifth of `aynig.killGrace` where that is less.
const STEP_MAX: Duration = Duration::from_secs(2);
/// How long a program that has said its last line may take to leave.
const LEAVE: Duration = Duration::from_secs(10);
/// The longest wait for anything: nothing depends on it.
const NAP: Duration = Duration::from_secs(1);

/// What came of a round.
pub struct Round {
    /// How it ended.
    pub ending: Ending,
    /// What the program told.
    pub told: Told,
}

/// A program that is talked to.
pub struct Talking<'a> {
    pub(super) talk: Box<dyn Talk>,
    pub(super) program: Program<'a>,
    /// Whether it is told what came of its calls while it runs.
    pub(super) answers_calls: bool,
    /// Calls of its that it waits for.
    pub(super) open_calls: u32,
    /// It said its last line, then.
    pub(super) over: Option<Instant>,
    /// Since when it says nothing, and since when it runs, without what waited for a person.
    silent_since: Instant,
    since: Instant,
    stopping: Option<Stopping>,
}

/// How far up the ladder a program's end is.
struct Stopping {
    why: Option<Stop>,
    rung: Rung,
    next: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rung {
    Asked,
    Interrupted,
    Ended,
}

impl<'t> Active<'t> {
    /// Starts a program, and sees it to its end.
    ///
    /// # Errors
    /// Where it can't be supervised, or the lease is lost.
    pub fn round(&mut self, launch: &Launch<'_>, talk: Box<dyn Talk>) -> Result<Round, TurnError> {
        let clock = self.ground.runner.clock;
        let now = clock.instant();
        let answers_calls = self.ground.is_jsonl();
        let program = Program::start(launch, clock)?;
        let mut talking = Talking {
            talk,
            program,
            answers_calls,
            open_calls: 0,
            over: None,
            silent_since: now,
            since: now,
            stopping: None,
        };
        let exit = loop {
            let now = clock.instant();
            self.duties(&mut talking, now)?;
            let until = self.due(&talking, now);
            let signals = self.ground.runner.interrupt;
            // One that came is known: it stays readable.
            let mut watched = Vec::new();
            watched.extend((!self.terminated).then(|| signals.fd()));
            let door = self.door.clone();
            watched.extend(door.iter().map(|door| door.fd()));
            match talking.program.next(until, &watched)? {
                Step::Line(line) => {
                    talking.silent_since = clock.instant();
                    self.line(&mut talking, line)?;
                }
                Step::Complaint(line) => {
                    talking.silent_since = clock.instant();
                    self.complaint(line);
                }
                Step::Ended(exit) => break exit,
                Step::Watched if self.terminated || signals.signal().is_none() => {
                    self.knocked(&mut talking)?
                }
                Step::Watched => {
                    self.terminated = true;
                    self.events.progress("it is told to stop");
                    let grace = self.step();
                    talking.program.stop(grace);
                    talking.stop_now(Some(Stop::Asked), now + grace, Rung::Ended);
                }
                Step::Deadline => {}
            }
        };
        self.ground.prove_leads()?;
        Ok(self.ended(talking, exit))
    }

    fn ended(&mut self, talking: Talking<'_>, exit: Exit) -> Round {
        for (asked, about) in self.asking.withdraw(|about| matches!(about, About::Gate(_))) {
            self.unasked(&asked, &about, "the program that asked is gone");
        }
        self.events.flush();
        let closed = self.reporter.close();
        self.events.say_all(&closed);
        // What is answered from now on is told with the next prompt.
        self.replies.clear();
        let stopped = talking.stopping.as_ref().and_then(|stopping| stopping.why);
        // One that said its last line and was ended for not leaving has ended well, if its last line said so.
        let lingered = talking.over.is_some() && talking.stopping.is_some() && stopped.is_none();
        let exit = if lingered { Exit::Code(0) } else { exit };
        let end = End { exit, stderr: &talking.program.stderr, stopped };
        Round { ending: talking.talk.ending(&end), told: talking.talk.told().clone() }
    }

    /// What has to be looked at, whatever the program prints.
    fn duties(&mut self, talking: &mut Talking<'_>, now: Instant) -> Result<(), TurnError> {
        self.events.look(now);
        if self.look_at <= now {
            self.look_at = now + self.looks.every();
            if self.looks.is_due() {
                let asked = self.asking.is_open();
                self.hear_answers(Some(talking))?;
                if asked && !self.asking.is_open() {
                    // What a person took is not the program's.
                    talking.silent_since = now;
                    talking.since += self.waited(now);
                }
                self.hear_interrupts();
            }
        }
        if self.asking.is_open() {
            self.waits_since.get_or_insert(now);
        }
        if talking.stopping.is_none() {
            if let Some(why) = self.reason(talking, now) {
                self.begin_stop(talking, why, now);
            }
            return Ok(());
        }
        self.climb(talking, now);
        Ok(())
    }

    /// Why the program is to end now, if it is: by a user's word, for its silence, for its time, or as it said all and stays.
    fn reason(&self, talking: &Talking<'_>, now: Instant) -> Option<Option<Stop>> {
        let beyond = |since: Instant, limit: Option<Duration>| {
            limit.filter(|limit| now.saturating_duration_since(since) >= *limit)
        };
        if self.interrupted {
            return Some(Some(Stop::Asked));
        }
        if talking.over.is_some_and(|over| beyond(over, Some(LEAVE)).is_some()) {
            return Some(None);
        }
        if self.asking.is_open() {
            return None;
        }
        let settings = &self.ground.program;
        let silence =
            beyond(talking.silent_since, settings.silence).map(|limit| Stop::Silence(limit.as_secs()));
        let time = || beyond(talking.since, settings.time).map(|limit| Stop::Time(limit.as_secs()));
        silence.or_else(time).map(Some)
    }

    fn begin_stop(&mut self, talking: &mut Talking<'_>, why: Option<Stop>, now: Instant) {
        let step = self.step();
        let polite = talking.talk.interrupt();
        if polite.is_empty() || why.is_none() {
            talking.program.interrupt();
            talking.stop_now(why, now + step, Rung::Interrupted);
        } else {
            talking.program.say(&polite);
            talking.stop_now(why, now + step, Rung::Asked);
        }
    }

    fn climb(&mut self, talking: &mut Talking<'_>, now: Instant) {
        let step = self.step();
        let Some(stopping) = &mut talking.stopping else { return };
        if stopping.next > now {
            return;
        }
        stopping.next = now + step;
        match stopping.rung {
            Rung::Asked => {
                stopping.rung = Rung::Interrupted;
                talking.program.interrupt();
            }
            Rung::Interrupted | Rung::Ended => {
                stopping.rung = Rung::Ended;
                talking.program.stop(step);
            }
        }
    }

    /// A step of the ladder.
    fn step(&self) -> Duration {
        (self.ground.runner.settings.kill_grace / 5).min(STEP_MAX)
    }

    /// When there is something to do next.
    fn due(&self, talking: &Talking<'_>, now: Instant) -> Instant {
        let settings = &self.ground.program;
        let limit =
            |since: Instant, limit: Option<Duration>| limit.and_then(|limit| since.checked_add(limit));
        let limits = match talking.stopping.as_ref() {
            Some(stopping) => [Some(stopping.next), None, None],
            // While a person is asked no limit counts, and what is over by then must not keep this awake.
            None if self.asking.is_open() => [None, None, talking.over.map(|over| over + LEAVE)],
            None => [
                limit(talking.silent_since, settings.silence),
                limit(talking.since, settings.time),
                talking.over.map(|over| over + LEAVE),
            ],
        };
        let looks = [self.look_at, now + NAP].into_iter().chain(self.events.due());
        let first = limits.into_iter().flatten().chain(looks).min();
        first.unwrap_or(now).max(now + Duration::from_millis(1))
    }

    /// How long a person was waited for, since that began.
    fn waited(&mut self, now: Instant) -> Duration {
        self.waits_since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Looks for what tells this turn to stop. A look that fails is made again.
    pub(super) fn hear_interrupts(&mut self) {
        let ground = self.ground;
        let Ok(kind) = Kind::new(Kind::INTERRUPT) else { return };
        let heard = &self.interrupts;
        let known = |id: MessageId, _| heard.contains(&id);
        let Ok(found) = ground.runner.inbox(&ground.inside.branch, Some(&kind), &known) else { return };
        for waiting in found {
            let Ok(letter) = waiting.letter else { continue };
            self.interrupts.push(waiting.id);
            self.interrupted = true;
            // One that says nothing more is heard by this turn; what another says is the next one's.
            if letter.text.trim().is_empty() {
                let _ = ground.runner.take(ground.inside, waiting.id);
            }
        }
    }

    fn complaint(&mut self, line: crate::agents::lines::Line) {
        use crate::agents::lines::Line;
        let body: Body = match line {
            Line::Whole(raw) | Line::Torn(raw) => self.reporter.stderr(&raw),
            Line::TooLong(bytes) => self.reporter.stderr(format!("a line of {bytes} bytes").as_bytes()),
        };
        self.say_log(&body);
    }
}

impl Talking<'_> {
    fn stop_now(&mut self, why: Option<Stop>, next: Instant, rung: Rung) {
        // The first reason is the reason.
        let why = self.stopping.as_ref().map_or(why, |stopping| stopping.why);
        self.stopping = Some(Stopping { why, rung, next });
    }

    /// Its turn may be over: it is, where it said its last word and waits for no answer.
    pub(super) fn rest(&mut self, now: Instant) {
        if self.open_calls == 0 && self.over.is_none() && self.talk.told().verdict.is_some() {
            self.over = Some(now);
            self.program.close();
        }
    }

    /// What was done for it took time: its silence begins now.
    pub(super) fn served(&mut self, now: Instant) {
        self.silent_since = now;
    }

    /// True once it is being ended.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }
}
