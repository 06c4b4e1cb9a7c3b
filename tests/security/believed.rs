//! What a command may write and its runner reads afterwards, each file written as an enemy would: row S26.
//!
//! A command is told from what its runner starts by the run's variables, which none of the runner's children has.

use super::*;
use std::os::unix::fs::symlink;

/// A program that notes that it ran outside of a command.
fn alarm(world: &World) -> (PathBuf, PathBuf) {
    let (program, fired) = (world.root().join("alarm"), world.root().join("fired"));
    let script =
        format!("#!/bin/sh\n[ -n \"$AYNIG_RUN_ID\" ] || echo \"$0 $*\" >>'{}'\ncat\n", fired.display());
    executable(&program, &script);
    (program, fired)
}

/// Shell that makes a repository of the command's own in `$evil`, which starts `alarm` wherever Git lets it.
fn evil_repository(alarm: &Path) -> String {
    let alarm = alarm.display();
    format!(
        "admin=$(cd \"$(git rev-parse --git-dir)\" && pwd); common=$(cd \"$(git rev-parse --git-common-dir)\" && pwd)\n\
         evil=\"$AYNIG_RUN_DIR/evil\"; env -u GIT_DIR git init -q --bare \"$evil\"\n\
         cat >>\"$evil/config\" <<X\n[core]\n\tfsmonitor = {alarm}\n\tsshCommand = {alarm}\n\
         [filter \"x\"]\n\tclean = {alarm}\n\tsmudge = {alarm}\n\
         [protocol \"ext\"]\n\tallow = always\nX\n\
         echo '* filter=x' >.gitattributes; echo new >new\n"
    )
}

/// K14, K25, S26: whatever a command makes of its slot's registration, no Git of its runner goes by it
#[test]
fn s26_a_slots_registration_that_a_command_wrote_steers_nothing() {
    let world = World::any();
    let (program, fired) = alarm(&world);
    let evil = evil_repository(&program);
    let (elsewhere, own) = (world.root().join("elsewhere"), world.root().join("precious"));
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("file"), "precious\n").unwrap();
    let (there, own_shown) = (elsewhere.display(), own.display());
    let traps = [
        ("commondir", format!("{evil}echo \"$evil\" >\"$admin/commondir\"\n{DONE}")),
        ("worktree-config", format!("{evil}cp \"$evil/config\" \"$admin/config.worktree\"\n{DONE}")),
        (
            "link",
            format!(
                "{evil}cp -r \"$admin\"/* \"$evil\"; rm -rf \"$admin\"; ln -s \"$evil\" \"$admin\"\n{DONE}"
            ),
        ),
        (
            "folder-link",
            format!(
                "rm -rf \"$(git rev-parse --git-dir)\"; ln -s {own_shown} \"$(dirname \"$AYNIG_RUN_DIR\")/../../worktrees/aynig-slot-0\"; echo new >new\n{DONE}"
            ),
        ),
        (
            "somebodys",
            format!(
                "{evil}rm .gitattributes; echo mine >\"$admin/locked\"; echo {there}/.git >\"$admin/gitdir\"\n\
                 printf 'gitdir: %s\\n' \"$admin\" >{there}/.git; cp \"$admin/index\" \"$admin/kept\"\n\
                 (cd {there} && GIT_DIR=$admin GIT_WORK_TREE=. git checkout-index -qaf)\n\
                 echo \"ref: refs/heads/$AYNIG_BRANCH\" >\"$admin/HEAD\"\n{DONE}"
            ),
        ),
        (
            "stalls",
            format!(
                "{evil}echo \"$evil\" >\"$admin/commondir\"; cp \"$evil/config\" \"$admin/config.worktree\"; exit 3"
            ),
        ),
    ];
    let commands: Vec<(&str, &str)> = traps.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let dir = repo(&world, &commands);
    world.git(&dir, &["config", "core.repositoryFormatVersion", "1"]);
    world.git(&dir, &["config", "extensions.worktreeConfig", "true"]);
    for (name, _) in &traps {
        let said = tick(&world, &dir, name, name);
        let all = format!("{name}: {}{}", said.out, said.err);
        assert!([0, 1].contains(&said.code), "{all}");
        let ran = std::fs::read_to_string(&fired).unwrap_or_default();
        assert_eq!(ran, "", "{all}");
        let made: Vec<_> = std::fs::read_dir(&elsewhere).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(!made.iter().any(|name| name == "new"), "{all}{made:?}");
        assert_eq!(std::fs::read_to_string(own.join("file")).unwrap(), "precious\n", "{all}");
        // What the command made is not lost: on the branch, or kept.
        let kept = world.git(&dir, &["log", "-1", "--format=%B", name]);
        let attempt = kept.split_whitespace().find(|word| word.starts_with("refs/aynig/attempts/"));
        let holder = attempt.map(|name| name.trim_end_matches('.')).unwrap_or(name);
        assert_eq!(world.git(&dir, &["show", &format!("{holder}:new")]), "new", "{all}");
        // The next run has a sound slot.
        let after = format!("after-{name}");
        assert!(tick(&world, &dir, "build", &after).expect(0).out.contains("build -> review"), "{name}");
        assert_eq!(std::fs::read_to_string(&fired).unwrap_or_default(), "", "{name}");
    }
    world.assert_sound(&dir);
}

