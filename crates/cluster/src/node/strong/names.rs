//! Strong names and locks, as the program sees them.

use super::cache::{NAMES, Named};
use super::guarded::Guarded;
use super::keeper::{Party, Shared};
use super::lock::StrongLock;
use super::values::{FencingToken, MAX_STRONG_NAME, NameLost, Owner, StrongError, Value};
use crate::store::{Revision, StoreAnswer, StoreError, StoreOp, StoreReply};
use ganger_proc_api::{BoxError, ExitCause, Pid, Process, Reply};
use ganger_sched::{Call, ExitAction, Recipient};
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::sync::{Arc, Weak};

/// The strong names and locks of a cluster, as a node has them: see
/// [`Cluster::strong_names`](crate::Cluster::strong_names). A clone is the same.
///
/// A strong name has at most one owner in the whole cluster, whatever fails. The store decides, by
/// a lease of the node. A node that can't renew its lease gives all its names and locks up when
/// half of the lease has passed, before the store can give them to another.
///
/// ```
/// use ganger_cluster::{Cluster, NameLost, Twin, TwinStore};
/// use ganger_proc_api::{BoxError, actor_fn};
/// use ganger_sched::Scheduler;
///
/// enum Billing {
///     Lost(NameLost),
/// }
///
/// impl From<NameLost> for Billing {
///     fn from(lost: NameLost) -> Self {
///         Self::Lost(lost)
///     }
/// }
///
/// let (twin, store) = (Twin::new(1), TwinStore::new(1));
/// let _clocks = (twin.run(), store.run());
/// let alpha = Scheduler::builder().node("alpha").start()?;
/// let node = Cluster::builder().engine(twin.port()).store(store.port("alpha")).join(&alpha)?;
/// let names = node.strong_names()?;
///
/// let billing = alpha.spawn(actor_fn(|_, _: Billing, out| { out.done(()); Ok(()) }))?;
/// let token = names.register("billing", billing.address().recipient()).wait()?;
/// let owner = names.find("billing").wait()?.ok_or("no owner")?;
/// assert_eq!((owner.token, &*owner.node), (token, "alpha"));
///
/// let lock = names.lock("invoices").wait()?;
/// let token = lock.token()?; // before each use of the invoices, and with it
/// # assert!(token.0 > owner.token.0);
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Clone)]
pub struct StrongNames {
    pub(super) shared: Arc<Shared>,
    pub(super) own: Arc<Own>,
}

pub(super) struct Own {
    pub(super) node: Box<str>,
    incarnation: u64,
    claims: AtomicU64,
}

impl StrongNames {
    pub(crate) fn new(shared: Arc<Shared>, node: &str, incarnation: u64) -> Self {
        let own = Arc::new(Own {
            node: node.into(),
            incarnation,
            claims: AtomicU64::new(0),
        });
        Self { shared, own }
    }

    /// Returns the number of a new claim, and the value of its entry.
    fn value(&self, pid: Option<Pid>) -> (u64, Vec<u8>) {
        // Ordering: only the number counts.
        let claim = self.own.claims.fetch_add(1, Ordering::Relaxed);
        let value = Value {
            node: self.own.node.clone(),
            incarnation: self.own.incarnation,
            claim,
            pid: pid.map_or_else(Box::default, |pid| pid.to_string().into()),
        };
        (claim, postcard::to_stdvec(&value).unwrap_or_default())
    }

    /// Gives a process of this node a name, until the process ends, or
    /// [`unregister`](Self::unregister) is called. The answer is the number of the ownership.
    ///
    /// When the name is lost, the process gets a [`NameLost`], past the limit of its mailbox and
    /// before its messages; from the moment of the loss on [`whereis`](Self::whereis) and
    /// [`token`](Self::token) do not give the name to it. After a sleep of the whole machine the
    /// process may have a message before the notice, unless it is [guarded](Self::guard). Before it
    /// acts on things outside of the cluster, it should ask [`token`](Self::token), and send the
    /// token along.
    ///
    /// # Errors
    /// Of the call: `Failed`, with a [`StrongError`] inside.
    pub fn register(&self, name: &str, owner: Recipient<NameLost>) -> Call<FencingToken> {
        let (this, name) = (self.clone(), Box::<str>::from(name));
        Call::by(move |reply| this.begin_name(name, owner, reply).map_err(BoxError::from))
    }

