#compdef git-aynig

autoload -U is-at-least

_git-aynig() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_git-aynig_commands" \
"*::: :->git-aynig" \
&& ret=0
    case $state in
    (git-aynig)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:git-aynig-command-$line[1]:"
        case $line[1] in
            (init)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--trust[Also trust the commands of the current branch]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(tick)
_arguments "${_arguments_options[@]}" : \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'--role=[Prefer commands of this role]:ROLE:_default' \
'--current-branch=[What to do about the branch that is checked out here]:WHAT:((skip\:"Leave it out"
include\:"Treat it as any other"
only\:"Take no other"))' \
'--lease=[How long a lease holds without renewal \[default\: 5m\]]:DURATION:_default' \
'--grace=[How long after its end a lease still counts \[default\: 0; 30s in the aynig dialect\]]:DURATION:_default' \
'--timeout=[End a command that runs longer]:DURATION:_default' \
'-j+[Commands at a time \[default\: CPUs\]]:N:_default' \
'--jobs=[Commands at a time \[default\: CPUs\]]:N:_default' \
'--log-level=[The LOG_LEVEL that commands are given]:LEVEL:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-n[Show what would be done, and do nothing]' \
'--dry-run[Show what would be done, and do nothing]' \
'--tee[Show the command'\''s output as it comes]' \
'--json[One JSON object a line]' \
'--chain[Go on with a branch until its head is not actionable]' \
'(-n --dry-run --tee --json)--detach[Return at once; the tick goes on in the background]' \
'--detached[Leave the session that it was started in]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches; without any, every local branch:_git-aynig_branches' \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'--role=[Prefer commands of this role]:ROLE:_default' \
'--current-branch=[What to do about the branch that is checked out here]:WHAT:((skip\:"Leave it out"
include\:"Treat it as any other"
only\:"Take no other"))' \
'--lease=[How long a lease holds without renewal \[default\: 5m\]]:DURATION:_default' \
'--grace=[How long after its end a lease still counts \[default\: 0; 30s in the aynig dialect\]]:DURATION:_default' \
'--timeout=[End a command that runs longer]:DURATION:_default' \
'-j+[Commands at a time \[default\: CPUs\]]:N:_default' \
'--jobs=[Commands at a time \[default\: CPUs\]]:N:_default' \
'--log-level=[The LOG_LEVEL that commands are given]:LEVEL:_default' \
'--every=[Look again after this long, until stopped]:DURATION:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-n[Show what would be done, and do nothing]' \
'--dry-run[Show what would be done, and do nothing]' \
'--tee[Show the command'\''s output as it comes]' \
'--json[One JSON object a line]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches; without any, every local branch:_git-aynig_branches' \
&& ret=0
;;
(set-state)
_arguments "${_arguments_options[@]}" : \
'-b+[The branch; made at HEAD if missing \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--branch=[The branch; made at HEAD if missing \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'*-m+[The message\: the first gives the subject, further ones paragraphs of the body]:MSG:_default' \
'*--message=[The message\: the first gives the subject, further ones paragraphs of the body]:MSG:_default' \
'(-m --message)-F+[Read the message from a file, '\''-'\'' for standard input]:FILE:_files' \
'(-m --message)--file=[Read the message from a file, '\''-'\'' for standard input]:FILE:_files' \
'*--trailer=[Add a trailer]:KEY: VALUE:_default' \
'(--emit)--dialect=[Which trailers \[default\: those of the branch'\''s newest state event, else dwp\]]:DIALECT:((dwp\:"The runner writes what comes of it"
aynig\:"Its command writes what comes of it"))' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--keep-trailers[Copy the head'\''s dwp-* trailers (or aynig-*, in that dialect)]' \
'(--remote --emit)--push[Push the branch to its remote afterwards]' \
'(-b --branch)--emit[Print the SET_STATE line instead of writing a commit]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':state -- The state:_default' \
&& ret=0
;;
(set-working)
_arguments "${_arguments_options[@]}" : \
'-b+[The branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--branch=[The branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'--lease=[How long the lease holds \[default\: 5m\]]:DURATION:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'(--porcelain)--json[One JSON object a line]' \
'--porcelain[Stable lines for scripts]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches; without any, those whose head is a state event:_git-aynig_branches' \
&& ret=0
;;
(events)
_arguments "${_arguments_options[@]}" : \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'-n+[At most this many]:N:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--history[Leases and renewals too]' \
'-f[Begin with the last ones \[10, or -n\], then show each as it lands, oldest first]' \
'--follow[Begin with the last ones \[10, or -n\], then show each as it lands, oldest first]' \
'--json[One JSON object a line]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::branch -- The branch \[default\: the current one\]:_git-aynig_branches' \
&& ret=0
;;
(logs)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-f[Wait for more while the command runs]' \
'--follow[Wait for more while the command runs]' \
'--stderr[What it complained about instead of what it printed]' \
'--path[Print the file'\''s path]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::what -- A branch or a commit \[default\: the current branch\]:_git-aynig_branches' \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':branch -- The branch:_git-aynig_branches' \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':branch -- The branch:_git-aynig_branches' \
&& ret=0
;;
(trust)
_arguments "${_arguments_options[@]}" : \
'(--branches --revoke --list)--ref=[Commands come from this ref, whatever a branch holds \[default\: the current branch\]]:REF:_git-aynig_branches' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'(--revoke --list)--branches[Commands come from the branch that asks for them]' \
'(--list)--revoke[Trust this repository no longer]' \
'--list[List what is trusted]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(hooks)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':what -- What to do:((install\:"Put our lines into this repository'\''s hooks"
uninstall\:"Take them out again, byte for byte"
status\:"Show which hooks Git runs here"))' \
&& ret=0
;;
(install)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-n[Show what would come, and write nothing]' \
'--dry-run[Show what would come, and write nothing]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':repo -- A path, a URL, or owner/name on GitHub:_default' \
'::reference -- A branch, a tag or a whole commit id \[default\: HEAD\]:_default' \
'::subfolder -- The folder whose .aynig/ is the pack \[default\: the top\]:_default' \
&& ret=0
;;
(gc)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-n[Show what would be removed]' \
'--dry-run[Show what would be removed]' \
'--json[One JSON object a line]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--network[Also ask the remote of '\''aynig.remote'\'', for ten seconds at most]' \
'--json[One JSON object a line]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(demo)
_arguments "${_arguments_options[@]}" : \
'--keep=[Keep the repository, here]:DIR:_files' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits in status]' \
'*--verbose[Say more\: branches with nothing to do, commits in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
        esac
    ;;
esac
}

