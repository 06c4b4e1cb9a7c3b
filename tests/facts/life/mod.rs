//! One tick from trigger to outcome: what it does, leaves alone, survives.

mod affinity;
mod arrival;
mod basic;
mod checkout;
mod deliver;
mod disk;
mod in_the_way;
mod inside;
mod keep;
mod killed;
mod lease;
mod linger;
mod many;
mod merge;
mod notices;
mod output;
mod pending;
mod race;
mod settings;
mod silent;
mod slots;
mod submodules;
mod table;
mod told;
mod usage;
mod work;
