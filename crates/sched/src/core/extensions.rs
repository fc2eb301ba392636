//! What crates above the scheduler keep for each scheduler: one value of a type.

use ganger_sync::sync::{Mutex, lock};
use std::any::Any;
use std::sync::Arc;

/// Few, and looked for by their types.
#[derive(Default)]
pub(crate) struct Extensions(Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

impl Extensions {
    /// The value of that type. `make` makes it at the first call; two calls at a time may both call
    /// `make`, and the first value stays. O(extensions).
    pub(crate) fn get<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(found) = self.find() {
            return found;
        }
        // Without the lock: it is another's code.
        let made = Arc::new(make());
        let mut all = lock(&self.0);
        let found = all.iter().find_map(|it| Arc::clone(it).downcast().ok());
        found.unwrap_or_else(|| {
            all.push(Arc::clone(&made) as _);
            made
        })
    }

    fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        lock(&self.0)
            .iter()
            .find_map(|it| Arc::clone(it).downcast().ok())
    }
}
