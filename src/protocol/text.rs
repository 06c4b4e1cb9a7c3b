//! Text that came from elsewhere, made safe to show.
//!
//! Whatever a commit, a log or a command says may hold escape sequences for the terminal, or characters
//! that reorder a line. They are shown as what they are. Implements K36.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text with every control and direction character escaped, line feeds included.
pub fn escape(raw: &[u8]) -> String {
    escape_keeping(raw, |_| false)
}

/// Returns an error and what caused it, in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    escape(text.as_bytes())
}

/// Escapes a text as [`escape`] does, but keeps line feeds and tabs.
pub fn escape_block(raw: &[u8]) -> String {
    escape_keeping(raw, |c| c == '\n' || c == '\t')
}

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Returns one word of a command that is shown to be pasted: a shell reads it as exactly these bytes, unless
/// they end in a line feed and would have to be escaped.
pub fn shell_word(raw: &[u8]) -> String {
    let safe = escape(raw);
    // A command substitution drops the last line feeds of its output.
    if safe.as_bytes() != raw && !raw.ends_with(b"\n") {
        return format!("\"$(printf '{}')\"", printf_format(raw));
    }
    match shlex::try_quote(&safe) {
        Ok(Cow::Owned(quoted)) => quoted,
        Ok(Cow::Borrowed(_)) | Err(_) => safe,
    }
}

/// Returns the format that `printf` prints as these bytes; between single quotes it means nothing to a shell.
fn printf_format(raw: &[u8]) -> String {
    let mut format = String::with_capacity(raw.len() * 4);
    for chunk in raw.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '%' => format.push_str("%%"),
                // An interactive shell expands its history at a `!` even there.
                '\'' | '\\' | '!' => push_octal(&mut format, &[c as u8]),
                '-' if format.is_empty() => push_octal(&mut format, b"-"),
                c if steers(c) => push_octal(&mut format, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => format.push(c),
            }
        }
        push_octal(&mut format, chunk.invalid());
    }
    format
}

fn push_octal(format: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(format, "\\{byte:03o}");
    }
}

/// Returns a branch's short name as the argument of a command that is shown to be pasted. A name that looks
/// like an option, or like another branch's full name, or is `HEAD`, is written in full.
pub fn branch_word(short: &[u8]) -> String {
    match short.starts_with(b"-") || short.starts_with(b"refs/heads/") || short == b"HEAD" {
        true => shell_word(&[b"refs/heads/", short].concat()),
        false => shell_word(short),
    }
}

/// Returns the command that asks for a stalled branch again, of this remote or, for `None` and `.`, of this
/// repository.
pub fn retry_call(branch: &[u8], remote: Option<&str>) -> String {
    let at =
        remote.filter(|name| *name != ".").map(|name| format!(" --remote {}", shell_word(name.as_bytes())));
    format!("git aynig retry{} {}", at.unwrap_or_default(), branch_word(branch))
}

/// Returns where a repository is, without the part of a URL before an `@`, which may be a secret.
pub fn shown_url(url: &[u8]) -> String {
    let text = String::from_utf8_lossy(url);
    let Some((scheme, rest)) = text.split_once("://") else { return escape(url) };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    escape(format!("{scheme}://{host}{path}").as_bytes())
}

/// True for a character that is not shown but changes how a line is shown: control characters, Unicode's
/// format characters (direction, joiners, fillers without width, tags), and separators of lines and
/// paragraphs. The marks of numbers and verses, which are format characters too, can be seen, and stay.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{70f}' | '\u{180e}' | '\u{feff}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

