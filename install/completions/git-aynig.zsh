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
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
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
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--trust[Also trust the commands of the current branch]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(tick)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'--role=[Prefer commands of this role]:ROLE:_default' \
'--current-branch=[What to do about the branch that is checked out here]:WHAT:((skip\:"Leave it out"
include\:"Treat it as any other"
only\:"Take no other"))' \
'--lease=[How long a lease holds without renewal \[default\: 5m\]]:DURATION:_default' \
'--grace=[How long after its end a lease still counts \[default\: 0; 30s with a remote, and in the aynig dialect\]]:DURATION:_default' \
'--timeout=[End a command that runs longer]:DURATION:_default' \
'-j+[Commands at a time \[default\: CPUs\]]:N:_default' \
'--jobs=[Commands at a time \[default\: CPUs\]]:N:_default' \
'--log-level=[The LOG_LEVEL that commands are given]:LEVEL:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-n[Show what would be done, and do nothing]' \
'--dry-run[Show what would be done, and do nothing]' \
'--tee[Show the command'\''s output as it comes, with its branch before each line where several may run at once]' \
'--json[One JSON object a line]' \
'--chain[Go on with a branch until its head is not actionable]' \
'(-n --dry-run --tee --json)--detach[Return at once; the tick goes on in the background]' \
'--detached[Leave the session that it was started in]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches; without any, every local branch:_git-aynig_branches' \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'--role=[Prefer commands of this role]:ROLE:_default' \
'--current-branch=[What to do about the branch that is checked out here]:WHAT:((skip\:"Leave it out"
include\:"Treat it as any other"
only\:"Take no other"))' \
'--lease=[How long a lease holds without renewal \[default\: 5m\]]:DURATION:_default' \
'--grace=[How long after its end a lease still counts \[default\: 0; 30s with a remote, and in the aynig dialect\]]:DURATION:_default' \
'--timeout=[End a command that runs longer]:DURATION:_default' \
'-j+[Commands at a time \[default\: CPUs\]]:N:_default' \
'--jobs=[Commands at a time \[default\: CPUs\]]:N:_default' \
'--log-level=[The LOG_LEVEL that commands are given]:LEVEL:_default' \
'--every=[Look again after this long, until stopped]:DURATION:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-n[Show what would be done, and do nothing]' \
'--dry-run[Show what would be done, and do nothing]' \
'--tee[Show the command'\''s output as it comes, with its branch before each line where several may run at once]' \
'--json[One JSON object a line]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches; without any, every local branch:_git-aynig_branches' \
&& ret=0
;;
(set-state)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-b+[The branch; made at HEAD if missing \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--branch=[The branch; made at HEAD if missing \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-m+[The message\: the first gives the subject, further ones paragraphs of the body]:MSG:_default' \
'*--message=[The message\: the first gives the subject, further ones paragraphs of the body]:MSG:_default' \
'(-m --message)-F+[Read the message from a file, '\''-'\'' for standard input]:FILE:_files' \
'(-m --message)--file=[Read the message from a file, '\''-'\'' for standard input]:FILE:_files' \
'*--trailer=[Add a trailer]:KEY: VALUE:_default' \
'(--emit)--dialect=[Which trailers \[default\: those of the branch'\''s newest state event, else dwp\]]:DIALECT:((dwp\:"The runner writes what comes of it"
aynig\:"Its command writes what comes of it"))' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--keep-trailers[Copy the head'\''s dwp-* trailers (or aynig-*, in that dialect)]' \
'(--remote --emit)--push[Push the branch to its remote afterwards]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'(-b --branch)--emit[Print the SET_STATE line instead of writing a commit]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':state -- The state:_git-aynig_states' \
&& ret=0
;;
(set-working)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-b+[The branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--branch=[The branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'--lease=[How long the lease holds \[default\: 5m\]]:DURATION:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--since=[Those whose head is newer\: as old as this, or since this day or moment]:DURATION|DATE:_default' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--waiting[Those that wait for a person, the oldest first, with the command that answers]' \
'--running[Those that a run holds]' \
'(--porcelain)-w[Stay, and redraw what changes; with --json, print each object that changed]' \
'(--porcelain)--watch[Stay, and redraw what changes; with --json, print each object that changed]' \
'(--porcelain)--json[One JSON object a line]' \
'--porcelain[Stable lines for scripts]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches; without any, those whose head is a state event:_git-aynig_branches' \
&& ret=0
;;
(events)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--since=[Only those that are newer\: as old as this, or since this day or moment]:DURATION|DATE:_default' \
'*--state=[Only those of this state; several\: of any of them]:STATE:_default' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-n+[At most this many]:N:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'()--all[Those of all branches, the newest first]' \
'--history[Leases and renewals too]' \
'-f[Begin with the last ones \[10, or -n\], then show each as it lands, oldest first]' \
'--follow[Begin with the last ones \[10, or -n\], then show each as it lands, oldest first]' \
'--json[One JSON object a line]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::branch -- The branch \[default\: the current one\]:_git-aynig_branches' \
&& ret=0
;;
(logs)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-f[Wait for more while the command runs]' \
'--follow[Wait for more while the command runs]' \
'--stderr[What it complained about instead of what it printed]' \
'(--stderr)--events[What it appended to the file that AYNIG_EVENTS names, as JSON lines]' \
'--path[Print the file'\''s path]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::what -- A branch or a commit \[default\: the current branch\]:_git-aynig_branches' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::what -- A branch, a run'\''s id or a commit of one \[default\: the current branch\]:_git-aynig_branches' \
'*::options -- Options and paths for git diff:_default' \
&& ret=0
;;
(shell)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::what -- A branch, a run'\''s id or a commit of one \[default\: the current branch\]:_git-aynig_branches' \
&& ret=0
;;
(wait)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'*--for=[Until it is, or has been meanwhile, in this state; several\: in any of them \[default\: until it rests\]]:STATE:_git-aynig_states' \
'--timeout=[At most this long \[default\: for ever\]]:DURATION:_default' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':branch -- The branch:_git-aynig_branches' \
&& ret=0
;;
(usage)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--since=[What ended since then\: a duration ago, a day (in UTC) or a moment \[default\: ever\]]:TIME:_default' \
'--by=[What is added up together, besides all of it]:BY:((branch\:"The branch that the run moved"
state\:"The state that the run answered"
model\:"The model that was used"
day\:"The day on which the run ended, in UTC"))' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--json[One JSON object a line]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(send)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-m+[The text\: each is a paragraph]:MSG:_default' \
'*--message=[The text\: each is a paragraph]:MSG:_default' \
'(-m --message)-F+[Read the text from a file, '\''-'\'' for standard input]:FILE:_files' \
'(-m --message)--file=[Read the text from a file, '\''-'\'' for standard input]:FILE:_files' \
'--kind=[What kind of message it is, one lower-case word]:KIND:_git-aynig_kinds' \
'--attach=[Hand over this commit'\''s work]:COMMIT:_default' \
'*--trailer=[Add a trailer]:KEY: VALUE:_default' \
'--id=[Its id, a UUID of version 7 or 8\: one that was sent already is not sent again \[default\: a new one\]]:ID:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':branch -- The branch:_git-aynig_branches' \
&& ret=0
;;
(inbox)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'(--take)--kind=[Only messages of this kind]:KIND:_git-aynig_kinds' \
'--take=[Inside a run\: this message is heard, and goes with the run'\''s outcome]:ID:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'(--take)-f[Show what waits, then each message as it comes]' \
'(--take)--follow[Show what waits, then each message as it comes]' \
'--json[One JSON object a line]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::branch -- The branch \[default\: the run'\''s own, else the current one\]:_git-aynig_branches' \
&& ret=0
;;
(ask)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'*--choice=[An answer that is offered; without any, every answer is]:CHOICE:_default' \
'--timeout=[Wait no longer than this]:DURATION:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--wait[Wait for the answer, and print it]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':question -- The question:_default' \
&& ret=0
;;
(answer)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-m+[A word to go with it\: each is a paragraph]:MSG:_default' \
'*--message=[A word to go with it\: each is a paragraph]:MSG:_default' \
'--seen=[The commit that was looked at\: refused where the question is about another one by now]:COMMIT:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':what -- The branch that asks, or the question'\''s id:_git-aynig_questions' \
':choice -- The answer, one of those that are offered:_git-aynig_choices' \
&& ret=0
;;
(approve)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-m+[A word to go with it\: each is a paragraph]:MSG:_default' \
'*--message=[A word to go with it\: each is a paragraph]:MSG:_default' \
'--seen=[The commit that was looked at\: refused where the question is about another one by now]:COMMIT:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':what -- The branch that asks, or the question'\''s id:_git-aynig_questions' \
&& ret=0
;;
(reject)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-m+[A word to go with it\: each is a paragraph]:MSG:_default' \
'*--message=[A word to go with it\: each is a paragraph]:MSG:_default' \
'--seen=[The commit that was looked at\: refused where the question is about another one by now]:COMMIT:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':what -- The branch that asks, or the question'\''s id:_git-aynig_questions' \
&& ret=0
;;
(pause)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-m+[Why, for those who meet it]:WHY:_default' \
'*--message=[Why, for those who meet it]:WHY:_default' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--stop[Also end the commands that run\: asked first, canceled after the kill grace]' \
'--json[One JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::patterns -- Branches, as '\''aynig.branches'\'' has them; without any, every branch:_default' \
&& ret=0
;;
(resume)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--all[Also the pauses of others]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object a line]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::ids -- Only these pauses, also those of others:_default' \
&& ret=0
;;
(land)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--onto=[Where they are to land \[default\: the branch that commands come from, else main\]]:BRANCH:_git-aynig_branches' \
'*--after=[Not before this branch has landed; several]:BRANCH:_git-aynig_branches' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'(--linear)--merge[By a merge commit, whatever .aynig/land says]' \
'--linear[As a linear history\: the branch'\''s own commits, on top of the target]' \
'--rebase[As a linear history\: the branch'\''s own commits, on top of the target]' \
'--no-tick[Only ask\: the machine that ticks the branches lands them]' \
'(--no-tick)--tee[Show what the check prints as it comes]' \
'--json[JSON objects a line\: those of git-aynig-tick(1); with --no-tick one aynig.change/1 a branch]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches \[default\: the current one\]:_git-aynig_branches' \
&& ret=0
;;
(fan)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-n+[How many attempts \[default\: as many as --each has values, else 3\]]:N:_default' \
'--count=[How many attempts \[default\: as many as --each has values, else 3\]]:N:_default' \
'*--each=[A variable that each attempt has a value of its own of, or all the same one; several]:KEY=VALUE,VALUE..:_default' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object a branch]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::branch -- The branch \[default\: the current one\]:_git-aynig_branches' \
&& ret=0
;;
(choose)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object a branch]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':branch -- The attempt that is chosen:_git-aynig_branches' \
&& ret=0
;;
(compare)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--json[One JSON object a branch]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- A branch that was fanned, one of its attempts, or several branches \[default\: the current one\]:_git-aynig_branches' \
&& ret=0
;;
(serve)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--port=[The port; 0 takes any that is free]:PORT:_default' \
'--bind=[The address; without TLS of this machine itself]:ADDRESS:_default' \
'*--allow-host=[Also answer to this name, as NAME\:PORT]:HOST:_default' \
'*--allow-origin=[Also take requests from pages of this origin]:ORIGIN:_default' \
'--token-fd=[Read the token from this descriptor, so that it stays the same over restarts]:N:_default' \
'--tls-cert=[The certificates to show, in PEM, the server'\''s own first]:FILE:_files' \
'--tls-key=[Their private key, in PEM]:FILE:_files' \
'--ui=[Also show the page in this folder, which others wrote, on a name of its own]:DIR:_files' \
'--data-dir=[Where flows'\'' logs are kept \[default\: aynig.dataDir, else aynig/data in the Git directory\]]:DIR:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--open[Open it in the browser]' \
'--read-only[Change nothing, and stand beside another server]' \
'--share[Also print an address for a person who may only look]' \
'--json[Print address, code and token as one JSON object]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::places -- Folders of repositories \[default\: the one that you stand in\]:_files' \
&& ret=0
;;
(mcp)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--socket=[Where the turn listens]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'()--all[Every branch whose head says that there is something to do]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object a branch]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches; one with '\''*'\'', '\''?'\'' or '\''\['\'' is a pattern:_git-aynig_branches' \
&& ret=0
;;
(retry)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'()--all[Every branch whose head says that there is something to do]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object a branch]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::branches -- Branches; one with '\''*'\'', '\''?'\'' or '\''\['\'' is a pattern:_git-aynig_branches' \
&& ret=0
;;
(trust)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'(--branches --revoke --list)--ref=[Commands come from this ref, whatever a branch holds \[default\: the current branch\]]:REF:_git-aynig_branches' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'(--revoke --list)--branches[Commands come from the branch that asks for them]' \
'(--list)--revoke[Trust this repository no longer]' \
'--list[List what is trusted]' \
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
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':what -- What to do:((install\:"Put our lines into this repository'\''s hooks"
uninstall\:"Take them out again, byte for byte"
status\:"Show which hooks Git runs here"))' \
&& ret=0
;;
(govern)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_git-aynig__subcmd__govern_commands" \
"*::: :->govern" \
&& ret=0

    case $state in
    (govern)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:git-aynig-govern-command-$line[1]:"
        case $line[1] in
            (start)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'--role=[The first turn'\''s role \[default\: the first phase'\''s entry role\]]:ROLE:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(assign)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
