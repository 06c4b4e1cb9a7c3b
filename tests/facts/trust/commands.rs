//! Which file of which tree is the command (K13).

use super::*;

/// K33: with a ref a pushed branch can't bring commands, nor change what they reach
#[test]
fn with_a_ref_nothing_of_the_branch_itself_runs() {
    let world = World::any();
    let dir = world.init("repo");
    let build = "#!/bin/sh\n. \"$AYNIG_DIR/lib/say.sh\"\n\"$(dirname \"$0\")/../lib/tool\"\nsay\n\
                 echo 'SET_STATE {\"state\":\"done\"}'\n";
    let files =
        [(".aynig/command/build", build), (".aynig/lib/say.sh", "say() { echo from main; }\n"), ("f", "1\n")];
    world.commit_files(&dir, "main", &files, "seed");
    // Not below a folder named 'command', so that its mode is set by hand.
    let tool = world.git_in(&dir, &["hash-object", "-w", "--stdin"], b"#!/bin/sh\necho tool of main\n");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.git(&dir, &["update-index", "--add", "--cacheinfo", &format!("100755,{tool},.aynig/lib/tool")]);
    world.git(&dir, &["commit", "-q", "-m", "tool"]);
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    world.git(&dir, &["branch", "evil"]);
    let evil = "#!/bin/sh\necho evil\necho 'SET_STATE {\"state\":\"done\"}'\n";
    let files = [
        (".aynig/command/build", evil),
        (".aynig/command/extra", evil),
        (".aynig/lib/say.sh", "say() { echo evil; }\n"),
        (".aynig/lib/tool", evil),
    ];
    world.commit_files(&dir, "evil", &files, "evil");
    let out = output_of(&world, &dir, "build", "evil");
    assert_eq!(out, "tool of main\nfrom main\nSET_STATE {\"state\":\"done\"}\n");
    world.aynig(&dir, &["set-state", "extra", "-b", "evil"]).expect(0);
    let before = head(&world, &dir, "evil");
    let said = world.aynig(&dir, &["tick", "evil"]).expect(0);
    assert!(said.err.contains("commands come from refs/heads/main"), "{}", said.err);
    assert_eq!(head(&world, &dir, "evil"), before);
    // And the branch's own, where that was said.
    world.aynig(&dir, &["trust", "--branches"]).expect(0);
    assert!(output_of(&world, &dir, "extra", "evil").starts_with("evil\n"));
    // A ref that is not there is said, and nothing runs.
    world.aynig(&dir, &["set-state", "build", "-b", "evil"]).expect(0);
    world.aynig(&dir, &["trust", "--ref", "gone"]).expect(0);
    let said = world.aynig(&dir, &["tick", "evil"]).expect(2);
    assert!(said.out.contains("'refs/heads/gone'") && said.out.contains("does not exist"), "{}", said.out);
}

/// K13
#[test]
fn a_command_that_is_not_committed_is_said_with_what_mends_it() {
    let world = World::any();
    let dir = asked(&world);
    world.aynig(&dir, &["trust", "--branches"]).expect(0);
    std::fs::write(dir.join(".aynig/command/later"), "#!/bin/sh\n").unwrap();
    world.aynig(&dir, &["set-state", "later"]).expect(0);
    let said = world.aynig(&dir, &["tick", "main"]).expect(0);
    assert!(
        said.err.contains(".aynig/command/later is in the working tree, not in the commit"),
        "{}",
        said.err
    );
    let again = "git aynig set-state later -b main";
    let hint = format!("hint: git switch main && git add .aynig && git commit && {again}\n");
    assert!(said.err.ends_with(&hint), "{}", said.err);
    // Where commands come from another branch, what the branch asks for is not taken away.
    world.aynig(&dir, &["trust"]).expect(0);
    world.aynig(&dir, &["set-state", "later", "-b", "work"]).expect(0);
    let said = world.aynig(&dir, &["tick", "work"]).expect(0);
    assert!(said.err.ends_with("hint: git switch main && git add .aynig && git commit\n"), "{}", said.err);
}

/// K13, K4
#[test]
fn the_roles_own_command_goes_first_and_others_stand_in() {
    let mut world = World::any();
    let dir = asked(&world);
    command(&world, &dir, "who", &format!("echo \"everyone's, ROLE=$ROLE\"\n{DONE}"));
    let qa = format!("#!/bin/sh\necho \"qa's, ROLE=$ROLE\"\n{DONE}\n");
    world.commit_files(&dir, "main", &[(".aynig/roles/qa/command/who", &qa)], "qa");
    world.git(&dir, &["reset", "-q", "--hard"]);
    let run = |world: &World, branch: &str, args: &[&str]| {
        output_with(world, &dir, "who", branch, args).lines().next().unwrap().to_owned()
    };
    assert_eq!(run(&world, "a", &[]), "everyone's, ROLE=");
    assert_eq!(run(&world, "b", &["--role", "qa"]), "qa's, ROLE=qa");
    assert_eq!(run(&world, "c", &["--role", "dev"]), "everyone's, ROLE=dev");
    world.set("ROLE", "qa");
    assert_eq!(run(&world, "d", &[]), "qa's, ROLE=qa");
    assert_eq!(run(&world, "e", &["--role", "dev"]), "everyone's, ROLE=dev");
    world.set("ROLE", "");
    world.aynig(&dir, &["set-state", "who", "-b", "bad"]).expect(0);
    for bad in ["../..", "a/b", ".", "..", "-x", "a b", "x\ny", ""] {
        world.set("ROLE", bad);
        let code = world.aynig(&dir, &["tick", "bad"]).code;
        assert_eq!(code, if bad.is_empty() { 0 } else { 129 }, "{bad:?}");
    }
}

