//! A process of a key, around the process that the kind makes.
//!
//! **Protocol.** In its `init`, on the thread that sends the first message, the incarnation claims
//! its key and takes the message into its mailbox. In its first step without an older incarnation
//! it makes the process of the kind, and steps it from then on.
//!
//! **An idle process** is found by its own timer. The timer is set again when it fires and the
//! process has stepped meanwhile. So a step costs a flag. **To leave**, the process marks its
//! entry: see `table.rs`. Then it steps until two steps in a row are shown no event and have left
//! none: from then on its mailbox is empty and stays so. Then it cancels itself, so that its
//! clean-up is the clean-up of any process that is asked to finish.
//!
//! **A start that fails** ends the process, so that the messages in its mailbox are answered with
//! the cause. Before, it starts the next process of the key. The next process waits for the moment
//! of the next start, and keeps the number of failures. When no message has come by then, it
//! leaves, and nothing remains of the key.
//!
//! **A stop** tells all processes at a time, and processes that finish their work may ask this
//! process. So it takes the scheduler's word out of its events, and goes on until only keyed
//! processes live, or half of the time is over: then it leaves. The process looks by its timer, the
//! less often the more processes look.

use crate::shared::{Inner, Key, LEAVE, NotClaimed};
use crate::table::{Place, Slot};
use ganger_proc_api::CancelReason::Shutdown;
use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitCause, Payloads, Pid, Process, SendError, StepOutput,
    StepResult, Tag,
};
use ganger_sched::{Address, ContextExt, ExitAction, Handle, Instant};
use ganger_sync::sync::{Mutex, lock};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The tag of its own timer.
const TIMER: Tag = Tag::MAX - 1;

/// After this many steps without an event the mailbox counts as empty.
const EMPTY_STEPS: u8 = 2;

/// The pause of a process that can't leave, because a send is under way.
const SOON: Duration = Duration::from_millis(1);

/// The pause before a process first looks for other live processes, during a stop.
const LOOK: Duration = Duration::from_millis(5);

/// The wait of a start after the first failure.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest wait of a start.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The reason of the cancellation of a process that leaves.
const WHY: &str = "it is idle, or was told to leave its key";

/// The message that starts a process, on its way.
pub(crate) enum First<M> {
    Message(M),
    Sent,
    Refused(SendError),
}

/// How far a process has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The process waits for the end of the one before it, or for the moment of its start.
    Waiting,
    /// The process has been made, and has taken no message.
    Fresh,
    /// The process has taken a message.
    Up,
}

/// How far its leave has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    No,
    Asked,
    /// The process takes the rest of its mailbox.
    Draining,
    /// Its mailbox is empty, and it has cancelled itself.
    Cancelled,
}

/// The incarnation's own events that a step was shown.
#[derive(Default)]
struct Own {
    /// Its timer.
    has_fired: bool,
    /// The note that asks the process to leave.
    is_asked: bool,
    /// The scheduler's word of its stop.
    is_told: bool,
}

/// See the head of this file.
pub(crate) struct Incarnation<M, K> {
    inner: Arc<Inner<M, K>>,
    key: K,
    hash: u64,
    first: Option<Arc<Mutex<First<M>>>>,
    /// None before it has claimed its key.
    place: Option<Place>,
    process: Option<Box<dyn Process>>,
    stage: Stage,
    /// All processes of the key before it have ended.
    is_alone: bool,
    leave: Leave,
    /// Whether the process has stepped since its timer was set.
    is_used: bool,
    is_armed: bool,
    /// How many steps in a row were shown no event.
    empty_steps: u8,
    /// The number of failed starts before this start.
    failures: u32,
    not_before: Option<Instant>,
    /// The scheduler stops, and the process goes on until then at the latest.
    stops_at: Option<Instant>,
    /// The scheduler stops, and cancels the process then, whatever it has left.
    ends_at: Option<Instant>,
}

