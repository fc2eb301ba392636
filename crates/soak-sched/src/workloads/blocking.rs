//! Steps that block their threads, announced or not, and steps that compute until `should_yield`
//! says so, together with ready processes. Spares come and go.

use super::{Job, pids};
use crate::actor::{Behaviour, Mail, Next, Turn};
use crate::parcel::Lane;
use crate::sink::Sink;
use crate::site::wait;
use ganger::{BoxError, ExitReason, Pid};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that a step computes without being asked to yield.
const LONGEST: Duration = Duration::from_millis(20);

/// Rung by an outside thread, as the answer to a waiting step.
type Bell = Sender<()>;

struct Blocker {
    turns: u32,
    door: Sender<Bell>,
    neighbour: Option<Pid>,
}

impl Behaviour for Blocker {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        if mail.iter().any(|mail| matches!(mail, Mail::Cancel)) {
            return Ok(Next::Done(0));
        }
        // Makes a process ready while this step lasts.
        if let Some(neighbour) = self.neighbour {
            turn.send(neighbour, Lane::Ordinary, 0);
        }
        turn.kit.account.long_steps.bump();
        let a_while = Duration::from_micros(turn.random.u64(0..12_000));
        match turn.random.u32(0..4) {
            0 => thread::sleep(a_while),
            1 => turn.ctx.blocking(|| thread::sleep(a_while)),
            2 => {
                let (bell, rings) = channel();
                self.door.send(bell)?;
                turn.ctx.blocking(|| rings.recv())?;
            }
            _ => {
                let began = Instant::now();
                while !turn.ctx.should_yield() && began.elapsed() < LONGEST {
                    std::hint::spin_loop();
                }
            }
        }
        self.turns -= 1;
        Ok(if self.turns == 0 {
            Next::Done(1)
        } else {
            Next::GoOn
        })
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let gentle = job.kit.gentle();
    let neighbours = job.submit(1 + job.size.min(4), &gentle, |_| Sink);
    let known = pids(&neighbours);
    let (door, bells) = channel::<Bell>();
    let turns = job.random.u32(1..4);
    let blockers = job.submit(1 + job.size.min(8), &gentle, |nth| Blocker {
        turns,
        door: door.clone(),
        neighbour: known.get(nth % known.len()).copied(),
    });
    drop(door);
    // Ends when the last door is gone.
    let porter = thread::spawn(move || {
        for bell in bells {
            thread::sleep(Duration::from_millis(2));
            // The step that rang the bell waits for this answer.
            let _heard = bell.send(());
        }
    });
    for handle in blockers {
        let pid = handle.pid();
        let exit = wait(job.watch, handle);
        if !matches!(exit, ExitReason::Done(_)) {
            job.site
                .account
                .fault(format!("{pid}, which blocks: {exit}"));
        }
    }
    let _waits = job.watch.wait("a driver waits for the porter".to_owned());
    if porter.join().is_err() {
        job.site.account.fault("the porter has panicked");
    }
    job.until_all_parcels_are_gone();
    job.site.finish(job.watch, neighbours);
}
