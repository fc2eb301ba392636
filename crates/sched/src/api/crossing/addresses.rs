//! Addresses and recipients, by serde: as PIDs.

use super::converts;
use crate::api::call::CallRefused;
use crate::api::handle::Handle;
use crate::api::process_handle::Address;
use crate::api::typed::Recipient;
use crate::process::dropped;
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::shared::Shared;
use ganger_proc_api::crossing::{self, Incoming, Outgoing, Replies};
use ganger_proc_api::{CommandError, Envelope, ExitCause, Message, Pid, SendError, SendErrorKind};
use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{self, Serialize, Serializer};
use std::any::Any;
use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

thread_local! {
    /// The scheduler for which this thread decodes.
    static DECODES_FOR: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// Calls `encoder`, which serializes a message of the scheduler for another node: see
/// [`ganger_proc_api::crossing`]. Replies, [`Address`]es, [`Recipient`]s and PIDs may be inside.
pub fn encode<R>(
    scheduler: &Handle,
    outgoing: Arc<dyn Outgoing>,
    encoder: impl FnOnce() -> R,
) -> (R, Replies) {
    crossing::encode(scheduler.shared.node, outgoing, encoder)
}

/// Calls `decoder`, which deserializes a message of another node for the scheduler. An address of a
/// process of the scheduler leads to the process, others lead to the router.
pub fn decode<R>(
    scheduler: &Handle,
    incoming: Arc<dyn Incoming>,
    decoder: impl FnOnce() -> R,
) -> R {
    /// Puts the former scheduler back.
    struct Restore(Option<Arc<Shared>>);

    impl Drop for Restore {
        fn drop(&mut self) {
            DECODES_FOR.with_borrow_mut(|it| mem::swap(it, &mut self.0));
        }
    }

    let mut restore = Restore(Some(Arc::clone(&scheduler.shared)));
    DECODES_FOR.with_borrow_mut(|it| mem::swap(it, &mut restore.0));
    crossing::decode(scheduler.shared.node, incoming, decoder)
}

/// Converts a message, refused by the process for its type, into the type of the process, if a
/// recipient of the process for such messages has crossed. The deliverer of messages of other nodes
/// then sends again.
///
/// # Errors
/// The refusal, as it was.
pub fn converted(scheduler: &Handle, refused: SendError) -> Result<Envelope, SendError> {
    let found = match refused.kind {
        SendErrorKind::WrongType(_) => scheduler.shared.find(refused.envelope.target),
        _ => None,
    };
    let Some(takes) = found.and_then(|it| it.accepts.get()) else {
        return Err(refused);
    };
    let kind = refused.kind;
    let Envelope { target, message } = refused.into_envelope();
    match converts::convert(takes, message) {
        Ok(message) => Ok(message.to(target)),
        Err(message) => Err(SendError::new(kind, message.to(target))),
    }
}

/// Drops a message of another node that no process of the scheduler takes. The askers of the
/// replies inside learn it: the process has ended, with the cause
/// [`NotFound`](ExitCause::NotFound), or has refused their question.
pub fn drop_refused(refused: SendError) {
    let (kind, pid) = (refused.kind, refused.envelope.target);
    let scope = dropped::open();
    drop(refused);
    dropped::answer(|| match kind {
        SendErrorKind::NotFound | SendErrorKind::Ended(_) => {
            CommandError::Ended(ExitCause::NotFound)
        }
        kind => CommandError::Failed(CallRefused { pid, kind }.into()),
    });
    drop(scope);
}

const OUTSIDE: &str = "an address can be serialized in a message to another node alone: in \
                       `crossing::encode` and `crossing::decode`";

fn serialize<S: Serializer>(pid: Pid, serializer: S) -> Result<S::Ok, S::Error> {
    if crossing::is_encoding() {
        pid.serialize(serializer)
    } else {
        Err(ser::Error::custom(OUTSIDE))
    }
}

/// Decodes the address of the process of this scheduler that `wanted` takes; or of a stand-in,
/// whose messages go by the PID and are checked where they arrive. So a process that has ended
/// costs no message around its address.
fn deserialize<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    wanted: impl FnOnce(Task) -> Option<T>,
    stand_in: impl FnOnce(Task) -> T,
) -> Result<T, D::Error> {
    let shared = DECODES_FOR.with_borrow(Clone::clone);
    let shared = shared.ok_or_else(|| de::Error::custom(OUTSIDE))?;
    let pid = shared.canonical(Pid::deserialize(deserializer)?);
    let found = shared.find(pid).and_then(wanted);
    Ok(found.unwrap_or_else(|| stand_in(ProcessCell::stand_in(shared, pid))))
}

/// As its PID, inside of [`encode`](crate::crossing::encode) alone.
impl<M> Serialize for Address<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.pid(), serializer)
    }
}

/// Inside of [`decode`](crate::crossing::decode) alone.
impl<'de, M: Any> Deserialize<'de> for Address<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = |task| Address::<Message>::new(task).typed().ok();
        deserialize(deserializer, wanted, Self::new)
    }
}

/// As the PID of its process, inside of [`encode`](crate::crossing::encode) alone.
impl<M: 'static> Serialize for Recipient<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.task.is_stand_in() {
            let takes = self.task.accepts.get();
            let takes = takes.filter(|_| Message::kind_of::<M>().is_some());
            let takes = takes.ok_or_else(|| {
                let text = "a recipient can leave the node if its process takes messages of one \
                            type alone";
                ser::Error::custom(text)
            })?;
            converts::note(takes, self.convert);
        }
        serialize(self.task.target(), serializer)
    }
}

/// Inside of [`decode`](crate::crossing::decode) alone.
impl<'de, M: Send + 'static> Deserialize<'de> for Recipient<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let plain: fn(M) -> Message = Message::of::<M>;
        let wanted = |task: Task| {
            let takes = task.accepts.get()?;
            let convert = takes.is::<M>().then_some(plain);
            let convert = convert.or_else(|| converts::find(takes))?;
            Some(Self { task, convert })
        };
        let stand_in = |task| Self {
            task,
            convert: plain,
        };
        deserialize(deserializer, wanted, stand_in)
    }
}
