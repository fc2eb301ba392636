//! The process that keeps the names and locks of a node.
//!
//! A single process carries the acts of the machine (`machine.rs`) out, in their order. Other
//! threads make claims and look, under the machine's lock, and wake the process.

use super::clock::LeaseClock;
use super::lock::{Guard, Keeps, StrongLock};
use super::machine::{ClaimId, Machine, Refused, Todo};
use super::values::{FencingToken, NameLost, Owner, StrongError};
use crate::node::helpers::Helper;
use crate::store::{Store, StoreAnswer, StoreChange, StoreError, StoreReply, StoreWatch};
use ganger_proc_api::{
    BoxError, Context, EndWatch, Event, Events, Instant, Payloads, Pid, Process, Reply, StepOutput,
    StepResult, Tag,
};
use ganger_sched::internal::{AddressInternals as _, ContextInternals as _};
use ganger_sched::{Recipient, WeakHandle};
use ganger_sync::contain;
use ganger_sync::sync::{Mutex, lock};
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, OnceLock, Weak};

const TIMER: Tag = 1;

/// The most rounds in a step.
const ROUNDS: usize = 32;

/// The owner or the asker of a claim.
pub(crate) enum Party {
    Name {
        name: Box<str>,
        owner: Recipient<NameLost>,
        /// Taken by the answer.
        reply: Option<Reply<FencingToken>>,
        /// The loss is told at the moment, and the teller takes the party away.
        is_told: bool,
    },
    Lock {
        reply: Option<(Reply<StrongLock>, Option<EndWatch>)>,
        guard: Option<Weak<Guard>>,
    },
}

#[derive(Default)]
struct Inbox {
    answers: Vec<(u64, Result<StoreAnswer, StoreError>)>,
    changes: Vec<StoreChange>,
    /// The process carries no further acts out.
    is_over: bool,
}

/// The state of the process, shared with other threads.
pub(crate) struct Shared {
    pub(crate) scheduler: WeakHandle,
    pub(crate) store: Arc<dyn Store>,
    machine: Mutex<Machine>,
    parties: Mutex<HashMap<ClaimId, Party>>,
    inbox: Mutex<Inbox>,
    helper: Arc<Helper>,
    clock: LeaseClock,
    begun: Instant,
    watch: OnceLock<StoreWatch>,
}

impl Shared {
    pub(crate) fn new(
        scheduler: WeakHandle,
        store: Arc<dyn Store>,
        machine: Machine,
        clock: LeaseClock,
        helper: Arc<Helper>,
    ) -> Arc<Self> {
        let begun = clock();
        Arc::new(Self {
            scheduler,
            store,
            machine: Mutex::new(machine),
            parties: Mutex::default(),
            inbox: Mutex::default(),
            helper,
            clock,
            begun,
            watch: OnceLock::new(),
        })
    }

