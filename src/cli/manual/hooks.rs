//! Manual pages of `hooks` and `uninstall`: the verbs that install hooks, and that take everything away
//! again.

/// `hooks`.
pub const HOOKS: &str = "\
Has Git's hooks start what lands here: a commit, a merge, a rebase or a push that brings a state event to a branch \
starts that branch's chain in the background, and returns at once. A chain goes on until the branch's head is not \
actionable; its words are in .aynig/logs/hook.log (bare: aynig/logs/hook.log in the Git directory), \
each line with its time; those of a chain that a user watched ('aynig.hooks=wait', push option aynig.wait) too.

From Git 2.54 on the hooks are a section of configuration in a file of their own. Older versions get a marked block \
at the top of the hook files, which leaves what follows it, and its standard input, as it was. A hook that is no \
shell script, or that core.hooksPath puts outside of the repository, is left alone, and the lines to add are \
printed.";

/// `hooks`, sections.
pub const HOOKS_MORE: &str = "\
Trust and pushes:
Nothing is started where the account does not say which commands may run: the hook says so in one line. AYNIG=0 in the \
environment, or 'git -c aynig.hooks=off commit', skips the hook once. Inside a run hooks start nothing; the runner \
looks at those branches when the run is over.

A push is answered with one line a branch. With 'git push -o aynig.wait' the pusher sees what the command prints, \
and waits; with '-o aynig.skip' nothing is started. 'install' lets pushes carry options \
(receive.advertisePushOptions).

Configuration:
  aynig.hooks  detach (default), wait, off, or a boolean
  aynig.jobs   commands at a time; in hooks 1 unless it is set

Exit status:
  0    installed, removed, or all are there ('status')
  1    some hook was left alone, or is not there
  75   another process has the configuration locked; nothing was installed
  128  a file cannot be read or written

Examples:
  git aynig hooks install
  git aynig hooks status
  git aynig hooks uninstall

See also:
  git-aynig(1), git-aynig-tick(1), git-aynig-trust(1), githooks(5)";

/// `uninstall`.
pub const UNINSTALL: &str = "\
Takes out of this repository what git-aynig put there beside its commits: hooks, worktrees of the pool, refs below \
refs/aynig/, logs, the folder aynig in the Git directory, and aynig.* of its own configuration. Lists it first, and asks; \
where there is no terminal to ask, --force says yes. Commits, branches and the .aynig in them stay as they are.

Refused while a run lives. Work that is on no branch (refs/aynig/attempts/, commits in submodules) is kept, and named, \
unless --attempts says otherwise; so is what your own configuration says of this repository, unless --trust does or you \
answer so.";

/// `uninstall`, sections.
pub const UNINSTALL_MORE: &str = "\
Exit status:
  0    removed, or nothing was there
  1    a working tree is yet to follow its branch
  2    not confirmed: nothing was removed
  3    a run lives
  75   something is in use; try again later
  128  something cannot be removed

Examples:
  git aynig uninstall --dry-run
  git aynig uninstall
  git aynig uninstall --force --attempts --trust

See also:
  git-aynig(1), git-aynig-hooks(1), git-aynig-trust(1), git-aynig-gc(1)";
