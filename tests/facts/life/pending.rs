//! Branches that wait for a slot: no branch waits while one is free and a process could wake it.

use crate::support::Repo;
use crate::support::life::{BIN, Gate, Life, done, eventually, lives};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `keep` leaves a process in its slot that says who it is and goes on at the gate; `hold` waits there itself.
/// `steps` runs three times in a row; the first of them waits there too, on `first`.
const STATES: [(&str, &str); 5] = [
    (
        "keep",
        "(exec sh -c 'echo $$ >\"$T/pid\"; read x <\"$T/gate\"; git aynig set-state build') >/dev/null 2>&1 &\nexit 0",
    ),
    ("hold", "echo $PPID >\"$T/pid\"; read x <\"$T/gate\"; echo 'SET_STATE {\"state\":\"done\"}'"),
    ("build", "echo \"$AYNIG_BRANCH\" >>\"$T/runs\"; echo 'SET_STATE {\"state\":\"done\"}'"),
    (
        "steps",
        "echo \"$AYNIG_BRANCH\" >>\"$T/runs\"; n=$(grep -c \"^$AYNIG_BRANCH\\$\" \"$T/runs\")\n\
         test \"$AYNIG_BRANCH $n\" = 'first 1' && echo $PPID >\"$T/pid\" && read x <\"$T/gate\"\n\
         test $n -lt 3 && echo 'SET_STATE {\"state\":\"steps\"}' || echo 'SET_STATE {\"state\":\"done\"}'",
    ),
    (
        "pair",
        "echo \"$AYNIG_BRANCH\" >>\"$T/pair\"; read x <\"$T/$AYNIG_BRANCH\"; echo 'SET_STATE {\"state\":\"done\"}'",
    ),
];

/// A bare repository with hooks, in which a push evaluates its branches and nothing else happens.
struct Server {
    repo: Repo,
    life: Life,
}

impl Server {
    fn new() -> Self {
        let life = Life::new(&STATES);
        let repo = Repo::build().bare().create().unwrap();
        let url = format!("file://{}", repo.path().display());
        life.git(&["push", "-q", &url, "main"]);
        life.git(&["remote", "add", "origin", &url]);
        let this = Self { repo, life };
        this.config("aynig.commandsFrom", "refs/heads/main");
        this.config("aynig.passEnv", "T");
        assert_eq!(done(this.aynig(&["hooks", "install"]).output().unwrap()).code, Some(0));
        this
    }

    fn config(&self, key: &str, value: &str) {
        self.repo.git(&["config", "--global", "--add", key, value]);
    }

    fn path() -> String {
        format!("{}:{}", Path::new(BIN).parent().unwrap().display(), std::env::var("PATH").unwrap())
    }

    fn aynig(&self, args: &[&str]) -> Command {
        let mut command = self.repo.command(BIN);
        command.env("PATH", Self::path()).env("T", self.life.shared()).args(args);
        command
    }

    /// Pushes events to these branches at once; says what the pusher is told.
    fn push(&self, events: &[(&str, &str)]) -> String {
        events.iter().for_each(|(branch, state)| drop(self.life.event(branch, state, "")));
        let mut command = self.life.repo.command("git");
        command.env("PATH", Self::path()).env("T", self.life.shared());
        let receive = format!("--receive-pack=env HOME='{}' git-receive-pack", self.repo.home().display());
        let branches = events.iter().map(|(branch, _)| *branch);
        let output: Output =
            command.args(["push", "-q", &receive, "origin"]).args(branches).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn state(&self, branch: &str) -> String {
        let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
        self.repo.git(&["log", "-1", format, branch])
    }

    #[track_caller]
    fn is(&self, branch: &str, state: &str) {
        eventually(branch, || (self.state(branch) == state).then_some(()));
    }

    fn notes(&self) -> usize {
        let all =
            std::fs::read_dir(self.repo.git_dir().join("aynig/pending")).into_iter().flatten().flatten();
        // One that is being written has something after its name.
        all.filter(|entry| !entry.file_name().to_string_lossy().contains('.')).count()
    }

    /// One slot, and a branch whose run has it.
    fn taken_by(&self, state: &str) -> (Gate, String) {
        (self.life.gate("gate"), self.dispatched("first", state))
    }

    /// A push that finds a slot; says what its command says of itself.
    #[track_caller]
    fn dispatched(&self, branch: &str, state: &str) -> String {
        let told = self.push(&[(branch, state)]);
        assert!(told.contains(&format!("aynig: {state} dispatched on {branch} (run ")), "{told}");
        self.life.hear("pid")
    }

    /// A push that finds no slot; says the id that its run was promised.
    #[track_caller]
    fn queued(&self, branch: &str) -> String {
        let told = self.push(&[(branch, "build")]);
        let answer = format!("aynig: build queued on {branch} (run ");
        let id = told.split(&answer).nth(1).unwrap_or_else(|| panic!("{told}"));
        eventually("its note", || (self.notes() > 0).then_some(()));
        id[..8].to_owned()
    }

    /// The processes of chains that are at work here. Each leads a session; what one has just forked does not.
    fn chains(&self) -> Vec<String> {
        let here = self.repo.git_dir().as_os_str().as_encoded_bytes().to_vec();
        let is_chain = |pid: &String| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let session = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3));
            words.contains(&&*here) && words.contains(&&b"chain"[..]) && session == Some(pid)
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(is_chain).collect()
    }

    fn slot_is_free(&self) -> bool {
        let record = std::fs::read_to_string(self.repo.git_dir().join("aynig/slots/0.json")).unwrap();
        record.contains("\"run\":null")
    }

    fn run_of(&self, branch: &str) -> String {
        self.repo.git(&["log", "-1", "--format=%(trailers:key=dwp-run-id,valueonly,separator=)", branch])
    }
}

