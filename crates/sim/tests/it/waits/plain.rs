//! The same mix with a single queue, first in, first out, for all workers.

use super::ledger::{Ledger, Send};
use super::mix::Mix;
use std::collections::VecDeque;

struct Plain {
    ledger: Ledger,
    queue: VecDeque<usize>,
    /// The process of each worker, and the end of its step.
    workers: Vec<Option<(usize, u64)>>,
}

/// Returns the longest wait, in microseconds.
pub(super) fn longest_wait(mix: &Mix) -> u64 {
    let mut plain = Plain {
        ledger: Ledger::new(mix),
        queue: (0..mix.kinds.len()).collect(),
        workers: vec![None; mix.workers],
    };
    for arrival in mix.arrivals() {
        plain.run_until(arrival.at);
        plain.send(arrival.send);
    }
    plain.ledger.longest()
}

impl Plain {
    fn run_until(&mut self, end: u64) {
        loop {
            self.begin();
            let ends = self.workers.iter().flatten().map(|&(_, until)| until);
            let next = ends.min().unwrap_or(end).min(end);
            self.ledger.now = next;
            if next == end {
                return;
            }
            self.end();
        }
    }

    fn begin(&mut self) {
        for worker in self.workers.iter_mut().filter(|worker| worker.is_none()) {
            let Some(process) = self.queue.pop_front() else {
                return;
            };
            *worker = Some((process, self.ledger.now + self.ledger.begin(process)));
        }
    }

    fn end(&mut self) {
        for worker in 0..self.workers.len() {
            if let Some((process, _)) = self.workers[worker].take_if(|it| it.1 <= self.ledger.now) {
                let (sends, continues) = self.ledger.end(process).unwrap();
                sends.into_iter().for_each(|send| self.send(send));
                self.queue.extend(continues.then_some(process));
            }
        }
    }

    fn send(&mut self, send: Send) {
        if self.ledger.reach(send.to) {
            self.queue.push_back(send.to);
        }
    }
}