/// K14, K26, S26: nor by a submodule's repository, which is the command's own
#[test]
fn s26_a_submodules_repository_that_a_command_made_steers_nothing() {
    let world = World::any();
    let (program, fired) = alarm(&world);
    let alarm = program.display();
    let evil = evil_repository(&program);
    let inner = world.init("inner");
    world.commit_files(&inner, "main", &[("a", "a\n")], "inner");
    let inner_shown = inner.display();
    let traps = [
        // A repository without the commits that its refs name, and with a program to fetch them.
        (
            "promisor",
            format!(
                "{evil}rm .gitattributes; mkdir -p \"$admin/modules\"; cp -r \"$evil\" \"$admin/modules/m\"; cd \"$admin/modules/m\"\n\
                 cat >>config <<X\n[remote \"o\"]\n\turl = ext::{alarm} x\n\tpromisor = true\n\tpartialclonefilter = tree:0\n\
                 [extensions]\n\tpartialClone = o\nX\n\
                 sed -i 's/repositoryformatversion = 0/repositoryformatversion = 1/' config\n\
                 echo 1111111111111111111111111111111111111111 >refs/heads/main\n{DONE}"
            ),
        ),
        // One in the slot itself, at a path that the index knows.
        (
            "gitlink",
            format!(
                "{evil}rm .gitattributes; git init -q linked; cd linked; git pull -q {inner_shown} main\n\
                 grep -v bare \"$evil/config\" >>.git/config; echo '* filter=x' >.git/info/attributes; echo b >a\n{DONE}"
            ),
        ),
    ];
    let commands: Vec<(&str, &str)> = traps.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let dir = repo(&world, &commands);
    let link = format!("160000,{},linked", head(&world, &inner, "main"));
    world.git(&dir, &["update-index", "--add", "--cacheinfo", &link]);
    world.git(&dir, &["commit", "-qm", "a submodule"]);
    for (name, _) in &traps {
        let said = tick(&world, &dir, name, name);
        let all = format!("{name}: {}{}", said.out, world.aynig(&dir, &["logs", "--stderr", name]).out);
        tick(&world, &dir, "build", &format!("after-{name}"));
        assert_eq!(std::fs::read_to_string(&fired).unwrap_or_default(), "", "{all}");
        assert!(world.try_git(&dir, &["cat-file", "-e", &format!("{name}:new")]).code == 0, "{all}");
    }
}

/// K19, S26: the result file is a plain file, and nothing that it leads to is read
#[test]
fn s26_a_result_is_not_read_through_a_link() {
    let world = World::any();
    let forged = world.root().join("forged");
    std::fs::write(&forged, "{\"state\":\"forged\"}\n").unwrap();
    let forged = forged.display();
    let traps = [
        ("link", format!("ln -s {forged} \"$AYNIG_RESULT\"")),
        (
            "folder-link",
            format!(
                "mkdir \"$T/run\"; cp {forged} \"$T/run/result\"; rm -rf \"$AYNIG_RUN_DIR\"; ln -s \"$T/run\" \"$AYNIG_RUN_DIR\""
            ),
        ),
        ("fifo", "mkfifo \"$AYNIG_RESULT\"".to_owned()),
        ("device", "ln -s /dev/zero \"$AYNIG_RESULT\"".to_owned()),
        ("long", "truncate -s 100G \"$AYNIG_RESULT\"".to_owned()),
        ("folder", "mkdir \"$AYNIG_RESULT\"".to_owned()),
    ];
    let scripts: Vec<(&str, String)> = traps
        .iter()
        .map(|(name, script)| {
            (*name, format!("T=$(dirname \"$PWD\")\n{script}\necho 'SET_STATE {{\"state\":\"printed\"}}'"))
        })
        .collect();
    let commands: Vec<(&str, &str)> = scripts.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let dir = repo(&world, &commands);
    for (name, _) in &traps {
        let said = tick(&world, &dir, name, name).expect(1);
        assert!(said.out.contains("stalled"), "{name}: {}{}", said.out, said.err);
        let state = world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)", name]);
        assert_eq!(state.trim(), "stalled", "{name}");
    }
}

