//! Further processes of a node, besides its links, which the node ends itself when the scheduler
//! stops.

use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;
use std::task::Waker;

/// A process that helps the node: how it is woken and ended.
#[derive(Default)]
pub(crate) struct Helper(Mutex<State>);

#[derive(Default)]
struct State {
    waker: Option<Waker>,
    must_end: bool,
    /// Without last words.
    at_once: bool,
    is_over: bool,
}

impl Helper {
    /// Notes the begin of the process.
    pub(crate) fn begin(&self, waker: Waker) {
        lock(&self.0).waker = Some(waker);
    }

    pub(crate) fn wake(&self) {
        let waker = lock(&self.0).waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn end(&self, at_once: bool) {
        let mut state = lock(&self.0);
        state.must_end = true;
        state.at_once |= at_once;
        drop(state);
        self.wake();
    }

    pub(crate) fn must_end(&self) -> bool {
        lock(&self.0).must_end
    }

    /// Returns whether the process must not wait for anything.
    pub(crate) fn must_end_at_once(&self) -> bool {
        lock(&self.0).at_once
    }

    /// Notes that the process has ended, or was not started.
    pub(crate) fn over(&self) {
        lock(&self.0).is_over = true;
    }

    fn is_over(&self) -> bool {
        lock(&self.0).is_over
    }
}

/// All helpers, by their stages.
#[derive(Default)]
pub(crate) struct Helpers(Mutex<Vec<(u8, Arc<Helper>)>>);

impl Helpers {
    /// Adds a helper. Lower stages end before higher.
    pub(crate) fn add(&self, stage: u8) -> Arc<Helper> {
        let helper = Arc::<Helper>::default();
        let mut helpers = lock(&self.0);
        helpers.push((stage, Arc::clone(&helper)));
        helpers.sort_by_key(|(stage, _)| *stage);
        helper
    }

    /// Returns the number of live processes.
    pub(crate) fn live(&self) -> usize {
        let helpers = lock(&self.0);
        helpers.iter().filter(|(_, it)| !it.is_over()).count()
    }

    /// Asks the live helpers of the lowest stage to end. True: none is left.
    pub(crate) fn end(&self) -> bool {
        let helpers = lock(&self.0).clone();
        let live = || helpers.iter().filter(|(_, it)| !it.is_over());
        let Some(stage) = live().map(|(stage, _)| *stage).min() else {
            return true;
        };
        for (_, helper) in live().filter(|(it, _)| *it == stage) {
            helper.end(false);
        }
        false
    }

    /// Has all live helpers end, without last words.
    pub(crate) fn end_at_once(&self) {
        let helpers = lock(&self.0).clone();
        for (_, helper) in helpers {
            helper.end(true);
        }
    }
}