'::role -- The role \[default\: the recommended one\]:_default' \
&& ret=0
;;
(accept)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'-F+[Stage this file as the turn'\''s result first; '\''-'\'' is standard input]:FILE:_files' \
'--file=[Stage this file as the turn'\''s result first; '\''-'\'' is standard input]:FILE:_files' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'--human-merge[The conflict that stopped this turn was merged by hand]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
'::turn -- The turn \[default\: the only active one\]:_default' \
&& ret=0
;;
(reject)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'-m+[Why]:REASON:_default' \
'--message=[Why]:REASON:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
'::turn -- The turn \[default\: the only active one\]:_default' \
&& ret=0
;;
(approve-phase)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(approve-completion)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(block)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'-m+[What the run waits for]:REASON:_default' \
'--message=[What the run waits for]:REASON:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(unblock)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'-m+[A note for the decision ledger]:NOTE:_default' \
'--message=[A note for the decision ledger]:NOTE:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(escalate)
_arguments "${_arguments_options[@]}" : \
'(--root)-b+[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'(--root)--branch=[The run'\''s branch \[default\: the current one\]]:BRANCH:_git-aynig_branches' \
'--root=[A plain folder that holds agentxchain.json; Git is not asked]:DIR:_files' \
'(--root)--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_default' \
'-m+[What has to be decided]:REASON:_default' \
'--message=[What has to be decided]:REASON:_default' \
'--turn=[The turn that it is about \[default\: the only active one\]]:TURN:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(loop)
_arguments "${_arguments_options[@]}" : \
'--root=[The folder that holds agentxchain.json]:DIR:_files' \
'--max-turns=[Accepted turns after which it ends]:N:_default' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--approve[Approve gates as they come]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
'*::worker -- The worker \[default\: the command of each role'\''s runtime\]:_default' \
&& ret=0
;;
(turn)
_arguments "${_arguments_options[@]}" : \
'--role=[The role \[default\: what follows '\''turn/'\'' in the state that is answered\]]:ROLE:_default' \
'--root=[A plain folder that holds agentxchain.json \[default\: the worktree of the run\]]:DIR:_files' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
'*::worker -- The worker \[default\: the command of the role'\''s runtime\]:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(flow)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_git-aynig__subcmd__flow_commands" \
"*::: :->flow" \
&& ret=0

    case $state in
    (flow)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:git-aynig-flow-command-$line[1]:"
        case $line[1] in
            (init)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--trust[Trust the commands of the branch that is checked out]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(new)
