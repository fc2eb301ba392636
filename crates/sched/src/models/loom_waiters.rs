//! Waiting for room: senders that wait, do not wait, or give up, against the process that makes
//! room and ends, the stop of the scheduler, and the canceller of the sender. A lost wake-up leaves
//! a sender waiting for ever, and loom reports it.

use crate::limits::room::{Given, MESSAGE, Room};
use crate::limits::waiters::{Entered, Look, Ticket, Waiters};
use crate::limits::waiting_steps::WaitingSteps;
use ganger_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::thread::JoinHandle;
use ganger_sync::{Parker, model, thread};
use std::task::Waker;

/// The mailbox of a process, as far as counting goes.
struct Mailbox {
    limit: usize,
    room: Room,
    waiters: Waiters<usize>,
    /// The sum of the pushed items, and [`CLOSED`] once the mailbox is closed.
    pushed: AtomicUsize,
}

/// More than the sum of all items.
const CLOSED: usize = 1 << 16;

impl Mailbox {
    /// Creates a full mailbox with a limit of one message.
    fn full() -> Arc<Self> {
        Self::filled(1, 1)
    }

    fn filled(limit: usize, messages: usize) -> Arc<Self> {
        let room = Room::new();
        assert!((0..messages).all(|_| room.take(limit)));
        Arc::new(Self {
            limit,
            room,
            waiters: Waiters::new(),
            pushed: AtomicUsize::new(0),
        })
    }

    fn push(&self, item: usize) -> bool {
        let (messages, _) = self.room.snapshot();
        assert!(messages <= self.limit as u64, "a message too many");
        let add = |pushed: usize| (pushed < CLOSED).then_some(pushed + item);
        // Ordering: as the real mailbox.
        self.pushed
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, add)
            .is_ok()
    }

    fn pushed(&self) -> usize {
        // Ordering: Relaxed: all other threads have been joined.
        self.pushed.load(Ordering::Relaxed) % CLOSED
    }

    /// Makes room as a process does after a step, by `ProcessCell::release_messages`.
    fn make_room(&self, places: u64) {
        if self.room.give(places * MESSAGE, self.limit) == Given::Awaited {
            self.serve();
        }
    }

    /// Serves the waiters as `ProcessCell::serve_waiters` does.
    fn serve(&self) {
        let mut wakers = Vec::new();
        while let Some(waker) = self.waiters.next(&self.room, self.limit, |item| {
            self.push(item).then_some(()).ok_or(item)
        }) {
            wakers.push(waker);
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Serves senders as a process does before it waits for an event.
    fn wait(&self) {
        self.make_room(0);
    }

    /// Ends as `ProcessCell::complete` does.
    fn end(&self) {
        // Ordering: as the real mailbox.
        self.pushed.fetch_add(CLOSED, Ordering::AcqRel);
        self.waiters.close(&self.room, Waker::wake);
    }

    /// Stops as `end_waits` does.
    fn stop(&self) {
        if self.waiters.stop() {
            self.waiters.wake_all(Waker::wake);
        }
    }

    fn try_send(&self, limit: usize, item: usize) -> bool {
        self.room.take(limit) && self.push(item)
    }

    fn enter(&self, item: usize, waker: Waker) -> Result<bool, Ticket> {
        match self.waiters.enter(&self.room, self.limit, item, waker) {
            Entered::Place((item, _)) => Ok(self.push(item)),
            Entered::Refused(..) => Ok(false),
            Entered::Waiting(ticket) => Err(ticket),
        }
    }

    /// Sends, and sleeps until the message has been accepted or the process has ended.
    fn send(&self, item: usize) -> bool {
        let token = std::sync::Arc::new(Parker::new());
        match self.enter(item, Waker::from(std::sync::Arc::clone(&token))) {
            Ok(sent) => sent,
            Err(ticket) => {
                token.park();
                self.waiters.leave(&self.room, &ticket).is_none()
            }
        }
    }

    /// Sends as a task does: with another waker at the second look.
    fn send_as_task(&self, item: usize) -> bool {
        let ticket = match self.enter(item, Waker::noop().clone()) {
            Ok(sent) => return sent,
            Err(ticket) => ticket,
        };
        let token = std::sync::Arc::new(Parker::new());
        loop {
            let mut waker = Waker::from(std::sync::Arc::clone(&token));
            match self.waiters.poll(&self.room, &ticket, &mut waker) {
                Look::Waiting => token.park(),
                Look::Accepted => return true,
                Look::Refused(..) => return false,
            }
        }
    }

    /// Sends, and its time is over as soon as it waits.
    fn send_in_time(&self, item: usize) -> bool {
        match self.enter(item, Waker::noop().clone()) {
            Ok(sent) => sent,
            Err(ticket) => {
                self.serve();
                self.waiters.leave(&self.room, &ticket).is_none()
            }
        }
    }

    /// Sends, and gives up at once if it would have to wait.
    fn give_up(&self, item: usize) -> bool {
        match self.enter(item, Waker::noop().clone()) {
            Ok(sent) => sent,
            Err(ticket) => self.waiters.leave(&self.room, &ticket).is_none(),
        }
    }
}

fn spawn<R: Send + 'static>(
    mailbox: &Arc<Mailbox>,
    body: impl FnOnce(&Mailbox) -> R + Send + 'static,
) -> JoinHandle<R> {
    let mailbox = Arc::clone(mailbox);
    thread::spawn(move || body(&mailbox))
}

