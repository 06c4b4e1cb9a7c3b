//! What single verbs do, each in a file or folder of its name; `words` and `several` are about all of them.

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
