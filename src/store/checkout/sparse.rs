//! What a sparse checkout of the main working tree leaves out.
//!
//! No folder may be created outside of the sparse checkout: Git would expand a sparse index for it, in every
//! command from then on, and removes ignored files in it when the checkout changes. Only cone mode matters,
//! because the index is never sparse without it. No process is started, and a repository without a sparse
//! checkout costs the look for one file. Implements K16.

use crate::store::disk::read_plain;
use crate::store::repository::Repository;
use gix::config::{File, Source};
use std::collections::HashSet;
use std::path::Path;

/// Most bytes of `info/sparse-checkout` that are read.
const PATTERNS_MAX: u64 = 64 << 20;

/// True where the main working tree has a sparse checkout in cone mode and this folder (`a/b`) is not in it.
/// Where the patterns can't be read, the folder is taken to be left out.
pub(crate) fn leaves_out(repo: &Repository, folder: &str) -> bool {
    let patterns = repo.common_dir.join("info/sparse-checkout");
    if patterns.symlink_metadata().is_err() || !is_cone(repo) {
        return false;
    }
    read_plain(&patterns, PATTERNS_MAX).map_or(true, |patterns| !is_in(&patterns, folder))
}

/// True where the configuration of the main working tree turns on a sparse checkout in cone mode, whichever
/// working tree this process is in.
fn is_cone(repo: &Repository) -> bool {
    let gix = repo.as_opened();
    let config = gix.config_snapshot();
    let config = config.plumbing();
    let own = config.boolean("extensions.worktreeConfig").is_ok_and(|said| said == Some(true));
    let path = repo.common_dir.join("config.worktree");
    let own = own.then(|| File::from_path_no_includes(path, Source::Worktree).ok()).flatten();
    ["core.sparseCheckout", "core.sparseCheckoutCone"].into_iter().all(|key| {
        let said = own.as_ref().and_then(|own| own.boolean(key).ok().flatten());
        // What another working tree's `config.worktree` says applies to that working tree only.
        let shared = || config.boolean_filter(key, |from| from.source != Source::Worktree).ok().flatten();
        said.or_else(shared).unwrap_or(false)
    })
}

/// True where a cone's patterns include everything below this folder, by naming the
/// folder itself or one above it.
fn is_in(patterns: &[u8], folder: &str) -> bool {
    let (mut whole, mut all) = (HashSet::new(), false);
    for line in patterns.split(|b| *b == b'\n') {
        match line.strip_suffix(b"\r").unwrap_or(line) {
            b"/*" => all = true,
            b"!/*/" => all = false,
            // `!/a/*/` after `/a/` leaves only the files directly in that folder.
            line => match line.strip_prefix(b"!/").and_then(|line| line.strip_suffix(b"/*/")) {
                Some(parent) => _ = whole.remove(parent),
                None => whole.extend(line.strip_prefix(b"/").and_then(|line| line.strip_suffix(b"/"))),
            },
        }
    }
    let mut above = Path::new(folder).ancestors().filter(|path| !path.as_os_str().is_empty());
    all || above.any(|path| whole.contains(path.as_os_str().as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::is_in;

    /// K16: the patterns that `git sparse-checkout` writes for a cone
    #[test]
    fn a_folder_is_in_a_cone_that_has_it_whole() {
        for (patterns, is) in [
            ("/*\n", true),
            ("/*\n!/*/\n", false),
            ("/*\n!/*/\n/a/\n", false),
            ("/*\n!/*/\n/.aynig/\n/a/\n", true),
            ("/*\n!/*/\n/.aynig/\n!/.aynig/*/\n/.aynig/command/\n", false),
            ("/*\n!/*/\n/.aynig/\n!/.aynig/*/\n/.aynig/logs/\n", true),
            ("/*\n!/*/\n/.aynigs/\n", false),
        ] {
            assert_eq!(is_in(patterns.as_bytes(), ".aynig/logs"), is, "{patterns}");
        }
    }
}
