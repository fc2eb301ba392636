//! Random registrations, freezes and look-ups, against a map of the expected results.

use super::*;
use ganger_proc_api::{BoxError, Command, Completer};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ptr;

#[derive(Debug, Clone, Copy)]
enum Op {
    Register(u16, &'static str),
    Freeze,
    Look(u16),
    List,
}

/// Returns a strategy for ids in the array and beyond it, and at the ends of both.
fn id() -> impl Strategy<Value = u16> {
    prop_oneof![254_u16..259, 510_u16..514, 32_766_u16..32_770]
}

fn op() -> impl Strategy<Value = Op> {
    let name = prop_oneof![Just("read"), Just("write"), Just("sleep")];
    prop_oneof![
        8 => (id(), name).prop_map(|(id, name)| Op::Register(id, name)),
        1 => Just(Op::Freeze),
        6 => id().prop_map(Op::Look),
        2 => Just(Op::List),
    ]
}

fn handler() -> Arc<dyn Handler> {
    // Data of its own, so no two handlers have the same address.
    let own = Arc::new(());
    let count = move || Arc::strong_count(&own);
    Arc::new(
        move |_: Command, completer: Completer| -> Result<(), BoxError> {
            completer.complete(count());
            Ok(())
        },
    )
}

#[derive(Default)]
struct Model {
    entries: BTreeMap<u16, (&'static str, Arc<dyn Handler>)>,
    is_frozen: bool,
}

impl Model {
    fn register(
        &mut self,
        id: u16,
        name: &'static str,
        handler: &Arc<dyn Handler>,
    ) -> Option<RegisterErrorKind> {
        if !(256..32_768).contains(&id) {
            return Some(RegisterErrorKind::Reserved);
        }
        if self.is_frozen {
            return Some(RegisterErrorKind::Frozen);
        }
        if let Some(&(existing, _)) = self.entries.get(&id) {
            let existing = existing.into();
            return Some(RegisterErrorKind::Collision { existing });
        }
        self.entries.insert(id, (name, Arc::clone(handler)));
        None
    }

    fn list(&self) -> Vec<(CommandId, Symbol)> {
        let entries = self.entries.iter();
        entries
            .map(|(&id, &(name, _))| (id.into(), name.into()))
            .collect()
    }
}

proptest! {
    #[test]
    fn a_registry_does_what_a_map_does(ops in vec(op(), 0..40)) {
        let (registry, mut model) = (CommandRegistry::new(), Model::default());
        for op in ops {
            match op {
                Op::Register(id, name) => {
                    let new = handler();
                    let expected = model.register(id, name, &new);
                    let result = registry.register(id, name, Arc::clone(&new));
                    if let Err(error) = &result {
                        prop_assert!(Arc::ptr_eq(&error.handler, &new), "it does not come back");
                        prop_assert_eq!((error.id, error.name), (id.into(), name.into()));
                    }
                    prop_assert_eq!(result.err().map(|error| error.kind), expected);
                }
                Op::Freeze => {
                    registry.freeze();
                    model.is_frozen = true;
                }
                Op::Look(id) => {
                    let handlers = registry.handlers();
                    let found = handlers.as_ref().and_then(|it| it.get(id.into()));
                    let found = found.map(ptr::from_ref);
                    let expected = model.entries.get(&id).filter(|_| model.is_frozen);
                    let expected = expected.map(|(_, handler)| Arc::as_ptr(handler));
                    let is_same = match (found, expected) {
                        (Some(found), Some(expected)) => ptr::addr_eq(found, expected),
                        (None, None) => true,
                        _ => false,
                    };
                    prop_assert!(is_same, "{id}: {}", found.is_some());
                }
                Op::List => prop_assert_eq!(registry.list(), model.list()),
            }
            prop_assert_eq!(registry.is_frozen(), model.is_frozen);
        }
    }
}
