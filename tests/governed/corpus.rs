//! The public conformance corpus, where it is on this machine (G10).

use crate::skipped::skipped;
use aynig::conformance::conformance;
use std::path::{Path, PathBuf};

/// The corpus: named by the environment, or a neighbour of the source folder.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("AYNIG_CONFORMANCE").map(PathBuf::from);
    let near = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/conformance");
    Some(named.unwrap_or_else(near)).filter(|folder| folder.is_dir())
}

fn fixtures(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fixtures(&path, found);
        } else if path.extension().is_some_and(|e| e == "json") && is_fixture(&path) {
            found.push(path);
        }
    }
}

fn is_fixture(path: &Path) -> bool {
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    value.get("fixture_id").is_some()
}

#[test]
fn every_fixture_of_the_public_corpus_passes() {
    let Some(folder) = folder() else {
        return skipped("no corpus; AYNIG_CONFORMANCE names its folder");
    };
    let mut all = Vec::new();
    fixtures(&folder, &mut all);
    all.sort();
    assert!(!all.is_empty(), "'{}' holds no fixture", folder.display());
    let mut wrong = Vec::new();
    for path in &all {
        let (verdict, code) = conformance(&std::fs::read(path).unwrap());
        if code != 0 {
            wrong.push(format!("{}: {code} {verdict}", path.display()));
        }
    }
    println!("{} of {} fixtures pass", all.len() - wrong.len(), all.len());
    assert!(wrong.is_empty(), "{} of {} fail:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}
