//! Handing yields to handlers.
//!
//! While a handler is on this thread's stack, what happens to its completer there is caught instead
//! of going through the mailbox: an answer needs no atomic operation then, and when the handler
//! drops its completer and returns an error, or panics, the completion says so rather than that
//! the completer was dropped.

mod conclude;

use self::conclude::{Failure, conclude};
use crate::Task;
use crate::answer::AnswerPlace;
use crate::cell::ProcessCell;
use crate::contain::{contain, discard, discard_each};
use crate::core::{Core, Item};
use crate::nodes::{self, CommandResult};
use crate::stats::Counters;
use crate::turns::Turning;
use ganger_mpsc::{Batch, Single};
use ganger_proc_api::{
    BoxError, Command, CommandError, Completer, Completion, Event, Handler, Placed, StepOutput, Tag,
};
use std::cell::Cell;
use std::sync::Arc;
use std::{mem, ptr};

thread_local! {
    /// The innermost of the handlers' calls on this thread's stack, or null. Without a destructor: a
    /// destructor of another thread-local may drop a completer.
    static CURRENT: Cell<*const Call<'static>> = const { Cell::new(ptr::null()) };
}

/// A handler that is on this thread's stack.
struct Call<'a> {
    /// The process whose yield it is; only compared.
    cell: *const ProcessCell,
    token: u64,
    /// But for [`Answer::Given`], which its place says.
    answer: Cell<Answer>,
    /// For the completion; empty before.
    place: &'a AnswerPlace,
}

/// What has become of a completer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It has been used.
    Given,
    /// It has been used, and the answer has gone through the mailbox.
    Sent,
    /// It has been dropped unused.
    Dropped,
    /// Somebody may have it.
    Later,
}

/// The handler that is on this thread's stack, if the process and the token are those of its yield.
///
/// # Safety
/// The result is not used after the caller has returned.
#[inline]
unsafe fn current<'a>(task: &Task, token: u64) -> Option<&'a Call<'a>> {
    // SAFETY: null, or a call on this thread's stack, whose handler has not returned: `make` puts back what
    // was there before.
    unsafe { CURRENT.get().as_ref() }
        .filter(|call| call.cell == Arc::as_ptr(task) && call.token == token)
}

/// Keeps the completion when it belongs to the handler that is on this thread's stack; else it goes
/// through the mailbox, and so does an answer that comes when the handler has already had something else
/// sent to the process, behind that.
#[inline]
pub(crate) fn complete(task: Task, tag: Tag, token: u64, result: CommandResult) {
    // SAFETY: it is used here only.
    match unsafe { current(&task, token) } {
        Some(call) if !task.state.has_events() => {
            task.shared.accounts.accept_answer(task.pid, tag, token);
            // SAFETY: it was empty before the handler was called, whose completer is the only one, and is used
            // once; nobody looks there before it has returned. The result is forgotten here.
            unsafe { call.place.fill(tag, token, &raw const result) };
            mem::forget(result);
            // The process has lent it.
            mem::forget(task);
        }
        call => {
            if let Some(call) = call {
                call.answer.set(Answer::Sent);
            }
            // SAFETY: the result is forgotten here.
            let answer = unsafe { nodes::of_completion(tag, token, &raw const result) };
            mem::forget(result);
            task.complete_behind(answer);
        }
    }
}

/// Notes that the completer of the handler that is on this thread's stack was dropped; if it is another's,
/// the completion goes through the mailbox.
pub(crate) fn complete_dropped(task: Task, tag: Tag, token: u64) {
    // SAFETY: it is used here only.
    if let Some(call) = unsafe { current(&task, token) } {
        call.answer.set(Answer::Dropped);
        // The process has lent it.
        mem::forget(task);
        return;
    }
    let completion = Completion::of(tag, token, Err(CommandError::Dropped));
    task.complete_behind(Single::of(Item::Event(Event::Completion(completion))));
}

/// What a dispatch leaves to the turn that it is a part of.
#[derive(Default)]
pub(crate) struct Inline {
    /// A completion that came before its handler returned, in front of all that is pending.
    pub(crate) place: AnswerPlace,
    /// How many more of these there are, with nothing else before them: so many are the first of what is
    /// pending.
    pub(crate) answers: usize,
}

