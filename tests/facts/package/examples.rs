//! The packs in `examples/`: installed into a new repository as a user would, and played to their end.

use crate::support::skipped;
use crate::support::world::{Said, World};
use std::path::{Path, PathBuf};

/// A repository with one pack of this project installed, committed and trusted.
struct Play {
    world: World,
    dir: PathBuf,
}

impl Play {
    fn of(pack: &str) -> Self {
        let world = World::any();
        let packs = world.init("packs");
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        world.run("cp", &packs, &["-R".as_ref(), examples.as_os_str(), ".".as_ref()]).expect(0);
        world.git(&packs, &["add", "-A"]);
        world.git(&packs, &["commit", "-q", "-m", "packs"]);
        let dir = world.init("repo");
        std::fs::write(dir.join("file"), "one\n").unwrap();
        world.git(&dir, &["add", "file"]);
        world.git(&dir, &["commit", "-q", "-m", "start"]);
        let said = world.aynig(&dir, &["install", "../packs", "HEAD", &format!("examples/{pack}")]).expect(0);
        assert!(said.out.contains(" 0 overwritten, 0 unchanged\n"), "{}", said.out);
        let play = Self { world, dir };
        play.git(&["add", ".aynig"]);
        play.git(&["commit", "-q", "-m", "pack"]);
        play.aynig(&["trust"]).expect(0);
        play
    }

    /// A further command, committed on main.
    fn command(&self, state: &str, script: &str) {
        let path = self.dir.join(".aynig/command").join(state);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        self.world.run("chmod", &self.dir, &["+x", path.to_str().unwrap()]).expect(0);
        self.git(&["add", ".aynig"]);
        self.git(&["commit", "-q", "-m", state]);
    }

    fn git(&self, args: &[&str]) -> String {
        self.world.git(&self.dir, args)
    }

    fn aynig(&self, args: &[&str]) -> Said {
        self.world.aynig(&self.dir, args)
    }

    /// The states of a branch since it left main, oldest first, leases left out.
    fn states(&self, branch: &str) -> Vec<String> {
        let mut states = self.world.states(&self.dir, branch, "main");
        states.retain(|state| !matches!(state.as_str(), "" | "working"));
        states.reverse();
        states
    }

    fn body(&self, commit: &str) -> String {
        self.git(&["log", "-1", "--format=%B", commit])
    }

    /// Runs the command that a commit's body says, as it stands there.
    fn type_from(&self, body: &str, before: &str) {
        let (_, rest) = body.split_once(before).unwrap_or_else(|| panic!("no '{before}' in {body}"));
        let line = rest.lines().next().unwrap();
        self.world.run("sh", &self.dir, &["-c", line]).expect(0);
    }
}

