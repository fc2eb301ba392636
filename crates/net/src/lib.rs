#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

pub mod commands;
mod error;
#[cfg(feature = "hyper")]
#[allow(
    unsafe_code,
    reason = "hyper's buffers are told what a read has filled"
)]
pub mod hyper;
mod look;
mod net;
mod open;
mod os;
mod poller;
mod reactor;
pub mod sim;
mod sockets;
mod world;

pub use commands::by_number::AnySocket;
pub use look::{SocketKind, SocketLook, SocketWaiter};
pub use net::Net;
pub use open::open_sockets;
#[cfg(unix)]
pub use os::child::{Child, ChildStream};
pub use os::fs;
#[cfg(unix)]
pub use os::signal::{Signal, SignalKind, ctrl_c, shutdown_signal};
pub use sockets::address::ToAddress;
pub use sockets::buffer::{BufReader, BufWriter, LineError};
pub use sockets::incoming::Incoming;
pub use sockets::listener::{Listener, Listening};
pub use sockets::names::resolve;
pub use sockets::options::{Keepalive, TcpOptions};
pub use sockets::socket::Closer;
pub use sockets::stream::{ReadHalf, Stream, Transport, WriteHalf};
pub use sockets::tcp::{TcpListener, TcpStream};
pub use sockets::udp::UdpSocket;
#[cfg(unix)]
pub use sockets::unix::{UnixListener, UnixStream};
