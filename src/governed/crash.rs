//! Dying between two file operations: the points that [`super::disk`] passes, counted in tests alone.

use std::cell::Cell;

thread_local! {
    /// How many file operations are left before the end; none is counted where it is `None`.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    static PASSED: Cell<u64> = const { Cell::new(0) };
}

/// A file operation is about to happen.
pub(super) fn step() {
    PASSED.set(PASSED.get() + 1);
    let Some(left) = LEFT.get() else { return };
    if left == 0 {
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
        loop {
            std::thread::park();
        }
    }
    LEFT.set(Some(left - 1));
}

#[cfg(test)]
mod tests {
    //! Every operation, killed before each of its file operations, then what the next one finds.

    use super::super::root::Root;
    use super::super::*;
    use super::{LEFT, PASSED};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::os::unix::process::ExitStatusExt;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, SystemTime};

    const TOLD: &str = "AYNIG_TEST_CRASH";

    fn config() -> Config {
        let role = |authority: &str| json!({ "title": "R", "mandate": "M", "write_authority": authority, "runtime_id": "m" });
        let config = json!({
            "schema_version": 4,
            "project": { "id": "crash", "name": "Crash" },
            "roles": { "pm": role("review_only"), "dev": role("authoritative") },
            "runtimes": { "m": { "type": "manual" } },
            "routing": {
                "plan": { "entry_role": "pm", "allowed_next_roles": ["pm", "dev"], "exit_gate": "g", "max_concurrent_turns": 2 },
                "build": { "entry_role": "dev", "allowed_next_roles": ["pm", "dev"], "exit_gate": "g" },
            },
            "gates": { "g": { "requires_human_approval": true } },
            "budget": { "per_turn_max_usd": 1, "per_run_max_usd": 10 },
        });
        Config::from_value(config).unwrap()
    }

    /// A root whose clock and ids are the same in every process, from a given id on.
    fn root(folder: &Path, first: u64) -> Root {
        let next = AtomicU64::new(first);
        Root::new(folder)
            .with_clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000))
            .with_ids(move || next.fetch_add(1, Ordering::Relaxed).to_be_bytes())
    }

    fn stage(folder: &Path, turn: &Turn, state: &State, more: Value) {
        let mut result = json!({
            "schema_version": "1.0",
            "run_id": state.run_id(),
            "turn_id": turn.id(),
            "role": turn.role(),
            "runtime_id": turn.runtime(),
            "status": "completed",
            "summary": "did it",
            "decisions": [{ "id": "DEC-001", "category": "scope", "statement": "s", "rationale": "r", "durability": "repo" }],
            "objections": [{ "id": "OBJ-001", "severity": "low", "statement": "o" }],
            "files_changed": [if turn.role() == "dev" { "src/a.rs" } else { ".planning/a.md" }],
            "verification": { "status": "pass" },
            "artifact": { "type": if turn.role() == "dev" { "workspace" } else { "review" } },
            "proposed_next_role": "dev",
        });
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = folder.join(get_turn_staging_result_path(turn.id()));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, result.to_string()).unwrap();
    }

    type Done = Result<(), GovernedError>;

    /// A scenario: what comes before, and the operation that is killed.
    struct Scenario {
        name: &'static str,
        before: fn(&Root, &Config),
        work: fn(&Root, &Config) -> Done,
    }

    fn begun(root: &Root, config: &Config) {
        init_run(root, config).unwrap();
    }

    fn assigned(root: &Root, config: &Config) {
        begun(root, config);
        let pm = assign_turn(root, config, "pm").unwrap();
        write_dispatch_bundle(root, &pm.state, config, &BundleOptions::default()).unwrap();
        stage(root.folder(), &pm.turn, &pm.state, json!({ "phase_transition_request": "build" }));
    }

    fn paused(root: &Root, config: &Config) {
        assigned(root, config);
        accept_turn(root, config, &AcceptOptions::default()).unwrap();
    }

    fn at_the_end(root: &Root, config: &Config) {
        paused(root, config);
        approve_phase_gate(root, config).unwrap();
        let dev = assign_turn(root, config, "dev").unwrap();
        write_dispatch_bundle(root, &dev.state, config, &BundleOptions::default()).unwrap();
        stage(
            root.folder(),
            &dev.turn,
            &dev.state,
            json!({ "run_completion_request": true, "decisions": [{ "id": "DEC-002", "category": "scope", "statement": "s", "rationale": "r", "overrides": "DEC-001", "durability": "repo" }] }),
        );
    }

    fn conflicting(root: &Root, config: &Config) {
        begun(root, config);
        let pm = assign_turn(root, config, "pm").unwrap();
        let dev = assign_turn(root, config, "dev").unwrap();
        stage(root.folder(), &pm.turn, &pm.state, json!({ "files_changed": [".planning/x.md"] }));
        stage(root.folder(), &dev.turn, &dev.state, json!({ "files_changed": [".planning/x.md"] }));
        accept(root, config, &pm.turn).unwrap();
    }

    fn accept(root: &Root, config: &Config, turn: &Turn) -> Done {
        let turn_id = Some(turn.id().to_owned());
        accept_turn(root, config, &AcceptOptions { turn_id, ..AcceptOptions::default() }).map(drop)
    }

    fn only(root: &Root, config: &Config) -> Turn {
        get_active_turn(&load_state(root, config).unwrap()).unwrap()
    }

    fn escalated(root: &Root, config: &Config) {
        assigned(root, config);
        escalate(root, config, &Escalation { reason: "stuck", ..Escalation::default() }).unwrap();
    }

    fn once_rejected(root: &Root, config: &Config) {
        assigned(root, config);
        reject_turn(root, config, &Rejection::default(), "no").unwrap();
        let turn = only(root, config);
        stage(root.folder(), &turn, &load_state(root, config).unwrap(), json!({}));
    }

    const SCENARIOS: &[Scenario] = &[
        Scenario { name: "init", before: |_, _| {}, work: |r, c| init_run(r, c).map(drop) },
        Scenario { name: "assign", before: begun, work: |r, c| assign_turn(r, c, "dev").map(drop) },
        Scenario {
            name: "bundle",
            before: |r, c| {
                begun(r, c);
                assign_turn(r, c, "dev").unwrap();
            },
            work: |r, c| bundle(r, c),
        },
        Scenario { name: "bundle_again", before: assigned, work: |r, c| bundle(r, c) },
        Scenario { name: "accept", before: assigned, work: |r, c| accept(r, c, &only(r, c)) },
        Scenario { name: "accept_last", before: at_the_end, work: |r, c| accept(r, c, &only(r, c)) },
        Scenario { name: "conflict", before: conflicting, work: |r, c| accept(r, c, &only(r, c)) },
        Scenario {
            name: "reject",
            before: assigned,
            work: |r, c| reject_turn(r, c, &Rejection::default(), "no").map(drop),
        },
        Scenario {
            name: "reject_last",
            before: once_rejected,
            work: |r, c| reject_turn(r, c, &Rejection::default(), "no").map(drop),
        },
        Scenario { name: "approve_phase", before: paused, work: |r, c| approve_phase_gate(r, c).map(drop) },
        Scenario {
            name: "approve_completion",
            before: |r, c| {
                at_the_end(r, c);
                accept(r, c, &only(r, c)).unwrap();
            },
            work: |r, c| approve_completion_gate(r, c).map(drop),
        },
        Scenario {
            name: "block",
            before: begun,
            work: |r, _| {
                mark_run_blocked(
                    r,
                    &Block { blocked_on: "human:x", category: "needs_human", ..Block::default() },
                )
                .map(drop)
            },
        },
        Scenario {
            name: "escalate",
            before: assigned,
            work: |r, c| escalate(r, c, &Escalation { reason: "stuck", ..Escalation::default() }).map(drop),
        },
        Scenario {
            name: "reactivate",
            before: escalated,
            work: |r, c| {
                let state = load_state(r, c)?;
                reactivate_run(r, &state, &Reactivation::default()).map(drop)
            },
        },
        Scenario {
            name: "manifest",
            before: assigned,
            work: |r, c| {
                let turn = only(r, c);
                let of = manifest::Identity { run_id: None, turn_id: turn.id(), role: turn.role() };
                manifest::finalize(r, of).map(drop)
            },
        },
    ];

    fn bundle(root: &Root, config: &Config) -> Done {
        write_dispatch_bundle(root, &load_state(root, config)?, config, &BundleOptions::default()).map(drop)
    }

    /// Every file below a folder, with its bytes.
    fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(next).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
                }
            }
        }
        found
    }

    fn write(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
        for (path, bytes) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }

    /// Does a scenario's work, or only what a restart does, in a process that ends at a step; true if it ended
    /// by itself.
    fn killed_at(step: u64, folder: &Path, scenario: &str) -> bool {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["governed::crash::tests::child", "--exact", "--ignored", "--nocapture"])
            .env(TOLD, format!("{scenario}\n{step}\n{}", folder.display()))
            .output()
            .unwrap();
        if child.status.signal() == Some(9) {
            return false;
        }
        assert!(child.status.success(), "{scenario} at {step}: {child:?}");
        true
    }

    #[test]
    #[ignore = "the process that is killed"]
    fn child() {
        let Ok(told) = std::env::var(TOLD) else { return };
        let mut told = told.splitn(3, '\n');
        let (scenario, step, folder) = (told.next().unwrap(), told.next().unwrap(), told.next().unwrap());
        let (root, config) = (root(Path::new(folder), 1 << 32), config());
        LEFT.set(Some(step.parse().unwrap()));
        match SCENARIOS.iter().find(|known| known.name == scenario) {
            Some(known) => match (known.work)(&root, &config) {
                Ok(()) | Err(GovernedError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            None => drop(acquire_lock(&root).unwrap()),
        }
    }

    /// How many steps a scenario was killed at.
    fn sweep(scenario: &Scenario) -> u64 {
        // Where there is no disk, syncing costs nothing; the steps are the same.
        let memory = Path::new("/dev/shm");
        let scratch =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let config = config();
        let fresh = |name: &str| {
            let folder = scratch.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        };
        let origin = fresh("origin");
        (scenario.before)(&root(&origin, 1), &config);
        let before = files(&origin);
        let whole = fresh("whole");
        write(&whole, &before);
        let done = |folder: &Path| (scenario.work)(&root(folder, 1 << 32), &config);
        assert!(matches!(done(&whole), Ok(()) | Err(GovernedError::Conflict { .. })));
        let after = files(&whole);
        assert_ne!(before, after, "{}", scenario.name);
        for step in 0.. {
            let folder = fresh(&format!("at-{step}"));
            write(&folder, &before);
            if killed_at(step, &folder, scenario.name) {
                assert_eq!(files(&folder), after, "{}, not killed", scenario.name);
                return step;
            }
            // The restart may be killed as well.
            killed_at(step * 5 % 23, &folder, "restart");
            drop(acquire_lock(&root(&folder, 1 << 40)).unwrap());
            let found = files(&folder);
            if found != before {
                assert_eq!(found, after, "{} killed at {step}: neither before nor after", scenario.name);
            } else if step % 4 == 0 {
                assert!(matches!(done(&folder), Ok(()) | Err(GovernedError::Conflict { .. })));
                assert_eq!(files(&folder), after, "{} killed at {step}, done again", scenario.name);
            }
            std::fs::remove_dir_all(&folder).unwrap();
        }
        0
    }

    fn sweep_all(wanted: impl Fn(&str) -> bool) -> u64 {
        let mut all = 0;
        for scenario in SCENARIOS.iter().filter(|scenario| wanted(scenario.name)) {
            let steps = sweep(scenario);
            println!("{}: killed at each of {steps} file operations", scenario.name);
            all += steps;
        }
        all
    }

    #[test]
    fn accepting_is_exactly_once_wherever_it_is_killed() {
        let steps = sweep_all(|name| name.starts_with("accept"));
        assert!(steps >= 100, "{steps}");
    }

    #[test]
    fn every_other_operation_is_whole_or_not_at_all_wherever_it_is_killed() {
        let steps = sweep_all(|name| !name.starts_with("accept"));
        assert!(steps >= 100, "{steps}");
        assert!(PASSED.get() > 0);
    }

    #[test]
    fn a_turn_that_was_accepted_is_not_accepted_again() {
        let scratch = tempfile::tempdir().unwrap();
        let (root, config) = (root(scratch.path(), 1), config());
        assigned(&root, &config);
        let turn = only(&root, &config);
        accept(&root, &config, &turn).unwrap();
        let before = files(scratch.path());
        let again = accept(&root, &config, &turn).unwrap_err();
        assert_eq!(again.code(), Some("not_found"));
        assert_eq!(files(scratch.path()), before);
    }
}
