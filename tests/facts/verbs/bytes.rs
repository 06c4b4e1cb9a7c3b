//! What `--json` prints: which keys there are, in which order, and how values are written.
//!
//! A value that differs from run to run is replaced by its kind.

use crate::verbs::rig::Rig;
use serde_json::{Value, json};

/// Keys whose values differ from run to run.
const VARYING: [&str; 14] = [
    "commit",
    "committed",
    "date",
    "run_id",
    "runner_id",
    "trigger",
    "attempt",
    "body",
    "parents",
    "trailers",
    "seconds",
    "stdout_log",
    "stderr_log",
    "name",
];

/// One printed line with such values replaced. A line is written as compactly as JSON may be.
fn plain(line: &str) -> String {
    let mut object: Value = serde_json::from_str(line).unwrap();
    assert_eq!(object.to_string(), line);
    for (key, value) in object.as_object_mut().unwrap().iter_mut().filter(|(_, value)| !value.is_null()) {
        if VARYING.contains(&key.as_str()) {
            *value = match value {
                Value::Number(_) => json!(0),
                Value::Array(_) => json!([]),
                _ => json!("~"),
            };
        }
    }
    object.to_string()
}

impl Rig {
    #[track_caller]
    fn prints(&self, args: &[&str], want: &[&str]) {
        let said = self.aynig(args);
        let lines: Vec<String> = said.out.lines().map(plain).collect();
        assert_eq!(lines, want, "{args:?}: {}", said.err);
    }
}

#[test]
fn status_prints_these_keys() {
    let rig = Rig::new();
    rig.set("work", "fail");
    let ready = r#"{"schema":"aynig.status/1","branch":"work","commit":"~","committed":0,"subject":"chore: set fail","state":"fail","standing":"ready","why":null,"command":"command/fail","origin_state":null,"run_id":null,"runner_id":null,"trigger":null,"seconds_left":null,"began":null,"malformed":false,"attempt":null,"hop":0,"dialect":"dwp","max_hops":64,"trusted":true,"pending_seconds":null,"busy":null,"progress":null,"last_line":null,"group":"ready","questions":[],"paused":[]}"#;
    rig.prints(&["status", "--json", "work"], &[ready]);
    rig.aynig(&["tick", "work"]).expect(1);
    let stalled = r#"{"schema":"aynig.status/1","branch":"work","commit":"~","committed":0,"subject":"aynig: fail stalled: exit 3","state":"stalled","standing":"waits","why":"exit 3","command":null,"origin_state":"fail","run_id":"~","runner_id":null,"trigger":"~","seconds_left":null,"began":null,"malformed":false,"attempt":"~","hop":1,"dialect":"dwp","max_hops":64,"trusted":true,"pending_seconds":null,"busy":null,"progress":null,"last_line":null,"group":"stalled","questions":[],"paused":[]}"#;
    rig.prints(&["status", "--json", "work"], &[stalled]);
}

