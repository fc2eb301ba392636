//! Questions to processes of a peer, and those of its processes to ours.
//!
//! **Problem.** A message has a reply inside, and its answer, its end without an answer and the
//! loss of the connection must reach the asker, once, whatever the asker is: a step, a task, a
//! thread.
//!
//! **Protocol.** `ganger_sched::crossing` takes replies out of messages, and makes replies of
//! numbers.
//! 1. *Asking side*: numbers each reply while the message is encoded. When the session has taken
//!    the message, the completers go into a table, under the lock under which the message goes out.
//! 2. *Answering side*: keeps the other end of each reply that has come. The answer takes it out,
//!    and goes back on the control lane: the data lane may wait for the mailbox of the asker
//!    itself. Never refused: the answers are as many as the questions.
//! 3. *Asking side*: the answer takes the completer out of the table. An asker that has gone, or
//!    has taken its question back, takes it out as well, and tells the answering side.
//! 4. The end of the session takes all: askers are told `NoConnection`, and holders of replies that
//!    nothing is wanted.
//!
//! **Proof sketch.** A completer leaves the table once, under the lock, and is finished where it
//! leaves.

use super::peer::Peer;
use super::requests::Request;
use super::tables::{Asked, Open};
use super::traces;
use super::types::{EncodeError, Types};
use super::values::{self, Decoder, Encoded};
use crate::id::Half;
use crate::wire::{Apart, Fields as _, Known, ReadError, Reader};
use bytes::Bytes;
use ganger_proc_api::{
    CommandError, Completer, EndKind, Envelope, ExitCause, ParsePidError, Payload, Payloads, Pid,
    SendError, SendErrorKind,
};
use ganger_sched::Handle;
use ganger_sched::crossing::{self, Answers, FarReply, Incoming, Replies};
use ganger_sync::contain;
use ganger_sync::sync::{Mutex, lock};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};

/// The most questions of a direction whose answers are out.
const MAX_OPEN: usize = 1 << 20;

/// Encodes the values of a message, with the replies, addresses and PIDs inside of them.
pub(crate) fn encode<'t>(
    peer: &'t Arc<Peer>,
    scheduler: &Handle,
    payloads: &mut Payloads,
) -> Result<(Encoded<'t>, Option<Replies>), EncodeError> {
    match plain(peer, payloads)? {
        Some(encoded) => Ok((encoded, None)),
        None => crossing(peer, scheduler, payloads),
    }
}

/// Encodes values as [`encode`] does. Returns `None` if replies, addresses or PIDs may be inside,
/// or code of users would run.
pub(crate) fn plain<'t>(
    peer: &'t Arc<Peer>,
    payloads: &mut Payloads,
) -> Result<Option<Encoded<'t>>, EncodeError> {
    let encoded = Encoded::plain(&peer.base.types, payloads)?;
    Ok(encoded.map(|mut encoded| {
        encoded.set_context(traces::current(peer.base.traces.as_deref()));
        encoded
    }))
}

/// Encodes values for which [`plain`] returns `None`.
pub(crate) fn crossing<'t>(
    peer: &'t Arc<Peer>,
    scheduler: &Handle,
    payloads: &mut Payloads,
) -> Result<(Encoded<'t>, Option<Replies>), EncodeError> {
    let asking = Arc::clone(&peer.asking);
    let encode = || Encoded::new(&peer.base.types, payloads);
    let (encoded, replies) = crossing::encode(scheduler, asking, encode);
    let mut encoded = encoded?;
    let replies = Some(replies).filter(|it| !it.is_empty());
    encoded.set_context(traces::current(peer.base.traces.as_deref()));
    if let Some(replies) = &replies {
        encoded.set_replies(replies.numbers());
    }
    Ok((encoded, replies))
}

/// Puts the completers of an accepted message into the table. Under the lock of the peer. Returns
/// the numbers of unwanted questions.
pub(crate) fn ask(
    peer: &Arc<Peer>,
    open: &mut Open,
    completers: Vec<(u64, Completer)>,
) -> Vec<u64> {
    let mut unwanted = Vec::new();
    for (number, completer) in completers {
        let weak = Arc::downgrade(peer);
        let watch = completer.on_end(move || take_back(&weak, number));
        if watch.is_none() {
            unwanted.push(number);
        }
        open.asked.insert(number, Asked::new(completer, watch));
    }
    unwanted
}

/// Takes a question back: its asker has gone, or wants no answer.
fn take_back(peer: &Weak<Peer>, number: u64) {
    let Some(peer) = peer.upgrade() else {
        return;
    };
    let taken = peer.with(|state, now| {
        let taken = state.tables.open.asked.remove(&number);
        if taken.is_some() {
            state.request(Request::Unwanted { number }, peer.places, now);
        }
        taken
    });
    // Without the lock.
    drop(taken);
}

