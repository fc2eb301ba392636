//! Makes snapshots and lists of processes, for all viewers at the same moment.
//!
//! **Problem.** A list of many processes takes a while, and ten viewers ask at once. A copy that is
//! kept for later viewers is old, and keeps its memory while no viewer asks. A copy for each viewer
//! takes the memory of all.
//!
//! **Protocol.** A process takes all waiting questions, looks once, answers them, and keeps
//! nothing: there is a single copy at a time. Other requests have their turns between two answers.
//! Later questions wait for the next look. So an answer is never older than its question,
//! and a flood of questions keeps a single thread busy.

use super::look;
use super::observed::Observed;
use crate::api::ProcessesQuery;
use bytes::Bytes;
use ganger_proc_api::{BoxError, Reply};
use ganger_task::Cx;
use std::sync::Arc;

/// A question for a costly answer.
pub(super) enum Ask {
    /// For a snapshot.
    Snapshot(Reply<Bytes>),
    /// For the metrics.
    Metrics(Reply<Bytes>),
    /// For a list of processes.
    Processes(ProcessesQuery, Reply<Bytes>),
}

/// The body of the process.
pub(super) async fn run(cx: Cx<Ask>, observed: Arc<Observed>) -> Result<(), BoxError> {
    let mut sequence = 0;
    while let Some(first) = cx.recv().await {
        let (mut snapshots, mut lists, mut metrics) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(ask) = next {
            match ask {
                Ask::Snapshot(reply) => snapshots.push(reply),
                Ask::Metrics(reply) => metrics.push(reply),
                Ask::Processes(query, reply) => lists.push((query, reply)),
            }
            next = cx.try_recv();
        }
        let schedulers = observed.schedulers();
        if !snapshots.is_empty() {
            sequence += 1;
            let json = serde_json::to_vec(&look::snapshot(&schedulers, sequence))?;
            let json = Bytes::from(json);
            for reply in snapshots {
                reply.complete(json.clone());
            }
        }
        if !metrics.is_empty() {
            let text = Bytes::from(look::metrics(&schedulers));
            for reply in metrics {
                reply.complete(text.clone());
            }
        }
        if !lists.is_empty() {
            let crowds = look::crowds(&schedulers);
            for (query, reply) in lists {
                let json = serde_json::to_vec(&look::processes(&crowds, &query))?;
                reply.complete(json.into());
                cx.yield_now().await;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{self, Processes, Snapshot};
    use ganger_sched::{ContextExt as _, Scheduler};

    // pins: V1
    #[test]
    fn all_that_ask_at_a_moment_get_the_same_look() {
        let scheduler = Scheduler::builder().workers(1).start().unwrap();
        let observed = Arc::new(Observed::default());
        observed.add(&scheduler);
        let task = scheduler.spawn(async move |cx: Cx| {
            let maker = cx.spawn(move |cx: Cx<Ask>| run(cx, observed))?;
            // All are asked in a step, before the maker's next.
            let list = |top: u32| {
                let query = ProcessesQuery {
                    top,
                    ..ProcessesQuery::default()
                };
                cx.ask(maker.call(|reply| Ask::Processes(query, reply)))
            };
            let snapshot = || cx.ask(maker.call(Ask::Snapshot));
            let (one, two, first, both) = cx.join((snapshot(), snapshot(), list(1), list(2))).await;
            assert_eq!(one?, two?);
            let read = |json: Bytes| api::from_json::<Processes>(&json);
            let (first, both) = (read(first?)?, read(both?)?);
            assert_eq!((first.live, both.live), (2, 2));
            assert_eq!((first.processes.len(), both.processes.len()), (1, 2));
            let later: Snapshot = api::from_json(&snapshot().await?)?;
            assert_eq!(later.sequence, 2);
            cx.terminate(maker.pid())?;
            Ok(())
        });
        task.unwrap().wait().into_result().unwrap();
    }
}
