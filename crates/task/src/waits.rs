//! The waits of a task: for answers to its commands, and for ends of monitored processes.
//!
//! Each wait has a place in a table, and a tag that names the place. Each use of a place has
//! another tag: a late notice finds no wait. A lone wait for an answer needs no place (`lone.rs`).

use crate::lone::{LONE, Lone};
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

/// The waits of a task.
#[derive(Default)]
pub(crate) struct Waits {
    /// Made for the first wait with a place: most tasks are small without a table.
    table: Option<Box<Table>>,
    lone: Lone,
    /// The number of steps so far.
    pub(crate) step: u64,
}

struct Table {
    places: SmallVec<[Place; 1]>,
    /// The lone wait, with its tag, while the table has it.
    lone: (Tag, Holds),
    /// The first free place, or [`NONE`]. Each free place knows the next free place.
    free: u32,
    /// The number of waits for a completion or a notice.
    open: usize,
    /// The wakers for messages and cancellations, by the numbers in the waits' marks.
    watchers: BTreeMap<u64, Waker>,
    /// The number of the last watcher.
    last: u64,
    /// The reason of the cancellation.
    cancel: Option<CancelReason>,
    /// The number of events left by the last step.
    left: usize,
}

/// The state of a wait without a place in the table, in a single word: nothing, the number of its
/// waker in the table, or the last step in which the budget was spent before the wait.
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

    /// Returns whether the wait was refused in an earlier step.
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
    /// The number of uses of the place.
    turn: u32,
    holds: Holds,
}

enum Holds {
    /// The place is free; the next free place.
    Nothing(u32),
    /// A wait for the end of a process, or else for a completion. The waker is not the task's own.
    Wait {
        waker: Option<Waker>,
        of: Option<Pid>,
    },
    Answer(Answer),
    /// A child, whose end goes into the line of its scope.
    Child {
        line: Tag,
        number: usize,
        /// Known after the start of the child.
        pid: Option<Pid>,
    },
    /// A scope's line: the ends of children that the scope has not seen.
    Line {
        ended: VecDeque<Ended>,
        waker: Option<Waker>,
    },
}

fn tag(turn: u32, index: u32) -> Tag {
    (u64::from(turn) << 32 | u64::from(index)) & !LONE
}

/// Returns whether a process is the child: any process, before the child's start.
fn is_of(child: Option<Pid>, ended: Option<Pid>) -> bool {
    ended.is_some() && (child.is_none() || child == ended)
}

/// Keeps the waker, unless the kept waker wakes the same task.
fn keep(kept: &mut Option<Waker>, waker: Option<&Waker>) {
    match (kept, waker) {
        (Some(kept), Some(waker)) => kept.clone_from(waker),
        (kept, waker) => *kept = waker.cloned(),
    }
}

/// Returns the place of a tag.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the upper half is the turn"
)]
fn index(tag: Tag) -> u32 {
    tag as u32
}

impl Waits {
    /// Begins a step: takes all its events but messages.
    #[inline]
    pub(crate) fn begin(&mut self, events: &mut Events<'_>) {
        self.step += 1;
        let is_plain = match events.peek() {
            None => true,
            Some(Event::Message(_)) => !self.lone.is_open(),
            Some(Event::Completion(it)) if events.len() == 1 => self.lone.arrives(it.tag),
            _ => false,
        };
        if !is_plain || self.table.is_some() {
            self.begin_with_table(events);
        }
    }

    /// Begins a step whose events the table may need.
    #[cold]
    #[inline(never)]
    fn begin_with_table(&mut self, events: &mut Events<'_>) {
        let has_watchers = self.table.as_ref().is_some_and(|it| it.has_watchers());
        if events.is_empty() || self.lone.is_here() && !has_watchers {
            return;
        }
        if self.lone.is_open() || self.lone.is_here() {
            self.move_lone(None);
        }
        self.table_mut().begin(events);
    }

