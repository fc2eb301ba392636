//! Models of parking against pushing: a successful park gives out one token, and the token's holder
//! sees the consumer's actions before the park.

use crate::outcomes::Outcomes;
use ganger_mpsc::{Park, Pushed, Queue, Sealed};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::thread::JoinHandle;
use ganger_sync::{model, thread};

/// A queue, and a value that belongs to the running thread: the consumer until it has parked, then
/// the holder of the token.
struct Process {
    mailbox: Queue<u32>,
    runs: UnsafeCell<u32>,
}

// SAFETY: the consumer uses `runs` before it parks, and the token's holder afterwards; the model
// checks that these are ordered.
unsafe impl Sync for Process {}

impl Process {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mailbox: Queue::new(),
            runs: UnsafeCell::new(0),
        })
    }

    fn run(&self) {
        // SAFETY: called by the consumer before it parks, or by the holder of the token.
        self.runs.with_mut(|runs| unsafe { *runs += 1 });
    }

    /// Pushes, and runs the process if the push takes the token. Returns whether it did.
    fn push(&self, item: u32) -> bool {
        let unparked = self.mailbox.push(item).unwrap() == Pushed::Unparked;
        if unparked {
            self.run();
        }
        unparked
    }
}

fn spawn<R: 'static + Send>(
    process: &Arc<Process>,
    body: impl FnOnce(&Process) -> R + Send + 'static,
) -> JoinHandle<R> {
    let process = Arc::clone(process);
    thread::spawn(move || body(&process))
}

#[test]
fn park_against_one_push() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(6, move || {
        let process = Process::new();
        let pusher = spawn(&process, |process| process.push(7));
        process.run();
        let park = process.mailbox.park();
        assert_ne!(park, Park::Closed);
        assert_eq!(pusher.join().unwrap(), park == Park::Parked);
        assert_eq!(process.mailbox.drain().pop_front(), Some(7));
        seen.note(park == Park::Parked);
        // SAFETY: the other threads have ended.
        let runs = process.runs.with(|runs| unsafe { *runs });
        assert_eq!(runs, if park == Park::Parked { 2 } else { 1 });
    });
    outcomes.check([false, true]);
}

#[test]
fn park_against_two_pushers() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(6, move || {
        let process = Process::new();
        let pushers = [1, 2].map(|item| spawn(&process, move |process| process.push(item)));
        process.run();
        let park = process.mailbox.park();
        let tokens = pushers.map(|pusher| pusher.join().unwrap());
        seen.note(tokens);
        let tokens = tokens.into_iter().filter(|token| *token).count();
        assert_eq!(tokens, usize::from(park == Park::Parked));
        assert_eq!(process.mailbox.drain().len(), 2, "a park displaces no item");
    });
    outcomes.check([[false, false], [false, true], [true, false]]);
}

#[test]
fn a_second_park_covers_what_came_after_the_first() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(6, move || {
        let queue = Arc::new(Queue::new());
        let steps = Arc::new(AtomicU32::new(0));
        let pusher = {
            let (queue, steps) = (Arc::clone(&queue), Arc::clone(&steps));
            thread::spawn(move || {
                let pushed = queue.push(1).unwrap();
                // Ordering: Relaxed, because the park must order it.
                (pushed, steps.load(Ordering::Relaxed))
            })
        };
        if queue.park() == Park::Parked {
            // Ordering: Relaxed, because the park must order it.
            steps.store(1, Ordering::Relaxed);
            let again = queue.park();
            let (pushed, steps_seen) = pusher.join().unwrap();
            assert_eq!(pushed, Pushed::Unparked);
            seen.note(Some(again == Park::Parked));
            if again == Park::Parked {
                assert_eq!(steps_seen, 1);
            }
        } else {
            seen.note(None);
            assert_eq!(pusher.join().unwrap().0, Pushed::First);
        }
    });
    outcomes.check([None, Some(false), Some(true)]);
}

#[test]
fn a_drain_leaves_a_park_alone() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(6, move || {
        let process = Process::new();
        process.run();
        assert_eq!(process.mailbox.park(), Park::Parked);
        let pusher = spawn(&process, |process| process.push(1));
        thread::yield_now();
        let mut drained = process.mailbox.drain().len();
        seen.note(drained);
        assert!(pusher.join().unwrap(), "the drain took the token away");
        drained += process.mailbox.drain().len();
        assert_eq!(drained, 1);
    });
    outcomes.check([0, 1]);
}

#[test]
fn a_cancelled_park_against_a_push() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(6, move || {
        let process = Process::new();
        process.run();
        assert_eq!(process.mailbox.park(), Park::Parked);
        let pusher = spawn(&process, |process| process.push(1));
        let cancelled = process.mailbox.cancel_park();
        seen.note(cancelled);
        if cancelled {
            process.run();
        }
        assert_ne!(
            pusher.join().unwrap(),
            cancelled,
            "one of the two has the token"
        );
        assert_eq!(process.mailbox.drain().len(), 1);
    });
    outcomes.check([false, true]);
}

#[test]
fn a_thread_that_cancels_a_park_takes_over() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(6, move || {
        let process = Process::new();
        let other = spawn(&process, |process| {
            let cancelled = process.mailbox.cancel_park();
            if cancelled {
                process.run();
            }
            cancelled
        });
        process.run();
        assert_eq!(process.mailbox.park(), Park::Parked);
        let cancelled = other.join().unwrap();
        seen.note(cancelled);
        assert_eq!(process.push(1), !cancelled);
    });
    outcomes.check([false, true]);
}

#[test]
fn park_against_seal_and_close() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(6, move || {
        let process = Process::new();
        let sealer = spawn(&process, |process| {
            let unparked = process.mailbox.seal() == Sealed::Unparked;
            if unparked {
                process.run();
            }
            unparked
        });
        let closer = spawn(&process, |process| {
            let parked = process.mailbox.close().parked;
            if parked {
                process.run();
            }
            parked
        });
        process.run();
        let park = process.mailbox.park();
        assert_ne!(park, Park::NotEmpty);
        let tokens = [sealer, closer].map(|thread| thread.join().unwrap());
        seen.note(tokens);
        let tokens = tokens.into_iter().filter(|token| *token).count();
        assert_eq!(tokens, usize::from(park == Park::Parked));
        assert!(process.mailbox.is_finished());
    });
    outcomes.check([[false, false], [false, true], [true, false]]);
}