_arguments "${_arguments_options[@]}" : \
'--mode=[auto or interactive\: whether an orchestrator goes on by itself]:MODE:_default' \
'--base=[The commit that its nodes begin at \[default\: HEAD\]]:COMMIT:_default' \
'--folder=[The folder of their worktrees that turns start in \[default\: the top\]]:PATH:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'(--implement)--plan[Turns change nothing but what is below docs/]' \
'--implement[Turns change what their nodes may\: the default]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
'::name -- What it is called \[default\: flow-<8 of its id>\]:_default' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
&& ret=0
;;
(node)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_git-aynig__subcmd__flow__subcmd__node_commands" \
"*::: :->node" \
&& ret=0

    case $state in
    (node)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:git-aynig-flow-node-command-$line[1]:"
        case $line[1] in
            (add)
_arguments "${_arguments_options[@]}" : \
'--label=[What it is called]:LABEL:_default' \
'--role=[Its role\: a template'\''s name, or a word of yours]:ROLE:_default' \
'--provider=[claude, codex, gemini or custom]:PROVIDER:_default' \
'--alias=[A short name, unique in the flow in any case; empty takes it away]:ALIAS:_default' \
'(--prompt-file)--prompt=[The text that stands in for the role'\''s template]:TEXT:_default' \
'--prompt-file=[The same from a file, '\''-'\'' for standard input]:FILE:_files' \
'*--set=[What it may do, as edgeManagement=none|self|all, writeCode=, writeDocs=, runCommands=, delegateOnly=true|false, cliPermissionsMode=skip|gated, agentManagementRequiresApproval=, resume=true|false]:KEY=VALUE:_default' \
'--id=[Its id, a UUID\: the same twice is one node \[default\: a new one\]]:ID:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
&& ret=0
;;
(set)
_arguments "${_arguments_options[@]}" : \
'--label=[What it is called]:LABEL:_default' \
'--role=[Its role]:ROLE:_default' \
'--provider=[claude, codex, gemini or custom\: the next turn begins a new session]:PROVIDER:_default' \
'--alias=[A short name, unique in the flow in any case; empty takes it away]:ALIAS:_default' \
'(--prompt-file)--prompt=[The text that stands in for the role'\''s template]:TEXT:_default' \
'--prompt-file=[The same from a file, '\''-'\'' for standard input]:FILE:_files' \
'*--set=[What it may do, as edgeManagement=none|self|all, writeCode=, writeDocs=, runCommands=, delegateOnly=true|false, cliPermissionsMode=skip|gated, agentManagementRequiresApproval=, resume=true|false]:KEY=VALUE:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'(--prompt --prompt-file)--no-prompt[The role'\''s template counts again]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':node -- The node, by its alias, label or id:_default' \
&& ret=0
;;
(remove)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':node -- The node, by its alias, label or id:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(edge)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_git-aynig__subcmd__flow__subcmd__edge_commands" \
"*::: :->edge" \
&& ret=0

    case $state in
    (edge)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:git-aynig-flow-edge-command-$line[1]:"
        case $line[1] in
            (add)
