//! Obstacles of an end: left messages, own questions, small batches.

use crate::support::*;
use ganger_keyed::{Keyed, Kinds};
use ganger_proc_api::{
    Actor, BoxError, CancelReason, Completion, Context, Pid, Reply, StepOutput, StepResult,
    actor_fn, process_fn,
};
use ganger_sched::{ContextExt, ExitAction};
use ganger_task::Cx;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
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

// pins: E3
#[test]
fn a_timer_that_fills_a_batch_while_a_process_leaves_hides_no_message() {
    let sim = steady().builder(|it| it.event_batch(1));
    sim.check_seeds(300, |rt| {
        let book = Book::default();
        let clerks = clerks(rt, &book);
        clerks.of("ann").send(Act::Note(0, 0)).unwrap();
        rt.run_for(IDLE - Duration::from_micros(1));
        assert_eq!(clerks.len(), 1, "it has not been idle for long");
        // By chance the timer has fired, and the process has not taken it up.
        for _ in 0..rt.choose(60) {
            rt.step();
        }
        for number in 1..5 {
            clerks.of("ann").send(Act::Note(0, number)).unwrap();
        }
        clerks.evict("ann");
        rt.run_for(Duration::from_secs(50));
        let sent: Vec<_> = (0..5).map(|it| (0, it)).collect();
        assert_eq!(book.of("ann").taken, sent);
    });
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
        let own = ctx.inherited::<Keyed<Own>>().ok_or("no registry")?;
        out.defer_cancel();
        out.ask(own.of("ann").call(Own::Ask), 5);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        let error = it.take::<u64>().unwrap_err().to_string();
        assert!(error.contains("can't call itself"), "{error}");
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
        let own = own.build();
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
        let kind = rt.kind::<Act>("counts").start(|_, _| {
            async |cx: Cx<Act>| {
                let is_count = |it: &Act| matches!(it, Act::Count(_));
                // Notes stay until something is counted.
                while let Some(Act::Count(reply)) = cx.recv_where(is_count).await {
                    reply.complete(1);
                    while cx.try_recv().is_some() {}
                }
                Ok(())
            }
        });
        let counts = kind.build();
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
        let kind = rt.kind::<Act>("sleeps").start(move |_, _| {
            let its = Arc::clone(&its);
            async move |cx: Cx<Act>| {
                while cx.recv().await.is_some() && cx.sleep(LONG).await.is_ok() {}
                // Ordering: Relaxed: a simulation has one thread.
                its.store(true, Ordering::Relaxed);
                Ok::<(), BoxError>(())
            }
        });
        let sleeps = kind.build();
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

/// Takes its time for a release, and notes its end.
struct Releases {
    is_released: Arc<AtomicBool>,
    next_begins: Mutex<Receiver<()>>,
}

impl ExitAction for Releases {
    fn release(&mut self, _: Pid) {
        // The next process has time to begin here, and must not.
        let early = self.next_begins.lock().unwrap();
        let _in_vain = early.recv_timeout(Duration::from_millis(50));
        // Ordering: SeqCst, as the order of the test.
        self.is_released.store(true, Ordering::SeqCst);
    }
}

// pins: E2
#[test]
fn the_next_process_begins_when_the_one_before_has_released_all() {
    let scheduler = start(2);
    let is_released = Arc::new(AtomicBool::new(true));
    let (begins, next_begins) = channel();
    let next_begins = Mutex::new(Some(next_begins));
    let its = Arc::clone(&is_released);
    let kind = scheduler.kind::<Reply<bool>>("releases");
    let kind = kind.start(move |_, ctx| {
        // Ordering: SeqCst, for both accesses, as the order of the test.
        let found = its.load(Ordering::SeqCst);
        begins.send(()).unwrap_or_default();
        if let Some(next_begins) = next_begins.lock().unwrap().take() {
            next_begins.recv().unwrap();
            its.store(false, Ordering::SeqCst);
            let action = Releases {
                is_released: Arc::clone(&its),
                next_begins: Mutex::new(next_begins),
            };
            let added = ctx.add_exit_action(Box::new(action));
            assert!(added.is_ok());
        }
        actor_fn(move |_, reply: Reply<bool>, _| {
            reply.complete(found);
            Ok(())
        })
    });
    let releases = kind.build();
    let ann = releases.of("ann");
    assert!(ann.call(|reply| reply).wait().unwrap());
    assert!(releases.evict("ann"));
    while ann.find().is_some() {
        std::thread::yield_now();
    }
    let found = ann.call(|reply| reply).wait().unwrap();
    assert!(found, "it began before the one before had released all");
}

static PANICS: AtomicBool = AtomicBool::new(false);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key(u8);

impl Drop for Key {
    fn drop(&mut self) {
        // Ordering: SeqCst, as the order of the test.
        let panics = PANICS.swap(false, Ordering::SeqCst);
        assert!(!panics, "on purpose");
    }
}

/// Ends with its first answer, and stays in `close` until it may go.
struct Slow(Arc<AtomicBool>);

impl Actor for Slow {
    type Message = Reply<u64>;

    fn receive(&mut self, _: &Context, reply: Reply<u64>, out: &mut StepOutput) -> StepResult {
        reply.complete(1);
        out.done(());
        Ok(())
    }

    fn close(&mut self) {
        // Ordering: SeqCst, as the order of the test.
        while self.0.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}

// pins: E2
#[test]
fn a_key_whose_destructor_panics_has_a_next_process() {
    let scheduler = start(2);
    let stays = Arc::new(AtomicBool::new(true));
    let its = Arc::clone(&stays);
    let kind = scheduler.kind::<Reply<u64>>("slow").keyed_by::<Key>();
    let kind = kind.start(move |_, _| Slow(Arc::clone(&its)));
    let slow = kind.build();
    let one = slow.of(Key(1));
    assert_eq!(one.call(|reply| reply).wait().unwrap(), 1);
    while one.find().is_some() {
        std::thread::yield_now();
    }
    // The process is in `close`. The next process drops the key of its entry.
    // Ordering: SeqCst, for both accesses, as the order of the test.
    PANICS.store(true, Ordering::SeqCst);
    let _panicked = one.call(|reply| reply).wait();
    stays.store(false, Ordering::SeqCst);
    let answer = one.call(|reply| reply).wait_timeout(PATIENCE);
    assert_eq!(answer.unwrap(), 1);
}
