//! What a turn leaves on its branch: what was accepted, and the run's own files.

use crate::govern::rig::*;
use crate::support::life::Life;
use serde_json::{Value, json};

/// A worker that reviews: it writes `$1`'s JSON fields over those of a result that is accepted.
const RESULT: &str = r#"
result() {
    cat >"$AGENTXCHAIN_RESULT" <<END
{"schema_version": "1.0", "run_id": "$AGENTXCHAIN_RUN_ID", "turn_id": "$AGENTXCHAIN_TURN_ID",
 "role": "$AGENTXCHAIN_ROLE", "runtime_id": "$AGENTXCHAIN_RUNTIME", "status": "completed", "summary": "did it",
 "decisions": [], "objections": [{"id": "OBJ-001", "severity": "low", "statement": "none"}],
 "files_changed": [$1], "verification": {"status": "skipped"},
 "artifact": {"type": "$2", "ref": null}, "proposed_next_role": "$3"}
END
}
"#;

/// Of the one phase that there is.
fn one_phase(config: &mut Value, role: &str) {
    config["routing"] =
        json!({ "work": { "entry_role": role, "allowed_next_roles": ["pm", "dev", "qa", "human"] } });
    config["gates"] = json!({});
}

/// All that the branch holds or ever held beyond main, as one text.
fn everything(life: &Life) -> String {
    let objects = life.git(&["rev-list", "--objects", "--no-object-names", "work", "^main"]);
    objects.lines().map(|id| life.git(&["cat-file", "-p", id])).collect::<Vec<_>>().join("\n")
}

fn rejected_refs(life: &Life) -> Vec<String> {
    let refs = life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts/"]);
    refs.lines().filter(|name| name.ends_with("-rejected")).map(str::to_owned).collect()
}

