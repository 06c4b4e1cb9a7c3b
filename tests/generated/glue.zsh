# What clap does not know: branch names. Git's own completion calls _git-aynig by its name; this file is
# found as _git-aynig in $fpath. To have 'git <TAB>' list the verb too:
#   zstyle ':completion:*:*:git:*' user-commands aynig:'run workflows through Git'
(( $+functions[_git-aynig_branches] )) ||
_git-aynig_branches() {
    compadd -- ${(f)"$(git for-each-ref --format='%(refname:short)' refs/heads 2>/dev/null)"}
}
