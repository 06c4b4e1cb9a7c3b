//! Calls that wait for a person.

use super::{ROUTE, make};
use crate::support::life::{Life, eventually};
use crate::support::net::{Machine, Net};

/// A turn that asks as a gate does, and says what it heard.
const ASKS: &str = "git aynig ask 'may it?' --choice approve --choice deny --choice modify --wait --json >>\"$T/answer\"\n\
    echo 'SET_STATE {\"state\":\"idle\",\"trailers\":[\"dwp-accepts: message=turn, handoff=turn, interrupt=turn\"]}'";

/// N8: an approval is a question; it is listed with its node, and resolved once.
#[test]
fn an_approval_is_listed_and_resolved_once() {
    let life = Life::new(&[("turn", ASKS), ("route", ROUTE)]);
    make(&life, &[]);
    for (verb, more, choice, text) in [
        ("approve", vec!["-m", "Go on."], "approve", "Go on."),
        ("deny", vec![], "deny", ""),
        ("modify", vec!["{\"path\": \"b\"}"], "modify", "{\"path\":\"b\"}"),
    ] {
        life.flow(&["send", "review", "ada", "-m", "go"]).expect(0);
        let run = life.start_tick(&["flow/review/ada"]);
        let listed = || life.flow(&["approvals", "review", "--json"]).expect(0).stdout;
        let line = eventually("it asks", || Some(listed()).filter(|said| !said.is_empty()));
        let asked: serde_json::Value = serde_json::from_str(line.trim_end()).unwrap();
        assert_eq!((&asked["name"], &asked["branch"]), (&"ada".into(), &"flow/review/ada".into()));
        assert!(life.flow(&["show", "review"]).expect(0).stdout.contains("ada: blocked"));
        let status = life.run(&["status"]).expect(0).stdout;
        assert!(status.contains("; it asks 'may it?': git aynig answer"), "{status}");
        let id = asked["id"].as_str().unwrap();
        let named = life.flow(&["approve", "ada"]).expect(129).stderr;
        assert!(named.ends_with("\nhint: git aynig flow approvals\n"), "{named}");
        if verb == "modify" {
            life.flow(&["modify", id, "no object"]).expect(129);
        }
        life.flow(&[&[verb, id][..], &more].concat()).expect(0);
        run.done().expect(0);
        let answer: serde_json::Value =
            serde_json::from_str(life.said("answer").lines().last().unwrap()).unwrap();
        assert_eq!((&answer["choice"], &answer["text"]), (&choice.into(), &text.into()));
        let again = life.flow(&["approve", id]);
        assert!(again.code != Some(0) && listed().is_empty(), "{again:?}");
    }
}

/// N8, K22: at a remote too, the questions are those that are asked there now.
#[test]
fn an_approval_of_a_remote_is_listed_in_every_clone() {
    let net = Net::new(&[("turn", ASKS), ("route", ROUTE)]);
    let (one, two) = (net.machine("one"), net.machine("two"));
    fn at<'a>(args: &[&'a str]) -> Vec<&'a str> {
        [&["flow"], args, &["--remote", "origin"]].concat()
    }
    one.run(&at(&["new", "Review", "--mode", "interactive"])).expect(0);
    let add = ["node", "add", "review", "--label", "ada", "--role", "r", "--provider", "custom"];
    one.run(&at(&add)).expect(0);
    one.run(&at(&["send", "review", "ada", "-m", "go"])).expect(0);
    let run = one.start_tick(&[]);
    let listed =
        |machine: &Machine<'_>| machine.run(&at(&["approvals", "review", "--json"])).expect(0).stdout;
    let line = eventually("it asks", || Some(listed(&one)).filter(|said| !said.is_empty()));
    assert_eq!(listed(&two), line);
    let asked: serde_json::Value = serde_json::from_str(line.trim_end()).unwrap();
    two.run(&at(&["approve", asked["id"].as_str().unwrap()])).expect(0);
    run.done().expect(0);
    assert_eq!((listed(&one), listed(&two)), (String::new(), String::new()));
}

/// K49, N8: what stands under a question's name and is no commit is no question, and stops no command.
#[test]
fn a_ref_that_is_no_commit_hides_no_question() {
    let life = Life::new(&[("turn", ASKS), ("route", ROUTE)]);
    make(&life, &[]);
    life.flow(&["send", "review", "ada", "-m", "go"]).expect(0);
    let run = life.start_tick(&["flow/review/ada"]);
    let listed = || life.flow(&["approvals", "review", "--json"]);
    let line = eventually("it asks", || Some(listed().expect(0).stdout).filter(|said| !said.is_empty()));
    let asked: serde_json::Value = serde_json::from_str(line.trim_end()).unwrap();
    let id = asked["id"].as_str().unwrap();
    let blob = life.git(&["rev-parse", "main:.aynig/command/turn"]);
    let bad = "refs/aynig/asked/0190b6a0-0000-7000-8000-000000000001";
    life.git(&["update-ref", bad, &blob]);
    // And in the place of its answer.
    assert_eq!(listed().expect(0).stdout, line);
    life.flow(&["show", "review"]).expect(0);
    life.run(&["status"]).expect(0);
    life.flow(&["approve", id]).expect(0);
    run.done().expect(0);
    life.flow(&["rm", "review"]).expect(0);
    assert_eq!(life.branches(), ["main"]);
}
