//! Terminations, cancellations, upgrades and control messages from outside, at any time, to
//! unsuspecting processes.

use crate::faults::Faults;
use crate::parcel::{Lane, Sender};
use crate::sink::Sink;
use crate::site::{BAD_FACTORY, FACTORY, Site};
use fastrand::Rng;
use ganger::{Pid, UpgradeRequest};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The longest pause before the next attacks, in microseconds.
const LONGEST: u64 = 300;

/// The limit of attacks. Each attack moves something, so a process that lost its wake-up would
/// never be seen to stand still.
const MOST: u32 = 5_000;

/// The processes under attack.
#[derive(Debug, Default)]
pub(crate) struct Targets(Mutex<Vec<Pid>>);

impl Targets {
    pub(crate) fn add(&self, pids: impl IntoIterator<Item = Pid>) {
        let mut targets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        targets.extend(pids);
    }

    fn any(&self, random: &mut Rng) -> Option<Pid> {
        let targets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!targets.is_empty()).then(|| targets[random.usize(..targets.len())])
    }
}

/// Attacks at random, `rate` times out of 100, until it is over, or has been often enough.
pub(crate) fn run(
    site: &Site,
    targets: &Targets,
    faults: Faults,
    rate: u32,
    seed: u64,
    is_over: impl Fn() -> bool,
) {
    let mut random = Rng::with_seed(seed);
    let mut sender = Sender::new(&site.account);
    for _ in 0..MOST {
        if is_over() {
            return;
        }
        // Many at once, or none for a while: both find races of their own.
        thread::sleep(Duration::from_micros(random.u64(0..LONGEST)));
        for _ in 0..random.u32(0..10) {
            if random.u32(0..100) < rate
                && let Some(pid) = targets.any(&mut random)
            {
                attack(site, pid, faults, &mut random, &mut sender);
            }
        }
    }
}

fn attack(site: &Site, pid: Pid, faults: Faults, random: &mut Rng, sender: &mut Sender) {
    let (runtime, account) = (&site.runtime, &site.account);
    match random.u32(0..12) {
        0..=2 => {
            if runtime.terminate(pid).is_ok() {
                account.terminates.bump();
            }
        }
        3..=5 => {
            if runtime.cancel(pid, "chaos").is_ok() {
                account.cancels.bump();
            }
        }
        6..=8 => {
            let request = match random.u32(0..4) {
                0 => UpgradeRequest::factory(FACTORY, "main", ()),
                1 => UpgradeRequest::factory(BAD_FACTORY, "main", ()),
                _ => {
                    let sink = site.kit(faults).replacement(Sink, random.u64(..));
                    UpgradeRequest::process(sink, "main", ())
                }
            };
            if runtime.upgrade(pid, request).is_ok() {
                account.upgrades.bump();
            }
        }
        _ => {
            sender.send(pid, Lane::Control, 0, |message| {
                runtime.send_control(message.to(pid))
            });
        }
    }
}
