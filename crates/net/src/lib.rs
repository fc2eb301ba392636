#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod address;
mod blocking;
mod buffer;
mod by_number;
#[cfg(unix)]
mod child;
pub mod commands;
mod descriptor;
mod error;
pub mod fs;
mod incoming;
mod listener;
mod names;
mod net;
mod options;
mod poller;
mod ready;
#[cfg(unix)]
#[allow(unsafe_code, reason = "a signal calls an action of this crate")]
mod signal;
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
pub use buffer::{BufReader, BufWriter, LineError};
pub use by_number::AnySocket;
#[cfg(unix)]
pub use child::{Child, ChildStream};
pub use incoming::Incoming;
pub use listener::Listener;
pub use names::resolve;
pub use net::Net;
pub use options::{Keepalive, TcpOptions};
#[cfg(unix)]
pub use signal::{Signal, SignalKind, ctrl_c, shutdown_signal};
pub use socket::Closer;
pub use stream::{ReadHalf, Stream, WriteHalf};
pub use tcp::{TcpListener, TcpStream};
pub use transport::{Listening, Transport};
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix::{UnixListener, UnixStream};
