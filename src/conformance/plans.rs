//! The corpus's operations on configuration, bundles, hooks and the coordinator.

use super::coordinator::{check as coordinator, project};
use super::fixture::{Fixture, filled_config, text_of};
use super::manifest::{self, Identity};
use super::{Actual, NoVerdict};
use crate::governed::config::check::{self, Problem};
use crate::governed::json::{self, Object};
use crate::governed::{HookOptions, HookPhase, run_hooks};
use serde_json::{Value, json};

pub(super) fn config(fixture: &Fixture) -> Value {
    let config = filled_config(fixture.args.get("config"));
    let problems = check::problems(&config, None);
    if problems.is_empty() {
        return json!({ "result": "success", "errors": [] });
    }
    let errors: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let mut actual = json!({ "result": "error", "error_type": "invalid_config", "errors": errors });
    // A reference to something that does not exist says more than a value that is merely wrong.
    let told = problems.iter().find(|problem| !matches!(problem, Problem::Invalid { .. }));
    let mut tell = |key: &str, value: Value| actual[key] = value;
    match told.or(problems.first()) {
        Some(Problem::SchemaVersion { found }) => {
            tell("error_type", json!("schema_version_invalid"));
            tell("expected_version", json!("1.0"));
            tell("actual_version", found.clone());
        }
        Some(Problem::UnknownRole { field, role }) => {
            tell("error_type", json!("undeclared_role_reference"));
            tell("error_field", json!(field));
            tell("referenced_role", json!(role));
        }
        Some(Problem::UnknownRuntime { field, runtime }) => {
            tell("error_type", json!("undeclared_runtime_reference"));
            tell("error_field", json!(field));
            tell("referenced_runtime", json!(runtime));
        }
        Some(Problem::UnknownGate { field, gate }) => {
            tell("error_type", json!("undeclared_gate_reference"));
            tell("error_field", json!(field));
            tell("referenced_gate", json!(gate));
        }
        Some(Problem::Invalid { field, .. }) => tell("error_field", json!(field)),
        None => {}
    }
    actual
}

/// Writes the manifest of the turn's bundle, with what the state knows of the turn.
fn finalized(fixture: &Fixture) -> Result<(String, Value), NoVerdict> {
    let state = fixture.state()?;
    let id = fixture.arg("turn_id").unwrap_or_default().to_owned();
    let turn = state.turn(&id);
    let role = turn.as_ref().map_or("", |turn| turn.role());
    let of = Identity { run_id: state.run_id(), turn_id: &id, role };
    let manifest = manifest::finalize(&fixture.root(), of)?;
    Ok((id, manifest))
}

pub(super) fn verify_manifest(fixture: &Fixture) -> Actual {
    let (id, _) = finalized(fixture)?;
    tamper(fixture, &id)?;
    let (manifest, errors) = manifest::verify(&fixture.root(), &id)?;
    if errors.is_empty() {
        return Ok(json!({
            "result": "success",
            "manifest_valid": true,
            "manifest": manifest,
            "verification_errors": [],
        }));
    }
    Ok(json!({
        "result": "error",
        "error_type": errors[0]["type"],
        "manifest_valid": false,
        "verification_errors": errors,
    }))
}

/// Does to a bundle what the fixture asks for after the manifest was written.
fn tamper(fixture: &Fixture, id: &str) -> std::io::Result<()> {
    fixture.bundle_files("post_finalize_inject")?;
    fixture.bundle_files("post_finalize_tamper")?;
    let place = |turn: &str, file: &str| format!(".agentxchain/dispatch/turns/{turn}/{file}");
    for (turn, files) in json::object(&fixture.setup, "post_finalize_delete").into_iter().flatten() {
        for file in files.as_array().into_iter().flatten().filter_map(Value::as_str) {
            std::fs::remove_file(fixture.folder().join(place(turn, file)))?;
        }
    }
    let manifest = place(id, "MANIFEST.json");
    // The value is true, or a map with the turn in it.
    let gone = fixture.setup.get("post_finalize_delete_manifest");
    if gone.is_some_and(|gone| !gone.is_null() && gone != &Value::Bool(false)) {
        std::fs::remove_file(fixture.folder().join(&manifest))?;
    }
    // The value is a text, a map from turns to texts or to documents, or a document.
    let corrupt = fixture.setup.get("post_finalize_corrupt_manifest").filter(|corrupt| !corrupt.is_null());
    if let Some(corrupt) = corrupt {
        let text = text_of(corrupt.get(id).unwrap_or(corrupt));
        fixture.write(&manifest, text.as_bytes())?;
    }
    Ok(())
}

