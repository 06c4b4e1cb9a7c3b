//! The appendix of CONTRACT.md: what was checked and what was found, written by the checks themselves.
//!
//! Each part stands between two comments. A check fails where its part is not what it found;
//! `AYNIG_BLESS=1` writes it anew. No figure there is typed by hand.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("CONTRACT.md")
}

/// Compares one part with what it should be, or writes it.
pub fn keep(part: &str, text: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let (begin, end) = (format!("<!-- model: {part} -->\n"), "<!-- model: end -->\n");
    let page = std::fs::read_to_string(path()).unwrap();
    let from = page.find(&begin).unwrap_or_else(|| panic!("CONTRACT.md has no part '{part}'")) + begin.len();
    let to = from + page[from..].find(end).unwrap();
    let text = format!("\n{text}\n");
    if std::env::var_os("AYNIG_BLESS").is_some() {
        std::fs::write(path(), format!("{}{text}{}", &page[..from], &page[to..])).unwrap();
        return;
    }
    let again =
        "run AYNIG_BLESS=1 cargo test --test model (with '-- --include-ignored' for ten million states)";
    assert!(page[from..to] == text, "CONTRACT.md, part '{part}', is not what was found: {again}\n{text}");
}

/// A table; the columns that hold numbers are set to the right.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let numbers = |at: usize| rows.iter().all(|row| row[at].starts_with(|c: char| c.is_ascii_digit()));
    let rule = (0..head.len()).map(|at| if numbers(at) { "---:" } else { "---" });
    let rule = rule.collect::<Vec<_>>().join(" | ");
    let lines = rows.iter().map(|row| format!("| {} |\n", row.join(" | ")));
    format!("| {} |\n| {rule} |\n{}", head.join(" | "), lines.collect::<String>())
}

/// A number as people read it.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
