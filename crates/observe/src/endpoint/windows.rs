//! Windows of time: lists by the work of processes from a question on.
//!
//! **Problem.** The value of each process at the begin of a window must be kept, and two windows at
//! the same time need two values. A table of a million values for each viewer is too much.
//!
//! **Protocol.** Questions for the same order and the same window are a round, with a common
//! answer. The first pass of a round notes the value of each process, and the last pass reads the
//! growth. The endpoint waits in between. Rounds overlap: a pass is the first for all waiting
//! rounds, and the last for all due rounds. So no round waits for the window of another.
//!
//! **Notes.** Each process has a place for one value: its mark. A round with the marks of all
//! schedulers needs no other memory. Further rounds have a table with 16 bytes a process, and at
//! most [`TABLES`] rounds have a table. Further rounds wait.
//!
//! **Pace.** Behind a pass new rounds wait, as in `passes.rs`. A pass at the end of a window is
//! never late.
//!
//! **Clients that go.** A window lasts up to a minute. A window without a client does not begin, or
//! ends early. Over [`WINDOWS`] different windows that wait, the next is refused.
//!
//! **Marks of others.** Readers in the program and other endpoints want the marks too. A round has
//! the marks of all schedulers, or keeps none and takes a table. So two endpoints never wait for
//! each other.
//!
//! **Memory.** Between its passes a round keeps no scheduler's memory.

#[cfg(test)]
mod tests;

use super::answer::{Refused, refused};
use super::limits::{ATTEND, TABLES, WINDOWS};
use super::look::{List, Live, Seen as _};
use super::observed::{Observed, Shown};
use super::passes::{pass, rest_after};
use crate::api::{By, ProcessesQuery};
use bytes::Bytes;
use ganger_proc_api::{BoxError, Instant, Reply};
use ganger_sched::{ContextExt as _, Marks, Observe};
use ganger_task::Cx;
use hyper::StatusCode;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A question for a list of a window.
pub(super) struct Ask {
    pub(super) query: ProcessesQuery,
    pub(super) window: Duration,
    pub(super) reply: Reply<Result<Bytes, Refused>>,
}

/// The questions for the same order and the same window.
struct Round {
    by: By,
    window: Duration,
    asked: Vec<Ask>,
}

/// The waiting rounds, the oldest first.
#[derive(Default)]
struct Line(VecDeque<Round>);

/// A round between its passes.
struct Begun {
    round: Round,
    notes: Notes,
    ends: Instant,
}

/// A round in its last pass.
struct Ending {
    lists: Vec<(List, Reply<Result<Bytes, Refused>>)>,
    notes: Notes,
}

/// The values of processes at the begin of a window.
enum Notes {
    Marks(Claimed),
    Table(Table),
}

/// The schedulers of a window by their numbers in the endpoint, with their marks, if they count.
struct Claimed(Vec<(u64, Option<Marks>)>);

/// The values by the numbers of schedulers and the ids of processes; sorted after the pass.
#[derive(Default)]
struct Table(Vec<(u64, Vec<(u64, u64)>)>);

/// Runs the process.
pub(super) async fn run(cx: Cx<Ask>, observed: Arc<Observed>) -> Result<(), BoxError> {
    let (mut line, mut begun) = (Line::default(), Vec::<Begun>::new());
    let mut rested = cx.now();
    loop {
        line.fill(&cx);
        begun.iter_mut().for_each(|it| it.round.leave_gone());
        begun.retain(|it| !it.round.asked.is_empty());
        let now = cx.now();
        let due = begun.extract_if(.., |it| it.ends <= now).collect();
        let fresh = match now < rested {
            true => Vec::new(),
            false => line.begin(&observed, &begun, now),
        };
        if let Some(taken) = look(&cx, &observed, due, &mut begun, fresh).await? {
            // Also where passes at the end of windows have followed each other.
            rested = rested.max(cx.now()).after(rest_after(taken));
            continue;
        }
        let mut ends: Vec<_> = begun.iter().map(|it| it.ends).collect();
        if !line.0.is_empty() && now < rested {
            ends.push(rested);
        }
        let first = if line.0.is_empty() && begun.is_empty() {
            cx.recv().await
        } else {
            let next = ends.into_iter().min().map_or(ATTEND, |it| it - now);
            let next = next.clamp(Duration::from_millis(1), ATTEND);
            match cx.timeout(next, cx.recv()).await {
                Ok(first) => first,
                Err(_) if cx.is_cancelled() => return Ok(()),
                Err(_) => continue,
            }
        };
        match first {
            Some(first) => line.add(first),
            None => return Ok(()),
        }
    }
}

/// Runs the last pass of the due rounds, and at the same time the first pass of the fresh rounds.
/// Returns the time of a core for the pass, if any, and moves the fresh rounds to the begun rounds.
async fn look(
    cx: &Cx<Ask>,
    observed: &Observed,
    due: Vec<Begun>,
    begun: &mut Vec<Begun>,
    mut fresh: Vec<Begun>,
) -> Result<Option<Duration>, BoxError> {
    if due.is_empty() && fresh.is_empty() {
        return Ok(None);
    }
    let schedulers = observed.schedulers();
    let of = |it| Ending::of(it, &schedulers);
    let mut ending: Vec<_> = due.into_iter().map(of).collect();
    let see = |scheduler: &Shown, process: Live<'_>| {
        for it in ending
            .iter_mut()
            .filter(|it| it.notes.knows(scheduler.number))
        {
            let before = it.notes.of(scheduler.number, &process);
            for (list, _) in &mut it.lists {
                list.see(scheduler.number, &process, before);
            }
        }
        for it in &mut fresh {
            if let Some(value) = process.value(it.round.by) {
                it.notes.set(scheduler.number, &process, value);
            }
        }
    };
    let taken = pass(cx, &schedulers, see).await;
    for it in &mut fresh {
        it.notes.sort();
    }
    begun.append(&mut fresh);
    for it in ending {
        for (list, reply) in it.lists {
            let json = serde_json::to_vec(&list.finish(&schedulers))?;
            reply.complete(Ok(json.into()));
            cx.yield_now().await;
        }
    }
    Ok(Some(taken))
}

