//! The long texts of flows.

/// `flow`.
pub const FLOW: &str = "\
A flow is several agents that hand work to one another, each on a branch of its own, joined by edges. A message brings \
a node a turn; what the turn hands on is merged into the receiver's branch. All of it is kept in Git, so a flow goes on \
wherever its branches are ticked, and any clone shows the same.

'events' shows what happened, and with '--follow' what happens; 'artifacts' lists the files that came of turns. 'route' \
is what the command of the state 'route' calls: it does what follows from a turn, once.";

/// `flow`, sections.
pub const FLOW_MORE: &str = "\
Exit status:
  0    done
  2    refused; or there is no such flow
  3    the flow was changed by others meanwhile
  75   try again later
  128  fatal
  129  wrong usage

Examples:
  git aynig flow events review --follow
  git aynig flow artifacts review

See also:
  git-aynig(1), git-aynig-events(1), git-aynig-send(1)";
