//! Manual pages of the verbs that bring several branches together: `land`, `fan`, `choose`, `compare`.

/// `land`.
pub const LAND: &str = "\
Lands branches on another one: what the target would hold is made in a commit of its own, the state that the target's \
.aynig/land names is run on it as any other, in a worktree, and only where its command ends with 0 the target is moved \
to that very commit, by compare-and-swap. So the target never holds what failed its check, and a target that has moved \
meanwhile is merged and checked again.

A conflict, a check that fails, or local changes that are in the way leave the branch 'stalled' with its paths in the \
commit's body, as any run; git-aynig-retry(1) asks for it again. While one branch is checked, others that \
are to land in the same place wait; with --after in an order of your own. Of two whose checks begin in the same moment one lands, \
and the other is merged and checked again.

The branch itself holds what was checked: the merge with its target, or with --linear (--rebase says the same) its commits on top of it, and in the end the state \
'landed'. A command may ask for its own branch to be landed, by declaring the state 'land' with the trailer \
'dwp-land-onto: main'.

Where commands come from a ref (git-aynig-trust(1)) those who write branches are not trusted with it: \
'aynig.landOnto' has to name the target.";

/// `land`, sections.
pub const LAND_MORE: &str = "\
The file .aynig/land:
  In the target's own commit. '#' begins a comment.
  check: <state>              the state whose command checks; it lands where that ends with 0 and declares nothing, \
'landed' or 'done'. What it leaves in its worktree does not land
  history: merge|linear       a merge commit (the default), or the branch's own commits on top of the target: without \
those that only name a state, and with no state in the others

Exit status:
  0    all of them have landed; with --no-tick, were asked to
  1    one has not: it stalled, or waits
  2    refused: not trusted, no .aynig/land in the target, or 'aynig.landOnto' does not name it
  3    a run holds the branch, or a race was lost
  75   try again later
  128  fatal, among it a branch that does not exist
  129  a branch is to land on itself
  130, 143  interrupted

Configuration:
  aynig.landOnto  patterns of branches that others may be landed on; protected, several; default all, or none where \
commands come from a ref

Examples:
  git aynig land topic
  git aynig land --linear --onto release a b c
  git aynig land second --after first --no-tick

See also:
  git-aynig(1), git-aynig-run(1), git-aynig-retry(1), git-aynig-status(1), git-aynig-trust(1)";

/// `fan`.
pub const FAN: &str = "\
Has several branches answer one trigger: <branch>-1, <branch>-2 and so on begin with the event that the branch's head is, \
each with variables of its own, and the branch itself waits in the state 'fanned' until one of them is chosen with \
git-aynig-choose(1). git-aynig-compare(1) shows them side by side.

'--each model=opus,sonnet' tells the first attempt DWP_MODEL=opus and the second DWP_MODEL=sonnet, by the trailer 'dwp-model'; \
DWP_FAN_NUMBER is an attempt's number, DWP_FAN the branch. All of them are made at once or none; called again after it was cut \
short it makes what is missing.";

/// `fan`, sections.
pub const FAN_MORE: &str = "\
Exit status:
  0    they are there
  3    a run holds the branch, or a race was lost
  75   try again later
  128  fatal: the branch does not exist or asks for nothing, or a branch of an attempt's name does exist
  129  a key, or the number of values, is not usable

JSON:
Objects with schema (aynig.change/1), as of git-aynig-set-state(1): each attempt, then the branch.

Examples:
  git aynig fan topic -n 3
  git aynig fan topic --each model=opus,sonnet,haiku --each budget=2

See also:
  git-aynig(1), git-aynig-choose(1), git-aynig-compare(1)";

/// `choose`.
pub const CHOOSE: &str = "\
Chooses one of the attempts that git-aynig-fan(1) began: its branch's work becomes the fanned branch's next commit, a \
merge, with the state and the words of the attempt's head, so that the workflow goes on from there; the attempt's own branch is \
'done'. The others are canceled, \
whatever they were doing, and kept: their branches and their work stay.";

/// `choose`, sections.
pub const CHOOSE_MORE: &str = "\
Exit status:
  0    chosen
  1    local changes are in the way
  2    the attempt has not run, stalled, or was canceled; the fanned branch itself was named
  3    a run holds the attempt, or a race was lost
  75   try again later
  128  fatal: the branch does not exist, or is no branch's attempt

JSON:
Objects with schema (aynig.change/1), as of git-aynig-set-state(1): each attempt that was canceled, then the branch.

Examples:
  git aynig choose topic-2

See also:
  git-aynig(1), git-aynig-fan(1), git-aynig-compare(1)";

/// `compare`.
pub const COMPARE: &str = "\
Shows the attempts of a fanned branch side by side, or any branches: the state of each, its runs and how long they took, what it \
changed since the trigger (of other branches: since what they have in common), and what its runs said that they used. Of an attempt \
that stalled it is the work that was kept.";

/// `compare`, sections.
pub const COMPARE_MORE: &str = "\
Exit status:
  0    shown
  75   try again later
  128  fatal: a branch does not exist, or one alone is neither fanned nor an attempt
  129  the branches have nothing in common

JSON:
Objects with schema (aynig.compare/1), branch, commit (its work), base, state, runs, seconds, files, insertions, deletions, \
input_tokens, output_tokens, cost_usd (null where no run said one).

Examples:
  git aynig compare topic
  git aynig compare topic-1 topic-2 --json
  git diff topic-1 topic-2

See also:
  git-aynig(1), git-aynig-fan(1), git-aynig-choose(1), git-aynig-usage(1), git-aynig-diff(1)";