    pub(crate) fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Returns when the node has begun to watch the store.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// Looks at the machine, or makes a claim, at this time. The process carries the acts out.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Machine, Instant) -> R) -> R {
        let mut machine = lock(&self.machine);
        // The time is read under the lock, so it does not go back for the machine.
        let result = f(&mut machine, self.now());
        let has_work = machine.has_todo();
        drop(machine);
        if has_work {
            self.helper.wake();
        }
        result
    }

    /// Adds the party of a future claim.
    pub(crate) fn enter(&self, id: ClaimId, party: Party) {
        lock(&self.parties).insert(id, party);
    }

    /// Refuses a claim from after the end of the process.
    pub(crate) fn refuse_late(&self, id: ClaimId) {
        if !lock(&self.inbox).is_over {
            return;
        }
        let party = lock(&self.parties).remove(&id);
        if let Some(party) = party {
            self.with(|machine, now| machine.release(id, now));
            party.refuse(has_left());
        }
    }

    pub(crate) fn has(&self, id: ClaimId) -> bool {
        lock(&self.parties).contains_key(&id)
    }

    /// Releases an unwanted claim.
    pub(crate) fn release(&self, id: ClaimId) {
        let party = lock(&self.parties).remove(&id);
        if party.is_some() {
            self.with(|machine, now| machine.release(id, now));
        }
        // Without a lock: a reply is dropped.
        drop(party);
    }

    /// Gives a claim up whose asker waits for the lock no more. A lock that is held is released by
    /// its drop.
    pub(crate) fn give_up(&self, id: ClaimId) {
        let is_waiting = matches!(
            lock(&self.parties).get(&id),
            Some(Party::Lock { reply: Some(_), .. })
        );
        if is_waiting {
            self.release(id);
        }
    }

    fn answered(&self, number: u64, answer: Result<StoreAnswer, StoreError>) {
        lock(&self.inbox).answers.push((number, answer));
        self.helper.wake();
    }

    fn act(self: &Arc<Self>, todo: Todo) {
        match todo {
            Todo::Ask(number, op) => {
                let shared = Arc::downgrade(self);
                let reply = StoreReply::new(move |answer| {
                    if let Some(shared) = shared.upgrade() {
                        shared.answered(number, answer);
                    }
                });
                self.store.apply(op, reply);
            }
            Todo::Granted(id) => self.granted(id),
            Todo::Refused(id, why) => {
                let party = lock(&self.parties).remove(&id);
                if let Some(party) = party {
                    party.refuse(self.why(why));
                }
            }
            Todo::Lost(id) => {
                let party = self.tell_of(id).ok().flatten();
                if let Some(Party::Lock { guard, .. }) = party
                    && let Some(guard) = guard.and_then(|it| it.upgrade())
                {
                    guard.lose();
                }
            }
        }
    }

    /// Tells the owner of a lost name, without a lock. Returns the party. The notice is there
    /// before the party is seen to be gone. An error: another thread tells the owner, or this
    /// thread does, below on its stack.
    fn tell_of(&self, id: ClaimId) -> Result<Option<Party>, BeingTold> {
        let lost = match lock(&self.parties).get_mut(&id) {
            Some(Party::Name { is_told: true, .. }) => return Err(BeingTold),
            Some(Party::Name {
                owner,
                name,
                is_told,
                ..
            }) => {
                *is_told = true;
                Some((owner.clone(), name.clone()))
            }
            _ => None,
        };
        if let Some((owner, name)) = lost {
            tell(&owner, name);
        }
        Ok(lock(&self.parties).remove(&id))
    }

    /// Tells a process of the names that it has lost, unless it has been told. An error: not all is
    /// told yet.
    pub(crate) fn tell_lost(&self, pid: Pid) -> Result<(), BeingTold> {
        let pid = pid.with_node(None);
        let parties = lock(&self.parties);
        let of = parties.iter().filter_map(|(id, party)| match party {
            Party::Name {
                owner, reply: None, ..
            } if owner.pid().with_node(None) == pid => Some(*id),
            _ => None,
        });
        let of: Vec<_> = of.collect();
        drop(parties);
        let machine = lock(&self.machine);
        let mut lost: Vec<_> = of.into_iter().filter(|id| !machine.has(*id)).collect();
        drop(machine);
        // In the order of the claims, so that simulations repeat.
        lost.sort_unstable();
        for id in lost {
            // Granted, so without a reply.
            let _party = self.tell_of(id)?;
        }
        Ok(())
    }

    fn why(&self, why: Refused) -> StrongError {
        match why {
            Refused::Taken(value, revision) => {
                match Owner::read(&value, revision, &self.scheduler) {
                    Some(owner) => StrongError::Taken(Box::new(owner)),
                    None => StrongError::Unreadable,
                }
            }
            Refused::Store(error) => StrongError::Store(error),
            Refused::Lapsed => StrongError::Lapsed,
        }
    }

    fn granted(self: &Arc<Self>, id: ClaimId) {
        let held = self.with(|machine, now| machine.held(id, now));
        // Lost meanwhile: the next act says so.
        let Some((revision, hold)) = held else {
            return;
        };
        let token = FencingToken(revision.0);
        let mut parties = lock(&self.parties);
        match parties.get_mut(&id) {
            Some(Party::Name { reply, .. }) => {
                let reply = reply.take();
                drop(parties);
                if let Some(reply) = reply {
                    reply.complete(token);
                }
            }
            Some(Party::Lock { reply, guard }) => {
                let (made, strong) = StrongLock::new(Arc::clone(self) as _, id, token, hold);
                *guard = Some(Arc::downgrade(&made));
                let reply = reply.take();
                drop(parties);
                // Without an asker the lock is dropped, and so released.
                if let Some((reply, _watch)) = reply {
                    reply.complete(strong);
                }
            }
            None => {}
        }
    }
}

