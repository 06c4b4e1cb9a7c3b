//! `pause` and `resume`: whom a pause holds, whose it is, and what it ended.

use super::DONE;
use crate::support::life::{Life, Running, eventually};

const SLOW: &str = "echo $$ >>\"$T/began\"; while :; do sleep 0.1; done";

/// K50: a pause is a commit that says whom it holds, by whom and why; and it is its maker's to take back.
#[test]
fn a_pause_says_whom_it_holds_and_is_its_makers() {
    let life = Life::new(&[]);
    let [paused] = &life
        .run(&["pause", "topic/*", "refs/heads/x", "-m", "Quota.", "--json"])
        .expect(0)
        .objects("aynig.pause/1")[..]
    else {
        panic!()
    };
    let id = paused["id"].as_str().unwrap();
    assert_eq!(life.said_in("paused"), [id]);
    let trailers =
        life.git(&["log", "-1", "--format=%(trailers:only,unfold)", &format!("refs/aynig/paused/{id}")]);
    assert_eq!(
        trailers.trim_end(),
        "dwp-holder: person ada@example.com\ndwp-paused: topic/*\ndwp-paused: refs/heads/x"
    );
    assert_eq!((&paused["reason"], &paused["patterns"][0]), (&"Quota.".into(), &"topic/*".into()));
    life.repo.assert_sound();
    let eve = |args: &[&str]| {
        let mut call = life.aynig(&["-q"]);
        call.args(args).env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "user.email");
        crate::support::life::done(call.env("GIT_CONFIG_VALUE_0", "eve@example.com").output().unwrap())
    };
    let said = eve(&["pause", "-m", "Mine."]).expect(0).stdout;
    assert!(said.starts_with("every branch is paused ("), "{said}");
    let said = life.run(&["resume"]).expect(0);
    assert!(
        said.stdout.contains(id) && said.stderr.contains("still paused by person eve@example.com: Mine."),
        "{said:?}"
    );
    assert_eq!(life.said_in("paused").len(), 1);
    life.run(&["resume", "--all"]).expect(0);
    assert_eq!(life.said_in("paused"), Vec::<String>::new());
    assert_eq!(life.run(&["resume"]).expect(0).stderr, "nothing of yours is paused\n");
    life.run(&["pause", ""]).expect(129);
    // A pause is taken back by its id, which `status` lists.
    let said = life.run(&["resume", "topic/*"]).expect(129).stderr;
    assert!(said.ends_with("\nhint: git aynig status\n"), "{said}");
}

/// K50, K55: `status` lists what is paused, by whom, since when and why, with the command that takes it back,
/// whichever user asks.
#[test]
fn status_lists_the_pauses_that_stand() {
    let life = Life::new(&[("quick", DONE)]);
    life.event("work", "quick", "");
    life.event("topic/one", "quick", "");
    assert!(!life.run(&["status"]).expect(0).stdout.contains("paused"));
    let made = |args: &[&str]| {
        let made = life.run(&[args, &["--json"]].concat()).expect(0).objects("aynig.pause/1");
        made[0]["id"].as_str().unwrap().to_owned()
    };
    let (one, all) = (made(&["pause", "topic/*", "-m", "Quota.\n\nMore."]), made(&["pause"]));
    let lines = |args: &[&str]| {
        let text = life.run(&[&["status"], args].concat()).expect(0).stdout;
        let lines: Vec<String> =
            text.lines().filter(|line| line.starts_with("paused")).map(str::to_owned).collect();
        lines
    };
    let shown = lines(&[]);
    let [first, second] = &shown[..] else { panic!("{shown:?}") };
    assert!(first.starts_with("paused for "), "{first}");
    assert!(
        first.ends_with(&format!(" by person ada@example.com: topic/*: Quota.; git aynig resume {one}")),
        "{first}"
    );
    assert!(
        second.ends_with(&format!(" by person ada@example.com: every branch; git aynig resume {all}")),
        "{second}"
    );
    // Of a branch that is named those that hold it.
    assert_eq!((lines(&["work"]).len(), lines(&["topic/one"]).len()), (1, 2));
    let object = |branch: &str| {
        life.run(&["status", "--json", branch]).expect(0).objects("aynig.status/1")[0]["paused"].clone()
    };
    let held = object("topic/one");
    assert_eq!((held[0]["id"].as_str(), held[1]["id"].as_str()), (Some(&*one), Some(&*all)));
    assert_eq!(
        (&held[0]["holder"], &held[0]["patterns"], &held[0]["reason"]),
        (&"person ada@example.com".into(), &serde_json::json!(["topic/*"]), &"Quota.\n\nMore.".into())
    );
    assert!(held[0]["since"].is_i64(), "{held}");
    assert_eq!(object("work").as_array().unwrap().len(), 1);
    life.run(&["resume", &one, "--no-tick"]).expect(0);
    life.run(&["resume", &all, "--no-tick"]).expect(0);
    assert_eq!((lines(&[]), object("work")), (Vec::new(), serde_json::json!([])));
}

