//! What a task waits for: answers to its commands, and ends of the processes that it monitors.
//!
//! Each wait has a place in a table, and a tag that says where. A place is used again, with another
//! tag: a notice that comes for a wait that is over finds none.

use ganger_proc_api::{CancelReason, CommandError, Event, Events, ExitCause, Payload, Pid, Tag};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::task::Waker;

/// The end of a wait.
#[derive(Debug)]
pub(crate) enum Answer {
    Completion(Result<Payload, CommandError>),
    Exit(ExitCause),
}

/// A child of a scope has ended.
pub(crate) type Ended = (usize, ExitCause);

/// The waits of one task.
#[derive(Default)]
pub(crate) struct Waits {
    /// From the first wait on that is for more than a message: most tasks are small without it.
    table: Option<Box<Table>>,
    /// How many steps there have been.
    pub(crate) step: u64,
}

struct Table {
    /// Most tasks wait for one thing at a time.
    places: SmallVec<[Place; 1]>,
    /// The first of the places that are free, each of which knows the next one, or [`NONE`].
    free: u32,
    /// How many waits want a completion or a notice.
    open: usize,
    /// What to wake when a message or a cancellation has come, by the number in the wait's mark.
    watchers: BTreeMap<u64, Waker>,
    /// The number of the last watcher.
    last: u64,
    /// Why the task is asked to finish.
    cancel: Option<CancelReason>,
    /// How many events the last step has left.
    left: usize,
}

/// What a wait without a place in the table keeps about itself, in one word: nothing, the number
/// under which the table has its waker, or the last step in which the budget was spent before it.
#[derive(Debug, Default)]
pub(crate) struct Mark(u64);

impl Mark {
    fn watcher(number: u64) -> Self {
        Self(number << 1 | 1)
    }

    fn refused(step: u64) -> Self {
        Self(step << 1)
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the wait was refused in a step before that one.
    pub(crate) fn was_refused_before(&self, step: u64) -> bool {
        !self.is_watching() && self.0 != 0 && self.0 >> 1 < step
    }

    fn number(&self) -> Option<u64> {
        self.is_watching().then_some(self.0 >> 1)
    }
}

/// No place.
const NONE: u32 = u32::MAX;

struct Place {
    /// How many waits have had it.
    turn: u32,
    holds: Holds,
}

enum Holds {
    /// It is free; what is free next.
    Nothing(u32),
    /// A wait, for the end of a process or else for a completion. The waker is not the task's own.
    Wait {
        waker: Option<Waker>,
        of: Option<Pid>,
    },
    Answer(Answer),
    /// The end of a child, which goes into the line of its scope.
    Child {
        line: Tag,
        number: usize,
        /// Known when the child has started.
        pid: Option<Pid>,
    },
    /// The ends of children of a scope that it has not looked at.
    Line {
        ended: VecDeque<Ended>,
        waker: Option<Waker>,
    },
}

fn tag(turn: u32, index: u32) -> Tag {
    u64::from(turn) << 32 | u64::from(index)
}

/// Whether the end of that process is a child's: of any, if the child has not started.
fn is_of(child: Option<Pid>, ended: Option<Pid>) -> bool {
    ended.is_some() && (child.is_none() || child == ended)
}

/// Keeps the waker, unless what is kept wakes the same.
fn keep(kept: &mut Option<Waker>, waker: Option<&Waker>) {
    match (kept, waker) {
        (Some(kept), Some(waker)) => kept.clone_from(waker),
        (kept, waker) => *kept = waker.cloned(),
    }
}

/// The place that a tag says.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the upper half is the turn"
)]
fn index(tag: Tag) -> u32 {
    tag as u32
}

impl Waits {
    /// A step begins: takes all its events but messages.
    #[inline]
    pub(crate) fn begin(&mut self, events: &mut Events<'_>) {
        self.step += 1;
        if self.table.is_some() || !matches!(events.peek(), None | Some(Event::Message(_))) {
            self.table_mut().begin(events);
        }
    }

    /// The step is over.
    pub(crate) fn end(&mut self, events: &Events<'_>) {
        if let Some(table) = &mut self.table {
            table.left = events.len();
        }
    }

    /// Why the task is asked to finish.
    #[inline]
    pub(crate) fn cancel(&self) -> Option<&CancelReason> {
        self.table.as_ref()?.cancel.as_ref()
    }

