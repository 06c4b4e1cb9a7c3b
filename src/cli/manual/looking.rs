//! Manual pages of the verbs that look and clean up.

/// `status`.
pub const STATUS: &str = "\
Shows, for each branch, its state, the run and runner that hold it, since when, and how far it says that it is or what it \
printed last; and whether a command exists. A state without one waits for a person. Changes nothing.

With --waiting, who waits for a person: the oldest first, since when, for what, and the command that answers. With --watch \
the picture stays and follows what changes, on a terminal: q ends it, arrows, j, k and space scroll. With --watch --json each \
object is printed that changed; that of a branch which is gone has the standing 'gone'.";

/// `status`, sections.
pub const STATUS_MORE: &str = "\
Porcelain:
One line a branch. Its fields are separated by tabs, '-' stands for none, control characters are escaped, and new \
fields are only ever added at the end.
  1   branch
  2   commit
  3   state
  4   standing
  5   command, below .aynig/
  6   state that the run answers
  7   run id: the lease's, or of the run that ended so
  8   runner id
  9   seconds of lease left; negative since it expired
  10  ref of the work that a stalled run left
  11  hop: how many dispatches led here

Standings:
  ready          the next tick runs its command
  waits          no command: it waits for a person, or is an end
  leased         a run holds it
  expired        a run held it; the next tick recovers it
  not-trusted    it has a command, and the account does not say what may run
  left-out       aynig.branches leaves it out
  unusable       its command cannot be started
  hop-limit      more than aynig.maxHops dispatches led here
  paused         a pause holds it: git aynig resume
  not-before     its hour has not come
  after          other branches are not where it waits for them
  budget         what may be spent is spent
  invalid-state  its state can name no command
  no-state       its head is no state event

JSON:
Objects with schema (aynig.status/1), branch, commit, committed, subject, state, standing, why, command, origin_state, \
run_id, runner_id, trigger, seconds_left, malformed, attempt, hop, max_hops, trusted, busy, \
dialect, pending_seconds, began, progress, last_line, group (running, waiting, stalled, queued, ready, done, other), questions (what it asks: \
id, branch, run_id, choices, text, commit, snapshot, asked, unsigned), paused (the pauses that hold it: id, patterns, holder, reason, since).

Exit status:
  0    shown, or the terminal is gone
  75   the remote cannot be reached
  128  a branch asked for does not exist, or something cannot be read
  129  wrong usage, or --watch without a terminal
  130  ended by an interrupt while watching; 143 by SIGTERM

Examples:
  git aynig status
  git aynig status --waiting
  git aynig status --porcelain job

See also:
  git-aynig(1), git-aynig-events(1), git-aynig-logs(1)";

/// `events`.
pub const EVENTS: &str = "\
Shows the state events of a branch, newest first: when, which state, by which run, and how long that took, by the dates of \
its commits. Leases and renewals are left out unless --history asks for them, or '--state working'. With --all those of every \
branch, each once. The history is only shown; no tick ever reads it.";

/// `events`, sections.
pub const EVENTS_MORE: &str = "\
JSON:
Objects with schema (aynig.events/1), branch, commit, committed (seconds since 1970), date, state, valid, subject, \
body, run_id, runner_id, trigger, origin_state, hop, dialect, parents, trailers (each with key and value), seconds (how long the \
run took that it ended).

Exit status:
  0    shown, or its reader is gone
  75   the remote cannot be reached
  128  no such branch, or something cannot be read
  130  ended by an interrupt while following; 143 by SIGTERM

Examples:
  git aynig events job
  git aynig events --history -n 20 --json job
  git aynig events --all --since 2h --state stalled

See also:
  git-aynig(1), git-aynig-status(1), git-log(1)";

/// `logs`.
pub const LOGS: &str = "\
Shows what the command of a run printed. A branch means its latest run; a commit means the run that answered it, \
or that wrote it. Logs stay on the machine that ran the command: elsewhere its name is said. Control characters are shown as they are only where the output is no terminal.

