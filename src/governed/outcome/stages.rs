//! The middle stages of validation: whose result it is, what it may have changed, what its evidence shows.

use super::super::config::Authority;
use super::super::json;
use super::{Fault, Object, TurnResult, ValidationInput, Wrongs, paths, wrong};
use serde_json::Value;

/// Checks run, turn, role and runtime, each where the state says what it must be.
pub(super) fn assignment(result: &TurnResult, input: ValidationInput<'_>) -> Wrongs {
    let mut wrongs = Wrongs::new();
    let mut same = |key: &str, wanted: &str| {
        let found = json::text(result.object(), key).unwrap_or_default();
        if !wanted.is_empty() && found != wanted {
            let text = format!("{key} is '{found}', and the turn's is '{wanted}'");
            wrongs.push(wrong(Fault::Mismatch, key, text));
        }
    };
    same("run_id", input.state.run_id().unwrap_or_default());
    match input.turn {
        Some(turn) => {
            same("turn_id", turn.id());
            same("role", turn.role());
            same("runtime_id", turn.runtime());
        }
        None => wrongs.push(wrong(Fault::Mismatch, "turn_id", "no turn is active")),
    }
    wrongs
}

/// Checks that what was changed is what the role may change.
pub(super) fn artifact(result: &TurnResult, input: ValidationInput<'_>) -> Wrongs {
    let mut wrongs = Wrongs::new();
    let role = result.role();
    let authority = input.config.authority(role);
    let (kind, files) = (result.artifact(), result.files_changed());
    if authority == Authority::ReviewOnly {
        for file in files.iter().filter(|file| paths::is_product(file)) {
            let text = format!("role '{role}' only reviews and may not change '{file}'");
            wrongs.push(wrong(Fault::Authority, *file, text));
        }
        if kind != Some("review") {
            let text = format!("role '{role}' only reviews: artifact.type must be review");
            wrongs.push(wrong(Fault::Authority, "artifact.type", text));
        }
    }
    if kind == Some("workspace")
        && authority != Authority::Authoritative
        && authority != Authority::ReviewOnly
    {
        let text = format!("role '{role}' only proposes: artifact.type must not be workspace");
        wrongs.push(wrong(Fault::Authority, "artifact.type", text));
    }
    for file in &files {
        if let Some(reserved) = paths::reserved(file) {
            let text = format!("'{file}' is reserved: no turn may change '{reserved}'");
            wrongs.push(wrong(Fault::ReservedPath, *file, text));
        } else if paths::plain(file).is_none() {
            wrongs.push(wrong(
                Fault::InvalidValue,
                *file,
                format!("'{file}' is not below the project's folder"),
            ));
        }
    }
    let has_product = files.iter().any(|file| paths::is_product(file));
    if kind == Some("review") && authority == Authority::Authoritative && has_product {
        let text = "an artifact that is a review holds no changes of the product: declare a workspace";
        wrongs.push(wrong(Fault::Authority, "artifact.type", text));
    }
    wrongs
}

/// Checks that the evidence is well formed, and that no command of a pass ended otherwise than expected.
pub(super) fn verification(result: &TurnResult, warnings: &mut Vec<String>) -> Wrongs {
    let mut wrongs = Wrongs::new();
    let Some(verification) = result.verification() else { return wrongs };
    let is_pass = result.verification_status() == Some("pass");
    let evidence = result.evidence();
    let mut tell = |place: String, text: String| wrongs.push(wrong(Fault::Evidence, place, text));
    for (at, entry) in evidence.iter().enumerate() {
        let place = format!("verification.machine_evidence[{at}]");
        let Some(entry) = entry.as_object() else {
            tell(place.clone(), format!("{place} must be an object"));
            continue;
        };
        if !json::is_filled(entry.get("command")) {
            tell(place.clone(), format!("{place}.command must be a string that is not blank"));
        }
        let code = entry.get("exit_code").filter(|code| json::is_whole(code));
        let expected = entry.get("expected_exit_code").filter(|code| !code.is_null());
        if code.is_none() || expected.is_some_and(|code| !json::is_whole(code)) {
            tell(place.clone(), format!("{place}.exit_code must be a whole number"));
            continue;
        }
        let number = |code: Option<&Value>| code.and_then(Value::as_f64).unwrap_or(0.0);
        if is_pass && number(code) != number(expected) {
            let (found, wanted) = (number(code), number(expected));
            tell(place.clone(), format!("{place} ended with {found} instead of {wanted}: this is no pass"));
        }
    }
    if json::list(verification, "commands").iter().any(|command| !json::is_filled(Some(command))) {
        tell("verification.commands".to_owned(), "verification.commands must hold commands".to_owned());
    }
    produced(result, verification, &mut tell);
    if is_pass && evidence.is_empty() {
        warnings.push("verification is declared a pass without machine evidence".to_owned());
    }
    wrongs
}

fn produced(result: &TurnResult, verification: &Object, tell: &mut dyn FnMut(String, String)) {
    let declared = result.files_changed();
    let mut seen: Vec<&str> = Vec::new();
    for (at, entry) in json::list(verification, "produced_files").iter().enumerate() {
        let place = format!("verification.produced_files[{at}]");
        let Some(entry) = entry.as_object() else {
            tell(place.clone(), format!("{place} must be an object"));
            continue;
        };
        let path = json::filled(entry, "path").unwrap_or_default();
        let disposition = json::text(entry, "disposition").unwrap_or_default();
        if path.is_empty() || seen.contains(&path) || !["artifact", "ignore"].contains(&disposition) {
            tell(place.clone(), format!("{place} must name another path, to be an artifact or ignored"));
        }
        if disposition == "ignore" && declared.contains(&path) {
            tell(place.clone(), format!("'{path}' is both ignored and declared as changed"));
        }
        seen.push(path);
    }
}
