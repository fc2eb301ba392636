//! What stands in the way of an end: messages that are left, own questions, small batches.

use crate::support::*;
use ganger_keyed::{Kinds, Registry};
use ganger_proc_api::{
    Actor, BoxError, CancelReason, Completion, Context, Reply, StepOutput, StepResult, process_fn,
};
use ganger_sched::ContextExt;
use ganger_task::Cx;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3_600);

// pins: E3, E5
#[test]
fn own_events_that_fill_a_batch_hide_no_message() {
    let sim = steady().builder(|it| it.event_batch(1));
    for is_stopping in [false, true] {
        sim.check_seeds(20, |rt| {
            let book = Book::default();
            let clerks = clerks(rt, &book);
            clerks.of("ann").send(Act::Note(0, 0)).unwrap();
            // The idle timer fires about then.
            rt.run_for(IDLE - Duration::from_millis(1));
            for number in 1..5 {
                rt.run_for(Duration::from_micros(500));
                clerks.of("ann").send(Act::Note(0, number)).unwrap();
                assert!(clerks.evict("ann"));
            }
            if is_stopping {
                rt.begin_stop(Duration::from_secs(60));
            }
            rt.run_for(Duration::from_secs(50));
            let sent: Vec<_> = (0..5).map(|it| (0, it)).collect();
            assert_eq!(book.of("ann").taken, sent);
        });
    }
}

enum Own {
    Note,
    Ask(Reply<u64>),
}

/// Asks its own key while it cleans up.
struct AsksItself(Arc<AtomicBool>);

impl Actor for AsksItself {
    type Message = Own;

    fn receive(&mut self, _: &Context, message: Own, _: &mut StepOutput) -> StepResult {
        if let Own::Ask(reply) = message {
            reply.complete(1);
        }
        Ok(())
    }

    fn cancelled(&mut self, ctx: &Context, _: CancelReason, out: &mut StepOutput) -> StepResult {
        let own = ctx.inherited::<Registry<Own>>().ok_or("no registry")?;
        out.defer_cancel();
        out.ask(own.of("ann").call(Own::Ask), 5);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        let error = it.take::<u64>().unwrap_err().to_string();
        assert!(error.contains("can't ask itself"), "{error}");
        // Ordering: Relaxed: a simulation has one thread.
        self.0.store(true, Ordering::Relaxed);
        out.done(());
        Ok(())
    }
}

// pins: E3
#[test]
fn a_question_to_its_own_key_during_the_clean_up_is_refused() {
    steady().check_seeds(10, |rt| {
        let asked = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&asked);
        let kind = rt.kind::<Own>("own");
        let own = kind.start(move |_, _| AsksItself(Arc::clone(&its)));
        let own = own.build().unwrap();
        let mine = own.clone();
        let starter = rt.spawn(process_fn(move |ctx, _, out| {
            ctx.set_inherited(mine.clone());
            mine.of("ann").send(Own::Note)?;
            out.done(());
            Ok(())
        }));
        assert!(rt.wait(starter.unwrap()).is_done());
        rt.run_for(Duration::from_millis(10));
        assert!(own.evict("ann"));
        rt.run_for(LONG);
        // Ordering: Relaxed: a simulation has one thread.
        assert!(asked.load(Ordering::Relaxed));
        assert_eq!((rt.stats().live, own.len()), (0, 0));
    });
}

// pins: E3
#[test]
fn an_eviction_waits_until_messages_that_are_put_off_are_taken() {
    steady().check_seeds(10, |rt| {
        let kind = rt
            .kind::<Act>("counts")
            .start_task(async |_: String, cx: Cx<Act>| {
                let is_count = |it: &Act| matches!(it, Act::Count(_));
                // Notes stay until something is counted.
                while let Some(Act::Count(reply)) = cx.recv_where(is_count).await {
                    reply.complete(1);
                    while cx.try_recv().is_some() {}
                }
                Ok(())
            });
        let counts = kind.build().unwrap();
        let ann = counts.of("ann");
        ann.send(Act::Note(0, 0)).unwrap();
        rt.run_for(Duration::from_millis(10));
        assert!(counts.evict("ann"));
        rt.run_for(Duration::from_millis(10));
        let answer = ann.call(Act::Count).begin();
        rt.run_for(LONG);
        assert!(answer.is_ready());
        assert_eq!(counts.len(), 0);
    });
}

// pins: E5
#[test]
fn a_stop_cancels_a_process_with_messages_left_before_it_terminates() {
    steady().check_seeds(10, |rt| {
        let cleaned = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&cleaned);
        let kind = rt
            .kind::<Act>("sleeps")
            .start_task(move |_: String, cx: Cx<Act>| {
                let its = Arc::clone(&its);
                async move {
                    while cx.recv().await.is_some() && cx.sleep(LONG).await.is_ok() {}
                    // Ordering: Relaxed: a simulation has one thread.
                    its.store(true, Ordering::Relaxed);
                    Ok::<(), BoxError>(())
                }
            });
        let sleeps = kind.build().unwrap();
        for number in 0..2 {
            sleeps.of("ann").send(Act::Note(0, number)).unwrap();
        }
        rt.run_for(Duration::from_millis(10));
        rt.begin_stop(Duration::from_secs(60));
        rt.run_for(Duration::from_secs(100));
        // Ordering: Relaxed: a simulation has one thread.
        assert!(cleaned.load(Ordering::Relaxed));
    });
}
