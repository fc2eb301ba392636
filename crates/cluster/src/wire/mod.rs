//! The bytes of frames and messages. The parser allocates nothing for what a peer claims: all
//! lengths are compared with the bytes at hand first.

mod fields;
mod frame;
mod header;
mod hello;
mod message;
mod packer;
mod routes;
mod symbols;
pub(crate) mod varint;

pub(crate) use fields::{Apart, Fields};
pub(crate) use packer::Packer;
pub(crate) use routes::Route;

pub use frame::{Frame, Notice};
pub use header::{Acks, FrameError, HEADER, MAX_FRAME};
pub use hello::Hello;
pub use message::{Message, Messages, ReadError, Reader};
pub use packer::Writer;
pub use symbols::{Known, MAX_SYMBOL, MAX_SYMBOLS, SymbolKind, Symbols};
