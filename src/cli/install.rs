//! `install`: copies a workflow pack into `.aynig/` of the working tree; commits and trusts nothing.
//!
//! It finds the pack, and shows what the pack brings and what it writes over, where its README is, and what
//! to type next, up to the command that starts its first state. The work is `store::pack`'s. Implements
//! git-aynig-install(1).

use super::args::Install;
use super::fail::Failure;
use super::session::{Global, Session};
use super::{hints, output};
use crate::protocol::name::StateName;
use crate::protocol::text::{escape, escape_block, shell_word};
use crate::runner::settings::CommandsFrom;
use crate::store::pack::place::{Plan, Site};
use crate::store::pack::readme::{ROLES, Start};
use crate::store::pack::{Origin, Pack, PackError};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The most files that one failure names.
const NAMED: usize = 20;

/// Runs `git aynig install`.
pub fn run(global: &Global, args: &Install) -> Result<i32, Failure> {
    let session = global.open()?;
    let Some(work_dir) = session.repo.work_dir.clone() else {
        return Err(Failure::fatal("there is no working tree here to install into")
            .hint("git clone this repository, install there, and push what you commit"));
    };
    let here = std::env::current_dir()
        .map_err(|e| Failure::fatal(format!("cannot read the current directory: {e}")))?;
    crate::app::mend::all(&session);
    let origin = origin(&here, args)?;
    let site = Site::take(&session.repo, &work_dir)?;
    let is_path = Path::new(&origin.url).is_absolute();
    if !global.quiet && !is_path {
        output::note(&format!("fetching {}", origin.shown()));
    }
    let pack = Pack::fetch(&session.repo, &origin)?;
    let plan = Plan::new(&site, &pack)?;
    let changes = plan.new.len() + plan.overwritten.len();
    let stat = plan.stat()?;
    if !global.quiet {
        output::raw(false, escape_block(&stat).as_bytes());
    }
    if pack.left_out > 0 && !global.quiet {
        output::note(&format!("note: left out {} below .aynig/logs/", files(pack.left_out)));
    }
    if changes > 0 && !args.dry_run {
        plan.carry_out()?;
    }
    if !global.quiet {
        let did = if args.dry_run { "would install" } else { "installed" };
        let (new, over) = (plan.new.len(), plan.overwritten.len());
        let what = format!("{new} new, {over} overwritten, {} unchanged", plan.unchanged);
        let commit = pack.commit.to_string();
        output::line(&format!("{did} {} ({}): {what}", origin.shown(), &commit[..8]));
        if changes > 0 || args.dry_run {
            next(&session, &origin, &pack, args.dry_run)?;
        }
    }
    Ok(0)
}

/// Prints where the pack's README is, and what to type next.
fn next(session: &Session, origin: &Origin, pack: &Pack, dry: bool) -> Result<(), Failure> {
    let commit = &pack.commit.to_string()[..8];
    let readme = pack.readme(origin)?;
    if let Some(readme) = &readme {
        let path = escape(readme.path.as_bytes());
        output::line(&format!("README: {path} in {} ({commit})", origin.shown()));
        let paragraph = readme.paragraph();
        if !paragraph.is_empty() {
            output::line(&format!("  {paragraph}"));
        }
    }
    if dry {
        output::line("Once it is installed, committed and trusted:");
    } else {
        output::line("Next, after reading what came:");
        to_commit(session, origin, pack, commit)?;
    }
    match pack.start(readme.as_ref()) {
        Start::Command { line, ticks } => {
            output::line(&format!("  {line}"));
            if ticks {
                output::line("  git aynig run");
            }
        }
        Start::OneOf(states) => {
            let states: Vec<&str> = states.iter().map(StateName::as_str).collect();
            let hint = format!("it answers {}: its README says which comes first", states.join(", "));
            output::line(&format!("  git aynig set-state <state> -b <branch>    # {hint}"));
        }
        Start::Nothing => {}
    }
    Ok(())
}

