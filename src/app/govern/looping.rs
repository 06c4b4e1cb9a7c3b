//! Taking turns in a plain folder until a person is needed: [`crate::run_loop`], with the driver's workers. Implements
//! G8, G9.

use super::GovernError;
use super::driver::{Driver, Sent, Worked};
use super::next::role_after;
use crate::governed::{
    Accepted, Config, GateKind, GovernedError, State, Turn, out_of_time, set_aside_result,
};
use crate::run_loop::{
    Callbacks, Dispatch, Dispatched, Failure, LoopEvent, LoopOptions, LoopReport, run_loop,
};

/// What a loop came to.
pub(crate) struct Looped {
    pub report: LoopReport,
    /// The errors behind the refusals and failures that the report holds as text.
    pub failures: Vec<GovernError>,
}

/// Takes turns until the run is completed or waits for a person, or until `max_turns` turns were accepted.
/// With `approve`, gates are approved as they come. Events go to `hears` as they happen, and what is doubtful
/// about results that were accepted goes to `doubts`.
pub(crate) fn drive(
    driver: Driver<'_>,
    approve: bool,
    max_turns: u64,
    hears: &dyn Fn(&LoopEvent),
    doubts: &dyn Fn(&[String]),
) -> Looped {
    let mut answers = Answers { driver, approve, hears, doubts, failures: Vec::new() };
    let options = LoopOptions { max_turns: Some(max_turns), reject_invalid: true };
    let report = run_loop(driver.root, driver.config, &mut answers, &options);
    Looped { report, failures: answers.failures }
}

struct Answers<'a> {
    driver: Driver<'a>,
    approve: bool,
    hears: &'a dyn Fn(&LoopEvent),
    doubts: &'a dyn Fn(&[String]),
    failures: Vec<GovernError>,
}

impl Answers<'_> {
    fn dispatched(
        &mut self,
        Dispatch { state, turn, bundle_path, .. }: &Dispatch<'_>,
    ) -> Result<Dispatched, GovernError> {
        let driver = self.driver;
        driver.alone(state, turn.role())?;
        Ok(match driver.dispatch(state, turn, bundle_path)? {
            Sent::Stopped(stop) => {
                Dispatched::Blocked(format!("hook '{}' said no: {}", stop.hook_name, stop.message))
            }
            Sent::NotOurs => Dispatched::Blocked(format!("{} has a worker of its own", turn.role())),
            Sent::Worked(Worked::Staged) => Dispatched::Staged,
            Sent::Worked(Worked::Wrong(_, errors)) => {
                Dispatched::Reject(errors.into_iter().next().unwrap_or_default())
            }
            Sent::Worked(Worked::OutOfTime(time)) => {
                let error = out_of_time(driver.root, driver.config, turn.id(), &time);
                let why = error.to_string();
                self.failures.push(error.into());
                set_aside_result(driver.root, turn)?;
                Dispatched::BlockedAlready(why)
            }
        })
    }
}

impl Callbacks for Answers<'_> {
    fn select_role(&mut self, state: &State, config: &Config) -> Result<Option<String>, Failure> {
        Ok(role_after(state, config))
    }

    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<Dispatched, Failure> {
        self.dispatched(dispatch).map_err(|failed| {
            let told = failed.to_string();
            self.failures.push(failed);
            told.into()
        })
    }

    fn approve_gate(&mut self, _: GateKind, _: &State) -> Result<bool, Failure> {
        Ok(self.approve)
    }

    fn on_event(&mut self, event: &LoopEvent) -> Result<(), Failure> {
        (self.hears)(event);
        Ok(())
    }

    fn after_accept(&mut self, _: &Turn, accepted: &Accepted) -> Result<(), Failure> {
        (self.doubts)(&accepted.validation.warnings);
        Ok(())
    }

    fn on_refusal(&mut self, error: GovernedError) {
        self.failures.push(error.into());
    }
}
