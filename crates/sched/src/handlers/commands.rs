//! The handlers of commands.

use crate::base::contain::discard_each;
use crate::base::stats::Counters;
use crate::handlers::calls::{CallHandler, OWN};
use ganger_proc_api::{
    BoxError, Command, CommandError, CommandId, Completer, Handler, Symbol, TypedCommand,
};
use std::any::type_name;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ids below this are looked up in an array: Ganger's own, and as many of users'.
const ARRAY: usize = 512;

/// A handler was not registered. The error returns it: nothing is lost.
#[derive(thiserror::Error)]
#[error("can't register command {id} ({name:?}): {kind}")]
pub struct RegisterError {
    /// The requested id.
    pub id: CommandId,
    /// The name for the id.
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
    /// Another handler has the id.
    #[error("the id is taken by {existing:?}")]
    Collision {
        /// The name of the registered handler.
        existing: Symbol,
    },
    /// Users can't choose this id.
    #[error(
        "ids below {first} are Ganger's own, and those from {typed} on belong to typed commands; \
         choose one from {first} on, or register the command by its type",
        first = CommandId::FIRST_OF_USERS,
        typed = CommandId::FIRST_TYPED
    )]
    Reserved,
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
/// Registering takes a lock. Once the registry is frozen, a look-up takes no lock: it is an array
/// access for ids below 512 and for typed commands, and a hash look-up for others.
///
/// A stopped scheduler drops its handlers when its workers have returned: a handler's own data,
/// completers for instance, do not keep the handler. The names stay.
pub struct CommandRegistry {
    state: Mutex<State>,
}

enum State {
    Building(BTreeMap<CommandId, Entry>),
    Frozen {
        names: BTreeMap<CommandId, Symbol>,
        /// None when they have been given up.
        handlers: Option<Arc<Handlers>>,
    },
}

struct Entry {
    name: Symbol,
    handler: Arc<dyn Handler>,
}

/// The handlers of a frozen registry.
struct Handlers {
    low: [Option<Arc<dyn Handler>>; ARRAY],
    high: HashMap<CommandId, Arc<dyn Handler>>,
    /// Handlers of typed commands, from the first such id on.
    typed: Vec<Option<Arc<dyn Handler>>>,
}

/// Returns the place of a typed command among these.
fn typed_place(id: CommandId) -> Option<usize> {
    let place = id.get().checked_sub(CommandId::FIRST_TYPED)?;
    Some(usize::from(place))
}

impl Handlers {
    /// Creates a table of Ganger's own handler alone.
    fn new() -> Self {
        let mut this = Self {
            low: [const { None }; ARRAY],
            high: HashMap::new(),
            typed: Vec::new(),
        };
        let handler: Arc<dyn Handler> = Arc::new(CallHandler);
        for id in OWN {
            this.insert(id, Arc::clone(&handler));
        }
        this
    }

    fn insert(&mut self, id: CommandId, handler: Arc<dyn Handler>) {
        if let Some(place) = self.low.get_mut(usize::from(id.get())) {
            *place = Some(handler);
        } else if let Some(place) = typed_place(id) {
            if self.typed.len() <= place {
                self.typed.resize_with(place + 1, || None);
            }
            self.typed[place] = Some(handler);
        } else {
            drop(self.high.insert(id, handler));
        }
    }

    /// Returns the handler for `id`.
    #[inline(always)]
    fn get(&self, id: CommandId) -> Option<&dyn Handler> {
        match self.low.get(usize::from(id.get())) {
            Some(place) => place.as_deref(),
            None => self.get_high(id),
        }
    }