    /// Ends the step.
    #[inline]
    pub(crate) fn end(&mut self, events: &mut Events<'_>) {
        if self.lone.is_here() {
            self.keep_answer(events);
        }
        if let Some(table) = &mut self.table {
            table.left = events.len();
        }
    }

    /// Moves an answer that the lone wait has not taken in this step into the table.
    #[cold]
    fn keep_answer(&mut self, events: &mut Events<'_>) {
        self.move_lone(None);
        if let Some(Event::Completion(it)) = events.next() {
            self.table_mut()
                .settle(it.tag, None, Answer::Completion(it.result));
        }
    }

    /// Moves the lone wait into the table.
    fn move_lone(&mut self, waker: Option<Waker>) {
        self.lone.moves();
        let tag = self.lone.tag();
        let table = self.table_mut();
        table.lone = (tag, Holds::Wait { waker, of: None });
        table.open += 1;
    }

    /// Returns whether messages may be among the events of the step.
    #[inline]
    pub(crate) fn may_have_messages(&self) -> bool {
        !self.lone.is_here()
    }

    /// Returns the reason of the cancellation.
    #[inline]
    pub(crate) fn cancel(&self) -> Option<&CancelReason> {
        self.table.as_ref()?.cancel.as_ref()
    }

    /// Takes the reason of the cancellation, at the end of the task.
    pub(crate) fn take_cancel(&mut self) -> Option<CancelReason> {
        self.table.as_mut()?.cancel.take()
    }

    fn table_mut(&mut self) -> &mut Table {
        self.table.get_or_insert_default()
    }

    /// Opens a wait for a completion.
    #[inline]
    pub(crate) fn open_answer(&mut self, waker: Option<&Waker>) -> Tag {
        if waker.is_none()
            && let Some(tag) = self.lone.open()
        {
            return tag;
        }
        self.open(waker, None)
    }

    /// Opens a wait: for the end of a process, or else for a completion.
    pub(crate) fn open(&mut self, waker: Option<&Waker>, of: Option<Pid>) -> Tag {
        let waker = waker.cloned();
        self.table_mut().insert(Holds::Wait { waker, of })
    }

    /// Notes the process of a wait for an end.
    #[cfg(feature = "sched")]
    pub(crate) fn wait_is_of(&mut self, tag: Tag, pid: Pid) {
        if let Some(Holds::Wait { of, .. }) = self.table_mut().place(tag) {
            *of = Some(pid);
        }
    }

    /// Puts the answer to a lone wait into `place`, and closes the wait, if the answer is the
    /// step's only event.
    #[inline]
    pub(crate) fn take_here(
        &mut self,
        tag: Tag,
        events: &mut Events<'_>,
        place: &mut Result<Payload, CommandError>,
    ) -> bool {
        if !self.lone.is_here_as(tag) {
            return false;
        }
        self.lone.end(tag);
        events.next_result(place)
    }

    /// Takes any other answer to a wait, and closes the wait. Without an answer `waker` is kept for
    /// it.
    #[inline]
    pub(crate) fn take(&mut self, tag: Tag, waker: Option<&Waker>) -> Option<Answer> {
        if self.lone.is_open_as(tag) && waker.is_none() {
            return None;
        }
        self.take_from_table(tag, waker)
    }

    #[inline(never)]
    fn take_from_table(&mut self, tag: Tag, waker: Option<&Waker>) -> Option<Answer> {
        if self.lone.is_open_as(tag) {
            self.move_lone(waker.cloned());
            return None;
        }
        let answer = self.table.as_mut()?.take(tag, waker);
        if answer.is_some() {
            self.lone.end(tag);
        }
        answer
    }

    /// Frees a place. Returns whether it was still waiting.
    pub(crate) fn close(&mut self, tag: Tag, events: &mut Events<'_>) -> bool {
        if self.lone.is_open_as(tag) {
            self.lone.end(tag);
            return true;
        }
        if self.lone.is_here_as(tag) {
            self.lone.end(tag);
            drop(events.next());
            return false;
        }
        let holds = self.table.as_mut().and_then(|it| it.close(tag));
        self.lone.end(tag);
        holds.is_some_and(|it| it.is_open())
    }