fn update_refs(repo: &Repo, lines: &str) {
    let mut git = repo.command("git");
    let mut git = git.args(["update-ref", "--stdin"]).stdin(Stdio::piped()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(git.wait().unwrap().success());
}

/// K14, K39, K40: the keeper's lease ends, and only a branch that waits has to do with it.
#[test]
fn a_branch_that_waits_is_taken_on_when_the_lease_of_the_slots_keeper_ends() {
    let server = Server::new();
    server.config("aynig.leaseDuration", "10s");
    let (_gate, pid) = server.taken_by("keep");
    let id = server.queued("second");
    assert!(lives(&pid), "its lease lives on");
    server.is("second", "done");
    assert!(server.run_of("second").starts_with(&id));
    server.is("first", "stalled");
    eventually("nothing is left waiting", || (server.notes() == 0).then_some(()));
}

/// K14, K40: a process that outlived its command ends its run, and what follows runs too.
#[test]
fn what_a_process_that_was_left_behind_sets_is_answered_and_so_is_who_waits_for_its_slot() {
    let server = Server::new();
    let (mut gate, _) = server.taken_by("keep");
    gate.open();
    server.is("first", "done");
    assert_eq!(server.life.said("runs"), "first\n");
    eventually("a free slot", || server.slot_is_free().then_some(()));
    std::fs::remove_file(server.life.shared().join("pid")).unwrap();
    server.dispatched("again", "keep");
    server.queued("second");
    gate.open();
    server.is("second", "done");
    server.is("again", "done");
    eventually("nothing is left waiting", || (server.notes() == 0).then_some(()));
}

/// K14, K40: the runner that holds the slot may be killed outright.
#[test]
fn a_branch_that_waits_is_taken_on_when_the_runner_that_has_the_slot_is_killed() {
    let server = Server::new();
    let (_gate, guardian) = server.taken_by("hold");
    server.queued("second");
    let stat = std::fs::read_to_string(format!("/proc/{guardian}/stat")).unwrap();
    let runner = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    kill(Pid::from_raw(runner), Signal::SIGKILL).unwrap();
    server.is("second", "done");
    assert_eq!(server.state("first"), "working");
}

/// K14: what is taken on stays noted until it is done with: who takes it on may be killed.
#[test]
fn a_branch_that_was_taken_on_is_not_lost_with_who_took_it() {
    let server = Server::new();
    let (mut gate, _) = server.taken_by("hold");
    let [_, _] = ["second", "third"].map(|name| server.life.gate(name));
    server.push(&[("second", "pair"), ("third", "pair")]);
    eventually("both wait", || (server.notes() == 2).then_some(()));
    gate.open();
    server.life.hear("pair");
    // The process that runs the one has nothing of the other in its hands alone.
    assert!(server.notes() >= 1);
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    for process in all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()) {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        if line.contains(&*server.repo.path().to_string_lossy()) && line.contains("\0chain\0") {
            kill(Pid::from_raw(process), Signal::SIGKILL).unwrap();
        }
    }
    assert!(server.notes() >= 1);
    // The next event of the repository has it.
    server.push(&[("fourth", "build")]);
    server.is("fourth", "done");
    eventually("the other runs", || (server.life.said("pair").lines().count() == 2).then_some(()));
}

