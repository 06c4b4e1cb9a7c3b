//! One flow through one remote, with turns as they are: by hooks alone, by a machine that goes on for another, by merges that
//! conflict. (N6, N9, N14)

use super::stage::{self, SESSION, print};
use super::turn::{REAL, agent_of, handing, says};
use crate::support::life::{Life, eventually};
use crate::support::net::{Machine, Net};
use serde_json::{Value, json};

/// A remote with a flow 'play' of these nodes, each joined to the first, made from a clone.
fn play(nodes: &[(&str, &str, &str)]) -> Net {
    let net = Net::new(&[("turn", REAL), ("route", stage::ROUTE)]);
    let first = net.machine("first");
    flow(&first, &["new", "play", "--mode", "interactive"]);
    for (alias, role, provider) in nodes {
        let add = ["node", "add", "play", "--label", alias, "--alias", alias, "--role", role];
        flow(&first, &[&add, &["--provider", provider][..]].concat());
        if *alias != nodes[0].0 {
            flow(&first, &["edge", "add", "play", nodes[0].0, alias]);
        }
    }
    net
}

fn flow(machine: &Machine<'_>, args: &[&str]) -> String {
    machine.run(&[&["flow"], args, &["--remote", "origin"]].concat()).expect(0).stdout
}

fn state(net: &Net, node: &str) -> String {
    net.trailer(&format!("flow/play/{node}"), "dwp-state")
}

fn rests(net: &Net, nodes: &[&str]) -> bool {
    nodes.iter().all(|node| state(net, node) == "idle")
        && net.git(&["for-each-ref", "refs/aynig/inbox"]).is_empty()
}

/// What each node does in its turns: the first hands on to the others, who hand back a file each; then it says so.
fn working() -> String {
    format!(
        "read -r prompt; node=${{AYNIG_BRANCH##*/}}; printf '%s\\n' \"$prompt\" >>\"$T/$node.prompts\"\n\
         case $node in\n\
         lead) if mkdir \"$T/once\" 2>/dev/null; then {}; else {}; fi ;;\n\
         *) echo \"$node\" >\"$node.txt\"; {} ;;\nesac",
        handing("Handing on.", &[("one", "do"), ("two", "do too")]),
        says("I have it."),
        handing("Done.", &[("lead", "mine")])
    )
}

/// N6: a handoff is its node's to a machine that heard of it before it heard of that node's branch: the sender's turn and
/// route come between any two calls of that machine's tick to the remote.
#[test]
fn a_handoff_is_known_where_its_senders_branch_is_not_yet() {
    let net = play(&[("lead", "orchestrator", "custom"), ("one", "r", "custom")]);
    let script = format!(
        "read -r prompt; node=${{AYNIG_BRANCH##*/}}; printf '%s\\n' \"$prompt\" >\"$T/$node.prompt\"\n\
         case $node in lead) {} ;; *) {} ;; esac",
        handing("Handing on.", &[("one", "do")]),
        says("Done.")
    );
    agent_of(&net.life, &script);
    net.life.config("aynig.stallTurns", "0");
    let shared = net.life.shared();
    let path = |name: &str| shared.join(name);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let tick = |node: &str| a.tick(&[&format!("flow/play/{node}")]).expect(0);
    // What answers b: it holds one of b's calls.
    let answers = format!(
        "cd '{}'; echo >>calls\n\
         if [ \"$(wc -l <calls)\" = \"$(cat held)\" ]; then echo >reached; read -r _ <go-on; fi\n\
         exec git upload-pack \"$@\"\n",
        shared.display()
    );
    std::fs::write(path("answers.sh"), answers).unwrap();
    b.git(&["config", "remote.origin.uploadpack", &format!("sh '{}'", path("answers.sh").display())]);
    let mut go_on = net.life.gate("go-on");
    let mut held = 0;
    loop {
        held += 1;
        std::fs::write(path("held"), held.to_string()).unwrap();
        ["calls", "reached", "one.prompt"].iter().for_each(|name| drop(std::fs::remove_file(path(name))));
        flow(&a, &["send", "play", "lead", "-m", "go"]);
        let mut looks = b.start_tick(&["flow/play/one"]);
        let reached = eventually("a call is held, or there is no such call", || {
            let reached = path("reached").exists();
            (reached || looks.is_over()).then_some(reached)
        });
        std::fs::remove_file(path("held")).unwrap();
        tick("lead");
        tick("lead");
        if reached {
            go_on.open();
        }
        looks.done();
        // What came too late for that look.
        b.tick(&["flow/play/one"]);
        let prompt = net.life.said("one.prompt");
        assert!(prompt.contains("> do") && prompt.contains(" from lead:"), "{held}: {prompt}");
        b.tick(&["flow/play/one"]);
        assert_eq!(state(&net, "one"), "idle");
        if !reached {
            break;
        }
    }
    assert!(held > 2, "{held} calls");
}

