//! Completions: clap_complete's script for `git-aynig`, what makes Git's own completion find it, and
//! branch names where a branch goes. Tried in each shell that is installed here.

use crate::skipped::skipped;
use clap_complete::{Shell, generate};
use std::path::Path;
use std::process::Command;

/// The verbs that are shown.
fn verbs() -> Vec<&'static str> {
    let command = aynig::cli::command();
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    // clap wants names that last; a test's process does not.
    shown.map(|verb| &*verb.get_name().to_owned().leak()).collect()
}

/// The command line as people type it: with the words by which Git is asked for help, which are options to us.
fn typed() -> clap::Command {
    let (command, verbs) = (aynig::cli::command(), verbs());
    let verb = clap::Arg::new("verb").value_name("VERB").help("The verb");
    let verb = verb.value_parser(clap::builder::PossibleValuesParser::new(verbs));
    let help = clap::Command::new("help").about("Show the manual, or that of a verb").arg(verb);
    command.subcommand(help).subcommand(clap::Command::new("version").about("Say which version this is"))
}

/// The flags that are hidden, in whichever verb. They are none to clap's generators.
fn hidden() -> Vec<String> {
    fn of(command: &clap::Command) -> Vec<String> {
        let own = command.get_arguments().filter(|arg| arg.is_hide_set());
        let below = command.get_subcommands().flat_map(of);
        own.filter_map(|arg| arg.get_long().map(str::to_owned)).chain(below).collect()
    }
    of(&aynig::cli::command())
}

/// A line of a script without these flags; `None` where it is about one of them alone.
fn without(line: &str, flags: &[String]) -> Option<String> {
    let about =
        |flag: &String| line.contains(&format!("-l {flag} ")) || line.contains(&format!("'--{flag}["));
    if flags.iter().any(about) {
        return None;
    }
    let is_hidden = |word: &&str| !flags.iter().any(|flag| word.strip_prefix("--") == Some(flag));
    match line.contains("opts=\"") {
        true => Some(line.split(' ').filter(is_hidden).collect::<Vec<_>>().join(" ")),
        false => Some(line.trim_end().to_owned()),
    }
}

/// The script of one shell.
pub fn render(shell: Shell) -> String {
    let mut raw = Vec::new();
    generate(shell, &mut typed(), "git-aynig", &mut raw);
    let script = String::from_utf8(raw).unwrap();
    let text = match shell {
        // clap_complete spells a program's hyphen in two ways; then no flag of a verb is ever found.
        Shell::Bash => {
            format!(
                "{}\n{}",
                script.trim_end().replace("git__subcmd__aynig", "git__aynig"),
                include_str!("glue.bash")
            )
        }
        Shell::Zsh => zsh(&script),
        // clap tells fish nothing of what may stand where a flag does not.
        Shell::Fish => {
            let (script, verbs) = (script.trim_end(), verbs().join(" "));
            let help = format!("-n \"__fish_git_aynig_using_subcommand help\" -f -a '{verbs}'");
            format!("{script}\ncomplete -c git-aynig {help}\n{}", include_str!("glue.fish"))
        }
        other => panic!("no completions for {other}"),
    };
    let flags = hidden();
    let lines: Vec<String> = text.lines().filter_map(|line| without(line, &flags)).collect();
    format!("{}\n", lines.join("\n"))
}

