//! The processes of a kind, and their addresses by key.

use crate::error::{KeyedError, KeyedErrorKind};
use crate::incarnation::{First, Incarnation};
use crate::shared::{Inner, Key, LEAVE, NotClaimed};
use crate::table::{AsksItself, Slot};
use ganger_proc_api::{BoxError, ExitCause, ExitNotice, Message, Reply};
use ganger_sched::internal::CALLS_ITSELF;
use ganger_sched::{Address, Call, SystemEvent};
use ganger_sync::sync::{Mutex, lock};
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// The processes of a kind, each known by its key: see [`Kinds::kind`](crate::Kinds::kind).
///
/// [`of`](Self::of) gives the address of a key. The first message starts its process. A process
/// that is idle, is told to go, or fails, ends, and the next message starts another process.
///
/// - At most one process of a key is between its `init` and the end of its `close`.
/// - A process takes messages of one sender to one key in order, also across evictions. No message
///   is lost or refused because of an eviction: a leaving process takes it, or it waits in the
///   mailbox of the next process.
/// - A process that fails takes the rest of its mailbox along, as all processes do: calls end with
///   the cause. The next message starts another process at once.
/// - A start that fails does the same, and the next start waits: 100 ms, and twice as long after
///   each further failure, up to 30 s. Messages wait in a mailbox meanwhile.
/// - A process inherits values from the process that has sent its first message.
/// - During a stop of the scheduler the processes go on while other processes live, which may ask
///   them and start them as before, but at most for half of the time to the deadline. Then they
///   leave.
///
/// Cloning it is cheap, and its processes outlive it. A key without a process takes no memory. Each
/// call is O(1) unless its documentation says otherwise, and takes one of 64 locks for a moment.
pub struct Keyed<M, K = String> {
    inner: Arc<Inner<M, K>>,
}

impl<M: Send + 'static, K: Key> Keyed<M, K> {
    pub(crate) fn new(inner: Inner<M, K>) -> Self {
        let inner = Arc::new(inner);
        Self { inner }
    }

    /// Gives the address of a key, with or without a live process. Starts no process.
    ///
    /// A kept address saves a copy and the hash of the key at each send.
    pub fn of(&self, key: impl Into<K>) -> KeyedAddress<M, K> {
        let key = key.into();
        KeyedAddress {
            hash: self.inner.table.hash(&key),
            inner: Arc::clone(&self.inner),
            key,
        }
    }

    /// Gives the address of the live process of this key, if it has one: to monitor it, or to look
    /// at it. Starts no process.
    ///
    /// A message to this address may come too late for the process, as for any process. So send
    /// messages by way of [`of`](Self::of).
    pub fn find<Q>(&self, key: &Q) -> Option<Address<M>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let table = &self.inner.table;
        let slot = table.find(table.hash(key), key)?;
        (!slot.address.is_closed()).then(|| slot.address.clone())
    }

    /// Asks the process of this key to leave as soon as it has taken the messages in its mailbox,
    /// as if it were idle: see [`KindBuilder::idle_after`](crate::KindBuilder::idle_after). Returns
    /// whether the key has a process. Never blocks. A process may ask itself.
    pub fn evict<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let table = &self.inner.table;
        let Some(asked) = table.ask_to_leave(table.hash(key), key) else {
            return false;
        };
        let (Some(pid), Some(scheduler)) = (asked, self.inner.scheduler.upgrade()) else {
            return true;
        };
        let notice = ExitNotice::new(pid, LEAVE, ExitCause::Done);
        scheduler
            .send_system(pid, SystemEvent::Exit(notice))
            .is_ok()
    }

    /// Returns the number of keys with a process. A process that starts, waits to be started again,
    /// or ends, counts. O(shards); the table has 64.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.table.len()
    }

    /// Returns whether no key has a process.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys that have a process, in no order. O(keys).
    #[must_use]
    pub fn keys(&self) -> Vec<K> {
        let slots = self.inner.table.slots();
        slots.into_iter().map(|it| it.key.clone()).collect()
    }
}

impl<M, K> Clone for Keyed<M, K> {
    fn clone(&self) -> Self {
        let inner = Arc::clone(&self.inner);
        Self { inner }
    }
}

impl<M, K> fmt::Debug for Keyed<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("name", &self.inner.name)
            .field("len", &self.inner.table.len())
            .finish_non_exhaustive()
    }
}

/// Reaches the process of a key; a message starts the process if the key has none: see
/// [`Keyed::of`].
///
/// Cloning it clones the key. An address keeps no process alive.
pub struct KeyedAddress<M, K = String> {
    inner: Arc<Inner<M, K>>,
    key: K,
    hash: u64,
}

