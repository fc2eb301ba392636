//! The session protocol, without input, output, threads or clock.
//!
//! **Problem.** Engines lose messages without a word: a full queue of a client, a killed broker, a
//! paused peer. A user must know: either a message arrives, in order and once, or the connection to
//! the peer has ended.
//!
//! **Approaches rejected.** To trust an engine's own guarantees: each engine tried loses messages.
//! To repeat messages over sessions: then a restarted peer gets messages for its
//! predecessor. Selective acknowledgements: engines are FIFO but for breaks.
//!
//! **Protocol.** A *half* is one side's name for a session, and is used once. A session is two
//! halves.
//!
//! 1. *Open*: each side repeats a Hello with its half, and the peer's as far as it knows it. A side
//!    is up when it gets a Hello with its own half, or a frame for it. No side is the initiator.
//! 2. *Lane*: frames have numbers. The receiver takes the next, acknowledges earlier frames again,
//!    and asks for missing frames. The sender keeps frames until they are acknowledged.
//! 3. *End*: for a newer half, a Reset, a Bye, silence, no progress. A side answers a frame for an
//!    unknown half with a Reset.
//!
//! **Proof sketch.** In each lane `acked <= next <= sent`; the ring has `[acked, sent)`, and the
//! messages delivered are the prefix below `next`. So a message is delivered, in the ring or in the
//! queue, and each end tells the contents of both. A half is used once, so no frame of
//! another session fits.

mod event;
mod identity;
mod incoming;
mod machine;
mod outgoing;
mod probe;
mod round_trip;
mod settings;
mod stats;
mod up;

pub use event::{End, Event, Refusal, SendError, Undelivered};
pub use identity::{Identity, NoProof, Proof};
pub use machine::{Session, Transmit};
pub use settings::Settings;
pub use stats::{State, Stats};
