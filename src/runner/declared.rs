//! What a command declared: lines that passed by, or the result file where that has content.
//!
//! Implements K19, K29 (there are none in the `aynig` dialect).

use super::Runner;
use super::live::Live;
use super::report::{Note, Report};
use crate::protocol::complete::Declared;
use crate::protocol::declaration::{Declaration, Invalid, LINE_MAX};
use crate::protocol::dialect::Writer;
use crate::store::beneath::{Refusal, Root, found};
use std::path::PathBuf;

impl Runner<'_> {
    /// What the command declared: the result file alone where it has content.
    pub(super) fn declared(&self, live: &Live) -> Declared {
        if live.claimed.run.dialect.writer() == Writer::Command {
            return Declared::Nothing;
        }
        let invalid = match self.read_result(live) {
            Ok(raw) if raw.trim_ascii().is_empty() => {
                return match live.declared.last() {
                    Some(declaration) => Declared::State(declaration.clone()),
                    None => Declared::Nothing,
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
