//! What a pusher, and a caller, can do to a runner: rows S6 to S8, S14, S18, S19 and S21.

use super::*;
use std::io::Write;
use std::process::Stdio;

/// Variables that steer Git, and may not reach a `git` of ours, with a value that Git itself can bear.
const STEERING: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_QUARANTINE_PATH",
    "GIT_PREFIX",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_0",
    "GIT_CONFIG_VALUE_0",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_DIFF_PATH_COUNTER",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_TEMPLATE_DIR",
    "GIT_ATTR_SOURCE",
    "GIT_ATTR_NOSYSTEM",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_REFLOG_ACTION",
    "GIT_REF_PARANOIA",
    "GIT_PUSH_OPTION_COUNT",
    "GIT_PUSH_OPTION_0",
    "GIT_PUSH_CERT",
    "GIT_PUSH_CERT_NONCE",
    "GIT_PROTOCOL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_MERGE_VERBOSITY",
    "GIT_DEFAULT_HASH",
    "GIT_DEFAULT_REF_FORMAT",
];

/// K15, S8: what steers Git in the environment of a hook reaches neither a `git` of ours nor the command
#[test]
fn s08_nothing_that_steers_git_is_passed_on() {
    assert!(STEERING.len() >= 40, "{}", STEERING.len());
    // With the folder that is named as the working tree, and without: then Git is asked what it makes of the repository.
    for is_there in [true, false] {
        let mut world = World::any();
        let canary = world.root().join("canary");
        if is_there {
            std::fs::create_dir(&canary).unwrap();
        }
        let dir = repo(&world, &[("show", &format!("env >\"$SEEN.command\"\n{DONE}"))]);
        world.aynig(&dir, &["set-state", "show", "-b", "work"]).expect(0);
        // A git that writes down what it is given. Two children are meant to have what the caller said by `git -c`, and
        // start nothing: the reader of the whole configuration, which confinement needs wherever a child could start
        // something, and the one that says whether Git takes the repository.
        let (seen, real) = (world.root().join("seen"), world.git.program.clone());
        std::fs::remove_file(world.root().join("bin/git")).unwrap();
        let seen_of = "{ echo \"called: $*\"; case \" $* \" in *' config --list '* | *' rev-parse --git-dir ') \
                       env | grep -v '^GIT_CONFIG_' ;; *) env ;; esac; }";
        let script = format!("#!/bin/sh\n{seen_of} >>\"$SEEN\"\nexec '{}' \"$@\"\n", real.display());
        executable(&world.root().join("bin/git"), &script);
        world.set("SEEN", &seen);
        // Of a file system that Git has to write to, so that children of ours are needed.
        std::fs::write(dir.join("file.txt"), "one\n").unwrap();
        for name in STEERING {
            let value = match *name {
                "GIT_DIR" | "GIT_COMMON_DIR" => dir.join(".git").into_os_string(),
                "GIT_CONFIG_COUNT" | "GIT_PUSH_OPTION_COUNT" => "1".into(),
                "GIT_REPLACE_REF_BASE" => "refs/canary/".into(),
                "GIT_CONFIG_KEY_0" => "core.fsmonitor".into(),
                _ => canary.clone().into_os_string(),
            };
            // gix reads these itself, as Git would; what is looked at here are children.
            if !matches!(*name, "GIT_OBJECT_DIRECTORY" | "GIT_COMMON_DIR" | "GIT_DEFAULT_HASH") {
                world.set(name, value);
            }
        }
        let said = world.aynig(&dir, &["tick", "work"]);
        let mut all = std::fs::read_to_string(&seen).unwrap_or_default();
        all += &std::fs::read_to_string(world.root().join("seen.command"))
            .unwrap_or_else(|e| panic!("{e}: {}{}", said.out, said.err));
        assert!(all.contains("PATH="));
        let calls: Vec<&str> = all.lines().filter(|line| line.starts_with("called: ")).collect();
        assert!(is_there || calls.iter().any(|call| call.ends_with(" rev-parse --git-dir")), "{calls:?}");
        // What the runner sets itself: an identity, an index of its own, configuration that switches filters off.
        for line in all.lines().filter(|line| line.starts_with("GIT_")) {
            assert!(!line.contains("canary") && !line.contains("core.fsmonitor"), "{line}: {calls:?}");
            assert!(
                !line.starts_with("GIT_PUSH_OPTION") && !line.starts_with("GIT_DIR="),
                "{line}: {calls:?}"
            );
        }
    }
}

/// A bare repository whose `main` has the command `go`; what it is started as says where it came from.
fn server(world: &World) -> PathBuf {
    let dir = world.try_init("repo.git", &["--bare"]).unwrap();
    world.commit_files(&dir, "main", &[(".aynig/command/go", &go("main"))], "main");
    dir
}

