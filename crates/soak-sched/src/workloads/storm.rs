//! Processes that start others and end at once, started by threads and by one another, some of them under
//! PIDs of their own choice that others have.

use super::Job;
use crate::actor::{Behaviour, Mail, Next, Turn};
use crate::site::wait;
use crate::workloads::fan_in::block_on;
use fastrand::Rng;
use ganger::prelude::{BoxError, Pid, ProcessHandle};
use ganger_soak::chance::one_in;
use std::thread;
use std::time::Duration;

/// Ids for PIDs of their own choice: few, so that many are taken.
const CHOSEN: u64 = 16;

struct Spawner {
    depth: u32,
    children: u32,
}

impl Behaviour for Spawner {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        let is_cancelled = mail.iter().any(|mail| matches!(mail, Mail::Cancel));
        if self.depth > 0 && !is_cancelled {
            for _ in 0..self.children {
                turn.spawn(Self {
                    depth: self.depth - 1,
                    children: self.children,
                });
            }
        }
        Ok(Next::Done(u64::from(self.depth)))
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let threads = job.random.usize(1..=3);
    let seeds: Vec<u64> = (0..threads).map(|_| job.random.u64(..)).collect();
    thread::scope(|scope| {
        for seed in seeds {
            let job = &job;
            scope.spawn(move || submit_all(job, seed));
        }
    });
}

fn submit_all(job: &Job<'_>, seed: u64) {
    let mut random = Rng::with_seed(seed);
    for _ in 0..10 * job.size {
        let spawner = Spawner {
            depth: random.u32(0..4),
            children: random.u32(0..4),
        };
        let actor = job.kit.actor(spawner, random.u64(..));
        let handle = if one_in(&mut random, 4) {
            let pid = Pid::new(job.site.runtime.host_name(), random.u64(1..=CHOSEN));
            let submitted = job.site.runtime.submit_as(pid, actor, "chosen", ());
            if submitted.is_err() {
                job.site.account.refused.bump();
            }
            submitted.ok()
        } else {
            job.site.submit(actor)
        };
        if let Some(handle) = handle {
            job.targets.add([handle.pid()]);
            let_go(job, handle, &mut random);
        }
    }
}

/// Waits for the end in one way or another, or does not.
fn let_go(job: &Job<'_>, handle: ProcessHandle, random: &mut Rng) {
    match random.u32(0..8) {
        0 => drop(wait(job.watch, handle)),
        1 => {
            let _waits = job.watch.wait(format!("a task waits for {}", handle.pid()));
            drop(block_on(handle));
        }
        2 => drop(handle.wait_timeout(Duration::from_micros(random.u64(0..500)))),
        _ => drop(handle),
    }
}
