//! What some files must say before a gate lets a phase go: the rules, by the path under which a file is
//! required.
//!
//! A scaffold that was not filled in is no document: its placeholders do not count. Other tools compare the
//! texts of the reasons, so these stay as they are.

/// Checks a file that a gate requires; a file whose path has no rule always passes.
///
/// # Errors
/// The reason, in words.
pub(super) fn check(path: &str, text: &str, phase: &str) -> Result<(), String> {
    match path {
        ".planning/PM_SIGNOFF.md" => signoff(path, text),
        ".planning/SYSTEM_SPEC.md" => system_spec(path, text, phase),
        ".planning/IMPLEMENTATION_NOTES.md" => {
            let placeholder = "(Dev fills this during implementation)";
            let ask = "Dev must replace placeholder content with real implementation notes.";
            notes(path, text, ["## Changes", "## Verification"], placeholder, ask)
        }
        ".planning/acceptance-matrix.md" => acceptance_matrix(text),
        ".planning/ship-verdict.md" => ship_verdict(path, text),
        ".planning/RELEASE_NOTES.md" => {
            let placeholder = "(QA fills this during the QA phase)";
            let ask = "QA must replace placeholder content with real release notes.";
            notes(path, text, ["## User Impact", "## Verification Summary"], placeholder, ask)
        }
        _ => Ok(()),
    }
}

/// Checks an artifact by the name of its semantics; without one, or with an unknown one, by its path.
///
/// # Errors
/// The reason, in words.
pub(super) fn check_as(
    semantics: &str,
    path: &str,
    text: &str,
    phase: &str,
    sections: &[String],
) -> Result<(), String> {
    let default = match semantics {
        "pm_signoff" => return signoff(path, text),
        "system_spec" => return system_spec(path, text, phase),
        "acceptance_matrix" => return acceptance_matrix(text),
        "ship_verdict" => return ship_verdict(path, text),
        "implementation_notes" => ".planning/IMPLEMENTATION_NOTES.md",
        "release_notes" => ".planning/RELEASE_NOTES.md",
        "section_check" => return sections_are_said(path, text, sections),
        _ => path,
    };
    check(default, text, phase)
}

fn sections_are_said(path: &str, text: &str, sections: &[String]) -> Result<(), String> {
    let is_said = |line: &str| {
        let line = line.trim();
        let is_hint = line.starts_with('(') && line.ends_with(')');
        !line.is_empty() && !is_hint
    };
    let is_empty = |header: &&str| !section(text, header).is_some_and(|lines| lines.into_iter().any(is_said));
    let empty: Vec<&str> = sections.iter().map(String::as_str).filter(is_empty).collect();
    if empty.is_empty() {
        Ok(())
    } else {
        Err(format!("{path} must say something under {}.", joined(&empty)))
    }
}

/// Returns a text with each run of blanks made one space.
fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn signoff(path: &str, text: &str) -> Result<(), String> {
    let value = text.lines().find_map(|line| {
        let (key, value) = line.trim().split_once(':')?;
        key.trim().eq_ignore_ascii_case("approved").then(|| collapsed(value))
    });
    match value.filter(|value| !value.is_empty()) {
        Some(value) if value.to_uppercase() == "YES" => Ok(()),
        Some(value) => Err(format!(
            "PM signoff is not approved. Found \"Approved: {value}\" in {path}; set it to \"Approved: YES\"."
        )),
        None => Err(format!("PM signoff must declare `Approved: YES` in {path}.")),
    }
}

/// Returns the lines of a section, from its header to the next one of its level; `None` where there is no
/// such header.
fn section<'a>(text: &'a str, header: &str) -> Option<Vec<&'a str>> {
    let mut lines = text.lines();
    lines.find(|line| {
        let line = line.trim_end();
        line.strip_prefix(header).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':', '(']))
    })?;
    Some(lines.take_while(|line| !line.starts_with("## ")).collect())
}

fn system_spec(path: &str, text: &str, phase: &str) -> Result<(), String> {
    let headers = ["## Purpose", "## Interface", "## Acceptance Tests"];
    let missing: Vec<&str> = headers.into_iter().filter(|header| section(text, header).is_none()).collect();
    if !missing.is_empty() {
        return Err(format!("{path} must define {} before {phase} can exit.", joined(&missing)));
    }
    let is_said = |line: &str| {
        let line = line.trim();
        let is_hint = line.starts_with('(') && line.ends_with(')');
        !line.is_empty() && !is_hint && !line.starts_with("- [ ] Name the executable checks")
    };
    let is_scaffold =
        |header: &&str| !section(text, header).is_some_and(|lines| lines.into_iter().any(is_said));
    let empty: Vec<&str> = headers.into_iter().filter(is_scaffold).collect();
    if empty.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} in {path} still contains only placeholder text. Replace it with a real specification before {phase} can exit.",
        joined(&empty)
    ))
}

