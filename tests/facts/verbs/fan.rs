//! `fan`, `compare`, `choose`: several branches answer one trigger, and one goes on for all.

use crate::support::life::Life;
use serde_json::Value;

const BUILD: &str = "echo \"$DWP_MODEL $DWP_FAN_NUMBER $DWP_FAN\" >made; test \"$DWP_MODEL\" != c || exit 1; \
    echo 'SET_STATE {\"state\":\"review\",\"body\":\"Look at it.\",\"usage\":{\"input_tokens\":5,\"output_tokens\":2,\"cost_usd\":0.5}}'";

fn life() -> Life {
    let life = Life::new(&[("build", BUILD)]);
    life.event("topic", "build", "dwp-ticket: 7\n");
    life
}

fn lines(text: &str, schema: &str) -> Vec<Value> {
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(all.iter().all(|line| line["schema"] == schema), "{text}");
    all
}

/// K61.
#[test]
fn several_branches_answer_one_trigger_each_with_its_own_variables() {
    let life = life();
    let trigger = life.rev("topic");
    life.run(&["fan", "topic", "--each", "model=a,b,c", "--each", "dwp-x=1"]).expect(0);
    assert_eq!(life.state("topic"), "fanned");
    life.run(&["run"]).expect(1);
    for (n, model, state) in [(1, "a", "review"), (2, "b", "review"), (3, "c", "stalled")] {
        let branch = format!("topic-{n}");
        assert_eq!(life.state(&branch), state);
        let first = life.rev(&format!("topic^{}", n + 1));
        let said = life.trailers(&first);
        let said =
            ["dwp-model", "dwp-fan", "dwp-fan-number", "dwp-ticket", "dwp-x"].map(|key| said[key].as_str());
        assert_eq!(said, [model, "topic", &n.to_string(), "7", "1"]);
        assert_eq!(life.git(&["log", "-1", "--format=%P", &first]).trim_end(), trigger);
    }
    assert_eq!(life.show("topic-2", "made"), "b 2 topic");
    // The branch itself ran nothing, and is not fanned twice.
    let fanned = life.rev("topic");
    life.run(&["fan", "topic", "-n", "5"]).expect(0);
    assert_eq!((life.rev("topic"), life.try_rev("topic-4")), (fanned, None));
    life.repo.assert_sound();
}

/// K61.
#[test]
fn attempts_are_compared_side_by_side() {
    let life = life();
    life.run(&["fan", "topic", "--each", "model=a,b,c"]).expect(0);
    life.run(&["run"]).expect(1);
    let shown = life.run(&["compare", "topic"]).expect(0);
    assert!(shown.stdout.lines().next().unwrap().starts_with("branch   state    runs"), "{shown:?}");
    for args in [&["compare", "topic", "--json"][..], &["compare", "topic-3", "--json"]] {
        let all = lines(&life.run(args).expect(0).stdout, "aynig.compare/1");
        let told = |key: &str| all.iter().map(|one| one[key].clone()).collect::<Vec<Value>>();
        assert_eq!(told("branch"), ["topic-1", "topic-2", "topic-3"]);
        assert_eq!(told("state"), ["review", "review", "stalled"]);
        assert_eq!((told("files"), told("insertions")), (vec![Value::from(1); 3], vec![Value::from(1); 3]));
        assert_eq!(told("runs"), vec![Value::from(1); 3]);
        assert_eq!(told("cost_usd"), [Value::from(0.5), Value::from(0.5), Value::Null]);
        assert_eq!(told("input_tokens"), [5, 5, 0].map(Value::from));
    }
    // Any branches, too.
    let all = lines(&life.run(&["compare", "main", "topic-1", "--json"]).expect(0).stdout, "aynig.compare/1");
    assert_eq!((all[0]["files"].as_u64(), all[1]["files"].as_u64()), (Some(0), Some(1)));
    life.run(&["compare", "main"]).expect(128);
    life.run(&["compare", "main", "gone"]).expect(128);
}

/// K61: a branch that stalled is compared by the work that is kept of it, whatever bytes its name has. A pattern finds
/// it, too.
#[test]
fn branches_whose_names_are_no_text_are_compared_and_found() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let life = life();
    let run = |args: &[&[u8]]| {
        let args: Vec<&OsStr> = args.iter().map(|arg| OsStr::from_bytes(arg)).collect();
        crate::support::life::done(life.aynig(&args).output().unwrap())
    };
    life.run(&["fan", "topic", "--each", "model=a,c"]).expect(0);
    life.run(&["run"]).expect(1);
    life.repo.git(&[&b"branch"[..], b"-m", b"topic-2", b"t\xffpic"].map(OsStr::from_bytes));
    let all = run(&[b"compare", b"topic-1", b"t\xffpic", b"--json"]).expect(0);
    let all = lines(&all.stdout, "aynig.compare/1");
    let told = |key: &str| all.iter().map(|one| one[key].clone()).collect::<Vec<Value>>();
    assert_eq!(told("state"), ["review", "stalled"]);
    assert_eq!(told("files"), vec![Value::from(1); 2]);
    run(&[b"retry", b"t\xfe*"]).expect(128);
    run(&[b"retry", b"t\xff*"]).expect(0);
}

