//! The deletion of late entries.

use super::{Machine, Purpose};
use crate::store::StoreOp;

impl Machine {
    /// Deletes a late entry.
    pub(super) fn bury(&mut self, key: &str) {
        let Some(named) = self.cache.get(key) else {
            return;
        };
        let is_asked = |it: &Purpose| matches!(it, Purpose::Bury(of) if **of == *key);
        let entry = (Box::from(key), named.value.clone());
        if self.late.contains(&entry) && !self.asked.values().any(is_asked) {
            let op = StoreOp::delete(key, named.revision);
            self.ask(Purpose::Bury(key.into()), op);
        }
    }

    pub(super) fn bury_all(&mut self) {
        let keys: Vec<_> = self.late.iter().map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.bury(key));
    }
}
