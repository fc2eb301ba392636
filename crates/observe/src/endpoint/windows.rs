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

use super::limits::MARKED_BY_OTHERS;
use super::look::{List, Live, Seen as _};
use super::observed::{Observed, Shown};
use super::passes::{pass, reply_all, rest_after};
use crate::api::{By, ProcessesQuery};
use bytes::Bytes;
use ganger_proc_api::{BoxError, Reply};
use ganger_sched::{ContextExt as _, Marks, Observe};
use ganger_task::Cx;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A question for a list of a window.
pub(super) struct Ask {
    pub(super) query: ProcessesQuery,
    pub(super) window: Duration,
    pub(super) reply: Reply<Bytes>,
}

/// The body of the process.
pub(super) async fn run(cx: Cx<Ask>, observed: Arc<Observed>) -> Result<(), BoxError> {
    let mut line = VecDeque::new();
    loop {
        if line.is_empty() {
            let Some(first) = cx.recv().await else {
                return Ok(());
            };
            line.push_back(first);
        }
        while let Some(more) = cx.try_recv() {
            line.push_back(more);
        }
        let (by, window) = (line[0].query.by, line[0].window);
        let is_same = |it: &Ask| (it.query.by, it.window) == (by, window);
        let (now, later) = line.into_iter().partition(is_same);
        line = later;
        let taken = look(&cx, &observed.schedulers(), by, window, now).await?;
        cx.sleep(rest_after(taken)).await?;
    }
}

/// Answers questions for the same order and window. Returns the time of a core that it has taken.
async fn look<M: Send + 'static>(
    cx: &Cx<M>,
    schedulers: &[Shown],
    by: By,
    window: Duration,
    asked: VecDeque<Ask>,
) -> Result<Duration, BoxError> {
    let mut marks = Vec::new();
    for Shown { number, handle } in schedulers {
        while handle.observes() != Observe::Off {
            if let Some(claimed) = handle.try_marks() {
                marks.push((*number, claimed));
                break;
            }
            // A reader in the program has a window of its own.
            cx.sleep(MARKED_BY_OTHERS).await?;
        }
    }
    let of = |scheduler: u64| -> Option<&Marks> {
        let found = marks.iter().find(|it| it.0 == scheduler);
        found.map(|it| &it.1)
    };
    let begun = cx.now();
    let mark = |scheduler: &Shown, process: Live<'_>| {
        if let (Some(marks), Some(value)) = (of(scheduler.number), process.value(by)) {
            marks.set(process.look, value);
        }
    };
    let mut taken = pass(cx, schedulers, mark).await;
    cx.sleep(window.saturating_sub(cx.now() - begun)).await?;
    let mut lists: Vec<_> = asked
        .into_iter()
        .map(|it| (List::new(it.query), it.reply))
        .collect();
    let see = |scheduler: &Shown, process: Live<'_>| {
        let before = of(scheduler.number).map_or(0, |it| it.of(process.look));
        for (list, _) in &mut lists {
            list.see(scheduler.number, &process, before);
        }
    };
    taken += pass(cx, schedulers, see).await;
    for (list, reply) in lists {
        reply_all(vec![reply], &list.finish(schedulers))?;
        cx.yield_now().await;
    }
    Ok(taken)
}
