//! Judges whether a command's file can be started: what its first line asks the system for, and
//! whether this machine has that.
//!
//! The verdict says what `exec` would do with these bytes, and no more. Where the answer depends on what
//! can't be known before (a handler of the system's, an option of `env`), there is no verdict, and the start
//! itself decides. The bytes come from a commit and are not trusted: few of them are looked at, and names are
//! escaped where they are shown. Implements K13 (what can't be started is known before the claim).

use crate::protocol::id::ObjectId;
use crate::protocol::text::escape;
use crate::store::Store;
use nix::unistd::{AccessFlags, access};
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How many bytes of a file the system looks at.
const HEAD: usize = 256;
/// Bytes above which a file is no hand-written script, and its first line is not looked at.
const SIZE_MAX: u64 = 4 << 20;
/// How many bytes of a name are shown.
const SHOWN: usize = 80;

/// Why a command's file can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// The mode of the file says that it is no program.
    NotExecutable,
    /// A symbolic link out of `.aynig/`.
    Leaves,
    /// More symbolic links than are followed.
    Links,
    /// A symbolic link that leads to no file, or a submodule.
    Nowhere,
    /// The file has no bytes.
    Empty,
    /// Text without `#!`, which only a shell would take for a script.
    NoInterpreter,
    /// `#!` without a program that could be started.
    BadLine,
    /// The first line ends in a carriage return, which becomes a part of the last word. True where the
    /// command can't be started because of that, false where it may only be confused by it.
    CarriageReturn(bool),
    /// The program that `#!` names is not on this machine, or can't be started.
    Interpreter(Vec<u8>),
    /// The program that `env` is to find is not on `PATH`.
    Program(Vec<u8>),
    /// `env` gets several words as one argument, and takes them for one name.
    Words(Vec<u8>),
    /// `env` is given options or variables, and nothing to start.
    NoProgram,
    /// `.aynig/` has more entries than are copied.
    TooMany,
    /// `#!` names a program without an absolute path, which the system looks for in the worktree.
    Relative(Vec<u8>),
}

impl Unfit {
    /// True where the file can't be started whatever the worktree holds.
    pub(crate) fn is_certain(&self) -> bool {
        !matches!(self, Unfit::CarriageReturn(false) | Unfit::Relative(_))
    }

    /// True where the machine lacks something, and nothing is wrong with the file.
    pub(crate) fn is_of_machine(&self) -> bool {
        matches!(self, Unfit::Interpreter(_) | Unfit::Program(_))
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |raw: &[u8]| escape(&raw[..raw.len().min(SHOWN)]);
        match self {
            Unfit::NotExecutable => f.write_str("not executable"),
            Unfit::Leaves => f.write_str("a symbolic link that leaves .aynig/"),
            Unfit::Links => f.write_str("too many symbolic links"),
            Unfit::Nowhere => f.write_str("it leads nowhere"),
            Unfit::Empty => f.write_str("it is empty"),
            Unfit::NoInterpreter => f.write_str("its first line does not begin with #!"),
            Unfit::BadLine => f.write_str("its first line names no program after #!"),
            Unfit::CarriageReturn(_) => f.write_str("its first line ends in a carriage return (CRLF)"),
            Unfit::Interpreter(raw) => write!(f, "its interpreter '{}' is not here", name(raw)),
            Unfit::Program(raw) => write!(f, "env does not find '{}' on PATH", name(raw)),
            Unfit::Words(raw) => write!(f, "env takes '{}' for one name", name(raw)),
            Unfit::NoProgram => f.write_str("env is given no program to start: several words need -S"),
            Unfit::TooMany => f.write_str("its .aynig/ has too many files"),
            Unfit::Relative(raw) => {
                write!(f, "its interpreter '{}' is looked for in the worktree: no absolute path", name(raw))
            }
        }
    }
}

/// Judges the file of a command that is called `name`, and that will have `path` as its `PATH`. `None` where
/// nothing is wrong, and where the file can't be read or is too large to be judged.
pub(crate) fn judge(store: &dyn Store, file: ObjectId, name: &str, path: Option<&OsStr>) -> Option<Unfit> {
    let content = store.read_bounded(file, SIZE_MAX).ok()??;
    judge_head(&content[..content.len().min(HEAD)], name, path)
}