/// Takes questions back that were unwanted from the beginning.
pub(crate) fn take_back_all(peer: &Arc<Peer>, numbers: Vec<u64>) {
    for number in numbers {
        take_back(&Arc::downgrade(peer), number);
    }
}

/// Calls code of users, which must not end the link.
pub(crate) fn contained(whose: &'static str, call: impl FnOnce()) {
    if contain(call).is_none() {
        tracing::error!(target: "ganger::cluster", "{whose} has panicked");
    }
}

/// Replies inside of a received message: their session, and their numbers there.
pub(crate) type Inside = (Arc<Answering>, Vec<u64>);

/// Converts the message of a recipient into the type of its process. The code for it is of users,
/// and must not end the link; a message with which it panics is gone, and its replies are dropped.
pub(crate) fn converted(
    scheduler: &Handle,
    refused: SendError,
) -> Result<Option<Envelope>, SendError> {
    let target = refused.envelope.target;
    let converted = contain(|| crossing::converted(scheduler, refused));
    converted.map_or_else(
        || {
            let text = "a recipient's function has panicked";
            tracing::error!(target: "ganger::cluster", %target, "{text}");
            Ok(None)
        },
        |it| it.map(Some),
    )
}

/// Notes that the peer wants no answer to this question. A question whose answer was on its way is
/// said to be unwanted once more, when its asker has got the answer, and is forgotten then.
pub(crate) fn unwanted(peer: &Peer, half: Half, number: u64) {
    let far = peer.look(|state| {
        if state.session().session() != Some(half) {
            return None;
        }
        let open = &mut state.tables.open;
        let far = open.answering.remove(&number);
        if far.is_none() && !open.early.remove(&number) && open.early.len() < MAX_OPEN {
            open.early.insert(number);
        }
        far
    });
    if let Some(far) = far {
        far.give_up();
    }
}

/// Makes the replies that come from a peer, in a session.
pub(crate) struct Answering {
    peer: Arc<Peer>,
    half: Half,
    /// Of the message under decoding.
    numbers: Mutex<Vec<u64>>,
    own: Weak<Self>,
}

