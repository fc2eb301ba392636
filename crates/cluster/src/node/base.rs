//! The parts that all links of a node share.

use super::changes::Watchers;
use super::directory::Directory;
use super::helpers::Helpers;
use super::kinds::Kinds;
use super::strong::StrongNames;
use super::traces::TraceContext;
use super::types::Types;
use crate::engine::Engine;
use crate::id::Halves;
use crate::session::{Identity, Settings};
use crate::store::Store;
use ganger_proc_api::{Instant, NodeName};
use ganger_sched::WeakHandle;
use ganger_sched::internal::here;
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub(crate) struct Base {
    /// The scheduler keeps the node, so the node keeps no handle.
    pub(crate) scheduler: WeakHandle,
    pub(crate) node: NodeName,
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) identity: Identity,
    pub(crate) halves: Arc<Halves>,
    pub(crate) settings: Settings,
    pub(crate) types: Types,
    pub(crate) kinds: Kinds,
    pub(crate) watchers: Watchers,
    pub(crate) traces: Option<Box<dyn TraceContext>>,
    /// Set when the engine has started.
    pub(crate) store: OnceLock<Arc<dyn Store>>,
    /// The number of dropped inherited values.
    pub(crate) dropped: AtomicU64,
    pub(crate) helpers: Helpers,
    /// Set with the store.
    pub(crate) strong: OnceLock<StrongNames>,
    pub(crate) directory: Arc<Directory>,
}

impl Base {
    /// Returns the time of sessions. Any thread may ask.
    pub(crate) fn now() -> Instant {
        Instant::from_nanos(0) + here::now()
    }

    pub(crate) fn count_dropped_value(&self) {
        // Ordering: Relaxed: the count alone.
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn dropped_values(&self) -> u64 {
        // Ordering: Relaxed: the count alone.
        self.dropped.load(Ordering::Relaxed)
    }
}
