//! The proofs under `examples/`, run (G11).

#[path = "../../examples/one_turn.rs"]
mod one_turn;
#[path = "../../examples/run_loop.rs"]
mod run_loop;
#[path = "../../examples/to_completion.rs"]
mod to_completion;

use tempfile::tempdir;

#[test]
fn one_turn_is_assigned_staged_and_accepted() {
    one_turn::prove(tempdir().unwrap().path()).unwrap();
}

#[test]
fn a_run_goes_from_plan_to_completion() {
    to_completion::prove(tempdir().unwrap().path()).unwrap();
}

#[test]
fn the_run_loop_drives_the_same_run() {
    run_loop::prove(tempdir().unwrap().path()).unwrap();
}

#[test]
fn proofs_use_the_boundary_alone() {
    for name in ["one_turn", "to_completion", "run_loop"] {
        let path = format!("{}/examples/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        for (at, _) in text.match_indices("aynig::") {
            let rest = &text[at + "aynig::".len()..];
            let uses_boundary =
                rest.starts_with("governed::{") || (name == "run_loop" && rest.starts_with("run_loop::{"));
            assert!(uses_boundary, "{name}: aynig::{}", &rest[..20]);
        }
    }
}
