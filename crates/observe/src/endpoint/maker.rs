//! Makes snapshots and lists of processes, for all viewers at the same moment.
//!
//! **Problem.** A list of many processes takes a while, and ten viewers ask at once. A copy that is
//! kept for later viewers is old, and keeps its memory while no viewer asks.
//!
//! **Protocol.** A process takes all waiting questions, looks once, answers them, and keeps
//! nothing. Later questions wait for the next look. So an answer is never older than its question,
//! and a flood of questions keeps a single thread busy.

use super::look::{self, Crowd};
use super::observed::Observed;
use bytes::Bytes;
use ganger_proc_api::{BoxError, Reply};
use ganger_task::Cx;
use std::sync::Arc;

/// A question.
pub(super) enum Ask {
    /// For the JSON of a snapshot.
    Snapshot(Reply<Bytes>),
    /// For all processes.
    Crowds(Reply<Arc<Vec<Crowd>>>),
}

/// The body of the process.
pub(super) async fn run(cx: Cx<Ask>, observed: Arc<Observed>) -> Result<(), BoxError> {
    let mut sequence = 0;
    while let Some(first) = cx.recv().await {
        let (mut snapshots, mut crowds) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(ask) = next {
            match ask {
                Ask::Snapshot(reply) => snapshots.push(reply),
                Ask::Crowds(reply) => crowds.push(reply),
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
        if !crowds.is_empty() {
            let all = Arc::new(look::crowds(&schedulers));
            for reply in crowds {
                reply.complete(Arc::clone(&all));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_sched::{ContextExt as _, Scheduler};
    use std::sync::Weak;

    // pins: V1
    #[test]
    fn all_that_ask_at_a_moment_get_the_same_look_and_nothing_is_kept() {
        let scheduler = Scheduler::builder().workers(1).start().unwrap();
        let observed = Arc::new(Observed::default());
        observed.add(&scheduler);
        let task = scheduler.spawn(async move |cx: Cx| {
            let maker = cx.spawn(move |cx: Cx<Ask>| run(cx, observed))?;
            // All are asked in a step, before the maker's next.
            let asks = || (maker.call(Ask::Snapshot), maker.call(Ask::Crowds));
            let (a, b, c) = (asks(), asks(), asks());
            let first = cx.join((cx.ask(a.0), cx.ask(b.0), cx.ask(c.0)));
            let (one, two, three) = first.await;
            let (one, two) = (one?, two?);
            assert!(one == two && two == three?);
            let crowds = cx.join((cx.ask(a.1), cx.ask(b.1), cx.ask(c.1)));
            let (one, two, three) = crowds.await;
            let (one, two) = (one?, two?);
            assert!(Arc::ptr_eq(&one, &two) && Arc::ptr_eq(&two, &three?));
            let weak = Arc::downgrade(&one);
            drop((one, two));
            let later = cx.ask(maker.call(Ask::Snapshot)).await?;
            assert!(later.starts_with(b"{\"version\":1,\"sequence\":2,"));
            assert!(Weak::upgrade(&weak).is_none());
            cx.terminate(maker.pid())?;
            Ok(())
        });
        task.unwrap().wait().into_result().unwrap();
    }
}
