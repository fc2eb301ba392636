//! Handing yields to handlers.
//!
//! While a handler is on this thread's stack, what happens to its completer there is caught instead
//! of going through the mailbox: an answer needs no atomic operation then, and when the handler
//! drops its completer and returns an error, or panics, the completion says so rather than that
//! the completer was dropped.

use crate::Task;
use crate::cell::ProcessCell;
use crate::contain::{contain, discard, discard_each, log, text_of};
use crate::core::{Core, Item};
use crate::stats::Counters;
use ganger_mpsc::Batch;
use ganger_proc_api::{
    Command, CommandError, CommandId, Completer, Completion, Event, Payload, Placed, StepOutput,
    Tag,
};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use tracing::Level;

thread_local! {
    /// The innermost of the handlers' calls on this thread's stack, or null. Without a destructor: a
    /// destructor of another thread-local may drop a completer.
    static CURRENT: Cell<*const Call> = const { Cell::new(ptr::null()) };
}

/// A handler that is on this thread's stack.
struct Call {
    /// The process whose yield it is; only compared.
    cell: *const ProcessCell,
    token: u64,
    answer: Cell<Answer>,
    /// The completion, when there is an answer: one event.
    completion: Cell<Batch<Item>>,
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
unsafe fn current<'a>(task: &Task, token: u64) -> Option<&'a Call> {
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
            call.completion.set(in_its_node(completion));
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

/// A batch of one completion.
#[inline]
fn in_its_node(completion: Completion) -> Batch<Item> {
    let unit = Completion::of(0, 0, Ok(Payload::UNIT));
    let mut batch = Batch::of(Item::Event(Event::Completion(unit)));
    if let Some(Item::Event(Event::Completion(place))) = batch.front_mut() {
        // To where it stays: an event with a completion in it would be built on the stack first.
        // SAFETY: a place for a completion; in the one that is there is nothing that has a destructor.
        unsafe { ptr::from_mut(place).write(completion) };
        return batch;
    }
    unreachable!("it has just been put there")
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
    /// How many completions came before their handlers returned, with nothing before them in the
    /// mailbox: so many are the first of what is pending.
    pub(crate) answers: usize,
    /// A reference to the process that its next completer may have: to count another one costs
    /// more than a short handler.
    spare: Option<Task>,
}

impl Inline {
    /// Puts a completion behind all that is pending.
    #[inline]
    fn add(&mut self, core: &mut Core, completion: Batch<Item>) {
        self.answers += usize::from(core.pending.len() == self.answers);
        core.pending.append(completion);
    }

    /// The turn is over.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.answers = 0;
        if self.spare.is_some() {
            self.spare = None;
        }
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
    let token = core.yields.begin();
    task.shared.accounts.begin_yield(task.pid, token, tag);
    // What has arrived before its answer stays before it.
    core.receive(&task.state);
    let sink = inline.spare.take().unwrap_or_else(|| Arc::clone(task));
    let completer = Completer::new(sink, tag, token);
    let call = Call {
        cell: Arc::as_ptr(task),
        token,
        answer: Cell::new(Answer::Later),
        completion: Cell::default(),
        task: Cell::new(None),
    };
    let id = command.get().id;
    let error = call.make(task, command, completer, counters);
    inline.spare = call.task.into_inner();
    match (call.answer.get(), error) {
        (Answer::Given, error) => {
            let mut completion = call.completion.into_inner();
            if let Some(error) = error {
                give_reason(task, id, &mut completion, error, counters);
            }
            inline.add(core, completion);
        }
        (Answer::Sent, Some(error)) => report_late(task, id, error, counters),
        (Answer::Later | Answer::Sent, None) => {}
        (answer @ (Answer::Dropped | Answer::Later), error) => {
            if answer == Answer::Later {
                task.shared.accounts.answer();
            }
            task.shared.accounts.accept_answer(task.pid, tag, token);
            // It happened when the handler returned, after whatever that has sent.
            core.receive(&task.state);
            let result = Err(error.unwrap_or(CommandError::Dropped));
            let completion = Completion::of(tag, token, result);
            inline.add(core, Batch::of(Item::Event(Event::Completion(completion))));
        }
    }
}

impl Call {
    /// Calls the handler. Returns its error, if there is one.
    #[inline]
    fn make(
        &self,
        task: &Task,
        command: Placed<'_, Command>,
        completer: Completer,
        counters: &Counters,
    ) -> Option<CommandError> {
        let id = command.get().id;
        let Some(handler) = task.shared.commands.get(id) else {
            return Some(self.make_none(command.take(), completer, counters));
        };
        let outer = CURRENT.replace(self);
        let returned = contain(|| handler.handle_placed(command, completer));
        CURRENT.set(outer);
        match returned {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(CommandError::Failed(error)),
            Err(message) => {
                counters.panics.bump();
                log(Level::ERROR, || {
                    tracing::error!(
                        target: "ganger::sched", pid = %task.pid, command = %id, %message,
                        "contained a panic of a handler"
                    );
                });
                Some(CommandError::Panicked(message))
            }
        }
    }

    /// What there is to do when there is no handler.
    #[cold]
    fn make_none(
        &self,
        command: Command,
        completer: Completer,
        counters: &Counters,
    ) -> CommandError {
        let outer = CURRENT.replace(self);
        drop(completer);
        CURRENT.set(outer);
        discard_each(counters, command.payloads);
        CommandError::Unknown(command.id)
    }
}

/// The handler has failed after the answer. If that says no more than that nobody has answered, the error
/// takes its place.
#[cold]
fn give_reason(
    task: &Task,
    id: CommandId,
    completion: &mut Batch<Item>,
    error: CommandError,
    counters: &Counters,
) {
    if let Some(Item::Event(Event::Completion(completion))) = completion.front_mut()
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
            target: "ganger::sched", pid = %task.pid, command = %id, error = %text_of(&error),
            "a handler reported an error after it had completed the command"
        );
    });
    discard(counters, error);
}
