//! What a command declared: lines that passed by, or the result file where that has content.
//!
//! Implements K19, K29 (there are none in the `aynig` dialect).

use super::Runner;
use super::live::Live;
use super::report::{Note, Report};
use crate::protocol::complete::Declared;
use crate::protocol::declaration::{Declaration, Invalid, LINE_MAX};
use crate::protocol::dialect::Writer;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

impl Runner<'_> {
    /// What the command declared: the result file alone where it has content.
    pub(super) fn declared(&self, live: &Live) -> Declared {
        if live.claimed.run.dialect.writer() == Writer::Command {
            return Declared::Nothing;
        }
        let invalid = match read_result(&live.dir.join("result")) {
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
            let filed = || read_result(&live.dir.join("result")).is_ok_and(|raw| !raw.is_empty());
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
}

/// The content of the result file, empty where there is none. The command made it: a fifo there must not
/// block, a device not fill the memory.
fn read_result(path: &Path) -> Result<Vec<u8>, Invalid> {
    let unreadable = |e: std::io::Error| Invalid::Unreadable(e.to_string());
    let mut options = std::fs::File::options();
    let open = options.read(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits()).open(path);
    let file = match open {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(unreadable(e)),
    };
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(Invalid::Unreadable("it is no plain file".to_owned()));
    }
    if meta.len() > LINE_MAX as u64 {
        return Err(Invalid::TooLong(meta.len()));
    }
    let mut raw = Vec::new();
    file.take(LINE_MAX as u64 + 1).read_to_end(&mut raw).map_err(unreadable)?;
    Ok(raw)
}
