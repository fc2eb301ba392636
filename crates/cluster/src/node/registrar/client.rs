//! A node's way to the registrar.

use super::NAME;
use super::calls::{Applied, Ask, Changes};
use crate::node::base::Base;
use crate::node::core::Core;
use crate::node::helpers::Helper;
use crate::node::questions::whereis;
use crate::store::{
    Revision, Store, StoreChange, StoreError, StoreOp, StoreReply, StoreWatch, StoreWatcher,
};
use ganger_proc_api::{
    BoxError, CommandError, Completer, CompletionSink, Context, EndCall, Event, Events, ExitCause,
    Instant, Message, NodeName, Payload, Payloads, Pid, Process, Reply, SendErrorKind, StepOutput,
    StepResult, Tag,
};
use ganger_sched::internal::{AddressInternals as _, ContextInternals as _};
use ganger_sched::{Address, Handle};
use ganger_sync::sync::{Mutex, lock};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

const TIMER: Tag = 1;

/// Between two looks for a registrar that is not there.
const RETRY: Duration = Duration::from_millis(250);

/// The most operations that wait for a first connection.
const MAX_WAITING: usize = 4096;

/// The store of a node whose authority is a registrar, at this node or another.
pub(crate) struct Client {
    shared: Arc<Shared>,
    watches: BTreeMap<u64, Watch>,
    is_looking: bool,
    /// Watches ask again from then on.
    retry: Option<Instant>,
}

struct Shared {
    core: Weak<Core>,
    node: NodeName,
    helper: Arc<Helper>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The registrar, as far as the client knows.
    address: Option<Address>,
    waiting: Vec<(StoreOp, StoreReply)>,
    number: u64,
    begun: Vec<(u64, Watch)>,
    ended: Vec<u64>,
    /// The answers to questions of watches.
    told: Vec<(u64, Result<Changes, CommandError>)>,
    /// The answer to the question for the registrar.
    found: Option<Option<Pid>>,
    is_over: bool,
}

struct Watch {
    prefix: Box<str>,
    watcher: StoreWatcher,
    /// The last revision told, since the last loss.
    after: Option<Revision>,
    is_lost: bool,
    asking: Option<Arc<Callback<Changes>>>,
}

impl Client {
    /// Makes the process, and the store that the node gets.
    pub(crate) fn new(
        core: &Arc<Core>,
        node: NodeName,
        helper: Arc<Helper>,
    ) -> (Self, Arc<dyn Store>) {
        let shared = Arc::new(Shared {
            core: Arc::downgrade(core),
            node,
            helper,
            state: Mutex::default(),
        });
        let store = Arc::new(AtRegistrar(Arc::clone(&shared)));
        let client = Self {
            shared,
            watches: BTreeMap::new(),
            is_looking: false,
            retry: None,
        };
        (client, store)
    }

    /// Takes the news since the last step. Returns the waiting operations.
    fn take(&mut self, scheduler: &Handle, now: Instant) -> Vec<(StoreOp, StoreReply)> {
        let mut state = lock(&self.shared.state);
        self.watches.extend(std::mem::take(&mut state.begun));
        let ended = std::mem::take(&mut state.ended);
        let told = std::mem::take(&mut state.told);
        let mut waiting = Vec::new();
        if let Some(found) = state.found.take() {
            self.is_looking = false;
            state.address = found.and_then(|pid| scheduler.address(pid));
            if state.address.is_none() {
                self.retry = Some(now + RETRY);
            }
            waiting = std::mem::take(&mut state.waiting);
        }
        drop(state);
        for number in ended {
            let watch = self.watches.remove(&number);
            if let Some(asking) = watch.and_then(|it| it.asking) {
                asking.give_up();
            }
        }
        for (number, answer) in told {
            let Some(watch) = self.watches.get_mut(&number) else {
                continue;
            };
            watch.asking = None;
            match answer {
                Ok(changes) => watch.tell(changes),
                Err(error) => {
                    watch.lose();
                    self.retry = Some(now + RETRY);
                    if is_gone(&error) {
                        lock(&self.shared.state).address = None;
                    }
                }
            }
        }
        waiting
    }