    #[inline(always)]
    fn get_high(&self, id: CommandId) -> Option<&dyn Handler> {
        match typed_place(id) {
            Some(place) => self.typed.get(place)?.as_deref(),
            None => self.get_other(id),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_other(&self, id: CommandId) -> Option<&dyn Handler> {
        self.high.get(&id).map(|handler| &**handler)
    }

    /// Gives up a reference to them. The last reference drops them, each by itself: they are users'
    /// code.
    fn leave(this: Arc<Self>, counters: &Counters) {
        if let Some(Self { low, high, typed }) = Arc::into_inner(this) {
            discard_each(None, counters, typed.into_iter().flatten());
            discard_each(None, counters, low.into_iter().flatten());
            discard_each(None, counters, high.into_values());
        }
    }
}

/// A thread's view of a registry's handlers.
#[derive(Default)]
pub(crate) struct OwnHandlers(OnceCell<Arc<Handlers>>);

impl OwnHandlers {
    /// Has them from now on, if they are there.
    pub(crate) fn take(&self, registry: &CommandRegistry) {
        if let Some(handlers) = registry.handlers() {
            self.0.get_or_init(|| handlers);
        }
    }

    /// Returns the handler for `id`, of the registry.
    #[inline(always)]
    pub(crate) fn get(&self, registry: &CommandRegistry, id: CommandId) -> Option<&dyn Handler> {
        match self.0.get() {
            Some(handlers) => handlers.get(id),
            None => self.take_and_get(registry, id),
        }
    }

    #[cold]
    fn take_and_get(&self, registry: &CommandRegistry, id: CommandId) -> Option<&dyn Handler> {
        self.take(registry);
        self.0.get()?.get(id)
    }

    /// Gives them up.
    pub(crate) fn leave(self, counters: &Counters) {
        if let Some(handlers) = self.0.into_inner() {
            Handlers::leave(handlers, counters);
        }
    }
}

impl Default for CommandRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl CommandRegistry {
    /// Creates a registry without handlers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State::Building(BTreeMap::new())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers `handler` for `id`, under a name for messages to people. The id is from 256 to
    /// 32,767.
    ///
    /// # Errors
    /// [`RegisterError`], with the handler inside, when the id is taken, or not for users, or the
    /// registry is frozen.
    pub fn register(
        &self,
        id: impl Into<CommandId>,
        name: impl Into<Symbol>,
        handler: Arc<dyn Handler>,
    ) -> Result<(), RegisterError> {
        let (id, name) = (id.into(), name.into());
        if (CommandId::FIRST_OF_USERS..CommandId::FIRST_TYPED).contains(&id.get()) {
            return self.register_any(id, name, handler);
        }
        let kind = RegisterErrorKind::Reserved;
        Err(RegisterError {
            id,
            name,
            kind,
            handler,
        })
    }

    /// Registers `handler` for the commands of type `C`: see
    /// [`typed_handler`](ganger_proc_api::typed_handler).
    ///
    /// # Errors
    /// [`RegisterError`], with the handler inside, when the type has a handler, or the registry is
    /// frozen.
    pub fn register_for<C: TypedCommand>(
        &self,
        handler: Arc<dyn Handler>,
    ) -> Result<(), RegisterError> {
        let name = Symbol::new(type_name::<C>());
        self.register_any(CommandId::of::<C>(), name, handler)
    }

    /// Registers a handler as [`register`](Self::register) does, for any id: for Ganger's own
    /// crates.
    ///
    /// # Errors
    /// [`RegisterError`], with the handler inside, when the id is taken, or the registry is frozen.
    #[doc(hidden)]
    pub fn register_any(
        &self,
        id: impl Into<CommandId>,
        name: impl Into<Symbol>,
        handler: Arc<dyn Handler>,
    ) -> Result<(), RegisterError> {
        let (id, name) = (id.into(), name.into());
        let kind = match &mut *self.lock() {
            State::Frozen { .. } => RegisterErrorKind::Frozen,
            State::Building(entries) => match entries.get(&id) {
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
        let mut state = self.lock();
        if let State::Building(entries) = &mut *state {
            let (mut names, mut handlers) = (BTreeMap::new(), Handlers::new());
            for (id, Entry { name, handler }) in mem::take(entries) {
                names.insert(id, name);
                handlers.insert(id, handler);
            }
            let handlers = Some(Arc::new(handlers));
            *state = State::Frozen { names, handlers };
        }
    }

    /// Returns whether registering has ended.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        matches!(*self.lock(), State::Frozen { .. })
    }

    /// Returns the ids and names of all registered handlers, in the order of the ids.
    #[must_use]
    pub fn list(&self) -> Vec<(CommandId, Symbol)> {
        match &*self.lock() {
            State::Building(entries) => {
                let list = entries.iter().map(|(&id, entry)| (id, entry.name));
                list.collect()
            }
            State::Frozen { names, .. } => names.iter().map(|(&id, &name)| (id, name)).collect(),
        }
    }

    /// Returns the name of the command, if it is registered.
    #[cfg(any(feature = "observe", feature = "sim"))]
    pub(crate) fn name(&self, id: CommandId) -> Option<Symbol> {
        match &*self.lock() {
            State::Building(entries) => entries.get(&id).map(|entry| entry.name),
            State::Frozen { names, .. } => names.get(&id).copied(),
        }
    }

    /// Has the command's handler called, on this thread. Without a handler the completion is
    /// [`CommandError::Unknown`].
    pub(crate) fn carry_out(
        &self,
        command: Command,
        completer: Completer,
        counters: &Counters,
    ) -> Result<(), BoxError> {
        let Some(handlers) = self.handlers() else {
            drop(completer);
            return Ok(());
        };
        let carried_out = match handlers.get(command.id) {
            Some(handler) => handler.handle(command, completer),
            None => {
                completer.finish(Err(CommandError::Unknown(command.id)));
                Ok(())
            }
        };
        Handlers::leave(handlers, counters);
        carried_out
    }

    /// Returns the handlers; none before the registry is frozen, and when they have been given up.
    fn handlers(&self) -> Option<Arc<Handlers>> {
        match &*self.lock() {
            State::Building(_) => None,
            State::Frozen { handlers, .. } => handlers.clone(),
        }
    }

    /// Gives up the registry's handlers: only a thread with a view of them still carries out
    /// commands.
    pub(crate) fn give_up(&self, counters: &Counters) {
        if let Some(handlers) = self.take_handlers() {
            Handlers::leave(handlers, counters);
        }
    }

    fn take_handlers(&self) -> Option<Arc<Handlers>> {
        match &mut *self.lock() {
            State::Building(_) => None,
            State::Frozen { handlers, .. } => handlers.take(),
        }
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

#[cfg(all(test, not(ganger_loom)))]
mod model;

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::{BoxError, Command, Completer};

    fn handler() -> Arc<dyn Handler> {
        Arc::new(|_: Command, completer: Completer| -> Result<(), BoxError> {
            completer.complete(());
            Ok(())
        })
    }

    /// At the ends of the places where handlers are kept.
    const IDS: [u16; 7] = [0, 255, 256, 511, 512, 32_768, 32_770];

    #[test]
    fn ids_that_users_do_not_choose_are_refused() {
        let registry = CommandRegistry::new();
        for id in [0_u16, 255, 32_768, u16::MAX] {
            let own = handler();
            let error = registry.register(id, "own", Arc::clone(&own)).unwrap_err();
            assert_eq!(error.kind, RegisterErrorKind::Reserved);
            assert!(error.to_string().contains("from 256 on"), "{error}");
            assert!(Arc::ptr_eq(&error.handler, &own));
        }
        for id in [256_u16, 32_767] {
            registry.register(id, "a user's", handler()).unwrap();
        }
    }

    #[test]
    fn a_type_has_one_handler() {
        struct Read;
        impl TypedCommand for Read {
            type Answer = ();
        }
        let registry = CommandRegistry::new();
        registry.register_for::<Read>(handler()).unwrap();
        let error = registry.register_for::<Read>(handler()).unwrap_err();
        let text = error.to_string();
        assert_eq!(text.matches("Read").count(), 3, "{text}");
        registry.freeze();
        let handlers = registry.handlers().unwrap();
        assert!(handlers.get(CommandId::of::<Read>()).is_some());
    }

    #[test]
    fn ids_below_and_above_the_array_are_found() {
        let registry = CommandRegistry::new();
        for id in IDS {
            registry.register_any(id, "some", handler()).unwrap();
            assert!(registry.handlers().is_none(), "found before it was frozen");
        }
        let before = registry.list();
        registry.freeze();
        registry.freeze();
        assert_eq!(registry.list(), before);
        let handlers = registry.handlers().unwrap();
        for id in IDS {
            assert!(handlers.get(id.into()).is_some());
        }
        assert!(handlers.get(50.into()).is_none());
        for id in [257_u16, 513, 32_767, 32_769, u16::MAX] {
            assert!(handlers.get(id.into()).is_none());
        }
    }

    #[test]
    fn a_collision_names_both_and_gives_the_handler_back() {
        let registry = CommandRegistry::new();
        registry.register(700, "first", handler()).unwrap();
        let second = handler();
        let error = registry
            .register(700, "second", Arc::clone(&second))
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
        let error = registry
            .register(700, "late", Arc::clone(&late))
            .unwrap_err();
        assert_eq!(error.kind, RegisterErrorKind::Frozen);
        assert!(Arc::ptr_eq(&error.handler, &late));
    }
}
