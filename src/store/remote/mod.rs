//! A remote's branches as a store: the push is the swap.
//!
//! `refs/heads/` is the remote's, as it is now ([`Store::tip`] asks) or as it was when it was last read
//! ([`Store::known_tip`]), and so are the refs that all machines share ([`shared`]). Objects, and other refs
//! of the runner's own, are the local repository's; no local branch is read or moved. What this store has
//! learned from its own calls it knows without asking again. Implements K12, K30, and K11 and K31 (the
//! attempt and the reading again).

pub(crate) mod lfs;
pub(crate) mod network;
pub(crate) mod news;
pub(crate) mod porcelain;
pub(crate) mod shared;
pub(crate) mod single_flight;

use crate::protocol::id::ObjectId;
use crate::protocol::swap::{Patience, try_again};
use crate::store::refs::locks;
use crate::store::refs::swap::compare_and_swap;
use crate::store::repository::Repository;
use crate::store::{
    Commit, Expected, Heads, NewCommit, Part, RefChange, RefName, RemoteFailure, Scan, Signature, Store,
    StoreError, Swap, TreeEntry, Visit, in_name_order,
};
use network::Remote;
use news::News;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest network call where no patience was set.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest push by hand. It may be long, as the user who waits for it can end it.
const PUSH_MAX: Duration = Duration::from_secs(3600);
/// How often a head is asked for, where it is moved again each time before its objects are fetched.
const TRIES: usize = 4;

/// Up to this many branches are all fetched, without asking first what they hold.
const FEW: usize = 16;

/// A remote's branches over a local store.
pub(crate) struct RemoteStore {
    local: Box<dyn Store>,
    remote: Remote,
    known: RefCell<HashMap<RefName, Option<ObjectId>>>,
    /// Commits that this store wrote, and that no push has offered to the remote yet.
    unsent: RefCell<HashSet<ObjectId>>,
    news: Arc<News>,
    /// What the remote's hooks said at the last push.
    words: RefCell<Vec<String>>,
    /// True where the caller shows these lines itself, so that no error repeats them.
    words_apart: bool,
    /// How long a call may take; `None` where that was not set.
    patience: Cell<Option<Duration>>,
    /// True where the network is not used: then the last known values count.
    offline: bool,
}

impl RemoteStore {
    /// Opens the branches of a configured remote; objects and the runner's own refs go to `local`.
    ///
    /// # Errors
    /// [`RemoteFailure::NotConfigured`] where the repository's configuration has no such remote.
    pub(crate) fn open(repo: &Repository, name: &str, local: Box<dyn Store>) -> Result<Self, StoreError> {
        if !repo.has_remote(name) {
            return Err(StoreError::Remote {
                remote: name.to_owned(),
                what: "use",
                failure: RemoteFailure::NotConfigured,
                message: "'git remote' does not list it".to_owned(),
            });
        }
        let home = repo.work_dir.clone().unwrap_or_else(|| repo.common_dir.clone());
        let remote = Remote {
            git: repo.git.clone(),
            name: name.to_owned(),
            path: repo.push_path(name).map(|path| home.join(path)),
            home,
        };
        let (known, unsent, news) = (RefCell::default(), RefCell::default(), repo.news(name));
        let words = RefCell::default();
        let (patience, offline, words_apart) = (Cell::new(None), false, false);
        Ok(Self { local, remote, known, unsent, news, words, words_apart, patience, offline })
    }

    /// Returns this store, but such that it does not use the network.
    pub(crate) fn offline(self) -> Self {
        Self { offline: true, ..self }
    }

    /// Returns what a branch held at the last fetch, as our own ref for it says.
    fn tracked(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        self.local.tip(&self.tracking(name))
    }

    fn tracking(&self, name: &RefName) -> RefName {
        RefName::new([self.remote.tracking().as_bytes(), name.short()].concat())
    }

