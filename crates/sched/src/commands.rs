//! Which handler carries out which command.

use ganger_proc_api::{CommandId, Handler, Symbol};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Ids below this are looked up in an array.
const ARRAY: usize = 256;

/// A handler was not registered. It is inside the error: nothing is lost.
#[derive(thiserror::Error)]
#[error("command {id} ({name:?}) can't be registered: {kind}")]
pub struct RegisterError {
    /// The id that was asked for.
    pub id: CommandId,
    /// The name that came with it.
    pub name: Symbol,
    /// Why it was refused.
    pub kind: RegisterErrorKind,
    /// The handler.
    pub handler: Arc<dyn Handler>,
}

/// Why a handler was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterErrorKind {
    /// Another handler has that id.
    #[error("{existing:?} is registered for that id already")]
    Collision {
        /// The name of the handler that is registered.
        existing: Symbol,
    },
    /// The registry has been frozen, by `freeze` or by the scheduler's start.
    #[error("the registry is frozen; register handlers before the scheduler starts")]
    Frozen,
}

impl fmt::Debug for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisterError")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The handlers of a scheduler, by command id.
///
/// Registering takes a lock; once the registry is frozen, looking up is an array access for ids from
/// 0 to 255 and a hash look-up for others, without any lock.
pub struct CommandRegistry {
    building: Mutex<Option<HashMap<CommandId, Entry>>>,
    frozen: OnceLock<Frozen>,
}

struct Entry {
    name: Symbol,
    handler: Arc<dyn Handler>,
}

struct Frozen {
    low: Box<[Option<Entry>]>,
    high: HashMap<CommandId, Entry>,
}

impl Default for CommandRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl CommandRegistry {
    /// A registry without handlers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            building: Mutex::new(Some(HashMap::new())),
            frozen: OnceLock::new(),
        }
    }

    /// Registers `handler` for `id`, under a name for messages to people.
    ///
    /// # Errors
    /// [`RegisterError`], with the handler inside, when the id is taken or the registry frozen.
    pub fn register(
        &self,
        id: impl Into<CommandId>,
        name: impl Into<Symbol>,
        handler: Arc<dyn Handler>,
    ) -> Result<(), RegisterError> {
        let (id, name) = (id.into(), name.into());
        let mut building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = match building.as_mut() {
            None => RegisterErrorKind::Frozen,
            Some(entries) => match entries.get(&id) {
                Some(entry) => RegisterErrorKind::Collision {
                    existing: entry.name,
                },
                None => {
                    entries.insert(id, Entry { name, handler });
                    return Ok(());
                }
            },
        };
        Err(RegisterError {
            id,
            name,
            kind,
            handler,
        })
    }

    /// Ends registering. Harmless when it is frozen already.
    pub fn freeze(&self) {
        let mut building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = building.take() {
            let mut frozen = Frozen {
                low: std::iter::repeat_with(|| None).take(ARRAY).collect(),
                high: HashMap::new(),
            };
            for (id, entry) in entries {
                match frozen.low.get_mut(usize::from(id.get())) {
                    Some(place) => *place = Some(entry),
                    None => drop(frozen.high.insert(id, entry)),
                }
            }
            // The lock is held and `building` was there: nobody has set it.
            let _ = self.frozen.set(frozen);
        }
    }

    /// Whether registering has ended.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen.get().is_some()
    }

    /// The ids and names, in the order of the ids.
    #[must_use]
    pub fn list(&self) -> Vec<(CommandId, Symbol)> {
        let building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<_> = match (&*building, self.frozen.get()) {
            (Some(entries), _) => entries
                .iter()
                .map(|(&id, entry)| (id, entry.name))
                .collect(),
            (None, Some(frozen)) => {
                let low = (0_u16..).zip(&frozen.low);
                let low = low.filter_map(|(id, place)| Some((id.into(), place.as_ref()?.name)));
                low.chain(frozen.high.iter().map(|(&id, entry)| (id, entry.name)))
                    .collect()
            }
            (None, None) => Vec::new(),
        };
        list.sort_unstable_by_key(|&(id, _)| id);
        list
    }

    /// The handler for `id`; none before the registry is frozen.
    #[inline(always)]
    pub(crate) fn get(&self, id: CommandId) -> Option<&dyn Handler> {
        let frozen = self.frozen.get()?;
        let entry = match frozen.low.get(usize::from(id.get())) {
            Some(place) => place.as_ref(),
            None => frozen.high.get(&id),
        };
        entry.map(|entry| &*entry.handler)
    }
}

impl fmt::Debug for CommandRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandRegistry")
            .field("is_frozen", &self.is_frozen())
            .field("commands", &self.list())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod model;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::{BoxError, Command, Completer};

    fn handler() -> Arc<dyn Handler> {
        Arc::new(|_: Command, completer: Completer| -> Result<(), BoxError> {
            completer.complete(());
            Ok(())
        })
    }

    #[test]
    fn ids_below_and_above_the_array_are_found() {
        let registry = CommandRegistry::new();
        for id in [0_u16, 255, 256, u16::MAX] {
            registry.register(id, "some", handler()).unwrap();
            assert!(
                registry.get(id.into()).is_none(),
                "found before it was frozen"
            );
        }
        let before = registry.list();
        registry.freeze();
        registry.freeze();
        assert_eq!(registry.list(), before);
        for id in [0_u16, 255, 256, u16::MAX] {
            assert!(registry.get(id.into()).is_some());
        }
        assert!(registry.get(1.into()).is_none());
        assert!(registry.get(257.into()).is_none());
    }

    #[test]
    fn a_collision_names_both_and_gives_the_handler_back() {
        let registry = CommandRegistry::new();
        registry.register(7, "first", handler()).unwrap();
        let second = handler();
        let error = registry
            .register(7, "second", Arc::clone(&second))
            .unwrap_err();
        assert_eq!(
            error.kind,
            RegisterErrorKind::Collision {
                existing: "first".into()
            }
        );
        let message = error.to_string();
        assert!(
            message.contains("first") && message.contains("second"),
            "{message}"
        );
        assert!(Arc::ptr_eq(&error.handler, &second));
    }

    #[test]
    fn a_frozen_registry_gives_the_handler_back() {
        let registry = CommandRegistry::new();
        registry.freeze();
        let late = handler();
        let error = registry.register(7, "late", Arc::clone(&late)).unwrap_err();
        assert_eq!(error.kind, RegisterErrorKind::Frozen);
        assert!(Arc::ptr_eq(&error.handler, &late));
    }
}
