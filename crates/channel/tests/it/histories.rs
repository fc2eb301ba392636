//! Checks histories of real threads against a queue.
//!
//! Each call records its begin and end. All values differ, so a history is a queue's if: each sent
//! value is received once; no value overtakes another whose send ended before its own began; and
//! the ended sends number at most the begun receives plus the capacity.

use ganger_channel::{Receiver, Sender, channel};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The begin and end of a call.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: usize,
    to: usize,
}

impl Span {
    fn is_before(self, other: Self) -> bool {
        self.to < other.from
    }
}

/// The send and the receive of each value.
type History = Vec<(Span, Span)>;

#[derive(Default)]
struct Clock(AtomicUsize);

impl Clock {
    fn tick(&self) -> usize {
        // Ordering: SeqCst: all threads agree on the order.
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    fn span<R>(&self, call: impl FnOnce() -> R) -> (Span, R) {
        let from = self.tick();
        let result = call();
        (
            Span {
                from,
                to: self.tick(),
            },
            result,
        )
    }
}

/// Returns the first flaw of a history.
fn flaw(history: &History, capacity: usize) -> Option<String> {
    // A value's receive must not end before the begin of an earlier value's receive, for values
    // whose sends ended before its own began. `last` is the latest of these begins.
    let mut by_end: Vec<_> = history.clone();
    by_end.sort_by_key(|(send, _)| send.to);
    let mut by_start = by_end.clone();
    by_start.sort_by_key(|(send, _)| send.from);
    let (mut seen, mut last) = (0, None::<(Span, Span)>);
    for &(send, receive) in &by_start {
        while seen < by_end.len() && by_end[seen].0.is_before(send) {
            let one = by_end[seen];
            if last.is_none_or(|last| one.1.from > last.1.from) {
                last = Some(one);
            }
            seen += 1;
        }
        if let Some(earlier) = last
            && receive.is_before(earlier.1)
        {
            return Some(format!("{:?} overtakes {earlier:?}", (send, receive)));
        }
    }
    let mut asked: Vec<_> = history.iter().map(|(_, receive)| receive.from).collect();
    asked.sort_unstable();
    for (sent, (send, _)) in by_end.iter().enumerate() {
        let received = asked.partition_point(|&at| at < send.to);
        if sent + 1 > received + capacity {
            return Some(format!(
                "{} sends have ended, {received} receives begun",
                sent + 1
            ));
        }
    }
    let is_early = |(send, receive): &&(Span, Span)| receive.to < send.from;
    history
        .iter()
        .find(is_early)
        .map(|it| format!("received before it was sent: {it:?}"))
}

fn record(capacity: usize, senders: usize, receivers: usize, each: usize) -> History {
    let clock = Arc::new(Clock::default());
    let (sender, receiver) = channel::<usize>(capacity);
    let senders: Vec<_> = (0..senders)
        .map(|thread| {
            let (clock, sender): (_, Sender<usize>) = (Arc::clone(&clock), sender.clone());
            thread::spawn(move || {
                let send = |number| {
                    let value = thread * each + number;
                    let (span, sent) = clock.span(|| sender.send_blocking(value));
                    sent.unwrap();
                    (value, span)
                };
                (0..each).map(send).collect::<Vec<_>>()
            })
        })
        .collect();
    drop(sender);
    let receivers: Vec<_> = (0..receivers)
        .map(|_| {
            let (clock, receiver): (_, Receiver<usize>) = (Arc::clone(&clock), receiver.clone());
            thread::spawn(move || {
                std::iter::from_fn(|| {
                    let (span, value) = clock.span(|| receiver.recv_blocking());
                    value.ok().map(|value| (value, span))
                })
                .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut sent: Vec<_> = senders
        .into_iter()
        .flat_map(|it| it.join().unwrap())
        .collect();
    let mut got: Vec<_> = receivers
        .into_iter()
        .flat_map(|it| it.join().unwrap())
        .collect();
    sent.sort_unstable_by_key(|(value, _)| *value);
    got.sort_unstable_by_key(|(value, _)| *value);
    let values = |all: &[(usize, Span)]| all.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(values(&sent), values(&got), "a value was lost or doubled");
    sent.iter()
        .zip(&got)
        .map(|(send, got)| (send.1, got.1))
        .collect()
}

// pins: Q2
#[test]
fn histories_are_those_of_a_queue() {
    for capacity in [0, 1, 3, usize::MAX / 2] {
        for (senders, receivers) in [(1, 1), (3, 1), (1, 3), (3, 3)] {
            let history = record(capacity, senders, receivers, 2_000);
            assert_eq!(flaw(&history, capacity), None);
        }
    }
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let span = |from, to| Span { from, to };
    let fine = vec![(span(0, 1), span(2, 3)), (span(4, 5), span(6, 7))];
    assert_eq!(flaw(&fine, 1), None);
    assert!(
        flaw(&fine, 0).is_some(),
        "a send without a buffer ended before a receive began"
    );
    let overtaken = vec![(span(0, 1), span(6, 7)), (span(2, 3), span(4, 5))];
    assert!(flaw(&overtaken, 2).unwrap().contains("overtakes"));
    let concurrent = vec![(span(0, 3), span(6, 7)), (span(1, 2), span(4, 5))];
    assert_eq!(flaw(&concurrent, 2), None);
    let early = vec![(span(4, 5), span(0, 1))];
    assert!(flaw(&early, 1).unwrap().contains("before it was sent"));
}
