#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod block;
mod case;
mod claim;
mod ends;
mod error;
mod lock;
mod places;
mod select;
mod state;
mod yields;

pub use case::{Case, Cases, FutureCase, NoCases, RecvCase, SendCase, SendFromCase, Sends, With};
pub use ends::{Receiver, Recv, Send, Sender, channel, unbounded};
pub use error::{RecvError, SelectError, SendError};
pub use select::{Select, select};
pub use yields::{Received, Receiving, Sending, Waiting, waiting};
