//! The encoder and the decoder of this thread.
//!
//! serde's traits have no place for a context, so it is a thread-local, set for the time of a call.
//! Contexts nest: a serializer that is foreign code may send a message itself.

use crate::commands::{Completer, Parts, Reply, silently};
use crate::values::{NodeName, ParsePidError, Pid};
use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::thread::LocalKey;

/// The asking side of a connection to another node.
pub trait Outgoing: Send + Sync {
    /// Returns a number for a reply that is being encoded: it is given once in a session. `None`
    /// when the session has no room for another; the message can't be encoded then.
    fn reply(&self) -> Option<u64>;
}

/// The answering side of a connection to another node.
pub trait Incoming: Send + Sync {
    /// Makes the completer of a reply that has come with this number. `asker` is the process that
    /// waits, as this side knows it. `None` when the session has no room for another; the message
    /// can't be decoded then.
    fn reply(&self, number: u64, asker: Option<Pid>) -> Option<Completer>;

    /// Reads a PID. Parses it by default, so that its names take places of the program's tables
    /// ([`MAX_PARSED`](crate::MAX_PARSED)): a session may bound the new names of a peer here.
    ///
    /// # Errors
    /// [`ParsePidError`] when it is none, or has too many new names.
    fn pid(&self, text: &str) -> Result<Pid, ParsePidError> {
        text.parse()
    }
}

struct Encoder {
    /// For PIDs without a node.
    node: Option<NodeName>,
    outgoing: Arc<dyn Outgoing>,
    /// Of the message so far.
    replies: Vec<(u64, Parts)>,
}

struct Decoder {
    node: Option<NodeName>,
    incoming: Arc<dyn Incoming>,
}

thread_local! {
    static ENCODER: RefCell<Option<Encoder>> = const { RefCell::new(None) };
    static DECODER: RefCell<Option<Decoder>> = const { RefCell::new(None) };
}

/// Puts the context back that was there before, also when `f` panics. Returns its own.
fn within<C: 'static, R>(
    place: &'static LocalKey<RefCell<Option<C>>>,
    context: C,
    f: impl FnOnce() -> R,
) -> (R, Option<C>) {
    struct Restore<C: 'static> {
        place: &'static LocalKey<RefCell<Option<C>>>,
        before: Option<C>,
    }

    impl<C> Restore<C> {
        fn swap(&mut self) {
            (self.place).with_borrow_mut(|place| mem::swap(place, &mut self.before));
        }
    }

    impl<C> Drop for Restore<C> {
        fn drop(&mut self) {
            self.swap();
        }
    }

    let before = Some(context);
    let mut restore = Restore { place, before };
    restore.swap();
    let result = f();
    restore.swap();
    let own = restore.before.take();
    mem::forget(restore);
    (result, own)
}

/// Calls `encoder`, which serializes a message for another node. `node` is the sender's: the PIDs
/// without a node get it. The message's replies come with its result; it still has them, too.
pub fn encode<R>(
    node: Option<NodeName>,
    outgoing: Arc<dyn Outgoing>,
    encoder: impl FnOnce() -> R,
) -> (R, Replies) {
    let context = Encoder {
        node,
        outgoing,
        replies: Vec::new(),
    };
    let (result, context) = within(&ENCODER, context, encoder);
    let of = context.map(|it| it.replies).unwrap_or_default();
    (result, Replies { of })
}

/// Calls `decoder`, which deserializes a message of another node. `node` is the receiver's: its
/// PIDs come without a node.
pub fn decode<R>(
    node: Option<NodeName>,
    incoming: Arc<dyn Incoming>,
    decoder: impl FnOnce() -> R,
) -> R {
    let context = Decoder { node, incoming };
    within(&DECODER, context, decoder).0
}

/// The replies of an encoded message, which still has them. Dropping it leaves them there: for a
/// message that is refused.
#[must_use = "the answers go to the completers inside"]
pub struct Replies {
    of: Vec<(u64, Parts)>,
}

