//! Restart in place: a process fails, and its successor takes the place under the same PID.
//!
//! **Problem.** After an ordinary restart the child is another process. Its callers must ask for
//! the new address, and the messages of its mailbox are lost.
//!
//! **Protocol.** The process that the scheduler sees is a [`Place`], which steps the child's
//! incarnation. When the incarnation fails, the place closes and drops it, and asks for an upgrade
//! to another place with a new incarnation. So the PID, the mailbox with its order, names, monitors
//! and handles stay, and completions for the old incarnation are stale: the scheduler's promise of
//! upgrades. The scheduler runs the exit actions of the incarnation before the next incarnation
//! begins.
//!
//! 1. A failure counts in the supervisor's window. When the window permits no restart, the place
//!    fails as the incarnation did, and the supervisor learns of the failure by its monitor.
//! 2. A cancelled process is not restarted.
//! 3. Replies dropped by the failing step or the incarnation answer with the cause.
//! 4. While the place waits before a restart, it has no incarnation. The place then takes no event
//!    but its own timer, so that all events stay in order.

use crate::log::{contain, log, text_of};
use crate::plan::{BackOff, ChildId, Streak, Window};
use crate::view::{ChildState, View, ViewOf};
use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::{
    Actor, BoxError, Completion, Context, Event, Events, ExitCause, Payloads, Process, StepOutput,
    StepResult, Tag, UpgradeRequest, WrongType,
};
use ganger_sched::internal::ContextInternals as _;
use ganger_sched::{ContextExt, Instant};
use ganger_sync::failing;
use ganger_sync::sync::{Mutex, lock};
use ganger_time::Timers;
use std::any::{Any, type_name};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// The tag of a place's own timer.
const DUE: Tag = Tag::MAX;

/// The message that a failed process was receiving, and the number of its earlier tries.
pub(crate) type Killer = Box<dyn Any + Send>;

/// A life of a child.
pub(crate) trait Incarnation: Send {
    fn process(&mut self) -> &mut dyn Process;

    /// Takes the message in hand, if it is known.
    fn take_killer(&mut self) -> Option<Killer> {
        None
    }

    /// Gives the message back, to receive it first of all, or to give it up for the cause.
    fn give(&mut self, killer: Killer, cause: &str) {
        let _ = (killer, cause);
    }
}

impl Incarnation for Box<dyn Process> {
    fn process(&mut self) -> &mut dyn Process {
        &mut **self
    }
}

pub(crate) type MakeIncarnation =
    Arc<dyn Fn() -> Result<Box<dyn Incarnation>, BoxError> + Send + Sync>;

/// The state that the incarnations of a child share.
pub(crate) struct Site {
    pub(crate) make: MakeIncarnation,
    pub(crate) id: ChildId,
    pub(crate) window: Arc<Mutex<Window>>,
    pub(crate) view: Arc<View>,
    pub(crate) view_of: ViewOf,
    pub(crate) timers: Timers,
    pub(crate) back_off: Option<BackOff>,
}

/// See the head of this file.
pub(crate) struct Place {
    site: Arc<Site>,
    incarnation: Option<Box<dyn Incarnation>>,
    streak: Streak,
    /// The failure of the predecessor; `None` for the first incarnation.
    before: Option<Before>,
    /// Without an incarnation: the time of the next start.
    due: Instant,
    /// The timer runs.
    is_armed: bool,
}

struct Before {
    killer: Option<Killer>,
    cause: ExitCause,
}

impl Place {
    pub(crate) fn new(site: Site) -> Self {
        Self {
            site: Arc::new(site),
            incarnation: None,
            streak: Streak::default(),
            before: None,
            due: Instant::NEVER,
            is_armed: false,
        }
    }

    /// Makes an incarnation and calls its `init`.
    fn begin(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let begun = contain(|| {
            let mut incarnation = (self.site.make)()?;
            if (self.site.view_of)(incarnation.process()).is_some() {
                let error = "a supervisor can't be restarted in place: its children would stay";
                return Err(error.into());
            }
            incarnation.process().init(ctx, "main", Payloads::new())?;
            if let Some(before) = &mut self.before
                && let Some(killer) = before.killer.take()
            {
                incarnation.give(killer, &before.cause.to_string());
            }
            Ok::<_, BoxError>(incarnation)
        });
        match begun {
            Ok(begun) => self.incarnation = Some(begun?),
            Err(message) => return Err(format!("the start panicked: {message}").into()),
        }
        ctx.incarnation_begun();
        self.streak.started(self.site.timers.now());
        // The supervisor itself notes that the first incarnation runs.
        if self.before.is_some() {
            self.site.view.change(self.site.id, |entry| {
                if entry.state == ChildState::Waits {
                    entry.state = ChildState::Runs;
                }
            });
        }
        Ok(())
    }

