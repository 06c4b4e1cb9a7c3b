//! What each verb's manual page says beyond its flags.
//!
//! Plain text in two parts per verb: the description, and sections that begin with a line `Heading:`. Where
//! no manual page is installed, `--help` prints both as they are; `tests/generated` turns them into
//! `man/*.1`. Rows are indented by two blanks; two or more blanks separate a term from its text.

mod flow;
mod govern;
mod hooks;
mod landing;
mod looking;
mod mcp;
mod serving;
mod talking;
mod watching;

pub use flow::*;
pub use govern::*;
pub use hooks::*;
pub use landing::*;
pub use looking::*;
pub use mcp::*;
pub use serving::*;
pub use talking::*;
pub use watching::*;

/// `git aynig`.
pub const AYNIG: &str = "\
A commit whose trailers say 'dwp-state: build' is an event. 'git aynig tick' takes its branch by \
compare-and-swap, runs .aynig/command/build from the commit in a worktree of its own, and writes what came \
of it as the branch's next commit. Nothing stays running between ticks; everything that happened is a commit.

Only the newest commit of a branch counts. A state that has no command waits for a person. A command that \
fails, times out or is killed leaves its branch 'stalled'; so does a runner that died, as soon as another \
tick finds its lease expired. Nothing runs in a repository until its user has said what may: see \
git-aynig-trust(1).

Where the trailer is 'aynig-state' instead, the command commits the next state itself in its worktree, and \
the tick brings its commits to the branch; those that say 'aynig-state: working' and the run's id renew its lease.";

/// `git aynig`, sections.
pub const AYNIG_MORE: &str = "\
Exit status:
  0    done, nothing to do, or leased elsewhere and not asked for by name
  1    a run stalled, or local changes are in the way
  2    refused by policy: not trusted, left out by 'aynig.branches', unsigned, command can't be started
  3    a branch asked for by name is leased, or the race for it was lost; or a run lost its lease
  75   try again later: a lock is held, the disk is full
  128  fatal
  129  wrong usage
  130  ended by SIGINT
  143  ended by SIGTERM or SIGHUP

Over several branches the worst one counts, in this order: 130, 143, 128, 75, 2, 1, 3, 0.

Configuration:
  Keys are 'aynig.<key>', read as Git reads them, 'git -c' included; a flag stands over its key. Keys marked \
* count only from the system, the global and the command line's configuration, never from the repository's own, \
and may also be given for one repository, as 'aynig.<Git directory or glob>.<key>'. Durations are 90, 90s, \
5m or '1h 30m'; a bare number is seconds.
  commandsFrom*      none (default), branch, or a ref: which commit commands are read from
  branches*          patterns of branches that may be ticked; several; default all
  landOnto*          patterns of branches that others may be landed on; several; default all, or none where commandsFrom is a ref
  requireSignature*  dispatch only heads that 'git verify-commit' accepts and that name their branch in 'dwp-branch', and write such (false)
  exec*              what every command is started with, such as a sandbox
  budgetPerDay*      most US dollars that all runs may cost on one day, in UTC
  budgetPerBranch*   most US dollars that the runs of one branch may cost
  notify*            a program that is told, as JSON on its standard input, which branch waits for a person, asks, stalled, or is not dispatched any more
  passEnv*           names or patterns of environment variables that commands inherit, besides PATH, HOME and the like; default all, in hooks of bare repositories few, see gitaynig-server(7)
  trailerEnv*        names or patterns of trailers that become variables besides dwp-* (none; with commandsFrom=branch all do)
  keep*              patterns of ignored files that stay in a worktree between runs of one branch, such as target/ or */node_modules (none)
  keepAcross*        they stay for other branches too, whose writers then trust each other (false)
  include*           patterns of ignored files of the main working tree that are copied into worktrees, such as .env (none)
  sandbox*           off (default), write or strict: what the kernel confines commands to, see gitaynig-server(7)
  sandboxWrite*      further places that a confined command may write; absolute or ~/; several
  sandboxRead*       with strict, further places that it may read
  sandboxConnect*    with strict, TCP ports that it may connect to
  worktreeDir*       where slots live ($XDG_CACHE_HOME/aynig or ~/.cache/aynig; of a bare repository, aynig/worktrees in it)
  leaseDuration      how long a lease holds without renewal (5m)
  remote             the remote whose branches are meant (none)
  leaseGrace         how long after its end a lease still counts (0; with a remote, and in the aynig dialect, 30s)
  takeover           date or observe: whose clock judges the leases of others (date)
  timeout            ends a command that runs longer (none)
  killGrace          from SIGTERM to SIGKILL (10s)
  jobs               commands at a time, and slots (number of CPUs; in hooks 1)
  portBase           the first of the 100 ports of slot 0, told as AYNIG_PORT_BASE (20000)
  roleOnly           take only the states that the role has commands for (false)
  role               prefer commands of this role (none)
  stage              all or index: what of a worktree becomes part of the outcome (all)
  maxHops            most dispatches in one chain (64)
  logMaxBytes        most bytes of each log (64m)
  fsync              what is reported survives power loss (true)
  hooks              detach, wait or off: what hooks do about a state event (detach)
  logExpire          how long logs are kept by gc (30 days)
  attemptExpire      how long attempts are kept by gc (90 days)
  provider.<name>.*  agents' programs: see gitaynig-flow(7), which has the keys of flows

