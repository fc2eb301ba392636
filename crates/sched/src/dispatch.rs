//! Handing yields to handlers.
//!
//! While a handler is on this thread's stack, what happens to its completer there is caught instead
//! of going through the mailbox: an answer needs no atomic operation then, and when the handler
//! drops its completer and returns an error, or panics, the completion says so rather than that
//! the completer was dropped.

use crate::Task;
use crate::answer::AnswerPlace;
use crate::cell::ProcessCell;
use crate::contain::{contain, discard, discard_each, log, text_of_chain};
use crate::core::{Core, Item};
use crate::stats::Counters;
use ganger_mpsc::Batch;
use ganger_proc_api::{
    Command, CommandError, CommandId, Completer, Completion, Event, Placed, StepOutput, Tag,
};
use std::cell::Cell;
use std::sync::Arc;
use std::{mem, ptr};
use tracing::Level;

thread_local! {
    /// The innermost of the handlers' calls on this thread's stack, or null. Without a destructor: a
    /// destructor of another thread-local may drop a completer.
    static CURRENT: Cell<*const Call<'static>> = const { Cell::new(ptr::null()) };
}

/// A handler that is on this thread's stack.
struct Call<'a> {
    /// The process whose yield it is; only compared.
    cell: *const ProcessCell,
    tag: Tag,
    token: u64,
    answer: Cell<Answer>,
    /// For the completion; empty before.
    place: &'a AnswerPlace,
    /// The reference to the process that came with it.
    task: Cell<Option<Task>>,
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
pub(crate) fn complete(task: Task, completion: Completion) {
    // SAFETY: it is used here only.
    match unsafe { current(&task, completion.token()) } {
        Some(call) if !task.state.has_events() => {
            task.shared.accounts.accept_inline(task.pid, &completion);
            // SAFETY: it was empty before the handler was called, whose completer is the only one, and is used
            // once; nobody looks there before it has returned.
            unsafe { call.place.fill(completion) };
            call.answer.set(Answer::Given);
            call.task.set(Some(task));
        }
        Some(call) => {
            call.answer.set(Answer::Sent);
            task.complete_behind(completion);
        }
        None => task.complete_behind(completion),
    }
}

/// Notes that the completer of the handler that is on this thread's stack was dropped; if it is another's,
/// the completion goes through the mailbox.
pub(crate) fn complete_dropped(task: Task, tag: Tag, token: u64) {
    // SAFETY: it is used here only.
    if let Some(call) = unsafe { current(&task, token) } {
        call.answer.set(Answer::Dropped);
        call.task.set(Some(task));
        return;
    }
    let result = Err(CommandError::Dropped);
    task.complete_behind(Completion::of(tag, token, result));
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

    /// The turn is over.
    #[inline]
    pub(crate) fn end(&mut self, core: &mut Core) {
        self.put_back(core);
        self.answers = 0;
    }
}

/// Dispatches the yields in `out`, in order.
#[inline]
pub(crate) fn dispatch(
    task: &Task,
    core: &mut Core,
    out: &mut StepOutput,
    inline: &mut Inline,
    counters: &Counters,
) {
    if !out.yields().is_empty() {
        dispatch_all(task, core, out, inline, counters);
    }
}

#[inline(never)]
fn dispatch_all(
    task: &Task,
    core: &mut Core,
    out: &mut StepOutput,
    inline: &mut Inline,
    counters: &Counters,
) {
    let mut yields = out.drain_yields();
    let mut carry_out = |command: Placed<'_, Command>, tag| {
        dispatch_one(task, core, inline, counters, command, tag);
    };
    while yields.next_with(&mut carry_out).is_some() {}
}

