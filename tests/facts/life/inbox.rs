//! Inboxes as others may leave them: what cannot be delivered, in whatever number, and what is delivered all the same.

use super::deliver::{heard, id, send};
use crate::support::life::Life;
use aynig::protocol::inbox::{MESSAGES_MAX, MessageId};

const REVIEW: &str = "dwp-accepts: message=rework\n";

/// Refs of the inbox of `work` that hold no message, older than any other.
fn junk(life: &Life, many: u64) -> Vec<String> {
    let (main, id) = (life.rev("main"), |n: u64| MessageId::v7(n, 0, [1; 8]));
    let names = (1..=many).map(|n| format!("refs/aynig/inbox/work/message/{}", id(n)));
    let names: Vec<String> = names.collect();
    let lines: String = names.iter().map(|name| format!("create {name} {main}\n")).collect();
    let file = life.shared().join("refs");
    std::fs::write(&file, lines).unwrap();
    let mut update = life.repo.command("git");
    let input = std::fs::File::open(&file).unwrap();
    assert!(update.args(["update-ref", "--stdin"]).stdin(input).status().unwrap().success());
    names
}

/// K47a: what cannot be delivered is read so many at a time, and ends no other message's way.
#[test]
fn what_cannot_be_delivered_is_read_a_part_at_each_look_and_hides_nothing() {
    let life = Life::new(&[]);
    life.event("work", "review", REVIEW);
    let junk = junk(&life, 1000);
    let named = |report: &serde_json::Value| report["notes"].as_array().unwrap().len();
    let (_, report) = life.report(&["work"]);
    assert_eq!(named(&report), MESSAGES_MAX);
    let message = id(1);
    let good = send(&life, "work", "message", message, "Read me.", None);
    let mut looks = 0;
    while life.state("work") == "review" {
        let (_, report) = life.report(&["work"]);
        // Who only looks reads on from the same place, and leaves it.
        life.run(&["status", "work"]).expect(0);
        assert!(named(&report) <= MESSAGES_MAX + 1, "{report}");
        looks += 1;
        assert!(looks <= junk.len() / MESSAGES_MAX + 1, "{looks} looks");
    }
    assert_eq!((life.state("work").as_str(), life.try_rev(&good)), ("rework", None));
    assert!(heard(&life, message).is_some());
    let left = life.git(&["for-each-ref", "refs/aynig/inbox/"]);
    assert_eq!(left.lines().count(), junk.len());
    // What is mended behind the place where the last look ended is found when the looks begin again.
    let fixed = junk[10].rsplit('/').next().unwrap();
    life.git(&["update-ref", "-d", &junk[10]]);
    send(&life, "work", "message", fixed.parse().unwrap(), "Me too.", None);
    life.event("work", "review", REVIEW);
    for _ in 0..=junk.len() / MESSAGES_MAX {
        life.tick(&["work"]);
    }
    assert_eq!(life.state("work"), "rework");
    assert!(heard(&life, fixed.parse().unwrap()).is_some());
}