impl<M: Send + 'static, K: Key> KeyedAddress<M, K> {
    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Sends a message, and starts the process if the key has none. Never blocks, and waits for no
    /// start.
    ///
    /// # Errors
    /// [`KeyedError`], with the message inside, when the mailbox of the process is full, when the
    /// scheduler has as many processes as it may have, or is stopping.
    pub fn send(&self, message: M) -> Result<(), KeyedError> {
        self.deliver(self.slot(), message)
    }

    /// Makes a question to the process: as [`Address::call`], for steps, tasks and threads. Asking
    /// it starts the process if the key has none.
    ///
    /// When the start fails, the call ends with
    /// [`CommandError::Ended`](ganger_proc_api::CommandError::Ended) and the cause. When the
    /// message is refused, the call ends with
    /// [`CommandError::Failed`](ganger_proc_api::CommandError::Failed) and a [`KeyedErrorKind`]
    /// inside.
    pub fn call<T, F>(&self, message: F) -> Call<T>
    where
        T: Send + 'static,
        F: FnOnce(Reply<T>) -> M + Send + 'static,
    {
        let this = self.clone();
        Call::by(move |reply: Reply<T>| {
            let table = &this.inner.table;
            let slot = table.find_for(this.hash, &this.key, reply.pid());
            let slot = slot.map_err(|AsksItself| CALLS_ITSELF)?;
            // The reply in a refused message is dropped here, before the caller hears of the error.
            let sent = this.deliver(slot, message(reply));
            sent.map_err(|error| BoxError::from(error.kind))
        })
    }

    /// Returns the address of the live process, if the key has one: see [`Keyed::find`].
    #[must_use]
    pub fn find(&self) -> Option<Address<M>> {
        let slot = self.slot()?;
        (!slot.address.is_closed()).then(|| slot.address.clone())
    }

    fn slot(&self) -> Option<Arc<Slot<K, M>>> {
        self.inner.table.find(self.hash, &self.key)
    }

    fn deliver(&self, mut slot: Option<Arc<Slot<K, M>>>, mut message: M) -> Result<(), KeyedError> {
        loop {
            if let Some(slot) = slot {
                let Err(refused) = slot.address.send(message) else {
                    return Ok(());
                };
                if !slot.address.is_closed() {
                    let kind = KeyedErrorKind::Refused(refused.kind);
                    return Err(KeyedError::new(kind, Some(refused.envelope.message)));
                }
                message = match refused.envelope.message.take() {
                    Ok(message) => message,
                    Err(_) => unreachable!("what is refused is what was sent"),
                };
            }
            message = match self.start(message)? {
                None => return Ok(()),
                Some(message) => message,
            };
            slot = self.slot();
        }
    }

    /// Starts a process with a first message. Gives the message back when another process has been
    /// quicker.
    #[cold]
    #[inline(never)]
    fn start(&self, message: M) -> Result<Option<M>, KeyedError> {
        let first = Arc::new(Mutex::new(First::Message(message)));
        let (inner, key) = (Arc::clone(&self.inner), self.key.clone());
        let process = Incarnation::new(inner, key, self.hash, Some(Arc::clone(&first)));
        let started = self.inner.start(process);
        let first = std::mem::replace(&mut *lock(&first), First::Sent);
        match (started, first) {
            (Ok(()), First::Refused(refused)) => {
                let kind = KeyedErrorKind::Refused(refused.kind);
                Err(KeyedError::new(kind, Some(refused.envelope.message)))
            }
            (Ok(()), _) => Ok(None),
            (Err(NotClaimed::Taken), First::Message(message)) => Ok(Some(message)),
            (Err(NotClaimed::Taken), _) => unreachable!("a message is sent behind the claim"),
            (Err(NotClaimed::NotStarted(kind)), first) => {
                let message = match first {
                    First::Message(message) => Some(Message::of(message)),
                    First::Refused(refused) => Some(refused.envelope.message),
                    First::Sent => None,
                };
                Err(KeyedError::new(KeyedErrorKind::NotStarted(kind), message))
            }
        }
    }
}

impl<M, K: Clone> Clone for KeyedAddress<M, K> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            key: self.key.clone(),
            hash: self.hash,
        }
    }
}

impl<M, K: fmt::Debug> fmt::Debug for KeyedAddress<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedAddress")
            .field("kind", &self.inner.name)
            .field("key", &self.key)
            .finish()
    }
}
