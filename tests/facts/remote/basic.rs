//! Remote mode: the push is the swap, whichever other machine pushes, and whatever becomes of the connection.

use crate::support::life::{Life, eventually, lives, now};
use crate::support::net::Net;
use nix::sys::signal::Signal;

/// An `update` hook.
const DECLINES_RESULTS: &str = "case \"$1\" in refs/heads/*) \
    if git cat-file -e \"$3:result\" 2>/dev/null; then echo 'no results here' >&2; exit 1; fi;; esac";
const DONE: &str = "echo done >result; echo 'SET_STATE {\"state\":\"done\"}'";
/// Says that it is up, and waits for `$T/gate`; SIGTERM ends it.
const WAITS: &str =
    "echo work >work; trap 'echo term >\"$T/term\"; exit 9' TERM; echo $$ >\"$T/up\"; read x <\"$T/gate\"";

/// K12, K30, K45
#[test]
fn a_tick_moves_the_remotes_branch_and_nothing_of_the_users() {
    let net = Net::new(&[("build", DONE)]);
    let trigger = net.event("work", "build", "dwp-ticket: 7\n");
    let a = net.machine("a");
    let refs = || a.git(&["for-each-ref", "refs/heads", "refs/remotes", "refs/tags"]);
    let (before, config) = (refs(), std::fs::read(a.dir.join(".git/config")).unwrap());
    let done = a.tick(&["--json"]).expect(0);
    assert_eq!(done.json()["result"].as_str(), Some("advanced"), "{done:?}");
    assert_eq!(net.states("work"), ["done", "working", "build"]);
    assert_eq!(net.show("work", "result"), "done");
    for commit in ["work", "work~1"] {
        assert_eq!(net.trailer(commit, "dwp-source"), "git:origin");
        assert_eq!(net.trailer(commit, "dwp-trigger"), trigger);
    }
    assert_eq!(net.trailer("work~1", "dwp-ticket"), "7");
    let tracking = |line: &&str| !line.contains("refs/remotes/");
    let others = |refs: &str| refs.lines().filter(tracking).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(others(&refs()), others(&before));
    assert_eq!(std::fs::read(a.dir.join(".git/config")).unwrap(), config);
    assert_eq!(a.git(&["status", "--porcelain"]), "");
    assert!(!a.dir.join(".git/FETCH_HEAD").exists());
    assert_eq!(a.git(&["for-each-ref", "refs/aynig/run", "refs/aynig/attempts"]), "");
    a.tick(&["work"]).expect(0);
    net.git(&["fsck", "--strict", "--no-dangling"]);
}

/// Section 13
#[test]
fn the_remote_is_named_by_flag_configuration_or_the_head_itself() {
    let net = Net::new(&[("build", DONE), ("again", DONE)]);
    net.event("work", "build", "");
    let a = net.machine("a");
    // A local tick looks at local branches, and there is none.
    a.run(&["tick"]).expect(0);
    assert_eq!(net.states("work"), ["build"]);
    a.git(&["config", "aynig.remote", "origin"]);
    a.run(&["tick"]).expect(0);
    assert_eq!(net.states("work"), ["done", "working", "build"]);
    a.run(&["set-state", "again", "-b", "work"]).expect(0);
    assert_eq!(net.states("work")[0], "again");
    assert_eq!(a.git(&["for-each-ref", "refs/heads/work"]), "");
    // `.` is the repository itself.
    a.run(&["tick", "--remote", "."]).expect(0);
    assert_eq!(net.states("work")[0], "again");
    a.git(&["config", "--unset", "aynig.remote"]);
    a.tick(&[]).expect(0);
    // K30: a branch that was pulled says where it belongs.
    a.git(&["fetch", "-q"]);
    let head = a.git(&["rev-parse", "origin/work"]);
    let lease = a.git(&["rev-parse", "origin/work~1"]);
    a.git(&["branch", "work", &lease]);
    let report = a.run(&["tick", "work", "--json"]).expect(0).json();
    assert_eq!(report["result"].as_str(), Some("idle"), "judged by the remote's head: {report}");
    assert_eq!((a.git(&["rev-parse", "work"]), net.rev("work")), (lease, head));
    let unknown = a.run(&["tick", "--remote", "nowhere"]);
    assert!(
        unknown.code == Some(128) && unknown.stderr.contains("hint: git remote add nowhere"),
        "{unknown:?}"
    );
}

