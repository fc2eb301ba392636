//! Tokens go round a ring. Some members are replaced while they hold tokens, and every token does
//! all of its laps.

use super::{Job, Members, pids};
use crate::account::Count;
use crate::actor::{Behaviour, Mail, Next, Turn};
use crate::parcel::{Lane, Sender};
use ganger::BoxError;
use ganger_soak::chance::one_in;
use std::mem;
use std::sync::Arc;

/// Once in how many turns a member is replaced.
const REPLACED: u32 = 100;

struct Member {
    members: Members,
    next: usize,
    /// Hops of tokens that the member holds back, because the next mailbox was full.
    held: Vec<u32>,
    /// Tokens at the end of their laps.
    home: Arc<Count>,
    is_cancelled: bool,
}

impl Behaviour for Member {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        for mail in mail {
            match mail {
                Mail::Parcel(parcel) => match parcel.hops.checked_sub(1) {
                    Some(hops) => self.held.push(hops),
                    None => self.home.bump(),
                },
                Mail::Cancel => self.is_cancelled = true,
                Mail::Answer | Mail::Timer(_) => {}
            }
        }
        if self.is_cancelled {
            return Ok(Next::Done(0));
        }
        if let Some(&next) = self.members.get().and_then(|all| all.get(self.next)) {
            self.held
                .retain(|&hops| !turn.send(next, Lane::Ordinary, hops));
        }
        if one_in(turn.random, REPLACED) {
            return Ok(Next::Become(Box::new(self.successor())));
        }
        Ok(if self.held.is_empty() {
            Next::Wait
        } else {
            Next::GoOn
        })
    }
}

impl Member {
    fn successor(&mut self) -> Self {
        Self {
            members: Arc::clone(&self.members),
            next: self.next,
            held: mem::take(&mut self.held),
            home: Arc::clone(&self.home),
            is_cancelled: false,
        }
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let (members, home) = (Members::default(), Arc::<Count>::default());
    let mut kit = job.kit.clone();
    kit.faults = kit.faults.harmless();
    let size = 1 + 3 * job.size;
    let handles = job.submit(size, &kit, |nth| Member {
        members: Arc::clone(&members),
        next: (nth + 1) % size,
        held: Vec::new(),
        home: Arc::clone(&home),
        is_cancelled: false,
    });
    let pids = members.get_or_init(|| pids(&handles));
    // Fewer tokens than members: where mailboxes hold a single message, a ring full of tokens moves
    // none.
    let tokens = job.random.u64(1..=1 + size as u64 / 2);
    let hops = job.random.u32(0..300);
    let mut sender = Sender::new(&job.site.account);
    for token in 0..tokens {
        let to = pids[usize::try_from(token).unwrap_or(0) % size];
        let mut send = || {
            sender.send(to, Lane::Ordinary, hops, |message| {
                job.site.runtime.send_blocking(message.to(to))
            })
        };
        if !send() {
            job.site
                .account
                .fault(format!("a member of a ring is gone: {to}"));
        }
    }
    job.watch
        .until("every token has done its laps", || home.get() == tokens);
    job.site.finish(job.watch, handles);
    if home.get() != tokens {
        let what = format!("{} of {tokens} tokens have come home", home.get());
        job.site.account.fault(what);
    }
}
