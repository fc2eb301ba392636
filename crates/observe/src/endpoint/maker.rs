//! Makes snapshots and metrics, for all viewers at the same moment.
//!
//! **Protocol.** A process takes all waiting questions, looks once, answers them, and keeps
//! nothing. Later questions wait for the next look. So an answer is never older than its question,
//! and a flood of questions keeps a single thread busy. Nothing is made for a client that has gone.

use super::answer::{Answer, Refused};
use super::look;
use super::observed::Observed;
use super::passes::reply_all;
use super::profile::Wanted;
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
    /// For a profile, made by another thread.
    Profile(Box<Wanted>, Reply<Result<Answer, Refused>>),
}

impl Ask {
    fn is_cancelled(&self) -> bool {
        match self {
            Self::Snapshot(reply) | Self::Metrics(reply) => reply.is_cancelled(),
            Self::Profile(_, reply) => reply.is_cancelled(),
        }
    }
}

/// Runs the process. `actions` has the names of the actions that the program allows.
pub(super) async fn run(
    cx: Cx<Ask>,
    observed: Arc<Observed>,
    actions: Vec<String>,
) -> Result<(), BoxError> {
    let mut sequence = 0;
    while let Some(first) = cx.recv().await {
        let (mut snapshots, mut metrics) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(ask) = next {
            match ask {
                gone if gone.is_cancelled() => {}
                Ask::Snapshot(reply) => snapshots.push(reply),
                Ask::Metrics(reply) => metrics.push(reply),
                Ask::Profile(wanted, reply) => wanted.begin(reply),
            }
            next = cx.try_recv();
        }
        let schedulers = observed.schedulers();
        if !snapshots.is_empty() {
            sequence += 1;
            reply_all(snapshots, &look::snapshot(&schedulers, sequence, &actions))?;
        }
        if !metrics.is_empty() {
            let text = Bytes::from(look::metrics(&schedulers));
            for reply in metrics {
                reply.complete(text.clone());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{self, Snapshot};
    use ganger_sched::{ContextExt as _, Scheduler};
    use std::time::Duration;

    // pins: V1
    #[test]
    fn all_that_ask_at_a_moment_get_the_same_look() {
        let scheduler = Scheduler::builder().workers(1).start().unwrap();
        let observed = Arc::new(Observed::default());
        observed.add(&scheduler);
        let task = scheduler.spawn(async move |cx: Cx| {
            let maker = cx.spawn(move |cx: Cx<Ask>| run(cx, observed, Vec::new()))?;
            // All are asked in a step, before the maker's next.
            let snapshot = || cx.ask(maker.call(Ask::Snapshot));
            let (one, two) = cx.join((snapshot(), snapshot())).await;
            assert_eq!(one?.as_ptr(), two?.as_ptr());
            let later: Snapshot = api::from_json(&snapshot().await?)?;
            assert_eq!(later.sequence, 2);
            cx.terminate(maker.pid())?;
            Ok(())
        });
        task.unwrap().wait().into_result().unwrap();
    }

    // pins: V3
    #[test]
    fn nothing_is_made_for_a_client_that_has_gone() {
        ganger_sim::Sim::check(5, |rt| {
            let task = rt.spawn(async |cx: Cx| {
                let maker = cx.spawn(async |cx: Cx<Ask>| {
                    cx.sleep(Duration::from_millis(10)).await?;
                    run(cx, Arc::default(), Vec::new()).await
                })?;
                let snapshot = || cx.ask(maker.call(Ask::Snapshot));
                let gone = cx.timeout(Duration::from_millis(1), snapshot()).await;
                assert!(gone.is_err());
                cx.sleep(Duration::from_millis(20)).await?;
                let first: Snapshot = api::from_json(&snapshot().await?)?;
                assert_eq!(first.sequence, 1);
                cx.terminate(maker.pid())?;
                Ok(())
            });
            rt.wait(task.unwrap()).into_result().unwrap();
        });
    }
}
