//! One run of an agent's program: from its start to its end, with everything that happens meanwhile.
//!
//! One loop waits for the program's lines, the next look at the inbox, people's answers, the limits, and a
//! request to stop, and none of these starves another: a program that floods is still stopped, and one that
//! hangs is ended. A program is ended in steps, as on a ladder: by what it understands, SIGINT, SIGTERM,
//! SIGKILL. Time during which a person is asked something does not count as the program's. What lines mean is
//! decided in `lines`. Implements N4 (interrupts), N8 (the wait), N9 (limits, the ladder).

use super::TurnError;
use super::active::{About, Active};
use super::program::{Launch, Program, Step};
use crate::agents::ending::{End, Exit};
use crate::agents::{Ending, Stop, Talk, Told};
use crate::contract::event::Body;
use crate::protocol::inbox::{Kind, MessageId};
use std::time::{Duration, Instant};

/// The longest time between two steps of the ladder; the time is a fifth of `aynig.killGrace` where that is
/// less.
const STEP_MAX: Duration = Duration::from_secs(2);
/// How long a program may take to exit after its last line.
const LEAVE: Duration = Duration::from_secs(10);
/// The longest single wait of the loop; nothing depends on it.
const NAP: Duration = Duration::from_secs(1);

/// What came of a round.
pub struct Round {
    /// How the program ended.
    pub ending: Ending,
    /// What the program reported.
    pub told: Told,
}

/// A program that runs, and the conversation with it.
pub struct Talking<'a> {
    pub(super) talk: Box<dyn Talk>,
    pub(super) program: Program<'a>,
    /// Whether the program is told what came of its calls while it runs.
    pub(super) answers_calls: bool,
    /// How many calls the program waits for.
    pub(super) open_calls: u32,
    /// When the program said its last line; `None` before that.
    pub(super) over: Option<Instant>,
    /// Since when the program has printed nothing, and below it since when the program has run, in both cases
    /// without the time spent waiting for a person.
    silent_since: Instant,
    since: Instant,
    stopping: Option<Stopping>,
}

/// How far the program is up the ladder that ends it.
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
    /// Starts a program, and follows it to its end.
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
            // A signal that came is known, and its descriptor stays readable, so it is not watched any more.
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
        // A program that was ended only because it did not exit after its last line has ended well, if that
        // line says so.
        let lingered = talking.over.is_some() && talking.stopping.is_some() && stopped.is_none();
        let exit = if lingered { Exit::Code(0) } else { exit };
        let end = End { exit, stderr: &talking.program.stderr, stopped };
        Round { ending: talking.talk.ending(&end), told: talking.talk.told().clone() }
    }

    /// Does what is due at `now`, whether the program prints or not.
    fn duties(&mut self, talking: &mut Talking<'_>, now: Instant) -> Result<(), TurnError> {
        self.events.look(now);
        if self.look_at <= now {
            self.look_at = now + self.looks.every();
            if self.looks.is_due() {
                let asked = self.asking.is_open();
                self.hear_answers(Some(talking))?;
                if asked && !self.asking.is_open() {
                    // The time that a person took does not count as the program's.
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

    /// Returns why the program is to end now, if it is: a user asked for it, it is silent, its time is over,
    /// or it said its last line and does not exit (`Some(None)`).
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

    /// Returns the time between two steps of the ladder.
    fn step(&self) -> Duration {
        (self.ground.runner.settings.kill_grace / 5).min(STEP_MAX)
    }

    /// Returns when there is something to do next.
    fn due(&self, talking: &Talking<'_>, now: Instant) -> Instant {
        let settings = &self.ground.program;
        let limit =
            |since: Instant, limit: Option<Duration>| limit.and_then(|limit| since.checked_add(limit));
        let limits = match talking.stopping.as_ref() {
            Some(stopping) => [Some(stopping.next), None, None],
            // While a person is asked, no limit counts. A limit that is over by then must not keep this loop
            // awake.
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

    /// Returns how long a person was waited for, and ends that wait.
    fn waited(&mut self, now: Instant) -> Duration {
        self.waits_since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Looks for messages that tell this turn to stop. A look that fails is repeated later.
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
            // An interrupt without a text is heard by this turn; one with a text is left to the next turn.
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
        // Only the first reason counts.
        let why = self.stopping.as_ref().map_or(why, |stopping| stopping.why);
        self.stopping = Some(Stopping { why, rung, next });
    }

    /// Ends the conversation if the program has reported its verdict and waits for no answer to a call.
    pub(super) fn rest(&mut self, now: Instant) {
        if self.open_calls == 0 && self.over.is_none() && self.talk.told().verdict.is_some() {
            self.over = Some(now);
            self.program.close();
        }
    }

    /// Starts the program's silence anew, because what was done for it took time.
    pub(super) fn served(&mut self, now: Instant) {
        self.silent_since = now;
    }

    /// True once the program is being ended.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }
}
