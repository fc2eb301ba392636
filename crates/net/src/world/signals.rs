//! The signals of a simulation: the test raises them.

use crate::poller::{Interest, IoEvent};
use std::collections::BTreeMap;
use std::mem;

/// The listeners for signals, by keys in the order of their creation.
#[derive(Default)]
pub(super) struct Signals(BTreeMap<u64, Listener>);

struct Listener {
    signal: i32,
    has_come: bool,
    id: u64,
}

impl Signals {
    /// Adds a listener. Returns its key.
    pub(super) fn listen(&mut self, signal: i32) -> u64 {
        let key = self.0.last_key_value().map_or(0, |(key, _)| key + 1);
        let listener = Listener {
            signal,
            has_come: false,
            id: 0,
        };
        self.0.insert(key, listener);
        key
    }

    pub(super) fn watch(&mut self, key: u64, id: u64) {
        if let Some(listener) = self.0.get_mut(&key) {
            listener.id = id;
        }
    }

    /// Takes the signals that have come since the last call. Returns false if there was none.
    pub(super) fn take(&mut self, key: u64) -> bool {
        let listener = self.0.get_mut(&key);
        listener.is_some_and(|it| mem::take(&mut it.has_come))
    }

    pub(super) fn remove(&mut self, key: u64) {
        self.0.remove(&key);
    }

    pub(super) fn arrive(&mut self, signal: i32, ready: &mut Vec<IoEvent>) {
        for listener in self.0.values_mut().filter(|it| it.signal == signal) {
            listener.has_come = true;
            ready.push(IoEvent::new(listener.id, Interest::READ));
        }
    }
}