/// Values that are branches are completed by our function, and Git's completion is told of the verb.
fn zsh(script: &str) -> String {
    let glue = include_str!("glue.zsh");
    let branch = |line: &str| {
        let at = [
            ":BRANCH:_default'",
            ":REF:_default'",
            "::branches -- ",
            "::branch -- ",
            "::what -- ",
            "':branch -- ",
        ];
        at.iter().any(|mark| line.contains(mark))
    };
    let lines = script.lines().map(|line| match line {
        _ if line.contains("'--remote=[") => line.replace(":NAME:_default'", ":NAME:_git-aynig_remotes'"),
        _ if line.contains("'*--for=[") => line.replace(":STATE:_default'", ":STATE:_git-aynig_states'"),
        _ if line.contains(":KIND:_default'") => line.replace(":_default'", ":_git-aynig_kinds'"),
        _ if line.contains("':choice -- ") => line.replace(":_default'", ":_git-aynig_choices'"),
        _ if line.contains("':what -- ") => line.replace(":_default'", ":_git-aynig_questions'"),
        _ if line.contains("':state -- ") => line.replace(":_default'", ":_git-aynig_states'"),
        _ if branch(line) => line.replace(":_default'", ":_git-aynig_branches'"),
        _ => line.to_owned(),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let (head, tail) = text.split_once("\nif [ \"$funcstack[1]\"").expect("clap ends the script so");
    format!("{}\n\n{glue}\nif [ \"$funcstack[1]\"{tail}", head.trim_end())
}

/// A repository with two branches, and what the shell prints there; `None` where there is no such shell.
fn try_in(shell: &str, args: &[&str], script: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let run = Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
            .args(args)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&["branch", "topic/one"]);
    git(&["remote", "add", "upstream", "."]);
    std::fs::create_dir_all(folder.path().join(".aynig/command/turn")).unwrap();
    std::fs::write(folder.path().join(".aynig/command/turn/dev"), "").unwrap();
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "y"]);
    // A question, one of whose choices no shell should ever be given.
    let said = "q\n\nq?\n\ndwp-branch: topic/one\ndwp-choice: yes\ndwp-choice: $(touch x)\ndwp-choice: no";
    git(&["commit", "-q", "--allow-empty", "-m", said]);
    git(&["update-ref", "refs/aynig/asked/q-7", "HEAD"]);
    git(&["update-ref", "refs/aynig/inbox/topic/one/zeta/id", "HEAD"]);
    git(&["reset", "-q", "--hard", "HEAD^"]);
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("install/completions");
    let bin = Path::new(env!("CARGO_BIN_EXE_git-aynig")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let run = Command::new(shell)
        .args(args)
        .args(["-c", script])
        .current_dir(folder.path())
        .env("HERE", here)
        .env("HOME", folder.path())
        .env("PATH", path)
        .stdin(std::process::Stdio::null())
        .output();
    let Ok(output) = run else {
        skipped(&format!("there is no {shell} here"));
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{shell}: {said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().all(|word| text.split_whitespace().any(|w| w == *word))
}

const BASH: &str = r#"
set -u
git_completion=/usr/share/bash-completion/completions/git
if [ -e "$git_completion" ]; then set +u; . "$git_completion"; fi
. "$HERE/git-aynig.bash"
try() { # the words up to the cursor, the last one being completed
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
    if [ "$1" = git ] && declare -F __git_wrap__git_main >/dev/null; then
        __git_wrap__git_main
    elif [ "$1" = git ]; then
        _git_aynig
    else
        _git-aynig_or_branches git-aynig "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    fi
    echo "$*= ${COMPREPLY[*]-}"
}
try git aynig ''
try git aynig tick --
try git aynig tick ''
try git -C . aynig set-state -b to
try git aynig set-state done --branch m
try git-aynig ''
try git-aynig cancel ''
try git aynig tick --remote ''
try git -C . aynig set-state -b main t
try git aynig set-state turn/dev -m ''
try git aynig help go
try git aynig vers
try git aynig answer ''
try git aynig answer topic/one ''
try git aynig approve q
try git aynig send main --kind ''
"#;

#[test]
fn bash_completes_through_gits_own_completion() {
    let Some(out) = try_in("bash", &["--norc", "--noprofile"], BASH) else { return };
    let lines: Vec<&str> = out.lines().collect();
    assert!(has(lines[0], &["init", "tick", "set-state", "doctor"]), "{out}");
    assert!(has(lines[1], &["--jobs", "--dry-run", "--chain"]), "{out}");
    assert!(has(lines[2], &["main", "topic/one"]), "{out}");
    assert!(has(lines[3], &["topic/one"]) && !lines[3].contains("main"), "{out}");
    assert!(has(lines[4], &["main"]), "{out}");
    assert!(has(lines[5], &["init", "tick"]), "{out}");
    assert!(has(lines[6], &["main", "topic/one"]), "{out}");
    assert!(has(lines[7], &["upstream"]) && !lines[7].contains("topic"), "{out}");
    assert!(lines[8].ends_with("= turn/dev"), "{out}");
    assert!(!lines[9].contains("= turn/dev"), "{out}");
    assert!(has(lines[0], &["help", "version"]), "{out}");
    assert!(lines[10].ends_with("= govern") && lines[11].ends_with("= version"), "{out}");
    assert!(has(lines[12], &["topic/one", "q-7"]), "{out}");
    assert!(has(lines[13], &["yes", "no"]) && !lines[13].contains("touch"), "{out}");
    assert!(lines[14].ends_with("= q-7") && has(lines[15], &["message", "zeta"]), "{out}");
}

#[test]
fn fish_completes_through_gits_own_completion() {
    let script = r#"
for line in 'git aynig ' 'git aynig tick --' 'git aynig tick ' 'git-aynig set-state -b to' 'git-aynig cancel ' \
        'git aynig tick --remote ' 'git aynig set-state t' 'git aynig help go' 'git aynig vers'
    echo $line= (complete -C $line | string split -f1 \t)
end"#;
    let source = "source $HERE/git-aynig.fish";
    let Some(out) = try_in("fish", &["-C", source], script) else { return };
    let lines: Vec<&str> = out.lines().collect();
    assert!(has(lines[0], &["init", "tick", "set-state"]), "{out}");
    assert!(has(lines[1], &["--jobs", "--dry-run"]), "{out}");
    assert!(has(lines[2], &["main", "topic/one"]), "{out}");
    assert!(has(lines[3], &["topic/one"]) && !lines[3].contains("main"), "{out}");
    assert!(has(lines[4], &["main", "topic/one"]), "{out}");
    assert!(has(lines[5], &["upstream"]) && !lines[5].contains("topic"), "{out}");
    assert!(has(lines[6], &["turn/dev"]), "{out}");
    assert!(has(lines[7], &["govern"]) && !lines[7].contains("tick"), "{out}");
    assert!(has(lines[8], &["version"]), "{out}");
}

#[test]
fn zsh_reads_the_script_and_finds_the_branches() {
    let script = r#"
autoload -Uz compinit && compinit -D -u
fpath=($HERE $fpath)
source $HERE/git-aynig.zsh
(( $+functions[_git-aynig] )) && echo defined
compadd() { shift; print -r -- "$@" }
_git-aynig_branches
_git-aynig_remotes
_git-aynig_states
"#;
    let Some(out) = try_in("zsh", &["-f"], script) else { return };
    assert!(has(&out, &["defined", "main", "topic/one", "upstream", "turn/dev"]), "{out}");
    let text = render(Shell::Zsh);
    let verbs = text.lines().find(|line| line.contains("'::verb -- ")).unwrap_or_default();
    assert!(verbs.contains("govern") && verbs.contains("tick"), "{verbs}");
    assert!(text.contains("'version:Say which version this is'"), "{text}");
    assert!(text.matches(":_git-aynig_branches'").count() >= 8, "{text}");
    assert!(
        text.matches(":_git-aynig_remotes'").count() >= 8 && text.contains(":_git-aynig_states'"),
        "{text}"
    );
}
