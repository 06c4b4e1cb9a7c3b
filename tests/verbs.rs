//! What the verbs that look and clean up show and leave: status, events, logs, gc, doctor, demo.

#[path = "verbs/demo.rs"]
mod demo;
#[path = "verbs/doctor.rs"]
mod doctor;
#[path = "verbs/events.rs"]
mod events;
#[path = "verbs/gc.rs"]
mod gc;
#[path = "verbs/logs.rs"]
mod logs;
#[path = "verbs/manual.rs"]
mod manual;
#[path = "verbs/misspelt.rs"]
mod misspelt;
#[path = "verbs/paste.rs"]
mod paste;
#[path = "verbs/people.rs"]
mod people;
#[path = "verbs/rig.rs"]
mod rig;
#[path = "verbs/status.rs"]
mod status;
mod support;
#[path = "verbs/trust.rs"]
mod trust;
#[path = "verbs/uninstall.rs"]
mod uninstall;
#[path = "verbs/words.rs"]
mod words;