impl Inline {
    /// An answer is in its place that comes after all that is pending: there it stays if there is nothing.
    #[inline]
    pub(crate) fn settle(&mut self, core: &mut Core) {
        if !core.pending.is_empty() {
            self.put_behind(core);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_behind(&mut self, core: &mut Core) {
        let answer = self.take(core);
        self.answers += usize::from(core.pending.len() == self.answers);
        core.pending.append(answer);
    }

    /// If there is an answer in its place, makes it the first of what is pending.
    #[inline]
    pub(crate) fn put_back(&mut self, core: &mut Core) {
        if self.place.is_full() {
            self.put_in_front(core);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_in_front(&mut self, core: &mut Core) {
        let mut answer = self.take(core);
        answer.append(mem::take(&mut core.pending));
        core.pending = answer;
        self.answers += 1;
    }

    /// The answer as an item, whose yield is outstanding.
    fn take(&mut self, core: &mut Core) -> Batch<Item> {
        if let Some(Event::Completion(answer)) = self.place.get() {
            core.yields.insert(answer.token());
        }
        self.place.take_item()
    }

    /// What is pending are no answers to the step that is next.
    #[inline]
    pub(crate) fn begin(&mut self) {
        // Most handlers' answers are in their place, if there are any. A look costs less than a store.
        if self.answers > 0 {
            self.answers = 0;
        }
    }

    /// The turn is over.
    #[inline]
    pub(crate) fn end(&mut self, core: &mut Core) {
        self.put_back(core);
    }
}

/// Dispatches the yields in `out`, in order. `IS_RARE`: few steps come here with any, so that what is done for one is
/// apart; where nearly all come with one, that is in one piece with the caller.
#[inline(always)]
pub(crate) fn dispatch<const IS_RARE: bool>(
    place: impl Turning,
    task: &Task,
    core: &mut Core,
    out: &mut StepOutput,
    inline: &mut Inline,
    counters: &Counters,
) {
    if out.yields().len() == 1 {
        let mut yields = out.drain_yields();
        if let Some((command, tag)) = yields.next_placed() {
            if IS_RARE {
                dispatch_apart(place, task, core, inline, counters, command, tag);
            } else {
                dispatch_one(place, task, core, inline, counters, command, tag);
            }
        }
    } else if !out.yields().is_empty() {
        dispatch_all(place, task, core, out, inline, counters);
    }
}

#[inline(never)]
fn dispatch_apart(
    place: impl Turning,
    task: &Task,
    core: &mut Core,
    inline: &mut Inline,
    counters: &Counters,
    command: Placed<'_, Command>,
    tag: Tag,
) {
    dispatch_one(place, task, core, inline, counters, command, tag);
}

#[inline(never)]
fn dispatch_all(
    place: impl Turning,
    task: &Task,
    core: &mut Core,
    out: &mut StepOutput,
    inline: &mut Inline,
    counters: &Counters,
) {
    let mut yields = out.drain_yields();
    while let Some((command, tag)) = yields.next_placed() {
        dispatch_apart(place, task, core, inline, counters, command, tag);
    }
}

#[inline(always)]
fn dispatch_one(
    place: impl Turning,
    task: &Task,
    core: &mut Core,
    inline: &mut Inline,
    counters: &Counters,
    command: Placed<'_, Command>,
    tag: Tag,
) {
    place.count(&counters.yields);
    let token = core.yields.number();
    task.shared.accounts.begin_yield(task.pid, token, tag);
    #[cfg(feature = "sim")]
    crate::sim::note_yield(command.get().id, tag);
    // What has arrived before its answer stays before it, and so does an answer to another yield.
    core.receive(&task.state);
    inline.put_back(core);
    let itself = core.itself.get_or_insert_with(|| Arc::clone(task));
    // SAFETY: it is lent, together with the completer. When that has been used or dropped before the handler returned,
    // the reference has been forgotten; otherwise the one here is, below, before anybody looks at it.
    let sink = unsafe { ptr::read(itself) };
    let call = Call {
        cell: Arc::as_ptr(task),
        token,
        answer: Cell::new(Answer::Later),
        place: &inline.place,
    };
    let id = command.get().id;
    let Some(handler) = place.handler(id) else {
        call.make_none(command.take(), sink, tag, counters);
        let (ids, failure) = ((id, tag, token), Some(Failure::Unknown));
        return conclude(task, core, inline, ids, Answer::Dropped, failure, counters);
    };
    let returned = call.make(handler, command, sink, tag);
    let answer = call.answer();
    if let Answer::Sent | Answer::Later = answer {
        mem::forget(core.itself.take());
    }
    if let Ok(Ok(())) = returned {
        if answer == Answer::Given {
            return inline.settle(core);
        }
        if answer != Answer::Dropped {
            return core.yields.insert(token);
        }
    }
    let failure = match returned {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Failure::Error(error)),
        Err(message) => Some(Failure::Panic(message)),
    };
    let ids = (id, tag, token);
    conclude(task, core, inline, ids, answer, failure, counters);
}

impl Call<'_> {
    /// Calls the handler.
    #[inline]
    fn make(
        &self,
        handler: &dyn Handler,
        command: Placed<'_, Command>,
        sink: Task,
        tag: Tag,
    ) -> Result<Result<(), BoxError>, Box<str>> {
        let outer = self.enter();
        // SAFETY: this is no other one.
        let returned = contain(|| unsafe { handler.handle_placed(command, sink, tag, self.token) });
        CURRENT.set(outer);
        returned
    }

    #[inline]
    fn answer(&self) -> Answer {
        if self.place.is_full() {
            Answer::Given
        } else {
            self.answer.get()
        }
    }

    /// Makes it the innermost one; returns what was that before.
    #[inline]
    fn enter(&self) -> *const Call<'static> {
        CURRENT.replace(ptr::from_ref(self).cast())
    }

    /// What there is to do when there is no handler.
    #[cold]
    #[inline(never)]
    fn make_none(&self, command: Command, sink: Task, tag: Tag, counters: &Counters) {
        let pid = sink.pid;
        let completer = Completer::new(sink, tag, self.token);
        let outer = self.enter();
        discard(pid, counters, completer);
        CURRENT.set(outer);
        discard_each(pid, counters, command.payloads);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