fn go(from: &str) -> String {
    format!("#!/bin/sh\necho {from} >>\"$RAN\"\n{DONE}\n")
}

/// K33, K35, K39, S14: for a push nothing runs but what ref and source allow; who pushes changes nothing
#[test]
fn s14_a_push_runs_what_ref_and_source_allow_and_nothing_else() {
    let mut world = World::any();
    let dir = server(&world);
    let ran = world.root().join("ran");
    world.set("RAN", &ran);
    global(&world, &["aynig.passEnv", "RAN"]);
    global(&world, &["aynig.branches", "work/*"]);
    global(&world, &["aynig.hooks", "wait"]);
    let pushers = [("", ""), ("REMOTE_USER", "eve"), ("GL_USER", "admin"), ("AYNIG_RUN_ID", "x")];
    let refs = ["refs/heads/work/a", "refs/heads/secret", "refs/heads/main", "refs/tags/work/a"];
    let mut cells = 0;
    for source in ["none", "branch", "refs/heads/main"] {
        global(&world, &["aynig.commandsFrom", source]);
        for (user, value) in pushers {
            for name in refs {
                let event = commit(&world, &dir, cells);
                world.git(&dir, &["update-ref", name, &event]);
                let mut hook = world.command(world.root().join("bin/git-aynig"), &dir);
                if !user.is_empty() {
                    hook.env(user, value);
                }
                hook.args(["hook", "post-receive"]).env("GIT_DIR", ".");
                let mut child =
                    hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
                let line = format!("{} {event} {name}\n", "0".repeat(40));
                child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
                let said = Said::from(child.wait_with_output().unwrap()).expect(0);
                let want = match (name, source) {
                    ("refs/heads/work/a", "branch") => "pushed\n",
                    ("refs/heads/work/a", "refs/heads/main") => "main\n",
                    _ => "",
                };
                let found = std::fs::read_to_string(&ran).unwrap_or_default();
                assert_eq!(found, want, "{name} from {source} by {user}: {}{}", said.out, said.err);
                let _ = std::fs::remove_file(&ran);
                world.git(&dir, &["update-ref", "refs/heads/main", &world.git(&dir, &["rev-parse", "kept"])]);
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 48);
}

/// A state event that brings a command of its own, on top of `main`.
fn commit(world: &World, dir: &Path, n: usize) -> String {
    world.git(dir, &["update-ref", "refs/tags/kept", "refs/heads/main"]);
    let files = [(".aynig/command/go", &*go("pushed")), ("n", &*n.to_string())];
    world.git(dir, &["update-ref", "refs/heads/scratch", "refs/heads/main"]);
    let id = world.commit_files(dir, "scratch", &files, "go\n\ndwp-state: go");
    world.git(dir, &["update-ref", "-d", "refs/heads/scratch"]);
    id
}

/// K17, S18: a command has its three descriptors and no other, whatever its runner was started with
#[test]
fn s18_a_command_inherits_three_descriptors() {
    let world = World::any();
    // It goes to the log: for a pipe or a file of its own the shell would hold another descriptor while `ls` looks.
    let dir = repo(&world, &[("show", &format!("ls -l /proc/$$/fd\n{DONE}"))]);
    if !Path::new("/proc/self/fd").exists() {
        return support::skipped("S18: no /proc here");
    }
    world.aynig(&dir, &["set-state", "show", "-b", "work"]).expect(0);
    let event = world.git(&dir, &["rev-parse", "work"]);
    let open = "exec 3</ 4</dev/null 5>/dev/null 7<. 9</etc/passwd; git aynig tick work";
    world.run("/bin/sh", &dir, &["-c", open]).expect(0);
    let listed = std::fs::read_to_string(dir.join(format!(".aynig/logs/{event}.stdout.log"))).unwrap();
    let open: Vec<(&str, &str)> = listed
        .lines()
        .filter_map(|line| line.split_once(" -> "))
        .map(|(left, target)| (left.rsplit(' ').next().unwrap(), target))
        // The shell's own: the script that it reads.
        .filter(|(_, target)| !target.ends_with("/command/show"))
        .collect();
    let [("0", stdin), ("1", stdout), ("2", stderr)] = open[..] else { panic!("{listed}") };
    assert_eq!(stdin, "/dev/null", "{listed}");
    assert!(stdout.starts_with("pipe:") && stderr.starts_with("pipe:"), "{listed}");
}

/// K35, S19: every limit that a user sets holds: those of `aynig.exec`, time, output, chains
#[test]
fn s19_limits_hold() {
    let world = World::any();
    let loud =
        "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done";
    let dir = repo(
        &world,
        &[
            ("show", &format!("echo \"$(ulimit -n) $(ulimit -c) $(ulimit -f)\"\n{DONE}")),
            ("slow", "sleep 300"),
            ("loud", &format!("{loud}\n{DONE}")),
            ("loop", "echo 'SET_STATE {\"state\":\"loop\"}'"),
            ("read", "read x && exit 7; exit 8"),
        ],
    );
    let log = |branch: &str| {
        let id = world
            .git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-trigger,valueonly,separator=)", branch]);
        std::fs::read_to_string(dir.join(format!(".aynig/logs/{id}.stdout.log"))).unwrap()
    };
    global(&world, &["aynig.exec", "sh -c 'ulimit -n 32; ulimit -c 0; ulimit -f 1000; exec \"$@\"' sh"]);
    tick(&world, &dir, "show", "limits").expect(0);
    assert!(log("limits").starts_with("32 0 1000\n"), "{}", log("limits"));
    global(&world, &["--unset", "aynig.exec"]);
    world.aynig(&dir, &["set-state", "slow", "-b", "slow"]).expect(0);
    let said = world.aynig(&dir, &["tick", "slow", "--timeout", "1s"]).expect(1);
    assert!(said.out.contains("timed out"), "{}", said.out);
    global(&world, &["aynig.logMaxBytes", "2k"]);
    tick(&world, &dir, "loud", "loud").expect(0);
    assert!(log("loud").len() < 2200 && log("loud").contains("bytes left out"), "{}", log("loud").len());
    global(&world, &["aynig.maxHops", "5"]);
    world.aynig(&dir, &["set-state", "loop", "-b", "loop"]).expect(0);
    let before = head(&world, &dir, "loop");
    world.aynig(&dir, &["tick", "loop", "--chain"]);
    assert_eq!(world.states(&dir, "loop", &before).iter().filter(|s| *s == "working").count(), 5);
    let said = tick(&world, &dir, "read", "read").expect(1);
    assert!(said.out.contains("exit 8"), "nothing to read: {}", said.out);
}

/// K15, K35, S21: with `aynig.passEnv` a command is told exactly this
#[test]
fn s21_the_environment_of_a_command_is_this_set() {
    let mut world = World::any();
    let dir = repo(&world, &[("show", &format!("cat /proc/$$/environ >\"$TOOL_OUT\"\n{DONE}"))]);
    if !Path::new("/proc/self/environ").exists() {
        return support::skipped("S21: no /proc here");
    }
    let out = world.root().join("environ");
    world.set("TOOL_OUT", &out);
    for name in ["API_TOKEN", "AWS_SECRET_ACCESS_KEY", "GIT_CONFIG_COUNT", "SSH_AUTH_SOCK", "NPM_TOKEN"] {
        world.set(name, "0");
    }
    global(&world, &["aynig.passEnv", "TOOL_*"]);
    world.raw_commit(&dir, "work", b"go\n\nbody\n\ndwp-state: show\ndwp-ticket: 7\nPATH: /evil\n");
    world.aynig(&dir, &["tick", "work"]).expect(0);
    let raw = std::fs::read(out).unwrap();
    let mut names: Vec<String> = raw
        .split(|b| *b == 0)
        .filter(|v| !v.is_empty())
        .map(|v| String::from_utf8_lossy(v).split('=').next().unwrap().to_owned())
        .collect();
    names.sort();
    let mut want = "AYNIG_BODY AYNIG_BODY_FILE AYNIG_BRANCH AYNIG_COMMIT_HASH AYNIG_DIR AYNIG_EVENTS AYNIG_HOP \
                AYNIG_LEASE_COMMIT AYNIG_LEASE_SECONDS AYNIG_LOG_LEVEL AYNIG_PORT_BASE AYNIG_REMOTE AYNIG_RESULT AYNIG_ROLE AYNIG_RUNNER_ID AYNIG_RUN_DIR \
                AYNIG_RUN_ID AYNIG_SLOT AYNIG_STATE AYNIG_TRAILER_DWP_STATE AYNIG_TRAILER_DWP_TICKET AYNIG_TRAILER_PATH BODY \
                COMMIT_HASH DWP_STATE DWP_TICKET HOME LC_ALL LOG_LEVEL PATH PWD ROLE STDERR_LOG_PATH STDOUT_LOG_PATH \
                TMPDIR TOOL_OUT WORKTREE_PATH"
        .split_whitespace()
        .collect::<Vec<_>>();
    want.sort_unstable();
    assert_eq!(names, want);
}
