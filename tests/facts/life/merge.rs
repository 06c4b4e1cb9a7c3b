//! An outcome that a local change held up, merged with what the user committed instead.

use crate::support::life::Life;

/// A run whose outcome a local change held up, and what the user then commits; `retry` is next.
fn held_up(before: &str, run: &str, mine: &str) -> Life {
    let life = Life::new(&[("build", &format!("{run}; echo 'SET_STATE {{\"state\":\"next\"}}'"))]);
    life.git(&["checkout", "-qb", "work"]);
    let shell = |script: &str| {
        let done = life.repo.command("sh").args(["-ec", script]).status().unwrap();
        assert!(done.success(), "{script}");
    };
    shell(&format!("{before}; git add -A; git commit -qm before --allow-empty"));
    life.event("work", "build", "");
    life.write("held", "mine\n");
    life.tick(&["work"]).expect(1);
    assert_eq!(life.state("work"), "stalled");
    shell(&format!("rm held; {mine}; git add -A; git commit -qm mine"));
    life
}

/// K28: a mode is merged as content is.
#[test]
fn retry_keeps_the_mode_that_only_one_side_changed() {
    let long =
        "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo $i; done >f; cp f g; printf '\\0' >b; echo 1 >c";
    let run = "echo held >held; sed -i 1s/.*/run/ f; chmod +x g; printf '\\0run' >b; chmod +x c";
    let life = held_up(long, run, "sed -i 30s/.*/mine/ f; sed -i 30s/.*/mine/ g; chmod +x b f; echo 2 >c");
    let done = life.run(&["retry", "work", "--json"]).expect(0);
    assert_eq!(done.json()["overruled"].to_string(), "[]");
    let text = |name: &str| life.show("work", name).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((text("f")[0].as_str(), text("f")[29].as_str()), ("run", "mine"));
    assert_eq!((text("g")[0].as_str(), text("g")[29].as_str()), ("1", "mine"));
    assert_eq!((life.show("work", "b").as_str(), life.show("work", "c").as_str()), ("\0run", "2"));
    let modes = life.git(&["ls-tree", "--format=%(objectmode) %(path)", "work", "b", "c", "f", "g"]);
    assert_eq!(modes, "100755 b\n100755 c\n100755 f\n100755 g");
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// K28: Git leaves a path unmerged beside a folder of its name, though only one side touched it.
#[test]
fn retry_keeps_a_file_that_took_a_folders_place() {
    for (before, run, mine) in [
        ("mkdir x; echo 1 >x/a", "echo r >z", "rm -r x; echo mine >x"),
        ("echo 1 >x", "rm x; mkdir x; echo r >x/a; echo r >z", "echo mine >y"),
    ] {
        let life = held_up(before, &format!("echo held >held; {run}"), mine);
        let done = life.run(&["retry", "work", "--json"]).expect(0);
        assert_eq!(done.json()["overruled"].to_string(), "[]", "{run}");
        let (kept, taken) = if mine.ends_with("x") { ("x", "z") } else { ("y", "x/a") };
        assert_eq!((life.show("work", kept), life.show("work", taken)), ("mine".into(), "r".into()));
        assert_eq!(life.git(&["status", "--porcelain"]), "");
    }
}

/// K28: a file and a folder of one name can't both stand, and neither side's is dropped.
#[test]
fn retry_refuses_a_file_where_the_other_side_has_a_folder() {
    for (before, run, mine) in [
        ("true", "mkdir x; echo r >x/a", "echo mine >x"),
        ("true", "echo r >x", "mkdir x; echo mine >x/a"),
        ("echo 1 >x", "echo r >x", "rm x; mkdir x; echo mine >x/a"),
        ("mkdir x; echo 1 >x/a", "echo r >x/a", "rm -r x; echo mine >x"),
        ("mkdir x; echo 1 >x/b", "rm -r x; echo r >x", "echo mine >x/a"),
    ] {
        let life = held_up(before, &format!("echo held >held; {run}"), mine);
        let (head, attempts) = (life.rev("work"), life.attempts());
        let said = life.run(&["retry", "work"]).expect(1).stderr;
        assert!(said.contains("a file on one side, a folder on the other: 'x'\n"), "{run}: {said}");
        assert_eq!((life.rev("work"), life.attempts()), (head, attempts), "{run}");
        life.git(&["mv", "x", "moved"]);
        life.git(&["commit", "-qm", "moved"]);
        life.run(&["retry", "work"]).expect(0);
        assert_eq!(life.state("work"), "next");
        let mine = life.git(&["grep", "-l", "mine", "work"]);
        assert!(mine.starts_with("work:moved"), "{run}: {mine}");
        assert_eq!(life.git(&["status", "--porcelain"]), "");
    }
}

/// K28: what did not go together is said as it was.
#[test]
fn retry_says_what_the_two_sides_had_done() {
    let before = "echo 1 >lines; echo 1 >gone; echo 1 >back; printf '\\0' >whole";
    let run = "echo held >held; echo r >lines; rm gone; echo r >back; printf '\\0r' >whole";
    let life = held_up(before, run, "echo m >lines; echo m >gone; rm back; printf '\\0m' >whole");
    let said = life.run(&["retry", "work"]).expect(0).stderr;
    for words in [
        "both sides changed the same lines of 'lines': the run's version was taken\n",
        "'gone' was changed on the branch, and removed by the run: it is removed\n",
        "'back' was removed on the branch, and changed by the run: the run's version was taken\n",
        "both sides changed 'whole': the run's version was taken\n",
    ] {
        assert!(said.contains(&format!("warning: {words}")), "{said}");
    }
    assert_eq!(said.matches("warning: ").count(), 4, "{said}");
    assert_eq!((life.show("work", "back"), life.path("gone").exists()), ("r".into(), false));
}