/// K50: `--stop` ends what runs, and `resume` asks for exactly that again.
#[test]
fn what_a_pause_ended_is_asked_for_again_and_nothing_else() {
    let life = Life::new(&[("slow", SLOW), ("quick", DONE)]);
    life.config("aynig.killGrace", "300ms");
    life.config("aynig.jobs", "4");
    let branches = ["a", "topic/b", "topic/c"];
    for branch in branches {
        life.event(branch, "slow", "dwp-ticket: 7\n");
    }
    life.event("topic/d", "quick", "");
    life.tick(&["topic/d"]).expect(0);
    let runs: Vec<Running> = branches.iter().map(|branch| life.start_tick(&[branch])).collect();
    eventually("all run", || (life.said("began").lines().count() == 3).then_some(()));
    let paused = life.run(&["pause", "topic/*", "--stop"]).expect(0);
    assert!(paused.stdout.contains("topic/b: canceled\ntopic/c: canceled\n"), "{paused:?}");
    assert_eq!(
        ["a", "topic/b", "topic/c", "topic/d"].map(|b| life.state(b)),
        ["working", "canceled", "canceled", "done"]
    );
    // What asked them to end was meant for them alone.
    assert_eq!(life.said_in("inbox"), Vec::<String>::new());
    // Who goes on by hand meanwhile is not overruled.
    life.event("topic/c", "other", "");
    let resumed = life.run(&["resume"]).expect(0);
    assert!(
        resumed.stdout.contains("topic/b: asked for again\n") && !resumed.stdout.contains("topic/c:"),
        "{resumed:?}"
    );
    assert_eq!(
        ["a", "topic/b", "topic/c", "topic/d"].map(|b| life.state(b)),
        ["working", "slow", "other", "done"]
    );
    assert_eq!(life.trailer("refs/heads/topic/b", "dwp-ticket").as_deref(), Some("7"));
    life.run(&["cancel", "a"]).expect(0);
    for run in runs {
        run.done();
    }
}

/// K50: where asking again fails, nothing else would know of the run.
#[test]
fn a_pause_stands_until_what_it_ended_was_asked_for_again() {
    let life = Life::new(&[("slow", DONE)]);
    life.config("aynig.killGrace", "300ms");
    life.event("work", "slow", "");
    life.lease("work", "slow", "another", 3600, 0);
    life.run(&["pause", "--stop"]).expect(0);
    assert_eq!(life.state("work"), "canceled");
    let lock = life.path(".git/refs/heads/work.lock");
    std::fs::write(&lock, "").unwrap();
    let said = life.run(&["resume", "--no-tick"]);
    assert!(said.stderr.contains("every branch is still paused by person"), "{said:?}");
    assert_eq!((life.said_in("paused").len(), &*life.state("work")), (1, "canceled"));
    std::fs::remove_file(lock).unwrap();
    let said = life.run(&["resume", "--no-tick"]).expect(0);
    assert!(said.stdout.contains("work: asked for again"), "{said:?}");
    assert_eq!((life.said_in("paused").len(), &*life.state("work")), (0, "slow"));
}

/// K50: a run that is asked for again is not asked to end by what was said to the last one.
#[test]
fn what_a_killed_pause_said_is_taken_away_by_resume() {
    let life = Life::new(&[("slow", DONE)]);
    life.config("aynig.killGrace", "30s");
    life.event("work", "slow", "");
    life.lease("work", "slow", "another", 3600, 0);
    let pause = life.start(&["pause", "--stop"]);
    eventually("it was said", || (life.said_in("inbox").len() == 1).then_some(()));
    drop(pause);
    life.run(&["resume", "--no-tick"]).expect(0);
    assert_eq!((life.said_in("inbox").len(), &*life.state("work")), (0, "working"));
}