fn escape_keeping(raw: &[u8], keep: fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(raw.len());
    // Nearly every name is of such characters alone, and none of them is escaped.
    if let (true, Ok(plain)) = (raw.iter().all(|b| matches!(b, b' '..=b'~')), std::str::from_utf8(raw)) {
        safe.push_str(plain);
        return safe;
    }
    for chunk in raw.utf8_chunks() {
        for c in chunk.valid().chars() {
            if keep(c) || !steers(c) {
                safe.push(c);
            } else if (c as u32) < 0x100 {
                let _ = write!(safe, "\\x{:02x}", c as u32);
            } else {
                let _ = write!(safe, "\\u{{{:x}}}", c as u32);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(safe, "\\x{byte:02x}");
        }
    }
    safe
}

/// Returns the last whole lines of a text that fit into `limit` bytes, escaped and indented by four spaces,
/// so that none can be taken for a trailer, a divider or a comment.
pub fn tail_block(raw: &[u8], limit: usize) -> String {
    let from = raw.len().saturating_sub(limit);
    let mut tail = &raw[from..];
    if from > 0
        && let Some(end) = tail.iter().position(|b| *b == b'\n')
        && end + 1 < tail.len()
    {
        // The line feed that is left is trimmed in the end: no block begins with one.
        tail = &tail[end..];
    }
    let safe = escape_block(tail);
    // Escaped, a line may be four times as long. The last line is kept in any case.
    let mut room = limit * 2;
    let mut last = Vec::new();
    for line in safe.trim_end().lines().rev().map(str::trim_end) {
        let left = room.checked_sub(line.len() + 5);
        if left.is_none() && !last.is_empty() {
            break;
        }
        room = left.unwrap_or(0);
        last.push(if line.is_empty() { String::new() } else { format!("    {line}") });
    }
    last.reverse();
    last.join("\n").trim_start_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let shown = |url: &str| shown_url(url.as_bytes());
        assert_eq!(shown("https://ada:s3cret@example.com/a@b.git"), "https://example.com/a@b.git");
        assert_eq!(shown("https://example.com"), "https://example.com");
        assert_eq!(shown("git@example.com:a/b"), "git@example.com:a/b");
        assert_eq!(shown("/srv/\u{1b}[2Jx"), "/srv/\\x1b[2Jx");
    }

    /// K36: the whole class of such characters, not only those that come to mind.
    #[test]
    fn what_steers_a_line_is_escaped() {
        for c in [
            '\u{61c}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2066}',
            '\u{200b}',
            '\u{feff}',
            '\u{e0041}',
            '\u{9b}',
            '\u{ad}',
        ] {
            assert!(!escape(format!("a{c}b").as_bytes()).contains(c), "{:x}", c as u32);
        }
        assert_eq!(escape("é\u{600}日🙂".as_bytes()), "é\u{600}日🙂");
    }

    /// K36: git-aynig takes a branch by its full name, too.
    #[test]
    fn a_branch_that_looks_like_an_option_is_named_in_full() {
        assert_eq!(retry_call(b"--help", None), "git aynig retry refs/heads/--help");
        assert_eq!(branch_word(b"-x;y"), "'refs/heads/-x;y'");
    }

    /// K36: `refs/heads/a` as an argument is the branch `a`.
    #[test]
    fn a_branch_that_looks_like_anothers_full_name_is_named_in_full() {
        assert_eq!(retry_call(b"refs/heads/a", None), "git aynig retry refs/heads/refs/heads/a");
    }

    /// K36.
    #[test]
    fn a_name_is_one_word_of_a_command() {
        assert_eq!(shell_word(b"plain/one"), "plain/one");
        assert_eq!(shell_word(b"a;touch b"), "'a;touch b'");
        assert_eq!(retry_call(b"a;b", None), "git aynig retry 'a;b'");
        assert_eq!(retry_call(b"work", Some(".")), "git aynig retry work");
        assert_eq!(retry_call(b"work", Some("my origin")), "git aynig retry --remote 'my origin' work");
    }

    /// K36.
    #[test]
    fn a_name_that_is_not_shown_as_it_is_is_printed_by_its_word() {
        assert_eq!(shell_word(b"w\xff!k"), r#""$(printf 'w\377\041k')""#);
        assert_eq!(shell_word(b"-'%\\\x1b"), r#""$(printf '\055\047%%\134\033')""#);
        assert_eq!(shell_word("\u{f6}\u{202e}".as_bytes()), "\"$(printf '\u{f6}\\342\\200\\256')\"");
    }

    /// K36.
    #[test]
    fn no_control_byte_gets_through() {
        let all: Vec<u8> = (0..=255).collect();
        assert!(escape(&all).bytes().all(|b| b >= 0x20 && b != 0x7f));
        assert_eq!(escape(b"a\x1b[31mb\n"), "a\\x1b[31mb\\x0a");
        assert_eq!(escape("\u{202e}x".as_bytes()), "\\u{202e}x");
        assert_eq!(escape_block(b"a\tb\nc\r"), "a\tb\nc\\x0d");
        assert_eq!(escape("größe".as_bytes()), "größe");
    }

    #[test]
    fn a_tail_is_whole_lines_and_indented() {
        assert_eq!(
            tail_block(b"first\ndwp-state: x\n\nlast\n", 100),
            "    first\n    dwp-state: x\n\n    last"
        );
        assert_eq!(tail_block(b"aaaaaaaaaa\nbb\ncc\n", 7), "    bb\n    cc");
        let long = "aaaaaaaaaa\nbbbbbbbb\ncccccccc\n";
        assert_eq!(tail_block(long.as_bytes(), 20), "    bbbbbbbb\n    cccccccc");
    }

    /// K23: of a line that is longer than the limit, the end is kept.
    #[test]
    fn a_tail_of_one_long_line_is_the_end_of_that_line() {
        assert_eq!(tail_block(b"aaaaaaabc\n", 4), "    abc");
        assert_eq!(tail_block(b"aaaaaaabc", 4), "    aabc");
        assert_eq!(tail_block(b"", 4), "");
    }

    /// K23: a line that is long once it is escaped takes no room from the lines after it.
    #[test]
    fn a_tail_keeps_its_last_lines_whatever_stood_before_them() {
        let noise = [0x1b; 10];
        let text = [&noise[..], b"\nwhy\n"].concat();
        assert_eq!(tail_block(&text, 20), "    why");
        assert_eq!(tail_block(&[&noise[..], b"\n\n"].concat(), 12), format!("    {}", "\\x1b".repeat(10)));
        assert_eq!(tail_block(b"\na\n\n  b \n\n", 20), "    a\n\n      b");
        assert_eq!(tail_block(b"1\n2\n3\n4\n", 9), "    2\n    3\n    4");
    }
}