#[inline]
fn dispatch_one(
    task: &Task,
    core: &mut Core,
    inline: &mut Inline,
    counters: &Counters,
    command: Placed<'_, Command>,
    tag: Tag,
) {
    counters.yields.bump();
    let token = core.yields.number();
    task.shared.accounts.begin_yield(task.pid, token, tag);
    #[cfg(feature = "sim")]
    crate::sim::note_yield(command.get().id, tag);
    // What has arrived before its answer stays before it, and so does an answer to another yield.
    core.receive(&task.state);
    inline.put_back(core);
    let sink = (core.itself.take()).unwrap_or_else(|| Arc::clone(task));
    let call = Call {
        cell: Arc::as_ptr(task),
        tag,
        token,
        answer: Cell::new(Answer::Later),
        place: &inline.place,
        task: Cell::new(None),
    };
    let id = command.get().id;
    let error = call.make(task, command, sink, counters);
    let answer = call.answer.get();
    core.itself = call.task.into_inner();
    match (answer, error) {
        (Answer::Given, error) => {
            if let Some(error) = error {
                give_reason(task, id, inline.place.get_mut(), error, counters);
            }
            inline.settle(core);
        }
        (Answer::Later | Answer::Sent, None) => core.yields.insert(token),
        (Answer::Sent, Some(error)) => {
            core.yields.insert(token);
            report_late(task, id, error, counters);
        }
        (answer @ (Answer::Dropped | Answer::Later), error) => {
            if answer == Answer::Later {
                task.shared.accounts.answer();
            }
            task.shared.accounts.accept_answer(task.pid, tag, token);
            // It happened when the handler returned, after whatever that has sent.
            core.receive(&task.state);
            let result = Err(error.unwrap_or(CommandError::Dropped));
            // SAFETY: it was empty before the handler was called, and there has been no answer; nobody looks
            // there.
            unsafe { inline.place.fill(Completion::of(tag, token, result)) };
            inline.settle(core);
        }
    }
}

impl Call<'_> {
    /// Calls the handler. Returns its error, if there is one.
    #[inline]
    fn make(
        &self,
        task: &Task,
        command: Placed<'_, Command>,
        sink: Task,
        counters: &Counters,
    ) -> Option<CommandError> {
        let id = command.get().id;
        let Some(handler) = task.shared.commands.get(id) else {
            return Some(self.make_none(command.take(), sink, counters));
        };
        let outer = self.enter();
        // SAFETY: this is no other one.
        let returned =
            contain(|| unsafe { handler.handle_placed(command, sink, self.tag, self.token) });
        CURRENT.set(outer);
        match returned {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(CommandError::Failed(error)),
            Err(message) => {
                counters.panics.bump();
                log(Level::ERROR, || {
                    tracing::error!(
                        target: "ganger::sched", pid = %task.pid, command = %id, reason = %message,
                        "contained a panic of a handler"
                    );
                });
                Some(CommandError::Panicked(message))
            }
        }
    }

    /// Makes it the innermost one; returns what was that before.
    #[inline]
    fn enter(&self) -> *const Call<'static> {
        CURRENT.replace(ptr::from_ref(self).cast())
    }

    /// What there is to do when there is no handler.
    #[cold]
    fn make_none(&self, command: Command, sink: Task, counters: &Counters) -> CommandError {
        let pid = sink.pid;
        let completer = Completer::new(sink, self.tag, self.token);
        let outer = self.enter();
        discard(pid, counters, completer);
        CURRENT.set(outer);
        discard_each(pid, counters, command.payloads);
        CommandError::Unknown(command.id)
    }
}

/// The handler has failed after the answer. If that says no more than that nobody has answered, the error
/// takes its place.
#[cold]
fn give_reason(
    task: &Task,
    id: CommandId,
    completion: Option<&mut Completion>,
    error: CommandError,
    counters: &Counters,
) {
    if let Some(completion) = completion
        && matches!(completion.result, Err(CommandError::Dropped))
    {
        completion.result = Err(error);
    } else {
        report_late(task, id, error, counters);
    }
}

#[cold]
fn report_late(task: &Task, id: CommandId, error: CommandError, counters: &Counters) {
    log(Level::WARN, || {
        tracing::warn!(
            target: "ganger::sched", pid = %task.pid, command = %id, error = %text_of_chain(&error),
            "a handler reported an error after it had completed the command"
        );
    });
    discard(task.pid, counters, error);
}