impl<M: Send + 'static, K: Key> Incarnation<M, K> {
    pub(crate) fn new(
        inner: Arc<Inner<M, K>>,
        key: K,
        hash: u64,
        first: Option<Arc<Mutex<First<M>>>>,
    ) -> Self {
        Self {
            inner,
            key,
            hash,
            first,
            place: None,
            process: None,
            stage: Stage::Waiting,
            is_alone: false,
            leave: Leave::No,
            is_used: false,
            is_armed: false,
            empty_steps: 0,
            failures: 0,
            not_before: None,
            stops_at: None,
            ends_at: None,
        }
    }

    /// Takes its own events out.
    fn take_own(&mut self, events: &mut Events<'_>) -> Own {
        let is_timer = |event: &Event| matches!(event, Event::Completion(it) if it.tag == TIMER);
        let has_fired = self.is_armed && events.take_new_where(is_timer).is_some();
        self.is_armed &= !has_fired;
        let mut own = Own {
            has_fired,
            ..Own::default()
        };
        // System events come first.
        if !matches!(
            events.peek(),
            None | Some(Event::Message(_) | Event::Completion(_))
        ) {
            let is_note = |event: &Event| matches!(event, Event::Exit(it) if it.tag == LEAVE);
            own.is_asked = events.take_where(is_note).is_some();
            if self.leave != Leave::Cancelled {
                let is_stop = |event: &Event| matches!(event, Event::Cancel(Shutdown));
                own.is_told = events.take_where(is_stop).is_some();
            }
        }
        own
    }

    fn arm(&mut self, time: Duration, out: &mut StepOutput) {
        if self.is_armed {
            out.cancel(TIMER);
        }
        self.is_armed = true;
        out.sleep(time, TIMER);
    }

    /// Marks its entry, unless a message is on its way. Then its timer is set.
    fn begin_to_leave(&mut self, ctx: &Context, out: &mut StepOutput) {
        let left = self
            .place
            .is_none_or(|it| self.inner.table.leave(it, ctx.pid()));
        if left {
            self.leave = Leave::Draining;
            out.step_again();
        } else {
            self.arm(SOON, out);
        }
    }

    /// Puts the leave off: the process has left events, and may wait for another event, which must
    /// come to it, unless a later process of its key has begun to wait. In a stop the process is
    /// cancelled when three quarters of the time are over, with the events that it has left.
    fn put_leave_off(&mut self, ctx: &Context, out: &mut StepOutput) {
        if let Some(at) = self.ends_at {
            if self.inner.timers.now() >= at {
                return self.cancel(ctx);
            }
            if !self.is_armed {
                self.is_armed = true;
                out.sleep_until(at, TIMER);
            }
        }
        let stays = (self.place).is_some_and(|it| self.inner.table.stay(it, ctx.pid()));
        if stays {
            self.leave = Leave::Asked;
        }
    }

    /// Steps without a process of the kind. Returns whether the process exists now.
    fn wait(
        &mut self,
        ctx: &Context,
        events: &Events<'_>,
        may_have_more: bool,
        out: &mut StepOutput,
    ) -> Result<bool, BoxError> {
        self.is_alone |= self.place.is_none_or(|it| self.inner.table.is_alone(it));
        // A cancelled process ends, by this step or by the next.
        let is_told = self.stops_at.is_some() && !matches!(events.peek(), Some(Event::Cancel(_)));
        if ctx.is_cancelled() && !is_told || !self.is_alone {
            return Ok(false);
        }
        if let Some(at) = self.not_before {
            if is_told {
                self.cancel(ctx);
                return Ok(false);
            }
            if self.inner.timers.now() < at {
                if !self.is_armed {
                    self.is_armed = true;
                    out.sleep_until(at, TIMER);
                }
                return Ok(false);
            }
            self.not_before = None;
        }
        if events.is_empty() && may_have_more {
            out.step_again();
            return Ok(false);
        }
        if events.is_empty() {
            // No message has come, so the process need not start.
            match self.leave {
                Leave::Draining => out.done(()),
                _ => self.begin_to_leave(ctx, out),
            }
            return Ok(false);
        }
        self.begin(ctx, out)?;
        Ok(true)
    }

    /// Takes note of the scheduler's stop. Live processes may ask this process until they have
    /// ended.
    fn be_told(&mut self, scheduler: Option<&Handle>) {
        let left = scheduler.and_then(Handle::time_to_stop).unwrap_or_default();
        let now = self.inner.timers.now();
        self.stops_at.get_or_insert(now + left / 2);
        self.ends_at.get_or_insert(now + left / 4 * 3);
    }

    /// Returns whether the time is over, or no other process lives that may ask this process.
    fn may_stop(&self, ctx: &Context, at: Instant) -> bool {
        let are_others = || {
            let live = ctx.scheduler().map_or(0, |it| it.stats().live);
            live > self.inner.keyed.count()
        };
        self.inner.timers.now() >= at || !are_others()
    }

    /// Sets the timer for the next look for other processes. The more processes look, the longer
    /// the wait.
    fn look_again(&mut self, out: &mut StepOutput) {
        let each = u64::try_from(self.inner.keyed.count()).unwrap_or(u64::MAX);
        self.arm(LOOK + Duration::from_micros(each), out);
    }

    fn cancel(&mut self, ctx: &Context) {
        self.leave = Leave::Cancelled;
        let reason = match self.stops_at {
            Some(_) => Shutdown,
            None => WHY.into(),
        };
        // The process is found: this is its own step.
        let _found = ctx.cancel(ctx.pid(), reason);
    }

    /// Makes the process of the kind.
    fn begin(&mut self, ctx: &Context, out: &mut StepOutput) -> Result<(), BoxError> {
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut process = (self.inner.make)(&self.key, ctx);
            process.init(ctx, &self.inner.name, Payloads::new())?;
            Ok::<_, BoxError>(process)
        }));
        match begun {
            Ok(Ok(process)) => self.process = Some(process),
            Ok(Err(error)) => {
                self.begin_again_later(ctx.pid());
                return Err(error);
            }
            Err(panic) => {
                self.begin_again_later(ctx.pid());
                resume_unwind(panic);
            }
        }
        self.stage = Stage::Fresh;
        if let (Some(idle), None) = (self.inner.idle, self.stops_at) {
            self.arm(idle, out);
        }
        Ok(())
    }

    /// Starts another process after a failed start, which waits for the moment of the next start.
    fn begin_again_later(&self, pid: Pid) {
        let Some(place) = self.place.filter(|_| self.stops_at.is_none()) else {
            return;
        };
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let wait = FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
        self.inner.table.give_up(place, pid);
        let next = Self {
            failures: self.failures.saturating_add(1),
            not_before: Some(self.inner.timers.now() + wait),
            ..Self::new(Arc::clone(&self.inner), self.key.clone(), self.hash, None)
        };
        if let Err(error) = self.inner.start(next) {
            tracing::debug!(
                target: "ganger::keyed", kind = %self.inner.name, %pid, %error,
                "no process waits for the next start"
            );
        }
    }

    /// Steps the process of the kind.
    fn step_inside(
        &mut self,
        ctx: &Context,
        events: &mut Events<'_>,
        out: &mut StepOutput,
    ) -> StepResult {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        if self.stage == Stage::Up {
            return process.step(ctx, events, out);
        }
        // A failure before the first message is a failure of the start.
        let before = messages(events);
        let stepped = catch_unwind(AssertUnwindSafe(|| process.step(ctx, events, out)));
        if messages(events) < before {
            self.stage = Stage::Up;
            self.failures = 0;
        } else if !matches!(stepped, Ok(Ok(()))) {
            self.begin_again_later(ctx.pid());
        }
        stepped.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Counts the messages. O(events).
fn messages(events: &mut Events<'_>) -> usize {
    let mut count = 0;
    let none = events.take_where(|event| {
        count += usize::from(event.message().is_some());
        false
    });
    debug_assert!(none.is_none());
    count
}

impl<M: Send + 'static, K: Key> Process for Incarnation<M, K> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        ctx.accept_only::<M>();
        let address: Address<M> = ctx.address()?;
        let slot = Arc::new(Slot {
            key: self.key.clone(),
            address: address.clone(),
        });
        let claimed = self.inner.table.claim(self.hash, slot);
        let (place, before) = claimed.ok_or(NotClaimed::Taken)?;
        self.place = Some(place);
        self.inner.keyed.add();
        let scheduler = ctx.scheduler();
        if scheduler.as_ref().is_some_and(|it| it.is_stopping()) {
            // A process started by a process in its stop does not get the scheduler's word itself.
            self.be_told(scheduler.as_ref());
        }
        let inner = Arc::clone(&self.inner);
        // The process has not ended: its submitter has it.
        let _added = (address.untyped()).add_exit_action(Box::new(Gone { inner, place }));
        // The destructor of a key may panic: by now the end of this process is told.
        drop(before);
        if let Some(first) = self.first.take() {
            let message = mem::replace(&mut *lock(&first), First::Sent);
            if let First::Message(message) = message
                && let Err(refused) = address.send(message)
            {
                *lock(&first) = First::Refused(refused);
            }
        }
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let all = events.len();
        let own = self.take_own(events);
        if own.is_told {
            out.defer_cancel();
            self.be_told(ctx.scheduler().as_ref());
        }
        if own.is_asked && self.leave == Leave::No {
            self.leave = Leave::Asked;
        }
        let shown = events.len();
        // Its own events and wake-ups may fill a batch, and messages be behind them.
        self.empty_steps = if all == 0 {
            self.empty_steps.saturating_add(1)
        } else {
            0
        };
        let may_have_more = self.empty_steps < EMPTY_STEPS;
        if self.process.is_none() && !self.wait(ctx, events, may_have_more, out)? {
            return Ok(());
        }
        self.step_inside(ctx, events, out)?;
        if out.is_final() {
            return Ok(());
        }
        let left = events.len();
        match self.leave {
            Leave::No => match (self.stops_at, self.inner.idle) {
                (Some(at), _) if own.has_fired && self.may_stop(ctx, at) => {
                    self.leave = Leave::Asked;
                    if left == 0 {
                        self.begin_to_leave(ctx, out);
                    } else {
                        self.put_leave_off(ctx, out);
                    }
                }
                (Some(_), _) if own.has_fired || own.is_told || !self.is_armed => {
                    self.look_again(out);
                }
                (None, Some(idle)) => {
                    self.is_used |= shown > 0 || left > 0 || !own.has_fired;
                    if own.has_fired && mem::take(&mut self.is_used) {
                        self.arm(idle, out);
                    } else if own.has_fired {
                        self.begin_to_leave(ctx, out);
                    }
                }
                _ => {}
            },
            // The process takes its left events first: otherwise the event that it waits for goes
            // to the next process.
            Leave::Asked if left > 0 => self.put_leave_off(ctx, out),
            Leave::Asked => self.begin_to_leave(ctx, out),
            Leave::Draining if left > 0 => self.put_leave_off(ctx, out),
            Leave::Draining if may_have_more => out.step_again(),
            Leave::Draining => self.cancel(ctx),
            Leave::Cancelled => {}
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(process) = &mut self.process {
            process.close();
        }
    }

    fn namer(&self) -> fn() -> &'static str {
        self.inner.namer
    }
}

/// Takes the process out of the table when it has ended.
struct Gone<M, K> {
    inner: Arc<Inner<M, K>>,
    place: Place,
}

impl<M: Send + 'static, K: Key> ExitAction for Gone<M, K> {
    /// Runs when all registrations of the process, such as a name, are free for the next process.
    fn tell(self: Box<Self>, pid: Pid, _: &ExitCause) {
        self.inner.keyed.subtract();
        self.inner.table.release(self.place, pid);
    }
}
