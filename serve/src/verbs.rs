//! Runs subcommands (verbs) of `git-aynig`, as a person would: all that change a repository, and those that
//! print what Git itself prints.
//!
//! So a change takes the program's locks and comes with its messages and hints, and a chain that a verb
//! starts does not depend on this process. Names are passed as whole arguments, texts after `=` or on
//! standard input, so none can be taken for an option. Implements W3 (nothing runs here), W7 (verbs).

use crate::Stopped;
use crate::fail::Failed;
use aynig::served::{Place, whole};
use aynig::supervisor::bounded::{Bounded, Finished, Input, Output};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The program that performs the verbs.
const PROGRAM: &str = "git-aynig";
/// The longest argument, in bytes: a system allows 128 KiB.
const WORD_MAX: usize = 96 << 10;
/// Most verbs at a time; reading from the library has threads of its own.
const VERBS_MAX: usize = 8;
/// How long a verb may take.
const VERB_MAX: Duration = Duration::from_secs(60);
/// Most bytes of a diff that are shown.
const DIFF_MAX: usize = 1 << 20;
/// The shortest id of a run, or of a commit.
const ID_MIN: usize = 32;
/// Most bytes that are read of a verb's standard error.
const SAID_MAX: usize = 64 << 10;

/// Finds the program: beside this one, or else on PATH.
pub fn program() -> Result<PathBuf, Stopped> {
    let beside = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let beside = beside.map(|here| here.with_file_name(PROGRAM)).filter(|program| program.is_file());
    let on_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|program| program.is_file())
    };
    let missing = || {
        let missing = Stopped::new(128, format!("'{PROGRAM}' is not beside this program, and not on PATH"));
        missing.hint("cargo install --path . , from where this was built")
    };
    beside.or_else(on_path).ok_or_else(missing)
}

/// The body of `set-state`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetState {
    state: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    trailers: Vec<String>,
    #[serde(default)]
    keep_trailers: bool,
    /// Whether to create the branch if it does not exist.
    #[serde(default)]
    create: bool,
}

/// The body of `retry` and of `cancel`: nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {}

/// The number of verbs that are under way.
static TURNS: AtomicUsize = AtomicUsize::new(0);

/// The right to run one of the limited number of verbs; it ends with the value.
struct Turn;