/// K33: a ref means the remote's, as just fetched.
#[test]
fn commands_come_from_the_remotes_ref() {
    let net = Net::new(&[("build", "echo old >which; echo 'SET_STATE {\"state\":\"done\"}'")]);
    net.life.config("aynig.commandsFrom", "refs/heads/main");
    net.event("work", "build", "");
    let a = net.machine("a");
    net.life.command("build", "echo new >which; echo 'SET_STATE {\"state\":\"done\"}'");
    net.life.git(&["commit", "-qam", "new"]);
    net.life.git(&["push", "-q", "origin", "main"]);
    a.tick(&["work"]).expect(0);
    assert_eq!(net.show("work", "which"), "new");
}

/// K11, K12: two runners on two machines, one lease.
#[test]
fn of_many_machines_one_takes_the_branch() {
    let net = Net::new(&[("build", &format!("echo x >>\"$T/runs\"; {DONE}"))]);
    let machines: Vec<_> = (0..6).map(|n| net.machine(&format!("m{n}"))).collect();
    for round in 0..3 {
        let branch = format!("work{round}");
        net.event(&branch, "build", "");
        let ticks: Vec<_> = machines.iter().map(|m| m.start_tick(&[&branch])).collect();
        let codes: Vec<_> = ticks.into_iter().map(|t| t.done().code.unwrap()).collect();
        assert!(codes.iter().all(|c| matches!(c, 0 | 3)), "{codes:?}");
        assert_eq!(net.states(&branch), ["done", "working", "build"]);
        assert_eq!(net.life.said("runs").lines().count(), round + 1);
    }
}

/// The reports of section 10: what happened has a name, an exit code and a command that mends it.
#[test]
fn each_way_to_fail_has_a_report_of_its_own() {
    let net = Net::new(&[("build", DONE)]);
    let a = net.machine("a");
    let fails = |net: &Net, args: &[&str], code: i32, said: &str| {
        net.event("work", "build", "");
        let done = a.tick(args);
        assert!(done.code == Some(code), "{said}: {done:?}");
        assert!(format!("{}{}", done.stdout, done.stderr).contains(said), "{said}: {done:?}");
        assert!(net.life.said("ran").is_empty());
    };
    // Another pusher was quicker: the hook stands for it.
    net.hook(
        "pre-receive",
        "unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
         git update-ref refs/heads/work \"$(git commit-tree -m other -p work 'work^{tree}')\"",
    );
    fails(&net, &["work"], 3, "hint: git aynig status --remote origin work");
    net.hook("pre-receive", "unset GIT_QUARANTINE_PATH; git update-ref -d refs/heads/work");
    fails(&net, &["work"], 128, "no such branch");
    net.hook("pre-receive", "echo 'main is frozen today' >&2; exit 1");
    fails(&net, &["work"], 2, "main is frozen today");
    std::fs::remove_file(net.origin().join("hooks/pre-receive")).unwrap();
    net.life.config("aynig.branches", "other/*");
    fails(&net, &["work"], 2, "aynig.branches");
    net.life.git(&["config", "--global", "--unset", "aynig.branches"]);
    let url = a.git(&["config", "remote.origin.url"]);
    // A connection that is refused, and an account that is.
    a.git(&["config", "remote.origin.url", "git://127.0.0.1:1/none"]);
    fails(&net, &["work"], 75, "could not be reached");
    a.git(&["config", "remote.origin.url", "ssh://nobody@127.0.0.1/none"]);
    a.git(&[
        "config",
        "core.sshCommand",
        "echo 'nobody@host: Permission denied (publickey).' >&2; exit 255 #",
    ]);
    fails(&net, &["work"], 75, "authentication failed");
    a.git(&["config", "remote.origin.url", &url]);
    a.tick(&["work"]).expect(0);
    assert_eq!(net.states("work")[0], "done");
}