_arguments "${_arguments_options[@]}" : \
'--type=[handoff or report \[default\: by the roles of its ends\]]:TYPE:_default' \
'--label=[What it says \[default\: task or report\]]:LABEL:_default' \
'--id=[Its id, a UUID\: an edge of that id is replaced \[default\: a new one\]]:ID:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--one-way[Work goes from the first to the second alone]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':from -- The node where it begins:_default' \
':to -- The node where it ends:_default' \
&& ret=0
;;
(set)
_arguments "${_arguments_options[@]}" : \
'--type=[handoff or report]:TYPE:_default' \
'--label=[What it says]:LABEL:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'(--both-ways)--one-way[Work goes one way alone]' \
'--both-ways[Work goes both ways]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':edge -- The edge'\''s id:_default' \
&& ret=0
;;
(remove)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':edge -- The edge'\''s id:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(send)
_arguments "${_arguments_options[@]}" : \
'*-m+[The text\: each is a paragraph]:MSG:_default' \
'*--message=[The text\: each is a paragraph]:MSG:_default' \
'(-m --message)-F+[Read the text from a file, '\''-'\'' for standard input]:FILE:_files' \
'(-m --message)--file=[Read the text from a file, '\''-'\'' for standard input]:FILE:_files' \
'--id=[Its id, a UUID of version 7 or 8\: one that was sent already is not sent again \[default\: a new one\]]:ID:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':node -- The node, by its alias, label or id:_default' \
&& ret=0
;;
(interrupt)
_arguments "${_arguments_options[@]}" : \
'*-m+[The text\: each is a paragraph]:MSG:_default' \
'*--message=[The text\: each is a paragraph]:MSG:_default' \
'(-m --message)-F+[Read the text from a file, '\''-'\'' for standard input]:FILE:_files' \
'(-m --message)--file=[Read the text from a file, '\''-'\'' for standard input]:FILE:_files' \
'--id=[Its id, a UUID of version 7 or 8\: one that was sent already is not sent again \[default\: a new one\]]:ID:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':node -- The node, by its alias, label or id:_default' \
&& ret=0
;;
(reset)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':node -- The node, by its alias, label or id:_default' \
&& ret=0
;;
(pause)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
&& ret=0
;;
(resume)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
&& ret=0
;;
(stop)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
'::node -- Only this node, by its alias, label or id:_default' \
&& ret=0
;;
(start)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
':node -- The node, by its alias, label or id:_default' \
&& ret=0
;;
(mode)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'(--implement)--plan[Turns change nothing but what is below docs/]' \
'--implement[Turns change what their nodes may]' \
'--json[One JSON object]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
'::mode -- auto or interactive\: whether an orchestrator goes on by itself:_default' \
&& ret=0
;;
(set)
_arguments "${_arguments_options[@]}" : \
'--status=[queued, running, paused, stopped, completed or failed]:STATUS:_default' \
'-m+[How it ended, in a few words]:MSG:_default' \
'--message=[How it ended, in a few words]:MSG:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by its name or id:_default' \
'::node -- Only this node, by its alias, label or id:_default' \
&& ret=0
;;
(approvals)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
'::flow -- Only those of this flow:_default' \
&& ret=0
;;
(approve)
_arguments "${_arguments_options[@]}" : \
'*-m+[A word for the agent]:MSG:_default' \
'*--message=[A word for the agent]:MSG:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':approval -- The approval'\''s id:_default' \
&& ret=0
;;
(deny)
_arguments "${_arguments_options[@]}" : \
'*-m+[A word for the agent]:MSG:_default' \
'*--message=[A word for the agent]:MSG:_default' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':approval -- The approval'\''s id:_default' \
&& ret=0
;;
(modify)
_arguments "${_arguments_options[@]}" : \
'()-F+[Read them from a file, '\''-'\'' for standard input]:FILE:_files' \
'()--file=[Read them from a file, '\''-'\'' for standard input]:FILE:_files' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--no-tick[Start no chain, whatever hooks are installed]' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':approval -- The approval'\''s id:_default' \
'::args -- The arguments that are wanted, a JSON object:_default' \
&& ret=0
;;
(template)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_git-aynig__subcmd__flow__subcmd__template_commands" \
"*::: :->template" \
&& ret=0

    case $state in
    (template)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:git-aynig-flow-template-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':name -- Its name:_default' \
