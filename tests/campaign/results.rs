//! Writes `RESULTS.md` from the rows that the sweeps of one full run left. No figure in it is typed by hand.

use super::row;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Called by `tests/campaign/run` once all sweeps are over.
#[test]
#[ignore = "tests/campaign/run calls it"]
fn write() {
    let folder = row::folder().expect("AYNIG_CAMPAIGN_ROWS names the folder of the rows");
    let mut rows: Vec<Value> = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .filter(|e| e.path().extension().is_some_and(|x| x == "json"))
        .map(|e| serde_json::from_slice(&std::fs::read(e.path()).unwrap()).unwrap())
        .collect();
    rows.sort_by_key(|row| row["name"].to_string());
    let mut page = String::from(
        "# Results of the fault campaign\n\nWritten by `tests/campaign/run`; no figure is typed by hand.\n\n",
    );
    for (what, program, args) in [
        ("date", "date", &["-u", "+%Y-%m-%d %H:%M UTC"][..]),
        ("commit", "git", &["describe", "--always", "--dirty", "--abbrev=12"]),
        ("git", "git", &["--version"]),
        ("kernel", "uname", &["-sr"]),
    ] {
        let output = Command::new(program).args(args).output().unwrap();
        writeln!(page, "- {what}: {}", String::from_utf8_lossy(&output.stdout).trim()).unwrap();
    }
    let missing = missing(&rows);
    if let Some(whole) = whole(&rows, &missing, &folder) {
        writeln!(page, "- run: {whole}").unwrap();
    }
    page += "\n| sweep | what | figure to reach | counted | violations | seconds | commit |\n| --- | --- | --- | --- | --- | --- | --- |\n";
    for row in &rows {
        let text = |key: &str| row[key].as_str().unwrap_or_default().replace('|', "\\|");
        let counts = row["counts"].as_object().unwrap();
        let counts: Vec<String> = counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
        let counted = match row["skipped"].as_str() {
            Some(reason) => format!("**skipped**: {reason}"),
            None => counts.join(", "),
        };
        let (bad, seconds) = (row["violations"].as_array().unwrap().len(), row["seconds"].as_f64().unwrap());
        let (name, what, figure) = (text("name"), text("what"), text("figure"));
        writeln!(
            page,
            "| `{name}` | {what} | {figure} | {counted} | {bad} | {seconds:.0} | {} |",
            text("commit")
        )
        .unwrap();
    }
    if !missing.is_empty() {
        writeln!(
            page,
            "\nNot in this table, because they were not run to their end: {}.",
            missing.join(", ")
        )
        .unwrap();
    }
    for line in since(&rows) {
        writeln!(page, "\n{line}").unwrap();
    }
    page += "\nReplay one sweep:\n\n```\n";
    for row in rows.iter().filter(|row| row["skipped"].is_null()) {
        writeln!(page, "{}", row["replay"].as_str().unwrap()).unwrap();
    }
    page += "```\n";
    // What other programs found out: each wrote its part itself.
    for part in ["cases.md", "breaks.md", "coverage.md", "mutants.md", "versions.md", "fuzz.md"] {
        if let Ok(text) = std::fs::read_to_string(folder.join(part)) {
            page += &format!("\n{}", text.trim_start());
        }
    }
    let to = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/campaign/RESULTS.md");
    std::fs::write(to, page).unwrap();
}

/// Of a run from start to end, which `tests/campaign/run` noted when it began: nothing of what came later is another's.
fn whole(rows: &[Value], missing: &[String], folder: &Path) -> Option<String> {
    let noted = std::fs::read_to_string(folder.join("whole")).ok()?;
    let [date, commit, jobs] = noted.lines().collect::<Vec<_>>()[..] else { return None };
    let all = missing.is_empty() && rows.iter().all(|row| row["commit"].as_str() == Some(commit));
    all.then(|| format!("every sweep, from start to end, begun {date} on {commit}, {jobs} at a time (races, soak and users alone)"))
}

/// What differs in the program between the commits of the rows and this one.
fn since(rows: &[Value]) -> Vec<String> {
    let commits: BTreeSet<&str> = rows.iter().filter_map(|row| row["commit"].as_str()).collect();
    let program = ["src", "hooks", "Cargo.toml", "Cargo.lock"];
    let differs = |commit: &str| {
        let range = [commit.trim_end_matches("-dirty"), "HEAD"];
        let output =
            Command::new("git").args(["diff", "--name-only"]).args(range).arg("--").args(program).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let paths = String::from_utf8(output.stdout).unwrap();
        match &*paths.lines().map(|p| format!("`{p}`")).collect::<Vec<_>>().join(", ") {
            "" => format!("Between {commit} and the commit above the program is the same, file by file."),
            paths => {
                format!("Between {commit} and the commit above these files of the program differ: {paths}.")
            }
        }
    };
    commits.into_iter().map(differs).collect()
}

/// The sweeps that left no row.
fn missing(rows: &[Value]) -> Vec<String> {
    let listed = Command::new(std::env::current_exe().unwrap()).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let ran = |name: &str| {
        rows.iter().any(|row| row["replay"].as_str().is_some_and(|r| r.ends_with(&format!(" {name}"))))
    };
    let sweeps = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    sweeps.filter(|name| *name != "results::write" && !ran(name)).map(|name| format!("`{name}`")).collect()
}