// pins: P13
#[test]
fn one_waits_for_room() {
    for send in [Mailbox::send, Mailbox::send_as_task] {
        model::check(5, move || {
            let mailbox = Mailbox::full();
            let sender = spawn(&mailbox, move |mailbox| send(mailbox, 1));
            mailbox.make_room(1);
            assert!(sender.join().unwrap());
            assert_eq!((mailbox.pushed(), mailbox.room.snapshot()), (1, (1, false)));
        });
    }
}

/// Checks that an accepted message is in the mailbox when its sender learns so: the sender's next
/// message must not overtake the first.
// pins: P4, R4
#[test]
fn what_has_been_accepted_is_in_the_mailbox() {
    for send in [Mailbox::send_as_task, Mailbox::give_up] {
        model::check(3, move || {
            let mailbox = Mailbox::full();
            let sender = spawn(&mailbox, move |mailbox| {
                let is_accepted = send(mailbox, 1);
                assert!(!is_accepted || mailbox.pushed() == 1);
            });
            mailbox.make_room(1);
            sender.join().unwrap();
        });
    }
}

// pins: P13
#[test]
fn two_wait_for_room_that_comes_at_once() {
    model::check(3, || {
        let mailbox = Mailbox::filled(2, 2);
        let senders = [1, 2].map(|item| spawn(&mailbox, move |mailbox| mailbox.send(item)));
        mailbox.make_room(2);
        assert!(senders.into_iter().all(|sender| sender.join().unwrap()));
        assert_eq!((mailbox.pushed(), mailbox.room.snapshot()), (3, (2, false)));
    });
}

// pins: P13
#[test]
fn two_wait_for_room_that_comes_one_after_the_other() {
    model::check(3, || {
        let mailbox = Mailbox::full();
        let senders = [1, 2].map(|item| spawn(&mailbox, move |mailbox| mailbox.send(item)));
        mailbox.make_room(1);
        // The sender's next message may come once its first has been accepted.
        while mailbox.room.snapshot().0 == 0 {
            thread::yield_now();
        }
        mailbox.make_room(1);
        assert!(senders.into_iter().all(|sender| sender.join().unwrap()));
        assert_eq!((mailbox.pushed(), mailbox.room.snapshot()), (3, (1, false)));
    });
}

/// Lets the process leave more in its mailbox than a lot asks for, and wait for something else.
// pins: P13
#[test]
fn one_waits_for_room_that_is_less_than_a_lot() {
    for send in [Mailbox::send, Mailbox::send_as_task] {
        model::check(5, move || {
            let mailbox = Mailbox::filled(5, 5);
            let sender = spawn(&mailbox, move |mailbox| send(mailbox, 1));
            mailbox.make_room(1);
            mailbox.wait();
            assert!(sender.join().unwrap());
            assert_eq!((mailbox.pushed(), mailbox.room.snapshot()), (1, (5, false)));
        });
    }
}

/// Makes room for one sender, and then for the other. Neither comes too early.
// pins: P13
#[test]
fn two_wait_for_room_that_becomes_a_lot() {
    model::check(3, || {
        let mailbox = Mailbox::filled(4, 4);
        let senders = [1, 2].map(|item| spawn(&mailbox, move |mailbox| mailbox.send(item)));
        for _ in 0..2 {
            mailbox.make_room(1);
        }
        mailbox.wait();
        assert!(senders.into_iter().all(|sender| sender.join().unwrap()));
        assert_eq!((mailbox.pushed(), mailbox.room.snapshot()), (3, (4, false)));
    });
}

