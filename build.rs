//! How the program is linked, where that counts: a tick is three short processes, and each pays at its start. Nothing is
//! made or fetched here (S24).
//!
//! Of a dynamic program for Linux on x86-64 alone, where it was measured, and tried with lld and with GNU ld; a static one
//! lies where its own flags say.

use std::env::var;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is =
        |name: &str, value: &str| var(name).is_ok_and(|found| found.split(',').any(|part| part == value));
    let is_measured = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64");
    if !is_measured || is("CARGO_CFG_TARGET_FEATURE", "crt-static") {
        return;
    }
    // At a fixed address: the loader would have to correct 19,000 pointers at each start. The linker is told of the
    // program alone, as it could link no library so, and with it no procedural macro.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    // What walks the stack when a program panics is linked in where the linker has it, and one library less is looked for.
    let linker = var("RUSTC_LINKER").unwrap_or_else(|_| "cc".into());
    let asked = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    if asked.is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim_end()).is_absolute()) {
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