    fn begin_name(
        &self,
        name: Box<str>,
        owner: Recipient<NameLost>,
        reply: Reply<FencingToken>,
    ) -> Result<(), StrongError> {
        check(&name)?;
        let pid = owner.pid();
        let scheduler = self.shared.scheduler.upgrade();
        let scheduler = scheduler.filter(|it| it.is_local(pid));
        let scheduler = scheduler.ok_or(StrongError::NoProcess(pid))?;
        let (id, value) = self.value(Some(scheduler.absolute(pid)));
        let party = Party::Name {
            name: name.clone(),
            owner,
            reply: Some(reply),
            is_told: false,
        };
        self.shared.enter(id, party);
        let shared = Arc::downgrade(&self.shared);
        let added = scheduler.add_exit_action(pid, Box::new(OwnerEnds { shared, id }));
        if added.is_err() {
            self.shared.release(id);
            return Err(StrongError::NoProcess(pid));
        }
        self.shared
            .with(|machine, now| machine.name(id, &name, value, now));
        // The process may have ended in between.
        if !self.shared.has(id) {
            self.shared.with(|machine, now| machine.release(id, now));
        }
        self.shared.refuse_late(id);
        Ok(())
    }

    /// Takes a name from the process of this node that has it. False: none has it. A [`NameLost`]
    /// that is on the way arrives nevertheless.
    pub fn unregister(&self, name: &str) -> bool {
        let owner = self.own_claim(name);
        let id = owner.map(|(id, _)| id);
        id.inspect(|id| self.shared.release(*id)).is_some()
    }

    /// Returns the number of the ownership, if a process of this node has the name at this moment.
    /// The clock counts the time that the machine sleeps. O(names of the node). Never blocks.
    #[must_use]
    pub fn token(&self, name: &str) -> Option<FencingToken> {
        self.own_claim(name).map(|(_, token)| token)
    }

    fn own_claim(&self, name: &str) -> Option<(u64, FencingToken)> {
        let key = format!("{NAMES}{name}");
        let owned = self.shared.with(|machine, now| machine.owned(&key, now));
        owned.map(|(id, revision)| (id, FencingToken(revision.0)))
    }

    /// Returns the owner of a name, as the watch of this node knows. Never blocks.
    ///
    /// For a name of this node the answer is exact. For another it may be late: the owner may have
    /// lost the name, and a newer owner has a greater token. [`find`](Self::find) asks the store.
    ///
    /// # Errors
    /// [`StrongError::Store`] while the store is out of reach: what the node knows may be old.
    pub fn whereis(&self, name: &str) -> Result<Option<Owner>, StrongError> {
        let key = format!("{NAMES}{name}");
        let seen = self.shared.with(|machine, now| {
            let owned = machine.owned(&key, now);
            let named = machine.cache.get(&key).cloned();
            let is_known = machine.cache.is_known();
            (owned, named, is_known)
        });
        match seen {
            (None, _, false) => {
                let why = "the node has no news from the store";
                Err(StrongError::Store(StoreError::Unavailable(why.into())))
            }
            (owned, named, _) => {
                Ok(named.and_then(|named| self.valid(named, owned.map(|(_, revision)| revision))))
            }
        }
    }

    /// Returns the owner of an entry, unless the entry is of this node, which has given the name
    /// up.
    fn valid(&self, named: Named, owned: Option<Revision>) -> Option<Owner> {
        let scheduler = &self.shared.scheduler;
        let owner = Owner::read(&named.value, named.revision, scheduler)?;
        let is_given_up = owner.node == self.own.node && owned != Some(named.revision);
        (!is_given_up).then_some(owner)
    }

