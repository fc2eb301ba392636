//! The endpoint, asked over loopback.

mod access;
mod answers;
mod limits;
mod observed;
mod queries;
mod query_checker;
mod stuck;
pub(crate) mod support;
