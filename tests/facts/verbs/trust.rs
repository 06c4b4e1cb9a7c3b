//! What `trust` writes, and where it says that it can't or that it does not help yet.

use crate::verbs::rig::Rig;

/// K33: Git would put a file in place of whatever the variable names.
#[test]
fn a_configuration_that_is_no_file_is_left_alone() {
    let mut rig = Rig::untrusted();
    let odd = rig.world.home().join("odd");
    rig.world.run("mkfifo", &rig.dir, &[&odd]).expect(0);
    rig.world.set("GIT_CONFIG_GLOBAL", &odd);
    // A pipe that no process writes to would be waited for: this one has nothing in it and ends at once.
    let feed = rig
        .world
        .command("sh", &rig.dir)
        .args(["-c", &format!("while :; do : >'{}'; done", odd.display())])
        .spawn();
    let mut feed = feed.unwrap();
    let said = rig.aynig(&["trust"]).expect(128);
    feed.kill().unwrap();
    feed.wait().unwrap();
    assert!(said.err.contains("which is no file\n"), "{}", said.err);
    assert!(said.err.contains(" -c aynig.commandsFrom=refs/heads/main aynig tick\n"), "{}", said.err);
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::metadata(&odd).unwrap().file_type().is_fifo());
}

/// K33: trust in what is not there yet is written, and said.
#[test]
fn a_ref_that_is_not_there_yet_is_said() {
    let rig = Rig::untrusted();
    for name in ["gone", "origin/main", "v1"] {
        let said = rig.aynig(&["trust", "--ref", name]).expect(0);
        let warning =
            format!("warning: 'refs/heads/{name}' does not exist here yet; until it does, nothing runs\n");
        assert!(said.err.contains(&warning), "{}", said.err);
    }
    let said = rig.aynig(&["trust", "--ref", "main"]).expect(0);
    assert_eq!(said.err, "trusted: commands come from refs/heads/main, whatever another branch holds\n");
}

/// K33: what is pasted where there is no HOME trusts one branch, not every pusher.
#[test]
fn without_a_home_the_hint_names_one_branch() {
    let mut rig = Rig::untrusted();
    rig.set("work", "ok");
    rig.world.vars.remove(std::ffi::OsStr::new("HOME"));
    let said = rig.aynig(&["tick", "work"]).expect(2);
    let hint = said.err.lines().find_map(|l| l.strip_prefix("hint: ")).unwrap();
    assert!(hint.ends_with(" -c aynig.commandsFrom=refs/heads/main aynig tick"), "{hint}");
    let said = rig.world.run("sh", &rig.dir, &["-c", &format!("{hint} work")]).expect(0);
    assert!(said.out.contains("work: ok -> done"), "{}{}", said.out, said.err);
}

#[test]
fn no_branch_is_called_head() {
    let rig = Rig::new();
    let said = rig.aynig(&["set-state", "ok", "-b", "HEAD"]).expect(129);
    assert!(said.err.contains("'HEAD' is no valid branch name"), "{}", said.err);
    assert_eq!(rig.git(&["for-each-ref", "refs/heads/HEAD"]), "");
}

/// K33, K40: what goes on in the background does so under what the caller said.
#[test]
fn the_background_keeps_what_the_call_said() {
    let rig = Rig::untrusted();
    rig.set("work", "ok");
    rig.aynig(&["tick", "--detach", "work"]).expect(2);
    let said = ["-c", "aynig.commandsFrom=refs/heads/main", "aynig", "tick", "--detach", "work"];
    rig.world.run("git", &rig.dir, &said).expect(0);
    let state = || rig.git(&["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)", "work"]);
    crate::support::life::eventually("an answer", || (state().trim() == "done").then_some(()));
    // What is wrong with the call is said here, not in the background's log.
    let wrong =
        ["-c", "aynig.commandsFrom=refs/heads/main", "aynig", "tick", "--detach", "--lease", "nonsense"];
    rig.world.run("git", &rig.dir, &wrong).expect(129);
}