    /// Forgets what was learned of branches, and of the refs that hold them: a fetch has just brought newer
    /// values.
    fn forget_heads(&self) {
        let is_of_heads = |name: &RefName| is_branch(name) || shared::comes_with_heads(name.as_bytes());
        self.known.borrow_mut().retain(|name, _| !is_of_heads(name));
    }

    fn patience(&self) -> Duration {
        self.patience.get().unwrap_or(PATIENCE)
    }

    fn learn(&self, name: &RefName, tip: Option<ObjectId>) {
        self.known.borrow_mut().insert(name.clone(), tip);
    }

    /// Asks the remote what a branch holds now, and notes the answer as news, since it is about all branches.
    fn ask(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        let asked = Instant::now();
        let tips = self.remote.ask_all(self.patience())?;
        let tip = tips.get(name).copied();
        self.news.hear(tips, asked);
        Ok(tip)
    }

    /// Asks what a branch holds as [`RemoteStore::ask`] does, and once more where a known branch is missing
    /// from the answer: a remote that can't read its refs for a moment lists none of them, and reports
    /// success.
    fn ask_surely(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        match self.ask(name)? {
            None if self.known_tip(name)?.is_some() => self.ask(name),
            tip => Ok(tip),
        }
    }

    /// Returns why the remote refused a new commit. The remote's branches show where a name is in the way of
    /// the branch, and where the remote is a path, a lock there can be seen. Everything else looks like a
    /// refusal by the remote, and further tries show whether it is one (K11).
    fn refused(&self, name: &RefName, expected: Expected, said: String) -> StoreError {
        let tips = match expected {
            Expected::Missing => self.remote.ask_all(self.patience()).unwrap_or_default(),
            Expected::At(_) => HashMap::new(),
        };
        let (failure, message) = match tips.into_keys().find(|other| name.conflicts_with(other)) {
            Some(other) => {
                let other = String::from_utf8_lossy(other.as_bytes()).into_owned();
                (RemoteFailure::InTheWay, format!("'{other}' exists: {said}"))
            }
            None if self.is_locked(name) => (RemoteFailure::Busy, said),
            None => (RemoteFailure::Declined, said),
        };
        StoreError::Remote { remote: self.remote.name.clone(), what: "push to", failure, message }
    }

    /// True where the remote is a path, and a lock there keeps the branch from being moved.
    fn is_locked(&self, name: &RefName) -> bool {
        let at = self.remote.path.as_deref().and_then(locks::git_dir_at);
        at.is_some_and(|git_dir| locks::is_ref_locked(&git_dir, name))
    }

    /// Asks what all branches hold now, and notes the answer. If none comes, the next push finds out.
    fn hear_news(&self) {
        let asked = Instant::now();
        match self.remote.ask_all(self.patience()) {
            Ok(tips) => self.news.hear(tips, asked),
            Err(_) => self.news.unanswered(),
        }
    }

    fn has(&self, id: ObjectId) -> bool {
        self.local.read_commit(id).is_ok()
    }

    /// Returns the error of a fetch. Where a local ref has the name of a folder that the fetch writes to,
    /// that is the error instead: no further try can succeed.
    fn in_the_way(&self, error: StoreError) -> StoreError {
        if !matches!(error, StoreError::Remote { failure: RemoteFailure::Busy, .. }) {
            return error;
        }
        let mut folders = heard_folders(&self.remote.name).into_iter();
        let found = folders.find(|(other, _)| matches!(self.local.tip(other), Ok(Some(_))));
        found.map_or(error, |(other, name)| StoreError::NameConflict { name, other })
    }

    /// Returns the branch whose last known value the ref `tracking` records.
    fn branch_of(&self, tracking: &RefName) -> RefName {
        let prefix = self.remote.tracking();
        RefName::branch(tracking.as_bytes().strip_prefix(prefix.as_bytes()).unwrap_or_default())
    }
}

