//! All processes send to all: each parcel goes from process to random process, until it has made
//! its hops.

use super::{Job, Members, pids};
use crate::actor::{Behaviour, Mail, Next, Turn};
use crate::parcel::{Lane, Sender};
use ganger::BoxError;
use ganger_soak::chance::{one_in, pick};
use std::sync::Arc;

struct Node {
    members: Members,
    seen: u64,
}

impl Behaviour for Node {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        let mut is_cancelled = false;
        for mail in mail {
            match mail {
                Mail::Parcel(parcel) => {
                    self.seen += 1;
                    if let (1.., Some(members)) = (parcel.hops, self.members.get()) {
                        let lane = if one_in(turn.random, 10) {
                            Lane::Control
                        } else {
                            Lane::Ordinary
                        };
                        let to = *pick(turn.random, members);
                        turn.send(to, lane, parcel.hops - 1);
                    }
                }
                Mail::Cancel => is_cancelled = true,
                Mail::Answer | Mail::Timer(_) => {}
            }
        }
        Ok(if is_cancelled {
            Next::Done(self.seen)
        } else {
            Next::Wait
        })
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let members = Members::default();
    let kit = job.kit.clone();
    let nodes = job.submit(2 + 4 * job.size, &kit, |_| Node {
        members: Arc::clone(&members),
        seen: 0,
    });
    let pids = members.get_or_init(|| pids(&nodes));
    job.targets.add(pids.iter().copied());
    let mut sender = Sender::new(&job.site.account);
    for _ in 0..20 * job.size {
        let (to, hops) = (*pick(&mut job.random, pids), job.random.u32(0..200));
        sender.send(to, Lane::Ordinary, hops, |message| {
            job.site.runtime.send(message.to(to))
        });
    }
    job.until_all_parcels_are_gone();
    job.site.finish(job.watch, nodes);
}
