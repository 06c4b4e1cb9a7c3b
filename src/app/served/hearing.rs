//! What a remote has, heard once for all who look: one fetch at a time, and none where one began a moment ago.
//!
//! [`Hearing::hear`] fetches, or waits for who does. A fetch that began after a caller asked answers that caller too, whatever
//! came of it; so of many who ask while a slow one is under way, all are answered by the next. None waits longer than a while:
//! the fetch goes on without them. [`Hearing::wrote`] says that something was written meanwhile: what was heard before that is
//! old. Implements W2 (what a remote has).

use super::{Cause, Unanswered};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What was heard so long ago is good.
const GOOD: Duration = Duration::from_secs(1);
/// Who looks waits no longer than this.
const LONGEST: Duration = Duration::from_secs(10);

/// What was heard last.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    now: Mutex<Now>,
    /// A fetch ended.
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

/// A fetch that is under way; over with the value, whatever became of it.
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

    /// Something was written: what was heard before says nothing of it.
    pub fn wrote(&self) {
        self.now().wrote = Some(Instant::now());
    }

    /// Hears by this fetch, where what was heard last is too old.
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
                let (of, fetch) = (Fetching(Arc::clone(self)), fetch.clone());
                std::thread::spawn(move || {
                    let began = Instant::now();
                    let came = fetch();
                    of.0.now().last = Some(Heard { began, came });
                });
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

    /// W2: of many who look at once one fetches; what was written since is heard of anew; a failure is all theirs.
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

    /// W2: a fetch that ended in no answer at all keeps none waiting for it.
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