Environment:
  AYNIG      0 makes tick, run and hooks do nothing, and verbs start no chains
  ROLE       the role, unless --role says one
  LOG_LEVEL  what commands are told where neither --log-level nor the trailer dwp-log-level says it

Files:
  .aynig/command/<state>               the command that answers a state
  .aynig/roles/<role>/command/<state>  the one that a runner with that role takes first
  .aynig/prepare                       what makes a worktree ready before a command; it runs again where it, or a file that its
                                       lines '# depends: <path>' name, has changed, or what it made is gone (see aynig.keep)
  .aynig/logs/                         what commands printed; a folder that ignores itself (where a repository is bare, a sparse
                                       checkout leaves it out, or it is another account's: $GIT_COMMON_DIR/aynig/logs/)
  $GIT_COMMON_DIR/aynig/               what the runner remembers
  refs/aynig/run/<run-id>              the lease of a living run
  refs/aynig/attempts/<run-id>         work that is not on its branch; '<run-id>-rejected': what an outcome left out

See also:
  git-aynig-init(1), git-aynig-tick(1), git-aynig-run(1), git-aynig-set-state(1), git-aynig-set-working(1), \
git-aynig-status(1), git-aynig-events(1), git-aynig-logs(1), git-aynig-diff(1), git-aynig-shell(1), git-aynig-wait(1), git-aynig-usage(1), git-aynig-cancel(1), git-aynig-retry(1), \
git-aynig-send(1), git-aynig-inbox(1), git-aynig-ask(1), git-aynig-answer(1), git-aynig-approve(1), \
git-aynig-reject(1), git-aynig-pause(1), git-aynig-resume(1), git-aynig-land(1), git-aynig-fan(1), git-aynig-choose(1), git-aynig-compare(1), \
git-aynig-trust(1), git-aynig-hooks(1), git-aynig-install(1), git-aynig-gc(1), git-aynig-doctor(1), \
git-aynig-uninstall(1), git-aynig-demo(1), git-aynig-serve(1), git-aynig-mcp(1), git-aynig-flow(1), gitaynig-flow(7), git-aynig-govern(1), gitaynig-govern(7), gitaynig-macos(7), gitaynig-server(7), git-interpret-trailers(1)";

/// `init`.
pub const INIT: &str = "\
Writes .aynig/command/hello, a first command, and .aynig/COMMANDS.md, a page about writing more, into the \
working tree. Overwrites nothing and commits nothing; says which commands to type next.";

/// `init`, sections.
pub const INIT_MORE: &str = "\
Exit status:
  0    written, or there already
  75   with --trust: another process has the global configuration locked; the files were written
  128  no working tree, or it cannot be written
  129  with --trust: HEAD is detached; the files were written

Examples:
  git aynig init --trust
  git add .aynig && git commit -m 'aynig: first command'

See also:
  git-aynig(1), git-aynig-install(1), git-aynig-trust(1), git-aynig-set-state(1)";

/// `tick`.
pub const TICK: &str = "\
Reads the newest commit of each branch, once. Where its trailers name a state that has a command, the branch is \
taken with a 'working' commit, the command runs in a detached worktree, and what it left and declared becomes \
the branch's next commit. Where they name a lease that has expired, the branch is set 'stalled' and \
judged again.

Without names every local branch is looked at, and only those that have something to say are printed. A \
branch that is leased elsewhere, or blocked, never keeps the others waiting.

On a terminal, in a repository that is not trusted, the commands are listed and a question is asked; elsewhere \
that is a refusal.";

/// `tick`, sections.
pub const TICK_MORE: &str = "\
Exit status:
  0    done, nothing to do, or leased elsewhere and not asked for by name
  1    a run stalled, or an expired lease was recovered
  2    refused by policy
  3    a branch asked for by name is leased or busy, or the race for it was lost; or a run lost its lease
  75   try again later
  128  fatal, among it a branch asked for by name that does not exist
  130, 143  interrupted: the command was stopped, and its branch is stalled (in the aynig dialect: still leased)

Configuration:
  aynig.leaseDuration  --lease
  aynig.leaseGrace     --grace
  aynig.timeout        --timeout
  aynig.jobs           --jobs
  aynig.role           --role, over the environment's ROLE
  The others are listed in git-aynig(1).

JSON format:
  Schema aynig.tick/1, one object a branch that was evaluated: schema, branch, exit_code, result, recovered, \
notes, and what belongs to the result. Results: idle, unusable, missing, busy, interrupted, leased, lost-race, \
no-slot, refused, would-run, would-deliver, undelivered, would-recover, advanced, lease-kept, lease-left, own, stalled, fenced, failed. Fields are in \
CONTRACT.md; they are added to, never renamed or removed.

Examples:
  git aynig tick
  git aynig tick --dry-run
  git aynig tick --tee --timeout 10m job
  git aynig tick --json | jq -r .result

See also:
  git-aynig(1), git-aynig-run(1), git-aynig-status(1), git-aynig-trust(1)";

/// `run`.
pub const RUN: &str = "\
Ticks branches, and goes on with each until its head is not actionable: its state has no command, it is \
leased, or the hop limit is reached. Then looks at all of them again, until a look finds nothing to do.

With --every it goes on after that, for machines where nothing else calls 'git aynig tick', and sooner where a head waits for an hour \
(dwp-not-before) that comes before. It keeps no \
state: killed at any moment, it has left nothing that the next tick does not mend.";

/// `run`, sections.
pub const RUN_MORE: &str = "\
Exit status:
  As git-aynig-tick(1), the worst of all ticks; with --every, of the last look.

Configuration:
  aynig.maxHops  most dispatches in one chain (64)
  The others are those of git-aynig-tick(1).

Examples:
  git aynig run
  git aynig run --every 30s

See also:
  git-aynig(1), git-aynig-tick(1)";

/// `set-state`.
pub const SET_STATE: &str = "\
Writes a commit with the trailer 'dwp-state: <STATE>' onto a branch: the same tree, one parent, by \
compare-and-swap. No working tree is needed. A branch that does not exist is made at HEAD. A \
branch that is leased is refused: cancel the run first.

Inside a command, the commit is the outcome of its run: it carries the run's id, takes what the \
worktree holds, and swaps again where only a renewal of the lease came between. Then the command's SET_STATE \
lines do not count.

A branch whose newest state event says 'aynig-state' goes on in that dialect; --dialect says otherwise.

A trailer that the runner manages (dwp-run-id and the like) is refused, and so is a message that Git would not \
read back as it was meant. So is the state 'stalled', but inside a run: 'git aynig retry' would find nothing to ask for \
again.

With --push the other side's hook is heard as after 'git push'. Where that is cut off, the remote may have the commit later: that is neither done nor failed, and the exit status 75.";

/// `set-state`, sections.
pub const SET_STATE_MORE: &str = "\
Exit status:
  0    written
  1    local changes in a working tree that has the branch checked out are in the way, or it could not follow
  2    declined by the remote, or it cannot be signed
  3    the branch is leased, or was moved meanwhile
  75   try again later
  128  fatal
  129  the state, a trailer or the message is not usable

Configuration:
  user.name, user.email  who writes

Examples:
  git aynig set-state build -b job -m 'build: please' -m 'The body is what the command is told.'
  git aynig set-state review --trailer 'dwp-ticket: 7'
  git aynig set-state fetch -b parts --dialect aynig
  git aynig set-state done --emit

See also:
  git-aynig(1), git-aynig-tick(1), git-aynig-cancel(1)";

/// `set-working`.
pub const SET_WORKING: &str = "\
Takes the branch with a lease, as a tick does, but starts nothing: for work that a person or another program \
does. Prints the lease's commit; its trailer dwp-run-id is the run. Inside a command, or in a process that it left running, \
it renews the run's own lease instead: on a branch of the aynig dialect by a commit in the run's worktree.

No runner renews a lease that was taken so. When it ends without an outcome, the next tick sets the branch 'stalled'.";

/// `set-working`, sections.
pub const SET_WORKING_MORE: &str = "\
Exit status:
  0    taken or renewed
  2    declined by the remote, or it cannot be signed
  3    the branch is leased, or was moved meanwhile
  75   try again later
  128  the branch does not exist, or its head names no state

Configuration:
  aynig.leaseDuration  --lease

Examples:
  git aynig set-working -b job --lease 1h

See also:
  git-aynig(1), git-aynig-set-state(1), git-aynig-cancel(1)";

/// `cancel`.
pub const CANCEL: &str = "\
Writes 'canceled' over a lease. The run that held it can no longer write to the branch, wherever its runner is; a \
runner that is alive notices within a second (with a remote, within a tenth of its lease) and stops the command. What the \
command had done by then is kept under refs/aynig/attempts/.

A name with '*', '?' or '[' is a pattern, as aynig.branches has them: it means those of the branches that it matches which a run \
holds, and is refused where there is none. --all means all of them. Each branch is a line; one that fails keeps no other \
from its turn.";

/// `cancel`, sections.
pub const CANCEL_MORE: &str = "\
Exit status:
  0    canceled
  2    declined by the remote, or it cannot be signed
  3    the branch kept moving
  75   try again later
  128  the branch does not exist or is not leased, or a pattern matches none that is

Over several branches the worst one counts.

Examples:
  git aynig cancel job
  git aynig cancel 'feature/*'

See also:
  git-aynig(1), git-aynig-retry(1)";

/// `retry`.
pub const RETRY: &str = "\
On a branch that is 'stalled', writes the state, body and trailers of the commit that the stalled run answered once \
more, so that the next tick dispatches it again. The commit is found by its id, which the stalled commit \
carries. Commits that a person put on top of it stay.

Where the run had finished and only local changes kept its outcome off the branch, nothing runs again: its outcome is \
put on the branch. Files that were changed on both sides are merged; where both changed the same lines the \
run's version is taken, and said. A file on one side where the other has a folder is refused.

A name with '*', '?' or '[' is a pattern, as aynig.branches has them: it means those of the branches that it matches on which a \
run stalled, and is refused where there is none. --all means all of them. Where an ordinary commit stands on top, as one that \
mends what failed, the branch is found by its whole name alone. Each branch is a line; one that fails keeps no \
other from its turn.";

/// `retry`, sections.
pub const RETRY_MORE: &str = "\
Exit status:
  0    written
  1    local changes, or a file where a folder comes, are still in the way
  2    declined by the remote, or it cannot be signed
  3    the branch was moved meanwhile
  75   try again later
  128  the branch does not exist, is not stalled, or what it answered cannot be found, or a pattern matches none that is

Over several branches the worst one counts.

Examples:
  git aynig retry --all
  git aynig retry job && git aynig tick job

See also:
  git-aynig(1), git-aynig-cancel(1), git-aynig-logs(1)";

/// `trust`.
pub const TRUST: &str = "\
A user who can push to a branch that is ticked here could otherwise run code here, as you. So nothing runs until you \
have said which commit commands are read from. Without a flag that is the branch that is checked out: \
what another branch brings along in its own .aynig/ is not run. Where 'aynig.remote' is set it is the remote's branch of \
that name: the users who can push it decide what runs.

Written to your global configuration, as 'aynig.<Git directory>.commandsFrom', where nothing that is pushed can reach \
it. As with 'safe.directory' it is the path that is trusted, whatever repository is there: before another takes the place \
of one that you remove, 'git aynig trust --revoke'.";

/// `trust`, sections.
pub const TRUST_MORE: &str = "\
Exit status:
  0    written, removed or listed
  2    with --revoke: a setting for more than this repository still trusts it
  75   another process has the global configuration locked
  128  the global configuration cannot be written
  129  HEAD is detached and no flag says which ref

Configuration:
  aynig.commandsFrom  none, branch or a ref, for all repositories
  aynig.branches, aynig.requireSignature, aynig.exec and aynig.passEnv narrow it further; see git-aynig(1).

Examples:
  git aynig trust
  git aynig trust --ref main
  git aynig trust --revoke

See also:
  git-aynig(1), git-aynig-tick(1), git-config(1)";
