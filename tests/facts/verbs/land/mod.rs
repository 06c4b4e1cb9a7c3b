//! `land`: what lands is what was checked, once, and nothing is lost on the way.

mod many;
mod unmade;

use crate::support::life::{Life, Running, eventually};

/// Fails where there is a file `bad`.
const CHECK: &str = "test ! -e bad";
/// Says that it began, and waits.
const HELD: &str = "echo began >>\"$T/began\"; read x <\"$T/go\"; test ! -e bad";

fn life(check: &str, rules: &str) -> Life {
    let life = Life::new(&[("check", check)]);
    life.write(".aynig/land", rules);
    commit(&life, "rules");
    life
}

fn commit(life: &Life, message: &str) {
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", message]);
}

/// A branch off `main` with one commit of one file, made beside the working tree.
fn work(life: &Life, branch: &str, file: &str, content: &str) -> String {
    let name = format!("refs/heads/{branch}");
    let tip = life.try_rev(&name).unwrap_or_else(|| life.rev("main"));
    let blob = life.shared().join("blob");
    std::fs::write(&blob, content).unwrap();
    let blob = life.git(&["hash-object", "-w", blob.to_str().unwrap()]);
    let index = life.shared().join("index");
    let git = |args: &[&str]| {
        let output = life.repo.command("git").env("GIT_INDEX_FILE", &index).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    git(&["read-tree", &tip]);
    git(&["update-index", "--add", "--cacheinfo", &format!("100644,{},{file}", blob.trim_end())]);
    let tree = git(&["write-tree"]);
    let author = ["-c", "user.name=Grace", "-c", "user.email=grace@example.com"];
    let subject = format!("{branch}: {file}");
    let made = [&author[..], &["commit-tree", "-p", &tip, "-m", &subject, &tree]].concat();
    let made = life.git(&made).trim_end().to_owned();
    life.git(&["update-ref", &name, &made]);
    made
}

fn subjects(life: &Life, range: &str) -> Vec<String> {
    life.git(&["log", "--format=%s", range]).lines().map(str::to_owned).collect()
}

/// What `main` ever held was checked, and each of these subjects is in its history once.
#[track_caller]
fn assert_landed_once(life: &Life, wanted: &[String]) {
    for commit in life.git(&["log", "--first-parent", "--format=%H", "main"]).lines() {
        assert!(!life.files(commit).contains(&"bad".to_owned()), "{commit} failed its check");
    }
    let all = subjects(life, "main");
    for subject in wanted {
        assert_eq!(all.iter().filter(|s| *s == subject).count(), 1, "{subject}: {all:#?}");
    }
    assert_eq!(life.git(&["status", "--porcelain"]), "", "the working tree follows");
    life.repo.assert_sound();
}

/// K60.
#[test]
fn a_merge_lands_as_it_was_checked_and_the_checkout_follows() {
    let life = life(CHECK, "check: check\n");
    let topic = work(&life, "topic", "new", "x\n");
    let before = life.rev("main");
    life.run(&["land", "topic"]).expect(0);
    assert_eq!(life.git(&["log", "-1", "--format=%P", "main"]).trim_end(), format!("{before} {topic}"));
    assert_eq!(life.body("main").trim_end(), "Merge branch 'topic'");
    assert_eq!((life.read("new").as_str(), life.state("topic").as_str()), ("x\n", "landed"));
    assert_eq!(life.rev("main^{tree}"), life.rev("topic^{tree}"));
    assert_landed_once(&life, &["topic: new".into()]);
    // Twice is once, and more work lands again.
    let main = life.rev("main");
    life.run(&["land", "topic"]).expect(0);
    assert_eq!(life.rev("main"), main);
    work(&life, "topic", "more", "y\n");
    life.run(&["land", "topic", "--onto", "main"]).expect(0);
    assert_landed_once(&life, &["topic: new".into(), "topic: more".into()]);
    // What landed before says nothing about a request that waits.
    work(&life, "topic", "last", "z\n");
    life.run(&["pause", "topic"]).expect(0);
    life.run(&["land", "topic"]).expect(1);
    assert_eq!(subjects(&life, "main").iter().filter(|subject| *subject == "topic: last").count(), 0);
    life.run(&["resume"]).expect(0);
    life.run(&["run", "topic"]).expect(0);
    assert_landed_once(&life, &["topic: last".into()]);
}

/// K60, K28: nothing lands on a target that is being rebased, as giving that up would take it back.
#[test]
fn a_target_that_is_being_rebased_is_waited_for() {
    let life = life(CHECK, "check: check\n");
    life.git(&["branch", "up"]);
    life.write("file", "mine\n");
    commit(&life, "mine");
    work(&life, "topic", "new", "x\n");
    let before = life.rev("main");
    let other = life.repo.home().join("up");
    life.git(&["worktree", "add", "-q", other.to_str().unwrap(), "up"]);
    std::fs::write(other.join("file"), "theirs\n").unwrap();
    life.git(&["-C", other.to_str().unwrap(), "commit", "-qam", "theirs"]);
    life.repo.try_git(&["rebase", "up"]);
    let said = life.run(&["land", "topic"]).expect(1);
    assert!(said.stderr.contains("is rebasing the branch"), "{said:?}");
    assert_eq!((life.state("topic").as_str(), life.rev("refs/heads/main")), ("stalled", before.clone()));
    life.git(&["rebase", "--abort"]);
    assert_eq!(life.rev("main"), before);
    life.run(&["retry", "topic"]).expect(0);
    life.run(&["run", "topic"]).expect(0);
    assert_eq!((life.state("topic").as_str(), life.read("new").as_str()), ("landed", "x\n"));
    assert_landed_once(&life, &["topic: new".into()]);
}

/// K60: no merge, nothing that only talks to runners, no state that would be dispatched on the target.
#[test]
fn a_linear_history_has_the_branchs_own_commits_and_no_state() {
    let build = "git config user.email l@example.com; git config user.name L; echo 1 >one; git add one; \
                 git commit -qm 'in the slot'; echo 2 >two; echo 'SET_STATE {\"state\":\"check\",\"subject\":\"built\"}'";
    let life = Life::new(&[("check", "echo 'SET_STATE {\"state\":\"done\"}'"), ("build", build)]);
    life.write(".aynig/land", "check: check\nhistory: linear\n");
    commit(&life, "rules");
    work(&life, "topic", "first", "1\n");
    life.event("topic", "build", "");
    life.run(&["run", "topic"]).expect(0);
    work(&life, "topic", "last", "1\n");
    let start = life.rev("main");
    life.write("meanwhile", "main\n");
    commit(&life, "meanwhile");
    life.run(&["land", "topic"]).expect(0);
    let wanted = ["topic: last", "built", "in the slot", "topic: first", "meanwhile"];
    assert_eq!(subjects(&life, &format!("{start}..main")), wanted);
    assert_eq!(life.git(&["log", "--merges", "--format=%H", &format!("{start}..main")]), "");
    assert_eq!(life.states("main"), Vec::<String>::new());
    let author = life.git(&["log", "-1", "--format=%an <%ae> %at", "main"]);
    let own = life.git(&["log", "--format=%an <%ae> %at", "--grep=^topic: last", "topic"]);
    assert_eq!(author.trim_end(), own.lines().last().unwrap());
    assert_landed_once(&life, &["topic: first".into(), "built".into()]);
    // Asked once more there is nothing, and a merge can be had all the same.
    let main = life.rev("main");
    life.run(&["land", "topic"]).expect(0);
    assert_eq!(life.rev("main"), main);
    work(&life, "topic", "merged", "1\n");
    life.run(&["land", "topic", "--merge"]).expect(0);
    assert_eq!(life.git(&["log", "-1", "--format=%s", "main"]).trim_end(), "Merge branch 'topic'");
    // A branch that stands on its target as it is keeps its ids.
    let plain = work(&life, "plain", "plain", "1\n");
    life.run(&["land", "plain"]).expect(0);
    assert_eq!(life.rev("main"), plain);
}

/// K60.
#[test]
fn a_conflict_is_an_ordinary_stalled_state_with_its_paths() {
    let life = life(CHECK, "check: check\n");
    work(&life, "topic", "file", "theirs\n");
    life.write("file", "ours\n");
    commit(&life, "ours");
    let main = life.rev("main");
    for history in ["--linear", "--merge"] {
        let said = life.run(&["land", "topic", history]).expect(1);
        assert!(said.stderr.contains("conflict in 'file'"), "{said:?}");
        assert_eq!((life.state("topic").as_str(), life.rev("main")), ("stalled", main.clone()));
        assert!(life.body("topic").contains("\n    file\n"), "{}", life.body("topic"));
    }
    let status = life.run(&["status", "topic"]).expect(0).stdout;
    assert!(status.contains("land: conflicts; waits for git aynig retry topic"), "{status}");
    work(&life, "other", "file", "others\n");
    // Mended on the branch, it is asked for again.
    life.git(&["checkout", "-q", "topic"]);
    life.repo.try_git(&["merge", "-q", "main"]);
    life.write("file", "both\n");
    commit(&life, "mended");
    life.git(&["checkout", "-q", "main"]);
    life.run(&["retry", "topic"]).expect(0);
    life.run(&["run", "topic"]).expect(0);
    assert_eq!((life.state("topic").as_str(), life.read("file").as_str()), ("landed", "both\n"));
    assert_landed_once(&life, &["topic: file".into(), "mended".into()]);
    // One by one its commits don't go together with it: what was mended is one commit.
    life.run(&["land", "other", "--linear"]).expect(1);
    life.git(&["checkout", "-q", "other"]);
    life.repo.try_git(&["merge", "-q", "main"]);
    life.write("file", "all three\n");
    commit(&life, "mended too");
    life.git(&["checkout", "-q", "main"]);
    life.run(&["retry", "other"]).expect(0);
    life.run(&["run", "other"]).expect(0);
    assert_eq!((life.state("other").as_str(), life.read("file").as_str()), ("landed", "all three\n"));
    assert_landed_once(&life, &["mended too".into()]);
}

/// K60.
#[test]
fn what_fails_its_check_never_reaches_the_target() {
    let life = life(CHECK, "check: check\n");
    work(&life, "topic", "bad", "x\n");
    let main = life.rev("main");
    life.run(&["land", "topic"]).expect(1);
    assert_eq!((life.state("topic").as_str(), life.rev("main")), ("stalled", main.clone()));
    assert_eq!(life.trailer("topic", "dwp-origin-state").as_deref(), Some("check"));
    // Asked for again it is made anew, from what both hold by then.
    life.run(&["retry", "topic"]).expect(0);
    assert_eq!(life.state("topic"), "land");
    life.run(&["run", "topic"]).expect(1);
    assert_eq!(life.rev("main"), main);
}

/// K60: another state than 'landed' or 'done' lands nothing, and neither does what a check leaves behind.
#[test]
fn only_what_was_checked_lands() {
    let life = life("echo 'SET_STATE {\"state\":\"fix\"}'", "check: check\n");
    work(&life, "topic", "new", "x\n");
    let main = life.rev("main");
    life.run(&["land", "topic"]).expect(1);
    assert_eq!((life.state("topic").as_str(), life.rev("main")), ("fix", main));
    life.command(
        "check",
        "echo left >left; git add left; git commit -qm left; echo 'SET_STATE {\"state\":\"landed\"}'",
    );
    commit(&life, "another check");
    life.run(&["land", "topic"]).expect(0);
    assert!(!life.files("main").contains(&"left".to_owned()));
    assert!(life.attempts().iter().any(|name| name.ends_with("-rejected")), "it is kept");
    assert_landed_once(&life, &["topic: new".into()]);
}

/// K60: the target moved while the check ran.
#[test]
fn a_target_that_moved_is_merged_and_checked_again() {
    for rules in ["check: check\n", "check: check\nhistory: linear\n"] {
        let life = life(HELD, rules);
        let mut go = life.gate("go");
        work(&life, "topic", "new", "x\n");
        let landing = life.start(&["land", "topic"]);
        life.hear("began");
        life.write("bold", "main\n");
        commit(&life, "bold");
        go.open();
        eventually("the second check", || (life.said("began").lines().count() == 2).then_some(()));
        assert_eq!(subjects(&life, "main")[0], "bold");
        go.open();
        landing.done().expect(0);
        assert_eq!(life.files("main").len(), 4, "{:?}", life.files("main"));
        assert_landed_once(&life, &["topic: new".into(), "bold".into()]);
    }
}

/// K60: a target that was set back is not brought forward by an older check.
#[test]
fn a_target_that_was_set_back_keeps_that() {
    let life = life(HELD, "check: check\n");
    let mut go = life.gate("go");
    let old = life.rev("main");
    work(&life, "topic", "new", "x\n");
    life.write("regretted", "x\n");
    commit(&life, "regretted");
    let landing = life.start(&["land", "topic"]);
    life.hear("began");
    life.git(&["reset", "-q", "--hard", &old]);
    go.open();
    eventually("the second check", || (life.said("began").lines().count() == 2).then_some(()));
    go.open();
    landing.done().expect(0);
    assert!(!life.files("main").contains(&"regretted".to_owned()));
    assert_landed_once(&life, &["topic: new".into()]);
}

/// K60, K28.
#[test]
fn local_work_in_the_targets_checkout_is_never_touched() {
    let life = life(CHECK, "check: check\n");
    work(&life, "topic", "file", "theirs\n");
    let main = life.rev("main");
    life.write("file", "mine\n");
    life.run(&["land", "topic"]).expect(1);
    assert_eq!((life.read("file").as_str(), life.rev("main")), ("mine\n", main));
    assert_eq!(life.state("topic"), "stalled");
    life.git(&["checkout", "-q", "file"]);
    life.run(&["retry", "topic"]).expect(0);
    life.run(&["run", "topic"]).expect(0);
    assert_landed_once(&life, &["topic: file".into()]);
    // In the branch's own checkout likewise.
    work(&life, "other", "file", "others\n");
    life.write("dir/other", "main's\n");
    commit(&life, "main's");
    life.git(&["checkout", "-q", "other"]);
    life.write("dir/other", "mine\n");
    life.run(&["land", "other"]).expect(1);
    assert_eq!((life.read("dir/other").as_str(), life.state("other").as_str()), ("mine\n", "stalled"));
    life.git(&["checkout", "-q", "dir/other"]);
    life.run(&["land"]).expect(0);
    assert_eq!(life.state("other"), "landed");
    assert_eq!(life.git(&["status", "--porcelain"]), "");
}

/// K60, K52: first come those that were named.
#[test]
fn a_branch_waits_for_those_that_it_is_to_land_after() {
    let life = life(CHECK, "check: check\n");
    work(&life, "one", "one", "1\n");
    work(&life, "two", "two", "2\n");
    life.run(&["land", "two", "--after", "one", "--no-tick"]).expect(0);
    let said = life.run(&["run", "two"]).expect(0);
    assert!(said.stdout.contains("waits for 'one' in 'landed'"), "{said:?}");
    assert_eq!(life.state("two"), "land");
    life.run(&["land", "one"]).expect(0);
    life.run(&["run"]).expect(0);
    assert_eq!(life.git(&["log", "-1", "--format=%s", "main"]).trim_end(), "Merge branch 'two'");
    assert_landed_once(&life, &["one: one".into(), "two: two".into()]);
}

/// K60: one is checked at a time, and the other goes on by itself.
#[test]
fn of_one_target_one_branch_is_checked_at_a_time() {
    let life = life(HELD, "check: check\n");
    let mut go = life.gate("go");
    work(&life, "one", "one", "1\n");
    work(&life, "two", "two", "2\n");
    let first = life.start(&["land", "one"]);
    life.hear("began");
    let second = Running::saying(life.aynig(&["land", "two"]), &life.shared().join("second"));
    eventually("it waits", || life.said("second").contains("two: 'one' is checked first").then_some(()));
    assert_eq!(life.said("began").lines().count(), 1);
    go.open();
    first.done().expect(0);
    go.open();
    second.done().expect(0);
    assert_eq!(life.said("began").lines().count(), 2);
    assert_landed_once(&life, &["one: one".into(), "two: two".into()]);
}

/// K60: a command asks for its own branch.
#[test]
fn a_workflow_lands_itself() {
    let land = "echo x >made; echo 'SET_STATE {\"state\":\"land\",\"trailers\":[\"dwp-land-onto: main\"]}'";
    let life = Life::new(&[("build", land), ("check", CHECK)]);
    life.write(".aynig/land", "check: check\n");
    commit(&life, "rules");
    life.event("topic", "build", "dwp-ticket: 7\n");
    life.run(&["run"]).expect(0);
    assert_eq!((life.state("topic").as_str(), life.read("made").as_str()), ("landed", "x\n"));
    assert_landed_once(&life, &[]);
}

/// K60, K33: who writes a branch need not be trusted with its target.
#[test]
fn where_commands_come_from_a_ref_the_target_has_to_be_named() {
    let life = life(CHECK, "check: check\n");
    work(&life, "topic", "new", "x\n");
    life.git(&["config", "--global", "--replace-all", "aynig.commandsFrom", "main"]);
    let said = life.run(&["land", "topic"]).expect(2);
    assert!(said.stderr.contains("'aynig.landOnto' does not name 'main'"), "{said:?}");
    assert!(said.stderr.contains(".landOnto' main"), "{said:?}");
    // A user who may push to the branch writes that by hand: it moves nothing.
    let main = life.rev("main");
    life.event("topic", "land", "dwp-land-onto: main\n");
    life.tick(&["topic"]).expect(2);
    let forged = work(&life, "topic", "forged", "x\n");
    life.event("topic", "check", &format!("dwp-land-onto: main\ndwp-land-as: {forged} {main}\n"));
    life.run(&["tick", "topic"]);
    assert_eq!(life.rev("main"), main);
    // The repository's own configuration says nothing about it.
    life.git(&["config", "aynig.landOnto", "main"]);
    life.run(&["land", "topic"]).expect(2);
    life.git(&["config", "--unset", "aynig.landOnto"]);
    life.config("aynig.landOnto", "release/*");
    life.run(&["land", "topic"]).expect(2);
    life.git(&["config", "--global", "--add", "aynig.landOnto", "ma*"]);
    life.run(&["land", "topic"]).expect(0);
    assert_landed_once(&life, &["topic: new".into()]);
}

/// K60: what was checked is what lands, whatever a commit says.
#[test]
fn a_forged_candidate_lands_nothing_that_was_not_checked() {
    let life = life(CHECK, "check: check\n");
    let main = life.rev("main");
    let evil = work(&life, "evil", "bad", "x\n");
    work(&life, "topic", "new", "x\n");
    life.event("topic", "check", &format!("dwp-land-onto: main\ndwp-land-as: {evil} {main}\n"));
    life.tick(&["topic"]).expect(0);
    assert_eq!((life.state("topic").as_str(), life.rev("main")), ("land", main));
    life.run(&["run", "topic"]).expect(0);
    assert_landed_once(&life, &["topic: new".into()]);
}

/// K60: who may push makes no candidate: with the files that were checked it would bring another history, other authors,
/// and a state that the target is then asked for.
#[test]
fn a_forged_candidate_brings_no_history_of_its_own() {
    for rules in ["check: check\n", "check: check\nhistory: linear\n"] {
        let life = life(CHECK, rules);
        life.write("meanwhile", "main\n");
        work(&life, "topic", "new", "x\n");
        commit(&life, "meanwhile");
        let (main, tree) = (life.rev("main"), life.rev("main^{tree}"));
        let merged = life.git(&["merge-tree", "--write-tree", "main", "topic"]).trim_end().to_owned();
        let root = life.git(&["commit-tree", "-m", "another history", &tree]).trim_end().to_owned();
        let base = life.rev("main~1");
        for (parents, message) in [
            (vec![&main, &root], "Merge branch 'topic'\n\ndwp-state: deploy\n"),
            (vec![&main, &root], "Merge branch 'topic'\n"),
            (vec![&main], "topic: new\n\ndwp-state: deploy\n"),
            (vec![&main], "topic: new\n"),
        ] {
            let by =
                ["-c", "user.name=root", "-c", "user.email=root@example.com", "commit-tree", "-m", message];
            let mut args = by.to_vec();
            parents.iter().for_each(|parent| args.extend(["-p", parent.as_str()]));
            args.push(&merged);
            let made = life.git(&args).trim_end().to_owned();
            // The branch has the files that would be checked.
            let topic = life.rev("topic");
            let asks =
                format!("check\n\ndwp-state: check\ndwp-land-onto: main\ndwp-land-as: {made} {main}\n");
            let head = life.git(&["commit-tree", "-m", &asks, "-p", &topic, "-p", &made, &merged]);
            life.git(&["update-ref", "refs/heads/topic", head.trim_end()]);
            life.tick(&["topic"]).expect(0);
            assert_eq!((life.state("topic").as_str(), life.rev("main")), ("land", main.clone()), "{message}");
        }
        life.run(&["run", "topic"]).expect(0);
        assert_landed_once(&life, &["topic: new".into()]);
        assert!(life.try_rev("main:new").is_some());
        let authors = life.git(&["log", "--format=%an", &format!("{base}..main")]);
        assert!(!authors.contains("root"), "{authors}");
        assert!(!life.git(&["log", "--format=%B", "main"]).contains("deploy"));
        assert_eq!(life.git(&["rev-list", "--max-parents=0", "main"]).lines().count(), 1);
    }
}

/// K60.
#[test]
fn what_cannot_be_landed_is_refused_before_anything_is_written() {
    let life = Life::new(&[("check", CHECK)]);
    let topic = work(&life, "topic", "new", "x\n");
    let refused = |args: &[&str], code: i32, why: &str| {
        let said = life.run(&[&["land"], args].concat()).expect(code);
        assert!(said.stderr.contains(why), "{said:?}");
        assert_eq!(life.rev("topic"), topic);
    };
    refused(&["topic"], 2, "'main' has no '.aynig/land'");
    life.write(".aynig/land", "history: merge\n");
    commit(&life, "half of it");
    refused(&["topic"], 2, "cannot read '.aynig/land' of 'main': it has no line 'check: <state>'");
    life.write(".aynig/land", "check: check\n");
    commit(&life, "all of it");
    refused(&["topic", "--onto", "topic"], 129, "cannot land on itself");
    refused(&["topic", "--onto", "gone"], 128, "does not exist");
    refused(&["gone"], 128, "does not exist");
    refused(&["topic", "--merge", "--linear"], 129, "cannot be used with");
    life.git(&["config", "--global", "--unset", "aynig.commandsFrom"]);
    refused(&["topic"], 2, "not trusted");
    life.config("aynig.commandsFrom", "branch");
    life.run(&["set-state", "check", "-b", "topic"]).expect(0);
    life.run(&["set-working", "-b", "topic"]).expect(0);
    life.run(&["land", "topic"]).expect(3);
    // Asked twice it is written once.
    life.run(&["cancel", "topic"]).expect(0);
    life.run(&["land", "topic", "--no-tick"]).expect(0);
    // A candidate that is canceled says how it is asked for again.
    life.run(&["set-working", "-b", "topic"]).expect(0);
    let said = life.run(&["cancel", "topic"]).expect(0);
    assert!(said.stderr.contains("git aynig land topic asks for it again\n"), "{said:?}");
    life.run(&["land", "topic", "--no-tick"]).expect(0);
    let asked = life.rev("topic");
    life.run(&["land", "topic", "--no-tick"]).expect(0);
    assert_eq!(life.rev("topic"), asked);
}

/// K60: where an account has Git sign commits, or the policy asks for it, what lands is signed: a merge, and copies.
#[test]
fn what_lands_is_signed_where_that_is_asked_for() {
    let life = life(CHECK, "check: check\n");
    let key = life.repo.home().join("key");
    let path = key.to_str().unwrap();
    let made = life.repo.command("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", path]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return crate::support::skipped("no ssh-keygen");
    }
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    let allowed = life.repo.home().join("allowed");
    let mail = life.git(&["config", "user.email"]);
    std::fs::write(&allowed, format!("{} {public}", mail.trim_end())).unwrap();
    let allowed = allowed.to_str().unwrap();
    for (key, value) in
        [("gpg.format", "ssh"), ("user.signingKey", path), ("gpg.ssh.allowedSignersFile", allowed)]
    {
        life.config(key, value);
    }
    for key in ["", "commit.gpgSign", "aynig.requireSignature"] {
        if !key.is_empty() {
            life.config(key, "true");
        }
        for history in ["--linear", "--merge"] {
            let branch = format!("topic{key}{history}");
            work(&life, &branch, &format!("{branch}.txt"), "x\n");
            life.write("meanwhile", &branch);
            commit(&life, "meanwhile");
            let before = life.rev("main");
            life.run(&["land", &branch, history]).expect(0);
            assert_eq!(life.rev("main^1"), before);
            let signed = life.repo.try_git(&["verify-commit", "main"]).status.success();
            assert_eq!(signed, !key.is_empty(), "{key} {history}");
            if history == "--linear" {
                let format = "--format=%an <%ae> %at %s";
                let own = life.git(&["log", "-1", format, "--grep", &format!("^{branch}: "), &branch, "--"]);
                assert_eq!(life.git(&["log", "-1", format, "main"]), own);
            }
        }
        if key == "commit.gpgSign" {
            life.git(&["config", "--global", "--unset", key]);
        }
    }
    assert_landed_once(&life, &[]);
}

