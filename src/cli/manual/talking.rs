//! Manual pages of the verbs by which people, commands and branches talk: messages, questions, pauses.

/// `send`.
pub const SEND: &str = "\
Says something to a branch, whether it is at work or not: a commit under refs/aynig/inbox/, that waits there until \
the branch takes it in. A branch whose head says 'dwp-accepts: message=rework' is given a trigger with the state \
'rework', with the message as its body, as soon as it is not at work; until then a running command may read it with \
git-aynig-inbox(1). No file of the branch is touched by a text; with --attach the work of a commit is handed over, \
and merged by the delivery.

With --id a sender that may have been cut off asks again: what is in the inbox, or was heard already, is not sent \
again, and that is said. Inside a run the message says which run it is from, and counts as one more hop.

Where hooks are installed and the branch takes such messages, its chain is started.";

/// `send`, sections.
pub const SEND_MORE: &str = "\
Exit status:
  0    sent, or sent before
  2    there is no such branch; answers are given by git-aynig-answer(1); declined by the remote, or it cannot be signed
  75   try again later
  128  fatal
  129  the kind, the id, a trailer or the text is not usable

JSON:
An object with schema (aynig.message/1), branch, id, kind, from, hop, commit, seen, attached, question, choice, text, \
trailers (each with key and value), sent (false where it had been sent before), waiting (false where it was heard \
already).

Examples:
  git aynig send job -m 'Use the other library, please.'
  git aynig send job --kind handoff --attach topic -F notes.md

See also:
  git-aynig(1), git-aynig-inbox(1), git-aynig-answer(1)";

/// `inbox`.
pub const INBOX: &str = "\
Shows the messages that wait for a branch, oldest first. Inside a run that is the run's own branch, and --follow \
shows each message as it comes, so that a command which is at work can heed it: 'interrupt' asks it to end.

A message that is shown still waits: it is delivered with the branch's next trigger. With --take a run says that it \
has heard one: it becomes a parent of the run's outcome, and waits no more once that is on the branch. Where the run \
ends otherwise the message waits as before.";

/// `inbox`, sections.
pub const INBOX_MORE: &str = "\
Exit status:
  0    shown, or taken
  2    --take in a run of the aynig dialect
  75   try again later
  128  the branch or the message does not exist; --take outside of a run
  130  ended by an interrupt while following; 143 by SIGTERM

JSON:
Objects with schema (aynig.message/1), branch, id, kind, from, hop, commit, seen, attached, question, choice, text, \
trailers (each with key and value), problem (why it cannot be read, or null).

Examples:
  git aynig inbox job
  git aynig inbox --follow --kind interrupt

See also:
  git-aynig(1), git-aynig-send(1)";

/// `ask`.
pub const ASK: &str = "\
Inside a run, asks a person. The question is a commit under refs/aynig/asked/ whose parent is the work as it is now, \
so that the person who answers can look at exactly what is asked about.

Without --wait it prints the question's id; the command then declares the state in which its branch waits, with the \
trailers 'dwp-question: <id>' and 'dwp-accepts: answer=<state>': the answer brings that state. With --wait the \
command sleeps until the answer is there, and it is printed. Meanwhile others may run in its stead; its worktree and \
its lease stay its own.

A question ends when it is answered, when its run ends without a head that waits for it, and with the time of \
--timeout.";

/// `ask`, sections.
pub const ASK_MORE: &str = "\
Exit status:
  0    asked; with --wait, answered
  2    in a run of the aynig dialect, without --wait
  3    the run no longer holds its branch
  75   no answer came in the time of --timeout; or try again later
  128  not inside a run
  129  a choice or the question is not usable
  130  ended by an interrupt while waiting; 143 by SIGTERM

JSON:
Without --wait an object with schema (aynig.question/1), id, branch, run_id, choices, text, commit, snapshot, asked, \
declare (a list of the trailers to declare). With --wait one with schema (aynig.message/1), as git-aynig-inbox(1) has it.

