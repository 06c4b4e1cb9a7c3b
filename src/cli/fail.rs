//! What a verb reports when it cannot go on: the failure, its causes, and the command that mends it.
//!
//! The text has the form of Git's: `error:` what failed, `caused by:`, `hint:`. Typed errors become messages
//! and exit codes in this file; those of governed runs, packs and the demo beside their verbs.

use super::hints::{self, Addressed};
use super::{diff, exit, logs, trust};
use crate::app::change::NotPushed;
use crate::app::{AppError, Exit, Misuse};
use crate::contract::flow::Refused;
use crate::flow::FlowError;
use crate::flow::project::ProjectError;
use crate::protocol::obstacle::Obstacle;
use crate::protocol::text::{branch_word, escape, shell_word};
use crate::runner::RunnerError;
use crate::runner::change::ChangeError;
use crate::runner::report::Refusal;
use crate::runner::talk::TalkError;
use crate::runner::uninstall::InUse;
use crate::store::repository::{OpenError, Stray};
use crate::store::{RefName, StoreError};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A verb that ended without doing what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// The process's exit code.
    pub code: i32,
    /// What failed; empty where everything was reported already.
    pub message: String,
    /// The causes of the failure, outermost first.
    pub causes: Vec<String>,
    /// Commands that mend the failure.
    pub hints: Vec<String>,
}

impl Failure {
    /// Creates the failure of a wrong call, with exit code 129.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 129, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }
    /// Creates a fatal failure, with exit code 128.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self { code: 128, ..Self::usage(message) }
    }
    /// Creates a refusal by policy, with exit code 2.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::usage(message) }
    }
    /// Adds a command that mends the failure.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
    /// Creates a failure from an error of a lower layer, with that error's causes. The exit code is 128 until
    /// the caller sets another one.
    pub fn caused(error: &dyn std::error::Error) -> Self {
        Self::of(error, 128)
    }
    pub(super) fn of(error: &dyn std::error::Error, code: i32) -> Self {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Self { code, message: error.to_string(), causes, hints: Vec::new() }
    }

    /// Returns the text for standard error, escaped.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if !self.message.is_empty() {
            text += &format!("error: {}\n", escape(self.message.as_bytes()));
        }
        for cause in &self.causes {
            text += &format!("caused by: {}\n", escape(cause.as_bytes()));
        }
        for hint in &self.hints {
            text += &format!("hint: {}\n", escape(hint.as_bytes()));
        }
        text
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        RunnerError::Store(error).into()
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        (&error).into()
    }
}

impl From<&RunnerError> for Failure {
    fn from(error: &RunnerError) -> Self {
        let mut failure = Failure::of(error, exit::code(error.into()));
        failure.hints.extend(hints::of(error, None));
        failure
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        (&error).into()
    }
}

impl From<&AppError> for Failure {
    fn from(error: &AppError) -> Self {
        let mut failure = match error {
            AppError::Runner(error) => return error.into(),
            AppError::Change { error, remote } => return Failure::changing(error, remote.as_deref()),
            // These errors wrap another one, and their message includes its message: causes and hints are
            // those of the inner error.
            AppError::NotDispatched { cause, .. }
            | AppError::Unseen { cause, .. }
            | AppError::NotPushed { why: NotPushed::Failed(cause), .. } => {
                Failure { message: error.to_string(), ..Failure::from(&**cause) }
            }
            _ => Failure::of(error, exit::code(Exit::from(error))),
        };
        failure.hints.extend(mended(error));
        failure
    }
}

