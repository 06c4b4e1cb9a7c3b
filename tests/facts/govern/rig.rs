//! A governed project on branches: the shipped pack, with its configuration where it counts.

use crate::support::life::{Done, Life};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/govern/.aynig");

/// Puts the pack into the working tree, with its configuration where it counts.
pub fn put_pack(life: &Life, edit: impl FnOnce(&mut Value)) {
    let pack = Path::new(PACK);
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(pack.join("govern/agentxchain.json")).unwrap()).unwrap();
    edit(&mut config);
    life.write("agentxchain.json", &format!("{config:#}\n"));
    for file in ["command/turn/pm", "command/turn/dev", "command/turn/qa", "govern/worker"] {
        let path = format!(".aynig/{file}");
        life.write(&path, &std::fs::read_to_string(pack.join(file)).unwrap());
        std::fs::set_permissions(life.path(&path), PermissionsExt::from_mode(0o755)).unwrap();
    }
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "govern"]);
}

pub fn life(edit: impl FnOnce(&mut Value)) -> Life {
    let life = Life::new(&[]);
    life.config("aynig.commandsFrom", "refs/heads/main");
    put_pack(&life, edit);
    life
}

/// Replaces the worker, on main.
pub fn worker(life: &Life, script: &str) {
    life.write(".aynig/govern/worker", &format!("#!/bin/sh\n{script}\n"));
    life.git(&["commit", "-qam", "worker"]);
}

pub fn govern(life: &Life, args: &[&str]) -> Done {
    life.run(&[&["govern"], args].concat())
}

pub fn show(life: &Life, path: &str) -> String {
    life.git(&["show", &format!("work:{path}")])
}

pub fn state(life: &Life) -> Value {
    serde_json::from_str(&show(life, ".agentxchain/state.json")).unwrap()
}

pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