fn judge_head(head: &[u8], name: &str, path: Option<&OsStr>) -> Option<Unfit> {
    let Some(line) = head.strip_prefix(b"#!") else {
        let is_text = !head.contains(&0);
        return match head.is_empty() {
            true => Some(Unfit::Empty),
            false => (is_text && !has_handler(name)).then_some(Unfit::NoInterpreter),
        };
    };
    let ended = line.iter().position(|b| matches!(b, b'\n' | b'\0'));
    let line = trimmed(&line[..ended.unwrap_or(line.len())]);
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let split = line.iter().position(blank);
    // A name that fills all that the system reads is cut off there, and the system refuses it.
    if line.is_empty() || (ended.is_none() && split.is_none() && head.len() == HEAD) {
        return Some(Unfit::BadLine);
    }
    let (interpreter, argument) = line.split_at(split.unwrap_or(line.len()));
    let argument = trimmed(argument);
    let at = Path::new(OsStr::from_bytes(interpreter));
    if at.is_relative() {
        return Some(match interpreter.last() {
            Some(b'\r') => Unfit::CarriageReturn(false),
            _ => Unfit::Relative(interpreter.to_owned()),
        });
    }
    if !is_program(at) {
        return Some(match interpreter.last() {
            Some(b'\r') => Unfit::CarriageReturn(true),
            _ => Unfit::Interpreter(interpreter.to_owned()),
        });
    }
    let of_env =
        at.file_name().is_some_and(|name| name == "env").then(|| judge_env(argument, path)).flatten();
    of_env.or_else(|| argument.ends_with(b"\r").then_some(Unfit::CarriageReturn(false)))
}

/// Returns the text without blanks at either end. A carriage return stays, because the system leaves it too.
fn trimmed(text: &[u8]) -> &[u8] {
    let ink = |b: &u8| !matches!(b, b' ' | b'\t');
    match (text.iter().position(ink), text.iter().rposition(ink)) {
        (Some(first), Some(last)) => &text[first..=last],
        _ => &[],
    }
}

/// Judges what `env` does with the one argument that the system gives it, or with the words that it is told
/// to split that argument into.
fn judge_env(argument: &[u8], path: Option<&OsStr>) -> Option<Unfit> {
    let Some(program) = words_of_env(argument)?.first().copied() else { return Some(Unfit::NoProgram) };
    // What `env` makes of a variable or a quote is not predicted.
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"._+-/ \t\r".contains(b);
    if !program.iter().all(plain) || is_found(program, path)? {
        return None;
    }
    Some(match program {
        _ if program.ends_with(b"\r") => Unfit::CarriageReturn(true),
        _ if program.iter().any(u8::is_ascii_whitespace) => Unfit::Words(program.to_owned()),
        _ => Unfit::Program(program.to_owned()),
    })
}

/// Returns the program that `env` is to start and its arguments, without the options and variables before the
/// program. Empty where no program is named: then `env` would start the command's own file, which starts
/// `env` again, for ever. `None` where `env` gets options that this function does not know.
fn words_of_env(argument: &[u8]) -> Option<Vec<&[u8]>> {
    let long = argument.strip_prefix(b"--split-string").map(|rest| rest.strip_prefix(b"=").unwrap_or(rest));
    let short = || {
        let letters = argument.strip_prefix(b"-")?;
        let at = letters.iter().position(|letter| !matches!(letter, b'i' | b'v' | b'0'))?;
        (letters[at] == b'S').then(|| &letters[at + 1..])
    };
    let several = long.or_else(short);
    // Linux hands several words on as one argument; not all systems do.
    let split = several.is_some() || !cfg!(target_os = "linux");
    if !split {
        let is_program = !argument.is_empty() && !argument.starts_with(b"-") && !argument.contains(&b'=');
        return Some(if is_program { vec![argument] } else { Vec::new() });
    }
    let words = several.unwrap_or(argument).split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut words = words.peekable();
    while let Some(word) = words.peek() {
        match *word {
            b"-" | b"-i" | b"-v" | b"--ignore-environment" | b"--debug" => drop(words.next()),
            b"-u" | b"-C" | b"--unset" | b"--chdir" => drop((words.next(), words.next())),
            _ if word.starts_with(b"-") => return None,
            _ if word.contains(&b'=') && word.iter().all(|b| !b"\"'\\$".contains(b)) => drop(words.next()),
            _ => break,
        }
    }
    Some(words.collect())
}

