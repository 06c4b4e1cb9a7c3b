//! The caller's orders while a command runs: stop it now, or stop it later unless another order comes first.
//!
//! The second order makes the guardian a dead man's switch: even if the caller hangs in a system call or is
//! itself stopped, its command ends in time. Implements K17, K18.

use super::client::Supervised;
use super::wire::Order;
use std::time::Duration;

impl Supervised {
    /// Asks the guardian to end the command: SIGTERM to every process of the run, SIGKILL after `grace`.
    /// Events still arrive. May be called again with a shorter grace.
    pub fn stop(&mut self, grace: Duration) {
        self.order(Order::Stop(grace));
        // The guardian must also answer: if it does not, it is waited for no longer than ending the command
        // may take.
        self.order(Order::Beat);
        self.pulse.ordered(grace);
    }

    /// Asks the guardian to interrupt the command, as a terminal does: SIGINT to its process group.
    pub fn interrupt(&mut self) {
        self.order(Order::Interrupt);
    }

    /// Has the guardian stop the command by itself after this time (suspended time counts), as
    /// [`Supervised::stop`] does. The last call counts.
    pub fn stop_after(&mut self, after: Duration, grace: Duration) {
        self.order(Order::StopAfter(after, grace));
    }
}
