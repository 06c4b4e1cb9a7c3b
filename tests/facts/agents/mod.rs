//! Agents' programs: how they are called, and every recorded transcript of theirs read again.
//!
//! `tests/corpus/agents/` holds what the real programs printed: arguments, exit status, standard output, the end of
//! standard error. `transcripts.txt` here says what is read from each; `AYNIG_BLESS=1` writes it anew.

mod calls;
mod gates;
mod hostile;
mod replay;
mod report;
mod tool_calls;
mod tools;
mod transcripts;