/// Section 13: what waits is listed, with why.
#[test]
fn what_waits_is_listed_with_why() {
    let server = Server::new();
    let (mut gate, _) = server.taken_by("hold");
    server.queued("second");
    let found = done(server.aynig(&["doctor"]).output().unwrap()).stdout;
    assert!(found.contains("refs/heads/second waits for a worktree since "), "{found}");
    let said = done(server.aynig(&["status", "second"]).output().unwrap()).stdout;
    assert!(said.contains("; waits for a worktree since "), "{said}");
    let said = done(server.aynig(&["status", "--json", "second"]).output().unwrap()).json();
    assert!(said["pending_seconds"].is_u64(), "{said}");
    gate.open();
    server.is("second", "done");
    eventually("nothing is left waiting", || (server.notes() == 0).then_some(()));
    let found = done(server.aynig(&["doctor"]).output().unwrap()).stdout;
    assert!(!found.contains("waits for a worktree"), "{found}");
    let said = done(server.aynig(&["status", "--json", "second"]).output().unwrap()).json();
    assert!(said["pending_seconds"].is_null(), "{said}");
}

/// K14, K40: a note that no process is awake for, as a power cut leaves it, is found and told.
#[test]
fn a_note_that_nobody_is_awake_for_is_told_and_taken_by_whoever_comes_next() {
    let server = Server::new();
    let id = server.life.event("second", "build", "");
    server.life.git(&["push", "-q", "--receive-pack=env AYNIG=0 git receive-pack", "origin", "second"]);
    assert_eq!(server.repo.git(&["rev-parse", "second"]), id);
    let folder = server.repo.git_dir().join("aynig/pending");
    std::fs::create_dir_all(&folder).unwrap();
    let name: String = "refs/heads/second".bytes().map(|b| format!("{b:02x}")).collect();
    let note = folder.join(&name);
    std::fs::write(&note, "refs/heads/second").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    std::fs::File::options().write(true).open(&note).unwrap().set_modified(old).unwrap();
    // Half of a note, left by a process that was killed, is no branch's.
    std::fs::write(folder.join(format!("{name}.7")), "refs/heads/sec").unwrap();
    let found = done(server.aynig(&["doctor"]).output().unwrap()).stdout;
    assert!(found.contains("no runner takes it on") && found.contains("git aynig tick second"), "{found}");
    server.push(&[("third", "build")]);
    server.is("third", "done");
    server.is("second", "done");
}

/// K40: what is pushed at once and waits for the one slot is noted before the first command runs, and is not lost with the
/// process that had it in hand.
#[test]
fn the_second_of_one_push_outlives_the_chain_that_had_it_in_hand() {
    let server = Server::new();
    server.config("aynig.leaseDuration", "4s");
    let _gate = server.life.gate("gate");
    server.push(&[("first", "hold"), ("second", "build")]);
    let guardian: i32 = server.life.hear("pid").parse().unwrap();
    assert_eq!(server.notes(), 1);
    let runner = std::fs::read_to_string(format!("/proc/{guardian}/stat")).unwrap();
    let runner: i32 = runner.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    kill(Pid::from_raw(runner), Signal::SIGKILL).unwrap();
    // The process that looks next takes it on, once the slot is free.
    server.push(&[("third", "build")]);
    server.is("second", "done");
    server.is("third", "done");
}

/// K14, K40: branches that need no slot any more, when their turn comes, are no reason to start a process for each: one works
/// them off, and one watches.
#[test]
fn branches_that_are_gone_when_a_slot_is_free_are_looked_at_by_few_processes() {
    const MANY: usize = 300;
    let server = Server::new();
    let mut gate = server.life.gate("gate");
    server.life.event("first", "hold", "");
    let id = server.life.event("asks", "build", "");
    let names: Vec<String> = (0..MANY).map(|n| format!("refs/heads/many/{n}")).collect();
    let create: String = names.iter().map(|name| format!("create {name} {id}\n")).collect();
    update_refs(&server.life.repo, &create);
    let mut command = server.life.repo.command("git");
    command.env("PATH", Server::path()).env("T", server.life.shared());
    let receive = format!("--receive-pack=env HOME='{}' git-receive-pack", server.repo.home().display());
    let push = ["push", "-q", &receive, "origin", "first", "refs/heads/many/*:refs/heads/many/*"];
    assert!(command.args(push).output().unwrap().status.success());
    server.life.hear("pid");
    eventually("all are noted", || (server.notes() == MANY).then_some(()));
    let gone: String = names.iter().map(|name| format!("delete {name}\n")).collect();
    update_refs(&server.repo, &gone);
    gate.open();
    let (mut seen, mut most) = (std::collections::BTreeSet::new(), 0);
    eventually("nothing is left waiting", || {
        let chains = server.chains();
        most = most.max(chains.len());
        seen.extend(chains);
        (server.notes() == 0).then_some(())
    });
    // The first, and who watches: by a chain's last look too.
    assert!(most <= 3 && seen.len() <= 6, "{most} at once, {} in all", seen.len());
    server.is("first", "done");
}