/// K48a, S26: the file for events may be anything once its command had it: no process waits for it, nothing is
/// read through it, and what it leads to is neither shown nor changed
#[test]
fn s26_a_file_of_events_is_opened_as_an_enemys() {
    let world = World::any();
    let secret = world.root().join("secret");
    let told = "{\"type\":\"progress\",\"text\":\"do-not-show-this\"}\n";
    std::fs::write(&secret, told.repeat(5000)).unwrap();
    let shown = secret.display();
    let traps = [
        ("link", format!("ln -s {shown} \"$AYNIG_EVENTS\"")),
        ("fifo", "mkfifo \"$AYNIG_EVENTS\"".to_owned()),
        ("device", "ln -s /dev/zero \"$AYNIG_EVENTS\"".to_owned()),
        ("folder", "mkdir \"$AYNIG_EVENTS\"".to_owned()),
        ("long", "truncate -s 100G \"$AYNIG_EVENTS\"".to_owned()),
        ("line", "head -c 5M /dev/zero | tr '\\0' x >\"$AYNIG_EVENTS\"".to_owned()),
        ("hardlink", format!("ln {shown} \"$AYNIG_EVENTS\"")),
        ("hidden", "chmod 0 . 2>/dev/null; echo x >\"$AYNIG_EVENTS\"; chmod 0 \"$AYNIG_EVENTS\"".to_owned()),
    ];
    let look = "git aynig status --json \"$AYNIG_BRANCH\" >\"$AYNIG_RUN_DIR/status\"";
    let scripts: Vec<(&str, String)> =
        traps.iter().map(|(name, script)| (*name, format!("{script}\n{look}\n{DONE}"))).collect();
    let commands: Vec<(&str, &str)> = scripts.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let dir = repo(&world, &commands);
    world.git(&dir, &["config", "--global", "aynig.logMaxBytes", "64k"]);
    let bin = world.root().join("bin/git-aynig");
    for (name, _) in &traps {
        let said = world.aynig(&dir, &["set-state", name, "-b", name]).expect(0);
        let ticked = world.run("timeout", &dir, &["60", bin.to_str().unwrap(), "tick", name]);
        assert_eq!(ticked.code, 0, "{name}: {}{}{}", said.err, ticked.out, ticked.err);
        let logs = world.run("timeout", &dir, &["60", bin.to_str().unwrap(), "logs", "--events", name]);
        assert!(logs.code != 124 && (*name == "hardlink" || !logs.out.contains("do-not-show")), "{name}");
        let run = world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-run-id,valueonly)", name]);
        let status = std::fs::read_to_string(dir.join(".git/aynig/runs").join(run.trim()).join("status"));
        let status = status.unwrap();
        assert!(status.contains("\"progress\":"), "{name}: {status}");
        assert!(*name == "hardlink" || status.contains("\"progress\":null"), "{name}: {status}");
        assert_eq!(std::fs::read_to_string(&secret).unwrap().len(), told.len() * 5000, "{name}");
    }
}

/// K16, K19, S26: no process waits for what lies in a run's folder or among the logs, and nothing is read through it
#[test]
fn s26_what_reads_runs_and_logs_later_waits_for_nothing_and_follows_nothing() {
    let world = World::any();
    let secret = world.root().join("secret");
    std::fs::write(&secret, "do-not-show-this\n").unwrap();
    let secret = secret.display();
    let traps = [
        ("loglink", format!("ln -sf {secret} \"$STDOUT_LOG_PATH\"")),
        ("logfifo", "rm \"$STDOUT_LOG_PATH\"; mkfifo \"$STDOUT_LOG_PATH\"".to_owned()),
        ("lockfifo", "rm \"$AYNIG_RUN_DIR/lock\"; mkfifo \"$AYNIG_RUN_DIR/lock\"".to_owned()),
        ("notefifo", "rm \"$AYNIG_RUN_DIR/log\"; mkfifo \"$AYNIG_RUN_DIR/log\"".to_owned()),
        ("notes", "echo ../../secret.stdout.log >\"$AYNIG_RUN_DIR/log\"".to_owned()),
        ("headfifo", "cd \"$(git rev-parse --git-dir)\"; rm HEAD; mkfifo HEAD".to_owned()),
    ];
    let scripts: Vec<(&str, String)> =
        traps.iter().map(|(name, script)| (*name, format!("{script}\n{DONE}"))).collect();
    let commands: Vec<(&str, &str)> = scripts.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let dir = repo(&world, &commands);
    let bin = world.root().join("bin/git-aynig");
    for (name, _) in &traps {
        let said = world.aynig(&dir, &["set-state", name, "-b", name]).expect(0);
        assert_eq!(said.err, "", "{name}");
        for args in [
            &["tick", name][..],
            &["logs", name],
            &["logs", "--stderr", name],
            &["status"],
            &["doctor"],
            &["gc"],
            &["tick"],
        ] {
            let said =
                world.run("timeout", &dir, &[&["-k", "1", "60", bin.to_str().unwrap()], args].concat());
            assert!(
                !matches!(said.code, 124 | 137 | 143),
                "{name}: {args:?} hangs: {}{}",
                said.out,
                said.err
            );
            assert!(!format!("{}{}", said.out, said.err).contains("do-not-show"), "{name}: {args:?}");
        }
    }
    let _ = symlink("", "");
}
