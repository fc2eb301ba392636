#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod address;
mod blocking;
mod by_number;
pub mod commands;
mod error;
pub mod fs;
mod incoming;
mod listener;
mod names;
mod net;
mod poller;
mod ready;
pub mod sim;
mod socket;
mod stream;
mod tcp;
mod timers;
mod transport;
mod udp;
#[cfg(unix)]
mod unix;

pub use address::ToAddress;
pub use by_number::AnySocket;
pub use incoming::Incoming;
pub use listener::Listener;
pub use names::resolve;
pub use net::Net;
pub use socket::Closer;
pub use stream::{ReadHalf, Stream, WriteHalf};
pub use tcp::{TcpListener, TcpStream};
pub use transport::{Listening, Transport};
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix::{UnixListener, UnixStream};