impl Ending {
    fn of(begun: Begun, schedulers: &[Shown]) -> Self {
        let asked = begun.round.asked.into_iter();
        let list = |it: Ask| (List::new(it.query, schedulers), it.reply);
        Self {
            lists: asked.map(list).collect(),
            notes: begun.notes,
        }
    }
}

impl Round {
    fn leave_gone(&mut self) {
        self.asked.retain(|it| !it.reply.is_cancelled());
    }
}

impl Line {
    /// Takes all questions from the mailbox, and leaves out the questions of gone clients.
    fn fill(&mut self, cx: &Cx<Ask>) {
        self.0.iter_mut().for_each(Round::leave_gone);
        self.0.retain(|it| !it.asked.is_empty());
        while let Some(ask) = cx.try_recv() {
            self.add(ask);
        }
    }

    fn add(&mut self, ask: Ask) {
        if ask.reply.is_cancelled() {
            return;
        }
        let (by, window) = (ask.query.by, ask.window);
        let same = |it: &&mut Round| (it.by, it.window) == (by, window);
        if let Some(round) = self.0.iter_mut().find(same) {
            round.asked.push(ask);
        } else if self.0.len() < WINDOWS {
            let asked = vec![ask];
            self.0.push_back(Round { by, window, asked });
        } else {
            let sentence = "8 different windows wait: ask later, or for the window of another \
                            client";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            ask.reply.complete(Err(refused(status, sentence)));
        }
    }

    /// Takes the rounds with a place for their notes.
    fn begin(&mut self, observed: &Observed, begun: &[Begun], now: Instant) -> Vec<Begun> {
        let is_table = |it: &&Begun| matches!(it.notes, Notes::Table(_));
        let mut tables = TABLES - begun.iter().filter(is_table).count().min(TABLES);
        let mut fresh = Vec::new();
        while !self.0.is_empty() {
            let schedulers = observed.schedulers();
            let notes = match Claimed::all(&schedulers) {
                Some(claimed) => Notes::Marks(claimed),
                None if tables == 0 => break,
                None => {
                    tables -= 1;
                    Notes::Table(Table::of(&schedulers))
                }
            };
            fresh.extend(self.0.pop_front().map(|round| Begun {
                ends: now.after(round.window),
                round,
                notes,
            }));
        }
        fresh
    }
}

impl Notes {
    fn set(&mut self, scheduler: u64, process: &Live<'_>, value: u64) {
        match self {
            Self::Marks(claimed) => {
                if let Some(marks) = claimed.marks(scheduler) {
                    marks.set(process.look, value);
                }
            }
            Self::Table(table) => {
                if let Some((_, values)) = table.0.iter_mut().find(|it| it.0 == scheduler) {
                    values.push((process.look.pid().id(), value));
                }
            }
        }
    }

    /// Returns the value of a process at the begin of the window; 0 for a process started since.
    fn of(&self, scheduler: u64, process: &Live<'_>) -> u64 {
        match self {
            Self::Marks(claimed) => {
                let marks = claimed.marks(scheduler);
                marks.map_or(0, |it| it.of(process.look))
            }
            Self::Table(table) => {
                let id = process.look.pid().id();
                table.value(scheduler, id).unwrap_or_default()
            }
        }
    }

    /// Returns whether the scheduler was there at the begin of the window.
    fn knows(&self, scheduler: u64) -> bool {
        match self {
            Self::Marks(claimed) => claimed.0.iter().any(|it| it.0 == scheduler),
            Self::Table(table) => table.0.iter().any(|it| it.0 == scheduler),
        }
    }

    fn sort(&mut self) {
        if let Self::Table(table) = self {
            for (_, values) in &mut table.0 {
                values.sort_unstable();
                values.shrink_to_fit();
            }
        }
    }
}

impl Claimed {
    /// Claims the marks of all counting schedulers; `None`, when another reader has some of the
    /// marks.
    fn all(schedulers: &[Shown]) -> Option<Self> {
        let mut in_order: Vec<_> = schedulers.iter().collect();
        // The same for all endpoints: a failed claim has kept no other endpoint from all marks.
        in_order.sort_by_key(|it| it.handle.number());
        let mut all = Vec::new();
        for Shown { number, handle } in in_order {
            let marks = match handle.observes() {
                Observe::Off => None,
                _ => Some(handle.try_marks()?),
            };
            all.push((*number, marks));
        }
        Some(Self(all))
    }

    fn marks(&self, scheduler: u64) -> Option<&Marks> {
        let found = self.0.iter().find(|it| it.0 == scheduler)?;
        found.1.as_ref()
    }
}

impl Table {
    fn of(schedulers: &[Shown]) -> Self {
        let empty = |it: &Shown| (it.number, Vec::with_capacity(it.handle.stats().live));
        Self(schedulers.iter().map(empty).collect())
    }

    fn value(&self, scheduler: u64, id: u64) -> Option<u64> {
        let (_, values) = self.0.iter().find(|it| it.0 == scheduler)?;
        let place = values.binary_search_by_key(&id, |it| it.0).ok()?;
        Some(values[place].1)
    }
}