impl Keeps for Shared {
    fn now(&self) -> Instant {
        Self::now(self)
    }

    fn release(&self, id: ClaimId) {
        Self::release(self, id);
    }
}

/// An owner is told of a loss at the moment.
pub(crate) struct BeingTold;

impl Party {
    fn refuse(self, why: StrongError) {
        match self {
            // The asker of a granted claim has gone.
            Self::Name {
                reply,
                owner,
                name,
                is_told,
            } => match reply {
                Some(reply) => reply.fail(why),
                None if is_told => {}
                None => tell(&owner, name),
            },
            Self::Lock { reply, .. } => {
                if let Some((reply, _watch)) = reply {
                    reply.fail(why);
                }
            }
        }
    }
}

fn has_left() -> StrongError {
    let why = "the node has left the cluster";
    StrongError::Store(StoreError::Unavailable(why.into()))
}

/// Tells a process of its loss. Its recipient makes a message of the notice, and must not end the
/// keeper.
fn tell(owner: &Recipient<NameLost>, name: Box<str>) {
    // An ended process needs no notice.
    let told = contain(|| _ = owner.send_system(NameLost { name }));
    if told.is_none() {
        let text = "the recipient of a lost name has panicked";
        tracing::error!(target: "ganger::cluster", process = %owner.pid(), "{text}");
    }
}

/// The process.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    is_leaving: bool,
}

impl Keeper {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let is_leaving = false;
        Self { shared, is_leaving }
    }

    /// Runs a round of the keeper. True: more is there.
    fn round(&mut self) -> bool {
        let mut inbox = lock(&self.shared.inbox);
        let answers = std::mem::take(&mut inbox.answers);
        let changes = std::mem::take(&mut inbox.changes);
        drop(inbox);
        let mut machine = lock(&self.shared.machine);
        let now = self.shared.now();
        for (number, answer) in answers {
            machine.answered(number, answer, now);
        }
        for change in changes {
            machine.changed(change, now);
        }
        machine.tick(now);
        let todo = machine.todo();
        drop(machine);
        let has_more = !todo.is_empty();
        for todo in todo {
            self.shared.act(todo);
        }
        has_more
    }
}

impl Process for Keeper {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if let Some(own) = ctx.known_address::<ganger_proc_api::Message>() {
            own.leave_shutdown_to_caller();
        }
        self.shared.helper.begin(ctx.waker());
        let shared = Arc::downgrade(&self.shared);
        let watcher = Box::new(move |change| {
            if let Some(shared) = shared.upgrade() {
                lock(&shared.inbox).changes.push(change);
                shared.helper.wake();
            }
        });
        let watch = self.shared.store.watch(super::cache::ALL, watcher);
        let _only = self.shared.watch.set(watch);
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if matches!(event, Event::Cancel(_)) {
                out.defer_cancel();
            }
        }
        let has_more = (0..ROUNDS).all(|_| self.round());
        if has_more {
            out.yield_now();
            return Ok(());
        }
        self.is_leaving |= self.shared.helper.must_end();
        if self.is_leaving {
            let has_left = self.shared.with(|machine, now| machine.leave(now));
            // The last acts.
            while self.round() {}
            if has_left || self.shared.helper.must_end_at_once() {
                out.done(());
                return Ok(());
            }
        }
        out.cancel(TIMER);
        let due = self.shared.with(|machine, _| machine.next_due());
        if let Some(at) = due {
            out.sleep(at.since(self.shared.now()), TIMER);
        }
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // A later claim is refused where it is made, and earlier claims are lost here.
        lock(&self.shared.inbox).is_over = true;
        self.shared.with(|machine, now| _ = machine.leave(now));
        while self.round() {}
        // No answer of the store comes any more.
        let parties = mem::take(&mut *lock(&self.shared.parties));
        for party in parties.into_values() {
            party.refuse(has_left());
        }
        self.shared.helper.over();
    }
}
