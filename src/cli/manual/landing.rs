//! Manual pages of the verbs that bring several branches together: `land`, `fan`, `choose`, `compare`.

/// `land`.
pub const LAND: &str = "\
Lands branches on another one: what the target would hold is made in a commit of its own, the state that the target's \
.aynig/land names is run on it as any other, in a worktree, and only where its command ends with 0 the target is moved \
to that very commit, by compare-and-swap. So the target never holds what failed its check, and a target that has moved \
meanwhile is merged and checked again.

A conflict, a check that fails, or local changes that are in the way leave the branch 'stalled' with its paths in the \
commit's body, as any run; git-aynig-retry(1) asks for it again. Of branches that are to land in one place one is checked \
at a time, and the others wait; with --after in an order of your own.

The branch itself holds what was checked: the merge with its target, or its commits on top of it, and in the end the state \
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