#[test]
fn events_print_these_keys() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let done = r#"{"schema":"aynig.events/1","branch":"work","commit":"~","committed":0,"date":"~","state":"done","valid":true,"subject":"chore: set done","body":"~","run_id":"~","runner_id":null,"trigger":"~","origin_state":"ok","hop":1,"dialect":"dwp","parents":[],"trailers":[],"seconds":0}"#;
    let set = r#"{"schema":"aynig.events/1","branch":"work","commit":"~","committed":0,"date":"~","state":"ok","valid":true,"subject":"chore: set ok","body":"~","run_id":null,"runner_id":null,"trigger":null,"origin_state":null,"hop":0,"dialect":"dwp","parents":[],"trailers":[],"seconds":null}"#;
    rig.prints(&["events", "--json", "work"], &[done, set]);
    let event = &rig.json(&["events", "--json", "work", "-n", "1"], 0, "aynig.events/1")[0];
    let trailers = event["trailers"].as_array().unwrap();
    assert_eq!(trailers[0].to_string(), r#"{"key":"dwp-state","value":"done"}"#);
    assert_eq!(event["parents"].as_array().unwrap().len(), 1);
    assert!(event["date"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn wait_prints_these_keys() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let rest = r#"{"schema":"aynig.wait/1","branch":"work","reached":"rest","commit":"~","state":"done","standing":"waits","seconds":0}"#;
    rig.prints(&["wait", "--json", "work"], &[rest]);
}

#[test]
fn tick_prints_these_keys() {
    let rig = Rig::new();
    rig.set("work", "ok");
    let would = r#"{"schema":"aynig.tick/1","branch":"work","exit_code":0,"result":"would-run","state":"ok","command":"command/ok","recovered":[],"notes":[]}"#;
    rig.prints(&["tick", "--json", "-n"], &[would]);
    let ran = r#"{"schema":"aynig.tick/1","branch":"work","exit_code":0,"result":"advanced","state":"ok","next":"done","commit":"~","why":null,"run_id":"~","trigger":"~","exit":"exit 0","seconds":0,"stdout_log":"~","stderr_log":"~","attempt":null,"interrupted_by":null,"recovered":[],"notes":[]}"#;
    rig.prints(&["tick", "--json"], &[ran]);
    let idle = r#"{"schema":"aynig.tick/1","branch":"work","exit_code":0,"result":"idle","reason":"no-command","state":"done","recovered":[],"notes":[]}"#;
    let none = r#"{"schema":"aynig.tick/1","branch":"main","exit_code":0,"result":"idle","reason":"no-state","recovered":[],"notes":[]}"#;
    let missing = r#"{"schema":"aynig.tick/1","branch":"missing","exit_code":128,"result":"missing","recovered":[],"notes":[]}"#;
    rig.prints(&["tick", "--json", "-j", "1", "work", "main", "missing"], &[idle, none, missing]);
    rig.git(&["commit", "-q", "--allow-empty", "-m", "x\n\ndwp-state: a b"]);
    let invalid = r#"{"schema":"aynig.tick/1","branch":"main","exit_code":0,"result":"idle","reason":"invalid-state","state":"a b","why":"only letters, digits, '.', '_', '+', '-' and '/' may occur","recovered":[],"notes":[]}"#;
    rig.prints(&["tick", "--json", "main"], &[invalid]);
    rig.git(&["reset", "-q", "--hard", "HEAD~"]);
    rig.set("bad", "fail");
    let stalled = r#"{"schema":"aynig.tick/1","branch":"bad","exit_code":1,"result":"stalled","state":"fail","next":null,"commit":"~","why":"exit 3","run_id":"~","trigger":"~","exit":"exit 3","seconds":0,"stdout_log":"~","stderr_log":"~","attempt":"~","interrupted_by":null,"recovered":[],"notes":[]}"#;
    rig.prints(&["tick", "--json", "bad"], &[stalled]);
    rig.set("held", "ok");
    rig.aynig(&["set-working", "-b", "held"]).expect(0);
    let leased = r#"{"schema":"aynig.tick/1","branch":"held","exit_code":3,"result":"leased","until":9,"seconds_left":9,"run_id":"~","runner_id":"~","malformed":false,"recovered":[],"notes":[]}"#;
    let line = rig.aynig(&["tick", "--json", "held"]).out;
    let mut object: Value = serde_json::from_str(&plain(line.trim_end())).unwrap();
    (object["until"], object["seconds_left"]) = (json!(9), json!(9));
    assert_eq!(object.to_string(), leased);
    rig.set("hop", "ok");
    rig.git(&["config", "aynig.maxHops", "0"]);
    let limit = r#"{"schema":"aynig.tick/1","branch":"hop","exit_code":0,"result":"idle","reason":"hop-limit","state":"ok","hop":0,"max_hops":0,"recovered":[],"notes":[]}"#;
    rig.prints(&["tick", "--json", "hop"], &[limit]);
}

#[test]
fn changes_print_these_keys() {
    let rig = Rig::new();
    let set = r#"{"schema":"aynig.change/1","branch":"work","state":"fail","commit":"~","run_id":null,"created":true,"overruled":[],"notes":[]}"#;
    rig.prints(&["set-state", "fail", "-b", "work", "--json"], &[set]);
    let working = r#"{"schema":"aynig.change/1","branch":"work","state":"working","commit":"~","run_id":"~","created":false,"overruled":[],"notes":[]}"#;
    rig.prints(&["set-working", "-b", "work", "--json"], &[working]);
}

#[test]
fn gc_and_doctor_print_these_keys() {
    let rig = Rig::new();
    rig.set("work", "ok");
    rig.aynig(&["tick", "work"]).expect(0);
    let slot =
        r#"{"schema":"aynig.gc/1","kind":"slot","name":"~","removed":false,"kept":null,"kept_bytes":null}"#;
    rig.prints(&["gc", "-n", "--json"], &[slot]);
    rig.aynig(&["trust", "--revoke"]).expect(0);
    let trust = r#"{"schema":"aynig.doctor/1","level":"error","subject":"trust","text":"not trusted: nothing runs here until you say which commands may","hint":"git aynig trust"}"#;
    let clock = r#"{"schema":"aynig.doctor/1","level":"ok","subject":"clock","text":"no branch is ahead of it","hint":null}"#;
    let all = rig.aynig(&["doctor", "--json"]).expect(1).out;
    for line in [trust, clock] {
        assert!(all.lines().any(|l| l == line), "{all}");
    }
}
