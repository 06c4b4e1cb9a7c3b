# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_git_aynig_global_optspecs
    string join \n C= git-dir= q/quiet v/verbose h/help V/version
end

function __fish_git_aynig_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_git_aynig_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_git_aynig_using_subcommand
    set -l cmd (__fish_git_aynig_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c git-aynig -n "__fish_git_aynig_needs_command" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_needs_command" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_needs_command" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -s V -l version -d 'Print version'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "init" -d 'Scaffold .aynig/ with a first command'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "tick" -d 'Evaluate branches once'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "run" -d 'Tick until nothing is actionable'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "set-state" -d 'Write a state event'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "set-working" -d 'Take or renew a lease by hand'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "status" -d 'Show how branches stand, and who waits for a person (--waiting)'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "events" -d 'Show a branch\'s state events'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "logs" -d 'Show what a command printed'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "diff" -d 'Show what a run changed'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "shell" -d 'Open a shell where a run\'s files are'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "wait" -d 'Wait until a branch rests, or is in a state'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "usage" -d 'Add up what runs have used and cost'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "send" -d 'Say something to a branch, whether it is at work or not'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "inbox" -d 'Show the messages that wait for a branch'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "ask" -d 'Inside a run: ask a person'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "answer" -d 'Answer a branch\'s question'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "approve" -d 'Answer a question with yes'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "reject" -d 'Answer a question with no'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "pause" -d 'Hold all branches, or some: nothing is started on them; --stop ends what runs'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "resume" -d 'Have what was paused go on'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "land" -d 'Land branches on another, once the check that its .aynig/land names has passed'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "fan" -d 'Have several branches answer one trigger'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "choose" -d 'Choose one of the attempts that were begun'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "compare" -d 'Show attempts side by side'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "serve" -d 'Open the page: what runs, what waits, in a browser'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "mcp" -d 'Offer a flow\'s tools to an agent\'s program, in its turn'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "cancel" -d 'Take a lease away, wherever its runner is'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "retry" -d 'Ask for a stalled branch\'s work again'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "trust" -d 'Say which commands may run in this repository'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "hooks" -d 'Have commits, merges and pushes start their workflows by themselves'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "govern" -d 'Runs of several roles: turns, gates, approvals'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "flow" -d 'Flows: agents that hand work to one another, each on its branch'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "install" -d 'Copy a workflow pack into .aynig/'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "uninstall" -d 'Take everything of git-aynig out of this repository'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "gc" -d 'Remove dead slots, old logs and old attempts'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "doctor" -d 'Show what would stop a tick here, and what mends it'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "demo" -d 'Play a three-state workflow in a throwaway repository'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "help" -d 'Show the manual, or that of a verb'
complete -c git-aynig -n "__fish_git_aynig_needs_command" -f -a "version" -d 'Say which version this is'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand init" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand init" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand init" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand init" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand init" -l trust -d 'Also trust the commands of the current branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l role -d 'Prefer commands of this role' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l current-branch -d 'What to do about the branch that is checked out here' -r -f -a "skip\t'Leave it out'
include\t'Treat it as any other'
only\t'Take no other'"
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l lease -d 'How long a lease holds without renewal [default: 5m]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l grace -d 'How long after its end a lease still counts [default: 0; 30s with a remote, and in the aynig dialect]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l timeout -d 'End a command that runs longer' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -s j -l jobs -d 'Commands at a time [default: CPUs]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l log-level -d 'The LOG_LEVEL that commands are given' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -s n -l dry-run -d 'Show what would be done, and do nothing'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l tee -d 'Show the command\'s output as it comes, with its branch before each line where several may run at once'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l chain -d 'Go on with a branch until its head is not actionable'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l detach -d 'Return at once; the tick goes on in the background'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -l detached -d 'Leave the session that it was started in'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand tick" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l role -d 'Prefer commands of this role' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l current-branch -d 'What to do about the branch that is checked out here' -r -f -a "skip\t'Leave it out'
include\t'Treat it as any other'
only\t'Take no other'"
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l lease -d 'How long a lease holds without renewal [default: 5m]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l grace -d 'How long after its end a lease still counts [default: 0; 30s with a remote, and in the aynig dialect]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l timeout -d 'End a command that runs longer' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -s j -l jobs -d 'Commands at a time [default: CPUs]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l log-level -d 'The LOG_LEVEL that commands are given' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l every -d 'Look again after this long, until stopped' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -s n -l dry-run -d 'Show what would be done, and do nothing'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l tee -d 'Show the command\'s output as it comes, with its branch before each line where several may run at once'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -s b -l branch -d 'The branch; made at HEAD if missing [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -s m -l message -d 'The message: the first gives the subject, further ones paragraphs of the body' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -s F -l file -d 'Read the message from a file, \'-\' for standard input' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l trailer -d 'Add a trailer' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l dialect -d 'Which trailers [default: those of the branch\'s newest state event, else dwp]' -r -f -a "dwp\t'The runner writes what comes of it'
aynig\t'Its command writes what comes of it'"
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l keep-trailers -d 'Copy the head\'s dwp-* trailers (or aynig-*, in that dialect)'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l push -d 'Push the branch to its remote afterwards'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l emit -d 'Print the SET_STATE line instead of writing a commit'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-state" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -s b -l branch -d 'The branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -l lease -d 'How long the lease holds [default: 5m]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand set-working" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -l since -d 'Those whose head is newer: as old as this, or since this day or moment' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -l waiting -d 'Those that wait for a person, the oldest first, with the command that answers'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -l running -d 'Those that a run holds'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -s w -l watch -d 'Stay, and redraw what changes; with --json, print each object that changed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -l porcelain -d 'Stable lines for scripts'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -l since -d 'Only those that are newer: as old as this, or since this day or moment' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -l state -d 'Only those of this state; several: of any of them' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -s n -d 'At most this many' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -l all -d 'Those of all branches, the newest first'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -l history -d 'Leases and renewals too'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -s f -l follow -d 'Begin with the last ones [10, or -n], then show each as it lands, oldest first'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand events" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -s f -l follow -d 'Wait for more while the command runs'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -l stderr -d 'What it complained about instead of what it printed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -l events -d 'What it appended to the file that AYNIG_EVENTS names, as JSON lines'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -l path -d 'Print the file\'s path'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand logs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand diff" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand diff" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand diff" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand diff" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand diff" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand shell" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand shell" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand shell" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand shell" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand shell" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand shell" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -l for -d 'Until it is, or has been meanwhile, in this state; several: in any of them [default: until it rests]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -l timeout -d 'At most this long [default: for ever]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand wait" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -l since -d 'What ended since then: a duration ago, a day (in UTC) or a moment [default: ever]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -l by -d 'What is added up together, besides all of it' -r -f -a "branch\t'The branch that the run moved'
state\t'The state that the run answered'
model\t'The model that was used'
day\t'The day on which the run ended, in UTC'"
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand usage" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -s m -l message -d 'The text: each is a paragraph' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -s F -l file -d 'Read the text from a file, \'-\' for standard input' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -l kind -d 'What kind of message it is, one lower-case word' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -l attach -d 'Hand over this commit\'s work' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -l trailer -d 'Add a trailer' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -l id -d 'Its id, a UUID of version 7 or 8: one that was sent already is not sent again [default: a new one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand send" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -l kind -d 'Only messages of this kind' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -l take -d 'Inside a run: this message is heard, and goes with the run\'s outcome' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -s f -l follow -d 'Show what waits, then each message as it comes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand inbox" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -l choice -d 'An answer that is offered; without any, every answer is' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -l timeout -d 'Wait no longer than this' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -l wait -d 'Wait for the answer, and print it'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand ask" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -s m -l message -d 'A word to go with it: each is a paragraph' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -l seen -d 'The commit that was looked at: refused where the question is about another one by now' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand answer" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -s m -l message -d 'A word to go with it: each is a paragraph' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -l seen -d 'The commit that was looked at: refused where the question is about another one by now' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand approve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -s m -l message -d 'A word to go with it: each is a paragraph' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -l seen -d 'The commit that was looked at: refused where the question is about another one by now' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand reject" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -s m -l message -d 'Why, for those who meet it' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -l stop -d 'Also end the commands that run: asked first, canceled after the kill grace'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand pause" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -l all -d 'Also the pauses of others'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l onto -d 'Where they are to land [default: the branch that commands come from, else main]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l after -d 'Not before this branch has landed; several' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l merge -d 'By a merge commit, whatever .aynig/land says'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l linear -l rebase -d 'As a linear history: the branch\'s own commits, on top of the target'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l no-tick -d 'Only ask: the machine that ticks the branches lands them'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l tee -d 'Show what the check prints as it comes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -l json -d 'JSON objects a line: those of git-aynig-tick(1); with --no-tick one aynig.change/1 a branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand land" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -s n -l count -d 'How many attempts [default: as many as --each has values, else 3]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -l each -d 'A variable that each attempt has a value of its own of, or all the same one; several' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -l json -d 'One JSON object a branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand fan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand choose" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand choose" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand choose" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand choose" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand choose" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand choose" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand choose" -l json -d 'One JSON object a branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand choose" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand compare" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand compare" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand compare" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand compare" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand compare" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand compare" -l json -d 'One JSON object a branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l port -d 'The port; 0 takes any that is free' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l bind -d 'The address; without TLS of this machine itself' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l allow-host -d 'Also answer to this name, as NAME:PORT' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l allow-origin -d 'Also take requests from pages of this origin' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l token-fd -d 'Read the token from this descriptor, so that it stays the same over restarts' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l tls-cert -d 'The certificates to show, in PEM, the server\'s own first' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l tls-key -d 'Their private key, in PEM' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l ui -d 'Also show the page in this folder, which others wrote, on a name of its own' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l data-dir -d 'Where flows\' logs are kept [default: aynig.dataDir, else aynig/data in the Git directory]' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l open -d 'Open it in the browser'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l read-only -d 'Change nothing, and stand beside another server'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l share -d 'Also print an address for a person who may only look'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -l json -d 'Print address, code and token as one JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand mcp" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand mcp" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand mcp" -l socket -d 'Where the turn listens' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand mcp" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand mcp" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand mcp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -l all -d 'Every branch whose head says that there is something to do'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -l json -d 'One JSON object a branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand cancel" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -l all -d 'Every branch whose head says that there is something to do'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -l json -d 'One JSON object a branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand retry" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -l ref -d 'Commands come from this ref, whatever a branch holds [default: the current branch]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -l branches -d 'Commands come from the branch that asks for them'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -l revoke -d 'Trust this repository no longer'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -l list -d 'List what is trusted'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand trust" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand hooks" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand hooks" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand hooks" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand hooks" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand hooks" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "start" -d 'Begin a run, with a command for each role'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "status" -d 'Show where the run is, and what it waits for'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "assign" -d 'Give the next turn to a role'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "accept" -d 'Accept the result that is staged for a turn'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "reject" -d 'Reject a turn\'s result: it is done again'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "approve-phase" -d 'Let the run enter the next phase'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "approve-completion" -d 'Let the run end'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "block" -d 'Stop the run until a person unblocks it'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "unblock" -d 'Let a blocked run go on'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "escalate" -d 'Stop the run for a person\'s decision'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "loop" -d 'Take turns in a plain folder until a person is needed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and not __fish_seen_subcommand_from start status assign accept reject approve-phase approve-completion block unblock escalate loop turn" -f -a "turn" -d 'Take one turn: what the commands of the roles call'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -l role -d 'The first turn\'s role [default: the first phase\'s entry role]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from assign" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -s F -l file -d 'Stage this file as the turn\'s result first; \'-\' is standard input' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -l human-merge -d 'The conflict that stopped this turn was merged by hand'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from accept" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -s m -l message -d 'Why' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from reject" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-phase" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from approve-completion" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -s m -l message -d 'What the run waits for' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from block" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -s m -l message -d 'A note for the decision ledger' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from unblock" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -s b -l branch -d 'The run\'s branch [default: the current one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -l root -d 'A plain folder that holds agentxchain.json; Git is not asked' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -s m -l message -d 'What has to be decided' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -l turn -d 'The turn that it is about [default: the only active one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from escalate" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -l root -d 'The folder that holds agentxchain.json' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -l max-turns -d 'Accepted turns after which it ends' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -l approve -d 'Approve gates as they come'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from loop" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from turn" -l role -d 'The role [default: what follows \'turn/\' in the state that is answered]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from turn" -l root -d 'A plain folder that holds agentxchain.json [default: the worktree of the run]' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from turn" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from turn" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from turn" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from turn" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand govern; and __fish_seen_subcommand_from turn" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "init" -d 'Write .aynig/command/turn and .aynig/command/route'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "new" -d 'Make a flow'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "list" -d 'List flows'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "show" -d 'Show a flow: its nodes, what they do, what waits'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "node" -d 'Add, change or remove a node'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "edge" -d 'Add, change or remove an edge'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "send" -d 'Say something to a node'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "interrupt" -d 'End a node\'s turn; with a text, that is its next one'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "reset" -d 'Begin a new session with a node\'s next turn, and drop what waits for it'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "pause" -d 'Hold a flow, and interrupt the turns that run'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "resume" -d 'Let a flow go on, and nodes that went in a circle'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "stop" -d 'Stop a flow, or one of its nodes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "start" -d 'Let a node that was stopped go on'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "mode" -d 'Say what turns may change, and whether an orchestrator goes on by itself'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "set" -d 'Write a flow\'s status by hand'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "rm" -d 'Remove a flow or a node, with its branches and all that waits for it'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "approvals" -d 'List the calls that wait for a person'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "approve" -d 'Let a call be made'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "deny" -d 'Have a call not made'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "modify" -d 'Have a call made with other arguments'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "template" -d 'Show or write the texts of roles'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "events" -d 'Show what happened in a flow'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "artifacts" -d 'List the files that came of a flow\'s turns'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "route" -d 'Do what follows from a turn: the command of the state \'route\''
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and not __fish_seen_subcommand_from init new list show node edge send interrupt reset pause resume stop start mode set rm approvals approve deny modify template events artifacts route turn" -f -a "turn" -d 'Have a node\'s turn: the command of the state \'turn\''
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from init" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from init" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from init" -l trust -d 'Trust the commands of the branch that is checked out'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from init" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -l mode -d 'auto or interactive: whether an orchestrator goes on by itself' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -l base -d 'The commit that its nodes begin at [default: HEAD]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -l folder -d 'The folder of their worktrees that turns start in [default: the top]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -l plan -d 'Turns change nothing but what is below docs/'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -l implement -d 'Turns change what their nodes may: the default'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from new" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from list" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from list" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from list" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from list" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from show" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from show" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from show" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from show" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from node" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from node" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from node" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from node" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from node" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from node" -f -a "add" -d 'Add a node, and make its branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from node" -f -a "set" -d 'Change a node'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from node" -f -a "remove" -d 'Remove a node, its branch and all that waits for it'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from edge" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from edge" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from edge" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from edge" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from edge" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from edge" -f -a "add" -d 'Join two nodes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from edge" -f -a "set" -d 'Change an edge'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from edge" -f -a "remove" -d 'Remove an edge'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -s m -l message -d 'The text: each is a paragraph' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -s F -l file -d 'Read the text from a file, \'-\' for standard input' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -l id -d 'Its id, a UUID of version 7 or 8: one that was sent already is not sent again [default: a new one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from send" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -s m -l message -d 'The text: each is a paragraph' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -s F -l file -d 'Read the text from a file, \'-\' for standard input' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -l id -d 'Its id, a UUID of version 7 or 8: one that was sent already is not sent again [default: a new one]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from interrupt" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from reset" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from reset" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from reset" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from reset" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from reset" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from reset" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from reset" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from reset" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from pause" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from pause" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from pause" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from pause" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from pause" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from pause" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from resume" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from resume" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from resume" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from resume" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from resume" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from resume" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from resume" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from stop" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from stop" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from stop" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from stop" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from stop" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from stop" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from stop" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from start" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from start" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from start" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from start" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from start" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from start" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from start" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -l plan -d 'Turns change nothing but what is below docs/'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -l implement -d 'Turns change what their nodes may'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from mode" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -l status -d 'queued, running, paused, stopped, completed or failed' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -s m -l message -d 'How it ended, in a few words' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from rm" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from rm" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from rm" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from rm" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from rm" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from rm" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approvals" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approvals" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approvals" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approvals" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approvals" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approvals" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approvals" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -s m -l message -d 'A word for the agent' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from approve" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -s m -l message -d 'A word for the agent' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from deny" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -s F -l file -d 'Read them from a file, \'-\' for standard input' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -l remote -d 'The flows of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -l no-tick -d 'Start no chain, whatever hooks are installed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -l json -d 'One JSON object'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from modify" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -f -a "list" -d 'List them'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -f -a "show" -d 'Show one'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -f -a "set" -d 'Write one of the repository\'s own'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from template" -f -a "rm" -d 'Remove one of the repository\'s own'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -l data-dir -d 'Where its log is kept [default: aynig.dataDir, else aynig/data in the Git directory]' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -s f -l follow -d 'Then each event as it comes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from events" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from artifacts" -l remote -d 'The branches of this remote, not the local ones [default: aynig.remote]' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from artifacts" -l data-dir -d 'Where they are kept [default: aynig.dataDir, else aynig/data in the Git directory]' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from artifacts" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from artifacts" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from artifacts" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from artifacts" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from artifacts" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from artifacts" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from route" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from route" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from route" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from route" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from route" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from turn" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from turn" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from turn" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from turn" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand flow; and __fish_seen_subcommand_from turn" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand install" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand install" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand install" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand install" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand install" -s n -l dry-run -d 'Show what would come, and write nothing'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand install" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -s n -l dry-run -d 'Show what would be removed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -s f -l force -d 'Remove it without a question'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -l attempts -d 'Also the work that is on no branch'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -l trust -d 'Also what your own configuration says of this repository'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand uninstall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand gc" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand gc" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand gc" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand gc" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand gc" -s n -l dry-run -d 'Show what would be removed'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand gc" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand gc" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand doctor" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand doctor" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand doctor" -l history -d 'Also judge what this branch\'s commits say, or those of every branch' -r
complete -c git-aynig -n "__fish_git_aynig_using_subcommand doctor" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand doctor" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand doctor" -l network -d 'Also ask the remote of \'aynig.remote\', for ten seconds at most'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand doctor" -l json -d 'One JSON object a line'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand demo" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand demo" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand demo" -l keep -d 'Keep the repository, here' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand demo" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand demo" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand help" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand help" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand help" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand help" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand help" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand version" -s C -d 'Run as if started in this folder' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand version" -l git-dir -d 'The repository\'s Git directory' -r -F
complete -c git-aynig -n "__fish_git_aynig_using_subcommand version" -s q -l quiet -d 'Say less: no progress, no notes'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand version" -s v -l verbose -d 'Say more: branches with nothing to do, commits and leases in status'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand version" -s h -l help -d 'Print help'
complete -c git-aynig -n "__fish_git_aynig_using_subcommand help" -f -a 'init tick run set-state set-working status events logs diff shell wait usage send inbox ask answer approve reject pause resume land fan choose compare serve mcp cancel retry trust hooks govern flow install uninstall gc doctor demo'

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
