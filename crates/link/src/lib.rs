#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod commands;
mod context;
mod dead_letters;
mod end;
mod functions;
mod groups;
mod links;
mod lookup;
mod shrink;
mod target;
mod watch;

/// The carrier of groups between nodes, for crates that connect nodes.
pub mod carrier {
    pub use crate::groups::{
        CarriedScopes, GroupCarrier, MAX_JOINS, MAX_NAME, MAX_TARGETS, arrived,
    };
}

pub use context::{LinkContext, LinkSpawner};
pub use dead_letters::DeadLetterLog;
pub use end::End;
pub use functions::{
    FunctionError, FunctionErrorKind, FunctionTypes, RegisterFunctionError,
    RegisterFunctionErrorKind, Services,
};
pub use groups::{
    AllMembers, Delivered, Group, GroupChange, GroupMonitor, GroupNotice, GroupRouting, Groups,
    JoinError, JoinErrorKind,
};
pub use links::{RemoteLinks, links_of};
pub use lookup::{ByNameError, ByNameErrorKind, LookupError, Registry};
pub use target::{Target, TargetError};
pub use watch::{Lane, Watch};