    /// Asks the store for the owner of a name. An owner of another node may lose it while the
    /// answer is under way.
    ///
    /// # Errors
    /// Of the call: `Failed`, with a [`StrongError`] inside.
    pub fn find(&self, name: &str) -> Call<Option<Owner>> {
        let (this, name) = (self.clone(), Box::<str>::from(name));
        Call::by(move |reply: Reply<Option<Owner>>| {
            check(&name)?;
            let key = format!("{NAMES}{name}");
            let asked = key.clone();
            let store = Arc::clone(&this.shared.store);
            let done = move |answer| match answer {
                Ok(StoreAnswer::Found(entry)) => {
                    let owned = this.shared.with(|machine, now| machine.owned(&key, now));
                    let named = entry.map(|entry| Named {
                        value: entry.value,
                        revision: entry.revision,
                    });
                    let owned = owned.map(|(_, revision)| revision);
                    reply.complete(named.and_then(|named| this.valid(named, owned)));
                }
                Ok(_) => reply.fail(StrongError::Store(StoreError::Unknown)),
                Err(error) => reply.fail(StrongError::Store(error)),
            };
            store.apply(StoreOp::get(asked), StoreReply::new(done));
            Ok(())
        })
    }

    /// Returns a call for a lock of the cluster. The call is answered when the lock is held, in the
    /// order of the calls as the store has them. The asker that gives the call up waits no more.
    ///
    /// # Errors
    /// Of the call: `Failed`, with a [`StrongError`] inside.
    pub fn lock(&self, name: &str) -> Call<StrongLock> {
        let (this, name) = (self.clone(), Box::<str>::from(name));
        Call::by(move |reply: Reply<StrongLock>| {
            check(&name)?;
            let (id, value) = this.value(None);
            let shared: Weak<Shared> = Arc::downgrade(&this.shared);
            let watch = reply.on_end(move || {
                if let Some(shared) = shared.upgrade() {
                    shared.give_up(id);
                }
            });
            let nonce = u128::from(this.own.incarnation) << 64 | u128::from(id);
            let party = Party::Lock {
                reply: Some((reply, watch)),
                guard: None,
            };
            this.shared.enter(id, party);
            this.shared
                .with(|machine, now| machine.lock(id, &name, nonce, value, now));
            this.shared.refuse_late(id);
            Ok(())
        })
    }

    /// Has a process look at the clock before each step. The process sees a [`NameLost`] before any
    /// message after the loss, also when the machine has slept in between. Each step costs a look
    /// at the clock and at the names of the node, under a lock held for O(1).
    ///
    /// An actor becomes a process by [`ActorProcess::new`](ganger_proc_api::ActorProcess::new).
    pub fn guard<P: Process>(&self, process: P) -> Guarded<P> {
        Guarded {
            process,
            shared: Arc::clone(&self.shared),
            seen: self.shared.with(|machine, now| machine.losses(now)),
        }
    }

    /// Describes the promise of the store, in a few words.
    #[must_use]
    pub fn describe_store(&self) -> String {
        self.shared.store.describe()
    }
}

fn check(name: &str) -> Result<(), StrongError> {
    match name.len() {
        1..=MAX_STRONG_NAME => Ok(()),
        _ => Err(StrongError::Name),
    }
}

impl fmt::Debug for StrongNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StrongNames")
            .field("node", &self.own.node)
            .field("store", &self.describe_store())
            .finish()
    }
}

/// The owner of a name has ended.
struct OwnerEnds {
    shared: Weak<Shared>,
    id: u64,
}

impl ExitAction for OwnerEnds {
    fn release(&mut self, _: Pid) {
        if let Some(shared) = self.shared.upgrade() {
            shared.release(self.id);
        }
    }

    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {}

    fn is_over(&self) -> bool {
        let shared = self.shared.upgrade();
        shared.is_none_or(|shared| !shared.has(self.id))
    }
}
