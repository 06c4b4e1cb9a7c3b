
# What clap does not know: names of branches, remotes and states, and how Git's own completion gets here.

_git_aynig_branches() {
    git for-each-ref --format='%(refname:short)' "refs/heads/$1*" "refs/heads/$1*/**" 2>/dev/null
}

_git_aynig_remotes() {
    git remote 2>/dev/null | while IFS= read -r name; do
        case "$name" in "$1"*) printf '%s\n' "$name" ;; esac
    done
}

# States that HEAD has a command for.
_git_aynig_states() {
    git ls-tree -r --full-tree --name-only HEAD:.aynig/command 2>/dev/null | while IFS= read -r name; do
        case "$name" in "$1"*) printf '%s\n' "$name" ;; esac
    done
}

# Kinds of messages: those that mean something here, and those that wait somewhere.
_git_aynig_kinds() {
    {
        printf '%s\n' message handoff interrupt
        git for-each-ref --format='%(refname)' refs/aynig/inbox 2>/dev/null |
            while IFS= read -r name; do name=${name%/*}; printf '%s\n' "${name##*/}"; done
    } | sort -u | while IFS= read -r name; do
        case "$name" in "$1"*) printf '%s\n' "$name" ;; esac
    done
}

# Branches that ask something, and the questions' ids. What is no plain word to a shell is not offered: whoever may push
# wrote it.
_git_aynig_questions() {
    git for-each-ref --format='%(trailers:key=dwp-branch,valueonly,separator=)%0a%(refname:lstrip=3)' refs/aynig/asked 2>/dev/null |
        sort -u | while IFS= read -r name; do
        case "$name" in "" | *[!A-Za-z0-9._/-]*) ;; "$1"*) printf '%s\n' "$name" ;; esac
    done
}

# What the question of the word before offers.
_git_aynig_choices() {
    local what="${COMP_WORDS[COMP_CWORD-1]}" id branch choices
    git for-each-ref \
        --format='%(refname:lstrip=3)%09%(trailers:key=dwp-branch,valueonly,separator=)%09%(trailers:key=dwp-choice,valueonly,separator=%x09)' \
        refs/aynig/asked 2>/dev/null | while IFS=$'\t' read -r id branch choices; do
        [ "$id" = "$what" ] || [ "$branch" = "$what" ] || continue
        printf '%s\n' "$choices" | tr '\t' '\n' | while IFS= read -r name; do
            case "$name" in "" | *[!A-Za-z0-9._-]*) ;; "$1"*) printf '%s\n' "$name" ;; esac
        done
    done
}

# True where the word that is being completed is what is answered (1), or the answer (2).
_git_aynig_answers() {
    case "${COMP_WORDS[1]},$2" in
        answer,-*|approve,-*|reject,-*) return 1 ;;
        answer,*) [ "$COMP_CWORD" -eq $(($1 + 1)) ] ;;
        approve,*|reject,*) [ "$1" -eq 1 ] && [ "$COMP_CWORD" -eq 2 ] ;;
        *) return 1 ;;
    esac
}

# True where the word that is being completed is set-state's state.
_git_aynig_wants_state() {
    local word words=0 value=""
    case "$1" in -*) return 1 ;; esac
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [ -n "$value" ]; then value=""; continue; fi
        case "$word" in
            -b|--branch|--remote|-m|--message|-F|--file|--trailer|--dialect|-C|--git-dir) value=1 ;;
            -*) ;;
            set-state) words=$((words + 1)) ;;
            *) words=$((words + 2)) ;;
        esac
    done
    [ -z "$value" ] && [ "$words" -eq 1 ]
}

# True where the word that is being completed is a branch: $1 it, $2 the word before it.
_git_aynig_wants_branch() {
    local word verb=""
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in
            -*) ;;
            *) verb=$word; break ;;
        esac
    done
    case "$2" in
        -b|--branch) return 0 ;;
        --ref) return 0 ;;
        --remote|-m|--message|-F|--file|--attach|--trailer|--id|--take|--lease|--grace|--timeout|--jobs|-j|--role|--log-level|--every|--for|--current-branch|-n|-C|--git-dir) return 1 ;;
    esac
    case "$verb,$1" in
        *,-*) return 1 ;;
        tick,*|run,*|status,*|events,*|logs,*|diff,*|wait,*|cancel,*|retry,*|send,*|inbox,*) return 0 ;;
        *) return 1 ;;
    esac
}

_git-aynig_or_branches() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" name
    local list=""
    if [ "$COMP_CWORD" -gt 1 ] && [ "$prev" = --remote ]; then
        list=_git_aynig_remotes
    elif [ "$COMP_CWORD" -gt 1 ] && [ "$prev" = --for ]; then
        list=_git_aynig_states
    elif [ "$COMP_CWORD" -gt 1 ] && [ "$prev" = --kind ]; then
        list=_git_aynig_kinds
    elif _git_aynig_answers 1 "$cur"; then
        list=_git_aynig_questions
    elif _git_aynig_answers 2 "$cur"; then
        list=_git_aynig_choices
    elif [ "$COMP_CWORD" -gt 1 ] && _git_aynig_wants_state "$cur"; then
        list=_git_aynig_states
    elif [ "$COMP_CWORD" -gt 1 ] && _git_aynig_wants_branch "$cur" "$prev"; then
        list=_git_aynig_branches
    fi
    if [ -n "$list" ]; then
        COMPREPLY=()
        while IFS= read -r name; do
            COMPREPLY+=("$name")
        done < <("$list" "$cur")
    else
        _git__aynig git-aynig "$cur" "$prev"
    fi
}

# 'git aynig <TAB>': Git's completion calls this by its name.
_git_aynig() {
    local at=1
    while [ "$at" -lt "$COMP_CWORD" ] && [ "${COMP_WORDS[at]}" != aynig ]; do
        at=$((at + 1))
    done
    local -a line=(git-aynig "${COMP_WORDS[@]:at+1}")
    local -a COMP_WORDS=("${line[@]}")
    local COMP_CWORD=$((COMP_CWORD - at))
    _git-aynig_or_branches
}

complete -o nosort -o bashdefault -o default -F _git-aynig_or_branches git-aynig 2>/dev/null ||
    complete -o bashdefault -o default -F _git-aynig_or_branches git-aynig
