//! Detects a node that goes in a circle: the same output, diff or failure, again and again.
//!
//! A node is judged by what its outcomes say, so no state can be lost: every clone that reads the same
//! outcomes judges the same. A limit of n means n repetitions after the first time, as the contract's
//! original counts. Implements N11.

use super::event::StallEvidence;

/// How many repetitions count as a circle, unless the configuration says otherwise.
pub const LIMIT: u32 = 20;

/// What one turn left for a comparison with other turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signals {
    /// The turn's run id.
    pub turn: String,
    /// The hash of its final text; `None` if it had none.
    pub output: Option<String>,
    /// The hash of what it changed; `None` if it changed nothing.
    pub diff: Option<String>,
    /// The signature of a verification that failed; `None` if it passed or was not run.
    pub verification: Option<String>,
    /// The turn in a few words.
    pub summary: String,
}

/// Judges a node by its turns, oldest first; `None` if it does not go in a circle. `resumed_after` is the run
/// id of the last turn before a person resumed the node: that turn and those before it do not count. With a
/// limit of 0 no node stalls.
pub fn judge(turns: &[Signals], resumed_after: Option<&str>, limit: u32) -> Option<StallEvidence> {
    let seen = resumed_after.and_then(|seen| turns.iter().rposition(|turn| turn.turn == seen));
    let turns = &turns[seen.map_or(0, |seen| seen + 1)..];
    let last = turns.last().filter(|_| limit > 0)?;
    let circle = |signal: fn(&Signals) -> Option<&String>| {
        let now = signal(last)?;
        let repeated = turns.iter().rev().skip(1).take_while(|turn| signal(turn) == Some(now)).count();
        (repeated >= limit as usize).then(|| now.clone())
    };
    let evidence = StallEvidence {
        output_hash: circle(|turn| turn.output.as_ref()),
        diff_hash: circle(|turn| turn.diff.as_ref()),
        verification_failure: circle(|turn| turn.verification.as_ref()),
        summaries: turns[turns.len().saturating_sub(3)..].iter().map(|turn| turn.summary.clone()).collect(),
    };
    let stalled = evidence.output_hash.is_some() || evidence.diff_hash.is_some();
    (stalled || evidence.verification_failure.is_some()).then_some(evidence)
}

/// Returns the part of a failed verification that is the same when it fails the same way again: its exit
/// status, and its last lines with `#` for counts, times and addresses.
pub fn signature(exit: i32, output: &[u8]) -> String {
    let text = String::from_utf8_lossy(&output[output.len().saturating_sub(1 << 16)..]).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut stable = format!("exit {exit}");
    for line in &lines[lines.len().saturating_sub(20)..] {
        stable.push('\n');
        let mut in_number = false;
        for c in line.chars() {
            // A run of hexadecimal digits that begins with a decimal digit: 12, 0.35, 0x7f3a, 3f9c.
            let goes_on = c.is_ascii_hexdigit() || matches!(c, '.' | ':' | 'x');
            in_number = c.is_ascii_digit() || (in_number && goes_on);
            if !in_number {
                stable.push(c);
            } else if !stable.ends_with('#') {
                stable.push('#');
            }
        }
    }
    stable
}
