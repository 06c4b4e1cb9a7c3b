//! Every row of the table has a test of its name, or a line that says why it does not apply. Row S24.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Names of all tests.
fn tests() -> Vec<String> {
    let mut files = Vec::new();
    sources(&root().join("tests"), &mut files);
    let mut names = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        for part in text.split("#[test]").skip(1) {
            let name = part.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

/// The line of CONTRACT.md's table that is about a row.
fn line(contract: &str, row: usize) -> String {
    let start = format!("| S{row} |");
    let line = contract.lines().find(|line| line.starts_with(&start));
    line.unwrap_or_else(|| panic!("CONTRACT.md has no row S{row}")).to_owned()
}

/// The numbers of all rows.
fn rows(contract: &str) -> Vec<usize> {
    let number = |line: &str| line.strip_prefix("| S")?.split(' ').next()?.parse().ok();
    let rows: Vec<usize> = contract.lines().filter_map(number).collect();
    assert!(rows.len() >= 24 && rows.is_sorted(), "{rows:?}");
    rows
}

#[test]
fn every_row_has_a_test_or_says_why_not() {
    let (contract, tests) = (read("CONTRACT.md"), tests());
    for row in rows(&contract) {
        let (line, prefix) = (line(&contract, row), format!("s{row:02}_"));
        let tried = tests.iter().any(|name| name.starts_with(&prefix));
        assert!(tried || line.contains("does not apply"), "S{row} is tried by nothing: {line}");
    }
}

#[test]
fn every_test_that_the_table_names_exists() {
    let (contract, tests) = (read("CONTRACT.md"), tests());
    for row in rows(&contract) {
        for name in line(&contract, row).split('`').filter(|word| word.starts_with(&format!("s{row:02}_"))) {
            let prefix = name.trim_end_matches('*');
            assert!(tests.iter().any(|t| t.starts_with(prefix)), "no test '{name}'");
        }
    }
}

/// S24: what is built is what was looked at
#[test]
fn s24_the_tool_is_built_from_what_is_locked_and_holds_no_unsafe_code() {
    let manifest = read("Cargo.toml");
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    // What runs while it is built says how it is linked: it asks the linker where a library is, and fetches and makes nothing.
    let script = read("build.rs");
    let started: Vec<&str> =
        script.split("Command::new(").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert_eq!((started, manifest.contains("\nbuild =")), (vec!["linker"], false));
    for other in ["std::net", "std::fs", "::exec(", "http", "include", "OUT_DIR", "rustc-env"] {
        assert!(!script.contains(other), "{other}");
    }
    for wild in ["git = \"", "version = \"*\"", "= \"*\""] {
        assert!(!manifest.contains(wild), "{wild}");
    }
    let lock = read("Cargo.lock");
    let crates: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    assert!(crates.len() > 50);
    for entry in crates.iter().filter(|entry| !entry.contains("name = \"git-aynig")) {
        let source = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
        assert!(entry.contains(source) && entry.contains("checksum = \""), "{entry}");
    }
    let deny = read("deny.toml");
    for line in
        ["unknown-registry = \"deny\"", "unknown-git = \"deny\"", "wildcards = \"deny\"", "openssl-sys"]
    {
        assert!(deny.contains(line), "{line}");
    }
    let ci = read(".ci/run");
    assert!(
        ci.contains("cargo deny --locked check bans licenses sources")
            && ci.contains("--locked --all-targets")
    );
}
