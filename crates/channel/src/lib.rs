#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod block;
mod broadcast;
mod case;
mod claim;
mod ends;
mod entries;
mod error;
mod futures;
mod lock;
mod select;
mod settled;
mod shared;
mod state;
mod waiters;
mod watch;
mod yields;

pub use broadcast::{BroadcastError, BroadcastRecv, Broadcaster, Subscriber, broadcast};
pub use case::{Case, Cases, FutureCase, NoCases, RecvCase, SendCase, SendFromCase, Sends, With};
pub use ends::{Receiver, Sender, channel, unbounded};
pub use error::{RecvError, SelectError, SendError};
pub use futures::{Recv, Send};
pub use select::{Select, select};
pub use watch::{Changed, Publisher, Watcher, watch};
pub use yields::{Received, Receiving, Sending};

pub use ganger_wait::Until;
