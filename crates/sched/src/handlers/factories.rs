//! Named ways to create processes, for upgrades.

use ganger_proc_api::{Process, Symbol};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Creates a process; called on a worker.
pub type Factory = Arc<dyn Fn() -> Box<dyn Process> + Send + Sync>;

/// A factory was not registered because its name is taken. The error returns it.
#[derive(thiserror::Error)]
#[error("a factory named {name:?} is already registered")]
pub struct FactoryError {
    /// The name.
    pub name: Symbol,
    /// The refused factory.
    pub factory: Factory,
}

impl fmt::Debug for FactoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryError")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The factories of a scheduler. Users may add factories at any time.
#[derive(Default)]
pub(crate) struct Factories(RwLock<HashMap<Symbol, Factory>>);

impl Factories {
    pub(crate) fn register(&self, name: Symbol, factory: Factory) -> Result<(), FactoryError> {
        let mut factories = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match factories.entry(name) {
            Entry::Occupied(_) => Err(FactoryError { name, factory }),
            Entry::Vacant(place) => {
                place.insert(factory);
                Ok(())
            }
        }
    }

    pub(crate) fn get(&self, name: Symbol) -> Option<Factory> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&name)
            .cloned()
    }
}
