//! Windows of time: lists by the work of processes from a question on.
//!
//! **Problem.** The value of each process at the begin of a window must be kept, and a table of a
//! million values for each viewer is too much.
//!
//! **Protocol.** Each process has a place for one value: its mark. A process of the endpoint takes
//! all waiting questions, and begins with the oldest: it has the marks of all schedulers, marks
//! each process in a pass, waits, and goes through all in a second pass. Questions for the same
//! order and the same window have one answer. So windows follow each other, and a question waits
//! for the window before it.
//!
//! **Clients that go.** A window lasts up to a minute. A window that no client
//! wants does not begin, or ends early. Over [`WINDOWS`] different windows that wait, the next
//! is refused.
//!
//! **Marks of others.** Readers in the program and other endpoints want the marks too. A window has
//! the marks of all schedulers, or keeps none and tries again. So two endpoints never wait for each
//! other. The clients give up at their deadline, and the window with them.
//!
//! **Memory.** Between its passes a window keeps no scheduler's memory.

#[cfg(test)]
mod tests;

use super::answer::{Refused, refused};
use super::limits::{ATTEND, MARKED_BY_OTHERS, WINDOWS};
use super::look::{List, Live, Seen as _};
use super::observed::{Observed, Shown};
use super::passes::{pass, rest_after};
use crate::api::{By, ProcessesQuery};
use bytes::Bytes;
use ganger_proc_api::{BoxError, Reply};
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

/// The rounds that wait, the oldest first.
#[derive(Default)]
struct Line(VecDeque<Round>);

/// The schedulers of a window by their numbers in the endpoint, with the marks of those that count.
struct Claimed(Vec<(u64, Option<Marks>)>);

/// The body of the process.
pub(super) async fn run(cx: Cx<Ask>, observed: Arc<Observed>) -> Result<(), BoxError> {
    let mut line = Line::default();
    loop {
        line.fill(&cx);
        let Some(round) = line.0.pop_front() else {
            let Some(first) = cx.recv().await else {
                return Ok(());
            };
            line.add(first);
            continue;
        };
        let taken = look(&cx, &observed, &mut line, round).await?;
        cx.sleep(rest_after(taken)).await?;
    }
}

/// Answers the questions of a round. Returns the time of a core that it has taken.
async fn look(
    cx: &Cx<Ask>,
    observed: &Observed,
    line: &mut Line,
    mut round: Round,
) -> Result<Duration, BoxError> {
    let by = round.by;
    let claimed = loop {
        if let Some(claimed) = Claimed::all(&observed.schedulers()) {
            break claimed;
        }
        if !attend(cx, line, &mut round, MARKED_BY_OTHERS).await? {
            return Ok(Duration::ZERO);
        }
    };
    let begun = cx.now();
    let mark = |scheduler: &Shown, process: Live<'_>| {
        if let (Some(marks), Some(value)) = (claimed.of(scheduler.number), process.value(by)) {
            marks.set(process.look, value);
        }
    };
    let mut taken = pass(cx, &claimed.schedulers(observed), mark).await;
    let left = round.window.saturating_sub(cx.now() - begun);
    if !attend(cx, line, &mut round, left).await? {
        return Ok(taken);
    }
    let schedulers = claimed.schedulers(observed);
    let asked = round.asked.into_iter();
    let list = |it: Ask| (List::new(it.query, &schedulers), it.reply);
    let mut lists: Vec<_> = asked.map(list).collect();
    let see = |scheduler: &Shown, process: Live<'_>| {
        let marks = claimed.of(scheduler.number);
        let before = marks.map_or(0, |it| it.of(process.look));
        for (list, _) in &mut lists {
            list.see(scheduler.number, &process, before);
        }
    };
    taken += pass(cx, &schedulers, see).await;
    for (list, reply) in lists {
        let json = serde_json::to_vec(&list.finish(&schedulers))?;
        reply.complete(Ok(json.into()));
        cx.yield_now().await;
    }
    Ok(taken)
}

/// Waits for a time, while new questions come into the line. Returns `false`, and early, when no
/// client of the round is left.
async fn attend(
    cx: &Cx<Ask>,
    line: &mut Line,
    round: &mut Round,
    time: Duration,
) -> Result<bool, BoxError> {
    let begun = cx.now();
    loop {
        line.fill(cx);
        round.leave_gone();
        let left = time.saturating_sub(cx.now() - begun);
        if round.asked.is_empty() || left.is_zero() {
            return Ok(!round.asked.is_empty());
        }
        cx.sleep(left.min(ATTEND)).await?;
    }
}

impl Round {
    fn leave_gone(&mut self) {
        self.asked.retain(|it| !it.reply.is_cancelled());
    }
}

impl Line {
    /// Takes all questions that have come, and leaves those of clients that have gone.
    fn fill(&mut self, cx: &Cx<Ask>) {
        self.leave_gone();
        while let Some(ask) = cx.try_recv() {
            self.add(ask);
        }
    }

    fn leave_gone(&mut self) {
        self.0.iter_mut().for_each(Round::leave_gone);
        self.0.retain(|it| !it.asked.is_empty());
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
            let sentence = "8 different windows wait, and windows follow each other: ask later, \
                            or for the window of another client";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            ask.reply.complete(Err(refused(status, sentence)));
        }
    }
}

impl Claimed {
    /// The marks of all schedulers that count; none, when another reader has some of them.
    fn all(schedulers: &[Shown]) -> Option<Self> {
        let mut in_order: Vec<_> = schedulers.iter().collect();
        // The same for all endpoints: one that fails has kept no other from all marks.
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

    fn of(&self, scheduler: u64) -> Option<&Marks> {
        let found = self.0.iter().find(|it| it.0 == scheduler)?;
        found.1.as_ref()
    }

    /// The rest.
    fn schedulers(&self, observed: &Observed) -> Vec<Shown> {
        let mut left = observed.schedulers();
        left.retain(|shown| self.0.iter().any(|it| it.0 == shown.number));
        left
    }
}