/// N14: two machines drive one flow at once, with turns as they are: each message is heard once, and what a turn left
/// is heard of where a branch moved, not at each look.
#[test]
fn two_machines_at_once_hear_of_each_turn_once() {
    let net = play(&[("lead", "orchestrator", "custom"), ("one", "r", "custom"), ("two", "r", "custom")]);
    agent_of(&net.life, &working());
    let machines = [net.machine("a"), net.machine("b")];
    flow(&machines[0], &["send", "play", "lead", "-m", "go"]);
    for _ in 0..20 {
        let run = |machine: &Machine<'_>| {
            crate::support::life::Running::of(machine.aynig(&["run", "--remote", "origin"]))
        };
        machines.iter().map(run).collect::<Vec<_>>().into_iter().for_each(|run| drop(run.done()));
        if rests(&net, &["lead", "one", "two"]) {
            break;
        }
    }
    let files = net.git(&["ls-tree", "-r", "--name-only", "flow/play/lead"]);
    assert!(files.contains("one.txt") && files.contains("two.txt"), "{files}");
    for (node, text, times) in
        [("one", "> do\\n", 1), ("two", "> do too\\n", 1), ("lead", "> mine\\n", 2), ("lead", "> go\\n", 1)]
    {
        // A text may be the last of its prompt.
        let prompts = net.life.said(&format!("{node}.prompts")).replace("\",\"promptKind", "\\n");
        assert_eq!(prompts.matches(text).count(), times, "{node}: {text}: {prompts}");
    }
    let ids = |machine: &Machine<'_>| {
        let told = flow(machine, &["events", "play", "--json"]);
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].to_string();
        let mut ids: Vec<String> = told.lines().map(id).collect();
        ids.sort();
        ids
    };
    let told = ids(&machines[0]);
    assert_eq!(ids(&machines[1]), told);
    let heard =
        || machines[0].git(&["for-each-ref", "--format=%(refname)", "refs/aynig/shared/origin/turns/"]);
    let all = heard();
    assert!(all.lines().count() >= 4, "{all}");
    all.lines().for_each(|name| drop(machines[0].git(&["update-ref", "-d", name])));
    assert_eq!((ids(&machines[0]), heard()), (told.clone(), String::new()), "nothing moved");
    flow(&machines[1], &["send", "play", "one", "-m", "more"]);
    machines[1].run(&["run", "--remote", "origin"]).expect(0);
    assert!(ids(&machines[0]).len() > told.len());
    assert!(heard().lines().count() > all.lines().count());
}

/// N14, K40: no machine has to stay: a server's hooks alone have the turns, and hand them on.
#[test]
fn a_flow_is_driven_by_the_hooks_of_a_bare_server_alone() {
    let net = play(&[("lead", "orchestrator", "custom"), ("one", "r", "custom"), ("two", "r", "custom")]);
    agent_of(&net.life, &working());
    net.life.config("aynig.passEnv", "T");
    let mut install = net.life.aynig(&["hooks", "install"]);
    install.current_dir(net.origin());
    crate::support::life::done(install.output().unwrap()).expect(0);
    let mine = net.machine("mine");
    flow(&mine, &["send", "play", "lead", "-m", "go"]);
    eventually("all of it was done there", || {
        let both = net.git(&["ls-tree", "-r", "--name-only", "flow/play/lead"]);
        (both.contains("one.txt") && both.contains("two.txt") && rests(&net, &["lead", "one", "two"]))
            .then_some(())
    });
    let prompts = net.life.said("lead.prompts").replace("\",\"promptKind", "\\n");
    assert_eq!(prompts.matches("> mine\\n").count(), 2, "{prompts}");
    assert!(flow(&mine, &["events", "play"]).contains("handoff"));
}

