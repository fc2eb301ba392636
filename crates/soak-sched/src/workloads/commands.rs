//! Processes yield commands, which are answered in every possible way. A process with a wait for an
//! answer that never comes is asked to finish.

use super::{Job, pids};
use crate::actor::{Behaviour, Mail, Next, Turn};
use crate::commands::Ask;
use crate::site::wait;
use ganger::{BoxError, ExitReason};

struct Client {
    /// The remaining turns with commands.
    rounds: u32,
    most: u32,
    /// Whether it may wait for an answer that never comes.
    may_wait: bool,
    open: u32,
    answered: u64,
}

impl Behaviour for Client {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        for mail in mail {
            match mail {
                Mail::Answer => {
                    self.open -= 1;
                    self.answered += 1;
                }
                Mail::Cancel => return Ok(Next::Done(self.answered)),
                Mail::Parcel(_) | Mail::Timer(_) => {}
            }
        }
        if self.open > 0 {
            return Ok(Next::Wait);
        }
        if self.rounds == 0 {
            return Ok(Next::Done(self.answered));
        }
        self.rounds -= 1;
        self.open = turn.random.u32(1..=self.most);
        for _ in 0..self.open {
            let ask = if self.may_wait {
                Ask::any(turn.random)
            } else {
                Ask::any_answered(turn.random)
            };
            turn.ask(ask);
        }
        Ok(Next::Wait)
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let (kit, gentle) = (job.kit.clone(), job.kit.gentle());
    let (rounds, most) = (job.random.u32(1..20), job.random.u32(1..40));
    let client = |may_wait| Client {
        rounds,
        most,
        may_wait,
        open: 0,
        answered: 0,
    };
    let rough = job.submit(4 * job.size, &kit, |_| client(true));
    job.targets.add(pids(&rough));
    // These are not attacked and have no faults: each gets all its answers.
    let calm = job.submit(job.size, &gentle, |_| client(false));
    for handle in calm {
        let pid = handle.pid();
        match wait(job.watch, handle) {
            ExitReason::Done(answers) if answers.as_u64() >= Some(rounds.into()) => {}
            other => job
                .site
                .account
                .fault(format!("{pid} had its answers, and ended so: {other}")),
        }
    }
    job.site.finish(job.watch, rough);
}
