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