/// What `install` prints below a line that begins so, without the indent.
fn typed(out: &str, heading: &str) -> Vec<String> {
    let after = out.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    after.map_while(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
}

#[test]
fn every_pack_says_what_it_is_and_is_started_by_what_install_prints() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let packs: Vec<String> = std::fs::read_dir(&examples)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join(".aynig").is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert!(packs.len() >= 3, "{packs:?}");
    for pack in packs {
        let world = World::any();
        let dir = world.init("repo");
        let aynig = |args: &[&str]| world.aynig(&dir, args);
        // Something that failed, for a pack that answers failures.
        aynig(&["init", "--trust"]).expect(0);
        std::fs::write(dir.join(".aynig/command/hello"), "#!/bin/sh\nexit 1\n").unwrap();
        world.git(&dir, &["add", "-A"]);
        world.git(&dir, &["commit", "-q", "-m", "start"]);
        aynig(&["set-state", "hello", "-b", "job"]).expect(0);
        aynig(&["run"]).expect(1);
        aynig(&["trust", "--revoke"]).expect(0);
        let folder = format!("examples/{pack}");
        let packs = world.init("packs");
        world.run("cp", &packs, &["-R".as_ref(), examples.as_os_str(), ".".as_ref()]).expect(0);
        world.git(&packs, &["add", "-A"]);
        world.git(&packs, &["commit", "-q", "-m", "packs"]);
        let dry = aynig(&["install", "--dry-run", "../packs", "HEAD", &folder]).expect(0).out;
        let said = aynig(&["install", "../packs", "HEAD", &folder]).expect(0).out;
        for out in [&dry, &said] {
            let about = typed(out, &format!("README: {folder}/README.md in {} (", packs.display()));
            assert!(about.first().is_some_and(|line| line.ends_with(['.', ':'])), "{pack}: {out}");
        }
        let next = typed(&said, "Next, after reading what came:");
        let starts = typed(&dry, "Once it is installed, committed and trusted:");
        assert!(!starts.is_empty() && next.ends_with(&starts), "{pack}: {dry}{said}");
        let before = world.git(&dir, &["for-each-ref", "--format=%(objectname)"]);
        // No agent's program is asked anything: a flow's first turn stalls, and says which is missing.
        world.git(&dir, &["config", "--global", "aynig.provider.claude.command", "/no/claude"]);
        for line in &next {
            let stalls = pack.starts_with("flow-") && line.ends_with("aynig run");
            world.run("sh", &dir, &["-c", line]).expect(i32::from(stalls));
        }
        // A command of the pack has run.
        let new: Vec<&str> = before.lines().collect();
        let mut args = vec!["log", "--all", "--format=%(trailers:key=dwp-origin-state,valueonly)", "--not"];
        args.extend(new);
        let ran = world.git(&dir, &args);
        let command = examples.join(&pack).join(".aynig/command");
        let states: Vec<&str> = ran.lines().filter(|line| !line.is_empty()).collect();
        assert!(!states.is_empty() && states.iter().any(|s| command.join(s).is_file()), "{pack}: {ran}");
    }
}

#[test]
fn build_review_ship_waits_for_a_person_and_ships_what_was_reviewed() {
    let play = Play::of("build-review-ship");
    play.aynig(&["set-state", "build", "-b", "release", "--trailer", "dwp-version: 1.0"]).expect(0);
    play.aynig(&["run"]).expect(0);
    assert_eq!(play.states("release"), ["build", "review"]);
    let status = play.aynig(&["status", "release"]).expect(0).out;
    assert!(status.contains("waits for a person"), "{status}");
    let manifest = play.git(&["show", "release:dist/1.0.manifest"]);
    assert!(manifest.ends_with("\tfile") && manifest.lines().count() == 1, "{manifest}");
    // The person types what the commit says.
    play.type_from(&play.body("release"), "To ship it: ");
    play.aynig(&["run"]).expect(0);
    assert_eq!(play.states("release"), ["build", "review", "ship", "done"]);
    assert_eq!(play.git(&["show", "shipped/1.0:file"]), "one");
    assert_eq!(
        play.git(&["for-each-ref", "--format=%(contents:subject)", "refs/tags/shipped/1.0"]),
        "1.0, approved by Ada"
    );
    play.world.assert_sound(&play.dir);
}

#[test]
fn build_review_ship_goes_back_when_asked_to() {
    let play = Play::of("build-review-ship");
    play.aynig(&["set-state", "build", "-b", "release", "--trailer", "dwp-version: 2"]).expect(0);
    play.aynig(&["run"]).expect(0);
    play.git(&["switch", "-q", "release"]);
    std::fs::write(play.dir.join("file"), "two\n").unwrap();
    play.git(&["commit", "-q", "-a", "-m", "mended"]);
    play.git(&["switch", "-q", "main"]);
    // Shipped as it is now, it would not be what was reviewed.
    play.aynig(&["set-state", "ship", "-b", "release", "--trailer", "dwp-version: 2"]).expect(0);
    play.aynig(&["run"]).expect(1);
    let body = play.body("release");
    assert!(body.contains("files changed since dist/2.manifest was reviewed"), "{body}");
    assert_eq!(play.git(&["tag"]), "");
    play.aynig(&["set-state", "build", "-b", "release", "--trailer", "dwp-version: 2"]).expect(0);
    play.aynig(&["run"]).expect(0);
    play.type_from(&play.body("release"), "To ship it: ");
    play.aynig(&["run"]).expect(0);
    assert_eq!(
        play.states("release"),
        ["build", "review", "ship", "stalled", "build", "review", "ship", "done"]
    );
    assert_eq!(play.git(&["show", "shipped/2:file"]), "two");
}