/// Lets the process take the visible messages, which leaves at most a quarter, and not wait then.
// pins: P13
#[test]
fn two_wait_for_room_that_is_a_lot_and_nothing_else_serves_them() {
    model::check(3, || {
        let mailbox = Mailbox::filled(4, 4);
        let senders = [1, 2].map(|item| spawn(&mailbox, move |mailbox| mailbox.send(item)));
        mailbox.make_room(1);
        let (seen, _) = mailbox.room.snapshot();
        mailbox.make_room(seen);
        assert!(senders.into_iter().all(|sender| sender.join().unwrap()));
        let left = 4 + 2 - 1 - seen;
        assert_eq!(
            (mailbox.pushed(), mailbox.room.snapshot()),
            (3, (left, false))
        );
    });
}

/// Makes room for less than a lot, and lets the process act no more: the sender whose time is over
/// serves the other sender, if the other came first.
// pins: P13
#[test]
fn two_wait_and_the_time_of_the_later_one_is_over() {
    model::check(3, || {
        let mailbox = Mailbox::filled(5, 5);
        let token = std::sync::Arc::new(Parker::new());
        let first = mailbox.enter(1, Waker::from(std::sync::Arc::clone(&token)));
        assert!(first.is_err(), "it waits");
        let late = spawn(&mailbox, |mailbox| mailbox.send_in_time(2));
        mailbox.make_room(1);
        let is_sent = late.join().unwrap();
        assert!(!is_sent, "it has overtaken the first");
        let first =
            first.is_err_and(|ticket| mailbox.waiters.leave(&mailbox.room, &ticket).is_none());
        assert_eq!(
            mailbox.pushed(),
            usize::from(first),
            "a message was lost or doubled"
        );
        assert_eq!(mailbox.room.snapshot(), (4 + u64::from(first), false));
    });
}

/// Lets the process serve a sender whose time is over, and this sender serve as well.
// pins: P13
#[test]
fn one_waits_and_its_time_is_over_when_it_is_served() {
    model::check(4, || {
        let mailbox = Mailbox::filled(4, 4);
        let waits = spawn(&mailbox, |mailbox| mailbox.send(1));
        let late = spawn(&mailbox, |mailbox| mailbox.send_in_time(2));
        mailbox.make_room(3);
        let is_sent = late.join().unwrap();
        assert!(waits.join().unwrap());
        let sent = 1 + u64::from(is_sent);
        assert_eq!(mailbox.pushed(), if is_sent { 3 } else { 1 });
        assert_eq!(mailbox.room.snapshot(), (1 + sent, false));
    });
}

/// Sends with a wait and without, both for less than a lot.
// pins: P13
#[test]
fn one_waits_and_another_does_not_for_less_than_a_lot() {
    model::check(3, || {
        let mailbox = Mailbox::filled(5, 5);
        let waits = spawn(&mailbox, |mailbox| mailbox.send(1));
        let tries = spawn(&mailbox, |mailbox| mailbox.try_send(5, 2));
        mailbox.make_room(1);
        mailbox.wait();
        let tried = tries.join().unwrap();
        if tried {
            mailbox.make_room(1);
            mailbox.wait();
        }
        assert!(waits.join().unwrap());
        let sum = if tried { 3 } else { 1 };
        assert_eq!(
            (mailbox.pushed(), mailbox.room.snapshot()),
            (sum, (5, false))
        );
    });
}

/// Checks that a sender that does not wait gets the room only before a waiter has come.
// pins: P13
#[test]
fn one_waits_and_another_does_not() {
    model::check(3, || {
        let mailbox = Mailbox::full();
        let waits = spawn(&mailbox, |mailbox| mailbox.send(1));
        let tries = spawn(&mailbox, |mailbox| mailbox.try_send(1, 2));
        mailbox.make_room(1);
        let tried = tries.join().unwrap();
        if tried {
            mailbox.make_room(1);
        }
        assert!(waits.join().unwrap());
        let sum = if tried { 3 } else { 1 };
        assert_eq!(
            (mailbox.pushed(), mailbox.room.snapshot()),
            (sum, (1, false))
        );
    });
}

