//! Paths as results name them: below the root, and which of them are the orchestrator's own.

/// Files that no turn may change.
pub(crate) const RESERVED: [&str; 4] = [
    ".agentxchain/state.json",
    ".agentxchain/history.jsonl",
    ".agentxchain/decision-ledger.jsonl",
    ".agentxchain/lock.json",
];

/// Returns the path without `.`, `..` and doubled slashes; `None` for one that leaves the root.
pub(in crate::governed) fn plain(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// True for a path that a review may not write.
pub(crate) fn is_product(path: &str) -> bool {
    let path = plain(path).unwrap_or_else(|| path.to_owned());
    !path.starts_with(".planning/") && !path.starts_with(".agentxchain/reviews/")
}

/// True for a path at which a role leaves what it proposes, whether it declares it or not.
pub(crate) fn is_proposal(path: &str) -> bool {
    let path = plain(path).unwrap_or_else(|| path.to_owned());
    let below = [".planning/", ".agentxchain/proposed/", ".agentxchain/reviews/", ".agentxchain/reports/"];
    below.iter().any(|folder| path.starts_with(folder))
}

/// Returns the reserved file that a path names, if it names one.
pub(super) fn reserved(path: &str) -> Option<&'static str> {
    let path = plain(path)?;
    RESERVED.into_iter().find(|reserved| *reserved == path)
}