fn notes(path: &str, text: &str, headers: [&str; 2], placeholder: &str, ask: &str) -> Result<(), String> {
    let missing: Vec<&str> = headers.into_iter().filter(|header| section(text, header).is_none()).collect();
    if !missing.is_empty() {
        return Err(format!("{path} must define {}.", joined(&missing)));
    }
    let is_said = |line: &str| {
        let line = line.trim();
        !line.is_empty() && line != placeholder
    };
    let is_scaffold =
        |header: &&str| !section(text, header).is_some_and(|lines| lines.into_iter().any(is_said));
    let empty: Vec<&str> = headers.into_iter().filter(is_scaffold).collect();
    if empty.is_empty() {
        return Ok(());
    }
    Err(format!("{} in {path} still contains only placeholder text. {ask}", joined(&empty)))
}

/// Joins names: `a`, `a and b`, `a, b and c`.
fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_start_matches('|').trim_end_matches('|').split('|').map(str::trim).collect()
}

fn acceptance_matrix(text: &str) -> Result<(), String> {
    let mut lines = text.lines().map(str::trim);
    let is_header = |line: &str| {
        let first = line.starts_with('|').then(|| cells(line)[0].to_ascii_lowercase());
        first.as_deref() == Some("req #")
    };
    if !lines.any(is_header) {
        return Err(String::from(
            "Acceptance matrix must have a table whose header begins with `| Req # |` in .planning/acceptance-matrix.md.",
        ));
    }
    let is_separator =
        |cells: &[&str]| cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' ')));
    let rows: Vec<Vec<&str>> = lines
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .filter(|cells| !is_separator(cells) && cells[0] != "(QA fills this from ROADMAP.md)")
        .collect();
    if rows.is_empty() {
        return Err(String::from(
            "Acceptance matrix has no real requirement verdict rows. Replace the scaffold placeholder with QA-owned requirement results before requesting ship approval.",
        ));
    }
    let passes = |row: &&Vec<&str>| {
        let verdict = row.last().map(|cell| cell.to_uppercase()).unwrap_or_default();
        ["PASS", "PASSED", "OK", "YES"].contains(&verdict.as_str())
    };
    let failing: Vec<&str> = rows.iter().filter(|row| !passes(row)).map(|row| row[0]).collect();
    if failing.is_empty() {
        return Ok(());
    }
    Err(format!("Acceptance matrix has requirements without a passing verdict: {}.", failing.join(", ")))
}

fn ship_verdict(path: &str, text: &str) -> Result<(), String> {
    let value = text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("##")?.trim_start();
        let (key, value) = rest.split_once(':')?;
        key.trim().eq_ignore_ascii_case("verdict").then(|| collapsed(value))
    });
    match value.filter(|value| !value.is_empty()) {
        Some(value) if ["YES", "SHIP", "SHIP IT"].contains(&value.to_uppercase().as_str()) => Ok(()),
        Some(value) => Err(format!(
            "Ship verdict is not affirmative. Found \"## Verdict: {value}\" in {path}; use \"## Verdict: YES\"."
        )),
        None => Err(format!("Ship verdict must declare `## Verdict: YES` in {path}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaffold_is_no_document() {
        let spec = "## Purpose\n\n(Describe it)\n\n## Interface\n\nx\n\n## Acceptance Tests\n\n- [ ] Name the executable checks here\n";
        let reason = check(".planning/SYSTEM_SPEC.md", spec, "planning").unwrap_err();
        assert!(reason.starts_with("## Purpose and ## Acceptance Tests in "), "{reason}");
        let notes = "## Changes\n(Dev fills this during implementation)\n## Verification\nran it\n";
        assert!(
            check(".planning/IMPLEMENTATION_NOTES.md", notes, "x").unwrap_err().starts_with("## Changes in ")
        );
        assert!(check(".planning/IMPLEMENTATION_NOTES.md", "## Changes\na\n", "x").is_err());
        assert!(check("README.md", "", "x").is_ok());
    }

    #[test]
    fn the_matrix_wants_a_passing_verdict_in_every_row() {
        let head = "| Req # | Requirement | Status |\n|---|:-:|---|\n";
        let check = |rows: &str| acceptance_matrix(&format!("{head}{rows}"));
        assert!(check("| 1 | a | pass |\n| 2 | b | OK |\n").is_ok());
        assert!(check("| 1 | a | pass |\n| 2 | b | open |\n").unwrap_err().ends_with(": 2."));
        assert!(check("").is_err());
        assert!(acceptance_matrix("no table").is_err());
    }

    #[test]
    fn verdicts_and_signoffs_are_read_as_people_write_them() {
        assert!(signoff("f", "# x\napproved:   yes \n").is_ok());
        assert!(signoff("f", "Approved: NO\nApproved: YES\n").is_err());
        assert!(ship_verdict("f", "##  Verdict:  ship   it\n").is_ok());
        assert!(ship_verdict("f", "## Verdict:\n").is_err());
    }
}