/// N14, N9: a machine that can't reach the remote any more loses its turn with its lease; another has it, with what came,
/// in the same session.
#[test]
fn a_machine_that_is_unplugged_in_mid_turn_is_followed_by_another() {
    let net = play(&[("solo", "r", "codex")]);
    let lines = [
        json!({"type": "thread.started", "thread_id": SESSION}),
        json!({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "Done."}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 1}}),
    ];
    let script = format!(
        "echo \"$*\" >>\"$T/calls\"; cat >>\"$T/prompts\"; echo more >>file\n\
         if [ -e \"$T/hang\" ]; then rm \"$T/hang\"; echo $$ >\"$T/began\"; exec sleep 1000; fi\n{}",
        lines.iter().map(print).collect::<String>()
    );
    let path = net.life.shared().join("codex.sh");
    std::fs::write(&path, format!("T='{}'\n{script}", net.life.shared().display())).unwrap();
    net.life.config("aynig.provider.codex.command", &format!("sh '{}'", path.display()));
    net.life.config("aynig.leaseGrace", "1s");
    net.life.config("aynig.killGrace", "1s");
    let (one, two) = (net.machine("one"), net.machine("two"));
    flow(&one, &["send", "play", "solo", "-m", "first"]);
    one.run(&["run", "--remote", "origin"]).expect(0);
    assert_eq!(state(&net, "solo"), "idle");
    std::fs::write(net.life.shared().join("hang"), "").unwrap();
    flow(&one, &["send", "play", "solo", "-m", "second"]);
    let hangs = one.start_tick(&["--lease", "10s", "flow/play/solo"]);
    eventually("its agent is at work", || Some(()).filter(|()| !net.life.said("began").is_empty()));
    one.git(&["remote", "set-url", "origin", "file:///nowhere/at/all"]);
    let agent = net.life.said("began").trim().to_owned();
    eventually("another goes on with it", || {
        two.run(&["run", "--remote", "origin", "--lease", "1m"]);
        (state(&net, "solo") == "idle" && rests(&net, &["solo"])).then_some(())
    });
    assert_ne!(hangs.done().code, Some(0));
    assert!(!crate::support::life::lives(&agent), "its agent is gone with the lease");
    let calls = net.life.said("calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.len(), 3, "{calls:?}");
    assert!(calls[1..].iter().all(|call| call.contains(&format!("resume {SESSION}"))), "{calls:?}");
    assert_eq!(net.life.said("prompts").matches("> second").count(), 2, "what came was told to both");
    let done = net.git(&["log", "--format=%s", "--grep=dwp-origin-state: turn", "flow/play/solo"]);
    assert!(done.contains("Done."), "{done}");
    assert_eq!(
        net.show("flow/play/solo", "file").matches("more").count(),
        2,
        "the work of one of them is there"
    );
}

/// N6: two change one line: the orchestrator is told the paths in its prompt, and resolves it with plain Git in its turn.
#[test]
fn a_conflict_is_told_in_the_prompt_and_resolved_in_the_turn() {
    let life = Life::new(&[("turn", REAL), ("route", stage::ROUTE)]);
    life.flow(&["new", "play", "--mode", "interactive"]).expect(0);
    for alias in ["lead", "one", "two"] {
        let add = [
            "node",
            "add",
            "play",
            "--label",
            alias,
            "--alias",
            alias,
            "--role",
            "r",
            "--provider",
            "custom",
        ];
        life.flow(&add).expect(0);
    }
    life.flow(&["edge", "add", "play", "lead", "one"]).expect(0);
    life.flow(&["edge", "add", "play", "lead", "two"]).expect(0);
    let resolves = "work=$(printf '%s' \"$prompt\" | grep -o 'Its work, [0-9a-f]*, is not in your tree' | cut -d' ' -f3 | tr -d ,)\n\
        if [ -n \"$work\" ]; then echo \"$prompt\" >>\"$T/told\"; git merge -q \"$work\" >/dev/null 2>&1\n\
        printf 'theirs\\nothers\\n' >file; git add file; git commit -qm both; fi";
    agent_of(
        &life,
        &format!(
            "read -r prompt; case ${{AYNIG_BRANCH##*/}} in\n\
             lead) {resolves}\nif mkdir \"$T/once\" 2>/dev/null; then {}; else {}; fi ;;\n\
             one) echo theirs >file; {} ;;\n*) echo others >file; {} ;;\nesac",
            handing("Handing on.", &[("one", "a"), ("two", "b")]),
            says("Merged."),
            handing("Done.", &[("lead", "mine")]),
            handing("Done.", &[("lead", "mine too")]),
        ),
    );
    life.flow(&["send", "play", "lead", "-m", "go"]).expect(0);
    life.run(&["run"]).expect(0);
    let told = life.said("told");
    assert!(told.contains("it conflicts in\n- file\nMerge it with git"), "{told}");
    let lead = "flow/play/lead";
    assert_eq!((life.state(lead).as_str(), life.show(lead, "file").as_str()), ("idle", "theirs\nothers"));
    for node in ["one", "two"] {
        let work = life.git(&[
            "log",
            "-1",
            "--format=%H",
            "--grep=dwp-origin-state: turn",
            &format!("flow/play/{node}"),
        ]);
        life.git(&["merge-base", "--is-ancestor", &work, lead]);
    }
}
