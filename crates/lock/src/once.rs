//! What is made once: a value, and a result that several want at the same time.

use crate::Mutex;
use crate::blocking::block_on;
use ganger_sync::sync::lock;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::hash::Hash;
use std::sync::{Arc, OnceLock, PoisonError};

#[cfg(test)]
mod loom_once;

/// A value that is made by the first that wants it. The others wait meanwhile. When making it
/// fails, panics or is dropped, the next one tries.
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
    /// The one that makes the value.
    turn: Mutex<()>,
}

impl<T> OnceCell<T> {
    /// Without a value.
    #[must_use]
    pub fn new() -> Self {
        Self {
            value: OnceLock::new(),
            turn: Mutex::new(()),
        }
    }

    /// The value, if it has been made. Never blocks.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value. Makes it, or waits for another one that does.
    ///
    /// # Errors
    /// That of `make`, if it is this call's that fails.
    pub async fn get_or_try_init<E>(
        &self,
        make: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        // One that has failed leaves nothing behind.
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

    /// As [`get_or_try_init`](Self::get_or_try_init), with what can't fail.
    pub async fn get_or_init(&self, make: impl AsyncFnOnce() -> T) -> &T {
        let made = self.get_or_try_init(async || Ok::<_, Infallible>(make().await));
        match made.await {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// As [`get_or_init`](Self::get_or_init), for threads: blocks while another one makes it.
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

/// Work by keys: what several want at the same time is done once, and all get the result. Later
/// calls do it anew.
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
pub struct SingleFlight<K, V> {
    flights: ganger_sync::sync::Mutex<HashMap<K, Flight<V>>>,
}

/// What is done for one key.
struct Flight<V> {
    cell: Arc<OnceCell<V>>,
    /// How many calls do it or wait for it.
    calls: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> SingleFlight<K, V> {
    /// With nothing under way.
    #[must_use]
    pub fn new() -> Self {
        let flights = ganger_sync::sync::Mutex::new(HashMap::new());
        Self { flights }
    }

    /// Does the work, or waits for a call with the same key that does it. When that one is dropped
    /// or panics, another one does it with its own `work`.
    pub async fn run(&self, key: K, work: impl AsyncFnOnce() -> V) -> V {
        let cell = self.enter(key.clone());
        let landing = Landing {
            flights: self,
            key,
            cell,
        };
        landing.cell.get_or_init(work).await.clone()
    }

    fn enter(&self, key: K) -> Arc<OnceCell<V>> {
        let mut flights = lock(&self.flights);
        let flight = flights.entry(key).or_insert_with(|| Flight {
            cell: Arc::default(),
            calls: 0,
        });
        flight.calls += 1;
        Arc::clone(&flight.cell)
    }

    /// How many keys are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.flights).len()
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A call that is under way. The first that is over with a value, and the last without one, take
/// the key away.
struct Landing<'a, K: Eq + Hash, V> {
    flights: &'a SingleFlight<K, V>,
    key: K,
    cell: Arc<OnceCell<V>>,
}

impl<K: Eq + Hash, V> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        let mut flights = lock(&self.flights.flights);
        // Another one with the same key may be under way by now.
        let flight = flights.get_mut(&self.key);
        let Some(flight) = flight.filter(|it| Arc::ptr_eq(&it.cell, &self.cell)) else {
            return;
        };
        flight.calls -= 1;
        if flight.calls == 0 || self.cell.get().is_some() {
            let flight = flights.remove(&self.key);
            drop(flights);
            drop(flight);
        }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> fmt::Debug for SingleFlight<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight")
            .field("under_way", &lock(&self.flights).len())
            .finish()
    }
}