pub(super) fn inspect_manifest(fixture: &Fixture) -> Actual {
    let (_, manifest) = finalized(fixture)?;
    let files = manifest["files"].as_array().cloned().unwrap_or_default();
    let paths: Vec<&Value> = files.iter().filter_map(|file| file.get("path")).collect();
    let contains_self = paths.iter().any(|path| path.as_str() == Some("MANIFEST.json"));
    Ok(json!({ "result": "success", "manifest_contains_self": contains_self, "file_paths": paths }))
}

pub(super) fn hooks(fixture: &Fixture) -> Actual {
    let state = fixture.state()?;
    let payload = fixture.args.get("payload").cloned().unwrap_or_else(|| json!({}));
    let of = |key: &str| payload.get(key).and_then(Value::as_str).map(str::to_owned);
    let options = HookOptions {
        run_id: of("run_id").or_else(|| state.run_id().map(str::to_owned)),
        turn_id: of("turn_id"),
        ..HookOptions::default()
    };
    // An unknown phase has no hooks.
    let Some(phase) = fixture.arg("phase").and_then(HookPhase::named) else {
        return Ok(
            json!({ "result": "success", "hook_ok": true, "blocked": false, "audit_entry": null, "audit_entries": [] }),
        );
    };
    let report = run_hooks(&fixture.root(), fixture.config.get("hooks"), phase, &payload, &options)?;
    Ok(json!({
        "result": "success",
        "hook_ok": report.ok,
        "blocked": report.blocked,
        "audit_entry": report.results.first(),
        "audit_entries": report.results,
    }))
}

pub(super) fn coordinator_config(fixture: &Fixture) -> Value {
    let config = fixture.setup.get("coordinator_config").or_else(|| fixture.args.get("config"));
    let errors = coordinator::errors(config.unwrap_or(&Value::Null));
    let Some(first) = errors.first() else { return json!({ "result": "success", "errors": [] }) };
    let is_cycle = first.starts_with("workstream_cycle");
    let error_type = if is_cycle { "workstream_cycle" } else { "invalid_coordinator_config" };
    json!({ "result": "error", "error_type": error_type, "errors": errors })
}

pub(super) fn projection(fixture: &Fixture) -> Actual {
    let none = Object::new();
    let config = json::object(&fixture.setup, "coordinator_config").unwrap_or(&none);
    let of = project::Projection {
        repo_id: fixture.arg("repo_id").unwrap_or_default(),
        workstream_id: fixture.arg("workstream_id").unwrap_or_default(),
        turn: json::object(&fixture.args, "accepted_turn").unwrap_or(&none),
    };
    Ok(match project::project(&fixture.root(), config, of)? {
        Ok(done) => json!({
            "result": "success",
            "projection_ref": done.projection_ref,
            "barrier_effects": done.effects,
            "barrier_snapshot": done.barriers,
            "context_invalidations": done.context_invalidations,
        }),
        Err(project::NoProjection::CrossRepoWrite { file }) => json!({
            "result": "error",
            "error_type": "cross_repo_write_violation",
            "error_path": file,
        }),
        Err(
            why @ (project::NoProjection::UnknownRepo
            | project::NoProjection::UnknownWorkstream
            | project::NoProjection::NoTurn),
        ) => json!({ "result": "error", "error_type": "projection_failed", "message": format!("{why:?}") }),
    })
}