With --events it is what the command appended to the file that AYNIG_EVENTS names: JSON lines such as \
{\"type\":\"progress\",\"text\":\"tests\",\"ratio\":0.4}. Many commands write none, and then nothing is shown.";

/// `logs`, sections.
pub const LOGS_MORE: &str = "\
Exit status:
  0    shown, or its reader is gone
  75   the remote cannot be reached
  128  no such branch or commit, or no log of it is here
  130  ended by an interrupt while following; 143 by SIGTERM

Configuration:
  aynig.logMaxBytes  most bytes of each log (64m); beyond it head and tail are kept
  aynig.logExpire    how long logs are kept by gc (30 days)

Examples:
  git aynig logs -f job
  git aynig logs --stderr job
  git aynig logs -f --events job

See also:
  git-aynig(1), git-aynig-status(1)";

/// `install`.
pub const INSTALL: &str = "\
Copies a workflow pack, the .aynig/ folder of another repository or of a folder in it, into .aynig/ of this working tree, \
and shows what is new and what is overwritten. Commits nothing and trusts nothing: read what came before you commit it.

The repository is fetched through 'git', with your credentials and your limits on transports, one commit without its \
history, into a place of its own that goes away; nothing of it is run. Only regular files are taken, and symbolic links \
that stay inside .aynig/; a pack with anything else is refused as a whole, and each such file is named. Files below \
.aynig/logs/ are left out, and files that only you have stay.

Over anything in .aynig/ that is not committed it is refused, so that 'git restore' brings back whatever was \
overwritten. Killed at any moment, each file is its old self or its new one.

Then it says where the pack's README is (beside its .aynig/, or in it), its first paragraph, and what to type next: \
the commit, the trust, and the command that starts the pack. That is the README's line 'Start: git aynig set-state ...' \
('govern start', 'run'), where it starts what the pack answers and does nothing else; without one, the pack's only \
state. With --dry-run too.";

/// `install`, sections.
pub const INSTALL_MORE: &str = "\
Exit status:
  0    installed, or all of it is here already
  1    changes in .aynig/ that are not committed, or files of yours, are in the way
  2    the pack holds what is not installed
  75   another installation is at work, or the disk is full
  128  no working tree, no such repository, ref or pack, or it cannot be fetched
  129  wrong usage

Examples:
  git aynig install ada/packs
  git aynig install --dry-run https://example.com/packs.git v2 review
  git aynig install ../git-aynig HEAD examples/build-review-ship

See also:
  git-aynig(1), git-aynig-init(1), git-aynig-trust(1)";

/// `gc`.
pub const GC: &str = "\
Removes what nothing needs any more: slots and refs of runs that are over, logs, notes and attempts that are older than \
configured. Slots that no run uses go whatever their age: the next tick makes new ones, and work that is still in one is \
kept under refs/aynig/attempts/ first. Never touches a branch, nor anything that it did not make.";

/// `gc`, sections.
pub const GC_MORE: &str = "\
JSON:
Objects with schema (aynig.gc/1), kind (slot, log, run-folder, attempt, submodules, run-ref, commands, lock, leftover), name (a path \
or ref), removed (false with --dry-run), kept (the ref that a slot's work was moved to), kept_bytes (what files took that were kept in it, or null).

Exit status:
  0    done
  75   something is in use; try again later
  128  something cannot be removed

Configuration:
  aynig.logExpire      how long logs and what belongs to their runs are kept (30 days, or never)
  aynig.attemptExpire  how long attempts are kept (90 days, or never)

Examples:
  git aynig gc --dry-run

See also:
  git-aynig(1), git-gc(1)";

/// `doctor`.
pub const DOCTOR: &str = "\
Looks for what would stop a tick here: trust, configuration that does not count, commands that cannot be started or are \
not committed, pauses that stand, disks with little room, locks that are held (in a remote at a path too), branches from the \
future of this machine's clock, configuration under which Git itself shows other trailers than are acted on. Names the \
command that mends each. Changes nothing, and asks no other machine unless --network says so: then whether the remote that \
'aynig.remote' names answers without a question, as a runner needs it to.

With --history, what the commits of a branch (of each branch without a name) and its reflog say is judged too: that no \
trigger was leased twice without having been the head twice, that each run ended once and stands on its own lease, that \
nothing was written for a run after 'stalled', and that no runner dropped a commit or made a branch. Commits of runs that a person \
rebased or picked show up as well: they stand on something other than what they name. With 'aynig.remote', the remote's branches \
are judged as they were last fetched.";

/// `doctor`, sections.
pub const DOCTOR_MORE: &str = "\
JSON:
Objects with schema (aynig.doctor/1), level (ok, warning, error), subject, text, hint (the command that mends it).

Exit status:
  0    nothing stops a tick, and nothing that was judged is wrong
  1    something would, or is

Configuration:
  aynig.remote      the remote whose branches runners share
  aynig.leaseGrace  more than the clocks differ by (0)

Examples:
  git aynig doctor
  git aynig doctor --network
  git aynig doctor --history work

See also:
  git-aynig(1), git-aynig-trust(1), git-aynig-tick(1)";

/// `demo`.
pub const DEMO: &str = "\
Makes a throwaway repository, plays a workflow of three states in it and shows its history. Touches \
nothing else: neither the repository you stand in nor your configuration. Every step is a real command, shown as \
typed.";

/// `demo`, sections.
pub const DEMO_MORE: &str = "\
Exit status:
  0    every step did what it should
  1    one did not
  128  the folder or git cannot be used

Examples:
  git aynig demo --keep /tmp/aynig-demo

See also:
  git-aynig(1), git-aynig-init(1)";
