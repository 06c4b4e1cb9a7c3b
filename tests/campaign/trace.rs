//! A process tree under a tracer: every mutating system call of it by name, and one of them made to fail.
//!
//! `run(command, None)` lists the calls; `run(command, Some((&point, fault)))` makes the same tree again and
//! kills the process that makes the call, or all of the tree, before the call, or lets the call alone fail. A [`Point`] is
//! `rename:3:runner`: the third rename of the runner. Each program is a role of its own, with a number from its
//! second start on (`git-add`, `git-push#2`); `runner+` is a child of the runner before it is another program.
//! The user's own command is left alone, but for `git aynig flow`, where it calls that. For V13 and V16; Linux on x86-64.

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Nothing here sleeps so long, or has so much of the processor: what still runs then hangs, and is killed. What waits for a
/// processor that others have, or for its tracer, does neither.
const LIMIT: Duration = Duration::from_secs(60);
/// How often it is looked for that, and the most that one look counts: a busy machine looks more seldom.
const LOOK: Duration = Duration::from_millis(200);
/// How long a process may outlive the one that started it all; of a sample, which runs beside all other tests, longer.
fn afterwards() -> Duration {
    Duration::from_secs(if super::row::full() { 1 } else { 60 })
}

/// Where a call's object is named.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Path(u8),
    File(u8),
    Nothing,
}

const CALLS: &[(i64, &str, Of)] = &[
    (libc::SYS_open, "open", Of::Path(0)),
    (libc::SYS_creat, "open", Of::Path(0)),
    (libc::SYS_openat, "open", Of::Path(1)),
    (libc::SYS_openat2, "open", Of::Path(1)),
    (libc::SYS_write, "write", Of::File(0)),
    (libc::SYS_pwrite64, "write", Of::File(0)),
    (libc::SYS_writev, "write", Of::File(0)),
    (libc::SYS_pwritev, "write", Of::File(0)),
    (libc::SYS_copy_file_range, "copy", Of::File(2)),
    (libc::SYS_sendfile, "copy", Of::File(0)),
    (libc::SYS_rename, "rename", Of::Path(1)),
    (libc::SYS_renameat, "rename", Of::Path(3)),
    (libc::SYS_renameat2, "rename", Of::Path(3)),
    (libc::SYS_link, "link", Of::Path(1)),
    (libc::SYS_linkat, "link", Of::Path(3)),
    (libc::SYS_symlink, "link", Of::Path(1)),
    (libc::SYS_symlinkat, "link", Of::Path(2)),
    (libc::SYS_unlink, "unlink", Of::Path(0)),
    (libc::SYS_unlinkat, "unlink", Of::Path(1)),
    (libc::SYS_rmdir, "rmdir", Of::Path(0)),
    (libc::SYS_mkdir, "mkdir", Of::Path(0)),
    (libc::SYS_mkdirat, "mkdir", Of::Path(1)),
    (libc::SYS_fsync, "sync", Of::File(0)),
    (libc::SYS_fdatasync, "sync", Of::File(0)),
    (libc::SYS_syncfs, "sync", Of::File(0)),
    (libc::SYS_ftruncate, "truncate", Of::File(0)),
    (libc::SYS_truncate, "truncate", Of::Path(0)),
    (libc::SYS_chmod, "chmod", Of::Path(0)),
    (libc::SYS_fchmod, "chmod", Of::File(0)),
    (libc::SYS_fchmodat, "chmod", Of::Path(1)),
    (libc::SYS_utimensat, "utime", Of::Path(1)),
    (libc::SYS_flock, "flock", Of::File(0)),
    (libc::SYS_pipe, "pipe", Of::Nothing),
    (libc::SYS_pipe2, "pipe", Of::Nothing),
    (libc::SYS_clone, "clone", Of::Nothing),
    (libc::SYS_clone3, "clone", Of::Nothing),
    (libc::SYS_fork, "clone", Of::Nothing),
    (libc::SYS_vfork, "clone", Of::Nothing),
    (libc::SYS_execve, "exec", Of::Path(0)),
    (libc::SYS_exit_group, "exit", Of::Nothing),
];

/// One call of one process of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    pub call: String,
    pub nth: usize,
    pub role: String,
}

impl Point {
    /// True for what the user's own command does, and the shell that holds it all until it is traced: no point of ours.
    pub fn is_theirs(&self) -> bool {
        self.role == "shell" || self.role.starts_with("command")
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.call, self.nth, self.role)
    }
}