/// K60, K53: who waits for it hears of a conflict, and of a check that failed.
#[test]
fn a_conflict_and_a_failed_check_are_told() {
    let life = life("echo broken >&2; test ! -e bad", "check: check\n");
    let told = life.repo.home().join("told");
    life.config("aynig.notify", &format!("sh -c 'cat >>\"{}\"'", told.display()));
    work(&life, "failing", "bad", "x\n");
    work(&life, "apart", "file", "theirs\n");
    life.write("file", "ours\n");
    commit(&life, "ours");
    for branch in ["failing", "apart"] {
        life.run(&["land", branch]).expect(1);
    }
    let read = || std::fs::read_to_string(&told).unwrap_or_default();
    let text = eventually("two notices", || Some(read()).filter(|text| text.lines().count() == 2));
    let all: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |branch: &str| all.iter().find(|one| one["branch"] == branch).unwrap();
    assert!(all.iter().all(|one| one["kind"] == "stalled"), "{all:?}");
    assert_eq!(of("failing")["origin_state"], "check");
    assert!(of("failing")["body"].as_str().unwrap().contains("broken"), "{all:?}");
    assert!(of("apart")["body"].as_str().unwrap().contains("file"), "{all:?}");
}

/// K60: a check that names a state of its own has not passed, and who asked for the landing is told.
#[test]
fn a_check_that_names_another_state_lands_nothing_and_that_is_said() {
    let life = life("echo 'SET_STATE {\"state\":\"reviewed\"}'", "check: check\n");
    let main = life.rev("main");
    work(&life, "topic", "new", "x\n");
    let said = life.run(&["land", "topic"]).expect(1);
    assert!(said.stderr.contains("topic: not landed: its check says 'reviewed'"), "{said:?}");
    assert_eq!((life.rev("main"), life.state("topic")), (main, "reviewed".into()));
}

