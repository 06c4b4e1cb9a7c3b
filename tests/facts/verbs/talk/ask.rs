//! `ask`, `answer`, `approve`, `reject`: who asks, about what, and whose answer counts.

use super::DONE;
use crate::support::Repo;
use crate::support::life::{Life, Running, eventually};
use aynig::protocol::inbox::answer_id;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const ASK: &str = "echo new >made; echo $$ >\"$T/pid\"\n\
                   if choice=$(git aynig ask 'Deploy?' --choice yes --choice no --wait $OPTIONS); then\n\
                   echo \"$choice\" >\"$T/choice\"\nelse echo \"code $?\" >\"$T/choice\"; fi\n";

/// A life whose command asks and waits.
fn asking() -> Life {
    Life::new(&[("build", &format!("{ASK}{DONE}"))])
}

/// K49: the question's parent is the work as it is now, and nothing of the slot moves for it.
#[test]
fn a_question_is_about_the_work_as_it_is() {
    for kind in [Repo::build(), Repo::build().sha256(), Repo::build().reftable()] {
        let Some(repo) = kind.create() else { continue };
        drop(repo);
        let life = Life::of(kind, &[("build", &format!("{ASK}{DONE}"))]);
        life.event("work", "build", "");
        let tick = life.start_tick(&["work"]);
        let id = life.question();
        let question = format!("refs/aynig/asked/{id}");
        assert_eq!(life.show(&question, "made"), "new");
        assert_eq!(life.show(&format!("{question}^"), "made"), "new");
        assert_eq!(life.rev(&format!("{question}^^")), life.rev("refs/heads/work"));
        let trailers = life.git(&["log", "-1", "--format=%(trailers:only,unfold)", &question]);
        let run = life.trailer("refs/heads/work", "dwp-run-id").unwrap();
        let want = format!(
            "dwp-question: {id}\ndwp-branch: work\ndwp-run-id: {run}\ndwp-choice: yes\ndwp-choice: no"
        );
        assert_eq!(trailers.trim_end(), want);
        let snapshot = life.rev(&format!("{question}^"));
        let said = life.run(&["answer", "work", "yes", "-m", "Go.", "--seen", &snapshot]).expect(0).stdout;
        assert_eq!(said, format!("work: answered 'yes' to question {id}\n"));
        tick.done().expect(0);
        assert_eq!(life.said("choice"), "yes\n");
        assert_eq!(
            (life.said_in("asked").len(), life.said_in("inbox").len(), life.said_in("heard").len()),
            (0, 0, 1)
        );
        // What was asked about is what the run went on from.
        assert_eq!(life.states("work")[0], "done");
        assert_eq!(life.files("refs/heads/work"), ["dir/other", "file", "made"]);
        life.repo.assert_sound();
    }
}

/// K49a: one wins, the others are told by whom, and none is told that it won who did not.
#[test]
fn of_many_who_answer_at_once_one_wins() {
    let life = asking();
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    let id = life.question();
    let answers: Vec<Running> =
        (0..6).map(|n| life.start(&["answer", &id, if n % 2 == 0 { "yes" } else { "no" }])).collect();
    let ended: Vec<_> = answers.into_iter().map(Running::done).collect();
    let won: Vec<_> = ended.iter().filter(|done| done.code == Some(0)).collect();
    assert_eq!(won.len(), 1, "{ended:?}");
    tick.done().expect(0);
    let choice = life.said("choice");
    assert!(won[0].stdout.contains(&format!("'{}'", choice.trim())), "{won:?} {choice}");
    for lost in ended.iter().filter(|done| done.code != Some(0)) {
        assert_eq!(lost.code, Some(3), "{lost:?}");
        let told = format!("question {id} was answered by person ada@example.com: {}", choice.trim());
        assert!(lost.stderr.contains(&told), "{lost:?}");
    }
    // Later, too.
    life.run(&["answer", &id, "no"]).expect(3);
}