impl std::str::FromStr for Point {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let (Some(call), Some(Ok(nth)), Some(role)) =
            (parts.next(), parts.next().map(str::parse), parts.next())
        else {
            return Err(format!("'{text}' is no point such as rename:3:runner"));
        };
        Ok(Self { call: call.to_owned(), nth, role: role.to_owned() })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is gone before the call.
    Kill,
    /// The whole tree is, the user's own command with it.
    KillTree,
    /// The call does nothing and says so.
    Error(Errno),
}

/// What a tree did.
#[derive(Debug, Default)]
pub struct Trace {
    /// Every mutating call, with its object.
    pub calls: Vec<(Point, String)>,
    /// The object of the call that was hit; `None`: it was never made.
    pub hit: Option<String>,
    /// The exit code of the first process.
    pub code: Option<i32>,
    /// Who outlived the first process by more than a second, and by how much.
    pub left: Vec<(String, Duration)>,
    /// It did not end by itself.
    pub hung: bool,
}

struct Tracer<'a> {
    at: Option<(&'a Point, Fault)>,
    root: Pid,
    seen: Trace,
    /// Each thread's process, and each process's role.
    process: HashMap<Pid, Pid>,
    role: HashMap<Pid, String>,
    starts: HashMap<String, usize>,
    counts: HashMap<(String, &'static str), usize>,
    /// The thread whose call is to fail.
    failing: Option<Pid>,
    /// All of the tree is killed, and any process that was just about to be born.
    felled: bool,
    ended: Option<Instant>,
    alive: Arc<Mutex<HashSet<Pid>>>,
}

/// Runs a command (with a cleared environment) and everything that it starts, to the end of all of it.
pub fn run(command: &Command, at: Option<(&Point, Fault)>) -> Trace {
    let mut held = Command::new("/bin/sh");
    held.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).arg(command.get_program()).args(command.get_args());
    held.env_clear().envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
    held.current_dir(command.get_current_dir().unwrap());
    let base = command.get_envs().find(|(k, _)| *k == "HOME").unwrap().1.unwrap();
    let file = |name| std::fs::File::create(std::path::Path::new(base).join(name)).unwrap();
    held.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
    let root = Pid::from_raw(held.spawn().unwrap().id() as i32);
    assert!(matches!(waitpid(root, Some(WaitPidFlag::WUNTRACED)), Ok(WaitStatus::Stopped(..))));
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(root, options).unwrap();
    kill(root, Signal::SIGCONT).unwrap();
    let mut tracer = Tracer {
        at,
        root,
        seen: Trace::default(),
        process: HashMap::from([(root, root)]),
        role: HashMap::from([(root, "shell".to_owned())]),
        starts: HashMap::new(),
        counts: HashMap::new(),
        failing: None,
        felled: false,
        ended: None,
        alive: Arc::new(Mutex::new(HashSet::from([root]))),
    };
    let (over, watched) = mpsc::channel::<()>();
    let alive = tracer.alive.clone();
    let watchdog = std::thread::spawn(move || {
        let mut asleep = Duration::ZERO;
        let hung = loop {
            if watched.recv_timeout(LOOK) != Err(mpsc::RecvTimeoutError::Timeout) {
                break false;
            }
            let states: Vec<(char, Duration)> =
                alive.lock().unwrap().iter().filter_map(|pid| state_of(*pid)).collect();
            if states.iter().all(|(state, _)| *state == 'S') {
                asleep += LOOK;
            }
            if asleep > LIMIT || states.iter().any(|(_, used)| *used > LIMIT) {
                break true;
            }
        };
        while hung && !alive.lock().unwrap().is_empty() {
            alive.lock().unwrap().iter().for_each(|pid| _ = kill(*pid, Signal::SIGKILL));
            std::thread::sleep(Duration::from_millis(20));
        }
        hung
    });
    tracer.follow();
    drop(over);
    tracer.seen.hung = watchdog.join().unwrap();
    tracer.seen
}

/// Whether a process sleeps (`S`) or does something else, and how much of the processor it had.
fn state_of(pid: Pid) -> Option<(char, Duration)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((fields.first()?.chars().next()?, Duration::from_millis(ticks * 10)))
}