/// Prints the commands that commit what came, and that trust it.
fn to_commit(session: &Session, origin: &Origin, pack: &Pack, commit: &str) -> Result<(), Failure> {
    let subject = format!("aynig: install {} ({commit})", origin.shown());
    let subject = shlex::try_quote(&subject).map_or("'aynig: install a pack'".into(), |q| q.into_owned());
    let lacks = |name: &str| session.repo.work_dir.as_ref().is_some_and(|dir| !dir.join(name).exists());
    if let Some(first) = hints::to_top(session.repo.work_dir.as_deref()) {
        output::line(&format!("  {first}"));
    }
    let mut add = "git add .aynig".to_owned();
    if let Some(roles) = pack.roles().filter(|_| lacks(ROLES)) {
        output::line(&format!("  cp {} .", shell_word(&[b".aynig/", roles].concat())));
        add = format!("{add} {ROLES}");
    }
    output::line(&format!("  {add} && git commit -m {subject}"));
    if session.config.commands_from()? == CommandsFrom::Nowhere {
        output::line("  git aynig trust");
    }
    Ok(())
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Returns where the pack is, from the arguments as typed.
fn origin(here: &Path, args: &Install) -> Result<Origin, Failure> {
    let url = url(here, &args.repo)?;
    let reference = args.reference.as_deref().filter(|r| !matches!(*r, "" | "HEAD"));
    if let Some(name) = reference {
        let full = ["refs/heads/", "refs/tags/"].iter().any(|p| name.starts_with(p));
        if name.starts_with('-') || (name.starts_with("refs/") && !full) {
            let name = escape(name.as_bytes());
            return Err(Failure::usage(format!("'{name}' is no branch, tag or whole commit id")));
        }
    }
    let folder = args.subfolder.as_deref().unwrap_or_default();
    let parts: Vec<&str> = folder.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let parts = parts.strip_suffix(&[".aynig"]).unwrap_or(&parts);
    if folder.starts_with('/') || parts.contains(&"..") {
        let folder = escape(folder.as_bytes());
        return Err(Failure::usage(format!("'{folder}' is no folder inside a repository")));
    }
    Ok(Origin { url, reference: reference.map(str::to_owned), folder: parts.join("/") })
}

/// Returns what to fetch from: a path that exists, a URL as Git knows them, or `owner/name`, which is
/// GitHub's.
fn url(here: &Path, typed: &OsStr) -> Result<OsString, Failure> {
    if here.join(typed).exists() && !typed.is_empty() {
        // Made absolute, since `git` is started in another folder.
        let place = here.join(typed);
        return Ok(std::fs::canonicalize(&place).unwrap_or(place).into_os_string());
    }
    let text = typed.to_string_lossy();
    if let Some((owner, name)) = text.split_once('/')
        && is_word(owner)
        && is_word(name)
    {
        return Ok(format!("https://github.com/{text}").into());
    }
    // Git tells a URL from a path in the same way: a colon before any slash ends a host or a transport.
    let is_url = text.find(':').is_some_and(|colon| !text[..colon].contains('/'));
    match is_url {
        true => Ok(typed.to_owned()),
        false => {
            let shown = escape(typed.as_bytes());
            Err(Failure::fatal(format!("'{shown}' is no repository: there is nothing of this name here"))
                .hint("name a path, a URL, or a repository of GitHub's as owner/name"))
        }
    }
}

/// True for a name that an owner or a repository on GitHub may have.
fn is_word(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(known) && !name.starts_with(['.', '-'])
}

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        let error = match error {
            PackError::Store(error) => return error.into(),
            other => other,
        };
        let failure = match &error {
            PackError::Refused(_) => Failure::refused(error.to_string()),
            PackError::Uncommitted(_) | PackError::InTheWay(_) => {
                Failure { code: 1, ..Failure::fatal(error.to_string()) }
            }
            PackError::Busy { .. } => Failure { code: 75, ..Failure::fatal(error.to_string()) },
            PackError::Fetch { .. }
            | PackError::Empty { .. }
            | PackError::NoPack { .. }
            | PackError::Store(_) => Failure::fatal(error.to_string()),
        };
        match error {
            PackError::Refused(files) => failure
                .because(files.iter().map(ToString::to_string))
                .hint("ask its author for regular files, and links that stay inside .aynig/"),
            PackError::InTheWay(files) => failure
                .because(files.iter().map(ToString::to_string))
                .hint("move them away and commit that, then install again"),
            PackError::Uncommitted(paths) => failure
                .because(paths.iter().map(|path| format!("'{}'", escape(path))))
                .hint("git add .aynig && git commit, or git stash -u -- .aynig"),
            PackError::Fetch { source, .. } => {
                let inner = Failure::from(source);
                Failure { code: inner.code, ..failure }.because([inner.message]).because(inner.causes)
            }
            PackError::NoPack { .. } => failure
                .hint("git aynig install <repo> <ref> <subfolder>, where <subfolder>/.aynig, or <subfolder> itself, is the pack"),
            PackError::Busy { .. } => failure.hint("wait for it, then install again"),
            PackError::Empty { .. } | PackError::Store(_) => failure,
        }
    }
}

impl Failure {
    /// Adds causes, as many as a reader has patience for ([`NAMED`]), and says how many more there are.
    fn because(mut self, causes: impl IntoIterator<Item = String>) -> Self {
        let mut causes = causes.into_iter();
        self.causes.extend(causes.by_ref().take(NAMED));
        let more = causes.count();
        self.causes.extend((more > 0).then(|| format!("and {more} more")));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_path_a_url_or_a_name_on_github() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("ada/packs")).unwrap();
        let is = |typed: &str| url(folder.path(), OsStr::new(typed)).map(|u| u.into_string().unwrap());
        let path = std::fs::canonicalize(folder.path().join("ada/packs")).unwrap();
        assert_eq!(is("ada/packs").unwrap(), path.to_str().unwrap());
        assert_eq!(is("ada/other").unwrap(), "https://github.com/ada/other");
        assert_eq!(is("git@host:ada/packs").unwrap(), "git@host:ada/packs");
        assert_eq!(is("https://host/ada/packs").unwrap(), "https://host/ada/packs");
        for nothing in ["packs", "./ada/other", "../x/y", "a/b/c", "", "a/b:c"] {
            assert_eq!(is(nothing).unwrap_err().code, 128, "{nothing}");
        }
    }
}