/// K61.
#[test]
fn the_branch_goes_on_with_what_was_chosen_and_the_others_are_canceled_and_kept() {
    let life = life();
    life.git(&["checkout", "-q", "topic"]);
    life.run(&["fan", "-n", "3", "--each", "model=a,b,c"]).expect(0);
    for refused in ["topic", "topic-1"] {
        let before = life.git(&["for-each-ref", "refs/heads/"]);
        life.run(&["choose", refused]).expect(2);
        assert_eq!(life.git(&["for-each-ref", "refs/heads/"]), before);
    }
    life.run(&["run", "topic-2", "topic-3"]).expect(1);
    life.run(&["choose", "topic-3"]).expect(2);
    let others = ["topic-1", "topic-3"].map(|name| life.rev(name));
    life.run(&["set-working", "-b", "topic-1"]).expect(0);
    life.run(&["choose", "topic-1"]).expect(3);
    let work = life.rev("topic-2");
    let fanned = life.rev("topic");
    let chosen = lines(&life.run(&["choose", "topic-2", "--json"]).expect(0).stdout, "aynig.change/1");
    assert_eq!(
        chosen.iter().map(|one| one["branch"].as_str().unwrap()).collect::<Vec<_>>(),
        ["topic-1", "topic-3", "topic"]
    );
    assert_eq!(life.git(&["log", "-1", "--format=%P", "topic"]).trim_end(), format!("{fanned} {work}"));
    assert_eq!((life.state("topic").as_str(), life.read("made").as_str()), ("review", "b 2 topic\n"));
    assert_eq!(life.trailer("topic", "dwp-chosen").as_deref(), Some("topic-2"));
    assert!(life.body("topic").contains("Look at it."));
    assert_eq!(
        ["topic-1", "topic-2", "topic-3"].map(|name| life.state(name)),
        ["canceled", "done", "canceled"]
    );
    for (name, old) in ["topic-1", "topic-3"].into_iter().zip(others) {
        life.git(&["merge-base", "--is-ancestor", &old, name]);
    }
    assert_eq!(life.attempts().len(), 1, "what a stalled one had done is kept");
    assert_eq!(life.git(&["status", "--porcelain"]), "");
    life.run(&["choose", "topic-2"]).expect(2);
    life.repo.assert_sound();
}

/// K61: killed between the two moves of a choice, the attempt would be answered as well as the branch.
#[test]
fn a_choice_that_was_cut_short_is_made_whole_by_the_next() {
    let life = life();
    life.run(&["fan", "topic", "-n", "2"]).expect(0);
    life.run(&["run"]).expect(0);
    let work = life.rev("topic-2");
    life.run(&["choose", "topic-2"]).expect(0);
    let chosen = life.rev("topic");
    life.git(&["update-ref", "refs/heads/topic-2", &work]);
    // The branch may have gone on meanwhile.
    life.run(&["set-state", "-b", "topic", "later"]).expect(0);
    let head = life.rev("topic");
    let said = lines(&life.run(&["choose", "topic-2", "--json"]).expect(0).stdout, "aynig.change/1");
    assert_eq!(said[0]["branch"], "topic");
    assert_eq!((life.state("topic-2").as_str(), life.rev("topic")), ("done", head));
    life.git(&["merge-base", "--is-ancestor", &chosen, "topic"]);
    // Made whole it is no choice any more, and one that went on by itself is none either.
    life.run(&["choose", "topic-2"]).expect(2);
    life.git(&["update-ref", "refs/heads/topic-2", &work]);
    life.run(&["set-state", "-b", "topic-2", "again"]).expect(0);
    life.run(&["choose", "topic-2"]).expect(2);
}

