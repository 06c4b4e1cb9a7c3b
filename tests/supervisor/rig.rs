//! A private folder, a marked environment, and the commands in it.
//!
//! Every process of a run carries the mark in its environment, so that survivors are found by looking at
//! all processes of the machine, whatever session, group or parent they have.

use aynig::supervisor::{Ended, Ending, Event, Spec, Supervised, Wake};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const GUARDIAN: &str = env!("CARGO_BIN_EXE_git-aynig");
const MARK: &str = "AYNIG_TEST_MARK";
/// Nothing here takes so long, on the slowest machine; a test that waits for this has failed. What is to be ended sleeps longer.
pub const LONG: Duration = Duration::from_secs(180);

pub struct Rig {
    pub dir: TempDir,
    pub mark: String,
}

/// All that a run said.
#[derive(Debug, Default)]
pub struct Report {
    pub lines: Vec<String>,
    pub long_lines: Vec<u64>,
    pub chunks: [Vec<u8>; 2],
    pub log_failures: Vec<(bool, i32)>,
    pub counts: (u64, u64),
    pub last: Vec<u8>,
    pub ending: Option<Ending>,
    pub leaked: bool,
    /// From the start to the report of the command's end.
    pub took: Duration,
}

impl Rig {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}.", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { dir: tempfile::tempdir().unwrap(), mark }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn env(&self) -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), "/usr/bin:/bin".into()), (MARK.into(), self.mark.clone().into())]
    }

    /// A shell that runs this script in the folder.
    pub fn spec(&self, script: &str) -> Spec {
        Spec {
            guardian: GUARDIAN.into(),
            argv: ["/bin/sh", "-c", script].map(OsString::from).into(),
            env: self.env(),
            stdin: None,
            cwd: self.dir.path().into(),
            stdout_log: self.path("stdout.log"),
            stderr_log: self.path("stderr.log"),
            log_max: 64 << 20,
            timeout: None,
            kill_grace: Duration::from_secs(10),
            watch: b"SET ".to_vec(),
            line_max: 16 << 20,
            tee: false,
            hold: None,
            confine: None,
            stop_after: None,
        }
    }

    pub fn start(&self, script: &str) -> Supervised {
        Supervised::start(&self.spec(script)).unwrap()
    }

    /// Writes a file through another process: a descriptor of ours that a parallel test's fork inherits
    /// would make the file busy for exec.
    pub fn write_program(&self, name: &str, mode: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        let done = Command::new("/bin/sh")
            .args(["-c", r#"printf %s "$3" >"$1" && chmod "$2" "$1""#, "sh"])
            .arg(&path)
            .args([mode, content])
            .status();
        assert!(done.unwrap().success());
        path
    }

    pub fn log(&self) -> Vec<u8> {
        fs::read(self.path("stdout.log")).unwrap()
    }

    /// Ids and names of the living processes of this rig's runs, guardians included.
    pub fn alive(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}", self.mark);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environ.split(|b| *b == 0).any(|variable| variable == mark.as_bytes()) {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                found.push((pid, name.trim_end().to_owned()));
            }
        }
        found
    }

    /// How many lines a file has.
    pub fn count(&self, name: &str) -> usize {
        fs::read(self.path(name)).map_or(0, |text| text.iter().filter(|b| **b == b'\n').count())
    }

    /// A process that supervises this script and does nothing else, to be killed. Its own parent lets a
    /// descriptor through to it, number 77.
    pub fn runner(&self, script: &str) -> std::process::Child {
        let mut command = Command::new("/bin/bash");
        command.args(["-c", r#"exec 77</dev/null; exec "$@""#, "bash"]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", "rig::be_a_runner", "--nocapture"]);
        command.env("RIG_DIR", self.dir.path()).env("RIG_MARK", &self.mark).env("RIG_SCRIPT", script);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// Not a test: what [`Rig::runner`] runs.
#[test]
fn be_a_runner() {
    let var = |name| std::env::var(name).ok();
    let (Some(dir), Some(mark), Some(script)) = (var("RIG_DIR"), var("RIG_MARK"), var("RIG_SCRIPT")) else {
        return;
    };
    let rig = Rig { dir: tempfile::tempdir().unwrap(), mark };
    let mut spec = rig.spec(&script);
    spec.cwd = dir.into();
    let mut run = Supervised::start(&spec).unwrap();
    while run.next(None, None).is_ok() {}
}

/// Waits until a fact holds; how long that took.
#[track_caller]
pub fn eventually(what: &str, mut fact: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !fact() {
        assert!(start.elapsed() < LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    start.elapsed()
}

/// The next event.
pub fn next(run: &mut Supervised) -> Event {
    match run.next(Some(Instant::now() + LONG), None).unwrap() {
        Wake::Event(event) => event,
        other => panic!("no event: {other:?}"),
    }
}

/// Hears a run out, up to the command's end.
pub fn hear(run: &mut Supervised) -> Report {
    let start = Instant::now();
    let mut report = Report::default();
    while report.ending.is_none() {
        match next(run) {
            Event::Started { .. } => {}
            Event::Line(line) => report.lines.push(String::from_utf8_lossy(&line).into_owned()),
            Event::LongLine(length) => report.long_lines.push(length),
            Event::Output { stdout, stderr, last } => {
                report.counts = (stdout, stderr);
                report.last = last;
            }
            Event::Chunk { stderr, bytes } => report.chunks[usize::from(stderr)].extend(bytes),
            Event::LogFailed { stderr, errno } => report.log_failures.push((stderr, errno)),
            Event::Exited { ending, leaked } => {
                report.ending = Some(ending);
                report.leaked = leaked;
            }
            Event::Done { .. } | Event::Beat => panic!("done, or asked, before the command ended"),
        }
    }
    report.took = start.elapsed();
    report
}

/// Runs to the end; nothing may be left.
pub fn run(spec: &Spec) -> Report {
    let mut run = Supervised::start(spec).unwrap();
    let report = hear(&mut run);
    let ended = run.end().unwrap();
    assert_eq!(Ended { log_failures: Vec::new(), ..ended }, Ended::default());
    report
}
