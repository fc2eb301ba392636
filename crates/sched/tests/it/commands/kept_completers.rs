//! Kept completers: the holder of a completer is notified when its process has ended.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, EndWatch, Event, Handler, Message, Payloads, Process,
};
use ganger_sched::{ProcessHandle, Scheduler};
use ganger_sync::failing;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const ASK: CommandId = CommandId::new(256);

/// Keeps its completers until they are answered or their processes have ended.
#[derive(Default)]
struct Keeper {
    kept: Arc<Mutex<HashMap<u64, (Completer, EndWatch)>>>,
    told: Arc<AtomicUsize>,
    /// The number of notices by the end of a failed process.
    failed: Arc<AtomicUsize>,
    next: AtomicU64,
}

impl Handler for Keeper {
    fn handle(&self, _: Command, completer: Completer) -> Result<(), BoxError> {
        // Ordering: Relaxed: only uniqueness matters.
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let (kept, told) = (Arc::downgrade(&self.kept), Arc::clone(&self.told));
        let failed = Arc::clone(&self.failed);
        let watch = completer.on_end(move || {
            if let Some(kept) = kept.upgrade() {
                let removed = kept.lock().unwrap().remove(&key);
                drop(removed);
            }
            // Ordering: Relaxed: counts.
            failed.fetch_add(failing::is_failing().into(), Ordering::Relaxed);
            told.fetch_add(1, Ordering::Relaxed);
        });
        let watch = watch.expect("a process that asks has not ended");
        self.kept.lock().unwrap().insert(key, (completer, watch));
        Ok(())
    }
}

impl Keeper {
    fn kept(&self) -> usize {
        self.kept.lock().unwrap().len()
    }

    fn told(&self) -> usize {
        self.told.load(Ordering::Relaxed)
    }
}

fn start_with(keeper: &Arc<Keeper>) -> Scheduler {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    scheduler.register(ASK, "ask", Arc::clone(keeper)).unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Creates a process that asks `questions` times, and waits. A message ends the process: in the way
/// of its topic.
fn asker(questions: u64) -> impl Process {
    let mut left = questions;
    process(move |_, events, out| {
        for _ in 0..std::mem::take(&mut left) {
            out.yield_command(Command::new(ASK, ()), 0);
        }
        for event in events {
            match event {
                Event::Message(message) if message.topic == "fail" => return Err("as asked".into()),
                Event::Message(message) if message.topic == "panic" => panic!("on purpose"),
                Event::Message(_) => out.done(()),
                // The process continues, and may wait for its answers.
                Event::Cancel(_) => out.defer_cancel(),
                _ => {}
            }
        }
        Ok(())
    })
}

fn say(to: &ProcessHandle, topic: &'static str) {
    to.send(Message::new(topic, Payloads::new())).unwrap();
}

// pins: P12
#[test]
fn a_handler_lets_go_of_completers_when_their_process_has_ended_in_any_way() {
    quiet_panics();
    let keeper = Arc::default();
    let scheduler = start_with(&keeper);
    for (nth, how) in (1..).zip(["done", "fail", "panic", "terminate"]) {
        let asker = scheduler.submit(asker(3), "main", ()).unwrap();
        let pid = asker.pid();
        until("it has asked", || keeper.kept() == 3);
        // A process asked to finish may still wait for its answers.
        scheduler.cancel(pid, "please").unwrap();
        until("it knows", || {
            keeper
                .kept
                .lock()
                .unwrap()
                .values()
                .all(|it| it.0.is_cancelled())
        });
        assert_eq!((keeper.kept(), keeper.told()), (3, 3 * (nth - 1)));
        if how == "terminate" {
            scheduler.terminate(pid).unwrap();
        } else {
            say(&asker, how);
        }
        drop(exit(asker));
        // The calls come before the handle has the reason.
        assert_eq!((keeper.kept(), keeper.told()), (0, 3 * nth), "{how}");
        // The first has not failed.
        let failed = keeper.failed.load(Ordering::Relaxed);
        assert_eq!(failed, 3 * (nth - 1), "{how}");
    }
}

// pins: P12
#[test]
fn a_watch_that_is_dropped_takes_the_call_back() {
    let keeper = Arc::default();
    let scheduler = start_with(&keeper);
    let asker = scheduler.submit(asker(4), "main", ()).unwrap();
    until("it has asked", || keeper.kept() == 4);
    let answered: Vec<_> = keeper.kept.lock().unwrap().drain().take(2).collect();
    for (_, (completer, watch)) in answered {
        completer.complete(());
        drop(watch);
    }
    say(&asker, "done");
    drop(exit(asker));
    assert_eq!(keeper.told(), 0, "all four were taken out");
}

// pins: P12
#[test]
fn a_process_that_has_ended_makes_no_call_and_says_so() {
    let keeper = Arc::default();
    let scheduler = start_with(&keeper);
    let asker = scheduler.submit(asker(1), "main", ()).unwrap();
    until("it has asked", || keeper.kept() == 1);
    let (_, (completer, watch)) = keeper.kept.lock().unwrap().drain().next().unwrap();
    drop(watch);
    say(&asker, "done");
    drop(exit(asker));
    assert!(completer.on_end(|| panic!("it has ended before")).is_none());
}

// pins: P12
#[test]
fn a_call_that_panics_is_contained_and_counted_and_the_others_are_made() {
    quiet_panics();
    let keeper = Arc::default();
    let scheduler = start_with(&keeper);
    let asker = scheduler.submit(asker(2), "main", ()).unwrap();
    until("it has asked", || keeper.kept() == 2);
    let watch = {
        let kept = keeper.kept.lock().unwrap();
        let (completer, _) = kept.values().next().unwrap();
        completer.on_end(|| panic!("on purpose"))
    };
    assert!(watch.is_some());
    say(&asker, "done");
    assert!(exit(asker).is_done());
    assert_eq!((keeper.told(), scheduler.stats().total.panics), (2, 1));
}

/// Begins to watch by threads while the process ends: each is notified once, or knows that it is
/// too late.
// pins: P12
#[test]
fn a_watch_that_begins_while_the_process_ends_is_told_or_refused() {
    const WATCHERS: usize = 3;
    let keeper: Arc<Keeper> = Arc::default();
    let scheduler = start_with(&keeper);
    for _ in 0..100 {
        let asker = scheduler.submit(asker(1), "main", ()).unwrap();
        until("it has asked", || keeper.kept() == 1);
        let (_, (completer, watch)) = keeper.kept.lock().unwrap().drain().next().unwrap();
        drop(watch);
        let (told, begun) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let watches = thread::scope(|scope| {
            let threads = [(); WATCHERS].map(|()| {
                scope.spawn(|| {
                    let mut watches = Vec::new();
                    // Bounded: without an end they would keep the process from its message.
                    for _ in 0..100 {
                        // Ordering: Relaxed: counts.
                        let told = Arc::clone(&told);
                        let call = move || _ = told.fetch_add(1, Ordering::Relaxed);
                        match completer.on_end(call) {
                            Some(watch) => watches.push(watch),
                            None => break,
                        }
                        begun.fetch_add(1, Ordering::Relaxed);
                    }
                    watches
                })
            });
            until("they watch", || begun.load(Ordering::Relaxed) > 0);
            say(&asker, "done");
            threads.map(|thread| thread.join().unwrap())
        });
        drop(exit(asker));
        let watches: usize = watches.iter().map(Vec::len).sum();
        assert_eq!(told.load(Ordering::Relaxed), watches);
    }
}
