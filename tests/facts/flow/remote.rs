//! One flow through one remote.

use super::{ROUTE, TURN};
use crate::support::net::Net;

/// N2a: a clone that has heard of nothing yet makes a flow by what the remote's trusted branch has.
#[test]
fn a_new_clone_makes_a_flow_of_its_remote() {
    let net = Net::new(&[("turn", TURN), ("route", ROUTE)]);
    net.life.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/main"]);
    let one = net.machine("one");
    one.run(&["flow", "new", "Review", "--remote", "origin"]).expect(0);
    assert!(one.run(&["flow", "list", "--remote", "origin"]).expect(0).stdout.starts_with("Review: "));
}

/// N14: what one machine makes the other sees; both change it at once; each turn is had once; and it goes with its branches.
#[test]
fn two_machines_drive_one_flow_through_a_remote() {
    let net = Net::new(&[("turn", TURN), ("route", ROUTE)]);
    let (one, two) = (net.machine("one"), net.machine("two"));
    let at = ["--remote", "origin"];
    let flow = |machine: &crate::support::net::Machine<'_>, args: &[&str]| {
        machine.run(&[&["flow"], args, &at[..]].concat())
    };
    flow(&one, &["new", "Review", "--mode", "interactive"]).expect(0);
    let add = |label: &str| {
        ["node", "add", "review", "--label", label, "--role", "r", "--provider", "custom"].map(str::to_owned)
    };
    for (machine, label) in [(&one, "lead"), (&two, "ada")] {
        let add = add(label);
        flow(machine, &add.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
    }
    flow(&two, &["edge", "add", "review", "lead", "ada"]).expect(0);
    let branches = net.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/flow/"]);
    assert_eq!(branches, "flow/review/ada\nflow/review/lead");
    // Nothing of it is a branch of the clones.
    assert_eq!(one.git(&["for-each-ref", "refs/heads/flow/", "refs/aynig/flows/"]), "");
    // At once.
    let both: Vec<_> = [&one, &two]
        .iter()
        .enumerate()
        .map(|(n, machine)| {
            let add = add(&format!("n{n}"));
            let args: Vec<&str> =
                ["flow"].into_iter().chain(add.iter().map(String::as_str)).chain(at).collect();
            crate::support::life::Running::of(machine.aynig(&args))
        })
        .collect();
    both.into_iter().for_each(|one| drop(one.done().expect(0)));
    let shown = flow(&one, &["show", "review"]).expect(0).stdout;
    assert_eq!(shown.matches("flow/review/").count(), 4, "{shown}");
    // A pause of one machine holds the other.
    flow(&one, &["pause", "review"]).expect(0);
    flow(&one, &["send", "review", "ada", "-m", "Do it."]).expect(0);
    two.tick(&[]).expect(0);
    assert_eq!(net.states("flow/review/ada"), ["idle"]);
    flow(&two, &["resume", "review"]).expect(0);
    let ticks = [one.start_tick(&[]), two.start_tick(&[])];
    ticks.into_iter().for_each(|tick| drop(tick.done()));
    assert_eq!(net.life.said("heard").lines().count(), 1, "{}", net.life.said("heard"));
    flow(&one, &["rm", "review"]).expect(0);
    let left = net.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/heads/flow/",
        "refs/aynig/flows/",
        "refs/aynig/inbox/",
    ]);
    assert_eq!(left, "");
    assert!(flow(&two, &["list"]).expect(0).stdout.is_empty());
}