/// Returns the names that no ref may have, because what is fetched from the remote of this name is kept below
/// them. Each comes with a pattern for the refs that it would leave no room for.
pub(crate) fn heard_folders(remote: &str) -> Vec<(RefName, RefName)> {
    let mut all: Vec<(RefName, RefName)> = Vec::new();
    for kept in [network::tracking(remote), shared::kept(remote)] {
        for (end, _) in kept.match_indices('/').skip(1) {
            let other = RefName::new(&kept[..end]);
            if all.iter().all(|(known, _)| *known != other) {
                all.push((other, RefName::new(format!("{kept}*"))));
            }
        }
    }
    all
}

/// Pushes a local branch's new commit to the same branch of a remote, over what is there now if that is
/// below it; anything else there is [`Swap::Lost`]. A push without an answer is looked at again (K11). `words`
/// are what the remote's hooks say to who pushes, one line each, whatever came of the push.
pub(crate) fn push_branch(
    repo: &Repository,
    remote: &str,
    branch: &RefName,
    new: ObjectId,
    by: &Signature,
    words: &mut Vec<String>,
) -> Result<Swap, StoreError> {
    let store = RemoteStore::open(repo, remote, repo.open_store(repo.durable)?)?;
    let store = RemoteStore { words_apart: true, ..store };
    let tip = store.remote.ask(branch, PATIENCE)?;
    let expected = match tip {
        None => Expected::Missing,
        Some(id) if store.has(id) && repo.git.is_ancestor(id, new)? => Expected::At(id),
        Some(_) => return Ok(Swap::Lost { tip }),
    };
    store.set_patience(PUSH_MAX);
    let mut verdict = compare_and_swap(&store, branch, expected, new, by, "");
    let waits = (0..).map_while(|tries| try_again(Patience::Tries, tries, Duration::ZERO));
    for wait in waits {
        let Err(StoreError::Remote { failure: RemoteFailure::Declined | RemoteFailure::Busy, .. }) = verdict
        else {
            break;
        };
        std::thread::sleep(wait);
        verdict = compare_and_swap(&store, branch, expected, new, by, "");
    }
    *words = store.words.take();
    match verdict {
        // The remote may have received everything, and may move its branch only after this side has stopped
        // listening. So a branch that has not moved yet proves nothing.
        Err(StoreError::Remote { failure, message, .. })
            if failure.may_pass() && failure != RemoteFailure::Busy =>
        {
            Ok(Swap::Unknown { cause: message })
        }
        verdict => verdict,
    }
}

fn is_branch(name: &RefName) -> bool {
    name.as_bytes().starts_with(b"refs/heads/")
}

