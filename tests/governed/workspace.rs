//! The workspace as Git sees it: baselines, undeclared changes, clean trees.

use crate::rig::{Project, config};
use aynig::governed::*;
use serde_json::json;
use std::process::Command;

fn git(project: &Project, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(project.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn commit(project: &Project) {
    git(project, &["add", "-A"]);
    git(project, &["commit", "-q", "--allow-empty", "-m", "x"]);
}

fn repository() -> Project {
    let mut config = config();
    config["routing"]["plan"]["allowed_next_roles"] = json!(["pm", "dev", "ops", "human"]);
    let project = Project::with(config);
    git(&project, &["init", "-q"]);
    project.write("README.md", "x\n");
    commit(&project);
    init_run(&project.root(), &project.config).unwrap();
    project
}

#[test]
fn what_a_turn_changed_is_observed_and_must_be_declared() {
    let project = repository();
    let dev = project.assign("dev");
    project.write("src/declared.rs", "a");
    project.write("src/näme with blanks.rs", "b");
    std::fs::remove_file(project.path().join("README.md")).unwrap();
    project.stage(&dev, json!({ "files_changed": ["src/declared.rs", "README.md"] }));
    let GovernedError::InvalidResult(validation) = project.accept(&dev).unwrap_err() else { panic!() };
    assert_eq!(validation.stage, Some(Stage::ArtifactObservation));
    assert_eq!(validation.errors, ["'src/näme with blanks.rs' was changed and is not declared"]);
    assert!(project.path().join("src/näme with blanks.rs").exists());
    project
        .stage(&dev, json!({ "files_changed": ["src/declared.rs", "README.md", "src/näme with blanks.rs"] }));
    let accepted = project.accept(&dev).unwrap().accepted.to_value();
    let observed = &accepted["observed_artifact"];
    assert_eq!(observed["files_changed"].as_array().unwrap().len(), 3);
    assert_eq!(observed["file_markers"]["README.md"], "deleted");
    assert_eq!(project.raw_state()["accepted_integration_ref"], "workspace:dirty");
}

#[test]
fn what_a_turn_committed_is_observed_too() {
    let project = repository();
    let dev = project.assign("dev");
    project.write("src/a.rs", "a");
    commit(&project);
    project.stage(&dev, json!({}));
    assert!(matches!(project.accept(&dev), Err(GovernedError::InvalidResult(_))));
    project.stage(&dev, json!({ "files_changed": ["src/a.rs"] }));
    project.accept(&dev).unwrap();
    let reference = project.raw_state()["accepted_integration_ref"].as_str().unwrap().to_owned();
    assert!(reference.starts_with("git:") && reference.len() == 44, "{reference}");
}

#[test]
fn a_role_that_writes_finds_a_clean_workspace() {
    let project = repository();
    project.write("left.txt", "x");
    let error = assign_turn(&project.root(), &project.config, "dev").unwrap_err();
    assert!(
        matches!(error, GovernedError::DirtyWorkspace { ref files } if files == &["left.txt"]),
        "{error}"
    );
    // Who reviews changes nothing, and what was there before is not laid at its door.
    let pm = project.assign("pm");
    project.stage(&pm, json!({}));
    project.accept(&pm).unwrap();
    let pm = project.assign("pm");
    project.write("left.txt", "changed");
    project.stage(&pm, json!({}));
    assert!(matches!(project.accept(&pm), Err(GovernedError::InvalidResult(_))));
}

#[test]
fn a_project_in_a_folder_of_a_repository_sees_that_folder() {
    let outer = tempfile::tempdir().unwrap();
    let project = Project::with(config());
    let folder = outer.path().join("deep/project");
    std::fs::create_dir_all(&folder).unwrap();
    let git = |args: &[&str]| {
        assert!(Command::new("git").args(args).current_dir(outer.path()).status().unwrap().success())
    };
    git(&["init", "-q"]);
    std::fs::write(outer.path().join("outside.txt"), "x").unwrap();
    let root = Root::new(&folder).with_sync(false);
    init_run(&root, &project.config).unwrap();
    let turn = assign_turn(&root, &project.config, "dev").unwrap().turn;
    assert_eq!(turn.get("baseline").unwrap()["kind"], "git_worktree");
    assert_eq!(turn.get("baseline").unwrap()["clean"], true);
    assert!(turn.get("baseline").unwrap()["head_ref"].is_null());
}

/// G12: what a rejected attempt changed is still the turn's own.
#[test]
fn the_next_attempt_answers_for_what_the_last_one_left() {
    let project = repository();
    let review = project.assign("pm");
    project.write("src/smuggled.rs", "x");
    commit(&project);
    project.stage(&review, json!({}));
    let refused = project.accept(&review);
    assert!(matches!(refused, Err(GovernedError::InvalidResult(_))), "{refused:?}");
    let rejection = Rejection { turn_id: Some(review.id().to_owned()), ..Rejection::default() };
    reject_turn(&project.root(), &project.config, &rejection, "no").unwrap();
    project.stage(&review, json!({}));
    let GovernedError::InvalidResult(validation) = project.accept(&review).unwrap_err() else { panic!() };
    assert!(validation.errors[0].contains("src/smuggled.rs"), "{validation:?}");
    git(&project, &["rm", "-q", "src/smuggled.rs"]);
    project.accept(&review).unwrap();
}

/// G12: what others had accepted since is not the turn's.
#[test]
fn the_next_attempt_does_not_answer_for_others() {
    let mut config = config();
    config["routing"]["plan"]["max_concurrent_turns"] = json!(2);
    config["routing"]["plan"]["allowed_next_roles"] = json!(["pm", "dev", "ops", "human"]);
    let project = Project::with(config);
    git(&project, &["init", "-q"]);
    commit(&project);
    init_run(&project.root(), &project.config).unwrap();
    let (dev, ops) = (project.assign("dev"), project.assign("ops"));
    project.write("ops.txt", "x");
    project.stage(&ops, json!({ "files_changed": ["ops.txt"] }));
    project.accept(&ops).unwrap();
    let rejection = Rejection { turn_id: Some(dev.id().to_owned()), ..Rejection::default() };
    reject_turn(&project.root(), &project.config, &rejection, "no").unwrap();
    project.write("dev.txt", "x");
    project.stage(&dev, json!({ "files_changed": ["dev.txt"] }));
    let accepted = project.accept(&dev).unwrap().accepted.to_value();
    assert_eq!(accepted["observed_artifact"]["files_changed"], json!(["dev.txt"]));
}

/// A name that is no text.
fn odd(name: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(name))
}

/// G13: what no result can name is no turn's change: it is refused by name, before a turn and after it, and not
/// taken for another file or for none
#[test]
fn a_file_whose_name_is_no_text_is_refused_by_name() {
    let refused = |error: &GovernedError| {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some("its name is not UTF-8"), "{error}");
        assert!(error.to_string().starts_with("cannot name '"), "{error}");
    };
    let project = repository();
    let file = project.path().join(odd(b"left\xff.txt"));
    std::fs::write(&file, "before").unwrap();
    // Before: both were "deleted", so whatever a turn made of it was no change.
    refused(&assign_turn(&project.root(), &project.config, "pm").unwrap_err());
    std::fs::remove_file(&file).unwrap();
    let pm = project.assign("pm");
    std::fs::write(&file, "of the turn").unwrap();
    project.stage(&pm, json!({}));
    refused(&project.accept(&pm).unwrap_err());
    commit(&project);
    refused(&project.accept(&pm).unwrap_err());
    git(&project, &["rm", "-q", "left*"]);
    commit(&project);
    project.accept(&pm).unwrap();
}

/// The same where the folder above is one: what is changed below is seen all the same.
#[test]
fn a_project_below_a_folder_whose_name_is_no_text_is_seen() {
    let outer = tempfile::tempdir().unwrap();
    let project = Project::with(config());
    let folder = outer.path().join(odd(b"de\xffp")).join("project");
    std::fs::create_dir_all(&folder).unwrap();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(outer.path()).status().unwrap().success());
    let root = Root::new(&folder).with_sync(false);
    init_run(&root, &project.config).unwrap();
    std::fs::write(folder.join("left.txt"), "x").unwrap();
    let error = assign_turn(&root, &project.config, "dev").unwrap_err();
    assert!(
        matches!(error, GovernedError::DirtyWorkspace { ref files } if files == &["left.txt"]),
        "{error}"
    );
}
