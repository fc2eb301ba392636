//! Values made once: a cell, and results for several callers at the same time.

use crate::blocking::block_on;
use crate::mutex::Mutex;
use ganger_sync::shrink_after_burst;
use ganger_sync::sync::lock;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, OnceLock, PoisonError};

#[cfg(test)]
mod loom_once;

/// A value that its first caller makes. Other callers wait meanwhile. If making the value fails,
/// panics or is dropped, the next caller tries.
///
/// ```
/// use ganger_lock::OnceCell;
///
/// let cell = OnceCell::new();
/// # ganger_lock::block_on(async {
/// let failed = cell.get_or_try_init(async || Err("no luck")).await;
/// assert_eq!(failed, Err("no luck"));
/// assert_eq!(*cell.get_or_init(async || 42).await, 42);
/// # });
/// assert_eq!(cell.get(), Some(&42));
/// ```
pub struct OnceCell<T> {
    value: OnceLock<T>,
    /// Locked by the caller that makes the value.
    turn: Mutex<()>,
}

impl<T> OnceCell<T> {
    /// Creates a cell without a value.
    #[must_use]
    pub fn new() -> Self {
        Self {
            value: OnceLock::new(),
            turn: Mutex::new(()),
        }
    }

    /// Returns the value, if it has been made. Never blocks.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value. Makes the value, or waits for another caller's `make`.
    ///
    /// # Errors
    /// The error of `make`, if this call's `make` fails.
    pub async fn get_or_try_init<E>(
        &self,
        make: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        // A failed maker leaves nothing behind.
        let _turn = self
            .turn
            .lock()
            .await
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let value = make().await?;
        Ok(self.value.get_or_init(|| value))
    }