/// K50: a command that heeds its inbox ends by itself, and is not canceled.
#[test]
fn a_command_that_is_asked_to_end_may_end_by_itself() {
    let heed = "echo $$ >\"$T/began\"\ngit aynig inbox --follow --kind interrupt --json | { read x; echo \"$x\" >\"$T/heard\"; }\n";
    let life = Life::new(&[("slow", &format!("{heed}{DONE}"))]);
    life.event("work", "slow", "");
    let tick = life.start_tick(&["work"]);
    life.hear("began");
    let paused = life.run(&["pause", "--stop", "-m", "Enough."]).expect(0);
    assert!(paused.stdout.ends_with("work: ended by itself\n"), "{paused:?}");
    tick.done().expect(0);
    assert!(life.said("heard").contains("Enough."));
    assert_eq!(life.state("work"), "done");
    let events = life.git(&["log", "-1", "--format=%P", "work"]);
    let trigger = life.trailer("work", "dwp-trigger").unwrap();
    assert!(!events.is_empty());
    let told = std::fs::read_to_string(life.path(&format!(".aynig/logs/{trigger}.events.jsonl"))).unwrap();
    assert!(
        told.starts_with("{\"type\":\"interrupt\",") || told.contains("\"type\":\"interrupt\""),
        "{told}"
    );
    let resumed = life.run(&["resume"]).expect(0);
    assert!(!resumed.stdout.contains("work:"), "{resumed:?}");
}

