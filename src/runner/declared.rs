//! What a command declared: lines that passed by, or the result file where that has content.
//!
//! Implements K19, K29 (there are none in the `aynig` dialect).

use super::Runner;
use super::live::Live;
use super::report::{Note, Report};
use crate::protocol::complete::Declared;
use crate::protocol::declaration::{Declaration, Invalid, LINE_MAX, LINE_PREFIX};
use crate::protocol::dialect::Writer;
use crate::protocol::text::tail_block;
use crate::store::beneath::{Refusal, Root, apart, found};
use std::path::PathBuf;

impl Runner<'_> {
    /// What the command declared: the result file alone where it has content.
    pub(super) fn declared(&self, live: &Live) -> Declared {
        if live.claimed.run.dialect.writer() == Writer::Command {
            return Declared::Nothing;
        }
        let invalid = match self.read_result(live) {
            Ok(raw) if raw.trim_ascii().is_empty() => {
                let (invalid, _) = live.declared.invalid();
                return match (live.declared.last(), invalid.last()) {
                    (Some(declaration), _) => Declared::State(declaration.clone()),
                    (None, Some((_, why))) => Declared::BadLine(why.clone()),
                    (None, None) => Declared::Nothing,
                };
            }
            Ok(raw) => match Declaration::parse_line(raw.trim_ascii()) {
                Ok(declaration) => return Declared::State(declaration),
                Err(why) => why,
            },
            Err(why) => why,
        };
        Declared::BadResult(invalid)
    }

    pub(super) fn note_declarations(&self, live: &Live, report: &mut Report) {
        let (invalid, count) = live.declared.invalid();
        if live.claimed.run.dialect.writer() == Writer::Command {
            let filed = || self.read_result(live).is_ok_and(|raw| !raw.is_empty());
            if count + live.declared.valid_count() > 0 || filed() {
                report.notes.push(Note::DeclarationIgnored);
            }
            return;
        }
        for (line, why) in invalid {
            report.notes.push(Note::InvalidDeclaration(line.clone(), why.to_string()));
        }
        if count > invalid.len() as u64 {
            report.notes.push(Note::MoreInvalid(count - invalid.len() as u64));
        }
    }

    /// What a command that declared nothing is told of, in the commit that keeps its lease and in its log: what it
    /// printed that was perhaps meant to.
    pub(super) fn nothing_declared(&self, live: &Live) -> String {
        let mut text =
            String::from("The command ended with exit 0 and declared nothing: no line of its output begins ");
        text += "with 'SET_STATE ', and its result file is empty. Its lease lives on until it ends.\n";
        let tail = apart(&live.logs.stdout).and_then(|(folder, name)| folder.read_tail(name, LOOKED_AT));
        let tail = self.secrets().mask(&tail.unwrap_or_default());
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

    /// The content of the result file, empty where there is none. The command made it, and could have put
    /// anything in its place or in that of its folder.
    fn read_result(&self, live: &Live) -> Result<Vec<u8>, Invalid> {
        let name = PathBuf::from("runs").join(live.run_id()).join("result");
        let read = Root::open(&self.repo.aynig_dir()).and_then(|root| root.read(&name, LINE_MAX as u64));
        match found(read) {
            Ok(content) => Ok(content.unwrap_or_default()),
            Err(error) => Err(match error.refusal() {
                Some(Refusal::TooLong(_)) => Invalid::TooLong(LINE_MAX as u64 + 1),
                Some(_) | None => Invalid::Unreadable(std::io::Error::from(error).to_string()),
            }),
        }
    }
}

/// How much of the output's end is looked through for what was perhaps meant, in bytes, and how much is quoted.
const LOOKED_AT: u64 = 256 << 10;
const ALIKE_MAX: usize = 4;

/// True for a line that is like the beginning of a declaration, and is none: in lower case, indented, in quotes,
/// with another sign between its words or none after them.
fn is_alike(line: &[u8]) -> bool {
    let from = line.iter().position(|b| b.is_ascii_alphabetic()).unwrap_or(line.len());
    let (before, rest) = line.split_at(from);
    let word = rest.iter().take_while(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-')).count();
    let letters = rest[..word].iter().filter(|b| b.is_ascii_alphabetic()).map(u8::to_ascii_uppercase);
    let plain = before.iter().all(|b| b.is_ascii_whitespace() || b"\"'`$>-*".contains(b));
    plain && letters.eq(*b"SETSTATE") && !line.starts_with(LINE_PREFIX.as_bytes())
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
        ];
        for line in alike {
            assert!(is_alike(line.as_bytes()), "{line}");
        }
        for line in ["SET_STATE {}", "offset_state", "x set_state", "set_states {}", "set the state", ""] {
            assert!(!is_alike(line.as_bytes()), "{line}");
        }
    }
}
