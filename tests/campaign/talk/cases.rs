//! The verbs that are killed: what is there before, who comes by again, and how that ends.

use super::{Place, World};

const TEXT: &str = "0192f0c1-2345-7abc-8def-0123456789ab";
const WORK: &str = "0192f0c1-2346-7abc-8def-0123456789ab";
/// The message that a run takes by itself.
pub(super) const TAKEN: &str = "0192f0c1-2347-7abc-8def-0123456789ab";

pub(super) const IDLE: &str =
    "echo 'SET_STATE {\"state\":\"idle\",\"trailers\":[\"dwp-accepts: message=rework\"]}'";
pub(super) const HEARD: &str = "grep -o '\"id\":\"[^\"]*' \"$AYNIG_MESSAGES\" | cut -d'\"' -f4 >>\"$T/heard\"; echo \"$AYNIG_RUN_ID\" >>file";
pub(super) const ASKS: &str = "id=$(git aynig ask Which? --choice yes --choice no --json | sed 's/.*\"id\":\"\\([^\"]*\\).*/\\1/')\n\
    echo \"SET_STATE {\\\"state\\\":\\\"waiting\\\",\\\"trailers\\\":[\\\"dwp-question: $id\\\",\\\"dwp-accepts: answer=go\\\"]}\"";

/// One verb that is killed.
pub(super) struct Case {
    pub name: &'static str,
    pub ours: &'static [&'static str],
    /// The branch is a remote's.
    pub remote: bool,
    pub prepare: fn(&World),
    /// What the caller that was cut off does, besides ticking; what is wrong with how that ends.
    pub again: fn(&World) -> Vec<String>,
    /// The messages that the branch has then.
    pub brings: &'static [&'static str],
    /// Where the branch rests.
    pub end: &'static str,
}

const SEND: &[&str] = &["send", "work", "-m", "hello", "--id", TEXT, "--no-tick"];
pub(super) const ANSWER: &[&str] = &["answer", "work", "yes", "--no-tick"];
const APPROVE: &[&str] = &["approve", "work", "--no-tick"];
const STOP: &[&str] = &["pause", "--stop", "-m", "lunch"];

pub(super) const CASES: &[Case] = &[
    Case {
        name: "send",
        ours: SEND,
        remote: false,
        prepare: |world| world.event("idle", "dwp-accepts: message=rework\n"),
        again: |world| world.insists(SEND, &[0]),
        brings: &[TEXT],
        end: "idle",
    },
    Case {
        name: "deliver",
        ours: &["tick", "work"],
        remote: false,
        prepare: two_wait,
        again: |_| Vec::new(),
        brings: &[TEXT, WORK],
        end: "idle",
    },
    Case {
        name: "take",
        ours: &["tick", "work"],
        remote: false,
        prepare: |world| {
            world.event("takes", "");
            world.ok(&["send", "work", "-m", "by the way", "--id", TAKEN, "--no-tick"]);
        },
        again: |_| Vec::new(),
        brings: &[TAKEN],
        end: "idle",
    },
    Case {
        name: "ask",
        ours: &["tick", "work"],
        remote: false,
        prepare: |world| world.event("asks", ""),
        again: |world| {
            let mut bad = world.rests("waiting");
            bad.extend(world.insists(ANSWER, &[0]));
            bad
        },
        brings: &[],
        end: "done",
    },
    Case {
        name: "answer",
        ours: ANSWER,
        remote: false,
        prepare: |world| {
            world.event("asks", "");
            world.ok(&["tick", "work"]);
        },
        again: |world| world.insists(ANSWER, &[0, 3]),
        brings: &[],
        end: "done",
    },
    Case {
        name: "pause",
        ours: &["pause", "-m", "lunch"],
        remote: false,
        prepare: |world| world.event("build", ""),
        again: |world| {
            let mut bad = world.insists(&["pause", "-m", "lunch"], &[0]);
            world.later(&["tick", "work"]);
            if world.state() != "build" {
                bad.push(format!("K50: paused, and it goes on: {}", world.state()));
            }
            bad.extend(world.insists(&["resume", "--all", "--no-tick"], &[0]));
            bad
        },
        brings: &[],
        end: "idle",
    },
    Case {
        name: "resume",
        ours: &["resume", "--no-tick"],
        remote: false,
        prepare: |world| {
            world.event("build", "");
            world.ok(&["pause", "-m", "lunch"]);
        },
        again: |world| world.insists(&["resume", "--all", "--no-tick"], &[0]),
        brings: &[],
        end: "idle",
    },
    Case {
        name: "approve",
        ours: APPROVE,
        remote: false,
        prepare: |world| {
            world.event("asks", "");
            world.ok(&["tick", "work"]);
        },
        again: |world| world.insists(APPROVE, &[0, 3]),
        brings: &[],
        end: "done",
    },
    Case {
        name: "stop",
        ours: STOP,
        remote: false,
        prepare: runs_elsewhere,
        again: |world| {
            let mut bad = world.insists(STOP, &[0]);
            bad.extend(world.insists(&["resume", "--all", "--no-tick"], &[0]));
            bad
        },
        brings: &[],
        end: "idle",
    },
    Case {
        name: "resume-stopped",
        ours: &["resume", "--no-tick"],
        remote: false,
        prepare: |world| {
            runs_elsewhere(world);
            world.ok(STOP);
        },
        again: |world| world.insists(&["resume", "--all", "--no-tick"], &[0]),
        brings: &[],
        end: "idle",
    },
    Case {
        name: "remote-send",
        ours: SEND,
        remote: true,
        prepare: |world| world.event("idle", "dwp-accepts: message=rework\n"),
        again: |world| world.insists(SEND, &[0]),
        brings: &[TEXT],
        end: "idle",
    },
    Case {
        name: "remote-deliver",
        ours: &["tick", "work"],
        remote: true,
        prepare: two_wait,
        again: |_| Vec::new(),
        brings: &[TEXT, WORK],
        end: "idle",
    },
    Case {
        name: "remote-answer",
        ours: ANSWER,
        remote: true,
        prepare: |world| {
            world.event("asks", "");
            world.ok(&["tick", "work"]);
        },
        again: |world| world.insists(ANSWER, &[0, 3]),
        brings: &[],
        end: "done",
    },
];

/// A text and a user's work wait for a head that takes them.
fn two_wait(world: &World) {
    world.event("idle", "dwp-accepts: message=rework\n");
    world.ok(&["send", "work", "-m", "hello", "--id", TEXT, "--no-tick"]);
    world.ok(&["send", "work", "-m", "mine", "--attach", world.theirs(), "--id", WORK, "--no-tick"]);
}

/// Another runner has the branch, and what it runs hears nothing.
fn runs_elsewhere(world: &World) {
    let Place::Here(life) = &world.place else { return };
    life.config("aynig.killGrace", "1s");
    life.event("work", "build", "");
    life.lease("work", "build", "another", 3600, 0);
}
