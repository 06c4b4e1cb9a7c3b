//! Finds this repository's hooks, and installs and removes the lines in them that start this program.
//!
//! Git 2.54 and later run hooks that the configuration names. For them the hooks' sections are written to a
//! file of our own, which one `include.path` then adds to the repository's configuration, so that a crash
//! leaves a configuration that Git can read. For an older Git a marked block goes to the top of each shell
//! hook, and leaves standard input to the rest of the hook; a file that is not a shell hook of this
//! repository is left alone. Removal restores what was there byte for byte, and installing twice is the same
//! as installing once. Implements K41.

mod block;

use crate::store::config::edit;
use crate::store::disk::{Shared, place_of};
use crate::store::repository::Repository;
use crate::store::{StoreError, worktrees};
use block::Edit;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The events for which Git runs a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "the names that Git gives them")]
pub(crate) enum HookEvent {
    /// A commit was made in this repository.
    PostCommit,
    /// A merge or a pull was completed in this repository.
    PostMerge,
    PostRewrite,
    PostReceive,
}

impl HookEvent {
    pub(crate) const ALL: [Self; 4] =
        [Self::PostCommit, Self::PostMerge, Self::PostRewrite, Self::PostReceive];

    /// Returns Git's name for the event.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PostCommit => "post-commit",
            Self::PostMerge => "post-merge",
            Self::PostRewrite => "post-rewrite",
            Self::PostReceive => "post-receive",
        }
    }

    /// Returns the event that has this name in Git.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    fn template(self) -> &'static str {
        match self {
            Self::PostCommit => include_str!("../../../hooks/post-commit"),
            Self::PostMerge => include_str!("../../../hooks/post-merge"),
            Self::PostRewrite => include_str!("../../../hooks/post-rewrite"),
            Self::PostReceive => include_str!("../../../hooks/post-receive"),
        }
    }

    /// Returns the whole hook script, which starts `program`.
    fn script(self, program: &Path) -> Vec<u8> {
        self.script_with(&shlex::bytes::try_quote(program.as_os_str().as_bytes()).unwrap_or_default())
    }

    /// Returns the whole hook script, which starts a program that is already quoted for the shell.
    fn script_with(self, quoted: &[u8]) -> Vec<u8> {
        let mut script = Vec::new();
        for (at, part) in self.template().split("@PROGRAM@").enumerate() {
            if at > 0 {
                script.extend_from_slice(quoted);
            }
            script.extend_from_slice(part.as_bytes());
        }
        script
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Our hook is installed, as a block in this file.
    Block(PathBuf),
    /// Our hook is installed, by this file of configuration.
    Configured(PathBuf),
    /// Our hook is installed by lines that the user put into this file, which is left alone for the reason that
    /// follows.
    ByHand(PathBuf, &'static str),
    Absent,
    /// Our hook is not installed, because this file is left alone for the reason that follows.
    LeftAlone(PathBuf, &'static str),
}

impl Standing {
    /// True where Git runs our hook.
    pub(crate) fn is_installed(&self) -> bool {
        match self {
            Self::Block(_) | Self::Configured(_) | Self::ByHand(..) => true,
            Self::Absent | Self::LeftAlone(..) => false,
        }
    }
}

/// The hooks of one repository.
pub(crate) struct Hooks<'r> {
    repo: &'r Repository,
    /// The folder in which Git looks for hook files.
    dir: PathBuf,
    /// Where that path leads, if that is inside the repository.
    inside: Option<PathBuf>,
}

/// The configuration key that includes our file of hooks.
const INCLUDE: &str = "include.path";
/// Our file of hooks, as the repository's configuration names it.
const OURS: &str = "aynig/hooks.gitconfig";
/// The edit of the configuration that includes it.
const INCLUDED: &[&str] = &["--fixed-value", "--replace-all", INCLUDE, OURS, OURS];
/// The ending of the file beside the marker that keeps what the configuration was.
const BEFORE: &str = "config";
/// The configuration key that lets a push carry options.
const OPTIONS: &str = "receive.advertisePushOptions";

impl<'r> Hooks<'r> {
    /// Finds where Git looks for this repository's hooks.
    pub(crate) fn of(repo: &'r Repository) -> Result<Self, StoreError> {
        Self::at(repo, repo.work_dir.as_deref().unwrap_or(&repo.git_dir), &repo.git_dir)
    }

    /// Finds where Git looks for the hooks of one working tree: a `core.hooksPath` that is relative is below its top.
    fn at(repo: &'r Repository, home: &Path, git_dir: &Path) -> Result<Self, StoreError> {
        // A repository that is not trusted is asked too: this reads where its hooks are, and starts none.
        let command = repo.git.git().at_liberty().plain(Some(git_dir)).verb("rev-parse");
        let printed = command.args(["--git-path", "hooks"]).in_dir(home).ok()?;
        let path =
            PathBuf::from(OsString::from_vec(printed.strip_suffix(b"\n").unwrap_or(&printed).to_vec()));
        let dir = home.join(path);
        let places =
            [Some(&*repo.common_dir), Some(home), repo.work_dir.as_deref(), repo.main_dir.as_deref()];
        let is_ours = |place: &PathBuf| places.iter().flatten().any(|ours| place.starts_with(ours));
        Ok(Self { repo, inside: place_of(&dir).filter(is_ours), dir })
    }

    /// Returns the hooks of each working tree that has a folder of its own for them, this one first.
    fn everywhere(&self) -> Result<Vec<Self>, StoreError> {
        let mut all = vec![Self { repo: self.repo, dir: self.dir.clone(), inside: self.inside.clone() }];
        for (dir, git_dir) in worktrees::tops(self.repo) {
            let of = Self::at(self.repo, &dir, &git_dir)?;
            if all.iter().all(|known| known.dir != of.dir) {
                all.push(of);
            }
        }
        Ok(all)
    }

    /// Returns the events that can happen in this repository: a bare one without working trees only receives pushes.
    pub(crate) fn events(&self) -> &'static [HookEvent] {
        let only_receives = self.repo.bare && worktrees::is_alone(self.repo);
        if only_receives { &HookEvent::ALL[3..] } else { &HookEvent::ALL }
    }

    /// Returns the files that have our hooks, those of other working trees included.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut files = Vec::new();
        for hooks in self.everywhere()? {
            for event in HookEvent::ALL {
                match hooks.standing(event)? {
                    Standing::Block(path) | Standing::Configured(path) if !files.contains(&path) => {
                        files.push(path)
                    }
                    _ => {}
                }
            }
        }
        Ok(files)
    }

    /// Returns the folder in which Git looks for hook files.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// True where some hook of ours is installed. This is cheap: it looks for one file and starts no process.
    pub(crate) fn any_installed(repo: &Repository) -> bool {
        repo.common_dir.join("aynig/hooks-installed").exists()
    }

    pub(crate) fn standing(&self, event: HookEvent) -> Result<Standing, StoreError> {
        let file = self.repo.common_dir.join(OURS);
        if file.exists() && self.is_included()? {
            return Ok(Standing::Configured(file));
        }
        self.standing_of_file(event)
    }

    /// Does what [`Hooks::standing`] does for the hook's file alone.
    fn standing_of_file(&self, event: HookEvent) -> Result<Standing, StoreError> {
        let path = self.dir.join(event.name());
        let has_block = block::read(&path)?.is_some_and(|content| block::has(&content));
        Ok(match (has_block, self.barred(&path)) {
            (true, None) => Standing::Block(path),
            (true, Some(why)) => Standing::ByHand(path, why),
            (false, _) => match self.refusal(&path) {
                Some(why) => Standing::LeftAlone(path, why),
                None => Standing::Absent,
            },
        })
    }

    /// Installs all hooks that this repository has a use for, and returns how each stands afterwards.
    pub(crate) fn install(&self, program: &Path) -> Result<Vec<(HookEvent, Standing)>, StoreError> {
        let marker = self.repo.aynig_dir().join("hooks-installed");
        let put = self.put(program, &marker);
        let stand = self.events().iter().map(|event| Ok((*event, self.standing(*event)?)));
        let all: Result<Vec<(HookEvent, Standing)>, StoreError> = stand.collect();
        // Without a hook nothing is to say that there are some.
        let none = all.as_ref().is_ok_and(|all| !all.iter().any(|(_, standing)| standing.is_installed()));
        if none && self.files()?.is_empty() && self.by_hand()?.is_empty() {
            match put {
                Ok(()) => {
                    self.take_back(&marker)?;
                    self.unadvertise(&marker)?;
                }
                // A lock that keeps this from being undone is what it failed by, and is told already; the note stays then,
                // as it says what is still to be undone.
                Err(_) => drop(self.unadvertise(&marker)),
            }
        }
        put.and(all)
    }

    /// Puts the hooks there, and what goes with them.
    fn put(&self, program: &Path, marker: &Path) -> Result<(), StoreError> {
        self.repo.make(&self.repo.aynig_dir())?;
        // The configuration first, as another process may hold its lock: then this fails before any hook is
        // made.
        self.advertise(marker)?;
        // Another Git may have been here when the hooks were installed before. Of both kinds the wrong one would stay: a
        // newer Git would start each hook twice, an older one none.
        if self.by_configuration()? {
            self.configure(program)?;
            self.remove_blocks()?;
        } else {
            if self.repo.common_dir.join(OURS).exists() {
                self.unconfigure()?;
            }
            let shared = self.inside.as_ref().map_or(Shared::Umask, |place| self.repo.shared_at(place));
            for event in self.events() {
                let path = self.dir.join(event.name());
                if self.refusal(&path).is_none() {
                    block::insert(&path, &event.script(program), shared)?;
                }
            }
        }
        Ok(())
    }

    /// Removes every trace of an installation of either kind, but not the lines that the user put into a file that is
    /// left alone. Returns the files that were touched.
    pub(crate) fn uninstall(&self) -> Result<Vec<PathBuf>, StoreError> {
        let marker = self.repo.aynig_dir().join("hooks-installed");
        let mut touched = Vec::new();
        if self.is_included()? {
            touched.push(self.repo.common_dir.join(OURS));
        }
        self.take_back(&marker)?;
        self.unconfigure()?;
        touched.extend(self.remove_blocks()?);
        self.unadvertise(&marker)?;
        Ok(touched)
    }

    /// Puts the configuration back as it was, byte for byte, where nobody else has changed it since.
    fn take_back(&self, marker: &Path) -> Result<(), StoreError> {
        let advertised: &[&str] = &[OPTIONS, "true"];
        let mut edits = Vec::new();
        edits.extend(is_our_doing(marker).then_some(advertised));
        edits.extend(self.is_included()?.then_some(INCLUDED));
        if !edits.is_empty() {
            edit::take_back(self.repo, &marker.with_extension(BEFORE), &edits)?;
        }
        Ok(())
    }

    /// Takes back what [`Hooks::advertise`] did, and removes the marker.
    fn unadvertise(&self, marker: &Path) -> Result<(), StoreError> {
        // After a crash the marker may announce a setting that was never made, so the setting is looked up.
        if is_our_doing(marker) && self.config_value(OPTIONS)?.is_some() {
            self.config(&["--unset", OPTIONS])?;
        }
        let _ = std::fs::remove_file(marker);
        let _ = std::fs::remove_file(marker.with_extension(BEFORE));
        Ok(())
    }

    /// Returns the program that the installed hooks call first, where that program no longer exists.
    pub(crate) fn missing_program(&self) -> Result<Option<PathBuf>, StoreError> {
        let Some(event) = self.events().first() else { return Ok(None) };
        let path = match self.standing(*event)? {
            Standing::Block(path) | Standing::ByHand(path, _) => path,
            Standing::Configured(_) => self.repo.aynig_dir().join("hooks").join(event.name()),
            Standing::Absent | Standing::LeftAlone(..) => return Ok(None),
        };
        let script = block::read(&path)?.unwrap_or_default();
        let program = block::program(&script);
        Ok(program.filter(|program| !program.exists()))
    }

    /// Returns the lines that the user can add by hand to a hook that is left alone.
    pub(crate) fn lines(&self, event: HookEvent, program: &Path) -> String {
        let script = match program.to_str() {
            Some(_) => event.script(program),
            None => event.script_with(in_octal(program).as_bytes()),
        };
        String::from_utf8_lossy(block::block_of(&script)).into_owned()
    }

    /// Lets pushes carry options, and notes in the marker whether this program turned that on.
    fn advertise(&self, marker: &Path) -> Result<(), StoreError> {
        let absent = self.config_value(OPTIONS)?.is_none();
        if !marker.exists() {
            // Without this copy the settings are taken out one by one.
            let _ = edit::keep(self.repo, &marker.with_extension(BEFORE));
            // The marker is written first. After a crash it may promise to undo a setting that is not there,
            // which does no harm.
            self.repo.write(marker, if absent { b"advertised\n" } else { b"\n" })?;
        }
        if absent && is_our_doing(marker) {
            self.config(&[OPTIONS, "true"])?;
        }
        Ok(())
    }

    fn configure(&self, program: &Path) -> Result<(), StoreError> {
        let scripts = self.repo.aynig_dir().join("hooks");
        self.repo.make(&scripts)?;
        let mut text =
            b"# Written by 'git aynig hooks install'; 'git aynig hooks uninstall' removes it.\n".to_vec();
        for event in self.events() {
            let script = scripts.join(event.name());
            block::create(&script, &event.script(program), self.repo.shared_at(&script))?;
            let quoted = shlex::bytes::try_quote(script.as_os_str().as_bytes()).unwrap_or_default();
            text.extend(format!("[hook \"aynig-{0}\"]\n\tevent = {0}\n\tcommand = \"", event.name()).bytes());
            for byte in quoted.iter() {
                if matches!(byte, b'"' | b'\\') {
                    text.push(b'\\');
                }
                text.push(*byte);
            }
            text.extend_from_slice(b"\"\n");
        }
        self.repo.write(&self.repo.common_dir.join(OURS), &text)?;
        if !self.is_included()? {
            // Another process may have added it meanwhile.
            self.config(INCLUDED)?;
        }
        Ok(())
    }

    /// Takes our file of hooks out of the configuration, and removes it.
    fn unconfigure(&self) -> Result<(), StoreError> {
        if self.is_included()? {
            self.config(&["--fixed-value", "--unset-all", INCLUDE, OURS])?;
        }
        let _ = std::fs::remove_file(self.repo.common_dir.join(OURS));
        Ok(())
    }

    /// Returns the repository's own files that are left alone, and have lines of ours that the user put there, each with
    /// the reason. Those of a folder outside may be for other repositories too.
    pub(crate) fn by_hand(&self) -> Result<Vec<(PathBuf, &'static str)>, StoreError> {
        let mut found = Vec::new();
        for hooks in self.everywhere()?.into_iter().filter(|hooks| hooks.inside.is_some()) {
            for event in HookEvent::ALL {
                if let Standing::ByHand(path, why) = hooks.standing_of_file(event)? {
                    found.push((path, why));
                }
            }
        }
        Ok(found)
    }

    /// Removes our block from each hook file that is not left alone, those of other working trees included, and returns
    /// the files that had one.
    fn remove_blocks(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut touched = Vec::new();
        for hooks in self.everywhere()? {
            for path in HookEvent::ALL.map(|event| hooks.dir.join(event.name())) {
                if hooks.barred(&path).is_some() {
                    continue;
                }
                match block::remove(&path)? {
                    Edit::Nothing => {}
                    Edit::Written | Edit::Removed => touched.push(path),
                }
            }
        }
        Ok(touched)
    }

    fn by_configuration(&self) -> Result<bool, StoreError> {
        let version = self.repo.git.version()?;
        let numbers = version.split(' ').nth(2).unwrap_or_default();
        let mut parts = numbers.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
        Ok((parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (2, 54))
    }

    fn is_included(&self) -> Result<bool, StoreError> {
        self.asked(&["--fixed-value", "--get-all", INCLUDE, OURS]).map(|found| found.is_some())
    }

    fn config_value(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.asked(&["--get", key])
    }

    /// Returns what `git config` prints of the repository's own configuration, or `None` where it finds no
    /// such value (status 1). Any other failure is an error: it does not say that the value is missing.
    fn asked(&self, args: &[&str]) -> Result<Option<Vec<u8>>, StoreError> {
        let output = self.here().args(["--local"]).args(args).output()?;
        match output.status.code() {
            Some(0) => Ok(Some(output.stdout)),
            Some(1) => Ok(None),
            _ => Err(StoreError::Git { verb: "config".into(), message: output.message }),
        }
    }

    fn here(&self) -> crate::store::git::command::GitCommand {
        self.repo.git.git().plain(Some(&self.repo.common_dir)).verb("config")
    }

    fn config(&self, args: &[&str]) -> Result<(), StoreError> {
        edit::edit(self.repo, args)
    }

    /// Returns why nothing is ever written at `path`; `None` where a plain file of the repository is there, or nothing.
    fn barred(&self, path: &Path) -> Option<&'static str> {
        if self.inside.is_none() {
            return Some("core.hooksPath is outside the repository");
        }
        let meta = path.symlink_metadata().ok()?;
        if meta.is_symlink() {
            return Some("it is a symbolic link");
        }
        (!meta.is_file()).then_some("it is no file")
    }

    /// Returns why the hook file at `path` is left alone; `None` where our block may be put there.
    fn refusal(&self, path: &Path) -> Option<&'static str> {
        if let Some(why) = self.barred(path) {
            return Some(why);
        }
        let meta = path.symlink_metadata().ok()?;
        if meta.permissions().mode() & 0o100 == 0 {
            return Some("it is not executable, so Git does not run it");
        }
        let content = std::fs::read(path).unwrap_or_default();
        (!block::is_shell(&content)).then_some("it is no shell script")
    }
}

/// True where the marker says that this program set the option for pushes, or was about to.
fn is_our_doing(marker: &Path) -> bool {
    std::fs::read(marker).is_ok_and(|text| text == b"advertised\n")
}

/// Returns a word of plain ASCII that any shell expands to this path, for a path that is not UTF-8.
fn in_octal(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let said = path.as_os_str().as_bytes().iter().map(|byte| match *byte {
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("\\0{byte:03o}"),
    });
    format!("\"$(printf '%b' '{}')\"", said.collect::<String>())
}
