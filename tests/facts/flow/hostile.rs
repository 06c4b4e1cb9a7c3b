//! What a user who may push can put in a flow's place.

use super::review;

const ID: &str = "44444444-4444-4444-8444-444444444444";

/// A ref's name, files of its tree by path, and what is said of it.
type Case<'c> = (&'c str, Vec<(&'c str, &'c str)>, &'c str);

/// N1, N12: what is no flow is named, hides no other, and holds only branches of flows that no other speaks for.
#[test]
fn what_is_no_flow_is_named_and_hides_no_other() {
    let life = review();
    let run = life.git(&["show", &format!("{}:run.json", life.flow_ref())]);
    let other = run.replace(life.flow_file("run.json")["id"].as_str().unwrap(), ID);
    let mine = life.flow_ref();
    let big = format!("{}{}", other.trim_end_matches(['}', '\n']), " ".repeat(5 << 20)) + "}";
    life.git(&["branch", "flow/else/x"]);
    let cases: [Case; 7] = [
        (ID, vec![], "there is no 'run.json' in it"),
        (ID, vec![("run.json", "{")], "'run.json' of it can't be read"),
        (ID, vec![("run.json", &big)], "'run.json' has 52"),
        (ID, vec![("run.json", &run)], "it says that it is flow"),
        (ID, vec![("run.json", &other), ("nodes/x.json", "{}")], "'nodes/x.json' of it can't be read"),
        ("no-id", vec![("run.json", &other)], "its name is no id"),
        (&ID.to_uppercase().replace('4', "A"), vec![("run.json", &other)], "its name is no id"),
    ];
    for (name, files, words) in &cases {
        life.push_flow(name, files);
        let listed = life.flow(&["list"]).expect(0).stdout;
        assert!(listed.contains(words), "{words}: {listed}");
        assert!(listed.contains("Review: running"), "{listed}");
        life.flow(&["send", "review", "ada", "-m", "x"]).expect(0);
        life.tick(&["flow/review/ada"]).expect(0);
        assert_eq!(life.state("flow/review/ada"), "idle");
        assert_eq!(life.said_lines(), 1);
        life.git(&["update-ref", "-d", &format!("refs/aynig/flows/{name}")]);
        std::fs::remove_file(life.shared().join("heard")).unwrap();
    }
    // A branch of a flow that can't be read is held, and is told by which.
    life.push_flow(ID, &[("run.json", "{")]);
    life.event("flow/else/x", "turn", "");
    let said = format!("{:?}", life.tick(&["flow/else/x"]).expect(0));
    assert!(said.contains(ID) && said.contains("git update-ref -d"), "{said}");
    assert_eq!((life.state("flow/else/x"), life.said("heard")), ("turn".into(), String::new()));
    life.git(&["update-ref", "-d", &format!("refs/aynig/flows/{ID}")]);
    life.tick(&["flow/else/x"]).expect(0);
    assert_eq!(life.state("flow/else/x"), "idle");
    assert_eq!(life.flow_ref(), mine);
}

/// N13: a flow of a version that this program does not speak is refused by name, with what mends that, and not touched.
#[test]
fn a_flow_of_an_unknown_version_is_refused_and_not_touched() {
    let life = review();
    let (flow, name) = (life.flow_file("run.json")["id"].as_str().unwrap().to_owned(), life.flow_ref());
    let paths = life.git(&["ls-tree", "-r", "--name-only", &name]);
    let file = |path: &str| life.git(&["cat-file", "blob", &format!("{name}:{path}")]);
    let files: Vec<(&str, String)> = paths
        .lines()
        .map(|path| (path, file(path).replace("\"contractVersion\": \"1\"", "\"contractVersion\": \"2\"")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    assert!(files.iter().any(|(_, text)| text.contains("\"2\"")));
    let commit = life.push_flow(&flow, &files);
    let words = "contractVersion '2' is not known: this program speaks '1'";
    for verb in [
        &["show", "review"][..],
        &["show", &flow],
        &["send", "review", "ada", "-m", "x"],
        &["pause", "review"],
        &["rm", "review"],
        &["node", "add", "review", "--label", "x", "--role", "x", "--provider", "custom"],
        &["events", "review"],
    ] {
        let said = life.flow(verb).expect(2).stderr;
        assert!(said.contains("Review") && said.contains(words), "{verb:?}: {said}");
        assert!(
            said.contains("hint: install a git-aynig that speaks it; see 'Migration' in CONTRACT.md"),
            "{said}"
        );
    }
    assert!(life.flow(&["list"]).expect(0).stdout.contains(words));
    // Nothing runs on its branches meanwhile, either.
    life.event("flow/review/ada", "turn", "");
    let said = format!("{:?}", life.tick(&["flow/review/ada"]).expect(0));
    assert!(said.contains("contractVersion '2' is not known here"), "{said}");
    assert_eq!((life.rev(&name), life.state("flow/review/ada")), (commit, "turn".into()));
}

/// N1: names are one line, whatever is in them.
#[test]
fn control_characters_in_names_are_shown_escaped() {
    let life = review();
    let evil = "a\u{1b}[31mb\u{202e}c\nd";
    life.flow(&["node", "set", "review", "ada", "--alias", evil]).expect(0);
    life.flow(&["node", "add", "review", "--label", evil, "--role", evil, "--provider", "custom"]).expect(0);
    for done in
        [life.flow(&["show", "review"]), life.flow(&["show", "review", "--json"]), life.flow(&["list"])]
    {
        let said = done.expect(0).stdout;
        assert!(!said.contains('\u{1b}') && !said.contains('\u{202e}'), "{said:?}");
        assert!(!said.contains("c\nd"), "{said:?}");
    }
    let branches = life.git(&["for-each-ref", "--format=%(refname)", "refs/heads/flow/"]);
    assert!(branches.lines().any(|name| name == "refs/heads/flow/review/a-31mb-c-d"), "{branches}");
    life.repo.assert_sound();
}

/// N1: a link or a submodule in its tree is no file of a flow.
#[test]
fn what_is_no_plain_file_is_refused() {
    let life = review();
    let blob = life.git(&["rev-parse", &format!("{}:run.json", life.flow_ref())]);
    for (mode, id) in [("120000", blob.clone()), ("160000", life.rev("main"))] {
        let (index, at) = (life.path(".git/foreign"), format!("refs/aynig/flows/{ID}"));
        let git = |args: &[&str]| {
            let output = life.repo.command("git").env("GIT_INDEX_FILE", &index).args(args).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
        };
        git(&["read-tree", "--empty"]);
        git(&["update-index", "--add", "--cacheinfo", &format!("{mode},{id},run.json")]);
        let tree = git(&["write-tree"]);
        git(&["update-ref", &at, &git(&["commit-tree", &tree, "-m", "x"])]);
        let listed = life.flow(&["list"]).expect(0).stdout;
        assert!(listed.contains("'run.json' is no plain file"), "{listed}");
    }
}

impl crate::support::life::Life {
    fn said_lines(&self) -> usize {
        self.said("heard").lines().count()
    }
}