Examples:
  answer=$(git aynig ask 'Deploy to production?' --choice yes --choice no --wait --timeout 1h)
  id=$(git aynig ask 'Which of both?' --choice left --choice right)

See also:
  git-aynig(1), git-aynig-answer(1), git-aynig-inbox(1)";

/// `answer`.
pub const ANSWER: &str = "\
Answers the question of a branch, or the one of this id. Of two who answer at once one wins, and the other is told by \
whom it was answered. A choice that was not offered is refused, and those that were are listed.

With --seen the answer counts only where the question is still about the commit that was looked at: the question's \
own, or the work that is its parent.";

/// `answer`, sections.
pub const ANSWER_MORE: &str = "\
Exit status:
  0    answered
  2    there is no such branch; not one of the choices; about another commit by now; several questions; it cannot be signed
  3    answered meanwhile
  75   try again later
  128  no run asks there, or waits for an answer any more
  129  the text is not usable

JSON:
An object with schema (aynig.message/1), as git-aynig-send(1) has it.

Examples:
  git aynig status --waiting
  git aynig answer job yes -m 'After six, please.'

See also:
  git-aynig(1), git-aynig-ask(1), git-aynig-approve(1), git-aynig-reject(1), git-aynig-status(1)";

/// `approve`.
pub const APPROVE: &str = "\
Answers a question with that one of its choices that says yes: yes, approve, approved, accept, ok, go, continue or \
allow, in any case. Where it offers none of these it is refused, and what it offers is listed.";

/// `reject`.
pub const REJECT: &str = "\
Answers a question with that one of its choices that says no: no, reject, rejected, decline, deny, stop or abort, in \
any case. Where it offers none of these it is refused, and what it offers is listed.";

/// `approve` and `reject`, sections.
pub const YES_OR_NO_MORE: &str = "\
Exit status:
  As git-aynig-answer(1).

Examples:
  git aynig approve job
  git aynig reject job -m 'Not on a Friday.'

See also:
  git-aynig(1), git-aynig-answer(1), git-aynig-ask(1)";

/// `pause`.
pub const PAUSE: &str = "\
Holds branches: no command is started on them and no message delivered to them, by any runner, until git-aynig-resume(1). \
Commands that run go on, and leases that expire are recovered, unless --stop ends the commands too: each is asked \
first, by a message of the kind 'interrupt' in its inbox and a line among its events, and canceled after \
'aynig.killGrace'. 'resume' asks for exactly those again.

A pattern is one of 'aynig.branches': compared with full names where it begins with refs/, else with short ones.";

/// `pause`, sections.
pub const PAUSE_MORE: &str = "\
Exit status:
  0    paused
  1    with --stop: a run could not be ended
  2    declined by the remote, or it cannot be signed
  75   try again later
  128  fatal
  129  a pattern or the reason is not usable

JSON:
An object with schema (aynig.pause/1), id, commit, patterns, holder, reason, since, stopped (a list of branch, trigger).

Configuration:
  aynig.killGrace  how long a command that is asked to end may take (10s)

Examples:
  git aynig pause -m 'deploying by hand'
  git aynig pause 'topic/*' --stop

See also:
  git-aynig(1), git-aynig-resume(1), git-aynig-cancel(1)";

/// `resume`.
pub const RESUME: &str = "\
Takes back your own pauses, with --all those of all users, or the ones of the ids that are named, and asks again for \
the runs that --stop ended, with the same messages. A branch that has gone on by itself since is left as it is. Where hooks are installed, what waited is \
started; with --remote the next push to it or tick of it does that.";

/// `resume`, sections.
pub const RESUME_MORE: &str = "\
Exit status:
  0    resumed, or nothing was paused
  2    declined by the remote, or it cannot be signed
  3    a branch was moved meanwhile
  75   try again later
  128  fatal

JSON:
Objects with schema (aynig.pause/1), id, commit, patterns, holder, reason, since, stopped, resumed (branches that were \
asked for again).

Examples:
  git aynig resume && git aynig tick
  git aynig resume --all

See also:
  git-aynig(1), git-aynig-pause(1), git-aynig-retry(1)";
