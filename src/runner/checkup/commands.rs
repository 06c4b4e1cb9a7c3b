//! Checks of trust, and of the commands that it is about.

use super::Level::{Error, Ok as Fine, Warning};
use super::{Finding, Findings, Mend, name};
use crate::protocol::id::ObjectId;
use crate::protocol::text::{escape, with_causes};
use crate::runner::settings::CommandsFrom;
use crate::runner::{Runner, RunnerError};
use crate::store::command_start::Unfit;
use crate::store::command_tree::{self, Entry, FOLDER};
use std::path::Path;

impl Runner<'_> {
    pub(super) fn check_trust(&self, found: &mut Findings) -> Result<(), RunnerError> {
        // A user who names a bare repository stands in another folder, perhaps in another repository.
        let trust = Mend::Trust(self.repo.bare.then(|| self.repo.common_dir.clone()));
        let (from, tree) = match &self.settings.commands_from {
            CommandsFrom::Nowhere => {
                let text = "not trusted: nothing runs here until you say which commands may";
                found.push(Finding::new(Error, "trust", text).mend(trust));
                return Ok(());
            }
            CommandsFrom::Branch => {
                found.push(Finding::new(Fine, "trust", "a branch's own .aynig/ is run for it"));
                let head = self.repo.git.rev_parse(&self.repo.git_dir, "HEAD^{commit}").ok();
                ("HEAD".to_owned(), head)
            }
            CommandsFrom::Ref(source) => {
                let shown = self.home().shown();
                let Some(tip) = self.commands_tip(source)? else {
                    if self.settings.remote.is_some() {
                        let text = format!("commands come from {shown}, which was not fetched yet");
                        found.push(Finding::new(Fine, "trust", text));
                        return Ok(());
                    }
                    let text = format!("'{}', where commands come from, does not exist", name(source));
                    // A commit creates the branch only if it is the one that is checked out, and has no
                    // commit yet.
                    let here = self.repo.main_dir.as_ref().is_some_and(|dir| dir.join(FOLDER).exists())
                        && self.repo.current_branch()?.as_ref() == Some(source);
                    let mend = if here { Mend::CommitCommands } else { Mend::TrustRef };
                    found.push(Finding::new(Error, "trust", text).mend(mend));
                    return Ok(());
                };
                found.push(Finding::new(Fine, "trust", format!("commands come from {shown}")));
                (shown, Some(tip))
            }
        };
        let commands = match tree {
            Some(id) => self.commands_of(id)?,
            None => Vec::new(),
        };
        self.judge_commands(&from, &commands, found);
        self.check_uncommitted(&from, &commands, found);
        Ok(())
    }

    /// Whether the program of `aynig.exec` is here.
    pub(super) fn check_wrapper(&self, found: &mut Findings) -> Result<(), RunnerError> {
        if let Some(error) = self.no_wrapper() {
            found.push(Finding::new(Error, "commands", with_causes(&error)).mend(Mend::ShowWrapper));
        }
        Ok(())
    }

    fn commands_of(&self, commit: ObjectId) -> Result<Vec<(String, Entry)>, RunnerError> {
        let tree = command_tree::find(&*self.store, self.store.read_commit(commit)?.tree)?;
        Ok(tree.map_or(Ok(Vec::new()), |tree| command_tree::entries(&*self.store, tree))?)
    }

    fn judge_commands(&self, from: &str, commands: &[(String, Entry)], found: &mut Findings) {
        let unfit = |path: &str, entry: &Entry| match entry {
            Entry::Usable(file) => self.unfit(path, *file),
            Entry::Unusable(why) => Some(why.clone()),
            Entry::BadName(_) => None,
        };
        let judged: Vec<_> = commands.iter().map(|(path, entry)| (path, entry, unfit(path, entry))).collect();
        let usable = || judged.iter().filter(|(_, entry, _)| matches!(entry, Entry::Usable(_)));
        let well = usable().filter(|(_, _, unfit)| unfit.is_none());
        let well: Vec<String> = well.map(|(path, ..)| escape(path.as_bytes())).collect();
        if !well.is_empty() {
            found.push(Finding::new(Fine, "commands", format!("{} in {from}", well.join(", "))));
        } else if usable().all(|(_, _, unfit)| unfit.as_ref().is_some_and(Unfit::is_certain)) {
            let text = format!("{from} has none: nothing would ever run");
            found.push(Finding::new(Warning, "commands", text).mend(Mend::Init));
        }
        for (path, entry, unfit) in judged {
            let file = format!("{FOLDER}/{path}");
            let shown = escape(path.as_bytes());
            if let Some(why) = unfit {
                let text = format!("{FOLDER}/{shown}: {why}");
                let mend = Mend::FixCommand { home: self.home(), file, why, branch: None };
                found.push(Finding::new(Warning, "commands", text).mend(mend));
            } else if let Entry::BadName(why) = entry {
                let text = format!("{FOLDER}/{shown} answers no state: {why}");
                found.push(Finding::new(Warning, "commands", text));
            }
        }
    }

    /// Warns of commands that are only in the main working tree.
    fn check_uncommitted(&self, from: &str, commands: &[(String, Entry)], found: &mut Findings) {
        let Some(main) = &self.repo.main_dir else { return };
        let aynig = main.join(FOLDER);
        for path in files_below(&aynig, &aynig.join("command"), 0) {
            if !commands.iter().any(|(known, _)| *known == path) {
                let text =
                    format!("{FOLDER}/{} is in the working tree, not in {from}", escape(path.as_bytes()));
                let mend = Mend::CommitWhereRead(self.home());
                found.push(Finding::new(Warning, "commands", text).mend(mend));
            }
        }
    }
}

/// Returns the files below a folder, relative to `root`; links are not followed.
fn files_below(root: &Path, folder: &Path, depth: usize) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_dir()) && depth < 8 {
            files.extend(files_below(root, &path, depth + 1));
        } else if let Ok(relative) = path.strip_prefix(root) {
            files.push(relative.to_string_lossy().into_owned());
        }
    }
    files.sort();
    files
}