impl Turn {
    fn take() -> Result<Self, Failed> {
        let more = |now| (now < VERBS_MAX).then_some(now + 1);
        let taken = TURNS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.map(|_| Self).map_err(|_| Failed::later("too many verbs are under way: try again"))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs a verb that writes to a repository.
pub fn called(program: &Path, place: &Place, words: &[OsString], input: &[u8]) -> Result<Finished, Failed> {
    let finished = started(program, place, words, input);
    place.wrote();
    finished
}

/// Runs a verb that only reads.
pub fn looked(program: &Path, place: &Place, words: &[OsString]) -> Result<Finished, Failed> {
    started(program, place, words, b"")
}

/// Runs a verb. Its environment has nothing of a run or of another repository.
fn started(program: &Path, place: &Place, words: &[OsString], input: &[u8]) -> Result<Finished, Failed> {
    let _turn = Turn::take()?;
    let mut command = Command::new(program);
    command.arg("--git-dir").arg(&place.git_dir).args(words).current_dir(&place.folder);
    for (name, _) in std::env::vars_os() {
        let raw = name.as_encoded_bytes();
        let is_said = raw.starts_with(b"GIT_CONFIG");
        if raw.starts_with(b"AYNIG") || raw.starts_with(b"GIT_") && !is_said {
            command.env_remove(&name);
        }
    }
    let bounded = Bounded {
        input: Input::Bytes(input.to_vec()),
        stdout: Output::Capture(DIFF_MAX),
        stderr: Output::Capture(SAID_MAX),
        deadline: Some(Instant::now() + VERB_MAX),
        ..Bounded::new(command)
    };
    bounded.run().map_err(|error| Failed::broken(format!("cannot start '{PROGRAM}': {error}")))
}

/// Returns the failure for a verb that did not do what it was asked, with the verb's own message and hint.
pub fn refused(finished: &Finished) -> Failed {
    let said = String::from_utf8_lossy(&finished.stderr.bytes);
    let of = |prefix: &str| {
        let lines = said.lines().filter_map(|line| line.strip_prefix(prefix)).map(str::trim);
        lines.collect::<Vec<_>>().join("; ")
    };
    let error = match of("error:") {
        error if error.is_empty() => said.lines().next().unwrap_or("it did not say why").to_owned(),
        error => error,
    };
    let hint = Some(of("hint:")).filter(|hint| !hint.is_empty());
    let failed = match finished.status.code() {
        Some(129) => Failed::invalid(error),
        Some(2) => Failed::refused(error),
        Some(75) | None => Failed::later(error),
        // For example, another process holds the branch, the branch's state does not allow the verb, or local
        // work is in the way.
        Some(_) => Failed::held(error),
    };
    failed.hint(hint)
}

/// Returns the object that a verb printed, or the verb's failure if it printed none.
pub fn written(finished: &Finished) -> Result<Value, Failed> {
    match serde_json::from_slice::<Value>(&finished.stdout.bytes) {
        Ok(object) if object.is_object() => Ok(object),
        Ok(_) | Err(_) => Err(refused(finished)),
    }
}

/// Returns the objects that a verb printed, one per line.
pub fn lines(finished: &Finished) -> Result<Vec<Value>, Failed> {
    let lines = finished.stdout.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
    lines.map_err(|error| Failed::broken(format!("'{PROGRAM}' printed no JSON: {error}")))
}

/// Refuses words that can't be passed as arguments: with a NUL byte, or too long.
pub fn texts(words: &[OsString]) -> Result<(), Failed> {
    if words.iter().any(|word| word.as_encoded_bytes().contains(&0)) {
        return Err(Failed::invalid("a NUL byte"));
    }
    match words.iter().map(|word| word.len()).max() {
        Some(longest) if longest > WORD_MAX => {
            Err(Failed::too_large(format!("a text of {longest} bytes: at most {WORD_MAX} go here")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses a branch that does not exist: only a new event creates a branch, and only if the request says so.
pub fn must_exist(place: &Place, branch: &str) -> Result<(), Failed> {
    place.branch(branch)?;
    Ok(())
}

/// Writes a state event.
pub fn set_state(program: &Path, place: &Place, branch: &str, given: &SetState) -> Result<Value, Failed> {
    let name = whole(branch)?;
    if !given.create {
        must_exist(place, branch)?;
    }
    let given_as = |flag: &str, value: &OsStr| {
        let mut word = OsString::from(flag);
        word.push(value);
        word
    };
    let mut words: Vec<OsString> = vec!["set-state".into(), "--json".into(), "--file=-".into()];
    words.push(given_as("--branch=", &name));
    words.extend(given.trailers.iter().map(|trailer| given_as("--trailer=", OsStr::new(trailer))));
    words.extend(given.keep_trailers.then(|| "--keep-trailers".into()));
    words.extend(["--".into(), OsString::from(&given.state)]);
    texts(&words)?;
    written(&called(program, place, &words, given.message.as_bytes())?)
}

/// Runs a verb that takes only a branch.
pub fn plain(verb: &str, program: &Path, place: &Place, branch: &str, _: &Retry) -> Result<Value, Failed> {
    let name = whole(branch)?;
    must_exist(place, branch)?;
    let words = [verb.into(), "--json".into(), "--".into(), name];
    written(&called(program, place, &words, b"")?)
}

/// Returns what runs used, grouped by `branch`, `state`, `model` or `day`: the lines of `usage --json`.
pub fn usage(program: &Path, place: &Place, by: Option<&str>) -> Result<Value, Failed> {
    let by = match by {
        None => None,
        Some(by @ ("branch" | "state" | "model" | "day")) => Some(format!("--by={by}").into()),
        Some(_) => return Err(Failed::invalid("'by' is none of branch, state, model, day")),
    };
    let words: Vec<OsString> = ["usage".into(), "--json".into()].into_iter().chain(by).collect();
    let finished = looked(program, place, &words)?;
    if !finished.status.success() {
        return Err(refused(&finished));
    }
    Ok(json!({"usage": lines(&finished)?}))
}

/// Returns what a run of a branch changed, as `git diff` prints it: the run that is named, or else the
/// latest.
pub fn diff(program: &Path, place: &Place, branch: &str, run: Option<&str>) -> Result<Value, Failed> {
    let name = whole(branch)?;
    must_exist(place, branch)?;
    match run {
        // Only a word as long as an id is passed, so that it can't be anything else that `diff` takes.
        Some(run) if is_id(run) => asked(program, place, branch, run.into()),
        Some(run) => Err(Failed::invalid(format!("'{}' is no run's id", run.escape_debug()))),
        None => asked(program, place, branch, name),
    }
}

fn is_id(run: &str) -> bool {
    let is_one = run.len() >= ID_MIN && !run.starts_with('-');
    is_one && run.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Returns the diff of a branch's run, or of the work that a question of the branch is about.
pub fn asked(program: &Path, place: &Place, branch: &str, what: OsString) -> Result<Value, Failed> {
    let options = [
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "-M",
        "--full-index",
    ];
    let mut words: Vec<OsString> = vec!["diff".into(), what, "--".into()];
    words.extend(options.map(OsString::from));
    let finished = looked(program, place, &words)?;
    if !finished.status.success() && !finished.stdout.truncated {
        return Err(refused(&finished));
    }
    Ok(json!({
        "schema": "aynig.diff/1",
        "branch": branch,
        "said": String::from_utf8_lossy(&finished.stderr.bytes).trim(),
        "diff": String::from_utf8_lossy(&finished.stdout.bytes),
        "truncated": finished.stdout.truncated,
    }))
}

/// Opens an address in the user's browser; it is no failure if there is none. Every user can see the
/// arguments of a process, and the address contains a code: so the browser gets it from a file that only this
/// user can read.
pub fn open_browser(address: &str) {
    let address = address.to_owned();
    std::thread::spawn(move || {
        if !opened(&address).unwrap_or(false) {
            eprintln!("no browser could be opened here: open the address yourself");
        }
    });
}

fn opened(address: &str) -> std::io::Result<bool> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join(format!("aynig-serve-{}.html", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    write!(file, "<!doctype html><meta http-equiv=refresh content='0; url={address}'>")?;
    let mut command = Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    command.arg(&path);
    let bounded = Bounded {
        stdout: Output::Null,
        stderr: Output::Null,
        deadline: Some(Instant::now() + Duration::from_secs(20)),
        ..Bounded::new(command)
    };
    let is_open = bounded.run().is_ok_and(|ended| ended.status.success());
    // The opener returns before the browser has read the file.
    std::thread::sleep(Duration::from_secs(5));
    std::fs::remove_file(&path)?;
    Ok(is_open)
}