    /// As [`cancel`](Self::cancel), at the end of the task.
    pub(crate) fn take_cancel(&mut self) -> Option<CancelReason> {
        self.table.as_mut()?.cancel.take()
    }

    fn table_mut(&mut self) -> &mut Table {
        self.table.get_or_insert_default()
    }

    /// A new wait: for the end of that process, or else for a completion.
    pub(crate) fn open(&mut self, waker: Option<&Waker>, of: Option<Pid>) -> Tag {
        let waker = waker.cloned();
        self.table_mut().insert(Holds::Wait { waker, of })
    }

    /// The wait is for the end of that process.
    #[cfg(feature = "sched")]
    pub(crate) fn wait_is_of(&mut self, tag: Tag, pid: Pid) {
        if let Some(Holds::Wait { of, .. }) = self.table_mut().place(tag) {
            *of = Some(pid);
        }
    }

    /// The answer to a wait, which is over then; otherwise `waker` is to be woken with it.
    pub(crate) fn take(&mut self, tag: Tag, waker: Option<&Waker>) -> Option<Answer> {
        self.table.as_mut()?.take(tag, waker)
    }

    /// The place is free. Says whether it still waited.
    pub(crate) fn close(&mut self, tag: Tag) -> bool {
        let holds = self.table.as_mut().and_then(|it| it.close(tag));
        holds.is_some_and(|it| it.is_open())
    }

    /// A line for the ends of children.
    pub(crate) fn open_line(&mut self) -> Tag {
        let (ended, waker) = (VecDeque::new(), None);
        self.table_mut().insert(Holds::Line { ended, waker })
    }

    /// A wait for the end of a child, which goes into that line.
    pub(crate) fn open_child(&mut self, line: Tag, number: usize) -> Tag {
        let pid = None;
        self.table_mut().insert(Holds::Child { line, number, pid })
    }

    /// The child has started, and may have ended.
    pub(crate) fn child_is(&mut self, tag: Tag, child: Pid) {
        if let Some(Holds::Child { pid, .. }) = self.table_mut().place(tag) {
            *pid = Some(child);
        }
    }

    /// The first in the line; otherwise `waker` is to be woken with it.
    pub(crate) fn next_ended(&mut self, line: Tag, with: Option<&Waker>) -> Option<Ended> {
        let Some(Holds::Line { ended, waker }) = self.table_mut().place(line) else {
            return None;
        };
        let first = ended.pop_front();
        if first.is_none() {
            keep(waker, with);
        }
        first
    }

    /// The waker is to be woken when a message or a cancellation has come. O(log watchers).
    pub(crate) fn watch(&mut self, mark: &mut Mark, waker: &Waker) {
        let table = self.table_mut();
        if let Some(kept) = mark.number().and_then(|it| table.watchers.get_mut(&it)) {
            kept.clone_from(waker);
            return;
        }
        table.last += 1;
        *mark = Mark::watcher(table.last);
        table.watchers.insert(table.last, waker.clone());
    }

    /// The waker of that wait is not to be woken any more.
    pub(crate) fn forget(&mut self, mark: &mut Mark) -> Option<Waker> {
        let number = mem::take(mark).number()?;
        self.table.as_mut()?.watchers.remove(&number)
    }

    /// The budget was spent before the wait. The next step polls the wait without its watcher.
    pub(crate) fn refuse(&mut self, mark: &mut Mark) {
        drop(self.forget(mark));
        *mark = Mark::refused(self.step);
    }
}

impl Default for Table {
    fn default() -> Self {
        Self {
            places: SmallVec::new(),
            free: NONE,
            open: 0,
            watchers: BTreeMap::new(),
            last: 0,
            cancel: None,
            left: 0,
        }
    }
}

