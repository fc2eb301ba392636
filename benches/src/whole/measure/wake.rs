//! The time in which a waiting process begins to run.

use super::super::bell::LAST;
use super::super::bell::{Bell, Sender};
use super::super::busy::Busy;
use super::super::contestant::Contestant;
use super::super::job::Error;
use super::super::latency::Latencies;
use super::super::memory;
use super::super::sample::Sample;
use super::super::turns::{How, Stuck};
use super::{BUSY, NANOS_A_MICRO, ROUND, Run, WARM_UP, locked};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

impl<C: Contestant> Run<'_, C> {
    pub(super) fn wake_latency(&self, sender: Sender) -> Result<Vec<Sample>, Error> {
        let samples = self.job.elements();
        let bell = Bell::new();
        let mut deliver = self.peer.sleeper(bell)?;
        let mut latencies = Latencies::new()?;
        let warm_up = samples / WARM_UP;
        let mut before = 0;
        for number in 0..warm_up + samples {
            if number == warm_up {
                before = memory::switches()?;
            }
            thread::sleep(Duration::from_millis(1));
            let latency = bell.hear(number, sender, &mut deliver);
            if number >= warm_up {
                latencies.record(latency)?;
            }
        }
        let switches = memory::switches()?.saturating_sub(before);
        self.gate.time(1, || {
            deliver(LAST);
            Ok(())
        })?;
        let p50 = latencies.percentile(50.0) / NANOS_A_MICRO;
        let p99 = latencies.percentile(99.0) / NANOS_A_MICRO;
        let mut p50 = self.sample("p50", samples, p50);
        latencies.describe(&mut p50, NANOS_A_MICRO);
        let switches = switches as f64 / samples as f64;
        Ok(vec![
            p50,
            self.sample("p99", samples, p99),
            self.sample("switches", samples, switches),
        ])
    }

    /// The same while another program computes on each processor.
    pub(super) fn wake_latency_beside_busy(&self, sender: Sender) -> Result<Vec<Sample>, Error> {
        let _busy = Busy::start()?;
        self.wake_latency(sender)
    }

    /// From the send of a process that this thread wakes to the steps of those that it sends to,
    /// beside others that compute and continue.
    pub(super) fn woken_by_herald(
        &self,
        receivers: u64,
        step: Duration,
    ) -> Result<Vec<Sample>, Error> {
        let board = self.board(receivers)?;
        let deliver = Mutex::new(self.peer.due(&board)?);
        let mut tell = {
            let board = Arc::clone(&board);
            self.peer.herald(Box::new(move |round| {
                let is_last = round == LAST;
                if !is_last {
                    board.send(round);
                }
                locked(&deliver)(round);
                is_last
            }))?
        };
        board.start();
        let busy = Stuck::new(How::Compute, step);
        self.peer.block(busy, BUSY)?;
        for round in 0..self.job.elements() {
            thread::sleep(ROUND);
            tell(round);
        }
        self.end_woken(&board, receivers + 1, busy, || tell(LAST))
    }
}
