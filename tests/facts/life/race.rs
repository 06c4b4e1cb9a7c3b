//! Many processes at once: one of them takes a branch, none writes over another.

use crate::support::life::{Life, eventually};
use std::collections::BTreeSet;

/// K11: the losers say that the branch is leased while the winner's command still runs.
#[test]
fn of_many_ticks_at_once_one_takes_the_branch() {
    const MANY: usize = 32;
    let script = "echo x >>\"$T/runs\"; read x <\"$T/gate\"; echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", script)]);
    let trigger = life.event("work", "build", "");
    let mut gate = life.gate("gate");
    let mut running: Vec<_> = (0..MANY).map(|_| life.start_tick(&["work"])).collect();
    let mut losers = 0;
    eventually("31 lost", || {
        let (over, left): (Vec<_>, Vec<_>) = std::mem::take(&mut running)
            .into_iter()
            .map(|mut r| (r.is_over(), r))
            .partition(|(over, _)| *over);
        running = left.into_iter().map(|(_, r)| r).collect();
        for (_, process) in over {
            process.done().expect(3);
            losers += 1;
        }
        (losers >= MANY - 1).then_some(())
    });
    assert_eq!(running.len(), 1);
    gate.open();
    running.pop().unwrap().done().expect(0);
    assert_eq!(life.said("runs"), "x\n");
    assert_eq!(life.git(&["rev-list", "--count", &format!("{trigger}..work")]), "2");
    assert_eq!(life.states("work"), ["next", "working", "build"]);
    life.repo.assert_sound();
}

/// K14, section 13: each branch of a pass gets its own outcome, from its own slot.
#[test]
fn fifty_branches_get_fifty_outcomes() {
    let script =
        "echo \"$AYNIG_BRANCH\" >>file; echo \"$PWD\" >>\"$T/slots\"; echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", script)]);
    let names: Vec<String> = (0..50).map(|n| format!("work/{n}")).collect();
    names.iter().for_each(|name| drop(life.event(name, "build", "")));
    life.event_at("quiet", "no event\n", None);
    let done = life.tick(&["--json", "--jobs", "8"]).expect(0);
    for name in &names {
        assert_eq!(life.states(name), ["next", "working", "build"], "{name}");
        assert_eq!(life.show(name, "file"), format!("one\n{name}"));
    }
    let said = life.said("slots");
    let slots: BTreeSet<&str> = said.lines().collect();
    assert!(slots.len() <= 8 && said.lines().count() == 50, "{slots:?}");
    assert_eq!(done.stdout.lines().filter(|l| l.contains("\"advanced\"")).count(), 50);
    // A second pass finds nothing to do.
    life.tick(&["--jobs", "8"]).expect(0);
    assert_eq!(life.said("slots").lines().count(), 50);
    life.repo.assert_sound();
}

/// K8
#[test]
fn an_expired_lease_is_recovered_once() {
    let life = Life::new(&[("build", "")]);
    let trigger = life.event("work", "build", "");
    let run = "3f1c3d9e-1111-4222-8333-444455556666";
    let lease = life.lease("work", "build", run, 60, 61);
    let many: Vec<_> = (0..2).map(|_| life.start_tick(&["work"])).collect();
    let codes: Vec<_> = many.into_iter().map(|r| r.done().code.unwrap()).collect();
    assert!(codes.contains(&1) && codes.iter().all(|c| [0, 1].contains(c)), "{codes:?}");
    assert_eq!(life.states("work"), ["stalled", "working", "build"]);
    assert_eq!(life.rev("work~1"), lease);
    let trailers = life.trailers("work");
    assert!(uuid::Uuid::parse_str(&trailers["dwp-recovery-id"]).is_ok());
    for (key, value) in
        [("dwp-stalled-run", run), ("dwp-origin-state", "build"), ("dwp-trigger", &trigger), ("dwp-hop", "1")]
    {
        assert_eq!(trailers[key], value, "{key}");
    }
    assert_eq!(life.rev("work^{tree}"), life.rev("work~1^{tree}"));
}

/// K7
#[test]
fn a_lease_that_lives_is_left_alone() {
    let life = Life::new(&[("build", "")]);
    life.event("work", "build", "");
    let lease = life.lease("work", "build", "run", 60, 10);
    let (done, report) = life.report(&["work"]);
    assert_eq!((done.code, report["result"].as_str()), (Some(3), Some("leased")));
    // No branch named: leased elsewhere is nothing to complain about.
    life.tick(&[]).expect(0);
    assert_eq!(life.rev("work"), lease);
    // Grace is added.
    life.event("late", "build", "");
    let lease = life.lease("late", "build", "run", 60, 70);
    life.tick(&["--grace", "60s", "late"]).expect(3);
    assert_eq!(life.rev("late"), lease);
}

/// K8: evaluation goes on from the new head in the same tick, and `stalled` is a state as any other (K5).
#[test]
fn a_command_for_stalled_runs_in_the_tick_that_recovers() {
    let life = Life::new(&[("stalled", "echo 'SET_STATE {\"state\":\"handled\"}'")]);
    life.event("work", "build", "");
    life.lease("work", "build", "run", 1, 100);
    life.tick(&["work"]).expect(1);
    assert_eq!(life.states("work"), ["handled", "working", "stalled", "working", "build"]);
    assert_eq!(life.trailer("work", "dwp-hop"), Some("2".into()));
}