/// Returns why it is certain that no program of this name can be started here; `path` is the `PATH` to search. `None`
/// where that depends on the worktree or on defaults, too.
pub(crate) fn unstartable(program: &str, path: Option<&OsStr>) -> Option<String> {
    let name = Path::new(program);
    let files: Vec<PathBuf> = match program.contains('/') {
        true => vec![name.to_owned()],
        false => std::env::split_paths(path?).map(|folder| folder.join(name)).collect(),
    };
    if files.iter().any(|file| file.is_relative()) {
        return None;
    }
    let mut why = None;
    for file in files.iter().filter(|file| is_program(file)) {
        let lacks = lacks(file, program, path)?;
        why.get_or_insert(lacks.to_string());
        // The system goes on with the next folder where one's file lacks its interpreter, the name of which may end in
        // a carriage return. What `env` does not find comes too late for that: `env` has been started.
        if !matches!(lacks, Unfit::Interpreter(_) | Unfit::CarriageReturn(true)) {
            break;
        }
    }
    Some(why.unwrap_or_else(|| "no such program is found".to_owned()))
}

/// Returns what keeps this file from being started, or this machine lacks for it; `None` where nothing is known: a file
/// that can't be read may be a program all the same.
fn lacks(file: &Path, name: &str, path: Option<&OsStr>) -> Option<Unfit> {
    let mut head = Vec::new();
    File::open(file).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    // Elsewhere `posix_spawnp` may hand what is no program to a shell.
    let is_script =
        |why: &Unfit| !cfg!(target_os = "linux") && matches!(why, Unfit::NoInterpreter | Unfit::Empty);
    judge_head(&head, name, path).filter(|why| why.is_certain() && !is_script(why))
}

/// True where a program of this name is on `path`; `None` where that depends on the worktree or on defaults.
fn is_found(program: &[u8], path: Option<&OsStr>) -> Option<bool> {
    let name = Path::new(OsStr::from_bytes(program));
    if program.contains(&b'/') {
        return name.is_absolute().then(|| is_program(name));
    }
    let folders: Vec<_> = std::env::split_paths(path?).collect();
    let found = folders.iter().any(|folder| folder.is_absolute() && is_program(&folder.join(name)));
    let knows_all = folders.iter().all(|folder| folder.is_absolute());
    (found || knows_all).then_some(found)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file()) && access(path, AccessFlags::X_OK).is_ok()
}

