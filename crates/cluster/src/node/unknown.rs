//! The log's word about types that a peer sends and this node has not registered.

use super::types::Foreign;
use ganger_proc_api::Payloads;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most names of a peer that are told.
const TOLD: usize = 64;

/// The names of a peer's types that the log has.
#[derive(Default)]
pub(super) struct Unknown(BTreeSet<Arc<str>>);

impl Unknown {
    /// Tells the log of a message that its process does not take, once for each type.
    pub(super) fn tell(&mut self, node: &str, payloads: &Payloads) {
        for foreign in payloads
            .iter()
            .filter_map(|it| it.downcast_ref::<Foreign>())
        {
            if self.is_news(&foreign.name) {
                let name = &*foreign.name;
                tracing::warn!(
                    target: "ganger::cluster", peer = node, name,
                    "a message is dropped: its type is not registered at this node, or can't be \
                     read; register the same type by this name at both nodes \
                     (`Cluster::builder().types(..)`)"
                );
            }
        }
    }
    fn is_news(&mut self, name: &Arc<str>) -> bool {
        self.0.len() < TOLD && self.0.insert(Arc::clone(name))
    }
}

#[cfg(test)]
mod tests {
    use super::{TOLD, Unknown};

    #[test]
    fn the_log_has_each_name_once_and_not_all_of_them() {
        let mut unknown = Unknown::default();
        let mut is_news = |number: usize| unknown.is_news(&format!("type {number}").into());
        assert!((0..TOLD).all(|number| is_news(number) && !is_news(number)));
        assert!(!is_news(TOLD));
    }
}