/// K9
#[test]
fn a_state_that_leads_to_itself_stops_at_the_limit() {
    let life = Life::new(&[("build", "echo x >>\"$T/runs\"; echo 'SET_STATE {\"state\":\"build\"}'")]);
    life.config("aynig.maxHops", "5");
    life.event("work", "build", "");
    let done = life.tick(&["--chain", "--json", "work"]).expect(0);
    let last = done.json();
    assert_eq!(
        (last["reason"].as_str(), &last["hop"], &last["max_hops"]),
        (Some("hop-limit"), &5.into(), &5.into())
    );
    assert_eq!(life.said("runs"), "x\n".repeat(5));
    let done = life.tick(&["work"]);
    assert!(done.stdout.contains("5 dispatches led here, the limit is 5"), "{done:?}");
    // A person's own event starts again.
    life.run(&["set-state", "build", "-b", "work"]).expect(0);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.said("runs"), "x\n".repeat(6));
}

/// K30: of two fetches into one reftable repository at once Git fails one; here they take turns.
#[test]
fn ticks_of_one_clone_at_once_all_hear_who_has_the_branch() {
    if crate::support::Repo::build().reftable().create().is_none() {
        return;
    }
    let net = crate::support::net::Net::new(&[("build", "echo 'SET_STATE {\"state\":\"next\"}'")]);
    let clone = net.clone_as("a", &["--ref-format=reftable"]);
    let names: Vec<String> = (0..8).map(|n| format!("b{n}")).collect();
    names.iter().for_each(|name| drop(net.event(name, "build", "")));
    // As many slots as branches that are looked at: this is about fetches, and how many CPUs there are says nothing.
    let tick = |n: usize| clone.start_tick(&["--jobs", "32", &*names[n % 8], &*names[(n + 1) % 8]]);
    let all: Vec<_> = (0..16).map(tick).collect();
    for tick in all {
        let said = tick.done();
        assert!(matches!(said.code, Some(0 | 3)), "{said:?}");
    }
    names.iter().for_each(|name| assert_eq!(net.states(name), ["next", "working", "build"]));
}

/// K14: no process that comes later takes the slot that another waits for, and a process that was stopped holds
/// no other up.
#[test]
fn whoever_waits_longest_for_a_slot_is_next() {
    let script =
        "echo \"$AYNIG_BRANCH\" >>\"$T/order\"; read x <\"$T/gate\"; echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", script)]);
    let mut gate = life.gate("gate");
    let turns = life.repo.git_dir().join("aynig/turns");
    let waiting = || std::fs::read_dir(&turns).map_or(0, Iterator::count);
    let names: Vec<String> = (0..5).map(|n| format!("b{n}")).collect();
    let mut running = Vec::new();
    for (n, name) in names.iter().enumerate() {
        life.event(name, "build", "");
        running.push(life.start_tick(&["--jobs", "1", name]));
        eventually("its turn", || (life.said("order").lines().count() == 1 && waiting() == n).then_some(()));
    }
    // One slot more would be free for a process that asks for two, but for those that wait for the first alone.
    life.event("late", "build", "");
    running.push(life.start_tick(&["--jobs", "2", "late"]));
    eventually("a slot of its own", || (life.said("order").lines().count() == 2).then_some(()));
    for _ in 0..6 {
        gate.open();
    }
    running.into_iter().for_each(|tick| drop(tick.done().expect(0)));
    let order: Vec<String> = life.said("order").lines().filter(|b| *b != "late").map(str::to_owned).collect();
    assert_eq!(order, names);
    assert_eq!(waiting(), 0);
}

/// K14
#[test]
fn a_process_that_waits_and_is_stopped_holds_nobody_up() {
    let script = "echo \"$AYNIG_BRANCH\" >>\"$T/order\"; read x <\"$T/$AYNIG_BRANCH\"; echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", script)]);
    let mut gates: Vec<_> = ["first", "stopped", "late"].map(|name| life.gate(name)).into();
    for name in ["first", "stopped", "late"] {
        life.event(name, "build", "");
    }
    let turns = life.repo.git_dir().join("aynig/turns");
    let first = life.start_tick(&["--jobs", "1", "first"]);
    eventually("it runs", || (life.said("order") == "first\n").then_some(()));
    let stopped = life.start_tick(&["--jobs", "1", "stopped"]);
    eventually("it waits", || (std::fs::read_dir(&turns).map_or(0, Iterator::count) == 1).then_some(()));
    stopped.signal(nix::sys::signal::Signal::SIGSTOP);
    gates[0].open();
    first.done().expect(0);
    gates[2].open();
    life.tick(&["--jobs", "1", "late"]).expect(0);
    assert_eq!(life.said("order"), "first\nlate\n");
    stopped.signal(nix::sys::signal::Signal::SIGCONT);
    gates[1].open();
    stopped.done().expect(0);
}
