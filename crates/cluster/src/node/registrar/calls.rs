//! The questions to a registrar.

use crate::node::types::Types;
use crate::store::{Revision, StoreAnswer, StoreChange, StoreError, StoreOp};
use ganger_proc_api::Reply;
use serde::{Deserialize, Serialize};

/// A question to the registrar.
#[derive(Serialize, Deserialize)]
pub(crate) enum Ask {
    Apply(StoreOp, Reply<Applied>),
    /// The changes after a revision, when there are some. Without a revision, a snapshot.
    Changes(Box<str>, Option<Revision>, Reply<Changes>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Applied(pub(crate) Result<StoreAnswer, StoreError>);

/// Changes of a watch, or a snapshot alone, and the revision after which to ask for more.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Changes {
    pub(crate) changes: Vec<StoreChange>,
    pub(crate) until: Revision,
}

/// Registers the types of the questions.
pub(crate) fn types(types: &mut Types) {
    types
        .add::<Ask>("ganger.registrar.ask.v1")
        .add::<Applied>("ganger.registrar.applied.v1")
        .add::<Changes>("ganger.registrar.changes.v1");
}