/// K49a: what was not offered, what was not looked at, and what no run asks.
#[test]
fn an_answer_that_does_not_fit_is_refused() {
    let life = asking();
    life.run(&["answer", "main", "yes"]).expect(128);
    life.run(&["answer", "01890000-0000-7000-8000-000000000001", "yes"]).expect(128);
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    life.question();
    let said = life.run(&["answer", "work", "maybe"]).expect(2).stderr;
    assert!(said.contains("'maybe' is no answer that is offered: 'yes', 'no'"), "{said}");
    assert!(said.contains("hint: git aynig answer work <choice>\n"), "{said}");
    // What is shown to who answers is pasted as it stands, and answers nothing.
    let shown = life.run(&["status", "--waiting"]).expect(0).stdout;
    let call = shown.lines().find_map(|line| line.split_once("'Deploy?': ")).unwrap().1;
    let pasted = life.repo.command("sh").args(["-c", &format!("{call}\n")]).output().unwrap();
    assert!(call.starts_with("git aynig answer work <yes|no>") && !pasted.status.success(), "{pasted:?}");
    let said = life.run(&["answer", "work", "yes", "--seen", "main"]).expect(2).stderr;
    assert!(said.contains("is not about") && said.contains("hint: git show refs/aynig/asked/"), "{said}");
    assert_eq!(life.said_in("asked").len(), 1);
    life.run(&["reject", "work"]).expect(0);
    tick.done().expect(0);
    assert_eq!(life.said("choice"), "no\n");
}