/// A process that the system's account of this one names.
fn field_of(pid: Pid, name: &str) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).map(Pid::from_raw)
}

impl Tracer<'_> {
    fn follow(&mut self) {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            let waited = waitpid(None, Some(flags));
            if let Ok(
                WaitStatus::PtraceSyscall(pid)
                | WaitStatus::PtraceEvent(pid, ..)
                | WaitStatus::Stopped(pid, _),
            ) = waited
            {
                self.met(pid);
            }
            match waited {
                Err(Errno::ECHILD) => break,
                Err(Errno::EINTR) => {}
                Err(error) => panic!("{error}"),
                Ok(WaitStatus::Exited(pid, code)) => self.gone(pid, Some(code)),
                Ok(WaitStatus::Signaled(pid, ..)) => self.gone(pid, None),
                Ok(WaitStatus::PtraceSyscall(pid)) => self.call(pid),
                Ok(WaitStatus::PtraceEvent(pid, _, event)) => self.event(pid, event),
                Ok(WaitStatus::Stopped(pid, signal)) => self.go_on(pid, Some(signal)),
                Ok(_) => {}
            }
        }
        self.alive.lock().unwrap().clear();
    }

    fn gone(&mut self, pid: Pid, code: Option<i32>) {
        self.alive.lock().unwrap().remove(&pid);
        if pid == self.root {
            self.seen.code = code;
            self.ended = Some(Instant::now());
        } else if self.process.get(&pid) == Some(&pid)
            && let Some(ended) = self.ended
            && ended.elapsed() > afterwards()
        {
            self.seen.left.push((self.role_of(pid).to_owned(), ended.elapsed()));
        }
        // Its number may be another's from now on.
        self.process.remove(&pid);
    }

    /// On to the next stop; where nothing is looked for any more, without one at each call.
    fn go_on(&self, pid: Pid, signal: Option<Signal>) {
        let over = self.at.is_some() && self.seen.hit.is_some() && self.failing.is_none();
        let theirs = self.role_of(pid).starts_with("command");
        // One that was killed meanwhile is no longer there to go on.
        let _ = if over || theirs || self.ended.is_some() {
            ptrace::cont(pid, signal)
        } else {
            ptrace::syscall(pid, signal)
        };
    }

    fn role_of(&self, pid: Pid) -> &str {
        self.process.get(&pid).and_then(|p| self.role.get(p)).map_or("", String::as_str)
    }

    fn event(&mut self, pid: Pid, event: i32) {
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                if let Ok(new) = ptrace::getevent(pid) {
                    self.born(Pid::from_raw(new as i32), pid);
                }
            }
            libc::PTRACE_EVENT_EXEC => {
                let role = self.role_of(pid).to_owned();
                let name = self.name_of(pid);
                // A flow's commands are ours.
                if !role.starts_with("command") || name == "flow" {
                    let role = self.started(&name);
                    self.role.insert(pid, role);
                }
                self.process.insert(pid, pid);
            }
            _ => {}
        }
        self.go_on(pid, None);
    }

    /// On a busy machine a new process stops before its parent's stop that tells of it is seen.
    fn met(&mut self, pid: Pid) {
        if !self.process.contains_key(&pid) {
            let parent = field_of(pid, "PPid:").unwrap_or(pid);
            self.born(pid, parent);
        }
    }

    /// A new thread, or a new process that is its parent's twin yet.
    fn born(&mut self, new: Pid, parent: Pid) {
        if self.process.contains_key(&new) {
            return;
        }
        self.alive.lock().unwrap().insert(new);
        if self.felled {
            let _ = kill(new, Signal::SIGKILL);
        }
        let group = field_of(new, "Tgid:").unwrap_or(new);
        self.process.insert(new, group);
        if group == new {
            let parent = self.role_of(parent).to_owned();
            let role =
                if parent.starts_with("command") { parent } else { self.started(&format!("{parent}+")) };
            self.role.insert(new, role);
        }
    }

    fn started(&mut self, name: &str) -> String {
        let starts = self.starts.entry(name.to_owned()).or_default();
        *starts += 1;
        if *starts == 1 { name.to_owned() } else { format!("{name}#{starts}") }
    }

    /// What a process is, by its arguments.
    fn name_of(&self, pid: Pid) -> String {
        let raw = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<String> =
            raw.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        if words.iter().take(2).any(|w| w.contains("/aynig/commands/")) {
            return "command".to_owned();
        }
        let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let program = base(&words[0]);
        match program.as_str() {
            "git-aynig" if words.get(1).is_some_and(|w| w == "guardian") => "guardian".to_owned(),
            "git-aynig" if words.get(1).is_some_and(|w| w == "flow") => "flow".to_owned(),
            "git-aynig" => "runner".to_owned(),
            "git" => {
                let mut rest = words[1..].iter().peekable();
                while let Some(word) = rest.next_if(|w| w.starts_with('-')) {
                    if matches!(word.as_str(), "-c" | "-C") {
                        rest.next();
                    }
                }
                format!("git-{}", rest.next().map_or("", |w| w))
            }
            _ => program,
        }
    }

    fn call(&mut self, pid: Pid) {
        let Ok(info) = ptrace::syscall_info(pid) else { return self.go_on(pid, None) };
        if info.op == libc::PTRACE_SYSCALL_INFO_EXIT {
            if self.failing == Some(pid)
                && let Some((_, Fault::Error(errno))) = self.at
                && let Ok(mut registers) = ptrace::getregs(pid)
            {
                registers.rax = (errno as i64).wrapping_neg() as u64;
                let _ = ptrace::setregs(pid, registers);
                self.failing = None;
            }
        } else if let Ok(registers) = ptrace::getregs(pid) {
            self.entered(pid, registers);
        }
        self.go_on(pid, None);
    }

    fn entered(&mut self, pid: Pid, mut registers: libc::user_regs_struct) {
        let number = registers.orig_rax as i64;
        let Some((_, name, of)) = CALLS.iter().find(|(n, ..)| *n == number) else { return };
        let name = match open_flags(number, &registers) {
            Some(flags) if flags & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT) == 0 => "read",
            _ if number == libc::SYS_flock && registers.rsi as i32 & libc::LOCK_UN != 0 => "unlock",
            _ => name,
        };
        let role = self.role_of(pid).to_owned();
        let count = self.counts.entry((role.clone(), name)).or_default();
        *count += 1;
        let nth = *count;
        let Some((point, fault)) = self.at else {
            let object = object(pid, *of, &registers);
            self.seen.calls.push((Point { call: name.to_owned(), nth, role }, object));
            return;
        };
        if self.seen.hit.is_some() || nth != point.nth || name != point.call || role != point.role {
            return;
        }
        self.seen.hit = Some(object(pid, *of, &registers));
        match fault {
            Fault::Kill => {
                let _ = kill(self.process[&pid], Signal::SIGKILL);
            }
            Fault::KillTree => {
                self.felled = true;
                self.alive.lock().unwrap().iter().for_each(|pid| _ = kill(*pid, Signal::SIGKILL));
            }
            Fault::Error(_) => {
                registers.orig_rax = u64::MAX;
                let _ = ptrace::setregs(pid, registers);
                self.failing = Some(pid);
            }
        }
    }
}

