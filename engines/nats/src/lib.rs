#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod beacon;
mod carrier;
mod connect;
mod error;
mod nats;
mod notice;
mod outbox;
mod seal;
mod settings;
mod store;
mod subject;

pub use error::NatsError;
pub use nats::{Nats, Stats};
pub use notice::{Notice, NoticeKind};
pub use outbox::Counts;
pub use store::NatsStore;

/// The least `max_payload` of a broker: a Hello with the longest names and proof fits.
pub(crate) const LEAST_PAYLOAD: usize = 4096;