(( $+functions[_git-aynig_commands] )) ||
_git-aynig_commands() {
    local commands; commands=(
'init:Scaffold .aynig/ with a first command' \
'tick:Evaluate branches once' \
'run:Tick until nothing is actionable' \
'set-state:Write a state event' \
'set-working:Take or renew a lease by hand' \
'status:Show what state branches are in' \
'events:Show a branch'\''s state events' \
'logs:Show what a command printed' \
'cancel:Take a lease away, wherever its runner is' \
'retry:Ask for a stalled branch'\''s work again' \
'trust:Say which commands may run in this repository' \
'hooks:Have commits, merges and pushes start their workflows by themselves' \
'install:Copy a workflow pack into .aynig/' \
'gc:Remove dead slots, old logs and old attempts' \
'doctor:Show what would stop a tick here, and what mends it' \
'demo:Play a three-state workflow in a throwaway repository' \
    )
    _describe -t commands 'git-aynig commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__cancel_commands] )) ||
_git-aynig__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig cancel commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__demo_commands] )) ||
_git-aynig__subcmd__demo_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig demo commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__doctor_commands] )) ||
_git-aynig__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig doctor commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__events_commands] )) ||
_git-aynig__subcmd__events_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig events commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__gc_commands] )) ||
_git-aynig__subcmd__gc_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig gc commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__hooks_commands] )) ||
_git-aynig__subcmd__hooks_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig hooks commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__init_commands] )) ||
_git-aynig__subcmd__init_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig init commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__install_commands] )) ||
_git-aynig__subcmd__install_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig install commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__logs_commands] )) ||
_git-aynig__subcmd__logs_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig logs commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__retry_commands] )) ||
_git-aynig__subcmd__retry_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig retry commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__run_commands] )) ||
_git-aynig__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig run commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__set-state_commands] )) ||
_git-aynig__subcmd__set-state_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig set-state commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__set-working_commands] )) ||
_git-aynig__subcmd__set-working_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig set-working commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__status_commands] )) ||
_git-aynig__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig status commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__tick_commands] )) ||
_git-aynig__subcmd__tick_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig tick commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__trust_commands] )) ||
_git-aynig__subcmd__trust_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig trust commands' commands "$@"
}

# What clap does not know: branch names. Git's own completion calls _git-aynig by its name; this file is
# found as _git-aynig in $fpath. To have 'git <TAB>' list the verb too:
#   zstyle ':completion:*:*:git:*' user-commands aynig:'run workflows through Git'
(( $+functions[_git-aynig_branches] )) ||
_git-aynig_branches() {
    compadd -- ${(f)"$(git for-each-ref --format='%(refname:short)' refs/heads 2>/dev/null)"}
}

if [ "$funcstack[1]" = "_git-aynig" ]; then
    _git-aynig "$@"
else
    compdef _git-aynig git-aynig
fi
