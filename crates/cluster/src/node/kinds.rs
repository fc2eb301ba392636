//! The kinds of processes of a node, which other nodes start.

use ganger_proc_api::{BoxError, Payload, Pid};
use ganger_sched::{Handle, Spawner};
use std::any::Any;
use std::collections::HashMap;

type Make = Box<dyn Fn(Spawner<Handle>, Payload) -> Result<Pid, BoxError> + Send + Sync>;

/// The kinds of a node, by name.
#[derive(Default)]
pub(crate) struct Kinds(HashMap<Box<str>, Make>);

impl Kinds {
    /// Adds a kind. A later kind of the same name takes the place of an earlier.
    pub(crate) fn add<I: Any>(
        &mut self,
        name: &str,
        start: impl Fn(Spawner<Handle>, I) -> Result<Pid, BoxError> + Send + Sync + 'static,
    ) {
        let make = move |spawner, input: Payload| start(spawner, input.take::<I>()?);
        self.0.insert(name.into(), Box::new(make));
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Make> {
        self.0.get(name)
    }
}
