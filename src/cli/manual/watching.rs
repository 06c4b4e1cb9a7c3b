//! Manual pages of the verbs by which a person or a script stays with a branch.

/// `diff`.
pub const DIFF: &str = "\
Shows what a run changed: the commit that it answered against its outcome or, where it stalled or was canceled, against \
the work that was kept of it. A branch means its latest run. Else the run's id or the beginning of it, or a commit: the \
one that it answered, its lease, its outcome. The id of a question means the work that is asked about.

The rest is 'git diff', with your pager and your configuration; its options and paths stand behind '--'. In a repository \
that is not trusted nothing is started that its own configuration names: no pager, no external diff, no textconv.";

/// `diff`, sections.
pub const DIFF_MORE: &str = "\
Exit status:
  0    shown; else what git diff exits with
  2    refused in a repository that is not trusted: --submodule
  3    the run has not ended
  75   the remote cannot be reached
  128  no such branch or run, or something cannot be read

Examples:
  git aynig diff job
  git aynig diff job -- --stat
  git aynig diff job -- --word-diff -- '*.md'

See also:
  git-aynig(1), git-aynig-logs(1), git-aynig-events(1), git-diff(1)";

/// `shell`.
pub const SHELL: &str = "\
Opens your shell ($SHELL) in a worktree of the pool that holds what a run left: its outcome or, where it stalled or was \
canceled, the work that was kept of it; what it answered where it left nothing. A run is named as 'diff' has it. No run \
gets that worktree until the shell ends, and no branch is touched.

What was changed there, committed or not, is kept under refs/aynig/attempts/ when the shell ends, and said with the command \
that shows it and the one that hands it to the branch. It goes by its age, as all that is kept does (see \
aynig.attemptExpire). Not in a repository that is not trusted: to write its files, programs of its own may be started.";

/// `shell`, sections.
pub const SHELL_MORE: &str = "\
Exit status:
  Else what the shell exits with:
  2    not trusted
  3    the run has not ended
  75   the remote cannot be reached
  128  no such branch or run, no worktree is free, or something cannot be read

Examples:
  git aynig shell job
  git aynig shell 1b671a64

See also:
  git-aynig(1), git-aynig-diff(1), git-aynig-logs(1), git-aynig-retry(1), git-aynig-send(1)";

/// `wait`.
pub const WAIT: &str = "\
Returns when the branch rests: when no run holds it, and no command answers its state. With --for, when it is in that \
state, or was since the wait began. A branch on which a run stalled ends the wait too, unless a command answers that; \
so does one whose command is not dispatched here. Nothing is changed, and nothing is dispatched: that is what ticks, \
hooks and 'git aynig run' are for.";

/// `wait`, sections.
pub const WAIT_MORE: &str = "\
JSON:
An object with schema (aynig.wait/1), branch, reached (state, rest, stalled, refused, timeout, signal), commit, state, \
standing, seconds.

Exit status:
  0    the branch rests, or is or was in that state
  1    a run on it stalled
  2    its state has a command that is not dispatched here: see git-aynig-status(1)
  75   the time is over, or the remote cannot be reached
  128  no such branch, or something cannot be read
  129  wrong usage
  130  ended by an interrupt; 143 by SIGTERM

Examples:
  git aynig wait job --timeout 10m
  git aynig wait job --for done && git merge job

See also:
  git-aynig(1), git-aynig-status(1), git-aynig-events(1), git-aynig-run(1)";

/// `usage`.
pub const USAGE: &str = "\
Adds up what runs have used: tokens, and dollars as exact decimal numbers. A command says it in its declaration, \
\"usage\": {\"input_tokens\": 1200, \"output_tokens\": 300, \"cost_usd\": 0.042, \"model\": \"m\"} (and \"provider\"), or while it runs, in \
lines of that with \"type\":\"usage\" that it appends to the file which AYNIG_EVENTS names; both are added up, and the commit that ends \
the run keeps them as dwp-usage trailers.

What all branches contain is read, each run once, the newest first. A run counts for the branch that it moved, \
before one that was merged into; of several for the first by name.";

/// `usage`, sections.
pub const USAGE_MORE: &str = "\
JSON:
Objects with schema (aynig.usage/1), by (branch, state, model, day, total), name, runs, unpriced (runs that said no cost), \
input_tokens, output_tokens, cost_usd (null where none was said); the total last.

Exit status:
  0    added up
  75   the remote cannot be reached
  129  wrong usage
  128  something cannot be read

Examples:
  git aynig usage --since 7d --by branch
  git aynig usage --since 2030-01-01 --by model --json

See also:
  git-aynig(1), git-aynig-status(1), git-aynig-logs(1)";
