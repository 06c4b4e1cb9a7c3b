//! What each verb's manual page says beyond its flags.
//!
//! Plain text in two parts a verb: the description, and sections that begin with a line `Heading:`.
//! `--help` prints both as they are where no manual is installed; `tests/generated.rs` turns them
//! into `man/*.1`. Rows are indented by two; two or more blanks part a term from its text.

/// `git aynig`.
pub const AYNIG: &str = "\
A commit whose trailers say 'dwp-state: build' is an event. 'git aynig tick' takes its branch by \
compare-and-swap, runs .aynig/command/build from the commit in a worktree of its own, and writes what came \
of it as the branch's next commit. Nothing stays running between ticks; everything that happened is a commit.

Only the newest commit of a branch counts. A state that has no command waits for a person. A command that \
fails, times out or is killed leaves its branch 'stalled'; so does a runner that died, as soon as another \
tick finds its lease expired. Nothing runs in a repository until its user has said what may: see \
git-aynig-trust(1).";

/// `git aynig`, sections.
pub const AYNIG_MORE: &str = "\
Exit status:
  0    done, nothing to do, or leased elsewhere and not asked for by name
  1    a run stalled, or local changes are in the way
  2    refused by policy: not trusted, left out by 'aynig.branches', unsigned, command not executable
  3    a branch asked for by name is leased, or the race for it was lost
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
  requireSignature*  dispatch only heads that 'git verify-commit' accepts, and sign what is written (false)
  exec*              what every command is started with, such as a sandbox
  passEnv*           names or patterns of environment variables that commands inherit; default all
  worktreeDir*       where slots live ($XDG_CACHE_HOME/aynig or ~/.cache/aynig)
  leaseDuration      how long a lease holds without renewal (5m)
  leaseGrace         how long after its end a lease still counts (0)
  takeover           date or observe: whose clock judges the leases of others (date)
  timeout            ends a command that runs longer (none)
  killGrace          from SIGTERM to SIGKILL (10s)
  jobs               commands at a time, and slots (number of CPUs)
  role               prefer commands of this role (none)
  stage              all or index: what of a worktree becomes part of the outcome (all)
  maxHops            most dispatches in one chain (64)
  logMaxBytes        most bytes of each log (64m)
  fsync              what is reported survives power loss (true)
  logExpire          how long logs are kept by gc (30 days)
  attemptExpire      how long attempts are kept by gc (90 days)

Environment:
  AYNIG      0 makes tick and run do nothing
  ROLE       the role, unless --role says one
  LOG_LEVEL  what commands are told where neither --log-level nor the trailer dwp-log-level says it

Files:
  .aynig/command/<state>               the command that answers a state
  .aynig/roles/<role>/command/<state>  the one that a runner with that role takes first
  .aynig/logs/                         what commands printed; a folder that ignores itself
  $GIT_COMMON_DIR/aynig/               what the runner remembers
  refs/aynig/run/<run-id>              the lease of a living run
  refs/aynig/attempts/<run-id>         work that is not on its branch

See also:
  git-aynig-init(1), git-aynig-tick(1), git-aynig-run(1), git-aynig-set-state(1), git-aynig-set-working(1), \
git-aynig-status(1), git-aynig-events(1), git-aynig-logs(1), git-aynig-cancel(1), git-aynig-retry(1), \
git-aynig-trust(1), git-aynig-gc(1), git-aynig-doctor(1), git-aynig-demo(1), git-interpret-trailers(1)";

/// `init`.
pub const INIT: &str = "\
Writes .aynig/command/hello, a first command, and .aynig/COMMANDS.md, a page about writing more, into the \
working tree. Overwrites nothing and commits nothing; says which commands to type next.";

/// `init`, sections.
pub const INIT_MORE: &str = "\
Exit status:
  0    written, or there already
  128  no working tree, or it cannot be written

Examples:
  git aynig init --trust
  git add .aynig && git commit -m 'aynig: first command'

See also:
  git-aynig(1), git-aynig-trust(1), git-aynig-set-state(1)";

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
  3    a branch asked for by name is leased or busy, or the race for it was lost
  75   try again later
  128  fatal, among it a branch asked for by name that does not exist
  130, 143  interrupted: the command was stopped, and its branch is stalled

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
no-slot, refused, would-run, would-recover, advanced, lease-kept, own, stalled, fenced, failed. Fields are in \
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

