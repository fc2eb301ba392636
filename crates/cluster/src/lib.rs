#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "conformance")]
pub mod conformance;
mod engine;
mod id;
#[cfg(any(test, feature = "conformance"))]
mod linear;
mod node;
mod session;
mod store;
mod twin;
mod wire;

pub use engine::{Engine, EngineError, EngineSink};
pub use id::{Half, Halves, Incarnation, Lane, MAX_NAME, NameError, NodeId};
pub use node::{
    Builder, Cluster, ClusterNameError, ClusterNameErrorKind, FarSpawn, FencingToken, Foreign,
    FunctionRefused, Guarded, JoinError, LeaseLook, LockLost, MAX_MESSAGE, NameLook, NameLost,
    NameRevoked, NoStore, NodeChange, Owner, Owners, PeerLook, Place, Registrar, StoreLook,
    StoreSource, StrongError, StrongLock, StrongNames, TraceContext, TypeTaken, Types,
};
pub use session::{
    End, Event, Identity, NoProof, Proof, Refusal, SendError, Session, Settings, State, Stats,
    Transmit, Undelivered,
};
pub use store::{
    Entry, LeaseId, LogError, MAX_KEY, MAX_TTL, MAX_VALUE, MIN_TTL, Revision, RunningStore, Store,
    StoreAnswer, StoreChange, StoreError, StoreFaults, StoreOp, StoreReply, StoreWatch,
    StoreWatcher, TwinStore,
};
pub use twin::{Counts, Faults, Running, Twin, TwinEngine};
pub use wire::{
    Acks, Frame, FrameError, HEADER, Hello, Known, MAX_FRAME, MAX_SYMBOL, MAX_SYMBOLS, Message,
    Messages, Notice, ReadError, Reader, SymbolKind, Symbols, Writer,
};
