//! Manual page of `mcp`, the server of a flow's tools.

/// `mcp`.
pub const MCP: &str = "\
Offers the tools of a flow to an agent's program by the Model Context Protocol, on standard input and output: 'send_handoff', \
'ask', 'todo_write', and where the node may, 'create_edge', 'spawn_node', 'finish_run'. 'git aynig flow turn' gives it to 'claude', \
'codex' and 'gemini' by itself, with the socket of that turn; there is nothing to call or configure.

It does nothing to the repository itself. Each call goes to the turn, which checks it as it checks one by a line of text: \
what the node may, whether a person is asked first. The answer has the ids that what is made will have, and \
'git aynig flow route' makes it once the turn's outcome is on the branch. A question, and a call that waits for a person, are \
answered when the person has.

The program is 'git-aynig-serve', a package of its own. Where it is neither beside this one nor on PATH, agents call the same \
tools by lines of their text: see gitaynig-flow(7).";

/// `mcp`, sections.
pub const MCP_MORE: &str = "\
Who may call:
Whatever runs as the same user and finds the socket, which is in the turn's own folder: so every request counts as an agent's, and gets \
no more than the node may. A turn takes at most 2000 requests, each of 4 MiB at most.

A program of your own:
A turn of 'custom' offers no socket: its program calls tools by its lines.

Exit status:
  0    its standard input ended
  128  no turn listens on the socket, or the program is missing
  129  wrong usage

Examples:
  git aynig mcp --socket .git/aynig/runs/0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00/turn/tools/socket

See also:
  git-aynig-flow(1), gitaynig-flow(7), git-aynig-serve(1)";