With --every it goes on after that, for machines where nothing else calls 'git aynig tick'. It keeps no \
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

A trailer that the runner manages (dwp-run-id and the like) is refused, and so is a message that Git would not \
read back as it was meant.";

/// `set-state`, sections.
pub const SET_STATE_MORE: &str = "\
Exit status:
  0    written
  1    local changes in a working tree that has the branch checked out are in the way
  3    the branch is leased, or was moved by somebody else
  75   try again later
  128  fatal
  129  the state, a trailer or the message is not usable

Configuration:
  user.name, user.email  who writes

Examples:
  git aynig set-state build -b job -m 'build: please' -m 'The body is what the command is told.'
  git aynig set-state review --trailer 'dwp-ticket: 7'
  git aynig set-state done --emit

See also:
  git-aynig(1), git-aynig-tick(1), git-aynig-cancel(1)";

/// `set-working`.
pub const SET_WORKING: &str = "\
Takes the branch with a lease, as a tick does, but starts nothing: for work that a person or another program \
does. Prints the lease's commit; its trailer dwp-run-id is the run. Inside a command, or in a process that it left running, \
it renews the run's own lease instead.

Nobody renews a lease that was taken so. When it ends without an outcome, the next tick sets the branch 'stalled'.";

/// `set-working`, sections.
pub const SET_WORKING_MORE: &str = "\
Exit status:
  0    taken or renewed
  3    the branch is leased, or was moved by somebody else
  75   try again later
  128  the branch does not exist, or its head names no state

Configuration:
  aynig.leaseDuration  --lease

Examples:
  git aynig set-working -b job --lease 1h

See also:
  git-aynig(1), git-aynig-set-state(1), git-aynig-cancel(1)";

/// `status`.
pub const STATUS: &str = "\
Shows, for each branch, its state, the run and runner that hold it and how long the lease still lasts, and \
whether a command exists. A state without one waits for a person. Changes nothing.";

/// `status`, sections.
pub const STATUS_MORE: &str = "\
Exit status:
  0    shown
  128  a branch asked for does not exist, or something cannot be read

Standings:
  ready          the next tick runs its command
  waits          its state has no command: it waits for a person, or is an end
  leased         a run holds it
  expired        a run held it, and the next tick ends that
  not-trusted    it has a command, and nobody said that it may run
  left-out       'aynig.branches' leaves it out
  unusable       its command cannot be started
  hop-limit      its chain is as long as it may get
  invalid-state  its state cannot name a command
  no-state       its head is no state event

Porcelain format:
  One line a branch; fields are separated by tabs, '-' stands for none, control characters are escaped, and \
new fields are only ever added at the end: branch, commit, state, standing, command (below .aynig/), origin \
state, run id, runner id, seconds of lease left (negative: expired so long ago), ref of the attempt that a \
stalled run left, hop.

JSON format:
  Schema aynig.status/1, one object a branch: schema, branch, commit, committed, subject, state, standing, \
why, command, origin_state, run_id, runner_id, trigger, seconds_left, malformed, attempt, hop, max_hops, \
trusted, busy.

Examples:
  git aynig status
  git aynig status --porcelain job

See also:
  git-aynig(1), git-aynig-events(1), git-aynig-logs(1)";

/// `events`.
pub const EVENTS: &str = "\
Shows the state events of a branch, newest first: when, which state, by which run; with --follow, the last \
ones oldest first, and then each as it lands. Leases and renewals are \
left out unless --history asks for them. The history is only shown; no tick ever reads it.";

/// `events`, sections.
pub const EVENTS_MORE: &str = "\
Exit status:
  0    shown
  128  no such branch, or something cannot be read
  130, 143  a --follow that was ended by a signal

JSON format:
  Schema aynig.events/1, one object an event: schema, branch, commit, committed (seconds since 1970), date, \
state, valid, subject, body, run_id, runner_id, trigger, origin_state, hop, parents, trailers (key and value \
of each).

Examples:
  git aynig events job
  git aynig events --history -n 20 --json job

See also:
  git-aynig(1), git-aynig-status(1), git-log(1)";

/// `logs`.
pub const LOGS: &str = "\
Shows what the command of a run printed. A branch means its latest run; a commit means the run that answered it, \
or that wrote it. Control characters are shown as they are only where the output is no terminal.";

/// `logs`, sections.
pub const LOGS_MORE: &str = "\
Exit status:
  0    shown
  128  no such branch or commit, or no log of it is here

