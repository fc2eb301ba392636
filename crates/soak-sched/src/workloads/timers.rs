//! Processes with many timers, short and long, which take some of them back. Each timer fires once
//! or is taken back; none fires early, or after it was taken back.

use super::{Job, pids};
use crate::actor::{Behaviour, FIRST_TIMER, Mail, Next, Turn};
use crate::site::wait;
use ganger::{BoxError, ExitReason, Tag};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Longer than a soak. Such a timer is taken back.
const LONG: Duration = Duration::from_secs(100_000);

struct Sleeper {
    /// The remaining turns with new timers.
    rounds: u32,
    most: u32,
    /// The due times of the waiting timers.
    waiting: HashMap<Tag, Instant>,
    next: Tag,
    fired: u64,
}

impl Sleeper {
    fn new(rounds: u32, most: u32) -> Self {
        Self {
            rounds,
            most,
            waiting: HashMap::new(),
            next: FIRST_TIMER,
            fired: 0,
        }
    }

    fn see(&mut self, tag: Tag, turn: &Turn<'_>) {
        self.fired += 1;
        let pid = turn.ctx.pid();
        match self.waiting.remove(&tag) {
            Some(due) if Instant::now() >= due => {}
            Some(_) => turn.kit.account.fault(format!("{pid}: {tag} is early")),
            None => {
                let what = format!("{pid}: {tag} has fired twice, or was taken back");
                turn.kit.account.fault(what);
            }
        }
    }

    fn set(&mut self, turn: &mut Turn<'_>) {
        let time = match turn.random.u32(0..8) {
            0 => Duration::ZERO,
            1..=3 => LONG,
            _ => Duration::from_nanos(turn.random.u64(0..5_000_000)),
        };
        self.waiting.insert(self.next, Instant::now() + time);
        turn.sleep(time, self.next);
        self.next += 1;
    }

    /// Takes back a random share of the waiting timers, and in the end all long timers.
    fn take_back(&mut self, turn: &mut Turn<'_>) {
        let (is_last, soon) = (self.rounds == 0, Instant::now() + LONG / 2);
        let one_in = turn.random.u32(1..6);
        self.waiting.retain(|&tag, due| {
            let goes = is_last && *due > soon || turn.random.u32(0..one_in) == 0;
            if goes {
                turn.take_back(tag);
            }
            !goes
        });
    }
}

impl Behaviour for Sleeper {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        for mail in mail {
            match mail {
                Mail::Timer(tag) => self.see(tag, turn),
                Mail::Cancel => return Ok(Next::Done(self.fired)),
                Mail::Answer | Mail::Parcel(_) => {}
            }
        }
        if self.rounds > 0 {
            self.rounds -= 1;
            self.take_back(turn);
            for _ in 0..turn.random.u32(1..=self.most) {
                self.set(turn);
            }
            return Ok(Next::GoOn);
        }
        // The timers of the last round wait for a turn before `take_back` looks at them.
        self.take_back(turn);
        Ok(if self.waiting.is_empty() {
            Next::Done(self.fired)
        } else {
            Next::Wait
        })
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let (kit, gentle) = (job.kit.clone(), job.kit.gentle());
    let (rounds, most) = (job.random.u32(1..30), job.random.u32(1..60));
    let rough = job.submit(4 * job.size, &kit, |_| Sleeper::new(rounds, most));
    job.targets.add(pids(&rough));
    // These are not attacked and have no faults: each ends by itself.
    let calm = job.submit(job.size, &gentle, |_| Sleeper::new(rounds, most));
    for handle in calm {
        let pid = handle.pid();
        let exit = wait(job.watch, handle);
        if !matches!(exit, ExitReason::Done(_)) {
            let what = format!("{pid}, which sleeps: {exit}");
            job.site.account.fault(what);
        }
    }
    job.site.finish(job.watch, rough);
}
