//! The command that verifies what a turn changed, and the hash by which its failures are compared.
//!
//! The account configures it as `aynig.flowVerify`. It runs in the slot after a turn that changed files. Its
//! failure is no failure of the turn: a node that goes in a circle with it is found by the hash. An interrupt
//! ends it, and the turn's changes are kept all the same. Implements N11 (the signature).

use super::TurnError;
use super::active::Active;
use crate::contract::stall::signature;
use crate::protocol::text::hex;
use crate::supervisor::bounded::{Bounded, Output, Verdict};
use sha2::{Digest, Sha256};
use std::process::Command;
use std::time::Duration;

/// How long the verification may take.
const TIME: Duration = Duration::from_secs(1800);
/// Most bytes of its output that are looked at.
const PRINTED_MAX: usize = 1 << 20;

impl Active<'_> {
    /// Runs the verification. Returns the hash by which a failure is compared with others; `None` where it
    /// did not fail, was interrupted, or is not configured.
    pub(super) fn verify(&mut self) -> Result<Option<String>, TurnError> {
        let ground = self.ground;
        let Some((program, args)) = ground.verify.split_first() else { return Ok(None) };
        self.events.progress("verifies");
        let mut command = Command::new(program);
        command.args(args).current_dir(&ground.start).env_clear().envs(ground.check_env.iter().cloned());
        let stop = ground.stops();
        let mut bounded = Bounded::new(command);
        (bounded.stdout, bounded.stderr) = (Output::Capture(PRINTED_MAX), Output::Capture(PRINTED_MAX));
        bounded.own_group = true;
        bounded.confine = ground.confinement();
        bounded.interrupt = Some(&stop);
        bounded.deadline = ground.runner.clock.instant().checked_add(TIME);
        let ended = bounded.run()?;
        ground.prove_leads()?;
        if let Verdict::Interrupted { .. } = ended.verdict {
            self.note("verification: it was interrupted");
            self.hear_interrupts();
            self.interrupted = true;
            return Ok(None);
        }
        if ended.status.success() {
            return Ok(None);
        }
        let printed = [ended.stdout.bytes, ended.stderr.bytes].concat();
        self.note(&format!("verification: {}", ended.status));
        let signature = signature(ended.status.code().unwrap_or(-1), &printed);
        Ok(Some(hex(&Sha256::digest(signature.as_bytes()))))
    }
}
