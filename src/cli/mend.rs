//! What mends a finding of `doctor`, as a command that can be pasted. Implements K36.

use super::fail::Failure;
use super::hints;
use crate::app::doctor::Remedy;
use crate::protocol::text::{branch_word, escape, shell_word};
use crate::runner::checkup::Mend;
use crate::store::RefName;
use std::path::Path;

fn word(branch: &RefName) -> String {
    branch_word(branch.short())
}

fn quoted(path: &Path) -> String {
    shell_word(path.as_os_str().as_encoded_bytes())
}

/// Returns the command that mends a finding of the runner's checkup.
pub fn command(mend: &Mend) -> String {
    match mend {
        Mend::Trust(None) => "git aynig trust".to_owned(),
        // A user who names a bare repository stands elsewhere, perhaps in another repository, so the command
        // names the place.
        Mend::Trust(Some(place)) => format!("git -C {} aynig trust", quoted(place)),
        Mend::TrustRef => "git aynig trust --ref <branch>".to_owned(),
        Mend::Init => "git aynig init".to_owned(),
        Mend::CommitCommands => "git add .aynig && git commit".to_owned(),
        Mend::CommitWhereRead(home) => hints::commit(home, "git add .aynig", None),
        Mend::FixCommand { home, file, why, branch } => hints::mend(home, file, why, branch.as_ref(), ""),
        Mend::Status(branch) => format!("git aynig status {}", word(branch)),
        Mend::History(branch) => format!("git aynig events --history {}", shell_word(branch)),
        Mend::SetState(branch, state) => {
            let state = state.as_ref().map_or("<state>".to_owned(), |state| shell_word(state.as_bytes()));
            format!("git aynig set-state {state} -b {}", word(branch))
        }
        Mend::Tick(branch) => format!("git aynig tick {}", word(branch)),
        Mend::Resume { id, remote } => {
            let which = id.map_or_else(|| "--all".to_owned(), |id| id.to_string());
            format!("git aynig resume{} {which}", hints::remote_option(remote.as_deref()))
        }
        Mend::Cancel(branch) => format!("git aynig cancel {}", word(branch)),
        Mend::GitStatus(dir) => format!("git -C {} status", quoted(dir)),
        Mend::ListBranches => "git branch --list".to_owned(),
        Mend::FinishCheckout => "git aynig status".to_owned(),
        Mend::Gc(None) => "git aynig gc".to_owned(),
        Mend::Gc(Some(place)) => format!("git -C {} aynig gc", quoted(place)),
        Mend::RemoveLock { path, unless_used: false } => format!("rm {}", quoted(path)),
        Mend::RemoveLock { path, unless_used: true } => {
            format!("if no git process is at work: rm {}", quoted(path))
        }
        Mend::EndHolders(path) => format!("fuser -k {}", quoted(path)),
        Mend::InstallHooks => "git aynig hooks install".to_owned(),
        Mend::ReplaceProgram(program) => format!(
            "git aynig hooks install, with the program that is to be called in place of {}",
            quoted(program)
        ),
        Mend::MoveWorktrees => "git config --global aynig.worktreeDir <folder>".to_owned(),
        Mend::AllowExec => "mount it without 'noexec'".to_owned(),
        Mend::Remount(place) => {
            format!("sudo mount -o remount,rw \"$(findmnt -n -o TARGET -T {})\"", quoted(place))
        }
        Mend::MakeWritable(place) => format!("chmod u+rwx {}", quoted(place)),
        Mend::TakeOver(place) => hints::take_over(place),
        Mend::MoveSlotAside { note, dir } => hints::move_slot_aside(note, dir),
        Mend::MoveAside(file) => hints::move_aside(file),
        Mend::RemoveSymbolicRef(name) => hints::remove_symbolic_ref(name),
        Mend::RemoveBrokenRef(name) => format!("git update-ref -d {}", shell_word(name.as_bytes())),
        Mend::MoveRefAway(name) => hints::move_ref_away(name),
        Mend::ShowTrailers => "git config --show-origin --get-regexp '^(trailer|core\\.comment)'".to_owned(),
        Mend::ShowSigning => "git config --get-regexp '^(gpg|user)\\.'".to_owned(),
        Mend::ShowWrapper => format!("git {}", hints::show_key("aynig.exec")),
        Mend::SyncPushes(place) => format!("git -C {} config core.fsync committed", quoted(place)),
        Mend::Fsck => "git fsck --full".to_owned(),
        Mend::AddRemote(remote) => {
            let word = shell_word(remote.as_bytes());
            format!("git remote add {word} <url>, or git config --unset aynig.remote")
        }
        Mend::AskRemote(remote) => format!("git ls-remote {} HEAD", shell_word(remote.as_bytes())),
        Mend::SetClock(None) => "date; timedatectl status".to_owned(),
        Mend::SetClock(Some(ahead)) => {
            format!("date; timedatectl status; git config aynig.leaseGrace {ahead}s")
        }
    }
}

/// Returns the command that mends a finding: one of the runner's checkup, or one that only this process can
/// see, such as its environment or its git.
pub fn remedy(remedy: &Remedy) -> String {
    let or_else = |error, otherwise: &str| {
        let failure = Failure::from(error);
        let hint = failure.hints.first().map_or(otherwise, String::as_str);
        escape(hint.as_bytes())
    };
    match remedy {
        Remedy::Mend(mend) => command(mend),
        Remedy::SwitchOn => "unset AYNIG".to_owned(),
        Remedy::InstallGit => "install git, or put it on PATH".to_owned(),
        Remedy::NewerGit => "install a newer git, or put it first on PATH".to_owned(),
        Remedy::Unset(key) => {
            let word = shell_word(key.as_bytes());
            let instead = match key.as_str() {
                // `trust` writes the key for this repository alone.
                "aynig.commandsfrom" => "git aynig trust --ref <branch>".to_owned(),
                _ => format!("git config --global {word} <value>"),
            };
            format!("git config --local --unset-all {word}; {instead}")
        }
        Remedy::ShowKey(key) => format!("git {}", hints::show_key(key)),
        Remedy::NameRemote => "git config aynig.remote <name>".to_owned(),
        Remedy::Repository(error) => or_else(error, "cd into a repository, or git init"),
        Remedy::Configuration(error) => or_else(error, "git config --list --show-origin"),
    }
}
