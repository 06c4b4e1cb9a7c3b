# What clap does not know: names of branches, remotes and states. Git's own completion calls _git-aynig by its name; this file is
# found as _git-aynig in $fpath. To have 'git <TAB>' list the verb too:
#   zstyle ':completion:*:*:git:*' user-commands aynig:'run workflows through Git'
(( $+functions[_git-aynig_branches] )) ||
_git-aynig_branches() {
    compadd -- ${(f)"$(git for-each-ref --format='%(refname:short)' refs/heads 2>/dev/null)"}
}
(( $+functions[_git-aynig_remotes] )) ||
_git-aynig_remotes() {
    compadd -- ${(f)"$(git remote 2>/dev/null)"}
}
# States that HEAD has a command for.
(( $+functions[_git-aynig_states] )) ||
_git-aynig_states() {
    compadd -- ${(f)"$(git ls-tree -r --full-tree --name-only HEAD:.aynig/command 2>/dev/null)"}
}
# Kinds of messages: those that mean something here, and those that wait somewhere.
(( $+functions[_git-aynig_kinds] )) ||
_git-aynig_kinds() {
    local -a names=(${(f)"$(git for-each-ref --format='%(refname)' refs/aynig/inbox 2>/dev/null)"})
    compadd -- message handoff interrupt ${${names%/*}##*/}
}
# Branches that ask something, the questions' ids, and what they offer.
(( $+functions[_git-aynig_questions] )) ||
_git-aynig_questions() {
    compadd -- ${(f)"$(git for-each-ref --format='%(trailers:key=dwp-branch,valueonly,separator=)%0a%(refname:lstrip=3)' refs/aynig/asked 2>/dev/null)"}
}
(( $+functions[_git-aynig_choices] )) ||
_git-aynig_choices() {
    compadd -- ${(f)"$(git for-each-ref --format='%(trailers:key=dwp-choice,valueonly,separator=%x0A)' refs/aynig/asked 2>/dev/null)"}
}
