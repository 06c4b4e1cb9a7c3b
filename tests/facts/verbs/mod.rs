//! What the verbs that look and clean up show and leave: status, events, logs, gc, doctor, demo.

mod bytes;
mod demo;
mod diff;
mod doctor;
mod events;
mod fan;
mod gc;
mod land;
mod logs;
mod manual;
mod misspelt;
mod paste;
mod people;
mod rig;
mod several;
mod shell;
mod status;
mod talk;
mod trust;
mod uninstall;
mod usage;
mod wait;
mod watch;
mod words;