/// Returns the commands that mend what stopped a verb, besides those of a wrapped error.
fn mended(error: &AppError) -> Vec<String> {
    let one = match error {
        AppError::NotPushed { branch, remote, why, .. } => return push_again(branch, remote, why),
        AppError::Open(OpenError::Refused { stray: Some(stray), .. }) => return of_stray(stray),
        // Git names the command that has it trust a repository of another account's.
        AppError::Open(OpenError::Refused { message, .. }) => {
            let at = message.find("git config --global --add safe.directory ");
            at.map(|at| escape(message[at..].trim().as_bytes()))
        }
        AppError::Open(OpenError::NotFound { .. }) => Some("cd into a repository, or git init".to_owned()),
        AppError::Open(OpenError::Store(_)) => None,
        AppError::BadValue { key, .. } => Some(format!("git {}", hints::show_key(&format!("aynig.{key}")))),
        AppError::Misuse(Misuse::Detached { naming }) => Some(format!("git aynig {naming}")),
        AppError::NotTrusted { place, current, is_writable: false } => {
            // The source is the current branch by its name, so that what is pushed to another branch brings
            // no commands of its own.
            let source =
                current.as_ref().map_or_else(|| "<ref>".to_owned(), |branch| shell_word(branch.as_bytes()));
            Some(format!("git -C {} -c aynig.commandsFrom={source} aynig tick", hints::place(place)))
        }
        AppError::NotTrusted { place, current, is_writable: true } => {
            // Without a current branch there is no branch to take commands from by default.
            let source = if current.is_some() { "" } else { " --branches" };
            Some(format!("git -C {} aynig trust{source}", hints::place(place)))
        }
        AppError::InUse(InUse::Run) => Some("git aynig status, and git aynig cancel <branch>".to_owned()),
        AppError::InUse(InUse::Another(dir)) => Some(hints::take_over(dir)),
        AppError::InUse(InUse::Checkout(_)) => Some("commit or stash, then git aynig tick".to_owned()),
        AppError::Flow(error) => flowed(error),
        AppError::Project(ProjectError::Held { path, holder, .. }) => Some(match holder {
            Some(pid) => {
                format!("ps -o stat,args -p {pid}; kill -CONT {pid} has it go on where it was stopped")
            }
            None => format!("fuser -v {}", shell_word(path.as_os_str().as_encoded_bytes())),
        }),
        AppError::NoTurns(_) => Some("git aynig flow init, then commit .aynig".to_owned()),
        AppError::Talk { error, remote } => talked(error, remote.as_deref()),
        AppError::Logs(error) => logs::mended(error),
        AppError::Past(error) => diff::mended(error),
        AppError::Trust(error) => trust::mended(error),
        AppError::Misuse(Misuse::NoSource) => Some("git aynig trust --ref <branch>".to_owned()),
        AppError::Misuse(Misuse::StalledOutside) => Some("git aynig set-state --emit blocked".to_owned()),
        AppError::Misuse(Misuse::InsideTurn) => {
            Some("write the result to \"$AGENTXCHAIN_RESULT\", as PROMPT.md says, and end".to_owned())
        }
        AppError::Misuse(Misuse::Working { branch, remote }) => {
            let branch = branch.as_ref().map(|name| format!(" -b {}", branch_word(name.as_bytes())));
            let remote = hints::remote_option(remote.as_deref());
            Some(format!("git aynig set-working{remote}{}", branch.unwrap_or_default()))
        }
        AppError::Misuse(Misuse::Id { listing, .. }) => listing.map(|verb| format!("git aynig {verb}")),
        AppError::Unasked(remote) | AppError::NoBranch { unasked: Some(remote), .. } => {
            Some(hints::same_with_remote(remote))
        }
        AppError::NoBranch { branch, remote, unasked: None } => {
            Some(Addressed::new(branch, remote.as_deref()).set("<state>"))
        }
        AppError::NoMatch { remote, .. } => {
            Some(format!("git aynig status{}", hints::remote_option(remote.as_deref())))
        }
        AppError::NotDispatched { branches, .. } => {
            let words: Vec<String> =
                branches.iter().map(|branch| Addressed::new(branch, None).word).collect();
            Some(format!("git aynig tick {}", words.join(" ")))
        }
        AppError::Misuse(
            Misuse::Duration(_)
            | Misuse::Since(_)
            | Misuse::Jobs
            | Misuse::Lease
            | Misuse::Role { .. }
            | Misuse::State { .. }
            | Misuse::Trailer(_)
            | Misuse::Message(_)
            | Misuse::Kind { .. }
            | Misuse::Flow(_)
            | Misuse::Commit(_)
            | Misuse::Branch(_)
            | Misuse::Ref(_),
        )
        | AppError::Runner(_)
        | AppError::Route(_)
        | AppError::Turn(_)
        | AppError::Project(
            ProjectError::Store(_)
            | ProjectError::Runner(_)
            | ProjectError::Talk(_)
            | ProjectError::Flow { .. }
            | ProjectError::Files { .. }
            | ProjectError::Folder(_)
            | ProjectError::Io { .. },
        )
        | AppError::Change { .. }
        | AppError::NoFolder(_)
        | AppError::Background(_)
        | AppError::Promised(_)
        | AppError::Unseen { .. } => None,
    };
    one.into_iter().collect()
}