impl Replies {
    /// Returns whether the message has no replies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Iterates over the numbers of the replies.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.of.iter().map(|it| it.0)
    }

    /// Takes the completers out of the message that has been taken, with their numbers. The message
    /// goes into [`Taken::drop_message`]: dropped elsewhere, it answers that no answer comes. Calls
    /// no foreign code.
    pub fn take(self) -> (Vec<(u64, Completer)>, Taken) {
        let completer = |parts: &Parts| {
            let Parts { sink, tag, token } = parts.clone();
            Completer::new(sink, tag, token)
        };
        let of = self.of.iter().map(|(number, it)| (*number, completer(it)));
        let completers = of.collect();
        let parts = self.of.into_iter().map(|(_, parts)| parts).collect();
        (completers, Taken { parts })
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.of.iter().map(|it| it.0);
        f.debug_list().entries(numbers).finish()
    }
}

/// The duty to drop a message that has been taken; see [`Replies::take`].
#[must_use = "the message, dropped elsewhere, answers"]
pub struct Taken {
    parts: Vec<Parts>,
}

impl Taken {
    /// Drops the message. Its replies are in a table now, and answer nothing. Replies in fields
    /// without serialization do answer. Runs destructors of foreign code.
    pub fn drop_message<M>(self, message: M) {
        if self.parts.is_empty() {
            return drop(message);
        }
        silently(self.parts, || drop(message));
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taken").field(&self.parts.len()).finish()
    }
}

/// Gives the reply its number, and notes it. The same reply keeps its number, for serializers that
/// run twice.
pub(super) fn number_of<T: Send + 'static>(reply: &Reply<T>) -> Result<u64, &'static str> {
    let outgoing = ENCODER.with_borrow(|it| it.as_ref().map(|it| Arc::clone(&it.outgoing)));
    let outgoing = outgoing.ok_or(
        "a reply can be serialized in a message to another node alone: in `crossing::encode`",
    )?;
    let parts = reply.completer().parts();
    let parts = parts.ok_or("the reply has answered")?;
    let known = ENCODER.with_borrow(|it| {
        let mut replies = it.iter().flat_map(|it| &it.replies);
        replies.find(|it| it.1.is_same(&parts)).map(|it| it.0)
    });
    if let Some(known) = known {
        return Ok(known);
    }
    // Foreign code: without the borrow.
    let number = outgoing.reply();
    let number = number.ok_or("too many questions to that node wait for their answers")?;
    ENCODER.with_borrow_mut(|it| {
        if let Some(encoder) = it {
            encoder.replies.push((number, parts));
        }
    });
    Ok(number)
}

/// Returns whether this thread is in [`encode`]: for crates whose values cross, too.
#[doc(hidden)]
#[must_use]
pub fn is_encoding() -> bool {
    ENCODER.with_borrow(Option::is_some)
}

/// Returns the PID as the other node knows it.
pub(super) fn leaving(pid: Pid) -> Pid {
    let node = ENCODER.with_borrow(|it| it.as_ref().and_then(|it| it.node));
    pid.with_node(pid.node().or(node))
}

fn incoming() -> Option<(Option<NodeName>, Arc<dyn Incoming>)> {
    DECODER.with_borrow(|it| {
        let it = it.as_ref()?;
        Some((it.node, Arc::clone(&it.incoming)))
    })
}

/// Reads the PID in the text, as this node knows it.
pub(super) fn arriving(text: &str) -> Result<Pid, ParsePidError> {
    let Some((node, incoming)) = incoming() else {
        return text.parse();
    };
    let pid = incoming.pid(text)?;
    Ok(if pid.node() == node {
        pid.with_node(None)
    } else {
        pid
    })
}

/// Makes the completer of an arriving reply.
pub(super) fn completer(number: u64, asker: Option<Pid>) -> Result<Completer, &'static str> {
    let incoming = incoming().ok_or(
        "a reply can be deserialized in a message of another node alone: in `crossing::decode`",
    )?;
    let completer = incoming.1.reply(number, asker);
    completer.ok_or("too many questions of that node wait for their answers")
}