    /// Looks for the registrar, if an operation or a watch needs it.
    fn look(&mut self, scheduler: &Handle, now: Instant) {
        let shared = &self.shared;
        let state = lock(&shared.state);
        let is_due = self.retry.is_none_or(|at| at <= now) && !self.watches.is_empty();
        let is_needed = is_due || !state.waiting.is_empty();
        if self.is_looking || state.address.is_some() || !is_needed {
            return;
        }
        drop(state);
        self.is_looking = true;
        let weak = Arc::downgrade(shared);
        let found = move |pid: Option<Pid>| {
            if let Some(shared) = weak.upgrade() {
                lock(&shared.state).found = Some(pid);
                shared.helper.wake();
            }
        };
        let Some(core) = shared.core.upgrade() else {
            return found(None);
        };
        if shared.node == core.base.node {
            return found(scheduler.whereis(NAME));
        }
        let callback = Callback::new(move |answer: Result<Option<Pid>, CommandError>| {
            found(answer.ok().flatten());
        });
        // An unasked question is answered by its drop.
        let _no_node = whereis(&core, shared.node, NAME.into(), callback.reply());
    }

    /// Has each watch ask for more.
    fn ask(&mut self, now: Instant) {
        if self.retry.is_some_and(|at| at > now) {
            return;
        }
        let Some(address) = lock(&self.shared.state).address.clone() else {
            return;
        };
        self.retry = None;
        for (&number, watch) in &mut self.watches {
            if watch.asking.is_some() {
                continue;
            }
            let weak = Arc::downgrade(&self.shared);
            let callback = Callback::new(move |answer| {
                if let Some(shared) = weak.upgrade() {
                    lock(&shared.state).told.push((number, answer));
                    shared.helper.wake();
                }
            });
            watch.asking = Some(Arc::clone(&callback));
            let reply = callback.reply();
            // A refused question is answered by its drop.
            let ask = Ask::Changes(watch.prefix.clone(), watch.after, reply);
            if address.send_control(Message::of(ask)).is_err() {
                lock(&self.shared.state).address = None;
                return;
            }
        }
    }
}

/// Returns whether the registrar must be looked for again.
fn is_gone(error: &CommandError) -> bool {
    matches!(error, CommandError::Ended(_) | CommandError::Dropped)
}

impl Shared {
    /// Sends an operation to the registrar.
    fn send(self: &Arc<Self>, address: &Address, op: StoreOp, reply: StoreReply) {
        let is_read = op.is_read();
        let weak = Arc::downgrade(self);
        let callback = Callback::new(move |answer: Result<Applied, CommandError>| {
            let answer = match answer {
                Ok(Applied(answer)) => answer,
                Err(error) => {
                    let shared = weak.upgrade().filter(|_| is_gone(&error));
                    if let Some(shared) = shared {
                        lock(&shared.state).address = None;
                    }
                    Err(lost(&error, is_read))
                }
            };
            reply.answer(answer);
        });
        let ask = Ask::Apply(op, callback.reply());
        if let Err(refused) = address.send_control(Message::of(ask)) {
            let error = StoreError::Unavailable(refused.kind.to_string().into());
            if refused.kind != SendErrorKind::Full {
                lock(&self.state).address = None;
            }
            callback.refuse(Applied(Err(error)));
        }
    }
}

/// Returns the error of a question that the registrar has not answered. A failure may be of the
/// answer, on its way back, and says nothing of the operation.
fn lost(error: &CommandError, is_read: bool) -> StoreError {
    let is_untouched = match error {
        CommandError::Ended(ExitCause::NotFound) => true,
        _ => is_read,
    };
    if is_untouched {
        StoreError::Unavailable(format!("the registrar: {error}").into())
    } else {
        StoreError::Unknown
    }
}

impl Watch {
    fn tell(&mut self, Changes { changes, until }: Changes) {
        let is_snapshot = matches!(changes.first(), Some(StoreChange::Snapshot { .. }));
        if is_snapshot && self.after.is_some() {
            self.lose();
        }
        self.is_lost = false;
        self.after = Some(until);
        for change in changes {
            (self.watcher)(change);
        }
    }

    fn lose(&mut self) {
        let had_some = self.after.take().is_some();
        if had_some && !self.is_lost {
            self.is_lost = true;
            (self.watcher)(StoreChange::Lost);
        }
    }
}

impl Process for Client {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if let Some(own) = ctx.known_address::<ganger_proc_api::Message>() {
            own.leave_shutdown_to_caller();
        }
        self.shared.helper.begin(ctx.waker());
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if matches!(event, Event::Cancel(_)) {
                out.defer_cancel();
            }
        }
        let core = self.shared.core.upgrade();
        let scheduler = core.and_then(|core| core.base.scheduler.upgrade());
        let Some(scheduler) = scheduler.filter(|_| !self.shared.helper.must_end()) else {
            out.done(());
            return Ok(());
        };
        let now = Base::now();
        let waiting = self.take(&scheduler, now);
        let address = lock(&self.shared.state).address.clone();
        for (op, reply) in waiting {
            match &address {
                Some(address) => self.shared.send(address, op, reply),
                None => reply.answer(Err(StoreError::Unavailable(
                    format!("no registrar is at the node {}", self.shared.node).into(),
                ))),
            }
        }
        self.look(&scheduler, now);
        self.ask(now);
        out.cancel(TIMER);
        // The answer to the question for the registrar wakes the process by itself.
        let waits = self.is_looking || self.watches.is_empty();
        if let Some(at) = self.retry.filter(|_| !waits) {
            out.sleep(at.since(now), TIMER);
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.is_over = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for (_, reply) in waiting {
            reply.answer(Err(over()));
        }
        for watch in self.watches.values_mut() {
            watch.lose();
            if let Some(asking) = watch.asking.take() {
                asking.give_up();
            }
        }
        self.shared.helper.over();
    }
}

