//! What whoever may push, and any agent, can write about a flow: it is told as what it is, and holds nobody up.

use super::stage::Stage;
use crate::support::life::now;
use aynig::contract::event::Event;
use aynig::contract::time::Time;
use aynig::contract::words::Mode;
use serde_json::json;

/// The first second of the year 9999.
const FAR: u64 = 253_370_764_800;
const FAR_TEXT: &str = "9999-01-01T00:00:00.000Z";

fn stage() -> Stage {
    Stage::new(Mode::Interactive, &[("lead", "orchestrator"), ("one", "implementer")])
}

fn count(events: &[Event], word: &str) -> usize {
    events.iter().filter(|event| event.body.word() == word).count()
}

/// N13: what is dated far ahead is told as of now, and what comes after it as of when it was.
#[test]
fn a_day_that_is_yet_to_come_is_no_event_s() {
    let stage = stage();
    let (life, branch) = (&stage.life, stage.branch("one"));
    let body = life.body(&branch);
    life.event_at(&branch, &body, Some(FAR));
    let flow = format!("refs/aynig/flows/{}", stage.flow.run.id);
    let far = life
        .repo
        .command("git")
        .env("GIT_COMMITTER_DATE", format!("@{FAR} +0000"))
        .args(["commit-tree", "-p", &flow, &format!("{flow}^{{tree}}"), "-m", "flow: nothing"])
        .output()
        .unwrap();
    life.git(&["update-ref", &flow, String::from_utf8(far.stdout).unwrap().trim()]);
    let line = json!({"type": "message.assistant.final", "ts": FAR_TEXT, "content": "x"});
    stage.turn("lead", 1, &format!("echo '{line}' >>\"$AYNIG_EVENTS\""), &[], &[]);
    // Its id begins with its milliseconds.
    let id = format!("{:012x}", FAR * 1000);
    let id = format!("{}-{}-7000-8000-000000000001", &id[..8], &id[8..]);
    life.run(&["send", &stage.branch("lead"), "-m", "go", "--id", &id, "--no-tick"]).expect(0);
    stage.go().expect(0);
    let events = stage.events();
    let last = Time::from_seconds(i64::try_from(now()).unwrap() + 3600);
    let late: Vec<&Event> = events.iter().filter(|event| event.ts > last).collect();
    assert!(late.is_empty(), "{late:#?}");
    assert!(stage.run().updated_at <= last);
    assert_eq!((count(&events, "message.user"), count(&events, "message.assistant.final")), (1, 1));
}