Configuration:
  aynig.logMaxBytes  most bytes of each log (64m); beyond it head and tail are kept
  aynig.logExpire    how long logs are kept by gc (30 days)

Examples:
  git aynig logs -f job
  git aynig logs --stderr job

See also:
  git-aynig(1), git-aynig-status(1)";

/// `cancel`.
pub const CANCEL: &str = "\
Writes 'canceled' over a lease. The run that held it can no longer write to the branch, wherever its runner is; a \
runner that is alive notices within a second and stops the command. What the command had done by then is kept \
under refs/aynig/attempts/.";

/// `cancel`, sections.
pub const CANCEL_MORE: &str = "\
Exit status:
  0    canceled
  3    the branch kept moving
  75   try again later
  128  the branch does not exist or is not leased

Examples:
  git aynig cancel job

See also:
  git-aynig(1), git-aynig-retry(1)";

/// `retry`.
pub const RETRY: &str = "\
On a branch that is 'stalled', writes the state, body and trailers of the commit that the stalled run answered once \
more, so that the next tick dispatches it again. The commit is found by its id, which the stalled commit \
carries. Commits that a person put on top of it stay.

Where the run had finished and only local changes kept its outcome off the branch, nothing runs again: its outcome is \
put on the branch. Files that were changed on both sides are merged; where both changed the same lines the \
run's version is taken, and said.";

/// `retry`, sections.
pub const RETRY_MORE: &str = "\
Exit status:
  0    written
  1    local changes are still in the way
  3    the branch was moved by somebody else
  75   try again later
  128  the branch does not exist, is not stalled, or what it answered cannot be found

Examples:
  git aynig retry job && git aynig tick job

See also:
  git-aynig(1), git-aynig-cancel(1), git-aynig-logs(1)";

/// `trust`.
pub const TRUST: &str = "\
Whoever can push to a branch that is ticked here could otherwise run code here, as you. So nothing runs until you \
have said which commit commands are read from. Without a flag that is the branch that is checked out: \
what another branch brings along in its own .aynig/ is not run.

Written to your global configuration, as 'aynig.<Git directory>.commandsFrom', where nothing that is pushed can reach \
it.";

/// `trust`, sections.
pub const TRUST_MORE: &str = "\
Exit status:
  0    written, removed or listed
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

/// `gc`.
pub const GC: &str = "\
Removes what nothing needs any more: slots and refs of runs that are over, logs, notes and attempts that are older than \
configured. Slots that no run uses go whatever their age: the next tick makes new ones. Work in a dead slot is \
kept as an attempt first. Never touches a branch, nor anything that it did not make.";

/// `gc`, sections.
pub const GC_MORE: &str = "\
Exit status:
  0    done
  75   something is in use; try again later
  128  something cannot be removed

Configuration:
  aynig.logExpire      how long logs and the folders of runs are kept (30 days); never keeps them
  aynig.attemptExpire  how long attempts are kept (90 days); never keeps them

JSON format:
  Schema aynig.gc/1, one object a thing: schema, kind (slot, log, run-folder, attempt, run-ref, commands, lock, \
leftover), name (path or ref), removed (false with --dry-run), kept (the ref that a slot's work was moved to).

Examples:
  git aynig gc --dry-run

See also:
  git-aynig(1), git-gc(1)";

/// `doctor`.
pub const DOCTOR: &str = "\
Looks for what would stop a tick here: trust, configuration that does not count, commands that are not executable or \
not committed, locks that are held. Names the command that mends each. Changes nothing.";

/// `doctor`, sections.
pub const DOCTOR_MORE: &str = "\
Exit status:
  0    nothing stops a tick
  1    something would

JSON format:
  Schema aynig.doctor/1, one object a finding: schema, level (ok, warning, error), subject, text, hint (the \
command that mends it).

Examples:
  git aynig doctor

See also:
  git-aynig(1), git-aynig-trust(1), git-aynig-tick(1)";

/// `demo`.
pub const DEMO: &str = "\
Makes a throwaway repository, plays a workflow of three states in it and shows its history. Touches \
nothing else: neither the repository you stand in nor your configuration.";

/// `demo`, sections.
pub const DEMO_MORE: &str = "\
Examples:
  git aynig demo --keep /tmp/aynig-demo

See also:
  git-aynig(1), git-aynig-init(1)";