fn over() -> StoreError {
    StoreError::Unavailable("the node has left".into())
}

/// The store of a node.
struct AtRegistrar(Arc<Shared>);

impl Store for AtRegistrar {
    fn apply(&self, op: StoreOp, reply: StoreReply) {
        if let Err(error) = op.check() {
            return reply.answer(Err(error));
        }
        let mut state = lock(&self.0.state);
        if let Some(address) = state.address.clone() {
            drop(state);
            self.0.send(&address, op, reply);
        } else if state.is_over || state.waiting.len() >= MAX_WAITING {
            drop(state);
            reply.answer(Err(over()));
        } else {
            state.waiting.push((op, reply));
            drop(state);
            self.0.helper.wake();
        }
    }

    fn watch(&self, prefix: &str, watcher: StoreWatcher) -> StoreWatch {
        let mut state = lock(&self.0.state);
        state.number += 1;
        let number = state.number;
        let watch = Watch {
            prefix: prefix.into(),
            watcher,
            after: None,
            is_lost: false,
            asking: None,
        };
        state.begun.push((number, watch));
        drop(state);
        self.0.helper.wake();
        let weak = Arc::downgrade(&self.0);
        StoreWatch::new(move || {
            if let Some(shared) = weak.upgrade() {
                lock(&shared.state).ended.push(number);
                shared.helper.wake();
            }
        })
    }

    fn describe(&self) -> String {
        let node = self.0.node;
        format!("a registrar at {node}: a single authority, not available without this node")
    }
}

type Answered<T> = Box<dyn FnOnce(Result<T, CommandError>) + Send>;

/// A question whose answer goes to a function.
struct Callback<T> {
    done: Mutex<Option<Answered<T>>>,
    /// To be called when the answer is unwanted.
    ends: Mutex<Vec<Weak<EndCall>>>,
}

impl<T: Any + Send> Callback<T> {
    fn new(done: impl FnOnce(Result<T, CommandError>) + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            done: Mutex::new(Some(Box::new(done))),
            ends: Mutex::default(),
        })
    }

    fn reply(self: &Arc<Self>) -> Reply<T> {
        let sink = Arc::clone(self);
        Reply::new(Completer::new(sink, 0, 0))
    }

    fn finish(&self, answer: Result<T, CommandError>) {
        let done = lock(&self.done).take();
        if let Some(done) = done {
            done(answer);
        }
    }

    /// Answers before the refused question is dropped.
    fn refuse(&self, answer: T) {
        self.finish(Ok(answer));
    }

    /// Gives the answer up, as unwanted.
    fn give_up(&self) {
        drop(lock(&self.done).take());
        let ends = std::mem::take(&mut *lock(&self.ends));
        for end in ends.iter().filter_map(Weak::upgrade) {
            end.call();
        }
    }
}

impl<T: Any + Send> CompletionSink for Callback<T> {
    fn complete(self: Arc<Self>, _: Tag, _: u64, result: Result<Payload, CommandError>) {
        self.finish(result.and_then(|value| Ok(value.take()?)));
    }

    fn pid(&self) -> Option<Pid> {
        None
    }

    fn is_cancelled(&self, _: u64) -> bool {
        lock(&self.done).is_none()
    }

    fn on_end(self: Arc<Self>, _: u64, call: Weak<EndCall>) -> bool {
        let done = lock(&self.done);
        if done.is_none() {
            return false;
        }
        lock(&self.ends).push(call);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: B27
    #[test]
    fn a_failed_answer_to_a_write_says_nothing_of_the_write() {
        let failed = || CommandError::Failed("the answer is lost".into());
        assert_eq!(lost(&failed(), false), StoreError::Unknown);
        assert!(matches!(lost(&failed(), true), StoreError::Unavailable(_)));
        // No process has had the question.
        let gone = CommandError::Ended(ExitCause::NotFound);
        assert!(matches!(lost(&gone, false), StoreError::Unavailable(_)));
    }
}
