//! Writing a message so that reading it gives back what was meant, or refusing.
//!
//! Implements K2. `render` writes the subject, a blank line and the body, a blank line and one line
//! `key: value` for each trailer: the trailers are a paragraph of their own, so no body can add one.
//! Then it parses what it wrote and compares. It refuses, and never repairs: bytes that Git can't
//! hold or would decode otherwise (NUL, no UTF-8: our commits declare no encoding), line breaks where
//! one line is meant, a scissors line that would cut the rest off, and, only in a message without
//! trailers, a body whose end would be read as some.
//!
//! The constructors drop blanks around subject and values; `render` refuses any that are there nevertheless.

use std::fmt;

use super::{Message, Trailer, is_blank, lines, trailers, trim_blank_lines, trim_blanks};

/// A part of a message, as errors name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The subject.
    Subject,
    /// The body.
    Body,
    /// The value of the trailer with this key.
    Value {
        /// The trailer's key.
        key: String,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Subject => f.write_str("the subject"),
            Part::Body => f.write_str("the body"),
            Part::Value { key } => write!(f, "the value of trailer '{key}'"),
        }
    }
}

/// Why a message can't be written so that Git and `parse` read what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderError {
    /// The subject is empty or white space.
    EmptySubject,
    /// The subject holds a line break (LF or CR).
    SubjectBreaks,
    /// The subject ends with a space or tab, which `%s` would drop.
    SubjectBlanks,
    /// The subject is a scissors line, and something follows it.
    SubjectHidesRest,
    /// The body starts or ends with a blank line or a line break.
    BodyBlankEnds,
    /// A scissors line in the body would hide what follows it.
    BodyHidesTrailers,
    /// Without trailers after it, the end of the body would be read as trailers.
    BodyEndsInTrailers,
    /// A key is empty, or has a character other than ASCII letters, digits and `-`.
    BadKey {
        /// The key.
        key: String,
    },
    /// A value holds a line break (LF or CR).
    ValueBreaks {
        /// Its trailer's key.
        key: String,
    },
    /// A value starts or ends with a space or tab.
    ValueBlanks {
        /// Its trailer's key.
        key: String,
    },
    /// A part is not UTF-8.
    NotUtf8 {
        /// Which part.
        part: Part,
    },
    /// A part holds a NUL.
    Nul {
        /// Which part.
        part: Part,
    },
    /// What was written reads otherwise than it was meant, for no reason named above.
    WouldChange,
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RenderError::EmptySubject => f.write_str("cannot write message: the subject is empty"),
            RenderError::SubjectBreaks => f.write_str("cannot write message: the subject has a line break"),
            RenderError::SubjectBlanks => {
                f.write_str("cannot write message: the subject ends with a blank")
            }
            RenderError::SubjectHidesRest => {
                f.write_str("cannot write message: the subject is a scissors line, which hides what follows it")
            }
            RenderError::BodyBlankEnds => {
                f.write_str("cannot write message: the body starts or ends with a blank line")
            }
            RenderError::BodyHidesTrailers => {
                f.write_str("cannot write message: the body has a scissors line, which hides what follows it")
            }
            RenderError::BodyEndsInTrailers => f.write_str(
                "cannot write message: the end of the body would be read as trailers, and no trailer follows it",
            ),
            RenderError::BadKey { key } => write!(
                f,
                "cannot write trailer '{}': a key is ASCII letters, digits and '-'",
                key.escape_debug()
            ),
            RenderError::ValueBreaks { key } => {
                write!(f, "cannot write trailer '{key}': its value has a line break")
            }
            RenderError::ValueBlanks { key } => {
                write!(f, "cannot write trailer '{key}': its value starts or ends with a blank")
            }
            RenderError::NotUtf8 { part } => write!(f, "cannot write message: {part} is not UTF-8"),
            RenderError::Nul { part } => write!(f, "cannot write message: {part} has a NUL"),
            RenderError::WouldChange => {
                f.write_str("cannot write message: it would be read otherwise than it was meant")
            }
        }
    }
}

impl std::error::Error for RenderError {}

impl Message {
    /// Returns the bytes of this message, ending in a line feed. `parse` and Git read them back as this
    /// message, or it is refused (K2).
    pub fn render(&self) -> Result<Vec<u8>, RenderError> {
        check_subject(&self.subject)?;
        check_text(&self.body, || Part::Body)?;
        if trim_blank_lines(&self.body).len() != self.body.len() {
            return Err(RenderError::BodyBlankEnds);
        }
        self.trailers.iter().try_for_each(check_trailer)?;
        let raw = self.write();
        if Message::parse(&raw) == *self { Ok(raw) } else { Err(self.why_changed(&raw)) }
    }

    fn write(&self) -> Vec<u8> {
        let mut raw = self.subject.clone();
        raw.push(b'\n');
        if !self.body.is_empty() {
            raw.push(b'\n');
            raw.extend_from_slice(&self.body);
            raw.push(b'\n');
        }
        if !self.trailers.is_empty() {
            raw.push(b'\n');
        }
        for trailer in &self.trailers {
            raw.extend_from_slice(trailer.key.as_bytes());
            // The space stays for an empty value: a bare `Conflicts:` line would not be a trailer.
            raw.extend_from_slice(b": ");
            raw.extend_from_slice(&trailer.value);
            raw.push(b'\n');
        }
        raw
    }

    /// Returns the reason for which `raw`, written from this message, reads otherwise.
    fn why_changed(&self, raw: &[u8]) -> RenderError {
        let cut = trailers::scissors(raw);
        if cut == 0 {
            RenderError::SubjectHidesRest
        } else if cut < raw.len() {
            RenderError::BodyHidesTrailers
        } else if self.trailers.is_empty() {
            RenderError::BodyEndsInTrailers
        } else {
            RenderError::WouldChange
        }
    }
}

fn check_text(text: &[u8], part: impl Fn() -> Part) -> Result<(), RenderError> {
    if text.contains(&0) {
        return Err(RenderError::Nul { part: part() });
    }
    if std::str::from_utf8(text).is_err() {
        return Err(RenderError::NotUtf8 { part: part() });
    }
    Ok(())
}

fn breaks(text: &[u8]) -> bool {
    text.iter().any(|b| matches!(b, b'\n' | b'\r'))
}

fn check_subject(subject: &[u8]) -> Result<(), RenderError> {
    check_text(subject, || Part::Subject)?;
    if lines(subject).all(is_blank) {
        return Err(RenderError::EmptySubject);
    }
    if breaks(subject) {
        return Err(RenderError::SubjectBreaks);
    }
    if subject.ends_with(b" ") || subject.ends_with(b"\t") {
        return Err(RenderError::SubjectBlanks);
    }
    Ok(())
}

impl Trailer {
    /// True where the trailer can be written so that it is read back as it was meant.
    pub fn is_writable(&self) -> bool {
        check_trailer(self).is_ok()
    }
}

fn check_trailer(Trailer { key, value }: &Trailer) -> Result<(), RenderError> {
    let key_ok = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !key_ok {
        return Err(RenderError::BadKey { key: key.clone() });
    }
    check_text(value, || Part::Value { key: key.clone() })?;
    if breaks(value) {
        return Err(RenderError::ValueBreaks { key: key.clone() });
    }
    if trim_blanks(value).len() != value.len() {
        return Err(RenderError::ValueBlanks { key: key.clone() });
    }
    Ok(())
}
