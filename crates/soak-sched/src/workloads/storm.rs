//! Processes that start other processes and end at once. Threads and the processes themselves start
//! them, some under chosen PIDs that are taken.

use super::Job;
use crate::actor::{Actor, Behaviour, Mail, Next, Turn};
use crate::site::wait;
use crate::workloads::fan_in::block_on;
use fastrand::Rng;
use ganger::{BoxError, Pid, ProcessHandle};
use std::thread;
use std::time::Duration;

/// The number of ids for chosen PIDs: low, so that many are taken.
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
        match random.u32(0..8) {
            // Chaos spares a process that a driver waits for: its heir would not end by itself.
            0 => submit_and(job, actor, |handle| drop(wait(job.watch, handle))),
            1 => submit_and(job, actor, |handle| {
                let _waits = job.watch.wait(format!("a task waits for {}", handle.pid()));
                drop(block_on(handle));
            }),
            2 | 3 => submit_as(job, actor, &mut random),
            4 => {
                let patience = Duration::from_micros(random.u64(0..500));
                submit_and(job, actor, |handle| {
                    job.targets.add([handle.pid()]);
                    drop(handle.wait_timeout(patience));
                });
            }
            _ => submit_and(job, actor, |handle| job.targets.add([handle.pid()])),
        }
    }
}

/// Submits a process, and calls `and` with its handle if it has started.
fn submit_and(job: &Job<'_>, actor: Actor, and: impl FnOnce(ProcessHandle)) {
    if let Some(handle) = job.site.submit(actor) {
        and(handle);
    }
}

/// Submits a process under a PID that other submits choose as well.
fn submit_as(job: &Job<'_>, actor: Actor, random: &mut Rng) {
    let pid = Pid::new(job.site.runtime.host_name(), random.u64(1..=CHOSEN));
    match job.site.runtime.submit_as(pid, actor, "chosen", ()) {
        Ok(handle) => job.targets.add([handle.pid()]),
        Err(_) => job.site.account.refused.bump(),
    }
}
