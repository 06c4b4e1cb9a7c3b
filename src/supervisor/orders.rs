//! What a caller orders while a command runs: to stop it, now or unless it hears otherwise.
//!
//! The second makes the guardian a dead man's switch: a caller that hangs in a call, or is itself stopped, need
//! do nothing for its command to end in time. Implements K17, K18.

use super::client::Supervised;
use super::wire::Order;
use std::time::Duration;

impl Supervised {
    /// Asks the guardian to end the command: SIGTERM to every process of the run, SIGKILL after `grace`.
    /// Events go on. May be called again, with a shorter grace.
    pub fn stop(&mut self, grace: Duration) {
        self.order(Order::Stop(grace));
        // One that does not answer that either is not waited for longer than it may take.
        self.order(Order::Beat);
        self.pulse.ordered(grace);
    }

    /// Asks the guardian to interrupt the command, as a terminal does: SIGINT to its process group.
    pub fn interrupt(&mut self) {
        self.order(Order::Interrupt);
    }

    /// Has the guardian do that by itself after a time, suspend counted. The last call counts.
    pub fn stop_after(&mut self, after: Duration, grace: Duration) {
        self.order(Order::StopAfter(after, grace));
    }
}
