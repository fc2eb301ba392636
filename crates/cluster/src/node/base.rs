//! What all links of a node share.

use super::changes::Watchers;
use super::kinds::Kinds;
use super::types::Types;
use crate::engine::Engine;
use crate::id::Halves;
use crate::session::{Identity, Settings};
use crate::store::Store;
use ganger_proc_api::{Instant, NodeName};
use ganger_sched::WeakHandle;
use ganger_sched::internal::here;
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
    /// Set when the engine has started.
    pub(crate) store: OnceLock<Arc<dyn Store>>,
}

impl Base {
    /// The time of sessions. Any thread may ask.
    pub(crate) fn now() -> Instant {
        Instant::from_nanos(0) + here::now()
    }
}