/// K61: where a kill came before the branch went on nothing is answered, and that attempt, or another, is chosen.
#[test]
fn a_choice_that_ended_the_attempts_alone_can_be_made_again() {
    let life = life();
    life.run(&["fan", "topic", "-n", "3"]).expect(0);
    life.run(&["run", "topic-1", "topic-2"]).expect(0);
    let (fanned, work) = (life.rev("topic"), ["topic-1", "topic-2"].map(|name| life.rev(name)));
    let states = || ["topic", "topic-1", "topic-2", "topic-3"].map(|name| life.state(name));
    for (at, chosen) in [(1, "topic-2"), (1, "topic-2"), (0, "topic-1")] {
        life.run(&["choose", chosen]).expect(0);
        assert_eq!(
            life.git(&["log", "-1", "--format=%P", "topic"]).trim_end(),
            format!("{fanned} {}", work[at])
        );
        assert_eq!(life.show("topic", "made"), life.show(&work[at], "made"));
        let other = if at == 1 { ["review", "canceled", "done"] } else { ["review", "done", "canceled"] };
        assert_eq!(states()[..3], other);
        assert_eq!(states()[3], "canceled");
        // As a kill before that would have left it.
        life.git(&["update-ref", "refs/heads/topic", &fanned]);
        let ended = life.git(&["for-each-ref", "refs/heads/"]);
        life.command("review", "echo 'SET_STATE {\"state\":\"reviewed\"}'");
        life.run(&["run"]).expect(0);
        assert_eq!(life.git(&["for-each-ref", "refs/heads/"]), ended, "nothing is left to be answered");
    }
    // One that did not run is none all the same.
    life.run(&["choose", "topic-3"]).expect(2);
    life.repo.assert_sound();
}

/// K61: once the branch has gone on, `choose` ends no attempt that was gone on with.
#[test]
fn a_choice_that_was_made_is_not_made_again() {
    let life = life();
    life.run(&["fan", "topic", "-n", "3"]).expect(0);
    life.run(&["run"]).expect(0);
    life.run(&["choose", "topic-1"]).expect(0);
    life.run(&["set-state", "-b", "topic-2", "build"]).expect(0);
    life.run(&["set-working", "-b", "topic-2"]).expect(0);
    life.event("topic-3", "own", "");
    let before = life.git(&["for-each-ref", "refs/heads/"]);
    for again in ["topic-1", "topic-3"] {
        let said = life.run(&["choose", again]).expect(2);
        let why = format!("'{again}' cannot be chosen: 'topic' went on with 'topic-1'");
        assert!(said.stderr.contains(&why) && said.stderr.contains("git aynig status topic\n"), "{said:?}");
        assert_eq!(life.git(&["for-each-ref", "refs/heads/"]), before);
    }
}

/// K61, K28: a choice that can't be made leaves each attempt as it was, to be chosen later.
#[test]
fn a_choice_that_local_work_is_in_the_way_of_cancels_nothing() {
    let life = life();
    life.git(&["checkout", "-q", "topic"]);
    life.run(&["fan", "-n", "3"]).expect(0);
    life.run(&["run", "topic-1", "topic-2"]).expect(0);
    std::fs::write(life.repo.path().join("made"), "mine").unwrap();
    let before = life.git(&["for-each-ref", "refs/heads/"]);
    life.run(&["choose", "topic-1"]).expect(1);
    assert_eq!(life.git(&["for-each-ref", "refs/heads/"]), before);
    std::fs::remove_file(life.repo.path().join("made")).unwrap();
    life.run(&["choose", "topic-2"]).expect(0);
    assert_eq!(
        ["topic-1", "topic-2", "topic-3"].map(|name| life.state(name)),
        ["canceled", "done", "canceled"]
    );
    life.repo.assert_sound();
}

/// K61: of two choices at once one is made, and the other changes nothing.
#[test]
fn two_choices_at_once_leave_one_branch_chosen() {
    let life = life();
    for round in 0..6 {
        let topic = format!("job{round}");
        let names = [1, 2].map(|n| format!("{topic}-{n}"));
        life.event(&topic, "build", "");
        life.run(&["fan", &topic, "-n", "2"]).expect(0);
        life.run(&["run", &names[0], &names[1]]).expect(0);
        let both = [&names[0], &names[1]].map(|name| life.start(&["choose", name]));
        let codes = both.map(|choice| choice.done().code);
        let won = codes.iter().position(|code| *code == Some(0)).unwrap_or_else(|| panic!("{codes:?}"));
        assert_ne!(codes[1 - won], Some(0));
        assert_eq!([&names[won], &names[1 - won]].map(|name| life.state(name)), ["done", "canceled"]);
        assert_eq!(life.trailer(&topic, "dwp-chosen").as_deref(), Some(&*names[won]));
    }
    life.repo.assert_sound();
}