/// K11, K31: the remote moved, and its answer was cut anywhere.
#[test]
fn an_answer_that_was_cut_is_no_verdict() {
    let net = Net::new(&[("build", &format!("echo x >>\"$T/runs\"; {DONE}"))]);
    let a = net.machine("a");
    let mut landed = 0;
    for (round, bytes) in [0, 4, 300, 450, 560, 640, 700, 780, 900].into_iter().enumerate() {
        // Of each push's answer only so much arrives; what is asked later is answered.
        let script = net.life.shared().join("cut");
        let cut = format!("#!/bin/sh\ngit-receive-pack \"$@\" | dd bs=1 count={bytes} 2>/dev/null\n");
        crate::support::write_program(&script, &cut);
        a.git(&["config", "remote.origin.receivepack", &format!("'{}'", script.display())]);
        let branch = format!("work{round}");
        net.event(&branch, "build", "");
        let report = a.tick(&[&branch, "--json", "--lease", "6s"]);
        let moved = net.states(&branch).len() > 1;
        let runs = net.life.said("runs").lines().count();
        let json = report.json();
        match json["result"].as_str() {
            Some("advanced") => {
                landed += 1;
                assert!(net.states(&branch)[0] == "done" && runs == round + 1, "{json}");
            }
            // An advertisement that is cut moves nothing.
            _ => assert!(!moved && json["result"] == "failed", "{bytes}: {json}"),
        }
        a.git(&["config", "--unset", "remote.origin.receivepack"]);
        a.tick(&[&branch]);
        assert_eq!(net.states(&branch), ["done", "working", "build"], "{bytes}");
        assert_eq!(net.life.said("runs").lines().count(), round + 1);
    }
    assert!(landed >= 2, "{landed} answers were cut late enough to count");
}

/// K31: of a push or a look that fails once no user hears; the outcome, `stalled` and `retry` get there.
#[test]
fn what_fails_once_is_tried_again() {
    let net =
        Net::new(&[("build", &format!(": >\"$T/unsent\"; {DONE}")), ("fail", ": >\"$T/unread\"; exit 1")]);
    let a = net.machine("a");
    let flag = |name: &str| net.life.shared().join(name);
    for (key, program, name) in
        [("receivepack", "git-receive-pack", "unsent"), ("uploadpack", "git-upload-pack", "unread")]
    {
        let once = format!(
            "#!/bin/sh\nrm '{}' 2>/dev/null && exit 1\nexec {program} \"$@\"\n",
            flag(name).display()
        );
        crate::support::write_program(&flag(key), &once);
        a.git(&["config", &format!("remote.origin.{key}"), &format!("'{}'", flag(key).display())]);
    }
    net.event("work", "build", "");
    a.tick(&["work"]).expect(0);
    assert_eq!(
        (net.states("work"), flag("unsent").exists()),
        (vec!["done".into(), "working".into(), "build".into()], false)
    );
    net.event("other", "fail", "");
    a.tick(&["other"]).expect(1);
    assert_eq!(
        (net.states("other"), flag("unread").exists()),
        (vec!["stalled".into(), "working".into(), "fail".into()], false)
    );
    std::fs::write(flag("unsent"), "").unwrap();
    a.run(&["retry", "--remote", "origin", "other"]).expect(0);
    assert_eq!((net.states("other")[0].as_str(), flag("unsent").exists()), ("fail", false));
}