/// K13, K14: where nothing can run on this machine what waits is not forgotten, and no process stays for it.
#[test]
fn what_waits_stays_noted_where_nothing_can_run_until_that_is_mended() {
    let server = Server::new();
    let (mut gate, _) = server.taken_by("hold");
    for branch in ["second", "other", "another"] {
        server.queued(branch);
    }
    eventually("their notes", || (server.notes() == 3).then_some(()));
    server.config("aynig.exec", "/nowhere/wrapper");
    gate.open();
    server.is("first", "done");
    eventually("the chains' ends", || server.chains().is_empty().then_some(()));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!((server.chains().len(), server.notes(), server.state("second")), (0, 3, "build".into()));
    server.repo.git(&["config", "--global", "--unset", "aynig.exec"]);
    server.push(&[("third", "build")]);
    for branch in ["third", "second", "other", "another"] {
        server.is(branch, "done");
    }
    eventually("nothing is left waiting", || (server.notes() == 0).then_some(()));
}

/// K14, K40: a branch that goes on and on does not keep the only slot from one that waits longer, whether a push
/// of its own brought that or the same.
#[test]
fn a_chain_gives_the_slot_to_who_waits_longer() {
    let server = Server::new();
    let (mut gate, _) = server.taken_by("steps");
    server.queued("second");
    gate.open();
    server.is("second", "done");
    server.is("first", "done");
    let order = server.life.said("runs");
    assert_eq!(order, "first\nsecond\nfirst\nfirst\n");
    server.push(&[("more", "steps"), ("other", "build")]);
    server.is("more", "done");
    server.is("other", "done");
    let order = server.life.said("runs");
    assert_eq!(order.strip_prefix("first\nsecond\nfirst\nfirst\n"), Some("more\nother\nmore\nmore\n"));
    eventually("nothing is left waiting", || (server.notes() == 0).then_some(()));
}

/// K13, K14, K40: where one slot can't be used and the other is in use, a branch waits for that one; where none can be
/// used it stays noted.
#[test]
fn a_branch_waits_for_the_slot_that_can_be_used() {
    let server = Server::new();
    server.config("aynig.jobs", "2");
    let (mut gate, _) = server.taken_by("hold");
    server.push(&[("second", "build")]);
    server.is("second", "done");
    let slots = server.repo.git_dir().join("aynig/slots");
    let [first, second] = [0, 1].map(|n| slots.join(format!("{n}.json")));
    // A slot is let go a moment after its run's outcome is there.
    let is_free = |slot: &std::path::Path| std::fs::read_to_string(slot).unwrap().contains("\"run\":null");
    let first_is_free =
        eventually("one slot is free", || match [&first, &second].map(|slot| is_free(slot)) {
            [one, other] if one != other => Some(one),
            _ => None,
        });
    let (free, taken) = if first_is_free { (first, second) } else { (second, first) };
    let whole = std::fs::read(&free).unwrap();
    std::fs::write(&free, "{").unwrap();
    server.push(&[("third", "build")]);
    eventually("it is noted", || (server.notes() == 1).then_some(()));
    gate.open();
    server.is("third", "done");
    server.is("first", "done");
    eventually("nothing is at work", || server.chains().is_empty().then_some(()));
    std::fs::write(&taken, "{").unwrap();
    server.push(&[("fourth", "build")]);
    eventually("it stays noted", || (server.notes() == 1 && server.chains().is_empty()).then_some(()));
    std::fs::write(&free, whole).unwrap();
    server.push(&[("fifth", "build")]);
    server.is("fifth", "done");
    server.is("fourth", "done");
}

/// K40: a chain that can't note its branch for another's sake goes on with it.
#[test]
fn a_branch_that_cannot_be_noted_goes_on() {
    let server = Server::new();
    let folder = server.repo.git_dir().join("aynig/pending");
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    server.push(&[("more", "steps"), ("other", "steps"), ("third", "build")]);
    for branch in ["more", "other", "third"] {
        server.is(branch, "done");
    }
}