/// K61: a command that runs is ended.
#[test]
fn an_attempt_that_runs_is_canceled_by_the_choice() {
    let life = Life::new(&[(
        "build",
        "test \"$DWP_FAN_NUMBER\" = 1 && { echo on >\"$T/on\"; read x <\"$T/go\"; }; echo 'SET_STATE {\"state\":\"done\"}'",
    )]);
    let _gate = life.gate("go");
    life.event("topic", "build", "");
    life.run(&["fan", "topic", "-n", "2"]).expect(0);
    let held = life.start_tick(&["topic-1"]);
    life.hear("on");
    life.run(&["run", "topic-2"]).expect(0);
    life.run(&["choose", "topic-2"]).expect(0);
    assert_eq!((life.state("topic-1").as_str(), life.state("topic").as_str()), ("canceled", "done"));
    held.done().expect(3);
}

/// K61: where a kill came between two moves the branch names what is missing.
#[test]
fn what_is_missing_of_a_fan_is_made_once_more() {
    let life = life();
    life.run(&["fan", "topic", "-n", "3"]).expect(0);
    let all = life.git(&["for-each-ref", "refs/heads/"]);
    life.git(&["update-ref", "-d", "refs/heads/topic-2"]);
    life.git(&["update-ref", "-d", "refs/heads/topic-3"]);
    let made = lines(&life.run(&["fan", "topic", "--json"]).expect(0).stdout, "aynig.change/1");
    assert_eq!(
        made.iter().map(|one| one["created"].as_bool().unwrap()).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(life.git(&["for-each-ref", "refs/heads/"]), all);
}

/// K61: a branch that any user pushed makes no other branch its attempt by naming it.
#[test]
fn a_forged_fan_has_no_attempts() {
    let life = life();
    life.run(&["fan", "topic", "-n", "2"]).expect(0);
    life.run(&["run"]).expect(0);
    let main = life.rev("main");
    let first = life.rev("topic^3");
    // Its own beginning of an attempt, which another branch has in its history.
    let own = life.event("prod", "build", "dwp-fan: zz\ndwp-fan-number: 1\n");
    let prod = life.event("prod", "done", "");
    let named = format!(
        "dwp-fan-branch: topic-2 {first}\ndwp-fan-branch: prod {own}\ndwp-fan-branch: zz-1 {main}\n\
         dwp-fan-branch: main {main}\ndwp-fan-branch: made {main}\ndwp-fan-branch: zz-3 {own}\n"
    );
    let forged = life.event("zz", "fanned", &named);
    life.git(&["branch", "zz-1", "main"]);
    let refs = || life.git(&["for-each-ref", "refs/heads/"]);
    let before = refs();
    for none in ["prod", "zz-1", "main"] {
        life.run(&["choose", none]).expect(128);
        assert_eq!(refs(), before, "{none}");
    }
    // Nothing is made that it names, either.
    life.run(&["fan", "zz"]).expect(0);
    assert_eq!(refs(), before);
    life.run(&["choose", "topic-2"]).expect(0);
    assert_eq!((life.rev("main"), life.rev("prod"), life.rev("zz")), (main.clone(), prod, forged));
    assert_eq!(life.rev("zz-1"), main);
    assert_eq!(["topic", "topic-1", "topic-2"].map(|name| life.state(name)), ["review", "canceled", "done"]);
}

/// K61.
#[test]
fn what_cannot_be_fanned_is_refused_and_leaves_nothing() {
    let life = life();
    life.git(&["branch", "topic-2", "main"]);
    let before = life.git(&["for-each-ref", "refs/heads/"]);
    let refused = |args: &[&str], code: i32, why: &str| {
        let said = life.run(&[&["fan"], args].concat()).expect(code);
        assert!(said.stderr.contains(why), "{said:?}");
        assert_eq!(life.git(&["for-each-ref", "refs/heads/"]), before);
    };
    refused(&["topic"], 128, "branch 'topic-2' exists");
    refused(&["main"], 128, "its head is no state event");
    refused(&["gone"], 128, "does not exist");
    life.git(&["branch", "over", "topic"]);
    life.run(&["set-state", "done", "-b", "over", "--no-tick"]).expect(0);
    let before = life.git(&["for-each-ref", "refs/heads/"]);
    let said = life.run(&["fan", "over", "-n", "2"]).expect(128);
    assert!(said.stderr.contains("'done' is an end: no command answers it"), "{said:?}");
    assert_eq!(life.git(&["for-each-ref", "refs/heads/"]), before);
    life.git(&["branch", "-D", "over"]);
    refused(&["topic", "-n", "0"], 129, "0 attempts");
    refused(&["topic", "-n", "2", "--each", "a=1,2,3"], 129, "3 values for 2 attempts");
    refused(&["topic", "--each", "state=x,y"], 129, "dwp-state");
    refused(&["topic", "--each", "novalue"], 129, "novalue");
    life.run(&["choose", "main"]).expect(128);
}