    /// Opens a line for the ends of children.
    pub(crate) fn open_line(&mut self) -> Tag {
        let (ended, waker) = (VecDeque::new(), None);
        self.table_mut().insert(Holds::Line { ended, waker })
    }

    /// Opens a wait for the end of a child. The end goes into the line.
    pub(crate) fn open_child(&mut self, line: Tag, number: usize) -> Tag {
        let pid = None;
        self.table_mut().insert(Holds::Child { line, number, pid })
    }

    /// Notes the PID of the child, which has started, and may have ended.
    pub(crate) fn child_is(&mut self, tag: Tag, child: Pid) {
        if let Some(Holds::Child { pid, .. }) = self.table_mut().place(tag) {
            *pid = Some(child);
        }
    }

    /// Takes the first end in the line. Without an end `waker` is kept for it.
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

    /// Keeps the waker for the next message or cancellation. O(log watchers).
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

    /// Drops the waker of a wait.
    pub(crate) fn forget(&mut self, mark: &mut Mark) -> Option<Waker> {
        let number = mem::take(mark).number()?;
        self.table.as_mut()?.watchers.remove(&number)
    }

    /// Refuses a wait because the budget is spent. The next step polls the wait without its
    /// watcher.
    pub(crate) fn refuse(&mut self, mark: &mut Mark) {
        drop(self.forget(mark));
        *mark = Mark::refused(self.step);
    }
}

impl Default for Table {
    fn default() -> Self {
        Self {
            places: SmallVec::new(),
            lone: (0, Holds::Nothing(NONE)),
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
    fn has_watchers(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Takes the events of a step as [`Waits::begin`] does.
    fn begin(&mut self, events: &mut Events<'_>) {
        let mut must_wake = self.has_watchers() && events.len() > self.left;
        loop {
            let event = match events.peek() {
                // The next event behind it would come instead, a message for example.
                Some(Event::Exit(notice)) if notice.is_withdrawn() => {
                    events.take_where(|it| matches!(it, Event::Cancel(_) | Event::Exit(_)))
                }
                Some(Event::Cancel(_) | Event::Exit(_) | Event::Completion(_)) => events.next(),
                // Control messages left by a step may be in front of other system events.
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

    /// Notes a cancellation, and wakes each wait. The first reason counts.
    fn cancel(&mut self, reason: CancelReason) {
        self.cancel.get_or_insert(reason);
        let places = self.places.iter_mut().map(|place| &mut place.holds);
        for holds in places.chain([&mut self.lone.1]) {
            if let Holds::Wait { waker, .. } | Holds::Line { waker, .. } = holds
                && let Some(waker) = waker.take()
            {
                waker.wake();
            }
        }
    }

    fn place(&mut self, wanted: Tag) -> Option<&mut Holds> {
        if wanted & LONE != 0 {
            let (tag, holds) = &mut self.lone;
            return (*tag == wanted).then_some(holds);
        }
        let index = index(wanted);
        let place = self.places.get_mut(index as usize)?;
        (tag(place.turn, index) == wanted).then_some(&mut place.holds)
    }

    /// Ends a wait: its process has ended, or its completion has come. The tag of an earlier wait
    /// has no place. A tag chosen by other code, or by an earlier task of the process, has another
    /// kind or another process.
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

    /// Frees a place, and returns its content.
    #[inline]
    fn close(&mut self, tag: Tag) -> Option<Holds> {
        if tag & LONE != 0 {
            let none = (0, Holds::Nothing(NONE));
            let (_, holds) = (self.lone.0 == tag).then(|| mem::replace(&mut self.lone, none))?;
            self.open -= usize::from(holds.is_open());
            return Some(holds);
        }
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
    /// Returns whether the place waits for a completion or a notice.
    fn is_open(&self) -> bool {
        matches!(self, Self::Wait { .. } | Self::Child { .. })
    }
}
