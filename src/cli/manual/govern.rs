//! Manual page of `govern`, the verbs about governed runs.

/// `govern`.
pub const GOVERN: &str = "\
A governed run is work that several roles do in turns. The project's agentxchain.json names the roles, the phases, \
who may follow whom, and the gates that a person opens; .agentxchain/state.json says where the run is. Both are files \
of a branch, and everything that happens to the run is a commit on it, made by one compare-and-swap: a turn can't be \
accepted twice, from however many machines the run is driven.

'start' begins a run and gives the branch its first state, 'turn/<role>'. A tick answers that with the command \
.aynig/command/turn/<role>, which calls 'git aynig govern turn': the turn is assigned, its bundle written, its worker \
run, the result accepted or rejected. The next state is the next role's 'turn/<role>', or one that no command answers \
and a person or a worker of your own does: 'waiting', 'gate', 'blocked'. 'done' is the end.

Each verb that changes the run takes '-b BRANCH' (the current branch without it), or '--root DIR' for a plain folder \
without Git, and '--json'.

Workers and hooks are programs that agentxchain.json names, so it is read where commands are read: from the ref of \
'aynig.commandsFrom', or from the branch itself where that is trusted. See gitaynig-govern(7).";

/// `govern`, sections.
pub const GOVERN_MORE: &str = "\
Exit status:
  0    done
  1    written down, but stopped: a hook said no, a turn conflicts, 'loop' did not complete the run
  2    refused by the rules of the run, and nothing was changed; or not trusted
  3    the branch is leased, or was moved meanwhile
  75   another process changes the same folder
  128  fatal
  129  wrong usage

Examples:
  git aynig govern start -b work
  git aynig run
  git aynig govern status -b work
  git aynig govern approve-phase -b work

See also:
  gitaynig-govern(7), git-aynig(1), git-aynig-tick(1), git-aynig-trust(1)";
