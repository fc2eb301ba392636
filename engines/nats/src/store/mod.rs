//! A store in a stream of JetStream.
//!
//! **Problem.** Entries end with their lease, in one moment and for all nodes, and JetStream has
//! conditions on a single subject, or on a whole stream, alone. Times to live of its messages end
//! each for itself, by the server's clock, and also behind a renewal that was acknowledged.
//!
//! **Mapping.** The stream is a log: each entry has a subject, and each lease has a subject. A
//! write is a message with the sequence that the subject must end with. A lease's subject has its
//! grant, its renewals, and its end: a message as well. The order of the stream decides all:
//! 1. An entry lives if its lease lives. A write of an entry whose lease ended before the write is
//!    *void*. An ended lease never comes back, so a dead entry stays dead.
//! 2. Each node has a *mirror*: all messages, in their order. A hole in their numbers, or a lost
//!    connection, begins the mirror anew, and watchers hear `Lost` and a snapshot.
//! 3. A read, a refusal and a snapshot follow a *barrier*: a message of the node's own. Its
//!    acknowledgement says that a majority has it; the mirror has all earlier writes once it has
//!    the barrier. So no former leader's answer counts. Reads which come together share a barrier.
//! 4. A write is a success by its acknowledgement, and once the mirror has found that it is not
//!    void. An entry changes its lease on the condition that the whole stream has not moved: a void
//!    write over a living entry would be a loss.
//! 5. A revision is a message's sequence times 2^20. The low bits number the entries that end with
//!    a lease.
//!
//! **Time.** No clocks are compared. A node that has seen no renewal of a lease for the lease's
//! time, by its own monotonic clock, writes the end, on the condition that the last grant or
//! renewal is the one that the node has seen. A late, paused or cut off node therefore ends no
//! renewed lease, and of many nodes one succeeds. A renewal that comes behind the end is refused by
//! the same condition. A mirror that begins anew gives each lease its whole time again.
//!
//! **Room.** A subject keeps 64 messages, so that mirrors see each. A minute after an end, the
//! writer of the end purges the dead messages of its subjects, up to their sequence. A mirror at
//! its new begin purges the dead messages left by other nodes.

mod log;
mod mirror;
mod tasks;

use crate::error::NatsError;
use crate::nats::join;
use crate::settings::Settings;
use ganger_cluster::{Store, StoreError, StoreOp, StoreReply, StoreWatch, StoreWatcher};
use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use tasks::Shared;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A [`Store`] in a stream of JetStream, `KV_ganger_` and the cluster's name: see
/// [`Nats::open_store`](crate::Nats::open_store). The store has a thread and a connection of its
/// own.
pub struct NatsStore {
    shared: Arc<Shared>,
    runtime: Handle,
    running: Option<(JoinHandle<()>, oneshot::Sender<()>)>,
}

impl NatsStore {
    pub(crate) fn open(settings: &Settings) -> Result<Self, NatsError> {
        let servers = settings.checked()?;
        let settings = settings.clone();
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("ganger-nats-store".to_owned())
            .spawn(move || tasks::run(&settings, &servers, &tell, stopped))?;
        match told.recv() {
            Ok(Ok((shared, runtime))) => Ok(Self {
                shared,
                runtime,
                running: Some((thread, stop)),
            }),
            Ok(Err(error)) => {
                join(thread);
                Err(error)
            }
            // The thread has panicked, and its join tells why.
            Err(mpsc::RecvError) => {
                join(thread);
                let why = "the store's thread has ended";
                Err(NatsError::Thread(std::io::Error::other(why)))
            }
        }
    }
}

impl Store for NatsStore {
    fn apply(&self, op: StoreOp, reply: StoreReply) {
        if let Err(error) = op.check() {
            return reply.answer(Err(error));
        }
        let Ok(permit) = self.shared.room.clone().try_acquire_owned() else {
            let why = "too many operations wait for the broker";
            return reply.answer(Err(StoreError::Unavailable(why.into())));
        };
        let shared = self.shared.clone();
        self.runtime.spawn(async move {
            let answer = shared.carry_out(&op).await;
            drop(permit);
            reply.answer(answer);
        });
    }

    fn watch(&self, prefix: &str, watcher: StoreWatcher) -> StoreWatch {
        let id = self.shared.add_watcher(prefix, watcher);
        let shared = self.shared.clone();
        self.runtime
            .spawn(async move { shared.begin_watch(id).await });
        let shared = Arc::downgrade(&self.shared);
        StoreWatch::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.end_watch(id);
            }
        })
    }

    fn describe(&self) -> String {
        self.shared.describe()
    }
}

impl Drop for NatsStore {
    fn drop(&mut self) {
        if let Some((thread, stop)) = self.running.take() {
            // The thread waits for it, or has panicked: its join tells why.
            let _unheard = stop.send(());
            if !thread::panicking() {
                join(thread);
            }
        }
    }
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NatsStore").field(&self.describe()).finish()
    }
}