/// K60: a command that writes `landed` or `done` on the branch itself lands nothing, and who asked for it is told.
#[test]
fn a_check_that_writes_the_end_itself_lands_nothing_and_that_is_said() {
    for state in ["landed", "done"] {
        let life = life(&format!("git aynig set-state {state}"), "check: check\n");
        let main = life.rev("main");
        work(&life, "topic", "new", "x\n");
        let said = life.run(&["land", "topic"]).expect(1);
        assert!(
            said.stderr.contains(&format!("topic: not landed: a command wrote '{state}' on it")),
            "{said:?}"
        );
        assert_eq!((life.rev("main"), life.state("topic")), (main, state.into()));
    }
}

/// K60: a branch that goes on once it has landed has landed.
#[test]
fn a_branch_that_a_command_answers_after_its_landing_has_landed() {
    let life = life("true", "check: check\n");
    life.command("landed", "echo 'SET_STATE {\"state\":\"cleaned\"}'");
    commit(&life, "what follows");
    work(&life, "topic", "new", "x\n");
    let said = life.run(&["land", "topic"]).expect(0);
    assert!(!said.stderr.contains("not landed"), "{said:?}");
    assert_eq!((life.git(&["show", "main:new"]), life.state("topic")), ("x".into(), "cleaned".into()));
}