/// K50: a ref that is no pause holds every branch, is named with what mends it, and stops no verb.
#[test]
fn a_pause_ref_that_cannot_be_read_holds_and_is_named() {
    let life = Life::new(&[("quick", DONE)]);
    life.event("work", "quick", "");
    let name = "refs/aynig/paused/01890a5d-ac96-774b-bcce-b302099a8057";
    let file = life.path(&format!(".git/{name}"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    life.write("blob", "no commit");
    let blob = life.git(&["hash-object", "-w", "blob"]);
    for content in [blob.trim_end(), "1234567890123456789012345678901234567890", ""] {
        std::fs::write(&file, format!("{content}\n").trim_start()).unwrap();
        let (ticked, _) = life.report(&["work"]);
        assert!(ticked.code != Some(128), "{ticked:?}");
        assert_eq!(life.state("work"), "quick");
        let said = life.run(&["status", "work"]).expect(0);
        assert!(said.stdout.contains("paused by unknown") && said.stdout.contains(name), "{said:?}");
        let judged = life.run(&["doctor"]);
        assert!(!judged.stdout.contains("work:") && !judged.stderr.contains("work:"), "{judged:?}");
        let said = life.run(&["resume", "--all", "--no-tick"]).expect(0);
        if content.is_empty() {
            assert!(said.stderr.contains(&format!("remove the file {name}")), "{said:?}");
            std::fs::remove_file(&file).unwrap();
        }
        assert!(!file.exists(), "{said:?}");
    }
    life.tick(&["work"]).expect(0);
    assert_eq!(life.state("work"), "done");
}

/// A commit of `main`'s tree with this message, as a pusher would make it.
fn pushed(life: &Life, name: &str, message: &str) {
    let commit = life.git(&["commit-tree", "-m", message, "main^{tree}"]);
    life.git(&["update-ref", name, commit.trim()]);
}

/// K50: a pushed pause that names runs it did not end has none of them asked for again.
#[test]
fn what_a_pause_did_not_end_it_does_not_bring_back() {
    let life = Life::new(&[("slow", SLOW), ("fail", "exit 3")]);
    life.config("aynig.killGrace", "300ms");
    let (canceled, failed) = (life.event("canceled", "slow", ""), life.event("failed", "fail", ""));
    let run = life.start_tick(&["canceled"]);
    life.hear("began");
    life.run(&["cancel", "canceled"]).expect(0);
    run.done();
    life.tick(&["failed"]).expect(1);
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let name = format!("refs/aynig/paused/{id}");
    let stopped =
        format!("dwp-stopped: {canceled} refs/heads/canceled\ndwp-stopped: {failed} refs/heads/failed\n");
    pushed(&life, &name, &format!("aynig: pause\n\ndwp-holder: person eve@example.com\n{stopped}"));
    let said = life.run(&["resume", "--all", "--no-tick"]).expect(0);
    assert!(said.stdout.contains(id) && !said.stdout.contains("asked for again"), "{said:?}");
    assert_eq!(["canceled", "failed"].map(|b| life.state(b)), ["canceled", "stalled"]);
    // One that ended it brings it back, and its commit says which.
    life.event("work", "slow", "");
    let run = life.start_tick(&["work"]);
    eventually("it runs", || (life.said("began").lines().count() == 2).then_some(()));
    life.run(&["pause", "work", "--stop"]).expect(0);
    run.done();
    let [paused] = &life.said_in("paused")[..] else { panic!() };
    assert_eq!(life.trailer("refs/heads/work", "dwp-paused-by").as_ref(), Some(paused));
    let said = life.run(&["resume", "--no-tick"]).expect(0);
    assert!(said.stdout.contains("work: asked for again"), "{said:?}");
    assert_eq!(
        (life.state("work").as_str(), life.trailer("refs/heads/work", "dwp-paused-by")),
        ("slow", None)
    );
}

/// K35, K50: where signatures are asked for only a signed pause brings back what it ended.
#[test]
fn a_pause_that_is_not_signed_holds_and_brings_nothing_back() {
    let life = Life::new(&[("slow", SLOW)]);
    life.config("aynig.killGrace", "300ms");
    if !life.sign() {
        return;
    }
    life.run(&["set-state", "slow", "-b", "work", "--no-tick"]).expect(0);
    let run = life.start_tick(&["work"]);
    life.hear("began");
    life.run(&["pause", "--stop"]).expect(0);
    run.done();
    let [id] = &life.said_in("paused")[..] else { panic!() };
    let name = format!("refs/aynig/paused/{id}");
    let signed = life.rev(&name);
    pushed(&life, &name, &life.body(&name));
    assert!(life.run(&["status", "work"]).expect(0).stdout.contains("canceled"));
    let said = life.run(&["resume", "--no-tick"]).expect(0);
    assert!(said.stderr.contains(&format!("is not signed for '{name}'")), "{said:?}");
    assert_eq!(life.state("work"), "canceled");
    life.git(&["update-ref", &name, &signed]);
    let said = life.run(&["resume", "--no-tick"]).expect(0);
    assert!(said.stdout.contains("work: asked for again"), "{said:?}");
    assert_eq!(life.state("work"), "slow");
}

/// K50: what is no pause by its name, and a ref that names another, hold every branch too, and are named.
#[test]
fn an_odd_name_and_a_symbolic_ref_hold_and_are_named() {
    let life = Life::new(&[("quick", DONE)]);
    life.event("work", "quick", "");
    let (odd, deep) = ("refs/aynig/paused/everything", "refs/aynig/paused/all/of/it");
    let link = "refs/aynig/paused/01890a5d-ac96-774b-bcce-b302099a8057";
    for name in [deep, odd, link] {
        let (mend, by_resume) =
            if name == link { ("symbolic-ref", false) } else { ("update-ref", name == odd) };
        let target = if name == link { "refs/heads/main" } else { "main" };
        life.git(&[mend, name, target]);
        life.tick(&["work"]);
        assert_eq!(life.state("work"), "quick", "{name}");
        let status = life.run(&["status", "work"]).expect(0).stdout;
        assert!(status.contains(&format!("git {mend} -d {name}")), "{status}");
        life.run(&["resume", "--all", "--no-tick"]).expect(0);
        assert_eq!(life.run(&["status", "work"]).stdout.contains(name), !by_resume, "{name}");
        if !by_resume {
            life.git(&[mend, "-d", name]);
        }
    }
    life.tick(&["work"]).expect(0);
    assert_eq!(life.state("work"), "done");
}

/// K50: twenty runs at once: nothing is dispatched after `pause` returned, what is dead is recovered all the same, and what
/// was ended is brought back, and nothing else.
#[test]
fn twenty_runs_are_ended_and_exactly_these_come_back() {
    let life = Life::new(&[("slow", SLOW), ("quick", DONE)]);
    life.config("aynig.killGrace", "300ms");
    life.config("aynig.jobs", "20");
    let branches: Vec<String> = (0..20).map(|n| format!("b{n:02}")).collect();
    for branch in &branches {
        life.event(branch, "slow", "");
    }
    let run = life.start(&["run"]);
    eventually("all run", || (life.said("began").lines().count() == 20).then_some(()));
    let paused = life.run(&["pause", "--stop"]).expect(0);
    assert_eq!(paused.stdout.matches(": canceled\n").count(), 20, "{paused:?}");
    run.done();
    life.event("late", "quick", "");
    life.event("dead", "slow", "");
    life.lease("dead", "slow", "1b671a64-40d5-491e-99b0-da01ff1f3341", 10, 3600);
    life.run(&["tick"]);
    assert_eq!(["late", "dead"].map(|branch| life.state(branch)), ["quick", "stalled"]);
    assert!(branches.iter().all(|branch| life.state(branch) == "canceled"));
    // These are no ends: who looks is told what brings them back.
    let said = life.run(&["status", "b00"]).expect(0).stdout;
    assert!(said.contains("ended by a pause: git aynig resume asks for it again"), "{said}");
    let object = &life.run(&["status", "--json", "b00"]).expect(0).objects("aynig.status/1")[0];
    assert_eq!(object["group"], "queued");
    assert_eq!(life.said("began").lines().count(), 20);
    let resumed = life.run(&["resume", "--no-tick"]).expect(0);
    assert_eq!(resumed.stdout.matches(": asked for again\n").count(), 20, "{resumed:?}");
    assert!(branches.iter().all(|branch| life.state(branch) == "slow"));
    assert_eq!(["late", "dead"].map(|branch| life.state(branch)), ["quick", "stalled"]);
}
