//! Manual pages of the verbs by which a person or a script stays with a branch.

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
  git aynig set-state build -b job && git aynig wait job --timeout 10m
  git aynig wait job --for done --for failed && git merge job

See also:
  git-aynig(1), git-aynig-status(1), git-aynig-events(1), git-aynig-run(1)";