&& ret=0
;;
(set)
_arguments "${_arguments_options[@]}" : \
'*-m+[The text\: each is a paragraph]:TEXT:_default' \
'*--message=[The text\: each is a paragraph]:TEXT:_default' \
'(-m --message)-F+[Read the text from a file, '\''-'\'' for standard input]:FILE:_files' \
'(-m --message)--file=[Read the text from a file, '\''-'\'' for standard input]:FILE:_files' \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':name -- Its name\: letters, digits, '\''_'\'' and '\''-'\'':_default' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'--remote=[The flows of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':name -- Its name:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(events)
_arguments "${_arguments_options[@]}" : \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'--data-dir=[Where its log is kept \[default\: aynig.dataDir, else aynig/data in the Git directory\]]:DIR:_files' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-f[Then each event as it comes]' \
'--follow[Then each event as it comes]' \
'--json[One JSON object a line]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by name or id:_default' \
&& ret=0
;;
(artifacts)
_arguments "${_arguments_options[@]}" : \
'--remote=[The branches of this remote, not the local ones \[default\: aynig.remote\]]:NAME:_git-aynig_remotes' \
'--data-dir=[Where they are kept \[default\: aynig.dataDir, else aynig/data in the Git directory\]]:DIR:_files' \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--json[One JSON object a line]' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- The flow, by name or id:_default' \
&& ret=0
;;
(route)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(turn)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
        esac
    ;;
esac
;;
(install)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-n[Show what would come, and write nothing]' \
'--dry-run[Show what would come, and write nothing]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':repo -- A path, a URL, or owner/name on GitHub:_default' \
'::reference -- A branch, a tag or a whole commit id \[default\: HEAD\]:_default' \
'::subfolder -- The folder whose .aynig/ is the pack \[default\: the top\]:_default' \
&& ret=0
;;
(uninstall)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-n[Show what would be removed]' \
'--dry-run[Show what would be removed]' \
'-f[Remove it without a question]' \
'--force[Remove it without a question]' \
'--attempts[Also the work that is on no branch]' \
'--trust[Also what your own configuration says of this repository]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(gc)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-n[Show what would be removed]' \
'--dry-run[Show what would be removed]' \
'--json[One JSON object a line]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--history=[Also judge what this branch'\''s commits say, or those of every branch]::BRANCH:_git-aynig_branches' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'--network[Also ask the remote of '\''aynig.remote'\'', for ten seconds at most]' \
'--json[One JSON object a line]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(demo)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'--keep=[Keep the repository, here]:DIR:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
'::verb -- The verb:(init tick run set-state set-working status events logs diff shell wait usage send inbox ask answer approve reject pause resume land fan choose compare serve mcp cancel retry trust hooks govern flow install uninstall gc doctor demo)' \
&& ret=0
;;
(version)
_arguments "${_arguments_options[@]}" : \
'*-C+[Run as if started in this folder]:PATH:_files' \
'--git-dir=[The repository'\''s Git directory]:PATH:_files' \
'-q[Say less\: no progress, no notes]' \
'--quiet[Say less\: no progress, no notes]' \
'*-v[Say more\: branches with nothing to do, commits and leases in status]' \
'*--verbose[Say more\: branches with nothing to do, commits and leases in status]' \
'-h[Print help]' \
'--help[Print help]' \
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
'status:Show how branches stand, and who waits for a person (--waiting)' \
'events:Show a branch'\''s state events' \
'logs:Show what a command printed' \
'diff:Show what a run changed' \
'shell:Open a shell where a run'\''s files are' \
'wait:Wait until a branch rests, or is in a state' \
'usage:Add up what runs have used and cost' \
'send:Say something to a branch, whether it is at work or not' \
'inbox:Show the messages that wait for a branch' \
'ask:Inside a run\: ask a person' \
'answer:Answer a branch'\''s question' \
'approve:Answer a question with yes' \
'reject:Answer a question with no' \
'pause:Hold all branches, or some\: nothing is started on them; --stop ends what runs' \
'resume:Have what was paused go on' \
'land:Land branches on another, once the check that its .aynig/land names has passed' \
'fan:Have several branches answer one trigger' \
'choose:Choose one of the attempts that were begun' \
'compare:Show attempts side by side' \
'serve:Open the page\: what runs, what waits, in a browser' \
'mcp:Offer a flow'\''s tools to an agent'\''s program, in its turn' \
'cancel:Take a lease away, wherever its runner is' \
'retry:Ask for a stalled branch'\''s work again' \
'trust:Say which commands may run in this repository' \
'hooks:Have commits, merges and pushes start their workflows by themselves' \
'govern:Runs of several roles\: turns, gates, approvals' \
'flow:Flows\: agents that hand work to one another, each on its branch' \
'install:Copy a workflow pack into .aynig/' \
'uninstall:Take everything of git-aynig out of this repository' \
'gc:Remove dead slots, old logs and old attempts' \
'doctor:Show what would stop a tick here, and what mends it' \
'demo:Play a three-state workflow in a throwaway repository' \
'help:Show the manual, or that of a verb' \
'version:Say which version this is' \
    )
    _describe -t commands 'git-aynig commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__answer_commands] )) ||
