//! Bytes on a connection, without input and output. All lengths are checked before anything is
//! allocated for them.

mod frames;
mod gossip;
mod packets;

pub(crate) use frames::{Checksum, FrameError, Frames, Kind, put_frame};
pub(crate) use gossip::{NodeAt, encode_nodes, parse_nodes};
pub(crate) use packets::{
    Greeting, HEAD, Packet, PacketError, PacketHead, VERSION, proof, refusal,
};