impl Answering {
    pub(crate) fn new(peer: &Arc<Peer>, half: Half) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            peer: Arc::clone(peer),
            half,
            numbers: Mutex::default(),
            own: Weak::clone(own),
        })
    }

    pub(crate) fn half(&self) -> Half {
        self.half
    }

    /// Takes the replies that have come since the last call.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        std::mem::take(&mut lock(&self.numbers))
    }

    /// Answers the replies of a message that its process does not take.
    pub(crate) fn refuse(&self, numbers: &[u64], kind: &SendErrorKind) {
        for &number in numbers {
            let error = match kind {
                SendErrorKind::Ended(EndKind::Done) => CommandError::Ended(ExitCause::Done),
                SendErrorKind::Ended(EndKind::Terminated) => {
                    CommandError::Ended(ExitCause::Terminated)
                }
                SendErrorKind::Ended(_) | SendErrorKind::NotFound | SendErrorKind::Closed => {
                    CommandError::Ended(ExitCause::NotFound)
                }
                other => CommandError::Failed(other.to_string().into()),
            };
            self.fail(number, error);
        }
    }

    /// Answers a reply whose question is not asked.
    pub(crate) fn fail(&self, number: u64, error: CommandError) {
        if let Some(far) = self.forget(number) {
            far.give_up();
            self.send(number, Err(error));
        }
    }

    /// Answers a message's replies that have not come out of it. The type is not known here, or
    /// can't be read, or too many questions are open. Returns the numbers of the other replies.
    pub(crate) fn settle(&self, said: Vec<u64>) -> Vec<u64> {
        let come = self.numbers();
        if said.is_empty() {
            return come;
        }
        let known: HashSet<_> = come.iter().copied().collect();
        for number in said {
            let is_early = || (self.peer).look(|state| state.tables.open.early.remove(&number));
            if !known.contains(&number) && !is_early() {
                let text = "the node can't read the message around the question: is its type \
                            registered there, too, by the same name?";
                self.send(number, Err(CommandError::Failed(text.into())));
            }
        }
        come
    }

    /// Takes the other end of a reply out.
    fn forget(&self, number: u64) -> Option<FarReply> {
        self.peer.look(|state| {
            let is_current = state.session().session() == Some(self.half);
            let open = &mut state.tables.open;
            is_current.then(|| open.answering.remove(&number)).flatten()
        })
    }

    fn send(&self, number: u64, answer: Result<Payload, CommandError>) {
        let Some(scheduler) = self.peer.base.scheduler.upgrade() else {
            return;
        };
        // The question is out of the table, so it has an answer whatever the codec does.
        let written = catch_unwind(AssertUnwindSafe(|| write(&self.peer, &scheduler, answer)));
        let (written, panic) = match written {
            Ok(written) => (written, None),
            Err(panic) => {
                let dropped = Err(CommandError::Dropped);
                (write(&self.peer, &scheduler, dropped), Some(panic))
            }
        };
        let (body, replies, value) = written;
        let (taken, unwanted) = self.peer.with(|state, now| {
            if state.session().session() != Some(self.half) {
                return (None, Vec::new());
            }
            let questions = replies.as_ref().map_or(0, |it| it.numbers().count());
            let has_room = state.has_room_for(body.len()) && state.tables.may_ask(questions);
            let (body, replies) = match has_room {
                true => (body, replies),
                false => (no_room(), None),
            };
            let request = Request::Answer { number, body };
            let Some(replies) = replies else {
                state.request(request, self.peer.places, now);
                return (None, Vec::new());
            };
            let (completers, taken) = replies.take();
            let unwanted = ask(&self.peer, &mut state.tables.open, completers);
            state.request(request, self.peer.places, now);
            (Some(taken), unwanted)
        });
        match taken {
            Some(taken) => taken.drop_message(value),
            None => drop(value),
        }
        take_back_all(&self.peer, unwanted);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Incoming for Answering {
    fn reply(&self, number: u64, asker: Option<Pid>) -> Option<Completer> {
        let answers: Arc<dyn Answers> = self.own.upgrade()?;
        let (far, completer) = FarReply::new(answers, number, asker);
        let refused = self.peer.look(|state| {
            let is_current = state.session().session() == Some(self.half);
            let open = &mut state.tables.open;
            if !is_current || open.answering.len() >= MAX_OPEN {
                return (Some(far), false);
            }
            if open.early.remove(&number) || open.answering.contains_key(&number) {
                return (Some(far), true);
            }
            open.answering.insert(number, far);
            (None, true)
        });
        let (refused, is_known) = refused;
        if is_known {
            lock(&self.numbers).push(number);
        }
        if let Some(far) = refused {
            // The message is decoded all the same, and its reply leads nowhere.
            far.give_up();
        }
        Some(completer)
    }

    fn pid(&self, text: &str) -> Result<Pid, ParsePidError> {
        self.peer.places.parse(text)
    }
}

impl Answers for Answering {
    fn answer(&self, number: u64, answer: Result<Payload, CommandError>) {
        if self.forget(number).is_some() {
            self.send(number, answer);
        }
    }
}

const VALUE: u8 = 0;
const ERROR: u8 = 1;

/// Writes an answer. Returns its bytes, the replies inside of it, and the answer itself.
fn write(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    answer: Result<Payload, CommandError>,
) -> (Bytes, Option<Replies>, Payloads) {
    let error = match answer {
        Ok(value) => {
            let mut payloads = Payloads::from(value);
            match encode(peer, scheduler, &mut payloads) {
                Ok((encoded, replies)) => {
                    let mut apart = Apart::default();
                    apart.u8(VALUE);
                    values::write_values(&mut apart, peer.places, &payloads, &encoded);
                    return (apart.finish(), replies, payloads);
                }
                Err(why) => CommandError::Failed(why.to_string().into()),
            }
        }
        Err(error) => error,
    };
    (write_error(&error), None, Payloads::default())
}

fn write_error(error: &CommandError) -> Bytes {
    let mut apart = Apart::default();
    apart.u8(ERROR);
    apart.bytes(&postcard::to_stdvec(error).unwrap_or_default());
    apart.finish()
}

/// Returns the error in the place of an answer without room.
fn no_room() -> Bytes {
    let text = "the answer is lost: too many large answers wait for the connection";
    write_error(&CommandError::Failed(text.into()))
}

/// An answer, the numbers of the replies inside of it, and the context of its sender's trace.
pub(crate) type Answer = (Result<Payload, CommandError>, Vec<u64>, Option<Bytes>);

/// Reads the answer in the bytes.
pub(crate) fn read(decoder: &Decoder, types: &Types, body: Bytes) -> Result<Answer, ReadError> {
    let mut reader = Reader::new(body);
    let mut known = Known::default();
    Ok(match reader.u8()? {
        VALUE => {
            let (values, replies) = decoder.values(&mut reader, &mut known, types, &|it| it())?;
            let context = traces::read(&mut reader)?;
            (Ok(values.into_first()), replies, context)
        }
        ERROR => {
            let bytes = reader.bytes()?;
            let error = postcard::from_bytes(&bytes).map_err(|_| ReadError::Text)?;
            (Err(error), Vec::new(), None)
        }
        _ => return Err(ReadError::Short),
    })
}
