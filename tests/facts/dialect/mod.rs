//! The `aynig` dialect: commands that write their own commits, and what a runner makes of them.
//!
//! `Life::event_at` with `aynig-state` makes the trigger; `COMMIT` is the shell function by which commands
//! commit, `beat` their heartbeat and `state <name>` their outcome.

mod checkout;
mod endings;
mod flow;
mod own;
mod pure;
mod support_of;
mod verbs;
