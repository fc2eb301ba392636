//! A bell that the action of a signal may ring, on Windows: a channel. The C runtime calls the
//! action for Ctrl-C on a thread of its own, where it may lock and allocate.

use super::Ring;
use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The waiting end.
pub(super) struct Bell {
    receiver: Mutex<Receiver<u8>>,
    sender: Sender<u8>,
}

/// A ringing end.
pub(super) struct Rope(Sender<u8>);

impl Bell {
    #[allow(clippy::unnecessary_wraps, reason = "as on Unix")]
    pub(super) fn new() -> io::Result<Self> {
        let (sender, receiver) = channel();
        let receiver = Mutex::new(receiver);
        Ok(Self { receiver, sender })
    }

    #[allow(clippy::unnecessary_wraps, reason = "as on Unix")]
    pub(super) fn rope(&self) -> io::Result<Rope> {
        Ok(Rope(self.sender.clone()))
    }

    /// Blocks until the bell rings.
    pub(super) fn wait(&self) -> Ring {
        let receiver = self.receiver.lock();
        let byte = receiver.ok().and_then(|receiver| receiver.recv().ok());
        byte.map_or(Ring::Halted, Ring::of)
    }
}

impl Rope {
    /// Rings, unless no wait is left to end.
    pub(super) fn pull(&self, ring: Ring) -> bool {
        self.0.send(ring.byte()).is_ok()
    }
}