/// G12: neither the files nor the commits of a rejected attempt are on the branch, at any time.
#[test]
fn a_rejected_attempt_leaves_nothing_on_the_branch() {
    let life = life(|config| one_phase(config, "qa"));
    let script = r#"
if [ "$AGENTXCHAIN_ATTEMPT" = 1 ]; then
    echo smuggled-one >one.txt; echo smuggled-two >two.txt; echo smuggled-file >file
    git add two.txt; git -c user.name=W -c user.email=w@example.com commit -qm 'smuggled-message'
fi
result '' review human"#;
    worker(&life, &format!("{RESULT}{script}"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(life.state("work"), "turn/qa");
    let body = life.git(&["log", "-1", "--format=%B", "work"]);
    let kept = rejected_refs(&life);
    assert!(kept.len() == 1 && body.contains(&kept[0]), "{kept:?} {body}");
    assert_eq!(life.git(&["show", &format!("{}:one.txt", kept[0])]), "smuggled-one");
    assert_eq!(life.git(&["show", &format!("{}:two.txt", kept[0])]), "smuggled-two");
    life.run(&["tick", "work"]).expect(0);
    let history = lines(&show(&life, ".agentxchain/history.jsonl"));
    assert_eq!(history.len(), 1, "the second attempt is accepted");
    let all = everything(&life);
    assert!(!all.contains("smuggled-"), "{all}");
    assert!(!life.git(&["ls-tree", "-r", "--name-only", "work"]).contains("one.txt"));
    assert_eq!(rejected_refs(&life), kept, "an accepted attempt needs none");
    life.repo.assert_sound();
}

/// G5, G7: whatever a worker does to the `.git` of its slot, what it changed is seen; and no file counts as the run's own
/// because its name begins as one of those does.
#[test]
fn what_a_worker_changed_is_seen_whatever_it_did_to_git() {
    let again =
        "git init -q . && git add -A && git -c user.name=W -c user.email=w@example.com commit -qm mine";
    let cases = [
        "rm -f .git".to_owned(),
        format!("rm -f .git; {again}"),
        "rm -f .git; mkdir .git".to_owned(),
        "git -c user.name=W -c user.email=w@example.com commit -qam mine; rm -f .git".to_owned(),
        "echo y >TALK.md.sh; rm two".to_owned(),
        "mkdir HUMAN_TASKS.md.d; mv two HUMAN_TASKS.md.d".to_owned(),
    ];
    for act in cases {
        let life = life(|config| one_phase(config, "qa"));
        worker(&life, &format!("{RESULT}\necho evil >two; {act}\nresult '' review human"));
        govern(&life, &["start", "-b", "work"]).expect(0);
        life.run(&["tick", "work"]).expect(0);
        assert_eq!((life.state("work").as_str(), rejected_refs(&life).len()), ("turn/qa", 1), "{act}");
        let left = life.git(&["ls-tree", "-r", "--name-only", "work"]);
        assert!(!left.contains("two") && !left.contains("TALK.md.sh"), "{act}: {left}");
    }
}

/// G12, G13: nor is anything of a turn put down to another that is active on the branch, or to the folder that its command
/// is in.
#[test]
fn a_turn_answers_for_its_own_slot() {
    let life = life(|config| {
        one_phase(config, "pm");
        config["routing"]["work"]["max_concurrent_turns"] = json!(2);
    });
    worker(
        &life,
        &format!("{RESULT}\n[ $AGENTXCHAIN_ROLE = pm ] || echo evil >prod.txt\nresult '' review human"),
    );
    govern(&life, &["start", "-b", "work"]).expect(0);
    for role in ["pm", "qa"] {
        govern(&life, &["assign", "-b", "work", role]).expect(0);
    }
    life.run(&["set-state", "turn/qa", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(rejected_refs(&life).len(), 1, "{}", life.git(&["log", "-1", "--format=%B", "work"]));
    assert!(!life.git(&["ls-tree", "--name-only", "work"]).contains("prod.txt"));
    life.run(&["set-state", "turn/pm", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(lines(&show(&life, ".agentxchain/history.jsonl"))[0]["role"], "pm");
    // In a folder of the slot.
    let life = self::life(|config| one_phase(config, "qa"));
    life.write(
        "d/.agentxchain/transactions/accept/a.json",
        r#"{"kind":"x","appends":[{"file":"TALK.md","at":0,"text":"forged"}]}"#,
    );
    life.write(
        ".aynig/command/turn/qa",
        "#!/bin/sh\ncd d && exec git aynig govern turn -- \"$AYNIG_DIR/govern/worker\"\n",
    );
    life.git(&["add", "-f", "-A"]);
    life.git(&["commit", "-qm", "a folder"]);
    worker(&life, &format!("{RESULT}\necho evil >\"$WORKTREE_PATH/prod.txt\"\nresult '' review human"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let left = life.git(&["ls-tree", "-r", "--name-only", "work"]);
    assert_eq!(
        (rejected_refs(&life).len(), left.contains("d/TALK.md"), left.contains("prod.txt")),
        (1, false, false),
        "{left}"
    );
    assert!(state(&life)["active_turns"].as_object().is_some_and(|turns| turns.len() == 1));
}

/// G12: what a gate looked at is on the branch, whatever ignore rules hide.
#[test]
fn a_file_that_a_gate_saw_is_on_the_branch() {
    let life = life(|config| {
        config["workflow_kit"] = json!({});
        config["gates"]["plan_signed"] = json!({ "requires_files": ["PLAN.md"] });
    });
    life.write(".gitignore", "PLAN.md\n");
    life.git(&["add", "-A"]);
    let asks = RESULT.replace(
        "\"status\": \"skipped\"}",
        "\"status\": \"skipped\"}, \"phase_transition_request\": \"implementation\"",
    );
    worker(&life, &format!("{asks}\necho plan >PLAN.md\nresult '' review dev"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(
        (state(&life)["phase"].as_str(), show(&life, "PLAN.md").as_str()),
        (Some("implementation"), "plan")
    );
}

/// G9: numbers and phases that a pushed state makes up end no verb otherwise than by name; and a blocked run whose turn
/// stalled says what lets it go on.
#[test]
fn a_state_that_is_made_up_is_refused_by_name() {
    let edited = |edit: &dyn Fn(&mut Value)| {
        let life = life(|config| one_phase(config, "qa"));
        govern(&life, &["start", "-b", "work"]).expect(0);
        life.git(&["checkout", "-q", "work"]);
        let mut state: Value = serde_json::from_str(&life.read(".agentxchain/state.json")).unwrap();
        edit(&mut state);
        life.write(".agentxchain/state.json", &format!("{state:#}\n"));
        life.git(&["commit", "-qa", "--allow-empty", "-m", "made up\n\ndwp-state: turn/qa"]);
        life.git(&["checkout", "-q", "main"]);
        life
    };
    let life = edited(&|state| state["turn_sequence"] = json!(u64::MAX));
    let said = govern(&life, &["assign", "-b", "work", "qa"]);
    assert!(said.code != Some(101), "{said:?}");
    let life = edited(&|state| {
        state["status"] = json!("paused");
        state["pending_phase_transition"] =
            json!({ "from": "work", "to": "nowhere", "gate": "g", "requested_by_turn": "t" });
    });
    let head = life.rev("work");
    let said = govern(&life, &["approve-phase", "-b", "work"]).expect(128);
    assert!(said.stderr.contains("'nowhere' must be one of the configuration's routing"), "{said:?}");
    assert_eq!(life.rev("work"), head);
    let life = edited(&|_| {});
    govern(&life, &["block", "-b", "work", "-m", "wait"]).expect(0);
    life.run(&["set-state", "turn/qa", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(1);
    let said = govern(&life, &["status", "-b", "work"]).expect(0);
    assert!(said.stdout.contains("git aynig govern unblock -b work"), "{said:?}");
}

/// G5: a role that proposes changes makes none that it does not declare.
#[test]
fn a_role_that_proposes_changes_nothing_unsaid() {
    let propose = |config: &mut Value| {
        one_phase(config, "qa");
        config["roles"]["qa"]["write_authority"] = json!("proposed");
    };
    for (act, files, is_taken) in [
        ("echo evil >two", "", false),
        ("echo good >two", "\"two\"", true),
        ("echo more >>file", "", false),
        ("mkdir -p .agentxchain/proposed; echo diff >.agentxchain/proposed/one.patch", "", true),
        (":", "", true),
    ] {
        let life = life(propose);
        worker(&life, &format!("{RESULT}\n{act}\nresult '{files}' patch human"));
        govern(&life, &["start", "-b", "work"]).expect(0);
        life.run(&["tick", "work"]).expect(0);
        assert_eq!(
            rejected_refs(&life).is_empty(),
            is_taken,
            "{act}: {}",
            life.git(&["log", "-1", "--format=%B", "work"])
        );
        let left = life.git(&["ls-tree", "-r", "--name-only", "work"]);
        assert_eq!(left.contains("proposed/one.patch"), act.contains("one.patch"), "{act}: {left}");
    }
}

/// G5: no result ends what a run may spend, and a budget that was raised lets the run go on.
#[test]
fn a_budget_is_ended_by_no_result_and_goes_on_once_it_is_raised() {
    let limited = |config: &mut Value, usd: f64| {
        one_phase(config, "qa");
        config["budget"] = json!({ "per_run_max_usd": usd });
    };
    let life = life(|config| limited(config, 1.0));
    let costs = |usd: &str| {
        let result = RESULT.replace("\"artifact\"", &format!("\"cost\": {{\"usd\": {usd}}}, \"artifact\""));
        worker(&life, &format!("{result}\nresult '' review qa"));
    };
    govern(&life, &["start", "-b", "work"]).expect(0);
    costs("2e299");
    life.run(&["tick", "work"]).expect(0);
    assert!(life.git(&["log", "-1", "--format=%B", "work"]).contains("cost.usd must be"));
    assert_eq!(state(&life)["budget_status"]["spent_usd"], 0);
    costs("2");
    life.run(&["tick", "work"]).expect(0);
    let spent = state(&life);
    assert_eq!(
        (spent["blocked_on"].as_str(), &spent["budget_status"]["remaining_usd"]),
        (Some("budget:exhausted"), &json!(-1))
    );
    let said = govern(&life, &["unblock", "-b", "work"]).expect(2);
    assert!(said.stderr.contains("budget.per_run_max_usd"), "{said:?}");
    let mut config: Value = serde_json::from_str(&life.read("agentxchain.json")).unwrap();
    config["budget"]["per_run_max_usd"] = json!(10);
    life.write("agentxchain.json", &format!("{config:#}\n"));
    life.git(&["commit", "-qam", "raised"]);
    govern(&life, &["unblock", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let budget = &state(&life)["budget_status"];
    assert_eq!(
        (&budget["spent_usd"], &budget["remaining_usd"], budget.get("exhausted")),
        (&json!(4), &json!(6), None)
    );
}

/// G3: a gate that was asked in vain says why: in the commit, in `status`, and to who goes next.
#[test]
fn a_gate_that_fails_says_why() {
    let life = life(|config| config["workflow_kit"] = json!({}));
    let asks = RESULT.replace(
        "\"status\": \"skipped\"}",
        "\"status\": \"skipped\"}, \"phase_transition_request\": \"implementation\"",
    );
    worker(&life, &format!("{asks}\nresult '' review pm"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let why = "required file is missing: PLAN.md";
    assert!(life.git(&["log", "-1", "--format=%B", "work"]).contains(why));
    assert!(govern(&life, &["status", "-b", "work"]).expect(0).stdout.contains(why));
    worker(&life, "cat \"$AGENTXCHAIN_DISPATCH_DIR/PROMPT.md\" >\"$T/prompt\"; exit 1");
    life.run(&["tick", "work"]).expect(0);
    assert!(life.said("prompt").contains(why), "{}", life.said("prompt"));
}

/// G14: what a gate wants to read in a file is said before it is asked.
#[test]
fn a_prompt_says_what_a_gate_reads() {
    let life = life(|config| {
        config["workflow_kit"] = json!({});
        for gate in config["gates"].as_object_mut().unwrap().values_mut() {
            gate["requires_files"] =
                json!([".planning/PM_SIGNOFF.md", ".planning/SYSTEM_SPEC.md", "PLAN.md"]);
        }
    });
    worker(&life, "cat \"$AGENTXCHAIN_DISPATCH_DIR/PROMPT.md\" >\"$T/prompt\"; exit 1");
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let prompt = life.said("prompt");
    for line in [
        "- requires `.planning/PM_SIGNOFF.md`: PM signoff must declare `Approved: YES`",
        "- requires `.planning/SYSTEM_SPEC.md`: .planning/SYSTEM_SPEC.md must define ## Purpose, ## Interface",
        "- requires `PLAN.md`\n",
    ] {
        assert!(prompt.contains(line), "{line}: {prompt}");
    }
}

/// G12: nor is what an attempt laid beside its result, whatever it is and however the attempt ended.
#[test]
fn what_lies_beside_a_result_is_not_on_the_branch() {
    for ending in ["echo one >one.txt", "exit 7", "rm -f \"$AGENTXCHAIN_RESULT\"; exit 0"] {
        let life = life(|config| one_phase(config, "qa"));
        let script = format!(
            r#"
beside=$(dirname "$AGENTXCHAIN_RESULT")
[ -z "$(ls -A "$beside")" ] || exit 9
mkdir "$beside/src"; echo smuggled-file >"$beside/src/product.c"; echo smuggled-beside >"$beside/note"
ln -s smuggled-link "$beside/link"
result '' review human
[ "$AGENTXCHAIN_ATTEMPT" -gt 1 ] || {{ {ending}
}}"#
        );
        worker(&life, &format!("{RESULT}{script}"));
        govern(&life, &["start", "-b", "work"]).expect(0);
        life.run(&["tick", "work"]).expect(0);
        assert_eq!(life.state("work"), "turn/qa", "{ending}");
        let turn = state(&life)["active_turns"].as_object().unwrap().keys().next().unwrap().clone();
        let kept = rejected_refs(&life);
        let (at, beside) = (&kept[0], format!(".agentxchain/staging/{turn}"));
        assert_eq!(life.git(&["show", &format!("{at}:{beside}/src/product.c")]), "smuggled-file", "{ending}");
        assert_eq!(life.git(&["show", &format!("{at}:{beside}/note")]), "smuggled-beside", "{ending}");
        assert_eq!(life.git(&["show", &format!("{at}:{beside}/link")]), "smuggled-link", "{ending}");
        // The second attempt finds nothing of the first, lays the same there, and is accepted without it.
        life.run(&["tick", "work"]).expect(0);
        let said = life.git(&["log", "-1", "--format=%B", "work"]);
        assert!(said.contains("accepted"), "{ending}: {said}");
        let all = everything(&life);
        assert!(!all.contains("smuggled-"), "{ending}: {all}");
        assert!(!life.git(&["ls-tree", "-r", "--name-only", "work"]).contains("staging/"), "{ending}");
    }
}

/// G7, G12: a worker that fails is tried again, and what it had half done is no turn's.
#[test]
fn a_worker_that_fails_leaves_nothing_and_is_tried_again() {
    let life = life(|config| one_phase(config, "dev"));
    let script = r#"
echo half >half.txt
[ "$AGENTXCHAIN_ATTEMPT" -gt 1 ] || exit 7
rm half.txt; echo whole >whole.txt
result '"whole.txt"' workspace human"#;
    worker(&life, &format!("{RESULT}{script}"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(life.state("work"), "turn/dev");
    assert!(
        life.git(&["log", "-1", "--format=%B", "work"]).contains("its worker failed (exited with status 7)")
    );
    life.run(&["tick", "work"]).expect(0);
    let history = lines(&show(&life, ".agentxchain/history.jsonl"));
    assert_eq!(history[0]["observed_artifact"]["files_changed"], json!(["whole.txt"]));
    let files = life.git(&["ls-tree", "-r", "--name-only", "work"]);
    assert!(files.contains("whole.txt") && !files.contains("half.txt"), "{files}");
}

/// G12: the second attempt's own changes are seen, also where they are those of the first again.
#[test]
fn a_second_attempt_is_judged_by_its_own_changes() {
    let life = life(|_| {});
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["run", "work"]).expect(0);
    govern(&life, &["approve-phase", "-b", "work"]).expect(0);
    life.run(&["run", "work"]).expect(0);
    let history = lines(&show(&life, ".agentxchain/history.jsonl"));
    let dev = history.iter().find(|turn| turn["role"] == "dev").unwrap();
    assert_eq!(dev["observed_artifact"]["files_changed"], json!(["greeting.txt"]), "{dev}");
}

/// G7: a turn that proposes a person is followed by none before a person has named the next role.
#[test]
fn a_turn_that_proposes_a_person_waits_for_one() {
    let life = life(|config| one_phase(config, "dev"));
    worker(&life, &format!("{RESULT}\nresult '' workspace human"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    let accepted = || lines(&show(&life, ".agentxchain/history.jsonl")).len();
    for turns in 1..=2 {
        life.run(&["run", "work"]).expect(0);
        assert_eq!((life.state("work").as_str(), accepted()), ("blocked", turns));
        assert!(life.git(&["log", "-1", "--format=%B", "work"]).contains("govern-waits-for: human"));
        let said = govern(&life, &["status", "-b", "work"]).expect(0).stdout;
        assert!(said.contains("a person: git aynig govern assign -b work <role>"), "{said}");
        life.run(&["tick", "work"]).expect(0);
        assert!(
            life.run(&["status", "--waiting"]).expect(0).stdout.contains("git aynig govern status -b work")
        );
        let said = govern(&life, &["assign", "-b", "work"]).expect(2).stderr;
        assert!(said.contains("left it to a person") && said.contains("assign -b work <role>"), "{said}");
        govern(&life, &["assign", "-b", "work", "dev"]).expect(0);
        assert_eq!(life.state("work"), "turn/dev");
    }
    // The loop stops there too, and says the same.
    let folder = life.repo.home().join("plain");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(life.path("agentxchain.json"), folder.join("agentxchain.json")).unwrap();
    let root = folder.to_str().unwrap();
    let script = format!("{RESULT}\nresult '' workspace human");
    let said = govern(&life, &["loop", "--root", root, "--", "sh", "-c", &script]).expect(1);
    assert!(said.stdout.contains("caller_stopped: 1 turns accepted"), "{said:?}");
    assert!(
        said.stdout.contains(&format!("a person: git aynig govern assign --root '{root}' <role>")),
        "{said:?}"
    );
}

/// G12: what Git is told to overlook is looked at all the same.
#[test]
fn a_change_that_is_hidden_from_git_is_seen() {
    let life = life(|config| one_phase(config, "qa"));
    let script = r#"
git update-index --assume-unchanged file; echo hidden >file
result '' review human"#;
    worker(&life, &format!("{RESULT}{script}"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(life.state("work"), "turn/qa");
    assert!(life.git(&["log", "-1", "--format=%B", "work"]).contains("'file' was changed"));
    assert_eq!(show(&life, "file"), "one");
}

/// K19: a worker that knows where declarations go declares nothing there either.
#[test]
fn a_worker_cannot_write_the_declaration() {
    let life = life(|config| one_phase(config, "qa"));
    let script = r#"
[ -z "${AYNIG_RESULT:-}" ] || echo '{"state": "done", "subject": "forged"}' >"$AYNIG_RESULT"
for folder in "$(git rev-parse --git-common-dir)"/aynig/runs/*; do
    echo '{"state": "done", "subject": "forged"}' >"$folder/result"
done
exit 1"#;
    worker(&life, script);
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(life.state("work"), "turn/qa");
}

/// G6: the run's files are committed whatever rules for ignoring say, and nothing else that is ignored.
#[test]
fn what_is_ignored_is_committed_where_it_is_the_runs() {
    for (place, stage) in [(".gitignore", "all"), ("info/exclude", "index")] {
        let life = life(|config| one_phase(config, "dev"));
        life.config("aynig.stage", stage);
        let rules = ".agentxchain/\n*.jsonl\nTALK.md\n*.md\n.aynig/command/\nlocal.txt\n";
        match place {
            ".gitignore" => {
                life.write(".gitignore", rules);
                life.git(&["add", ".gitignore"]);
                life.git(&["commit", "-qm", "rules"]);
            }
            _ => std::fs::write(life.path(".git").join(place), rules).unwrap(),
        }
        let script = "echo x >local.txt; echo y >made.txt\nresult '\"made.txt\"' workspace human";
        worker(&life, &format!("{RESULT}{script}"));
        govern(&life, &["start", "-b", "work"]).expect(0);
        assert!(state(&life)["run_id"].is_string(), "{place}");
        let run = state(&life)["run_id"].clone();
        life.run(&["tick", "work"]).expect(0);
        assert_eq!(state(&life)["run_id"], run, "{place}");
        assert_eq!(lines(&show(&life, ".agentxchain/history.jsonl")).len(), 1, "{place}");
        let files = life.git(&["ls-tree", "-r", "--name-only", "work"]);
        assert!(files.contains("TALK.md") && files.contains("made.txt"), "{place}: {files}");
        assert!(!files.contains("local.txt") && !files.contains(".lock"), "{place}: {files}");
        govern(&life, &["block", "-b", "work", "-m", "stop"]).expect(0);
        assert_eq!(state(&life)["run_id"], run, "{place}");
        assert_eq!(state(&life)["status"], "blocked", "{place}");
    }
}

/// G6, G12: what a gate saw of an accepted turn is on the branch, also where rules for ignoring hide it.
#[test]
fn a_declared_file_that_is_ignored_is_committed_with_its_turn() {
    let life = life(|config| one_phase(config, "dev"));
    life.write(".gitignore", "*.log\n");
    life.git(&["add", ".gitignore"]);
    life.git(&["commit", "-qm", "rules"]);
    let script = "echo x >other.log; echo y >made.log; echo z >':!z'; ln -s file link.log\n\
                  result '\"link.log\", \"./made.log\", \":!z\", \".git/config\"' workspace human";
    worker(&life, &format!("{RESULT}{script}"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(lines(&show(&life, ".agentxchain/history.jsonl")).len(), 1);
    assert_eq!(life.git(&["show", "work:made.log"]), "y");
    // What Git would take for a pattern is a name.
    assert_eq!(life.git(&["show", "work:./:!z"]), "z");
    let files = life.git(&["ls-tree", "-r", "--name-only", "work"]);
    assert!(!files.contains("other.log") && !files.contains("config\n.git"), "{files}");
    let said = life.git(&["log", "-1", "--format=%B", "work"]);
    assert!(said.contains("warning: 'link.log' is not committed: it is a symbolic link"), "{said}");
    assert!(!files.contains("link.log"), "{files}");
}

/// G12, G14: so is a proposal of which the prompt says that it has to be declared.
#[test]
fn a_proposal_that_is_ignored_is_declared() {
    let life = life(|config| {
        one_phase(config, "qa");
        config["roles"]["qa"]["write_authority"] = json!("proposed");
    });
    life.write(".gitignore", ".planning/*\n");
    life.git(&["add", ".gitignore"]);
    life.git(&["commit", "-qm", "rules"]);
    let script = r#"
grep -q 'so has a file below `.planning/` that `.gitignore` hides' "$AGENTXCHAIN_DISPATCH_DIR/PROMPT.md" || exit 9
mkdir .planning; echo x >.planning/plan.md; echo y >.planning/draft.md
result '".planning/plan.md"' patch human"#;
    worker(&life, &format!("{RESULT}{script}"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(lines(&show(&life, ".agentxchain/history.jsonl")).len(), 1);
    assert_eq!(life.git(&["ls-tree", "-r", "--name-only", "work", ".planning/"]), ".planning/plan.md");
}

/// G6: attributes convert none of it.
#[test]
fn what_attributes_convert_is_committed_as_it_is() {
    let life = life(|config| one_phase(config, "dev"));
    life.config("filter.upper.clean", "tr a-z A-Z");
    life.write(".gitattributes", ".agentxchain/* filter=upper\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "attributes"]);
    govern(&life, &["start", "-b", "work"]).expect(0);
    assert!(state(&life)["run_id"].is_string());
}

/// G6, G15: nor does an encoding that they name, in a checkout and back.
#[test]
fn what_attributes_encode_is_committed_as_it_is() {
    let life = life(|config| one_phase(config, "qa"));
    let rules = "*.jsonl working-tree-encoding=UTF-16\n.agentxchain/state.json working-tree-encoding=UTF-16LE\n\
                 *.md working-tree-encoding=UTF-16 ident\n";
    life.write(".gitattributes", rules);
    life.git(&["add", "-A"]);
    worker(&life, &format!("{RESULT}\nresult '' review human"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let history = show(&life, ".agentxchain/history.jsonl");
    assert_eq!((lines(&history).len(), &state(&life)["status"]), (1, &json!("active")));
    let talk = show(&life, "TALK.md");
    assert!(talk.contains("did it"), "{talk}");
    life.git(&["checkout", "-q", "work"]);
    assert_eq!(life.read(".agentxchain/history.jsonl").trim_end(), history);
    assert_eq!(life.read("TALK.md").trim_end(), talk);
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// G14, G12: who does what PROMPT.md says is accepted on the branch at once, with what it made.
#[test]
fn a_worker_that_obeys_its_prompt_is_accepted_on_the_branch() {
    let script = r#"
prompt=$AGENTXCHAIN_DISPATCH_DIR/PROMPT.md
place=$(sed -n 's/.*Write one JSON object to `\([^`]*\)`.*/\1/p' "$prompt")
files=$(cat "$AYNIG_DIR/files")
for file in $files; do mkdir -p "$(dirname "$file")"; echo made >"$file"; done
sed -n '/^```json$/,/^```$/p' "$prompt" | sed '1d;$d' | sed 's/"<[^"]*>"/"some words"/' |
    sed "s|\"files_changed\": \[\]|\"files_changed\": [${files:+\"$files\"}]|" >"$place""#;
    for (authority, files) in [
        ("authoritative", "made.txt"),
        ("authoritative", ""),
        ("proposed", "made.txt"),
        ("proposed", ""),
        ("review_only", ".planning/made.md"),
        ("review_only", ""),
    ] {
        let life = life(|config| {
            one_phase(config, "qa");
            config["roles"]["qa"]["write_authority"] = json!(authority);
        });
        life.write(".aynig/files", files);
        life.git(&["add", "-A"]);
        worker(&life, script);
        govern(&life, &["start", "-b", "work"]).expect(0);
        life.run(&["tick", "work"]).expect(0);
        let said = life.git(&["log", "-1", "--format=%B", "work"]);
        let history = lines(&show(&life, ".agentxchain/history.jsonl"));
        assert_eq!(history.len(), 1, "{authority} {files}: {said}");
        assert_eq!(history[0]["assigned_sequence"], 1, "{authority} {files}");
        assert!(rejected_refs(&life).is_empty(), "{authority} {files}");
        if !files.is_empty() {
            assert_eq!(show(&life, files), "made", "{authority}");
        }
    }
}

/// G7, G16: what is doubtful about an accepted turn is in its commit, and said by the verb that accepted it.
#[test]
fn warnings_of_an_accepted_turn_are_said() {
    let life = life(|config| {
        one_phase(config, "qa");
        config["policies"] = json!([
            { "id": "shown", "rule": "require_reproducible_verification", "action": "warn" }
        ]);
    });
    let script = r#"result '' review human
sed -i 's/"run_id": "[^"]*"/"run_id": "other"/' "$AGENTXCHAIN_RESULT""#;
    worker(&life, &format!("{RESULT}{script}"));
    let told = |said: &str| said.contains("warning: policy 'shown': ") && said.contains("warning: run_id ");
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let said = life.git(&["log", "-1", "--format=%B", "work"]);
    assert!(said.contains("accepted\n\ndid it\n\nwarning: ") && told(&said), "{said}");
    let plain = life.repo.home().join("plain");
    std::fs::create_dir(&plain).unwrap();
    std::fs::copy(life.path("agentxchain.json"), plain.join("agentxchain.json")).unwrap();
    let (root, script) = (plain.to_str().unwrap(), life.path(".aynig/govern/worker"));
    let script = script.to_str().unwrap();
    let said = govern(&life, &["loop", "--root", root, "--max-turns", "1", "--", script]);
    assert!(told(&said.stderr), "{said:?}");
    let said = govern(&life, &["turn", "--root", root, "--role", "qa", "--", script]).expect(0);
    assert!(told(&said.stderr) && said.stdout.lines().count() == 1, "{said:?}");
    govern(&life, &["assign", "--root", root, "qa"]).expect(0);
    let state = std::fs::read_to_string(plain.join(".agentxchain/state.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    let result = json!({
        "schema_version": "1.0", "run_id": "other", "role": "qa", "runtime_id": "reviewer", "status": "completed",
        "turn_id": state["active_turns"].as_object().unwrap().keys().next(), "summary": "did it", "decisions": [],
        "objections": [{ "id": "OBJ-001", "severity": "low", "statement": "none" }], "files_changed": [],
        "verification": { "status": "skipped" }, "artifact": { "type": "review", "ref": null },
        "proposed_next_role": "human",
    });
    std::fs::write(plain.join("result"), result.to_string()).unwrap();
    let file = plain.join("result");
    let said = govern(&life, &["accept", "--root", root, "-F", file.to_str().unwrap()]).expect(0);
    assert!(told(&said.stderr), "{said:?}");
}

/// A worker that does what its prompt says, and takes names and values from nowhere else.
const OBEY: &str = r#"
prompt=$AGENTXCHAIN_DISPATCH_DIR/PROMPT.md
obey() {
    cp "$prompt" "$T/prompt.$AGENTXCHAIN_ROLE"
    sed -n '/^Write one JSON object/,$p' "$prompt" | sed -n '/^```json$/,/^```$/p' | sed '1d;$d' |
        sed 's/"<[^"]*>"/"some words"/' >"$AGENTXCHAIN_RESULT"
}
"#;

/// G14: the prompt names what policies ask of a result, and offers no status that they refuse.
#[test]
fn a_worker_that_obeys_its_prompt_breaks_no_policy() {
    let life = life(|config| {
        one_phase(config, "dev");
        let rule = |id: &str, of: &str, action: &str, params: Value| {
            json!({ "id": id, "rule": of, "action": action,
                "params": params })
        };
        let mut elsewhere = rule("elsewhere", "require_status", "block", json!({ "allowed": ["blocked"] }));
        elsewhere["scope"] = json!({ "roles": ["pm"] });
        let mut ended =
            rule("ended", "require_status", "escalate", json!({ "allowed": ["needs_human", "failed"] }));
        ended["message"] = json!("ask\nfirst");
        // No verification of the runtime of 'qa' is reproducible.
        let mut shown = rule("shown", "require_reproducible_verification", "block", json!({}));
        shown["scope"] = json!({ "roles": ["dev"] });
        config["policies"] = json!([
            shown,
            ended,
            rule("cheap", "max_cost_per_turn", "block", json!({ "limit_usd": 2 })),
            rule("long", "max_total_turns", "warn", json!({ "limit": 9 })),
            elsewhere,
        ]);
    });
    worker(&life, &format!("{OBEY}obey"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let said = life.git(&["log", "-1", "--format=%B", "work"]);
    assert!(said.contains("accepted") && !said.contains("warning: "), "{said}");
    let history = lines(&show(&life, ".agentxchain/history.jsonl"));
    assert_eq!(history[0]["status"], "needs_human");
    let prompt = life.said("prompt.dev");
    for told in
        ["`shown`: `verification.status` is ", "`ended`: `status` is ", "`cheap`: `cost.usd` is ", "`long`: "]
    {
        assert!(prompt.contains(told), "{told}: {prompt}");
    }
    assert!(prompt.contains("stops for a person (ask first)"), "{prompt}");
    assert!(!prompt.contains("elsewhere") && !prompt.contains("`completed`"), "{prompt}");
}

/// G14: a turn to which work was delegated is told to make the decisions that were demanded of it.
#[test]
fn a_worker_that_obeys_its_prompt_makes_the_decisions_that_it_owes() {
    let life = life(|config| one_phase(config, "pm"));
    let script = r#"
[ "$AGENTXCHAIN_ROLE" = pm ] || { obey; exit; }
cat >"$AGENTXCHAIN_RESULT" <<END
{"schema_version": "1.0", "run_id": "$AGENTXCHAIN_RUN_ID", "turn_id": "$AGENTXCHAIN_TURN_ID", "role": "pm",
 "runtime_id": "$AGENTXCHAIN_RUNTIME", "status": "completed", "summary": "hands it on", "decisions": [],
 "objections": [], "files_changed": [], "verification": {"status": "skipped"},
 "artifact": {"type": "review", "ref": null}, "proposed_next_role": "dev",
 "delegations": [{"id": "del-001", "to_role": "dev", "charter": "decide", "acceptance_contract": ["it is decided"],
 "required_decision_ids": ["DEC-007", "DEC-010"]}]}
END"#;
    worker(&life, &format!("{OBEY}{script}"));
    govern(&life, &["start", "-b", "work"]).expect(0);
    for _ in 0..2 {
        life.run(&["tick", "work"]).expect(0);
    }
    let history = lines(&show(&life, ".agentxchain/history.jsonl"));
    let ids: Vec<_> = history[1]["decisions"].as_array().unwrap().iter().map(|made| &made["id"]).collect();
    assert_eq!(ids, [&json!("DEC-007"), &json!("DEC-010")]);
    let prompt = life.said("prompt.dev");
    assert!(prompt.contains("List in `decisions`, each under its own id: `DEC-007`, `DEC-010`"), "{prompt}");
}