    /// Counts a failure. Returns the time of the restart, if the window permits a restart.
    fn permit(&mut self, ctx: &Context, cause: &dyn fmt::Display) -> Option<Instant> {
        let now = self.site.timers.now();
        if ctx.is_cancelled() || !lock(&self.site.window).permits(now) {
            return None;
        }
        // Any number from 0 to 1 will do.
        let chance = (now.as_nanos() ^ ctx.pid().id()) % 1_000;
        let wait = self
            .streak
            .failed(now, self.site.back_off, chance as f64 / 999.0);
        log(|| {
            tracing::warn!(
                target: "ganger::supervise", supervisor = %self.site.view.label,
                child = %self.site.view.name(self.site.id), pid = %ctx.pid(), %cause,
                "failed, and is restarted in place"
            );
        });
        Some(now.after(wait))
    }

    /// Closes the failed incarnation, and asks for the next incarnation, if the window permits a
    /// restart.
    fn replace(&mut self, ctx: &Context, cause: ExitCause, out: &mut StepOutput) -> bool {
        let Some(due) = self.permit(ctx, &cause) else {
            return false;
        };
        (self.site.view).tell_of_failure(self.site.id, ctx.pid(), &cause);
        let killer = self.incarnation.as_mut().and_then(|it| it.take_killer());
        self.close_and_drop();
        ctx.answer_dropped(&cause);
        self.site.view.change(self.site.id, |entry| {
            entry.restarts += 1;
            entry.last = Some(cause.clone());
            if entry.state == ChildState::Runs {
                entry.state = ChildState::Waits;
            }
        });
        let before = Before {
            killer,
            cause: cause.clone(),
        };
        // The outcome that the step may have written before its failure.
        drop(out.take_outcome());
        self.give_way_to(before, due, cause, out);
        true
    }

    /// Asks for the upgrade to the next place, which begins after `before`. The registrations of
    /// the incarnation go.
    fn give_way_to(&self, before: Before, due: Instant, cause: ExitCause, out: &mut StepOutput) {
        let next = Self {
            site: Arc::clone(&self.site),
            incarnation: None,
            streak: self.streak,
            before: Some(before),
            due,
            is_armed: false,
        };
        out.upgrade(UpgradeRequest::restart(next, "main", cause));
    }

    fn close_and_drop(&mut self) {
        if let Some(mut incarnation) = self.incarnation.take() {
            // The incarnation's locks are marked.
            failing::within(true, || {
                // Each call alone. The scheduler would report a panic of `close`; here the failure
                // has been reported.
                let _ = contain(|| incarnation.process().close());
                let _ = contain(|| drop(incarnation));
            });
        }
    }

    /// Takes a step without an incarnation. Returns whether the place has an incarnation now.
    fn wait(
        &mut self,
        ctx: &Context,
        events: &mut Events<'_>,
        out: &mut StepOutput,
    ) -> Result<bool, BoxError> {
        let is_own = |event: &Event| matches!(event, Event::Completion(it) if it.tag == DUE);
        if events.take_where(is_own).is_some() {
            self.is_armed = false;
        }
        if self.site.timers.now() < self.due {
            if !self.is_armed {
                out.sleep_until(self.due, DUE);
                self.is_armed = true;
            }
            return Ok(false);
        }
        if self.is_armed {
            out.cancel(DUE);
            self.is_armed = false;
        }
        let Err(error) = self.begin(ctx) else {
            return Ok(true);
        };
        let cause = ExitCause::Failed(text_of(&*error).into());
        let Some(due) = self.permit(ctx, &cause) else {
            return Err(error);
        };
        if let Some(before) = self.before.take() {
            self.give_way_to(before, due, cause, out);
        }
        Ok(false)
    }
}

impl Process for Place {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if self.before.is_none() {
            ctx.begin_incarnations();
            return self.begin(ctx);
        }
        // The next incarnation begins in a step: if its `init` fails, its registrations go again.
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.incarnation.is_none() && !self.wait(ctx, events, out)? {
            return Ok(());
        }
        let Some(incarnation) = &mut self.incarnation else {
            return Ok(());
        };
        let process = incarnation.process();
        match catch_unwind(AssertUnwindSafe(|| process.step(ctx, events, out))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let cause = ExitCause::Failed(text_of(&*error).into());
                if self.replace(ctx, cause, out) {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            Err(panic) => {
                let cause = ExitCause::Panicked(crate::log::message(&*panic).into());
                if !self.replace(ctx, cause, out) {
                    resume_unwind(panic);
                }
                Ok(())
            }
        }
    }

    fn close(&mut self) {
        if let Some(incarnation) = &mut self.incarnation {
            incarnation.process().close();
        }
    }
}

/// The policy for the message that made its receiver fail, when the receiver is [restarted in
/// place](crate::ChildSpec::poison).
///
/// The default is to skip the message.
pub struct Poison<M> {
    retries: u32,
    dead_letter: Option<DeadLetter<M>>,
}

type DeadLetter<M> = Arc<dyn Fn(M, &str) + Send + Sync>;

impl<M> Poison<M> {
    /// Skips the message.
    #[must_use]
    pub fn skip() -> Self {
        Self::retry(0)
    }