/// Returns the command that mends what kept a flow from being read or changed.
fn flowed(error: &FlowError) -> Option<String> {
    match error {
        FlowError::NoFlow(_) | FlowError::Several { .. } => Some("git aynig flow list".to_owned()),
        FlowError::Refused(
            Refused::UnknownNode(_) | Refused::UnknownEdge(_) | Refused::AmbiguousNode { .. },
        )
        | FlowError::NoNode(_)
        | FlowError::NotRunning(_) => Some("git aynig flow show <flow>".to_owned()),
        FlowError::Unreadable { name, .. } => {
            let name = shell_word(format!("refs/aynig/flows/{name}").as_bytes());
            Some(format!("git log {name}"))
        }
        FlowError::OtherVersion { .. } => {
            Some("install a git-aynig that speaks it; see 'Migration' in CONTRACT.md".to_owned())
        }
        FlowError::CheckedOut { place, .. } => {
            Some(format!("git -C {} switch --detach", hints::place(place)))
        }
        FlowError::Refused(Refused::NameTaken(_)) => Some("git aynig flow list".to_owned()),
        FlowError::NoTemplate(_) | FlowError::NotOwnTemplate(_) => {
            Some("git aynig flow template list".to_owned())
        }
        FlowError::Refused(
            Refused::AliasTaken { .. }
            | Refused::NodeExists(_)
            | Refused::EdgeToNowhere { .. }
            | Refused::Empty { .. }
            | Refused::TooLong { .. }
            | Refused::BranchTaken(_)
            | Refused::NoFolder(_)
            | Refused::TooManyNodes(_),
        )
        | FlowError::Raced(_)
        | FlowError::NoTemplateName(_)
        | FlowError::Talk(_) => None,
    }
}

/// Returns the command that mends what kept a message, a question or an answer from being written.
fn talked(error: &TalkError, remote: Option<&str>) -> Option<String> {
    let at = |branch| Addressed::new(branch, remote);
    match error {
        TalkError::NoBranch(branch) => Some(at(branch).list()),
        TalkError::IdTaken(branch, _) | TalkError::NotWaiting(branch, _) => Some(at(branch).call("inbox")),
        TalkError::NoQuestion(_)
        | TalkError::NoSuchQuestion(_)
        | TalkError::Gone(_)
        | TalkError::Several(..) => Some("git aynig status --waiting".to_owned()),
        TalkError::Dialect(_) => Some("git aynig ask --wait".to_owned()),
        TalkError::IsAnswer(branch)
        | TalkError::NoShortForm { branch, .. }
        | TalkError::NotOffered { branch, .. } => Some(format!("{} <choice>", at(branch).call("answer"))),
        TalkError::NoJudge(_, name, _) => {
            Some(format!("git aynig doctor, or {}", removal(&name.to_string(), remote)))
        }
        TalkError::NotSigned(unsigned) => {
            let gone = removal(&format!("refs/aynig/asked/{}", unsigned.id), remote);
            // Where Git objects to a signature, the cause may be that this machine lacks what it takes to
            // verify one.
            Some(if unsigned.why.is_empty() { gone } else { format!("git aynig doctor, or {gone}") })
        }
        TalkError::Unseen(id, _) => Some(format!("git show refs/aynig/asked/{id}")),
        // An answer that was given stands; anything that is to be added is a message.
        TalkError::Answered { branch, .. } => {
            let send = branch.as_ref().map(|branch| at(branch).call("send"));
            Some(format!("{} -m <text>", send.as_deref().unwrap_or("git aynig send <branch>")))
        }
        TalkError::Outside | TalkError::Message(_) | TalkError::Unreadable(..) | TalkError::Change(_) => None,
    }
}

/// Returns the commands that mend what stands in a repository's place.
fn of_stray(stray: &Stray) -> Vec<String> {
    let away = |file: &Path| format!("if no repository is to be there: {}", hints::move_aside(file));
    match stray {
        Stray::File(file) => vec![away(file)],
        // Git has no command that makes such a note again for a folder with files in it.
        Stray::Unknown { dir, repo } => {
            let (word, repo) =
                (shell_word(dir.as_os_str().as_bytes()), shell_word(repo.as_os_str().as_bytes()));
            vec![format!("{} && git -C {repo} worktree add {word} <branch>", hints::move_aside(dir))]
        }
        Stray::Moved(dir) => {
            let word = shell_word(dir.as_os_str().as_bytes());
            let repair = format!("where its repository is now: git -C <repository> worktree repair {word}");
            vec![repair, away(&dir.join(".git"))]
        }
    }
}

