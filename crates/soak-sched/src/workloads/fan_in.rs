//! Many threads and processes send to a single process, in every way of sending: by address and by
//! PID, at once or with patience for a full mailbox.

use super::Job;
use crate::actor::{Behaviour, Kit, Mail, Next, Turn};
use crate::parcel::{Lane, Sender};
use crate::site::{Site, wait};
use crate::watch::Watch;
use fastrand::Rng;
use ganger::{Address, BoxError, Message, SendError};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

struct Receiver {
    seen: u64,
}

impl Behaviour for Receiver {
    fn turn(&mut self, mail: Vec<Mail>, _: &mut Turn<'_>) -> Result<Next, BoxError> {
        let is_cancelled = mail.iter().any(|mail| matches!(mail, Mail::Cancel));
        let parcels = mail.iter().filter(|mail| matches!(mail, Mail::Parcel(_)));
        self.seen += parcels.count() as u64;
        Ok(if is_cancelled {
            Next::Done(self.seen)
        } else {
            Next::Wait
        })
    }
}

/// A process that sends some parcels in each turn.
struct Source {
    to: Address,
    left: usize,
}

impl Behaviour for Source {
    fn turn(&mut self, _: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        let now = turn.random.usize(1..20).min(self.left);
        for _ in 0..now {
            match turn.random.u32(0..8) {
                0 => turn.send_or_wait(&self.to, 0),
                1 => turn.send(self.to.pid(), Lane::Control, 0),
                _ => turn.send(self.to.pid(), Lane::Ordinary, 0),
            };
        }
        self.left -= now;
        Ok(if self.left == 0 {
            Next::Done(0)
        } else {
            Next::GoOn
        })
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let gentle = job.kit.gentle();
    let receiver = job.submit(1, &gentle, |_| Receiver { seen: 0 });
    let Some(address) = receiver.first().map(|handle| handle.address().clone()) else {
        return;
    };
    let (kit, each) = (job.kit.clone(), 50 * job.size);
    let sources = job.submit(job.size, &kit, |_| Source {
        to: address.clone(),
        left: each,
    });
    let seeds: Vec<u64> = (0..job.random.usize(1..4))
        .map(|_| job.random.u64(..))
        .collect();
    let (site, watch) = (job.site, job.watch);
    thread::scope(|scope| {
        for seed in seeds {
            let address = &address;
            scope.spawn(move || send_all(site, watch, address, each, seed));
        }
    });
    sources
        .into_iter()
        .for_each(|handle| drop(wait(watch, handle)));
    job.until_all_parcels_are_gone();
    site.finish(watch, receiver);
}

/// Sends from a thread.
fn send_all(site: &Site, watch: &Watch, to: &Address, count: usize, seed: u64) {
    let _waits = watch.wait(format!("a thread sends {count} parcels to {}", to.pid()));
    let mut random = Rng::with_seed(seed);
    let Kit { account, .. } = site.kit(Default::default());
    let mut sender = Sender::new(&account);
    for _ in 0..count {
        let way = random.u32(0..6);
        let patience = Duration::from_micros(random.u64(0..2_000));
        let send = |message: Message| send(way, patience, site, to, message);
        sender.send(to.pid(), Lane::Ordinary, 0, send);
    }
}

fn send(
    way: u32,
    patience: Duration,
    site: &Site,
    to: &Address,
    message: Message,
) -> Result<(), SendError> {
    match way {
        0 => to.send_blocking(message),
        1 => to.send_timeout(message, patience),
        2 => block_on(to.send_async(message)),
        3 => site.runtime.send_blocking(message.to(to.pid())),
        4 => site.runtime.send(message.to(to.pid())),
        _ => to.send(message),
    }
}

/// Wakes a polling thread.
struct Wakes(Thread);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread until it is ready.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Wakes(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
