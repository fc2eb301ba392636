//! The workloads of channels.

use super::{AsyncChannel, Channel, Flume, Ganger, Kanal, OnGanger, OnTokio, Runtime, Tokio};
use crate::contest::{Contest, Run, build_go, nanoseconds, run_go};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::mpsc;
use std::time::Instant;

/// Go's channels: a program of its own, which is built at the first need.
static GO: LazyLock<Option<PathBuf>> = LazyLock::new(|| build_go("channels"));

/// Senders send the values to receivers, by a single channel. With no receivers, each of four
/// senders has a channel of its own, and a single process receives by a select of these.
#[derive(Debug, Clone, Copy)]
struct Work {
    senders: u64,
    receivers: usize,
    capacity: usize,
    values: u64,
}

/// Returns the workloads with all peers, ready to run. `quick` makes them small: enough to see that
/// they work, too little to say how fast.
pub fn contests(quick: bool) -> Vec<Contest> {
    let values = if quick { 10_000 } else { 400_000 };
    let pairs = [(1, 1), (100, 100)].into_iter();
    let sizes = pairs.flat_map(|pair| [0, 1, 1_024].map(|capacity| (pair, capacity)));
    // Without receivers, a single process selects.
    let contests = sizes
        .chain([((4, 0), 1)])
        .map(|((senders, receivers), capacity)| {
            contest(Work {
                senders,
                receivers,
                capacity,
                values,
            })
        });
    contests.collect()
}

fn contest(work: Work) -> Contest {
    let name = match work.receivers {
        0 => format!("select of four, capacity {}", work.capacity),
        receivers => format!(
            "{} to {receivers}, capacity {}",
            work.senders, work.capacity
        ),
    };
    let entrants = vec![
        (Ganger::NAME, work.prepare::<Ganger, OnGanger>()),
        (Tokio::NAME, work.prepare::<Tokio, OnTokio>()),
        (AsyncChannel::NAME, work.prepare::<AsyncChannel, OnTokio>()),
        (Kanal::NAME, work.prepare::<Kanal, OnTokio>()),
        (Flume::NAME, work.prepare::<Flume, OnTokio>()),
        (
            "Go",
            Box::new(move || vec![work.by_go().unwrap_or(f64::NAN)]),
        ),
    ];
    Contest::new(name, &["ns"], entrants)
        .and("Ganger's on tokio", work.prepare::<Ganger, OnTokio>())
        .and("kanal on Ganger", work.prepare::<Kanal, OnGanger>())
}

impl Work {
    fn prepare<C: Channel, R: Runtime>(self) -> Run {
        // Started when it is first needed, and left with its threads asleep.
        let mut runtime = None;
        Box::new(move || {
            let runtime = runtime.get_or_insert_with(R::new);
            let start = Instant::now();
            let sum = match self.receivers {
                0 => self.select::<C>(runtime),
                _ => self.stream::<C>(runtime),
            };
            let Some(sum) = sum else {
                return vec![f64::NAN];
            };
            let time = start.elapsed();
            assert_eq!(sum, self.each() * (self.each() - 1) / 2 * self.senders);
            vec![nanoseconds(time, self.each() * self.senders)]
        })
    }

    /// Nanoseconds for each value.
    fn by_go(self) -> Option<f64> {
        let sizes = [self.receivers as u64, self.capacity as u64];
        let numbers = [self.senders, sizes[0], sizes[1], self.values];
        let figures = run_go(GO.as_ref(), &numbers.map(|it| it.to_string()))?;
        figures.first().copied()
    }

    /// Returns how many values each sender sends.
    fn each(self) -> u64 {
        self.values / self.senders
    }

    fn send<C: Channel>(self, runtime: &impl Runtime, sender: C::Sender) {
        runtime.spawn(async move {
            for value in 0..self.each() {
                C::send(&sender, value).await;
            }
        });
    }

    fn stream<C: Channel>(self, runtime: &impl Runtime) -> Option<u64> {
        let (sender, receivers) = C::open(self.capacity, self.receivers)?;
        let (done, sums) = mpsc::channel();
        for mut receiver in receivers {
            let done = done.clone();
            runtime.spawn(async move {
                let mut sum = 0;
                while let Some(value) = C::recv(&mut receiver).await {
                    sum += value;
                }
                done.send(sum).expect("it is waited for");
            });
        }
        for _ in 0..self.senders {
            self.send::<C>(runtime, sender.clone());
        }
        drop((sender, done));
        Some(sums.iter().sum())
    }

    fn select<C: Channel>(self, runtime: &impl Runtime) -> Option<u64> {
        if !C::SELECTS {
            return None;
        }
        let mut receivers = Vec::new();
        for _ in 0..self.senders {
            let (sender, receiver) = C::open(self.capacity, 1)?;
            self.send::<C>(runtime, sender);
            receivers.extend(receiver);
        }
        let receivers = receivers.try_into().ok()?;
        let (done, sum) = mpsc::channel();
        runtime.spawn(async move {
            let sum = C::sum_of_four(receivers).await;
            done.send(sum).expect("it is waited for");
        });
        sum.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_does_what_it_is_told() {
        for contest in contests(true) {
            let outcome = contest.run(1);
            assert!(outcome.rows[0].samples[0][0] > 0.0);
        }
    }
}
