
# What clap does not know: names of branches, remotes and states. fish's completion of git asks for 'git-aynig ...' by itself.
function __fish_git_aynig_branches
    git for-each-ref --format='%(refname:short)' refs/heads 2>/dev/null
end
function __fish_git_aynig_remotes
    git remote 2>/dev/null
end
# States that HEAD has a command for.
function __fish_git_aynig_states
    git ls-tree -r --full-tree --name-only HEAD:.aynig/command 2>/dev/null
end
# Kinds of messages: those that mean something here, and those that wait somewhere.
function __fish_git_aynig_kinds
    begin
        printf '%s\n' message handoff interrupt
        git for-each-ref --format='%(refname)' refs/aynig/inbox 2>/dev/null | string replace -r '.*/([^/]*)/[^/]*$' '$1'
    end | sort -u
end
# Branches that ask something, the questions' ids, and what they offer.
function __fish_git_aynig_questions
    git for-each-ref --format='%(trailers:key=dwp-branch,valueonly,separator=)%0a%(refname:lstrip=3)' refs/aynig/asked 2>/dev/null | string match -r '.+'
end
function __fish_git_aynig_choices
    git for-each-ref --format='%(trailers:key=dwp-choice,valueonly,separator=%x0A)' refs/aynig/asked 2>/dev/null | string match -r '.+'
end
for verb in tick run status events logs diff wait cancel retry set-state set-working send inbox answer approve reject pause resume
    complete -c git-aynig -n "__fish_git_aynig_using_subcommand $verb" -l remote -x -a '(__fish_git_aynig_remotes)'
end
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -f -a '(__fish_git_aynig_states)'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -l for -x -a '(__fish_git_aynig_states)'
for verb in send inbox
    complete -c git-aynig -n "__fish_git_aynig_using_subcommand $verb" -l kind -x -a '(__fish_git_aynig_kinds)'
end
for verb in answer approve reject
    complete -c git-aynig -n "__fish_git_aynig_using_subcommand $verb" -f -a '(__fish_git_aynig_questions)'
end
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -f -a '(__fish_git_aynig_choices)'
for verb in tick run status events logs diff wait cancel retry send inbox
    complete -c git-aynig -n "__fish_git_aynig_using_subcommand $verb" -f -a '(__fish_git_aynig_branches)'
end
for verb in set-state set-working
    complete -c git-aynig -n "__fish_git_aynig_using_subcommand $verb" -s b -l branch -x -a '(__fish_git_aynig_branches)'
end
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -l ref -x -a '(__fish_git_aynig_branches)'
# Older fish does not find verbs that are programs of their own; source this file from config.fish there.
complete -c git -f -n 'functions -q __fish_git_using_command; and __fish_git_using_command aynig' \
    -a '(__fish_git_complete_custom_command aynig)'
