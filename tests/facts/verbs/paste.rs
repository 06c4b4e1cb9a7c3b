//! Every command that is printed for pasting, around names that a shell would act on (K36).

use crate::support::world::Said;
use crate::verbs::rig::Rig;

/// Git takes it for a branch, a remote can be called so, and a shell makes a file of it.
const NAME: &str = "a;touch${IFS}PWNED";
const WORD: &str = "'a;touch${IFS}PWNED'";

/// The commands that were printed for pasting, in the order they were.
fn printed(said: &Said) -> Vec<String> {
    let hint = |line: &str| line.trim_start().strip_prefix("hint: ").map(str::to_owned);
    said.err.lines().chain(said.out.lines()).filter_map(hint).collect()
}

/// One of them holds `text`; pasted, with what a person would fill in, none makes the file.
#[track_caller]
fn pasted(rig: &Rig, said: &Said, text: &str) {
    let all = printed(said);
    assert!(all.iter().any(|hint| hint.contains(text)), "no {text} in {}{}", said.err, said.out);
    for hint in all {
        let command = hint.replace("<state>", "ok").replace("<commit>", "main").replace("<ref>", "main");
        rig.world.run("sh", &rig.dir, &["-c", &command]);
        assert!(!rig.dir.join("PWNED").exists(), "{command}");
    }
}

#[test]
fn verbs_that_look() {
    let rig = Rig::new();
    pasted(&rig, &rig.aynig(&["events", NAME]), &format!("git aynig set-state <state> -b {WORD}"));
    rig.git(&["branch", "-D", NAME]);
    rig.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{NAME}")]);
    pasted(&rig, &rig.aynig(&["logs"]), &format!("git aynig set-state <state> -b {WORD}"));
    rig.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    rig.git(&["branch", "-f", NAME, "main"]);
    pasted(&rig, &rig.aynig(&["logs", NAME]), &format!("git aynig status {WORD}"));
    // An outcome that stands on no lease.
    let lease = b"x\n\ndwp-state: done\ndwp-run-id: r\n";
    rig.world.raw_commit(&rig.dir, NAME, lease);
    pasted(&rig, &rig.aynig(&["doctor", "--history", NAME]), &format!("git aynig events --history {WORD}"));
}

#[test]
fn where_commands_come_from() {
    let rig = Rig::untrusted();
    rig.git(&["checkout", "-q", "-b", NAME]);
    // No account to write to: the setting goes with one call.
    let homeless = |args: &[&str]| {
        let all = [&["-u", "HOME", "git", "-c", "protocol.file.allow=always", "aynig"], args].concat();
        rig.world.run("env", &rig.dir, &all)
    };
    pasted(&rig, &homeless(&["tick"]), "aynig.commandsFrom='refs/heads/a;touch${IFS}PWNED' aynig tick");
    let said = rig.world.run("env", &rig.dir, &["GIT_CONFIG_GLOBAL=/dev/null", "git", "aynig", "trust"]);
    pasted(&rig, &said, "aynig.commandsFrom='refs/heads/a;touch${IFS}PWNED' aynig tick");
    // A key of the repository's own configuration, in a section that is meant for it.
    let glob = format!("aynig.{}[;$(touch PWNED)/]*.commandsFrom", rig.world.root().display());
    rig.git(&["config", &glob, "branch"]);
    let said = rig.aynig(&["doctor"]);
    assert!(said.out.contains("does not count"), "{}", said.out);
    pasted(&rig, &said, "'aynig.");
}

#[test]
fn governed_runs() {
    let rig = Rig::new();
    rig.git(&["branch", NAME, "main"]);
    rig.aynig(&["trust", "--ref", NAME]).expect(0);
    let said = rig.aynig(&["govern", "start", "-b", NAME]);
    pasted(&rig, &said, &format!("git switch {WORD}"));
    assert!(rig.git(&["symbolic-ref", "HEAD"]).contains("refs/heads/"));
}

#[test]
fn remotes() {
    let rig = Rig::untrusted();
    // Git itself takes no such name for a remote, but reads one from the configuration.
    rig.git(&["config", &format!("remote.{NAME}.url"), "/nowhere"]);
    rig.git(&["config", "aynig.remote", NAME]);
    let said = rig.aynig(&["status"]);
    assert!(said.err.contains(&format!("; --remote {WORD} asks it")), "{}", said.err);
    // A remote that only the repository's configuration names is asked once that is trusted (K34).
    rig.aynig(&["trust", "--ref", "main"]).expect(0);
    pasted(&rig, &rig.aynig(&["doctor", "--network"]), &format!("git ls-remote {WORD} HEAD"));
    rig.git(&["config", "--unset", "aynig.remote"]);
    rig.git(&["checkout", "-q", "-b", "work"]);
    rig.git(&["config", "branch.work.remote", NAME]);
    let said = rig.aynig(&["set-state", "ok", "--push"]);
    pasted(&rig, &said, WORD);
}