#[test]
fn build_review_ship_wants_a_version_that_can_name_a_file() {
    let play = Play::of("build-review-ship");
    for (branch, version) in [("none", ""), ("path", "../x"), ("flag", "-x"), ("words", "a b;c")] {
        let trailer = format!("dwp-version: {version}");
        let mut args = vec!["set-state", "build", "-b", branch];
        args.extend((!version.is_empty()).then_some(["--trailer", &trailer]).into_iter().flatten());
        play.aynig(&args).expect(0);
        play.aynig(&["tick", branch]).expect(1);
        assert!(play.body(branch).contains("say which version"), "{}", play.body(branch));
    }
}

#[test]
fn stalled_triage_tries_again_once_what_may_pass() {
    let play = Play::of("stalled-triage");
    let script = "echo \"$BODY\" >>said; echo \"$DWP_TICKET\" >>said\n\
                  [ -e \"$HOME/up\" ] || { touch \"$HOME/up\"; echo 'Connection reset by peer' >&2; exit 7; }\n\
                  echo 'SET_STATE {\"state\":\"done\"}'";
    play.command("fetch", script);
    let body = "First paragraph.\nreviewed-by: in the text\n\nSecond: one\n\n# no comment";
    play.aynig(&[
        "set-state",
        "fetch",
        "-b",
        "job",
        "-m",
        "fetch: please",
        "-m",
        body,
        "--trailer",
        "dwp-ticket: 7",
    ])
    .expect(0);
    play.aynig(&["run"]).expect(1);
    assert_eq!(play.states("job"), ["fetch", "stalled", "fetch", "done"]);
    let said = play.git(&["show", "job:said"]);
    assert_eq!(said, format!("{body}\n7"), "body and trailers are as they were");
    let again = play.git(&["log", "--grep", "dwp-triage: fetch", "--format=%s", "job"]);
    assert!(again.lines().any(|line| line == "fetch: please"), "{again}");
    play.world.assert_sound(&play.dir);
}

#[test]
fn stalled_triage_leaves_to_a_person_what_fails_twice_or_for_good() {
    let play = Play::of("stalled-triage");
    play.command("fetch", "echo 'could not resolve host: mirror' >&2; exit 7");
    play.command("build", "echo 'syntax error' >&2; exit 2");
    play.aynig(&["set-state", "fetch", "-b", "twice"]).expect(0);
    play.aynig(&["set-state", "build", "-b", "broken"]).expect(0);
    play.aynig(&["run"]).expect(1);
    assert_eq!(play.states("twice"), ["fetch", "stalled", "fetch", "stalled", "needs-human"]);
    assert_eq!(play.states("broken"), ["build", "stalled", "needs-human"]);
    assert!(play.body("twice").contains("it was tried twice"), "{}", play.body("twice"));
    assert!(
        play.body("broken").contains("It ended so: aynig: build stalled: exit 2"),
        "{}",
        play.body("broken")
    );
    assert!(play.aynig(&["status", "twice"]).expect(0).out.contains("waits for a person"));
    // Once it is mended, what the commit says brings it to its end.
    play.command("build", "echo 'SET_STATE {\"state\":\"done\"}'");
    play.type_from(&play.body("broken"), "To ask for it again, with a text of yours: ");
    play.aynig(&["run"]).expect(0);
    assert_eq!(play.states("broken").last().unwrap(), "done");
}

#[test]
fn stalled_triage_is_bounded_by_hops() {
    let mut play = Play::of("stalled-triage");
    // Goes on without its mark, for ever.
    play.command("loop", "git aynig set-state fail --emit");
    play.command("fail", "echo 'try again' >&2; exit 1");
    play.world.set("TRIAGE_HOPS", "4");
    play.aynig(&["set-state", "loop", "-b", "round"]).expect(0);
    play.aynig(&["run"]).expect(1);
    assert_eq!(play.states("round").last().unwrap(), "needs-human");
    let mut round = play.states("round");
    round.truncate(4);
    assert_eq!(round, ["loop", "fail", "stalled", "fail"]);
    // A triage that can't work either ends at the runner's own limit.
    play.command("stalled", "exit 1");
    play.git(&["config", "aynig.maxHops", "3"]);
    play.aynig(&["set-state", "fail", "-b", "hopeless"]).expect(0);
    play.aynig(&["run"]).expect(1);
    assert_eq!(play.states("hopeless"), ["fail", "stalled", "stalled", "stalled"]);
}