impl Table {
    /// See [`Waits::begin`].
    fn begin(&mut self, events: &mut Events<'_>) {
        let mut must_wake = !self.watchers.is_empty() && events.len() > self.left;
        loop {
            let event = match events.peek() {
                // What is behind it would come instead, a message for instance.
                Some(Event::Exit(notice)) if notice.is_withdrawn() => {
                    events.take_where(|it| matches!(it, Event::Cancel(_) | Event::Exit(_)))
                }
                Some(Event::Cancel(_) | Event::Exit(_) | Event::Completion(_)) => events.next(),
                // Control messages that were left may be in front of other system events.
                Some(Event::Control(_)) => {
                    events.take_where(|it| matches!(it, Event::Cancel(_) | Event::Exit(_)))
                }
                _ => None,
            };
            match event {
                Some(Event::Cancel(reason)) => {
                    self.cancel(reason);
                    must_wake = true;
                }
                Some(Event::Exit(notice)) => {
                    self.settle(notice.tag, Some(notice.pid), Answer::Exit(notice.cause));
                }
                Some(Event::Completion(it)) => {
                    self.settle(it.tag, None, Answer::Completion(it.result));
                }
                _ => break,
            }
        }
        while self.open > 0
            && let Some(event) =
                events.take_new_where(|it| matches!(it, Event::Completion(_) | Event::Exit(_)))
        {
            match event {
                Event::Completion(it) => {
                    self.settle(it.tag, None, Answer::Completion(it.result));
                }
                Event::Exit(it) => self.settle(it.tag, Some(it.pid), Answer::Exit(it.cause)),
                _ => {}
            }
        }
        if must_wake {
            mem::take(&mut self.watchers)
                .into_values()
                .for_each(Waker::wake);
        }
    }

    /// The task is asked to finish: each wait is to look. The first reason counts.
    fn cancel(&mut self, reason: CancelReason) {
        self.cancel.get_or_insert(reason);
        for place in &mut self.places {
            if let Holds::Wait { waker, .. } | Holds::Line { waker, .. } = &mut place.holds
                && let Some(waker) = waker.take()
            {
                waker.wake();
            }
        }
    }

    fn place(&mut self, wanted: Tag) -> Option<&mut Holds> {
        let index = index(wanted);
        let place = self.places.get_mut(index as usize)?;
        (tag(place.turn, index) == wanted).then_some(&mut place.holds)
    }

    /// A wait is over: that process has ended, or a completion has come. The tag of an earlier one
    /// is none. Neither is one that other code has chosen, or a task before this one: they are of
    /// another kind, or of another process.
    fn settle(&mut self, tag: Tag, ended: Option<Pid>, answer: Answer) {
        let Some(holds) = self.place(tag) else { return };
        let waker = match holds {
            Holds::Wait { waker, of } if *of == ended => {
                let waker = waker.take();
                *holds = Holds::Answer(answer);
                self.open -= 1;
                waker
            }
            &mut Holds::Child { line, number, pid } if is_of(pid, ended) => {
                self.close(tag);
                match (self.place(line), answer) {
                    (Some(Holds::Line { ended, waker }), Answer::Exit(cause)) => {
                        ended.push_back((number, cause));
                        waker.take()
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn insert(&mut self, holds: Holds) -> Tag {
        self.open += usize::from(holds.is_open());
        let index = self.free;
        if let Some(place) = self.places.get_mut(index as usize)
            && let Holds::Nothing(next) = place.holds
        {
            place.holds = holds;
            self.free = next;
            return tag(place.turn, index);
        }
        let index = u32::try_from(self.places.len()).unwrap_or(NONE);
        assert!(
            index < NONE,
            "a task waits for fewer than 2^32 things at a time"
        );
        self.places.push(Place { turn: 0, holds });
        tag(0, index)
    }

    fn take(&mut self, tag: Tag, waker: Option<&Waker>) -> Option<Answer> {
        match self.place(tag)? {
            Holds::Wait { waker: its, .. } => {
                keep(its, waker);
                None
            }
            _ => match self.close(tag) {
                Some(Holds::Answer(answer)) => Some(answer),
                _ => None,
            },
        }
    }

    /// The place is free. Gives what it held.
    #[inline]
    fn close(&mut self, tag: Tag) -> Option<Holds> {
        let free = Holds::Nothing(self.free);
        let index = index(tag);
        let place = self.places.get_mut(index as usize)?;
        if self::tag(place.turn, index) != tag {
            return None;
        }
        place.turn = place.turn.wrapping_add(1);
        let holds = mem::replace(&mut place.holds, free);
        self.free = index;
        self.open -= usize::from(holds.is_open());
        Some(holds)
    }
}

impl Holds {
    /// Whether it wants a completion or a notice.
    fn is_open(&self) -> bool {
        matches!(self, Self::Wait { .. } | Self::Child { .. })
    }
}
