//! Manual page of `flow`; gitaynig-flow(7) explains what flows are.

/// `flow`.
pub const FLOW: &str = "\
A flow is agents that hand work to one another. Each is a node, which is a branch: it has its turns there, one tick \
each, and what it hands on is merged where it goes. Edges say who may hand work to whom. All of it is in Git: a flow is \
a commit under refs/aynig/flows/, and nothing has to stay running for it. See gitaynig-flow(7).

'events' shows what happened, and with '--follow' what happens; 'artifacts' lists the files that came of turns. 'turn' and \
'route' are what the commands of these two states call.

A flow is named by its name, in any case, by its id, or by the folder of its branches below flow/; a node by its alias, its label or its id. Each verb takes \
'--remote NAME' for the flows of a remote, and '--json'.";

/// `flow`, sections.
pub const FLOW_MORE: &str = "\
Exit status:
  0    done
  2    refused: there is no such flow or node, a name is taken, the trusted commands have no 'turn' and no 'route', or a folder in the place of one, there \
is no turn to interrupt, the branch is checked out; not trusted; declined by the remote, or it cannot be signed
  3    others changed it again and again; the approval was answered meanwhile
  75   try again later
  128  fatal, among it a flow that cannot be read
  129  a word, an id or a text is not usable
  130  ended by an interrupt while turns were waited for; 143 by SIGTERM

Configuration:
  aynig.killGrace  how long a turn has to end that is interrupted (10s)
  Those of agents' programs are listed in gitaynig-flow(7).

JSON:
What changes a flow prints an object with schema (aynig.flow-change/1), flow, name, commit, status, mode, global_mode, node \
(id, branch, stopped, config), edge. 'list': aynig.flow/1 with id, name, status, mode, global_mode, created_at, nodes, commit, \
ref, problem (why it cannot be read, or null). 'approvals': aynig.approval/1 with id, flow, node, name, branch, text, choices, \
tool, asked. 'template': aynig.template/1 with name, source, text. 'send', 'approve' and the like: aynig.message/1, as \
git-aynig-send(1) has it; 'reset' one for each message that it drops, then the flow.

Examples:
  git aynig flow new review
  git aynig flow node add review --label Lead --role orchestrator --provider claude
  git aynig flow node add review --label Ada --role implementer --provider codex
  git aynig flow edge add review Lead Ada
  git aynig flow send review Lead -m 'Make the parser faster.'
  git aynig flow show review
  git aynig flow events review --follow

See also:
  gitaynig-flow(7), git-aynig(1), git-aynig-send(1), git-aynig-answer(1), git-aynig-trust(1)";