_git-aynig__subcmd__answer_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig answer commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__approve_commands] )) ||
_git-aynig__subcmd__approve_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig approve commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__ask_commands] )) ||
_git-aynig__subcmd__ask_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig ask commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__cancel_commands] )) ||
_git-aynig__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig cancel commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__choose_commands] )) ||
_git-aynig__subcmd__choose_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig choose commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__compare_commands] )) ||
_git-aynig__subcmd__compare_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig compare commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__demo_commands] )) ||
_git-aynig__subcmd__demo_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig demo commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__diff_commands] )) ||
_git-aynig__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig diff commands' commands "$@"
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
(( $+functions[_git-aynig__subcmd__fan_commands] )) ||
_git-aynig__subcmd__fan_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig fan commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow_commands] )) ||
_git-aynig__subcmd__flow_commands() {
    local commands; commands=(
'init:Write .aynig/command/turn and .aynig/command/route' \
'new:Make a flow' \
'list:List flows' \
'show:Show a flow\: its nodes, what they do, what waits' \
'node:Add, change or remove a node' \
'edge:Add, change or remove an edge' \
'send:Say something to a node' \
'interrupt:End a node'\''s turn; with a text, that is its next one' \
'reset:Begin a new session with a node'\''s next turn, and drop what waits for it' \
'pause:Hold a flow, and interrupt the turns that run' \
'resume:Let a flow go on, and nodes that went in a circle' \
'stop:Stop a flow, or one of its nodes' \
'start:Let a node that was stopped go on' \
'mode:Say what turns may change, and whether an orchestrator goes on by itself' \
'set:Write a flow'\''s status by hand' \
'rm:Remove a flow or a node, with its branches and all that waits for it' \
'approvals:List the calls that wait for a person' \
'approve:Let a call be made' \
'deny:Have a call not made' \
'modify:Have a call made with other arguments' \
'template:Show or write the texts of roles' \
'events:Show what happened in a flow' \
'artifacts:List the files that came of a flow'\''s turns' \
'route:Do what follows from a turn\: the command of the state '\''route'\''' \
'turn:Have a node'\''s turn\: the command of the state '\''turn'\''' \
    )
    _describe -t commands 'git-aynig flow commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__approvals_commands] )) ||
_git-aynig__subcmd__flow__subcmd__approvals_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow approvals commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__approve_commands] )) ||
_git-aynig__subcmd__flow__subcmd__approve_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow approve commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__artifacts_commands] )) ||
_git-aynig__subcmd__flow__subcmd__artifacts_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow artifacts commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__deny_commands] )) ||
_git-aynig__subcmd__flow__subcmd__deny_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow deny commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__edge_commands] )) ||
_git-aynig__subcmd__flow__subcmd__edge_commands() {
    local commands; commands=(
'add:Join two nodes' \
'set:Change an edge' \
'remove:Remove an edge' \
    )
    _describe -t commands 'git-aynig flow edge commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__edge__subcmd__add_commands] )) ||
_git-aynig__subcmd__flow__subcmd__edge__subcmd__add_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow edge add commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__edge__subcmd__remove_commands] )) ||
_git-aynig__subcmd__flow__subcmd__edge__subcmd__remove_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow edge remove commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__edge__subcmd__set_commands] )) ||
_git-aynig__subcmd__flow__subcmd__edge__subcmd__set_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow edge set commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__events_commands] )) ||
_git-aynig__subcmd__flow__subcmd__events_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow events commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__init_commands] )) ||
_git-aynig__subcmd__flow__subcmd__init_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow init commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__interrupt_commands] )) ||
_git-aynig__subcmd__flow__subcmd__interrupt_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow interrupt commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__list_commands] )) ||
_git-aynig__subcmd__flow__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow list commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__mode_commands] )) ||
_git-aynig__subcmd__flow__subcmd__mode_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow mode commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__modify_commands] )) ||
_git-aynig__subcmd__flow__subcmd__modify_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow modify commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__new_commands] )) ||
_git-aynig__subcmd__flow__subcmd__new_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow new commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__node_commands] )) ||
_git-aynig__subcmd__flow__subcmd__node_commands() {
    local commands; commands=(
'add:Add a node, and make its branch' \
'set:Change a node' \
'remove:Remove a node, its branch and all that waits for it' \
    )
    _describe -t commands 'git-aynig flow node commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__node__subcmd__add_commands] )) ||
_git-aynig__subcmd__flow__subcmd__node__subcmd__add_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow node add commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__node__subcmd__remove_commands] )) ||
_git-aynig__subcmd__flow__subcmd__node__subcmd__remove_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow node remove commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__node__subcmd__set_commands] )) ||
_git-aynig__subcmd__flow__subcmd__node__subcmd__set_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow node set commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__pause_commands] )) ||
_git-aynig__subcmd__flow__subcmd__pause_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow pause commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__reset_commands] )) ||
_git-aynig__subcmd__flow__subcmd__reset_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow reset commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__resume_commands] )) ||
_git-aynig__subcmd__flow__subcmd__resume_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow resume commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__rm_commands] )) ||
_git-aynig__subcmd__flow__subcmd__rm_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow rm commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__route_commands] )) ||
_git-aynig__subcmd__flow__subcmd__route_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow route commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__send_commands] )) ||
_git-aynig__subcmd__flow__subcmd__send_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow send commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__set_commands] )) ||
_git-aynig__subcmd__flow__subcmd__set_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow set commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__show_commands] )) ||
_git-aynig__subcmd__flow__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow show commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__start_commands] )) ||
_git-aynig__subcmd__flow__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow start commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__stop_commands] )) ||
_git-aynig__subcmd__flow__subcmd__stop_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow stop commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__template_commands] )) ||
_git-aynig__subcmd__flow__subcmd__template_commands() {
    local commands; commands=(
'list:List them' \
'show:Show one' \
'set:Write one of the repository'\''s own' \
'rm:Remove one of the repository'\''s own' \
    )
    _describe -t commands 'git-aynig flow template commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__template__subcmd__list_commands] )) ||
_git-aynig__subcmd__flow__subcmd__template__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow template list commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__template__subcmd__rm_commands] )) ||
_git-aynig__subcmd__flow__subcmd__template__subcmd__rm_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow template rm commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__template__subcmd__set_commands] )) ||
_git-aynig__subcmd__flow__subcmd__template__subcmd__set_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow template set commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__template__subcmd__show_commands] )) ||
_git-aynig__subcmd__flow__subcmd__template__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow template show commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__flow__subcmd__turn_commands] )) ||
_git-aynig__subcmd__flow__subcmd__turn_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig flow turn commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__gc_commands] )) ||
_git-aynig__subcmd__gc_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig gc commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern_commands] )) ||
_git-aynig__subcmd__govern_commands() {
    local commands; commands=(
'start:Begin a run, with a command for each role' \
'status:Show where the run is, and what it waits for' \
'assign:Give the next turn to a role' \
'accept:Accept the result that is staged for a turn' \
'reject:Reject a turn'\''s result\: it is done again' \
'approve-phase:Let the run enter the next phase' \
'approve-completion:Let the run end' \
'block:Stop the run until a person unblocks it' \
'unblock:Let a blocked run go on' \
'escalate:Stop the run for a person'\''s decision' \
'loop:Take turns in a plain folder until a person is needed' \
'turn:Take one turn\: what the commands of the roles call' \
    )
    _describe -t commands 'git-aynig govern commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__accept_commands] )) ||
_git-aynig__subcmd__govern__subcmd__accept_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern accept commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__approve-completion_commands] )) ||
_git-aynig__subcmd__govern__subcmd__approve-completion_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern approve-completion commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__approve-phase_commands] )) ||
_git-aynig__subcmd__govern__subcmd__approve-phase_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern approve-phase commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__assign_commands] )) ||
_git-aynig__subcmd__govern__subcmd__assign_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern assign commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__block_commands] )) ||
_git-aynig__subcmd__govern__subcmd__block_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern block commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__escalate_commands] )) ||
_git-aynig__subcmd__govern__subcmd__escalate_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern escalate commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__loop_commands] )) ||
_git-aynig__subcmd__govern__subcmd__loop_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern loop commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__reject_commands] )) ||
_git-aynig__subcmd__govern__subcmd__reject_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern reject commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__start_commands] )) ||
_git-aynig__subcmd__govern__subcmd__start_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern start commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__status_commands] )) ||
_git-aynig__subcmd__govern__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern status commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__turn_commands] )) ||
_git-aynig__subcmd__govern__subcmd__turn_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern turn commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__govern__subcmd__unblock_commands] )) ||
_git-aynig__subcmd__govern__subcmd__unblock_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig govern unblock commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__help_commands] )) ||
_git-aynig__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig help commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__hooks_commands] )) ||
_git-aynig__subcmd__hooks_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig hooks commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__inbox_commands] )) ||
_git-aynig__subcmd__inbox_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig inbox commands' commands "$@"
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
(( $+functions[_git-aynig__subcmd__land_commands] )) ||
_git-aynig__subcmd__land_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig land commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__logs_commands] )) ||
_git-aynig__subcmd__logs_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig logs commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__mcp_commands] )) ||
_git-aynig__subcmd__mcp_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig mcp commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__pause_commands] )) ||
_git-aynig__subcmd__pause_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig pause commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__reject_commands] )) ||
_git-aynig__subcmd__reject_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig reject commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__resume_commands] )) ||
_git-aynig__subcmd__resume_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig resume commands' commands "$@"
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
(( $+functions[_git-aynig__subcmd__send_commands] )) ||
_git-aynig__subcmd__send_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig send commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__serve_commands] )) ||
_git-aynig__subcmd__serve_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig serve commands' commands "$@"
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
(( $+functions[_git-aynig__subcmd__shell_commands] )) ||
_git-aynig__subcmd__shell_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig shell commands' commands "$@"
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
(( $+functions[_git-aynig__subcmd__uninstall_commands] )) ||
_git-aynig__subcmd__uninstall_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig uninstall commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__usage_commands] )) ||
_git-aynig__subcmd__usage_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig usage commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__version_commands] )) ||
_git-aynig__subcmd__version_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig version commands' commands "$@"
}
(( $+functions[_git-aynig__subcmd__wait_commands] )) ||
_git-aynig__subcmd__wait_commands() {
    local commands; commands=()
    _describe -t commands 'git-aynig wait commands' commands "$@"
}

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

if [ "$funcstack[1]" = "_git-aynig" ]; then
    _git-aynig "$@"
else
    compdef _git-aynig git-aynig
fi