// pins: P13
#[test]
fn one_waits_when_the_process_ends() {
    for send in [Mailbox::send, Mailbox::send_as_task] {
        model::check(5, move || {
            let mailbox = Mailbox::full();
            let sender = spawn(&mailbox, move |mailbox| send(mailbox, 1));
            mailbox.end();
            assert!(!sender.join().unwrap());
            assert_eq!(mailbox.pushed(), 0);
        });
    }
}

// pins: P13
#[test]
fn two_wait_when_the_scheduler_stops() {
    model::check(3, || {
        let mailbox = Mailbox::full();
        let senders = [
            spawn(&mailbox, |mailbox| mailbox.send(1)),
            spawn(&mailbox, |mailbox| mailbox.send_as_task(2)),
        ];
        mailbox.stop();
        assert!(senders.into_iter().all(|sender| !sender.join().unwrap()));
        assert_eq!((mailbox.pushed(), mailbox.room.snapshot()), (0, (1, false)));
    });
}

// pins: P13
#[test]
fn one_waits_when_room_and_a_stop_come() {
    for send in [Mailbox::send, Mailbox::send_as_task] {
        model::check(3, move || {
            let mailbox = Mailbox::full();
            let sender = spawn(&mailbox, move |mailbox| send(mailbox, 1));
            let stop = spawn(&mailbox, Mailbox::stop);
            mailbox.make_room(1);
            stop.join().unwrap();
            let sent = usize::from(sender.join().unwrap());
            // Accepted, or back.
            assert_eq!(mailbox.pushed(), sent);
            assert_eq!(mailbox.room.snapshot(), (sent as u64, false));
        });
    }
}

/// Cancels a process whose step waits for nothing else: without a wake-up the step would sleep for
/// ever.
// pins: P9, P10, P13
#[test]
fn a_step_waits_when_its_process_is_cancelled() {
    model::check(5, || {
        let steps = Arc::new(WaitingSteps::default());
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let step = {
            let (steps, is_cancelled) = (Arc::clone(&steps), Arc::clone(&is_cancelled));
            thread::spawn(move || {
                let token = std::sync::Arc::new(Parker::new());
                let _waits = steps.enter(7, Waker::from(std::sync::Arc::clone(&token)));
                // Ordering: Relaxed, less than the real mark: the fence orders it.
                if !is_cancelled.load(Ordering::Relaxed) {
                    token.park();
                }
            })
        };
        // Ordering: Relaxed, less than the real mark: the fence orders it.
        is_cancelled.store(true, Ordering::Relaxed);
        steps.wake(7);
        step.join().unwrap();
    });
}

// pins: P13
#[test]
fn two_wait_when_room_and_the_end_come() {
    model::check(3, || {
        let mailbox = Mailbox::full();
        let senders = [1, 2].map(|item| spawn(&mailbox, move |mailbox| mailbox.send(item)));
        mailbox.make_room(1);
        mailbox.end();
        let sent = senders.map(|sender| sender.join().unwrap());
        let sum = usize::from(sent[0]) + 2 * usize::from(sent[1]);
        assert_eq!(mailbox.pushed(), sum, "a message was lost or doubled");
    });
}

/// Lets a sender whose time is over serve the waiting senders. The sender does not run the process,
/// which may end meanwhile.
// pins: P13
#[test]
fn one_waits_when_another_serves_and_the_process_ends() {
    for send in [Mailbox::send, Mailbox::send_as_task] {
        model::check(4, move || {
            let mailbox = Mailbox::filled(5, 5);
            let waits = spawn(&mailbox, move |mailbox| send(mailbox, 1));
            let serves = spawn(&mailbox, Mailbox::serve);
            // Less than a lot.
            mailbox.make_room(1);
            mailbox.end();
            serves.join().unwrap();
            let sent = usize::from(waits.join().unwrap());
            assert_eq!(mailbox.pushed(), sent, "a message was lost or doubled");
        });
    }
}

// pins: P13
#[test]
fn one_gives_up_and_another_waits_on() {
    model::check(3, || {
        let mailbox = Mailbox::full();
        let waits = spawn(&mailbox, |mailbox| mailbox.send(1));
        let gives_up = spawn(&mailbox, |mailbox| mailbox.give_up(2));
        mailbox.make_room(1);
        let sent = gives_up.join().unwrap();
        if sent {
            mailbox.make_room(1);
        }
        assert!(waits.join().unwrap());
        let sum = if sent { 3 } else { 1 };
        assert_eq!(
            (mailbox.pushed(), mailbox.room.snapshot()),
            (sum, (1, false))
        );
    });
}
