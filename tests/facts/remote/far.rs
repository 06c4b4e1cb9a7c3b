//! Remotes that are gone, away, or not to be asked: what that does to everything else. Implements the proof of
//! K14, K30, K34 and K44 where a remote is not there, and of K11 and K31 where it speaks another language.

use crate::support::git_that;
use crate::support::life::{eventually, lives};
use crate::support::net::{Machine, Net};

const DONE: &str = "echo done >result; echo 'SET_STATE {\"state\":\"done\"}'";
/// Ends, and leaves a process that has the slot until it is let go.
const LINGERS: &str = "(exec sh -c 'echo $$ >\"$T/pid\"; read x <\"$T/gate\"') >/dev/null 2>&1 &\nexit 0";

/// K14, K43: a slot that can't be made ready stands in no other's way, and keeps what it has.
#[test]
fn a_slot_of_a_run_on_a_remote_that_is_gone_is_passed_over() {
    let net = Net::new(&[("build", LINGERS), ("quick", DONE)]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let gate = net.life.gate("gate");
    let report = a.tick(&["--jobs", "1", "--json", "work"]).expect(0).json();
    assert_eq!(report["result"].as_str(), Some("lease-kept"), "{report}");
    let pid = net.life.hear("pid");
    // K44: its run is on no branch here, and lives.
    let run = a.git(&["for-each-ref", "--format=%(objectname)", "refs/aynig/run"]);
    a.run(&["gc"]).expect(0);
    assert_eq!(a.git(&["for-each-ref", "--format=%(objectname)", "refs/aynig/run"]), run);
    assert!(!run.is_empty() && lives(&pid));
    a.git(&["remote", "rename", "origin", "elsewhere"]);
    a.git(&["branch", "local", "main"]);
    a.run(&["set-state", "quick", "-b", "local"]).expect(0);
    // The only slot: the error says why.
    let said = a.run(&["tick", "--jobs", "1", "local"]).expect(128);
    assert!(said.stderr.contains("'origin'"), "{said:?}");
    let said = a.run(&["tick", "--jobs", "2", "local"]).expect(0);
    assert!(said.stdout.contains("local: quick -> done"), "{said:?}");
    assert!(said.stderr.contains("could not be made ready for another run"), "{said:?}");
    assert!(lives(&pid));
    let said = a.run(&["gc"]);
    assert!(said.code == Some(128) && lives(&pid), "{said:?}");
    drop(gate);
}

/// K30: another fetch into the same refs, which had no turn, costs a moment; one that stays is named.
#[test]
fn a_fetch_that_meets_another_one_is_tried_again() {
    let net = Net::new(&[("build", DONE)]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let held = a.dir.join(".git/refs/aynig/remote/origin/work.lock");
    std::fs::create_dir_all(held.parent().unwrap()).unwrap();
    std::fs::write(&held, "").unwrap();
    let said = a.tick(&["work"]).expect(75);
    let what = "error: work: nothing was claimed: cannot fetch from remote 'origin': it was busy: ";
    assert!(said.stderr.contains(what), "{said:?}");
    assert!(said.stderr.contains("refs/aynig/remote/origin/work.lock"), "{said:?}");
    assert_eq!(net.states("work"), ["build"]);
    // The lock goes when the first fetch has failed at it.
    let failed = net.life.shared().join("failed");
    let script = format!(
        "\"$real\" \"$@\"; code=$?\ncase \" $* \" in *' fetch '*) [ $code = 0 ] || {{ echo >>'{}'; rm -f '{}'; }} ;; esac\nexit $code",
        failed.display(),
        held.display()
    );
    let mut tick = a.aynig(&["tick", "--remote", "origin", "work"]);
    tick.env("PATH", git_that(&net.life.shared(), &script));
    crate::support::life::done(tick.output().unwrap()).expect(0);
    assert_eq!(std::fs::read(failed).unwrap(), b"\n", "one fetch failed");
    assert_eq!(net.states("work"), ["done", "working", "build"]);
}

/// Exit codes: only a branch that a user named is missed.
#[test]
fn a_branch_whose_remote_branch_is_gone_fails_no_tick() {
    let net = Net::new(&[("build", DONE)]);
    net.event("work", "build", "");
    let a = net.machine("a");
    a.tick(&["work"]).expect(0);
    a.git(&["fetch", "-q"]);
    a.git(&["branch", "-q", "work", "origin/work"]);
    a.git(&["branch", "-q", "other", "origin/main"]);
    a.run(&["set-state", "build", "-b", "other"]).expect(0);
    net.git(&["update-ref", "-d", "refs/heads/work"]);
    let said = a.run(&["tick"]).expect(0);
    assert!(said.stdout.contains("other: build -> done"), "{said:?}");
    let said = a.run(&["tick", "work"]).expect(128);
    assert!(said.stdout.contains("work: no such branch on 'origin'"), "{said:?}");
}

/// K34: which programs reach a remote is what the repository's own configuration says.
#[test]
fn verbs_that_write_ask_no_remote_of_an_untrusted_repository() {
    let net = Net::new(&[("build", DONE)]);
    net.event("work", "build", "");
    let a = net.machine("a");
    net.life.config("aynig.commandsFrom", "none");
    a.git(&["config", "aynig.remote", "origin"]);
    let program = a.dir.join("pack");
    crate::support::write_program(&program, "#!/bin/sh\ntouch \"$T/asked\"\nexec git-upload-pack \"$@\"\n");
    a.git(&["config", "remote.origin.uploadpack", &format!("'{}'", program.display())]);
    for args in [
        &["set-state", "build", "-b", "work"][..],
        &["set-working", "-b", "work"],
        &["cancel", "work"],
        &["retry", "work"],
    ] {
        let said = a.run(args).expect(2);
        assert!(said.stderr.contains("not trusted"), "{said:?}");
    }
    assert!(!net.life.shared().join("asked").exists());
    // A user who names it asks it, with the account's programs; writing to one at a path, whose hooks would run, waits.
    let said = a.run(&["status", "work", "--remote", "origin"]).expect(0);
    assert!(said.stdout.contains("build"), "{said:?}");
    a.run(&["set-state", "build", "-b", "work", "--remote", "origin"]).expect(2);
    assert!(!net.life.shared().join("asked").exists());
    net.life.config("aynig.commandsFrom", "branch");
    a.run(&["set-state", "build", "-b", "work", "--remote", "origin"]).expect(0);
    assert!(net.life.shared().join("asked").exists());
}

/// K11: a push whose answer was lost, and which others went on from, has arrived.
#[test]
fn an_event_that_was_pushed_and_taken_at_once_is_no_failure() {
    let net = Net::new(&[]);
    let a = net.machine("a");
    net.hook(
        "post-receive",
        "read old new ref\nc=$(git -c user.name=x -c user.email=x@y commit-tree -p $new -m over $new^{tree})\n\
         git update-ref $ref $c\nkill -9 $PPID",
    );
    a.run(&["set-state", "build", "-b", "work", "--push"]).expect(0);
    assert_eq!(net.rev("work~1"), a.git(&["rev-parse", "work"]));
}

/// K17: while a remote is only asked, any signal is enough, and nothing of the question is left.
#[test]
fn a_remote_that_says_nothing_holds_no_signal_up() {
    let net = Net::new(&[("build", DONE)]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let (script, asked) = (net.life.shared().join("deaf"), net.life.shared().join("asked"));
    std::fs::write(&script, format!("echo $$ >'{}'; exec sleep 1000\n", asked.display())).unwrap();
    a.git(&["config", "remote.origin.uploadpack", &format!("sh '{}'", script.display())]);
    use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGTERM};
    for (args, signal, code) in [
        (&["tick", "--remote", "origin", "work"][..], SIGTERM, 143),
        (&["tick", "--remote", "origin"], SIGINT, 130),
        (&["run", "--remote", "origin"], SIGHUP, 143),
        (&["run", "--remote", "origin", "--every", "1s"], SIGTERM, 143),
    ] {
        let said = net.life.shared().join("said");
        let run = crate::support::life::Running::saying(a.aynig(args), &said);
        let pid =
            eventually("the question", || std::fs::read_to_string(&asked).ok().filter(|s| s.ends_with('\n')));
        run.signal(signal);
        run.done().expect(code);
        assert!(!std::fs::read_to_string(&said).unwrap().contains("error:"), "{args:?}");
        eventually("the end of the question", || (!lives(pid.trim())).then_some(()));
        std::fs::remove_file(&asked).unwrap();
    }
    // Another tick's question is no better.
    let fetching = std::fs::File::open(a.dir.join(".git/aynig/fetching")).unwrap();
    fetching.try_lock().unwrap();
    let run = crate::support::life::Running::of(a.aynig(&["tick", "--remote", "origin"]));
    eventually("it waits for that one", || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", run.pid())).ok()?;
        let mut files = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
        files.any(|file| file.ends_with(".git/aynig/fetching")).then_some(())
    });
    run.signal(SIGTERM);
    run.done().expect(143);
    assert_eq!(net.states("work")[0], "build");
}

/// Section 13: a runner that looks again and again outlives a network that is away.
#[test]
fn polling_goes_on_while_the_remote_is_away() {
    let net = Net::new(&[("build", DONE)]);
    let a = net.machine("a");
    let away = net.origin().with_extension("away");
    std::fs::rename(net.origin(), &away).unwrap();
    let said = net.life.shared().join("said");
    let command = a.aynig(&["run", "--remote", "origin", "--every", "200ms"]);
    let run = crate::support::life::Running::saying(command, &said);
    eventually("a look that failed", || std::fs::read_to_string(&said).ok().filter(|s| s.contains("error:")));
    std::fs::rename(&away, net.origin()).unwrap();
    net.event("work", "build", "");
    eventually("an answer", || (net.states("work")[0] == "done").then_some(()));
    run.signal(nix::sys::signal::Signal::SIGINT);
    run.done().expect(130);
}

/// K11: a remote that lists no refs for a moment, as Git does where it can't read a reftable, has not lost them.
#[test]
fn a_branch_that_is_not_listed_once_is_not_gone() {
    let net = Net::new(&[(
        "build",
        "touch \"$T/hide\"; while [ -e \"$T/hide\" ]; do sleep 0.05; done; sleep 1; echo 'SET_STATE {\"state\":\"done\"}'",
    )]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let hide = net.life.shared().join("hide");
    let pack = net.life.shared().join("upload-pack");
    let hidden = net.life.shared().join("hidden");
    let (hide_word, pack_word, hidden_word) = (hide.display(), pack.display(), hidden.display());
    let script = format!(
        "#!/bin/sh\nif test -e '{hide_word}'\nthen rm '{hide_word}'; echo >>'{hidden_word}'\n\
         exec git -c transfer.hideRefs=refs/heads upload-pack \"$@\"\nfi\nexec git upload-pack \"$@\"\n"
    );
    std::fs::write(&pack, script).unwrap();
    a.git(&["config", "remote.origin.uploadpack", &format!("sh '{pack_word}'")]);
    // Of the fetch that comes first, and of a look while the command runs.
    std::fs::write(&hide, "").unwrap();
    a.tick(&["--lease", "8s", "work"]).expect(0);
    assert_eq!(net.states("work")[0], "done");
    let hidden = std::fs::read_to_string(&hidden).unwrap();
    assert_eq!(hidden.lines().count(), 2, "both times");
    // What is gone is gone.
    net.git(&["update-ref", "-d", "refs/heads/work"]);
    a.tick(&["work"]).expect(128);
}

/// Has what that machine's pushes are answered with pass through a script: its words are a remote's to choose.
fn answers_by(a: &Machine<'_>, script: &str) {
    let place = a.net.life.shared().join("receive");
    // As over HTTP: no filter between has to guess where the first answer ends.
    let begin = "git-receive-pack --stateless-rpc --advertise-refs \"$@\"";
    let text = format!("#!/bin/sh\ncd '{}'\n{begin}\n{script}\n", a.net.life.shared().display());
    crate::support::write_program(&place, &text);
    a.git(&["config", "remote.origin.receivepack", &format!("'{}'", place.display())]);
}

/// K11, K31: a no that is told in the words of a lock is a no.
#[test]
fn an_outcome_that_is_declined_in_other_words_ends_stalled() {
    let net = Net::new(&[("build", DONE)]);
    net.hook(
        "update",
        "! git cat-file -e \"$3:result\" 2>/dev/null || case $1 in refs/heads/*)
             echo \"error: cannot lock ref '$1': '$1/x' exists; cannot create '$1'; Permission denied\" >&2; exit 1;; esac",
    );
    net.event("work", "build", "");
    let a = net.machine("a");
    // As many bytes as there were.
    answers_by(&a, "git-receive-pack --stateless-rpc \"$@\" | sed 's/hook declined/unpack failed/'");
    let report = a.tick(&["--json", "work"]).expect(1).json();
    assert!(report["why"].as_str().unwrap().contains("declined the outcome"), "{report}");
    assert_eq!(net.states("work"), ["stalled", "working", "build"]);
    // What a branch with another's name stands in the way of is seen, not read.
    std::fs::remove_file(net.origin().join("hooks/update")).unwrap();
    answers_by(
        &a,
        "git-receive-pack --stateless-rpc \"$@\" | sed 's/exists; cannot create/steht im Weg; so nie./'",
    );
    let said = a.run(&["set-state", "build", "--remote", "origin", "-b", "work/sub"]).expect(128);
    assert!(
        said.stderr.contains("in the way") && said.stderr.contains("'refs/heads/work' exists"),
        "{said:?}"
    );
}

/// K11, K31: a lock at a remote, in whatever words, costs a moment, and no outcome.
#[test]
fn an_outcome_that_meets_a_lock_in_other_words_lands() {
    let lock = "touch met \"$ORIGIN/refs/heads/work.lock\"";
    let net = Net::new(&[("build", &format!("(cd \"$T\"; {lock})\n{DONE}"))]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let origin = net.origin().display().to_string();
    answers_by(
        &a,
        &format!(
            "rm met 2>/dev/null || exec git-receive-pack --stateless-rpc \"$@\"\n\
             git-receive-pack --stateless-rpc \"$@\" | sed 's/failed to update ref/gerade ist es belegt/'\n\
             rm '{origin}/refs/heads/work.lock'"
        ),
    );
    let mut tick = a.aynig(&["tick", "--remote", "origin", "work"]);
    let done = crate::support::life::done(tick.env("ORIGIN", net.origin()).output().unwrap());
    assert_eq!((done.code, net.states("work")[0].as_str()), (Some(0), "done"), "{done:?}");
    assert!(!net.life.shared().join("met").exists());
}

/// K31: a remote that takes nothing for a while, the news of a refusal neither, is asked until the lease ends.
#[test]
fn an_outcome_waits_for_a_remote_that_takes_nothing() {
    let net = Net::new(&[("build", &format!(": >\"$T/frozen\"; {DONE}"))]);
    let frozen = net.life.shared().join("frozen");
    let asked = net.life.shared().join("asked");
    net.hook(
        "pre-receive",
        &format!(
            "test -e '{0}' || exit 0\ncase $(cat) in *refs/heads/*) echo x >>'{1}'; esac\n\
             test $(grep -c . '{1}') -lt 14 || rm '{0}'\necho frozen >&2; exit 1",
            frozen.display(),
            asked.display()
        ),
    );
    net.event("work", "build", "");
    let a = net.machine("a");
    a.tick(&["work"]).expect(0);
    assert_eq!((net.states("work")[0].as_str(), frozen.exists()), ("done", false));
}

/// K51: a remote that falls silent halfway through a look takes nothing of what was seen: who polls wakes up in time.
#[test]
fn a_moment_that_was_seen_before_a_remote_fell_silent_is_kept() {
    let deaf = "echo >\"$T/deaf\"; echo 'SET_STATE {\"state\":\"done\"}'";
    let net = Net::new(&[("deafen", deaf), ("late", DONE)]);
    let a = net.machine("a");
    let mut names: Vec<String> = (0..44).map(|n| format!("b{n:02}")).collect();
    for name in &names {
        net.life.event(name, "rest", "");
    }
    let at = crate::support::life::now() + 8;
    for (name, state, more) in
        [("a0", "late", format!("dwp-not-before: {at}\n")), ("a1", "deafen", String::new())]
    {
        net.life.event(name, state, &more);
        names.push(name.to_owned());
    }
    net.life.git(
        &[&["push", "-q", "origin"], &names.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat(),
    );
    let script = net.life.repo.home().join("upload-pack");
    let silent = net.life.shared().join("deaf");
    let text =
        format!("#!/bin/sh\ntest ! -e '{}' || exit 1\nexec git-upload-pack \"$@\"\n", silent.display());
    crate::support::write_program(&script, &text);
    a.git(&["config", "remote.origin.uploadpack", &format!("'{}'", script.display())]);
    let said = net.life.shared().join("polls");
    let run = a.aynig(&["run", "--remote", "origin", "--every", "1h"]);
    let run = crate::support::life::Running::saying(run, &said);
    let read = || std::fs::read_to_string(&said).unwrap_or_default();
    eventually("it falls silent", || read().contains("error:").then_some(()));
    std::fs::remove_file(&silent).unwrap_or_else(|why| panic!("{why}: {}", read()));
    eventually("it wakes up", || (net.states("a0")[0] == "done").then_some(()));
    run.signal(nix::sys::signal::Signal::SIGTERM);
    run.done();
}