    /// Gives the message to each new incarnation first of all, up to `times` times.
    #[must_use]
    pub fn retry(times: u32) -> Self {
        Self {
            retries: times,
            dead_letter: None,
        }
    }

    /// Calls `f` with the message and the cause after the last try, before the incarnation receives
    /// the next message. `f` should be short.
    #[must_use]
    pub fn dead_letter(mut self, f: impl Fn(M, &str) + Send + Sync + 'static) -> Self {
        self.dead_letter = Some(Arc::new(f));
        self
    }
}

impl<M> Clone for Poison<M> {
    fn clone(&self) -> Self {
        Self {
            retries: self.retries,
            dead_letter: self.dead_letter.clone(),
        }
    }
}

impl<M> fmt::Debug for Poison<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poison")
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// The part of a message that is kept while the actor receives it, and the way back to a message,
/// if any.
pub(crate) struct Note<M, N> {
    note: Arc<dyn Fn(&M) -> N + Send + Sync>,
    back: fn(N) -> Result<M, N>,
}

impl<M: Clone + 'static> Note<M, M> {
    /// Creates notes that are copies of the message.
    pub(crate) fn copy() -> Self {
        let note = Arc::new(M::clone);
        Self { note, back: Ok }
    }
}

impl<M, N> Note<M, N> {
    /// Creates notes that the user's function makes.
    pub(crate) fn by(note: impl Fn(&M) -> N + Send + Sync + 'static) -> Self {
        let note = Arc::new(note);
        Self { note, back: Err }
    }
}

impl<M, N> Clone for Note<M, N> {
    fn clone(&self) -> Self {
        let note = Arc::clone(&self.note);
        Self {
            note,
            back: self.back,
        }
    }
}

/// An actor that keeps a note of the message in hand.
pub(crate) struct Keeping<A: Actor, N> {
    actor: A,
    note: Note<A::Message, N>,
    poison: Poison<N>,
    /// The message in hand, and the number of its earlier tries.
    current: Option<(N, u32)>,
    /// The message to receive first.
    again: Option<(A::Message, u32)>,
}

impl<A: Actor, N: Send + 'static> Keeping<A, N> {
    pub(crate) fn new(actor: A, note: Note<A::Message, N>, poison: Poison<N>) -> Self {
        Self {
            actor,
            note,
            poison,
            current: None,
            again: None,
        }
    }

    fn receive(
        &mut self,
        ctx: &Context,
        message: A::Message,
        tries: u32,
        out: &mut StepOutput,
    ) -> StepResult {
        self.current = Some(((self.note.note)(&message), tries));
        self.actor.receive(ctx, message, out)?;
        self.current = None;
        Ok(())
    }

    fn take(
        &mut self,
        ctx: &Context,
        message: ganger_proc_api::Message,
        out: &mut StepOutput,
    ) -> StepResult {
        match message.take() {
            Ok(message) => self.receive(ctx, message, 0, out),
            Err(error) => self.mistaken(ctx, error, out),
        }
    }

    fn mistaken(&mut self, ctx: &Context, error: WrongType, out: &mut StepOutput) -> StepResult {
        self.actor.mistaken(ctx, error, out)
    }

    fn completed(&mut self, ctx: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        self.actor.completed(ctx, it, out)
    }
}

impl<A: Actor, N: Send + 'static> Process for Keeping<A, N> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        ctx.accept_only::<A::Message>();
        self.actor.init(ctx)
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if let Some((message, tries)) = self.again.take() {
            self.receive(ctx, message, tries, out)?;
        }
        while !out.is_final()
            && let Some(event) = events.next()
        {
            match event {
                Event::Message(message) => self.take(ctx, message, out)?,
                Event::Control(message) => self.take(ctx, *message, out)?,
                Event::Completion(completion) => self.completed(ctx, completion, out)?,
                Event::Cancel(reason) => self.actor.cancelled(ctx, reason, out)?,
                Event::Exit(notice) => self.actor.exited(ctx, *notice, out)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.actor.close();
    }

    fn namer(&self) -> fn() -> &'static str {
        type_name::<A>
    }
}

impl<A: Actor, N: Send + 'static> Incarnation for Keeping<A, N> {
    fn process(&mut self) -> &mut dyn Process {
        self
    }

    fn take_killer(&mut self) -> Option<Killer> {
        let again = self.again.take();
        let again = again.map(|(message, tries)| ((self.note.note)(&message), tries));
        let killer = self.current.take().or(again)?;
        Some(Box::new(killer))
    }

    fn give(&mut self, killer: Killer, cause: &str) {
        let Ok(killer) = killer.downcast::<(N, u32)>() else {
            return;
        };
        let (mut kept, tries) = *killer;
        if tries < self.poison.retries {
            match (self.note.back)(kept) {
                Ok(message) => {
                    self.again = Some((message, tries + 1));
                    return;
                }
                Err(note) => kept = note,
            }
        }
        if let Some(dead_letter) = &self.poison.dead_letter {
            dead_letter(kept, cause);
        }
    }
}