#[test]
fn what_stands_in_examples_is_plain_shell() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut checked = 0;
    for pack in std::fs::read_dir(&examples).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        assert!(pack.join("README.md").is_file(), "{}", pack.display());
        let mut folders = vec![pack.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let text = std::fs::read_to_string(entry.path()).unwrap();
                if !text.starts_with("#!") {
                    continue;
                }
                assert!(text.starts_with("#!/bin/sh\n"), "{}", entry.path().display());
                let Ok(said) = std::process::Command::new("shellcheck").arg(entry.path()).output() else {
                    return skipped("there is no shellcheck here");
                };
                assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
                checked += 1;
            }
        }
    }
    assert!(checked >= 13);
}

/// K51: a quota is waited out by heads that wait, no process; attempts are capped, and what was left behind is not kept.
#[test]
fn wait_out_asks_again_when_its_time_has_come() {
    let play = Play::of("wait-out");
    play.aynig(&["set-state", "fetch", "-b", "job"]).expect(0);
    let began = std::time::SystemTime::now();
    play.aynig(&["run"]).expect(0);
    assert_eq!(play.states("job"), ["fetch", "fetch"]);
    let until = play.git(&["log", "-1", "--format=%(trailers:key=dwp-not-before,valueonly)", "job"]);
    let until = humantime::parse_rfc3339(until.trim()).unwrap().duration_since(began).unwrap().as_secs();
    assert!((895..=960).contains(&until), "{until}");
    // A runner that looks before its time says until when, and does nothing.
    let before = play.git(&["rev-parse", "job"]);
    play.aynig(&["run"]);
    assert_eq!(play.git(&["rev-parse", "job"]), before);

    // A process that looks once an hour wakes up for it.
    play.aynig(&["set-state", "fetch", "-b", "soon", "--trailer", "dwp-wait: 2s"]).expect(0);
    let bin = play.world.root().join("bin/git-aynig");
    let mut run = play.world.command(bin, &play.dir);
    let mut run =
        run.args(["run", "--every", "1h", "soon"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    crate::support::life::eventually("the answer", || {
        (play.states("soon") == ["fetch", "fetch", "fetch", "done"]).then_some(())
    });
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(run.id() as i32), nix::sys::signal::Signal::SIGTERM)
        .unwrap();
    run.wait().unwrap();
    assert_eq!(play.git(&["show", "soon:answer.txt"]), "forty-two");

    let args =
        ["set-state", "fetch", "-b", "capped", "--trailer", "dwp-wait: 0", "--trailer", "dwp-attempts: 2"];
    play.aynig(&args).expect(0);
    play.aynig(&["run", "capped"]).expect(0);
    assert_eq!(play.states("capped"), ["fetch", "fetch", "needs-human"]);
    assert_eq!(play.git(&["diff", "--stat", "main", "capped"]), "");
}

/// K53: each recipe hands a notice to the program that it is there for, whatever the notice holds.
#[test]
fn recipes_for_notices_hand_them_on() {
    let mut world = World::any();
    let dir = world.init("repo");
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/notify");
    let (bin, said) = (world.root().join("fakes"), world.root().join("said"));
    std::fs::create_dir(&bin).unwrap();
    for name in ["notify-send", "curl", "mail"] {
        let fake = bin.join(name);
        let script =
            "#!/bin/sh\n{ printf '<%s>' \"$0\" \"$@\"; [ \"${0##*/}\" = notify-send ] || cat; } >\"$SAID\"\n";
        std::fs::write(&fake, script).unwrap();
        world.run("chmod", &dir, &["+x", fake.to_str().unwrap()]).expect(0);
    }
    world.set("SAID", &said);
    world.set("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let notice = r#"{"schema":"aynig.notice/1","kind":"stalled","repository":"/r","branch":"-a$(touch fired)","commit":"c","state":"stalled","subject":"`touch fired` \\u001b[31m; x","body":"b"}"#;
    for (recipe, argument, want) in [
        (
            "desktop",
            "",
            vec!["<--app-name=git-aynig>", "<-->", "<-a$(touch fired): stalled>", "`touch fired`"],
        ),
        ("webhook", "https://example.org/x", vec!["<-->", "<https://example.org/x>", notice]),
        (
            "mail",
            "ada@example.org",
            vec![
                "<-s>",
                "<git-aynig: -a$(touch fired): stalled>",
                "<ada@example.org>",
                "branch: -a$(touch fired)",
            ],
        ),
    ] {
        let call = format!("printf '%s\\n' '{notice}' | '{}' {argument}", recipes.join(recipe).display());
        world.run("sh", &dir, &["-c", &call]).expect(0);
        let said = std::fs::read_to_string(&said).unwrap();
        for part in want {
            assert!(said.contains(part), "{recipe}: {part} is not in {said}");
        }
        assert!(!dir.join("fired").exists());
    }
}

#[test]
fn stalled_triage_answers_in_the_dialect_of_the_branch() {
    let play = Play::of("stalled-triage");
    let script =
        "git commit -q --allow-empty -m \"fetched $AYNIG_TRAILER_AYNIG_TICKET\" -m 'aynig-state: done'";
    play.command("fetch", script);
    let args = ["set-state", "fetch", "--dialect", "aynig", "-b", "job", "--trailer", "aynig-ticket: 7"];
    play.aynig(&args).expect(0);
    let trigger = play.git(&["rev-parse", "job"]);
    // As a tick leaves it that found the lease of a dead runner.
    let stalled = |reason: &str| {
        let message = format!(
            "aynig: fetch stalled: {reason}\n\naynig-state: stalled\naynig-stalled-run: r\naynig-run-id: r\n\
             aynig-origin-state: fetch\naynig-trigger: {trigger}\naynig-hop: 1\n"
        );
        play.world.raw_commit(&play.dir, "job", message.as_bytes());
        play.aynig(&["run"]).expect(0);
        let format = "--format=%(trailers:key=aynig-state,valueonly,separator=%x2c)";
        let states = play.git(&["log", "--first-parent", "--reverse", format, &format!("{trigger}..job")]);
        let states = states.lines().filter(|s| !["", "working"].contains(s));
        states.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(stalled("lease expired"), ["stalled", "fetch", "done"]);
    assert_eq!(play.git(&["log", "-1", "--format=%s", "job"]), "fetched 7");
    assert_eq!(stalled("exit 3")[3..], ["stalled", "needs-human"]);
}

/// K49, K49a: it asks, waits without a process, and does what was said.
#[test]
fn ask_first_deploys_what_a_person_said_yes_to() {
    let play = Play::of("ask-first");
    for (branch, choice, end) in [("release", "yes", "done"), ("other", "no", "canceled")] {
        play.aynig(&["set-state", "deploy", "-b", branch, "--trailer", "dwp-target: staging"]).expect(0);
        play.aynig(&["run"]).expect(0);
        assert_eq!(play.states(branch), ["deploy", "asked"]);
        play.aynig(&["answer", branch, "perhaps"]).expect(2);
        play.aynig(&["answer", branch, choice, "-m", "As I said."]).expect(0);
        play.aynig(&["answer", branch, "no"]).expect(3);
        play.aynig(&["run"]).expect(0);
        assert_eq!(play.states(branch), ["deploy", "asked", "answered", end]);
        assert!(play.git(&["for-each-ref", "refs/aynig/asked", "refs/aynig/inbox"]).is_empty());
    }
    assert!(play.git(&["show", "release:deployed/staging"]).ends_with("\tfile"));
    assert!(!play.git(&["ls-tree", "-r", "--name-only", "other"]).contains("deployed"));
}

/// Makes this script the agent of `custom`: it reads the prompt, and what it prints is what the agent said.
fn agent(play: &Play, script: &str) {
    let path = play.world.home().join("agent.sh");
    let hands = "hand() { printf '{\"tool_call\":{\"name\":\"send_handoff\",\"args\":{\"to\":\"%s\",\"message\":\"%s\"}}}\\n' \"$1\" \"$2\"; }";
    std::fs::write(&path, format!("prompt=$(cat)\n{hands}\nis() {{ case $prompt in *\"You: $1 (\"*) ;; *) false ;; esac; }}\n{script}\n")).unwrap();
    play.git(&["config", "--global", "aynig.provider.custom.command", &format!("sh '{}'", path.display())]);
    play.git(&["config", "--global", "aynig.provider.custom.protocol", "raw"]);
}

/// N2, N5, N6: planned, implemented, reviewed, mended, reviewed, reported.
#[test]
fn flow_review_hands_work_back_until_nothing_is_wrong_with_it() {
    let play = Play::of("flow-review");
    agent(
        &play,
        "if is planner && [ ! -e docs/plan.md ]; then mkdir -p docs; echo 'greet' >docs/plan.md; echo planned; hand implementer 'do it'\n\
         elif is planner; then echo 'all is well'\n\
         elif is implementer && [ ! -e greeting ]; then echo helo >greeting; echo done; hand reviewer 'look'\n\
         elif is implementer; then echo hello >greeting; echo mended; hand reviewer 'look again'\n\
         elif grep -q hello greeting; then echo fine; hand planner 'nothing is wrong'\n\
         else echo 'a typo'; hand implementer 'greeting:1: hello has two l'; fi",
    );
    let start = [
        "set-state",
        "flow-review",
        "-b",
        "request",
        "-m",
        "A greeting.",
        "--trailer",
        "dwp-provider: custom",
    ];
    play.aynig(&start).expect(0);
    play.aynig(&["run"]).expect(0);
    assert_eq!(play.states("request"), ["flow-review", "done"]);
    let shown = play.aynig(&["flow", "show", "request"]).expect(0).out;
    for node in ["planner", "implementer", "reviewer"] {
        assert!(shown.contains(&format!("  {node}: idle")), "{shown}");
        let name = format!("flow/request/{node}");
        assert_eq!(play.git(&["show", &format!("{name}:docs/plan.md")]), "greet", "{shown}");
    }
    assert_eq!(play.git(&["show", "flow/request/planner:greeting"]), "hello");
    let events = play.aynig(&["flow", "events", "request"]).expect(0).out;
    assert_eq!(events.matches(" handoff.sent ").count(), 5, "{events}");
    // Asked for once more, what is there stays as it is.
    play.aynig(&start).expect(0);
    play.aynig(&["run"]).expect(0);
    assert_eq!(play.aynig(&["flow", "show", "request"]).expect(0).out.matches(": idle").count(), 3);
    play.world.assert_sound(&play.dir);
}

/// N6, K47: three work side by side, and what they did meets.
#[test]
fn flow_parallel_brings_the_work_of_three_together() {
    let play = Play::of("flow-parallel");
    agent(
        &play,
        "if is integrator; then case $prompt in *'> go'*) echo dividing; hand ada one; hand bob two; hand cleo three ;; *) echo merged ;; esac\n\
         else for name in ada bob cleo; do if is $name; then echo $name >$name.txt; echo $name says so >>file; fi; done\n\
         echo done; hand integrator 'mine'; fi",
    );
    play.aynig(&[
        "set-state",
        "flow-parallel",
        "-b",
        "request",
        "-m",
        "go",
        "--trailer",
        "dwp-provider: custom",
    ])
    .expect(0);
    play.aynig(&["run"]).expect(0);
    let there = play.git(&["ls-tree", "--name-only", "flow/request/integrator"]);
    let merged = ["ada.txt", "bob.txt", "cleo.txt"].iter().filter(|name| there.contains(**name)).count();
    // All three added a line at the same place: the first is merged, the others are told, and kept.
    assert_eq!(merged, 1, "{there}");
    let told = play.git(&["log", "--format=%B", "flow/request/integrator"]);
    assert_eq!(told.matches("\n    file").count(), 2, "{told}");
    let conflicts =
        play.git(&["log", "--format=%(trailers:key=dwp-conflict,valueonly)", "flow/request/integrator"]);
    let mut works: Vec<&str> = conflicts.lines().filter(|line| !line.is_empty()).collect();
    works.sort_unstable();
    works.dedup();
    assert_eq!(works.len(), 2, "{conflicts}");
    for work in works {
        assert!(play.git(&["show", &format!("{work}:file")]).ends_with("says so"));
    }
    play.world.assert_sound(&play.dir);
}