impl Store for RemoteStore {
    fn tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        if shared::is_shared(name.as_bytes()) {
            return self.shared_tip(name);
        }
        if !is_branch(name) {
            return self.local.tip(name);
        }
        if self.offline {
            return self.tracked(name);
        }
        for _ in 0..TRIES {
            let tip = self.ask_surely(name)?;
            let here = tip.is_none_or(|id| self.has(id));
            if !here {
                match self.remote.fetch_objects(name, self.patience.get()) {
                    Ok(()) => {}
                    // The branch was moved or deleted between the two calls, which the second answer shows.
                    Err(_) if self.ask(name)? != tip => continue,
                    Err(error) => return Err(error),
                }
            }
            if here || tip.is_some_and(|id| self.has(id)) {
                self.learn(name, tip);
                return Ok(tip);
            }
        }
        Err(StoreError::Remote {
            remote: self.remote.name.clone(),
            what: "ask",
            failure: RemoteFailure::Busy,
            message: format!("'{name}' moves faster than it can be fetched"),
        })
    }

    fn known_tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        if !shared::is_there(name) {
            return self.local.tip(name);
        }
        if let Some(tip) = self.known.borrow().get(name) {
            return Ok(*tip);
        }
        if is_branch(name) { self.tracked(name) } else { self.local.tip(&self.kept(name)) }
    }

    fn known_scan(&self, prefix: &str) -> Result<Vec<(RefName, ObjectId)>, StoreError> {
        match shared::is_shared(prefix.as_bytes()) {
            true => Ok(self.known_shared(prefix)?.refs),
            false => self.scan(prefix),
        }
    }

    fn hear_shared(&self, prefixes: &[&[u8]]) -> Result<(), StoreError> {
        self.bring(prefixes)
    }

    fn refresh(&self) -> Result<(), StoreError> {
        if self.offline {
            return Ok(());
        }
        self.remote.fetch_all().map_err(|error| self.in_the_way(error))?;
        self.forget_heads();
        self.news.forget();
        Ok(())
    }

    fn refresh_all(&self) -> Result<(), StoreError> {
        if self.offline {
            return Ok(());
        }
        self.remote.fetch_everything().map_err(|error| self.in_the_way(error))?;
        self.known.borrow_mut().clear();
        self.news.forget();
        Ok(())
    }

    fn hear(&self) -> Result<Vec<(RefName, ObjectId)>, StoreError> {
        let all_at_once = || self.refresh().map(|()| Vec::new());
        let theirs = self.local.scan(&format!("refs/remotes/{}/", self.remote.name))?.len();
        let tracked: HashMap<_, _> = self.local.scan(&self.remote.tracking())?.into_iter().collect();
        // A later round fetches everything, so that it looks at all that the first one passed over.
        let again = self.news.begin_round();
        if again || self.offline || tracked.len().max(theirs) <= FEW {
            return all_at_once();
        }
        let asked = Instant::now();
        let Ok(tips) = self.remote.hear_all() else { return all_at_once() };
        // A fetch forgets branches that are gone, and finds out whether a remote that lists none of them
        // really has none.
        if tracked.keys().any(|name| !tips.contains_key(&self.branch_of(name))) {
            return all_at_once();
        }
        let not_here = |(name, tip): &(&RefName, &ObjectId)| tracked.get(&self.tracking(name)) != Some(*tip);
        let unread: Vec<_> = tips.iter().filter(not_here).map(|(name, tip)| (name.clone(), *tip)).collect();
        if unread.is_empty() {
            // No fetch of heads follows that would also bring the refs that hold branches.
            self.bring(&shared::HOLDING)?;
        }
        self.forget_heads();
        self.news.forget();
        self.news.hear(tips, asked);
        Ok(unread)
    }

    fn fetch_heads(&self, names: &[RefName]) -> Result<(), StoreError> {
        // One branch that is gone fails the fetch of all these branches.
        if self.remote.fetch_some(names, self.keeps_any(&shared::HOLDING)?).is_err() {
            return self.refresh();
        }
        self.known.borrow_mut().retain(|name, _| !shared::comes_with_heads(name.as_bytes()));
        for name in names {
            self.known.borrow_mut().remove(name);
            if let Some(tip) = self.tracked(name)? {
                self.news.fetched(name, tip);
            }
        }
        Ok(())
    }

    fn listen(&self) {
        if !self.offline && self.news.is_due() {
            self.hear_news();
        }
    }

    fn listen_where_contested(&self) {
        if self.news.is_contested() {
            self.listen();
        }
    }

    fn bare_tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        // A ref other than a branch is read as a whole: it brings few objects, and its commit is needed where
        // the swap is judged.
        if self.offline || !is_branch(name) { self.tip(name) } else { self.ask_surely(name) }
    }

    fn is_unsent(&self, id: ObjectId) -> bool {
        self.unsent.borrow().contains(&id)
    }

    fn has_moved(&self, name: &RefName, from: ObjectId) -> bool {
        !self.offline && is_branch(name) && self.news.has_moved(name, from)
    }

    fn publish(&self, name: &RefName, commit: ObjectId) -> Result<(), StoreError> {
        self.remote.put(name, commit, self.patience())
    }

    fn obtain(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        if shared::is_shared(name.as_bytes()) {
            return self.tip(name);
        }
        let here = self.local.tip(name)?;
        if here.is_some() || self.offline {
            return Ok(here);
        }
        if self.remote.ask(name, self.patience())?.is_some() {
            self.remote.fetch_same(name)?;
        }
        self.local.tip(name)
    }

    fn set_patience(&self, patience: Duration) {
        self.patience.set(Some(patience.clamp(Duration::from_millis(200), PUSH_MAX)));
    }

    fn scan_all(&self, prefix: &str) -> Result<Scan, StoreError> {
        if shared::is_shared(prefix.as_bytes()) {
            return self.shared_scan(prefix);
        }
        let Some(below) = prefix.strip_prefix("refs/heads/") else { return self.local.scan_all(prefix) };
        let mut scan = self.local.scan_all(&format!("{}{below}", self.remote.tracking()))?;
        scan.refs.iter_mut().for_each(|(name, _)| *name = self.branch_of(name));
        scan.unreadable.iter_mut().for_each(|(name, _)| *name = self.branch_of(name));
        Ok(scan)
    }

    fn read_heads(&self, prefix: &str) -> Result<Heads, StoreError> {
        if shared::is_shared(prefix.as_bytes()) {
            let scan = self.shared_scan(prefix)?;
            let mut heads = Heads::from_unreadable(scan.unreadable);
            scan.refs.into_iter().for_each(|(name, id)| heads.push(name, self.read_commit(id)));
            return Ok(heads);
        }
        let Some(below) = prefix.strip_prefix("refs/heads/") else { return self.local.read_heads(prefix) };
        let mut heads = self.local.read_heads(&format!("{}{below}", self.remote.tracking()))?;
        heads.heads.iter_mut().for_each(|(name, _)| *name = self.branch_of(name));
        heads.failed.iter_mut().for_each(|(name, _)| *name = self.branch_of(name));
        Ok(heads)
    }

    fn visit_heads(&self, prefix: &str, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if shared::is_shared(prefix.as_bytes()) {
            let found = self.read_heads(prefix)?;
            found.heads.into_iter().for_each(|(name, commit)| visit(name, Ok(commit)));
            found.failed.into_iter().for_each(|(name, error)| visit(name, Err(error)));
            return Ok(());
        }
        let Some(below) = prefix.strip_prefix("refs/heads/") else {
            return self.local.visit_heads(prefix, visit);
        };
        let tracking = format!("{}{below}", self.remote.tracking());
        self.local.visit_heads(&tracking, &mut |name, read| visit(self.branch_of(&name), read))
    }

    fn history_ends_at(&self, id: ObjectId) -> Result<bool, StoreError> {
        self.local.history_ends_at(id)
    }

    fn try_swaps(&self, changes: &[RefChange], by: &Signature, log: &str) -> Result<(), StoreError> {
        if !changes.iter().any(|change| shared::is_there(&change.name)) {
            return self.local.try_swaps(changes, by, log);
        }
        for change in in_name_order(changes)? {
            let (name, refused) =
                (&change.name, |cause| StoreError::RefusedName { name: change.name.clone(), cause });
            if !name.is_valid() {
                return Err(refused("Git accepts no such name"));
            }
            if !shared::is_there(name) {
                return Err(refused("it is here, and can't be moved as one with refs of a remote"));
            }
        }
        self.push_all(changes)
    }

    fn read_commit(&self, id: ObjectId) -> Result<Commit, StoreError> {
        self.local.read_commit(id)
    }

    fn read_tree(&self, id: ObjectId) -> Result<Vec<TreeEntry>, StoreError> {
        self.local.read_tree(id)
    }

    fn read_blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        self.local.read_blob(id)
    }

    fn blob_size(&self, id: ObjectId) -> Result<u64, StoreError> {
        self.local.blob_size(id)
    }

    fn write_part(&self, part: Part, content: &[u8]) -> Result<ObjectId, StoreError> {
        self.local.write_part(part, content)
    }

    fn write_commit(&self, commit: &NewCommit) -> Result<ObjectId, StoreError> {
        let id = self.local.write_commit(commit)?;
        self.unsent.borrow_mut().insert(id);
        Ok(id)
    }
}