/// K31: what was done is kept until the remote has it.
#[test]
fn an_outcome_that_the_remote_never_got_is_kept_and_landed_by_retry() {
    let net = Net::new(&[(
        "build",
        "echo x >>\"$T/runs\"; echo built >out; mv \"$ORIGIN\" \"$ORIGIN.away\"; echo 'SET_STATE {\"state\":\"done\"}'",
    )]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let mut tick = a.aynig(&["tick", "--remote", "origin", "--lease", "4s", "--json", "work"]);
    let done = crate::support::life::done(tick.env("ORIGIN", net.origin()).output().unwrap());
    assert_eq!((done.code, done.json()["result"].as_str()), (Some(75), Some("failed")), "{done:?}");
    assert!(done.json()["notes"].to_string().contains("refs/aynig/attempts/"), "{done:?}");
    let away = net.origin().with_extension("git.away");
    std::fs::rename(away, net.origin()).unwrap();
    assert_eq!(net.states("work"), ["working", "build"]);
    // No user is told to cancel it meanwhile: its outcome would be no branch's.
    for verb in ["status", "tick"] {
        let done = a.run(&[verb, "--remote", "origin", "work"]);
        let said = done.stdout + &done.stderr;
        let words = ["what it had done is kept here", "git aynig retry --remote origin work"];
        assert!(words.iter().all(|words| said.contains(words)) && !said.contains("cancel"), "{verb}: {said}");
    }
    // With the lease over, any machine recovers it; the machine that has the outcome lands it.
    eventually("expiry", || (a.tick(&["--grace", "0", "work"]).code == Some(1)).then_some(()));
    assert_eq!(net.states("work")[0], "stalled");
    let b = net.machine("b");
    b.run(&["retry", "--remote", "origin", "work"]).expect(0);
    assert_eq!((net.states("work")[0].as_str(), net.show("work", "out")), ("done", "built".to_owned()));
    assert_eq!(net.life.said("runs"), "x\n");
}

/// A remote whose hook refuses what the command made still takes the news of it.
#[test]
fn an_outcome_that_is_declined_ends_stalled_and_is_kept() {
    let net = Net::new(&[("build", DONE)]);
    net.hook("update", DECLINES_RESULTS);
    net.event("work", "build", "");
    let a = net.machine("a");
    let report = a.tick(&["--json", "work"]).expect(1).json();
    assert!(report["why"].as_str().unwrap().contains("declined the outcome"), "{report}");
    assert_eq!(net.states("work"), ["stalled", "working", "build"]);
    let attempt = report["attempt"].as_str().unwrap();
    assert_eq!(net.show(attempt, "result"), "done", "published beside the branch");
    std::fs::remove_file(net.origin().join("hooks/update")).unwrap();
    net.machine("b").run(&["retry", "--remote", "origin", "work"]).expect(0);
    assert_eq!(net.show("work", "result"), "done");
}

/// K11, K43: a lock in a remote that is a path is seen there. It may pass; it is no refusal, and nothing is claimed.
#[test]
fn a_lock_in_a_remote_that_is_a_path_is_no_refusal() {
    let net = Net::new(&[("build", DONE)]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let lock = net.origin().join("refs/heads/work.lock");
    std::fs::write(&lock, "").unwrap();
    let said = a.tick(&["--json", "work"]).expect(75).json();
    assert!(said["error"].as_str().unwrap().contains("it was busy"), "{said}");
    let pushed = a.run(&["set-state", "build", "--remote", "origin", "-b", "work"]).expect(75);
    assert!(pushed.stderr.contains("it was busy"), "{pushed:?}");
    assert!(pushed.stderr.contains("\nhint: git -c aynig.remote=origin aynig doctor\n"), "{pushed:?}");
    assert_eq!(net.states("work"), ["build"]);
    std::fs::remove_file(&lock).unwrap();
    a.tick(&["work"]).expect(0);
    assert_eq!(net.states("work"), ["done", "working", "build"]);
}

/// K26, K31: what can't be kept here lands all the same; where it does not it is still in its slot.
#[test]
fn an_outcome_that_cannot_be_kept_here_lands() {
    let locked = "c=$(git rev-parse --path-format=absolute --git-common-dir)/refs/aynig/attempts\n\
         mkdir -p \"$c\" && : >\"$c/$AYNIG_RUN_ID.lock\"\n";
    let net = Net::new(&[("build", &format!("{locked}{DONE}"))]);
    let a = net.machine("a");
    net.event("work", "build", "");
    let done = a.tick(&["work"]).expect(0);
    assert_eq!(net.states("work"), ["done", "working", "build"]);
    assert_eq!((net.show("work", "result").as_str(), done.stderr.as_str()), ("done", ""));
    // Declined, and not to be kept.
    net.hook("update", DECLINES_RESULTS);
    net.event("other", "build", "");
    let done = a.tick(&["other"]).expect(1);
    assert_eq!(net.states("other"), ["stalled", "working", "build"]);
    assert!(done.stderr.contains("is still in its worktree"), "{done:?}");
    let attempts = || a.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts"]);
    assert_eq!(attempts(), "");
    for entry in std::fs::read_dir(a.dir.join(".git/refs/aynig/attempts")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    a.run(&["gc"]).expect(0);
    assert_eq!(a.git(&["show", &format!("{}:result", attempts())]), "done");
}

/// K18: felt by the runner wherever it is.
#[test]
fn a_run_on_another_machine_is_canceled_and_retried() {
    let net = Net::new(&[("build", WAITS)]);
    net.event("work", "build", "");
    let (a, b) = (net.machine("a"), net.machine("b"));
    let _gate = net.life.gate("gate");
    let tick = a.start_tick(&["--lease", "10s", "--json", "work"]);
    net.life.hear("up");
    b.run(&["cancel", "--remote", "origin", "work"]).expect(0);
    net.life.hear("term");
    let report = tick.done().expect(3).json();
    assert_eq!(report["result"].as_str(), Some("fenced"));
    assert_eq!(net.states("work"), ["canceled", "working", "build"]);
    assert_eq!(a.git(&["show", &format!("{}:work", report["attempt"].as_str().unwrap())]), "work");
    b.run(&["set-state", "blocked", "--remote", "origin", "-b", "work"]).expect(0);
    b.run(&["status", "--remote", "origin", "work"]).expect(0);
}

/// K18, K24: a runner that was stopped past its lease.
#[test]
fn a_runner_that_slept_past_its_lease_writes_nothing() {
    let net = Net::new(&[("build", WAITS)]);
    net.event("work", "build", "");
    let (a, b) = (net.machine("a"), net.machine("b"));
    let _gate = net.life.gate("gate");
    let tick = a.start_tick(&["--lease", "4s", "--json", "work"]);
    let pid = net.life.hear("up");
    tick.signal(Signal::SIGSTOP);
    let recovered = || b.tick(&["--grace", "0", "--json", "work"]).json()["recovered"].as_array().cloned();
    eventually("recovery", || recovered().filter(|r| !r.is_empty()));
    let head = net.rev("work");
    tick.signal(Signal::SIGCONT);
    let report = tick.done().expect(3).json();
    assert_eq!(report["result"].as_str(), Some("fenced"), "{report}");
    eventually("the command is gone", || (!lives(&pid)).then_some(()));
    assert_eq!(
        (net.rev("work"), net.states("work")),
        (head, vec!["stalled".into(), "working".into(), "build".into()])
    );
    assert_eq!(a.git(&["show", &format!("{}:work", report["attempt"].as_str().unwrap())]), "work");
}

/// K18
#[test]
fn a_lease_on_a_remote_is_renewed_and_lost() {
    let net = Net::new(&[("build", &format!("{WAITS}; echo 'SET_STATE {{\"state\":\"done\"}}'"))]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let gate = net.life.gate("gate");
    let tick = a.start_tick(&["--lease", "10s", "--json", "work"]);
    net.life.hear("up");
    eventually("two renewals", || (net.states("work").len() >= 4).then_some(()));
    net.machine("b").tick(&["work"]).expect(3);
    let other = net.git(&["commit-tree", "-m", "mine", "-p", "work", "work^{tree}"]);
    net.git(&["update-ref", "refs/heads/work", &other]);
    let report = tick.done().expect(3).json();
    assert_eq!(report["result"].as_str(), Some("fenced"));
    assert_eq!(net.rev("work"), other);
    drop(gate);
}

/// K22 on a remote, and the wake of other branches there.
#[test]
fn a_command_sets_the_state_of_its_remote_branch_itself() {
    let net = Net::new(&[("build", "echo x >made; git aynig set-state done -m 'by hand' && exit 3")]);
    net.event("work", "build", "");
    let a = net.machine("a");
    let report = a.tick(&["--json", "work"]).expect(0).json();
    assert_eq!(report["result"].as_str(), Some("own"), "{report}");
    assert_eq!(net.states("work"), ["done", "working", "build"]);
    assert_eq!(net.show("work", "made"), "x");
}

/// `set-state --push`
#[test]
fn an_event_is_pushed_on_request_and_never_over_others() {
    let net = Net::new(&[("build", DONE)]);
    let a = net.machine("a");
    a.run(&["set-state", "build", "-b", "work", "--push"]).expect(0);
    assert_eq!(net.rev("work"), a.git(&["rev-parse", "work"]));
    let other = net.git(&["commit-tree", "-m", "mine", "-p", "work", "work^{tree}"]);
    net.git(&["update-ref", "refs/heads/work", &other]);
    let refused = a.run(&["set-state", "build", "-b", "work", "--push"]);
    assert!(refused.code == Some(3) && refused.stderr.contains("hint: git pull"), "{refused:?}");
    assert_eq!(net.rev("work"), other);
}

/// K39: who pushes an event hears what the other side's hook says, as after `git push`.
#[test]
fn what_the_other_side_says_of_an_event_is_shown() {
    let net = Net::new(&[("build", DONE)]);
    let a = net.machine("a");
    net.hook("post-receive", "echo 'aynig: build queued'; printf 'a \\033[31mred\\033[0m hint\\n' >&2");
    let said = a.run(&["set-state", "build", "-b", "work", "--push"]).expect(0);
    assert!(said.stderr.contains("remote: aynig: build queued\n"), "{said:?}");
    assert!(said.stderr.contains("red") && !said.stderr.contains('\u{1b}'), "{said:?}");
    let said = a.run(&["-q", "set-state", "build", "-b", "more", "--push"]).expect(0);
    assert_eq!(said.stderr, "");
}

/// K39: why the other side refuses an event stands as its hook wrote it, and not in one line with the error.
#[test]
fn why_the_other_side_refuses_an_event_is_shown_line_by_line() {
    let net = Net::new(&[("build", DONE)]);
    let a = net.machine("a");
    net.hook("pre-receive", "echo 'line one'; echo 'line two' >&2; echo; echo 'see the wiki'; exit 1");
    for quiet in [&[][..], &["-q"]] {
        let said = a.run(&[quiet, &["set-state", "build", "-b", "work", "--push"]].concat());
        assert!(said.code.is_some_and(|code| code != 0), "{said:?}");
        let lines: Vec<&str> = said.stderr.lines().collect();
        let theirs = ["remote: line one", "remote: line two", "remote: see the wiki"];
        assert_eq!(lines[..3], theirs, "{said:?}");
        assert!(lines[3].starts_with("error: 'work' is written here, and not on 'origin'"), "{said:?}");
        assert!(lines[3].contains("pre-receive hook declined") && !lines[3].contains("remote: "), "{said:?}");
    }
}

/// K11: a push whose answer never came may move the remote later. No command says that it failed.
#[test]
fn a_push_on_request_without_an_answer_is_neither_done_nor_failed() {
    let net = Net::new(&[("build", DONE)]);
    let a = net.machine("a");
    let mut gate = net.life.gate("gate");
    // The pusher is gone before the remote has moved, and the remote goes on when it is let.
    let gone = "p=$PPID; all=; while p=$(ps -o ppid= -p $p | tr -d ' '); do n=$(cat /proc/$p/comm); \
                case $n in git|sh) all=\"$all $p\" ;; *) break ;; esac; done; kill -9 $all; read x <\"$T/gate\"";
    net.hook("pre-receive", gone);
    let said = a.run(&["set-state", "build", "-b", "work", "--push"]).expect(75).stderr;
    let id = a.git(&["rev-parse", "work"]);
    assert!(said.contains(&format!("whether 'origin' has {} is not known", &id[..10])), "{said}");
    assert!(
        said.contains("hint: git ls-remote origin refs/heads/work\nhint: git push origin work\n"),
        "{said}"
    );
    gate.open();
    eventually("it has it after all", || {
        net.git(&["for-each-ref", "refs/heads/work"]).contains(&id).then_some(())
    });
    // What was never sent is said to be here alone.
    std::fs::remove_dir_all(net.origin()).unwrap();
    let said = a.run(&["set-state", "other", "-b", "work", "--push"]).expect(75).stderr;
    assert!(said.contains("'work' is written here, and not on 'origin'"), "{said}");
    assert!(said.contains("hint: git push origin work"), "{said}");
}

/// Lets the remote leave objects out of a clone, and give them later.
fn gives_parts(net: &Net) {
    for key in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
        net.git(&["config", key, "true"]);
    }
}

/// K37
#[test]
fn shallow_clones_and_other_formats_share_a_remote() {
    let net = Net::new(&[("build", DONE)]);
    gives_parts(&net);
    for (name, how) in
        [("shallow", vec!["--depth=1"]), ("bare", vec!["--bare"]), ("partial", vec!["--filter=blob:none"])]
    {
        net.event(name, "build", "");
        let machine = net.clone_as(name, &how);
        machine.tick(&[name]).expect(0);
        assert_eq!(net.states(name), ["done", "working", "build"], "{name}");
    }
    if net.life.repo.try_git(&["init", "-q", "--ref-format=reftable", "../probe"]).status.success() {
        net.event("reftable", "build", "");
        net.clone_as("reftable", &["--ref-format=reftable"]).tick(&["reftable"]).expect(0);
        assert_eq!(net.states("reftable"), ["done", "working", "build"]);
    }
}

/// K17: a tick in a partial clone that waits for an object is ended by a signal, and claims nothing.
#[test]
fn a_tick_that_waits_for_a_missing_object_ends_at_a_signal() {
    let net = Net::new(&[("build", DONE)]);
    gives_parts(&net);
    let machine = net.clone_as("partial", &["--filter=blob:none", "--no-checkout"]);
    let marker = net.life.shared().join("asked");
    let slow = net.life.shared().join("slow");
    std::fs::write(&slow, format!("#!/bin/sh\n: >'{}'\nexec sleep 60\n", marker.display())).unwrap();
    std::fs::set_permissions(&slow, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    machine.git(&["config", "remote.origin.uploadpack", &format!("'{}'", slow.display())]);
    let event = machine.git(&["commit-tree", "-p", "HEAD", "-m", "x\n\ndwp-state: build", "HEAD^{tree}"]);
    machine.git(&["update-ref", "refs/heads/work", event.trim_end()]);
    let began = std::time::Instant::now();
    let tick = crate::support::life::Running::of(machine.aynig(&["tick", "--remote", ".", "work"]));
    crate::support::life::eventually("it asks the remote", || marker.exists().then_some(()));
    tick.signal(nix::sys::signal::Signal::SIGTERM);
    tick.signal(nix::sys::signal::Signal::SIGINT);
    std::thread::sleep(std::time::Duration::from_millis(300));
    tick.signal(nix::sys::signal::Signal::SIGINT);
    let said = tick.done();
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{said:?}");
    assert_eq!(machine.git(&["rev-parse", "work"]).trim_end(), event.trim_end(), "{said:?}");
}

/// K7: clocks of several machines differ.
#[test]
fn a_remote_lease_has_a_grace() {
    let net = Net::new(&[("build", DONE)]);
    net.event("work", "build", "");
    let life: &Life = &net.life;
    life.git(&["fetch", "-q", "origin", "work:work"]);
    life.lease("work", "build", "r1", 60, 70);
    life.git(&["push", "-q", "origin", "work"]);
    let a = net.machine("a");
    let report = a.tick(&["--json", "work"]).expect(3).json();
    assert_eq!(report["result"].as_str(), Some("leased"));
    let left = report["until"].as_u64().unwrap().saturating_sub(now());
    assert!((15..=20).contains(&left), "{left}");
    a.tick(&["--grace", "5s", "work"]).expect(1);
    assert_eq!(net.states("work")[0], "stalled");
}

/// K13: machines with different roles share one remote.
#[test]
fn with_role_only_each_machine_takes_what_its_role_has_commands_for() {
    let net = Net::new(&[("plan", "echo plain >by; echo 'SET_STATE {\"state\":\"ship\"}'")]);
    for (role, state) in [("author", "plan"), ("release", "ship")] {
        let path = format!(".aynig/roles/{role}/command/{state}");
        let next = if state == "plan" { "ship" } else { "done" };
        net.life.write(
            &path,
            &format!("#!/bin/sh\necho {role} >>by\necho 'SET_STATE {{\"state\":\"{next}\"}}'\n"),
        );
        std::fs::set_permissions(net.life.path(&path), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    net.life.git(&["add", "-A"]);
    net.life.git(&["commit", "-qm", "roles"]);
    net.life.git(&["push", "-q", "origin", "main"]);
    net.event("work", "plan", "");
    let (author, release) = (net.machine("author"), net.machine("release"));
    for (machine, role) in [(&author, "author"), (&release, "release")] {
        machine.git(&["config", "aynig.role", role]);
        machine.git(&["config", "aynig.roleOnly", "true"]);
    }
    // The plain command is no machine's where every machine has a role of its own.
    release.tick(&[]).expect(0);
    assert_eq!(net.states("work"), ["plan"]);
    // It is where it should be, so nothing is said of a working tree or of a commit.
    let said = release.tick(&["work"]).expect(0);
    assert!(
        said.stdout.contains("state 'plan' has no command") && !said.stderr.contains("command/plan"),
        "{said:?}"
    );
    author.tick(&["--chain"]).expect(0);
    assert_eq!(net.states("work")[0], "ship");
    release.tick(&[]).expect(0);
    assert_eq!(
        (net.states("work")[0].as_str(), net.show("work", "by")),
        ("done", "author\nrelease".to_owned())
    );
}

/// K29 on a remote: the command's own commits are brought there, heartbeat and end.
#[test]
fn a_command_of_the_aynig_dialect_advances_its_remote_branch() {
    let commands = [
        (
            "fetch",
            "echo part >part; git add part; git commit -qm part; git aynig set-working; read x <\"$T/gate\"
             git commit -q --allow-empty -m 'all there' -m 'aynig-state: done'",
        ),
        ("dies", "kill -9 $$"),
    ];
    let net = Net::new(&commands);
    let event = |branch: &str, state: &str| {
        let id = net.life.event_at(branch, &format!("go\n\naynig-state: {state}\n"), None);
        net.life.git(&["push", "-q", "origin", &format!("{id}:refs/heads/{branch}")]);
    };
    let states = |branch: &str| {
        let format = "--format=%(trailers:key=aynig-state,valueonly,separator=)";
        let all = net.git(&["log", "--first-parent", format, branch]);
        all.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    event("work", "fetch");
    let a = net.machine("a");
    let mut gate = net.life.gate("gate");
    let tick = a.start_tick(&["--lease", "10s", "--json", "work"]);
    eventually("the heartbeat is there", || (states("work").len() == 3).then_some(()));
    assert_eq!(net.show("work", "part"), "part");
    gate.open();
    assert_eq!(tick.done().expect(0).json()["result"].as_str(), Some("own"));
    assert_eq!(states("work"), ["done", "working", "working", "fetch"]);
    event("lost", "dies");
    a.tick(&["--lease", "4s", "lost"]).expect(1);
    assert_eq!(states("lost"), ["working", "dies"]);
    let recovered = || a.tick(&["--grace", "0", "lost"]).code == Some(1);
    eventually("recovered", || recovered().then_some(()));
    assert_eq!(states("lost")[0], "stalled");
}

/// K12: what Git LFS keeps beside Git is there before the commit that points to it.
#[test]
fn an_outcome_that_touches_lfs_paths_brings_their_objects() {
    let makes = "echo '*.bin filter=lfs diff=lfs merge=lfs -text' >.gitattributes
        mkdir -p d; echo big >d/a.bin; echo plain >plain; echo 'SET_STATE {\"state\":\"done\"}'";
    let net = Net::new(&[("build", makes)]);
    if !net.life.repo.try_git(&["lfs", "version"]).status.success() {
        return crate::support::skipped("git-lfs is not installed");
    }
    net.life.git(&["lfs", "install", "--skip-repo"]);
    net.event("work", "build", "");
    let a = net.machine("a");
    a.tick(&["work"]).expect(0);
    assert_eq!(net.states("work"), ["done", "working", "build"]);
    assert!(net.show("work", "d/a.bin").starts_with("version https://git-lfs"));
    let pointer = net.show("work", "d/a.bin");
    let there = |id: &str| net.origin().join("lfs/objects").join(&id[..2]).join(&id[2..4]).join(id);
    let named = pointer.lines().find_map(|line| line.strip_prefix("oid sha256:")).unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(there(&named)).unwrap(), "big\n");
    // Where they cannot be brought, the commit that points to them is not.
    std::fs::remove_dir_all(net.origin().join("lfs")).unwrap();
    std::fs::write(net.origin().join("lfs"), "in the way").unwrap();
    net.event("stuck", "build", "");
    let b = net.machine("b");
    let said = b.tick(&["--lease", "4s", "--json", "stuck"]);
    assert_eq!(net.states("stuck"), ["working", "build"], "{said:?}");
    let (report, kept) =
        (said.json(), b.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts"]));
    assert!(report["error"].as_str().is_some_and(|e| e.contains("cannot send Git LFS objects")), "{report}");
    assert!(report["notes"][0].as_str().is_some_and(|note| note.contains(&kept)), "{report} {kept}");
    assert!(b.git(&["show", &format!("{kept}:d/a.bin")]).starts_with("version https://git-lfs"));
}

/// K30: what is read and what is pushed to have to be one repository, which only a person can know.
#[test]
fn a_remote_with_two_addresses_is_named() {
    let net = Net::new(&[("build", DONE)]);
    let a = net.machine("a");
    a.git(&["config", "aynig.remote", "origin"]);
    assert!(!a.run(&["doctor"]).stdout.contains("pushed to at"), "one address");
    a.git(&["remote", "set-url", "--push", "origin", "../other.git"]);
    let said = a.run(&["doctor"]).stdout;
    assert!(said.contains("is pushed to at ../other.git: both have to lead to one repository"), "{said}");
}