    /// Returns the value as [`get_or_try_init`](Self::get_or_try_init) does, with a `make` that
    /// can't fail.
    pub async fn get_or_init(&self, make: impl AsyncFnOnce() -> T) -> &T {
        let made = self.get_or_try_init(async || Ok::<_, Infallible>(make().await));
        match made.await {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Returns the value as [`get_or_init`](Self::get_or_init) does, for threads: blocks while
    /// another caller makes the value.
    pub fn get_or_init_blocking(&self, make: impl FnOnce() -> T) -> &T {
        block_on(
            "a value that is being made",
            "`get_or_init`",
            self.get_or_init(|| ready(make())),
        )
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceCell").field(&self.get()).finish()
    }
}

/// A table with room for this many keys does not shrink.
const KEPT: usize = 64;

/// Work by keys: calls with the same key at the same time do the work once, and all get its result.
/// Later calls do the work anew.
///
/// ```
/// use ganger_lock::SingleFlight;
///
/// let pages: SingleFlight<&str, usize> = SingleFlight::new();
/// # ganger_lock::block_on(async {
/// let length = pages.run("index", async || "the page".len()).await;
/// assert_eq!(length, 8);
/// # });
/// ```
///
/// A cache is an [`RwLock`](crate::RwLock) around a map, beside a `SingleFlight`: a caller looks
/// into the map, and then calls [`run`](Self::run) with work that looks once more, loads and
/// inserts.
///
/// A key is hashed, compared and dropped without a lock, and so is a value: both may use the same
/// `SingleFlight` meanwhile.
pub struct SingleFlight<K, V> {
    /// By the hash of their keys.
    flights: ganger_sync::sync::Mutex<HashMap<u64, Vec<Entered<K, V>>>>,
}

/// The work for a key.
struct Flight<K, V> {
    key: K,
    cell: OnceCell<V>,
}

struct Entered<K, V> {
    flight: Arc<Flight<K, V>>,
    /// How many calls do it or wait for it.
    calls: usize,
}

impl<K: Eq + Hash, V: Clone> SingleFlight<K, V> {
    /// Creates a set with no work under way.
    #[must_use]
    pub fn new() -> Self {
        let flights = ganger_sync::sync::Mutex::new(HashMap::new());
        Self { flights }
    }

    /// Does the work, or waits for a call with the same key. If the working call is dropped or
    /// panics, another call does the work by its own `work`.
    pub async fn run(&self, key: K, work: impl AsyncFnOnce() -> V) -> V {
        let landing = self.enter(key);
        landing.flight.cell.get_or_init(work).await.clone()
    }

    /// Takes part in the flight with that key, or begins a flight. Keys with the same hash are
    /// compared without the lock, until a look under the lock finds all keys compared.
    fn enter(&self, key: K) -> Landing<'_, K, V> {
        let hasher = lock(&self.flights).hasher().clone();
        let hash = hasher.hash_one(&key);
        let new = Arc::new(Flight {
            key,
            cell: OnceCell::new(),
        });
        let mut same = None;
        let mut others: Vec<Arc<Flight<K, V>>> = Vec::new();
        loop {
            let found = self.look(hash, &new, same.as_ref(), &others);
            match found {
                Found::Entered(flight) => {
                    return Landing {
                        flights: self,
                        hash,
                        flight,
                    };
                }
                Found::Unknown(unknown) => {
                    for flight in unknown {
                        if flight.key == new.key {
                            same = Some(flight);
                        } else {
                            others.push(flight);
                        }
                    }
                }
            }
        }
    }

    fn look(
        &self,
        hash: u64,
        new: &Arc<Flight<K, V>>,
        same: Option<&Arc<Flight<K, V>>>,
        others: &[Arc<Flight<K, V>>],
    ) -> Found<K, V> {
        let mut flights = lock(&self.flights);
        let all = flights.entry(hash).or_default();
        let is_same = |it: &Arc<_>| same.is_some_and(|same| Arc::ptr_eq(same, it));
        if let Some(entered) = all.iter_mut().find(|it| is_same(&it.flight)) {
            entered.calls += 1;
            return Found::Entered(Arc::clone(&entered.flight));
        }
        let unknown = all.iter().map(|it| &it.flight);
        let unknown = unknown.filter(|it| !others.iter().any(|other| Arc::ptr_eq(other, it)));
        let unknown: Vec<_> = unknown.cloned().collect();
        if !unknown.is_empty() {
            return Found::Unknown(unknown);
        }
        let flight = Arc::clone(new);
        all.push(Entered { flight, calls: 1 });
        Found::Entered(Arc::clone(new))
    }
}

impl<K, V> SingleFlight<K, V> {
    /// Returns the number of keys under way. O(n).
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.flights).values().map(Vec::len).sum()
    }

    /// Returns whether no key is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        lock(&self.flights).is_empty()
    }
}

/// The result of a look under the lock.
enum Found<K, V> {
    /// The call takes part in this flight.
    Entered(Arc<Flight<K, V>>),
    /// The keys of these have not been compared.
    Unknown(Vec<Arc<Flight<K, V>>>),
}

/// A call under way. The first end with a value, or the last end without, takes the key away.
struct Landing<'a, K, V> {
    flights: &'a SingleFlight<K, V>,
    hash: u64,
    flight: Arc<Flight<K, V>>,
}

impl<K, V> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        let mut flights = lock(&self.flights.flights);
        let Some(all) = flights.get_mut(&self.hash) else {
            return;
        };
        // Another flight with the same key may be under way by now.
        let is_own = |it: &Entered<K, V>| Arc::ptr_eq(&it.flight, &self.flight);
        let Some(at) = all.iter().position(is_own) else {
            return;
        };
        all[at].calls -= 1;
        if all[at].calls == 0 || self.flight.cell.get().is_some() {
            // This call has the flight as well: no key and no value is dropped here.
            all.swap_remove(at);
            if all.is_empty() {
                flights.remove(&self.hash);
                shrink_after_burst(&mut *flights, KEPT);
            }
        }
    }
}

impl<K: Eq + Hash, V: Clone> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> fmt::Debug for SingleFlight<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight")
            .field("under_way", &self.len())
            .finish()
    }
}
