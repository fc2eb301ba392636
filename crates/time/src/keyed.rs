//! Timers of a process under keys of its own.

use ganger_proc_api::{Completion, StepOutput, Tag};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Timers of a process, each under a key: a new timer under a key replaces the timer before.
///
/// The timers end with the process. A process that is upgraded starts them anew.
///
/// ```
/// use ganger_proc_api::{Event, Events, StepOutput};
/// use ganger_time::KeyedTimers;
/// use std::time::Duration;
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// enum When {
///     Retry(u32),
///     GiveUp,
/// }
/// # let mut out = StepOutput::new();
/// # let mut events = Vec::<Event>::new().into_iter();
/// let mut timers = KeyedTimers::new(1_000);
/// timers.start(When::Retry(1), Duration::from_secs(1), &mut out);
/// timers.start(When::GiveUp, Duration::from_secs(60), &mut out);
/// for event in events {
///     if let Event::Completion(completion) = event {
///         match timers.fired(&completion) {
///             Some(When::Retry(nth)) => { /* … */ }
///             Some(When::GiveUp) => timers.cancel_all(&mut out),
///             None => { /* another yield */ }
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct KeyedTimers<K> {
    tags: HashMap<K, Tag>,
    keys: HashMap<Tag, K>,
    next: Tag,
}

impl<K: Clone + Eq + Hash> KeyedTimers<K> {
    /// Creates an empty set of timers, whose tags are `first` and the numbers after `first`.
    #[must_use]
    pub fn new(first: Tag) -> Self {
        Self {
            tags: HashMap::new(),
            keys: HashMap::new(),
            next: first,
        }
    }

    /// Starts a timer under this key, and cancels a running timer under the key.
    pub fn start(&mut self, key: K, time: Duration, out: &mut StepOutput) {
        self.cancel(&key, out);
        let tag = self.next;
        self.next += 1;
        self.tags.insert(key.clone(), tag);
        self.keys.insert(tag, key);
        out.sleep(time, tag);
    }

    /// Cancels the timer under this key: no later step is shown its completion. Returns whether a
    /// timer ran.
    pub fn cancel(&mut self, key: &K, out: &mut StepOutput) -> bool {
        let tag = self.tags.remove(key);
        if let Some(tag) = tag {
            self.keys.remove(&tag);
            out.cancel(tag);
        }
        tag.is_some()
    }

    /// Cancels all.
    pub fn cancel_all(&mut self, out: &mut StepOutput) {
        self.tags.clear();
        for (tag, _) in self.keys.drain() {
            out.cancel(tag);
        }
    }

    /// Returns the key of the timer whose completion this is, if it is a timer of the set. The
    /// timer is over.
    pub fn fired(&mut self, completion: &Completion) -> Option<K> {
        let key = self.keys.remove(&completion.tag)?;
        self.tags.remove(&key);
        Some(key)
    }

    /// Returns whether a timer runs under this key.
    #[must_use]
    pub fn is_running(&self, key: &K) -> bool {
        self.tags.contains_key(key)
    }

    /// Returns the number of running timers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether no timer runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