/// Puts `.aynig` entries with any mode on a branch: (mode, path, content).
fn entries(world: &World, dir: &Path, branch: &str, entries: &[(&str, &str, &str)]) {
    let mut stream =
        format!("commit refs/heads/{branch}\ncommitter Ada <ada@example.com> 1 +0000\ndata 1\nx\n");
    for (mode, path, content) in entries {
        stream += &format!("M {mode} inline {path}\ndata {}\n{content}\n", content.len());
    }
    world.git_in(dir, &["fast-import", "--quiet", "--force"], stream.as_bytes());
}

/// K13, S4
#[test]
fn s04_only_an_executable_file_inside_the_folder_is_a_command() {
    let world = World::any();
    let dir = asked(&world);
    let script = format!("#!/bin/sh\necho \"at $(basename \"$0\")\"\n{DONE}\n");
    let outside = world.root().join("outside");
    std::fs::write(&outside, format!("#!/bin/sh\ntouch '{}'\n{DONE}\n", world.root().join("ran").display()))
        .unwrap();
    world.run("chmod", &world.root(), &["755", outside.to_str().unwrap()]).expect(0);
    entries(
        &world,
        &dir,
        "commands",
        &[
            ("100755", ".aynig/lib/real", &script),
            ("100644", ".aynig/command/plain", &script),
            ("120000", ".aynig/command/inside", "../lib/real"),
            ("120000", ".aynig/command/chain", "inside"),
            ("120000", ".aynig/command/folder", "../lib"),
            ("120000", ".aynig/command/self", "self"),
            ("120000", ".aynig/command/up", "../../outside"),
            ("120000", ".aynig/command/absolute", outside.to_str().unwrap()),
            ("120000", ".aynig/command/dangling", "../lib/none"),
            ("100755", "outside", &script),
        ],
    );
    world.aynig(&dir, &["trust", "--ref", "commands"]).expect(0);
    let run = |state: &str| {
        world.aynig(&dir, &["set-state", state, "-b", "try"]).expect(0);
        let trigger = head(&world, &dir, "try");
        let said = world.aynig(&dir, &["tick", "try"]);
        (said.code, said.out, head(&world, &dir, "try") == trigger)
    };
    for state in ["inside", "chain"] {
        let (code, out, _) = run(state);
        assert_eq!(code, 0, "{state}: {out}");
        assert!(out.contains(&format!("{state} -> done")), "{out}");
    }
    assert!(run("folder/real").1.contains("folder/real -> done"), "through a linked folder");
    for (state, code, why) in [
        ("plain", 2, "not executable"),
        ("up", 2, "leaves .aynig/"),
        ("absolute", 2, "leaves .aynig/"),
        ("self", 2, "too many symbolic links"),
        ("folder", 0, "has no command"),
        ("dangling", 0, "has no command"),
    ] {
        let (ended, out, untouched) = run(state);
        assert_eq!(ended, code, "{state}: {out}");
        assert!(out.contains(why) && untouched, "{state}: {out}");
    }
    assert!(!world.root().join("ran").exists());
}

/// K13: the whole folder is written once and read-only, whatever the umask
#[test]
fn the_copy_that_commands_start_from_is_read_only_and_written_once() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let world = World::any();
    let dir = asked(&world);
    let mut files = FILES.to_vec();
    files.push((".aynig/lib/deep/data", "data\n"));
    world.commit_files(&dir, "main", &files, "more");
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    let tick = |umask: &str, branch: &str| {
        world.aynig(&dir, &["set-state", "build", "-b", branch]).expect(0);
        let line = format!("umask {umask}; git aynig tick {branch}");
        paste(&world, &dir, &line).expect(0);
    };
    tick("000", "a");
    let tree = world.git(&dir, &["rev-parse", "main:.aynig"]);
    let place = dir.join(".git/aynig/commands").join(tree);
    let stamp = || {
        ["", "command", "command/build", "lib/deep", "lib/deep/data"].map(|path| {
            let meta = place.join(path).metadata().unwrap();
            (path, meta.permissions().mode() & 0o7777, meta.ino(), meta.mtime_nsec())
        })
    };
    let first = stamp();
    for (path, mode, ..) in first {
        assert_eq!(mode, if path.ends_with("data") { 0o444 } else { 0o555 }, "{path}");
    }
    tick("077", "b");
    assert_eq!(stamp(), first, "written once");
    let copies = std::fs::read_dir(dir.join(".git/aynig/commands")).unwrap().count();
    assert_eq!(copies, 1, "nothing half-made is left");
}