/// Returns the command that removes a ref from the remote or, for `None`, from this repository.
fn removal(name: &str, remote: Option<&str>) -> String {
    let name = shell_word(name.as_bytes());
    match remote {
        Some(remote) => format!("git push --delete {} {name}", shell_word(remote.as_bytes())),
        None => format!("git update-ref -d {name}"),
    }
}

/// Returns the commands that bring a branch to its remote after `--push` has not.
fn push_again(branch: &RefName, remote: &str, why: &NotPushed) -> Vec<String> {
    let (word, at) = (branch_word(branch.short()), shell_word(remote.as_bytes()));
    match why {
        NotPushed::NoRemote => vec![format!("git push -u <remote> {word}")],
        NotPushed::Behind => vec![format!("git pull --rebase {at} {word} && git push {at} {word}")],
        NotPushed::Unknown(_) => {
            let whole = shell_word(branch.as_bytes());
            vec![format!("git ls-remote {at} {whole}"), format!("git push {at} {word}")]
        }
        NotPushed::Failed(_) => vec![format!("git push {at} {word}")],
    }
}

impl From<crate::supervisor::SupervisorError> for Failure {
    fn from(error: crate::supervisor::SupervisorError) -> Self {
        RunnerError::Supervisor(error).into()
    }
}

impl Failure {
    /// Creates the failure of a verb that could not write to a branch of that remote or, for `None`, of this
    /// repository.
    pub fn changing(error: &ChangeError, remote: Option<&str>) -> Self {
        let at = |branch| Addressed::new(branch, remote);
        let hint = match error {
            ChangeError::Leased(branch, _) => Some(at(branch).call("cancel")),
            ChangeError::LeaseLost(branch, _) | ChangeError::Raced(branch) => Some(at(branch).call("status")),
            ChangeError::NoBranch(branch) => Some(at(branch).list()),
            ChangeError::ByHand(branch) => Some(at(branch).set("blocked")),
            ChangeError::NoTrigger(branch, _) => Some(at(branch).set("<state>")),
            ChangeError::NotVouched(_, commit) => {
                Some(format!("git verify-commit {commit} && git show -s {commit}"))
            }
            ChangeError::Unborn(_) => Some("git commit --allow-empty -m 'first commit'".to_owned()),
            ChangeError::NotLeased(branch) | ChangeError::NotStalled(branch) => {
                Some(at(branch).call("status"))
            }
            ChangeError::Blocked(_, Obstacle::Changes(_)) => {
                Some("commit or stash them, then try again".to_owned())
            }
            ChangeError::Apart(..) => {
                Some("move the branch's own away, commit that, then try again".to_owned())
            }
            ChangeError::Blocked(_, by) => Some(format!("{}, then try again", hints::of_obstacle(by))),
            ChangeError::NotFanned(branch)
            | ChangeError::Chosen { branch, .. }
            | ChangeError::Unfinished(branch, _)
            | ChangeError::Exists(branch) => Some(at(branch).call("status")),
            ChangeError::Fanned(branch, attempts) => {
                Some(at(attempts.first().unwrap_or(branch)).call("choose"))
            }
            ChangeError::NoRules(..) => Some("git aynig help land".to_owned()),
            ChangeError::MayNotLand(Refusal::Target { onto, key }) => {
                let (key, onto) = (shell_word(key.as_bytes()), shell_word(onto.short()));
                Some(format!("git config --global --add {key} {onto}"))
            }
            ChangeError::Message(_)
            | ChangeError::Itself(_)
            | ChangeError::MayNotLand(_)
            | ChangeError::Dialect(..)
            | ChangeError::Slot(_)
            | ChangeError::Runner(_) => None,
        };
        let words = match error {
            ChangeError::Blocked(_, by) => Some(by.to_string()),
            _ => None,
        };
        let mut failure = match error {
            ChangeError::Runner(error) => error.into(),
            other => Failure::of(other, exit::code(other.into())),
        };
        failure.causes.extend(words);
        failure.hints.extend(hint);
        failure
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        Self::changing(&error, None)
    }
}
