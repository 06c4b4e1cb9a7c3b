//! Whether a node goes in a circle: the same output, diff or failure, again and again.
//!
//! Judged from what its outcomes say, so there is no memory to lose: every clone that reads the same outcomes judges the same.
//! A limit of n is n repetitions after the first, as the contract's original counts. Implements N11.

use super::event::StallEvidence;

/// The repetitions that are taken for a circle where nothing else is configured.
pub const LIMIT: u32 = 20;

/// What one turn left to be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signals {
    /// The turn's run id.
    pub turn: String,
    /// Of its final text.
    pub output: Option<String>,
    /// Of what it changed; none where it changed nothing.
    pub diff: Option<String>,
    /// The signature of a verification that failed; none where it passed or was not run.
    pub verification: Option<String>,
    /// The turn in a few words.
    pub summary: String,
}

/// Judges a node by its turns, oldest first. `resumed_after` is the run id of the last one that a person has seen; what
/// was up to it does not count. A limit of 0 never stalls.
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

/// The part of a failed verification that stays the same when it fails the same way again: its exit status, and its last
/// lines without numbers that count, times and addresses.
pub fn signature(exit: i32, output: &[u8]) -> String {
    let text = String::from_utf8_lossy(&output[output.len().saturating_sub(1 << 16)..]).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut stable = format!("exit {exit}");
    for line in &lines[lines.len().saturating_sub(20)..] {
        stable.push('\n');
        let mut in_number = false;
        for c in line.chars() {
            // A run of hexadecimal digits that begins with a digit: 12, 0.35, 0x7f3a, 3f9c.
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
