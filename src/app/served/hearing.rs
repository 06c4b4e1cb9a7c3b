//! Fetches from a remote, shared by all callers: one at a time, and none where the last one began a moment
//! ago.
//!
//! [`Hearing::hear`] fetches, or waits for the caller that does. A fetch that began after a caller asked
//! answers that caller too, whatever came of it; so of many that ask during a slow fetch, all are answered by
//! the next one. No caller waits longer than a limit; the fetch then goes on without it. [`Hearing::wrote`]
//! says that something was written: what was fetched before is out of date. Implements W2 (what a remote
//! has).

use super::{Cause, Unanswered};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long before a question a fetch may have begun and still answer it.
const GOOD: Duration = Duration::from_secs(1);
/// The longest that a caller waits.
const LONGEST: Duration = Duration::from_secs(10);

/// The last fetch, and whether one is under way.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    now: Mutex<Now>,
    /// Notified when a fetch has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    last: Option<Heard>,
    wrote: Option<Instant>,
    is_fetching: bool,
}

#[derive(Debug)]
struct Heard {
    began: Instant,
    came: Result<(), Unanswered>,
}

/// A fetch that is under way. It is over once this value is dropped, whatever became of it.
struct Fetching(Arc<Hearing>);

impl Drop for Fetching {
    fn drop(&mut self) {
        self.0.now().is_fetching = false;
        self.0.ended.notify_all();
    }
}

impl Hearing {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something was written, of which what was fetched before says nothing.
    pub fn wrote(&self) {
        self.now().wrote = Some(Instant::now());
    }

    /// Returns the result of the last fetch, or of a new one by `fetch` where that is too old.
    pub fn hear(
        self: &Arc<Self>,
        fetch: impl Fn() -> Result<(), Unanswered> + Send + Clone + 'static,
    ) -> Result<(), Unanswered> {
        let asked = Instant::now();
        let mut now = self.now();
        loop {
            let is_good = |heard: &&Heard| {
                heard.began + GOOD >= asked && now.wrote.is_none_or(|wrote| wrote <= heard.began)
            };
            if let Some(heard) = now.last.as_ref().filter(is_good) {
                return heard.came.clone();
            }
            let Some(left) = LONGEST.checked_sub(asked.elapsed()) else {
                let message = format!("the remote has not answered for {} s", LONGEST.as_secs());
                return Err(Unanswered { cause: Cause::Later, message });
            };
            if !now.is_fetching {
                now.is_fetching = true;
                // Not while the lock is held: what is handed to a thread that can't be started is dropped here, and
                // that takes the lock.
                drop(now);
                let (of, fetch) = (Fetching(Arc::clone(self)), fetch.clone());
                let fetching = move || {
                    let began = Instant::now();
                    let came = fetch();
                    of.0.now().last = Some(Heard { began, came });
                };
                if let Err(error) = std::thread::Builder::new().spawn(fetching) {
                    let message = format!("cannot ask the remote: no thread can be started: {error}");
                    return Err(Unanswered { cause: Cause::Later, message });
                }
                now = self.now();
                continue;
            }
            now = self.ended.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Hearing, Unanswered};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// W2: of many callers at once one fetches; after a write the next caller fetches again; a failure is the
    /// result of all.
    #[test]
    fn w2_many_who_look_are_answered_by_one_fetch() {
        let (hearing, fetches) = (Arc::new(Hearing::default()), Arc::new(AtomicUsize::new(0)));
        let of = Arc::clone(&fetches);
        let fetch = move || {
            of.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| hearing.hear(fetch.clone()).unwrap());
            }
        });
        assert_eq!(fetches.load(Ordering::SeqCst), 1);
        hearing.wrote();
        (0..5).for_each(|_| hearing.hear(fetch.clone()).unwrap());
        assert_eq!(fetches.load(Ordering::SeqCst), 2);
        hearing.wrote();
        let away = || Err(Unanswered { cause: Cause::Later, message: "away".to_owned() });
        assert_eq!(hearing.hear(away).unwrap_err().message, "away");
        assert_eq!(hearing.hear(fetch).unwrap_err().message, "away");
        assert_eq!(fetches.load(Ordering::SeqCst), 2);
    }

    /// W2: a fetch that ended without any result keeps no caller waiting for it.
    #[test]
    fn w2_a_fetch_that_broke_off_is_begun_again() {
        let hearing = Arc::new(Hearing::default());
        let tries = Arc::new(AtomicUsize::new(0));
        let fetch = move || {
            assert!(tries.fetch_add(1, Ordering::SeqCst) > 0, "the first breaks off");
            Ok(())
        };
        hearing.hear(fetch).unwrap();
    }
}
