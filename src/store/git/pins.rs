//! What every `git` child is pinned to: its configuration, and the variables that reach it.
//!
//! A `git` child runs no hook and no monitor, starts no maintenance, prints the same text everywhere, and is
//! steered by none of the `GIT_*` variables that this process was started with. Implements K15 (end), K37.

use std::ffi::OsStr;

/// Configuration of every child, each with its reason.
pub(crate) const PINNED: &[&str] = &[
    // What the runner does fires no hook: not reference-transaction, not post-checkout.
    "core.hooksPath=/dev/null",
    // Nor does it fire a hook that the configuration names by event, which Git 2.55 and later knows.
    "hook.reference-transaction.enabled=false",
    "hook.post-checkout.enabled=false",
    "hook.post-index-change.enabled=false",
    "hook.pre-push.enabled=false",
    "hook.pre-auto-gc.enabled=false",
    // A monitor is a daemon that the user's configuration names.
    "core.fsmonitor=false",
    // A user who sets it promises to tell Git of changes; a command makes no such promise for its changes.
    "core.ignoreStat=false",
    // No change of a file may be missed because of its times. What the user's own Git
    // overlooks is the user's choice.
    "core.trustctime=true",
    "core.checkStat=default",
    // No background process that outlives the child and holds locks.
    "gc.auto=0",
    "maintenance.auto=false",
    // Verification runs gpg and mixes its text with the output that is read.
    "log.showSignature=false",
    // Output is parsed.
    "color.ui=false",
    "core.quotePath=false",
    "i18n.logOutputEncoding=UTF-8",
    // Git waits for a lock that another process holds for a moment, as this tool's own swap does.
    "core.filesRefLockTimeout=1000",
    "reftable.lockTimeout=1000",
    // The runner does not move submodules.
    "submodule.recurse=false",
    "advice.detachedHead=false",
];

/// `GIT_*` variables that reach a child: how to talk to remotes, where configuration is, and traces.
const ALLOWED: &[&str] = &[
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_HTTP_PROXY_AUTHMETHOD",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    // Which transports the environment allows.
    "GIT_ALLOW_PROTOCOL",
    "GIT_PROTOCOL_FROM_USER",
];
const ALLOWED_PREFIXES: &[&str] = &["GIT_SSL_", "GIT_PROXY_SSL_", "GIT_TRACE"];

/// True for a variable that a child may inherit.
pub(crate) fn is_passed_on(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return true };
    !name.starts_with("GIT_")
        || ALLOWED.contains(&name)
        || ALLOWED_PREFIXES.iter().any(|p| name.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_git_variables_reach_a_child() {
        for gone in
            ["GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_QUARANTINE_PATH"]
        {
            assert!(!is_passed_on(OsStr::new(gone)), "{gone}");
        }
        for kept in
            ["HOME", "PATH", "GIT_SSH_COMMAND", "GIT_TRACE2_EVENT", "GIT_CONFIG_GLOBAL", "HTTPS_PROXY"]
        {
            assert!(is_passed_on(OsStr::new(kept)), "{kept}");
        }
    }
}