fn open_flags(number: i64, registers: &libc::user_regs_struct) -> Option<i32> {
    match number {
        libc::SYS_open => Some(registers.rsi as i32),
        libc::SYS_openat => Some(registers.rdx as i32),
        _ => None,
    }
}

fn object(pid: Pid, of: Of, registers: &libc::user_regs_struct) -> String {
    let argument = |n: u8| [registers.rdi, registers.rsi, registers.rdx, registers.r10][n as usize];
    match of {
        Of::Nothing => String::new(),
        Of::File(n) => {
            let link = std::fs::read_link(format!("/proc/{pid}/fd/{}", argument(n))).unwrap_or_default();
            String::from_utf8_lossy(link.as_os_str().as_bytes()).into_owned()
        }
        Of::Path(n) => {
            let mut raw = vec![0; 4096];
            let read = std::fs::File::open(format!("/proc/{pid}/mem"))
                .and_then(|mem| mem.read_at(&mut raw, argument(n)))
                .unwrap_or(0);
            raw.truncate(raw[..read].iter().position(|b| *b == 0).unwrap_or(read));
            String::from_utf8_lossy(&raw).into_owned()
        }
    }
}

/// Why nothing can be traced here.
pub fn unable() -> Option<&'static str> {
    let seen = run(Command::new("/bin/true").env("HOME", std::env::temp_dir()).current_dir("/"), None);
    seen.calls.is_empty().then_some("processes can't be traced here")
}
