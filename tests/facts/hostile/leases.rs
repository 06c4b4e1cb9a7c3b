//! Leases that no runner can believe.

use super::*;

fn lease(seconds: &str) -> Vec<u8> {
    let run = "11111111-1111-4111-8111-111111111111";
    format!(
        "aynig: working\n\ndwp-state: working\ndwp-origin-state: build\ndwp-run-id: {run}\n\
         dwp-runner-id: elsewhere-1\ndwp-lease-seconds: {seconds}\n"
    )
    .into_bytes()
}

/// Ages the note of when a head was first seen.
fn age_seen(dir: &Path, branch: &str, seconds: u64) {
    let name: String = format!("refs/heads/{branch}").bytes().map(|b| format!("{b:02x}")).collect();
    let path = dir.join(".git/aynig/seen").join(name);
    let mut seen: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    seen["at"] = (seen["at"].as_u64().unwrap() - seconds).into();
    std::fs::write(&path, seen.to_string()).unwrap();
}

/// A lease that can't be believed: never taken early, never stuck.
fn observed(date: &str, seconds: &str, length: u64) {
    let world = World::any();
    let dir = repo(&world, &[]);
    let id = world.raw_commit_dated(&dir, "held", date, &lease(seconds));
    for _ in 0..2 {
        let said = world.aynig(&dir, &["tick", "held"]).expect(3);
        assert!(said.err.contains("judged by observation"), "{date} {seconds}: {}", said.err);
        assert_eq!(head(&world, &dir, "held"), id, "{date} {seconds}: taken early");
    }
    age_seen(&dir, "held", length - 60.min(length - 1));
    world.aynig(&dir, &["tick"]).expect(0);
    assert_eq!(head(&world, &dir, "held"), id, "{date} {seconds}: taken early");
    age_seen(&dir, "held", 62);
    let said = world.aynig(&dir, &["tick", "held"]).expect(1);
    assert!(said.out.contains("lease of run"), "{}", said.out);
    assert_eq!(world.states(&dir, "held", &id), ["stalled"], "{date} {seconds}");
}

/// K7: dates that no runner can believe
#[test]
fn leases_with_absurd_dates_are_judged_by_observation() {
    for date in ["4070908800", "99999999999999999999", "-5", "soon", "", "9223372036854775807"] {
        observed(date, "120", 120);
    }
}

/// K7: lengths that no runner can believe stand for 300 s
#[test]
fn leases_with_absurd_lengths_are_judged_by_observation() {
    for seconds in ["0", "-1", "1e9", "9999999999999999999", "abc", "", " ", "120 s", "0x10", "99999999"] {
        observed(&now().to_string(), seconds, 300);
    }
}

/// K7, K8: a date of 1970 is believed: that lease is long over
#[test]
fn a_lease_of_1970_is_recovered_at_once() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let id = world.raw_commit_dated(&dir, "held", "1", &lease("120"));
    world.aynig(&dir, &["tick", "held"]).expect(1);
    assert_eq!(world.states(&dir, "held", &id), ["stalled"]);
    let held = world.raw_commit_dated(&dir, "held", &(now() - 60).to_string(), &lease("120"));
    world.aynig(&dir, &["tick", "held"]).expect(3);
    assert_eq!(head(&world, &dir, "held"), held);
}
