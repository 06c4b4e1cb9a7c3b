//! What a command declared: `SET_STATE` lines in its output, or the result file where that has content.
//!
//! Implements K19, K29 (there are no declarations in the `aynig` dialect).

use super::active_run::ActiveRun;
use super::report::Note;
use crate::protocol::complete::Declared;
use crate::protocol::declaration::{Declaration, Invalid, LINE_MAX, LINE_PREFIX};
use crate::protocol::dialect::Writer;
use crate::protocol::text::tail_block;
use crate::store::beneath::{Refusal, Root, apart, found};
use std::path::PathBuf;

impl ActiveRun<'_> {
    /// Returns what the command declared: the result file alone where it has content, else the last valid
    /// line. Invalid declarations are noted.
    pub(super) fn what_was_declared(&mut self) -> Declared {
        let result = self.read_result();
        let (invalid, count) = self.declared.invalid();
        if self.claim.run.dialect.writer() == Writer::Command {
            if count + self.declared.valid_count() > 0 || result.is_ok_and(|raw| !raw.is_empty()) {
                self.report.notes.push(Note::DeclarationIgnored);
            }
            return Declared::Nothing;
        }
        for (line, why) in invalid {
            self.report.notes.push(Note::InvalidDeclaration(line.clone(), why.to_string()));
        }
        if count > invalid.len() as u64 {
            self.report.notes.push(Note::MoreInvalid(count - invalid.len() as u64));
        }
        match result {
            Ok(raw) if raw.trim_ascii().is_empty() => match (self.declared.last(), invalid.last()) {
                (Some(declaration), _) => Declared::State(declaration.clone()),
                (None, Some((_, why))) => Declared::BadLine(why.clone()),
                (None, None) => Declared::Nothing,
            },
            Ok(raw) => match Declaration::parse_line(raw.trim_ascii()) {
                Ok(declaration) => Declared::State(declaration),
                Err(why) => Declared::BadResult(why),
            },
            Err(why) => Declared::BadResult(why),
        }
    }

    /// Returns the text about a command that declared nothing, for the commit that keeps its lease and for
    /// its log. It quotes lines of the output that were perhaps meant as a declaration.
    pub(super) fn nothing_declared(&self) -> String {
        let mut text =
            String::from("The command ended with exit 0 and declared nothing: no line of its output begins ");
        text += "with 'SET_STATE ', and its result file is empty. Its lease lives on until it ends.\n";
        let tail = apart(&self.logs.stdout).and_then(|(folder, name)| folder.read_tail(name, LOOKED_AT));
        let tail = self.runner.secrets().mask(&tail.unwrap_or_default());
        let alike: Vec<&[u8]> =
            tail.split(|b| *b == b'\n').filter(|line| is_alike(line)).take(ALIKE_MAX).collect();
        if !alike.is_empty() {
            text += "\nNo declaration, for it begins otherwise:\n\n";
            for line in alike {
                text += &format!("{}\n", tail_block(&line[..line.len().min(200)], 400));
            }
        }
        text
    }

    /// Reads the result file; empty where there is none. The command made it, and could have put anything in
    /// its place or in that of its folder, so no link is followed.
    fn read_result(&self) -> Result<Vec<u8>, Invalid> {
        let name = PathBuf::from("runs").join(self.run_id()).join("result");
        let read =
            Root::open(&self.runner.repo.aynig_dir()).and_then(|root| root.read(&name, LINE_MAX as u64));
        match found(read) {
            Ok(content) => Ok(content.unwrap_or_default()),
            Err(error) => Err(match error.refusal() {
                Some(Refusal::TooLong(_)) => Invalid::TooLong(LINE_MAX as u64 + 1),
                Some(_) | None => Invalid::Unreadable(std::io::Error::from(error).to_string()),
            }),
        }
    }
}

/// How many bytes of the output's end are searched for lines that were perhaps meant as a declaration, and
/// how many such lines are quoted.
const LOOKED_AT: u64 = 256 << 10;
const ALIKE_MAX: usize = 4;

/// True for a line that resembles the beginning of a declaration but is none: in lower case, indented, in
/// quotes, with another character between its words or none after them, or behind output that ended without a
/// line feed.
fn is_alike(line: &[u8]) -> bool {
    let from = line.iter().position(|b| b.is_ascii_alphabetic()).unwrap_or(line.len());
    let (before, rest) = line.split_at(from);
    let word = rest.iter().take_while(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-')).count();
    let letters = rest[..word].iter().filter(|b| b.is_ascii_alphabetic()).map(u8::to_ascii_uppercase);
    let plain = before.iter().all(|b| b.is_ascii_whitespace() || b"\"'`$>-*".contains(b));
    let behind = line.windows(LINE_PREFIX.len() + 1).any(|part| part == b"SET_STATE {");
    (plain && letters.eq(*b"SETSTATE") || behind) && !line.starts_with(LINE_PREFIX.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::is_alike;

    /// K19
    #[test]
    fn what_was_perhaps_meant_is_known_from_what_was_not() {
        let alike = [
            "set_state {}",
            " SET_STATE {}",
            "SET_STATE{\"state\":1}",
            "\"SET_STATE {}\"",
            "Set-State x",
            "SET_STATE",
            "no line feed yetSET_STATE {\"state\":\"done\"}",
            "\rSET_STATE {}",
        ];
        for line in alike {
            assert!(is_alike(line.as_bytes()), "{line}");
        }
        for line in ["SET_STATE {}", "offset_state", "x set_state", "set_states {}", "set the state", ""] {
            assert!(!is_alike(line.as_bytes()), "{line}");
        }
    }
}