/// True where the system has a program registered for files with this extension (Linux's `binfmt_misc`).
fn has_handler(name: &str) -> bool {
    let Some((_, extension)) = name.rsplit('/').next().and_then(|name| name.rsplit_once('.')) else {
        return false;
    };
    let wanted = format!("extension .{extension}");
    let handlers = std::fs::read_dir("/proc/sys/fs/binfmt_misc").into_iter().flatten().flatten();
    handlers.take(1000).any(|handler| {
        let said = std::fs::read_to_string(handler.path()).unwrap_or_default();
        said.starts_with("enabled") && said.lines().any(|line| line == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(head: &str) -> Option<Unfit> {
        let head = &head.as_bytes()[..head.len().min(HEAD)];
        judge_head(head, "command/build", Some(OsStr::new("/usr/bin:/bin")))
    }

    /// E7: the system goes on along `PATH` where an interpreter is missing, and what lies in the worktree is not known.
    #[test]
    fn a_program_is_missing_where_no_folder_of_the_path_has_it_for_certain() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let place = |folder: &str, text: &str| {
            let dir = root.path().join(folder);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("wrap"), text).unwrap();
            std::fs::set_permissions(dir.join("wrap"), PermissionsExt::from_mode(0o755)).unwrap();
            dir.to_str().unwrap().to_owned()
        };
        let (broken, good) = (place("broken", "#!/no/such/shell\n"), place("good", "#!/bin/sh\n"));
        let why = |program: &str, path: &str| unstartable(program, Some(OsStr::new(path)));
        let lacks = "its interpreter '/no/such/shell' is not here";
        assert_eq!(why("wrap", &format!("{broken}:/nowhere")).as_deref(), Some(lacks));
        assert_eq!(why(&format!("{broken}/wrap"), "").as_deref(), Some(lacks));
        assert_eq!(why("wrap", "/nowhere").as_deref(), Some("no such program is found"));
        for path in [&format!("{broken}:{good}"), &format!("bin:{broken}"), &format!("{good}:bin")] {
            assert_eq!(why("wrap", path), None, "{path}");
        }
        let late = place("late", "#!/usr/bin/env no-such-program\n");
        let found = why("wrap", &format!("{late}:{good}")).unwrap();
        assert!(found.starts_with("env does not find"), "{found}");
        assert_eq!((why("./wrap", &broken), unstartable("wrap", None)), (None, None));
    }

    /// K13
    #[test]
    fn what_the_system_would_start_is_not_judged() {
        let fine = [
            "#!/bin/sh\n",
            "#! /bin/sh -eu \nx",
            "#!/bin/sh",
            "#!/usr/bin/env sh\n",
            "#!/usr/bin/env -S sh -eu\n",
            // Only `env` can say what these come to.
            "#!/usr/bin/env -S --none-such nothing-here\n",
            "#!/usr/bin/env -S A='1 nothing-here'\n",
            "#!/usr/bin/env -S \"nothing here\"\n",
            "#!/usr/bin/env -S A=1 -u B sh -e\n",
            "#!/usr/bin/env -S A=1 sh\n",
            "#!/usr/bin/env -iS -u B sh\n",
            "#!/usr/bin/env ./nothing-here\n",
            "\u{7f}ELF\0",
        ];
        for head in fine {
            assert_eq!(judged(head), None, "{head:?}");
        }
        let long = format!("#!/bin/sh {}\n", "x".repeat(300));
        assert_eq!(judged(&long), None);
        // With another PATH, or none, the worktree or a default decides.
        for path in [None, Some(""), Some(".:/nowhere")] {
            assert_eq!(judge_head(b"#!/usr/bin/env nothing-here\n", "x", path.map(OsStr::new)), None);
        }
    }

    /// K13
    #[test]
    fn what_the_system_would_refuse_is_named() {
        let is = |head: &str, words: &str| {
            let unfit = judged(head).unwrap_or_else(|| panic!("{head:?} is said to start"));
            assert_eq!(unfit.to_string(), words, "{head:?}");
        };
        is("", "it is empty");
        is("echo hi\n", "its first line does not begin with #!");
        is(" #!/bin/sh\n", "its first line does not begin with #!");
        is("\u{feff}#!/bin/sh\n", "its first line does not begin with #!");
        is("#!\n/bin/sh", "its first line names no program after #!");
        is(&format!("#!/{}", "x".repeat(300)), "its first line names no program after #!");
        is("#!/bin/sh\r\necho", "its first line ends in a carriage return (CRLF)");
        is("#!/bin/sh -e\r\necho", "its first line ends in a carriage return (CRLF)");
        is("#!/usr/bin/env sh\r\n", "its first line ends in a carriage return (CRLF)");
        is("#!/no/such\u{1b}x -a\n", "its interpreter '/no/such\\x1bx' is not here");
        is("#!/bin\n", "its interpreter '/bin' is not here");
        is("#!/usr/bin/env nothing-here\n", "env does not find 'nothing-here' on PATH");
        is("#!/usr/bin/env -S nothing-here -x\n", "env does not find 'nothing-here' on PATH");
        is("#!/usr/bin/env -S -i A=1 -u B nothing-here\n", "env does not find 'nothing-here' on PATH");
        is("#!sh\n", "its interpreter 'sh' is looked for in the worktree: no absolute path");
        let no_program = "env is given no program to start: several words need -S";
        for argument in ["", " ", " -S", " -S A=1 B=2", " -vS -i", " --split-string=-u B"] {
            is(&format!("#!/usr/bin/env{argument}\n"), no_program);
        }
        if cfg!(target_os = "linux") {
            for argument in ["A=1 sh", "-i sh", "-u A sh", "-C / sh", "-", "--unset=A sh"] {
                is(&format!("#!/usr/bin/env {argument}\n"), no_program);
            }
            is("#!/usr/bin/env sh -e\n", "env takes 'sh -e' for one name");
        }
        assert!(!judged("#!/bin/sh -e\r\n").unwrap().is_certain() && !judged("#!sh\n").unwrap().is_certain());
        assert!(judged("#!/bin/sh\r\n").unwrap().is_certain());
    }
}
