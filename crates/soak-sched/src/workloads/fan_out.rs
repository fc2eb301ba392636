//! A process sends to many, in both lanes. Each receiver reports through the router to a mailbox
//! outside of the scheduler.

use super::{Job, Members, pids};
use crate::actor::{Behaviour, Mail, Next, Turn};
use crate::parcel::{Lane, Order, Parcel};
use crate::site::wait;
use ganger::{BoxError, Inbox, Pid};
use ganger_soak::chance::pick;
use std::sync::Arc;

struct Source {
    members: Members,
    left: usize,
}

impl Behaviour for Source {
    fn turn(&mut self, _: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        let Some(members) = self.members.get() else {
            return Ok(Next::GoOn);
        };
        let now = turn.random.usize(1..50).min(self.left);
        for _ in 0..now {
            let lane = *pick(
                turn.random,
                &[Lane::Ordinary, Lane::Ordinary, Lane::Control],
            );
            let to = *pick(turn.random, members);
            turn.send(to, lane, 1);
        }
        self.left -= now;
        Ok(if self.left == 0 {
            Next::Done(0)
        } else {
            Next::GoOn
        })
    }
}

struct Member {
    outside: Pid,
}

impl Behaviour for Member {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        let mut is_cancelled = false;
        for mail in mail {
            match mail {
                Mail::Parcel(parcel) if parcel.hops > 0 => {
                    turn.send(self.outside, Lane::Ordinary, 0);
                }
                Mail::Parcel(_) | Mail::Answer | Mail::Timer(_) => {}
                Mail::Cancel => is_cancelled = true,
            }
        }
        Ok(if is_cancelled {
            Next::Done(0)
        } else {
            Next::Wait
        })
    }
}

/// Takes the reports from inside.
fn drain(outside: &Inbox, order: &mut Order, job: &Job<'_>) {
    while let Ok(envelope) = outside.try_recv() {
        match Parcel::take(envelope.message.payloads) {
            Ok(parcel) => order.check(&parcel),
            Err(what) => job.site.account.fault(what),
        }
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let members = Members::default();
    let outside = job.site.runtime.open_inbox();
    let (kit, pid) = (job.kit.clone(), outside.pid());
    let handles = job.submit(10 * job.size, &kit, |_| Member { outside: pid });
    job.targets
        .add(members.get_or_init(|| pids(&handles)).iter().copied());
    let (gentle, count) = (kit.gentle(), 500 * job.size);
    let source = job.submit(1, &gentle, |_| Source {
        members: Arc::clone(&members),
        left: count,
    });
    source
        .into_iter()
        .for_each(|handle| drop(wait(job.watch, handle)));
    let mut order = Order::default();
    let account = &job.site.account;
    job.watch.until("all reports have come out", || {
        drain(&outside, &mut order, &job);
        account.on_their_way() == 0
    });
    job.site.finish(job.watch, handles);
    drain(&outside, &mut order, &job);
}