/// K49b: a head whose question is gone is given another state, as `answer` finds none
#[test]
fn a_question_that_is_gone_is_not_offered() {
    let script = "id=$(git aynig ask Which? --choice yes)\n\
                  git aynig set-state --emit asked --trailer \"dwp-question: $id\" --trailer 'dwp-accepts: answer=build'\n";
    let life = Life::new(&[("build", script)]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert!(life.run(&["status", "--waiting"]).expect(0).stdout.contains("git aynig answer work <yes>"));
    let question = &life.said_in("asked")[0];
    life.git(&["update-ref", "-d", &format!("refs/aynig/asked/{question}")]);
    let shown = life.run(&["status", "--waiting"]).expect(0).stdout;
    assert!(shown.contains("; git aynig set-state <state> -b work") && !shown.contains("answer"), "{shown}");
}

/// K49a: an older snapshot is not what the run asks about now.
#[test]
fn a_look_at_an_older_question_answers_no_new_one() {
    let script = "echo one >made\ngit aynig ask first --choice yes >\"$T/first\"\necho two >made\n\
                  git aynig ask second --choice yes --wait >\"$T/choice\"\n";
    let life = Life::new(&[("build", &format!("{script}{DONE}"))]);
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    eventually("two questions", || (life.said_in("asked").len() == 2).then_some(()));
    let first = life.said("first").trim().to_owned();
    let older = life.rev(&format!("refs/aynig/asked/{first}^"));
    let said = life.run(&["answer", "work", "yes"]).expect(2).stderr;
    assert!(said.contains("'work' asks several questions"), "{said}");
    let second = life.said_in("asked").into_iter().find(|id| *id != first).unwrap();
    life.run(&["answer", &second, "yes", "--seen", &older]).expect(2);
    life.run(&["answer", &second, "yes", "--seen", &format!("refs/aynig/asked/{second}")]).expect(0);
    tick.done().expect(0);
    // The other one was its run's, which is over: no process waits for it.
    let said = life.run(&["approve", &first]).expect(128).stderr;
    assert!(said.contains("no branch waits for an answer"), "{said}");
    life.run(&["answer", "work", "yes"]).expect(128);
}

/// A command that asks, and declares the state in which its branch waits.
const WAITS: &str = "id=$(git aynig ask Which? --choice left --choice right --json | \
                     sed 's/.*\"id\":\"\\([^\"]*\\).*/\\1/')\n\
                     echo \"SET_STATE {\\\"state\\\":\\\"waiting\\\",\\\"trailers\\\":[\\\"dwp-question: $id\\\",\
                     \\\"dwp-accepts: answer=go\\\"]}\"";

/// K49a: an answer is one to the words that were read, not to whatever has that question's id by now.
#[test]
fn an_answer_is_not_moved_to_other_words_of_the_same_question() {
    let life = Life::new(&[("build", WAITS)]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    let question = format!("refs/aynig/asked/{}", life.question());
    let asked = life.rev(&question);
    life.run(&["answer", "work", "left", "--no-tick"]).expect(0);
    let [answer] = &life.said_in("inbox")[..] else { panic!() };
    let answer = format!("refs/aynig/inbox/{answer}");
    assert_eq!(life.trailer(&answer, "dwp-seen"), Some(asked.clone()));
    let other = life.body(&asked).replace("Which?", "Which one is to be deleted?");
    let other = life.git(&["commit-tree", "-p", &format!("{asked}^"), "-m", &other, "main^{tree}"]);
    life.git(&["update-ref", &question, other.trim()]);
    let (_, report) = life.report(&["work"]);
    assert_eq!(life.state("work"), "waiting", "{report}");
    assert!(report.to_string().contains("it answers another question"), "{report}");
    // What was moved there keeps no answer out, and what answers these words is heard.
    life.run(&["answer", "work", "right"]).expect(0);
    life.tick(&["work"]);
    assert_eq!(life.trailer("refs/heads/work^2", "dwp-choice").as_deref(), Some("right"));
}

/// K49: a head that waits for its answer, as its run declared.
#[test]
fn a_head_waits_for_the_answer_of_the_question_that_it_names() {
    let life = Life::new(&[("build", WAITS)]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    let id = life.question();
    assert_eq!(life.trailer("refs/heads/work", "dwp-question"), Some(id.clone()));
    life.run(&["approve", "work"]).expect(2);
    let waiting = life.run(&["status", "--waiting"]).expect(0).stdout;
    assert!(waiting.contains("; it asks 'Which?': git aynig answer work <left|right>"), "{waiting}");
    // The head may be what was looked at.
    life.run(&["answer", "work", "left", "--seen", "work", "--no-tick"]).expect(0);
    assert_eq!((life.said_in("asked").len(), life.said_in("inbox").len()), (0, 1));
    let said = life.run(&["answer", "work", "right"]).expect(3).stderr;
    assert!(said.contains("was answered by person ada@example.com: left"), "{said}");
}

/// K49: however a wait ends, its question goes.
#[test]
fn a_wait_that_ends_without_an_answer_takes_its_question_along() {
    let life = asking();
    life.event("work", "build", "");
    let mut tick = life.aynig(&["tick", "work"]);
    let done = crate::support::life::done(tick.env("OPTIONS", "--timeout 1s").output().unwrap());
    done.expect(0);
    assert_eq!((life.said("choice").as_str(), life.said_in("asked").len()), ("code 75\n", 0));
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    life.question();
    life.run(&["cancel", "work"]).expect(0);
    tick.done().expect(3);
    assert_eq!(life.said_in("asked"), Vec::<String>::new());
    // Outside of a run there is no command that could wait.
    life.run(&["ask", "Really?", "--wait"]).expect(128);
    life.run(&["ask", "Really?"]).expect(128);
}

/// K49a: what stands in an answer's place and is none does not keep the answer out.
#[test]
fn a_forged_answer_is_none() {
    let life = asking();
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    let id = life.question();
    life.run(&["answer", "work", "yes", "--no-tick"]).expect(0);
    tick.done().expect(0);
    let answer_to = |id: &str| answer_id(id.parse().unwrap()).to_string();
    assert_eq!(life.said_in("heard"), [answer_to(&id)]);
    // The same place for the next question, taken by what is no answer: by its shape, and by what it answers.
    let forged = [life.rev("main"), life.rev(&format!("refs/aynig/heard/{}", answer_to(&id)))];
    for forged in forged {
        std::fs::remove_file(life.shared().join("choice")).unwrap();
        life.event("work", "build", "");
        let tick = life.start_tick(&["work"]);
        let next = life.question();
        life.git(&["update-ref", &format!("refs/aynig/inbox/work/answer/{}", answer_to(&next)), &forged]);
        life.run(&["answer", "work", "no"]).expect(0);
        tick.done().expect(0);
        assert_eq!(life.said("choice"), "no\n");
    }
    assert_eq!(life.said_in("heard").len(), 3);
}

/// K49: who waits gives its job to others, and keeps its slot and its lease.
#[test]
fn a_run_that_waits_for_an_answer_gives_its_job_back() {
    let life = Life::new(&[("build", &format!("{ASK}{DONE}")), ("quick", DONE)]);
    life.config("aynig.jobs", "1");
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    life.question();
    let asking =
        life.repo.git_dir().join("aynig/runs").join(life.trailer("refs/heads/work", "dwp-run-id").unwrap());
    eventually("it waits", || asking.join("asking").exists().then_some(()));
    let waiting = life.run(&["status", "--waiting"]).expect(0).stdout;
    assert!(waiting.contains("; it asks 'Deploy?': git aynig answer work <yes|no> (for "), "{waiting}");
    // A user who looks at what runs is told too, and programs what people are.
    let running = life.run(&["status", "work"]).expect(0).stdout;
    assert!(running.contains("; it asks 'Deploy?': git aynig answer work <yes|no>"), "{running}");
    let object = &life.run(&["status", "--waiting", "--json"]).expect(0).objects("aynig.status/1")[0];
    let asked = &object["questions"][0];
    assert_eq!(
        (&asked["id"], &asked["branch"], &asked["text"], &asked["choices"], &asked["unsigned"]),
        (
            &life.said_in("asked")[0].as_str().into(),
            &"work".into(),
            &"Deploy?".into(),
            &json!(["yes", "no"]),
            &Value::Null
        )
    );
    assert!(asked["asked"].as_i64().is_some() && asked["run_id"] == object["run_id"], "{object}");
    life.event("other", "quick", "");
    life.tick(&["other"]).expect(0);
    assert_eq!((life.state("other").as_str(), life.state("work").as_str()), ("done", "working"));
    life.run(&["approve", "work"]).expect(0);
    tick.done().expect(0);
    assert_eq!(life.files("refs/heads/work"), ["dir/other", "file", "made"]);
}

/// K49: a signal ends the wait, and its command goes on.
#[test]
fn a_signal_ends_a_wait_cleanly() {
    let script = "git aynig ask Now? --wait & echo $! >\"$T/asker\"; wait $!; echo $? >\"$T/choice\"\n";
    let life = Life::new(&[("build", &format!("{script}{DONE}"))]);
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    let id = life.question();
    let run = life.trailer("refs/heads/work", "dwp-run-id").unwrap();
    let asking = life.repo.git_dir().join("aynig/runs").join(run).join("asking");
    eventually("it waits", || asking.exists().then_some(()));
    let asker: i32 = life.hear("asker").parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(asker), Signal::SIGTERM).unwrap();
    tick.done().expect(0);
    assert_eq!((life.said("choice").trim(), life.said_in("asked").contains(&id)), ("143", false));
}

/// K35, K49a: where signatures are asked for no user's yes is put under other words than those that were signed.
#[test]
fn a_question_that_is_not_signed_is_not_answered_where_a_signature_is_asked_for() {
    let life = asking();
    if !life.sign() {
        return;
    }
    life.run(&["set-state", "build", "-b", "work"]).expect(0);
    let tick = life.start_tick(&["work"]);
    let id = life.question();
    let question = format!("refs/aynig/asked/{id}");
    let signed = life.rev(&question);
    let message = life.git(&["log", "-1", "--format=%B", &question]).replace("Deploy?", "Change a comment?");
    assert!(message.contains("Change a comment?"), "{message}");
    let forged = life.git(&[
        "commit-tree",
        "-p",
        &format!("{signed}^"),
        "-m",
        &message,
        &format!("{signed}^{{tree}}"),
    ]);
    life.git(&["update-ref", &question, forged.trim()]);
    for what in [id.as_str(), "work"] {
        let said = life.run(&["approve", what]).expect(2).stderr;
        assert!(
            said.contains(&format!("question {id} is not signed for 'work'"))
                && said.contains(&format!("git update-ref -d {question}")),
            "{said}"
        );
    }
    let named = life.run(&["status", "--waiting"]).stdout;
    let unbelieved = format!("; not believed: question {id} is not signed for 'work'");
    assert!(!named.contains("Change a comment?") && named.contains(&unbelieved), "{named}");
    let object = &life.run(&["status", "--waiting", "--json"]).expect(0).objects("aynig.status/1")[0];
    let asked = &object["questions"][0];
    assert_eq!((&asked["id"], &asked["text"]), (&id.as_str().into(), &Value::Null));
    assert!(asked["unsigned"].as_str().is_some_and(|why| why.contains("is not signed")), "{object}");
    assert_eq!(life.said_in("inbox"), Vec::<String>::new());
    // Where the one who judges signatures is away, what was asked is named with what Git says, and not believed either.
    life.git(&["update-ref", &question, &signed]);
    let allowed = life.git(&["config", "--global", "gpg.ssh.allowedSignersFile"]);
    life.config("gpg.ssh.allowedSignersFile", "/nowhere");
    let named = life.run(&["status", "--waiting"]).stdout;
    assert!(!named.contains("Deploy?") && named.contains(&format!("{unbelieved}: ")), "{named}");
    let said = life.run(&["approve", "work"]).expect(2).stderr;
    assert!(said.contains("git aynig doctor, or git update-ref -d"), "{said}");
    // The question as it was asked is answered.
    life.config("gpg.ssh.allowedSignersFile", allowed.trim());
    life.run(&["approve", "work"]).expect(0);
    tick.done().expect(0);
    assert_eq!(life.said("choice"), "yes\n");
}

/// K35, K49a: an answer that can't be judged, for the program or the file of signers is missing, is held, which is said to who waits
/// and to who answers, and counts once it can be; one whose signature is none goes.
#[test]
fn an_answer_that_cannot_be_judged_here_is_held() {
    let life = Life::new(&[("build", &format!("exec 2>>\"$T/told\"; {ASK}{DONE}"))]);
    if !life.sign() {
        return;
    }
    let allowed = life.git(&["config", "--global", "gpg.ssh.allowedSignersFile"]);
    let answer_to = |id: &str| answer_id(id.parse().unwrap()).to_string();
    let asks = |branch: &str| {
        life.run(&["set-state", "build", "-b", branch]).expect(0);
        (life.start_tick(&[branch]), life.question())
    };
    let (tick, first) = asks("first");
    life.run(&["approve", "first", "--no-tick"]).expect(0);
    tick.done().expect(0);
    let heard = format!("refs/aynig/heard/{}", answer_to(&first));
    let (seen, said) = (life.trailer(&heard, "dwp-seen").unwrap(), life.body(&heard));
    for (branch, key, away, back, why) in [
        ("file", "gpg.ssh.allowedSignersFile", "/nowhere", allowed.trim(), "'/nowhere' cannot be read"),
        ("program", "gpg.ssh.program", "/nowhere/keygen", "ssh-keygen", "'/nowhere/keygen' is not here"),
    ] {
        std::fs::remove_file(life.shared().join("choice")).unwrap();
        let (tick, id) = asks(branch);
        // The same words to this question, in the place of its answer, when there is no judge.
        let words = said
            .replace(&answer_to(&first), &answer_to(&id))
            .replace(&first, &id)
            .replace(&seen, &life.rev(&format!("refs/aynig/asked/{id}")))
            .replace("dwp-branch: first", &format!("dwp-branch: {branch}"));
        let tree = life.rev(&format!("{heard}^{{tree}}"));
        let signed = life.git(&["commit-tree", "-S", "-m", &words, &tree]);
        let place = format!("refs/aynig/inbox/{branch}/answer/{}", answer_to(&id));
        life.config(key, away);
        life.git(&["update-ref", &place, signed.trim()]);
        let told = eventually("it is said", || Some(life.said("told")).filter(|told| told.contains(why)));
        assert!(told.contains(&format!("git aynig doctor, or git update-ref -d {place}")), "{told}");
        assert_eq!((life.said("choice"), life.rev(&place)), (String::new(), signed.trim().to_owned()));
        life.config(key, back);
        tick.done().expect(0);
        assert_eq!(life.said("choice"), "yes\n", "{branch}");
    }
    // With a judge that says no it goes, and another is heard.
    std::fs::remove_file(life.shared().join("choice")).unwrap();
    let (tick, id) = asks("unsigned");
    let place = format!("refs/aynig/inbox/unsigned/answer/{}", answer_to(&id));
    life.git(&["update-ref", &place, &life.rev("main")]);
    life.run(&["reject", "unsigned"]).expect(0);
    tick.done().expect(0);
    assert_eq!(life.said("choice"), "no\n");
}

/// K49: a question that no run and no head waits with goes by its age, and one that is waited with stays.
#[test]
fn a_question_that_is_gone_is_collected() {
    let life = Life::new(&[("build", WAITS)]);
    life.event("work", "build", "");
    life.event("over", "build", "");
    life.tick(&["work", "over"]).expect(0);
    assert_eq!(life.said_in("asked").len(), 2);
    life.event("over", "done", "");
    life.git(&["config", "aynig.attemptExpire", "1d"]);
    life.run(&["gc"]).expect(0);
    assert_eq!(life.said_in("asked").len(), 2);
    life.git(&["config", "aynig.attemptExpire", "0"]);
    life.run(&["gc"]).expect(0);
    let id = life.trailer("refs/heads/work", "dwp-question").unwrap();
    assert_eq!(life.said_in("asked"), [id]);
}
