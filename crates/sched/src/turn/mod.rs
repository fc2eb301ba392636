//! A turn of a process: its steps, the dispatch of its commands, its upgrade and its end.
//!
//! **What it promises.** Each yield has one completion (P6), and each process one end (P2, P12).
//!
//! **What it may import.** `base`, `handlers`, `limits`, `process`, `progress`, `queues`, `core`,
//! `send`.

pub(crate) mod completion;
pub(crate) mod dispatch;
pub(crate) mod finish;
pub(crate) mod run;
pub(crate) mod upgrade;
