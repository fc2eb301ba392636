//! The work that the queue puts off until it has released its lock: wakers, handlers and
//! destructors are users' code.

use crate::log::contain;
use crate::pool::entry::{Entry, Queued, Refusal};
use crate::pool::error::OnRefused;
use std::task::Waker;

/// Work for the time after the lock.
pub(super) struct Then<J, A> {
    /// The waker of the worker that has got a job.
    pub(super) waker: Option<Waker>,
    /// All else, which most acts have nothing of.
    rare: Option<Box<Rare<J, A>>>,
}

pub(super) struct Rare<J, A> {
    pub(super) wakers: Vec<Waker>,
    pub(super) refused: Vec<Refusal<J, A>>,
    pub(super) left: Vec<Queued<J, A>>,
}

impl<J, A> Default for Rare<J, A> {
    fn default() -> Self {
        Self {
            wakers: Vec::new(),
            refused: Vec::new(),
            left: Vec::new(),
        }
    }
}

impl<J, A> Then<J, A> {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            waker: None,
            rare: None,
        }
    }

    #[cold]
    pub(super) fn rare(&mut self) -> &mut Rare<J, A> {
        self.rare.get_or_insert_default()
    }

    /// Wakes it, if it is there.
    #[cold]
    pub(super) fn wake(&mut self, waker: Option<&Waker>) {
        if let Some(waker) = waker {
            self.rare().wakers.push(waker.clone());
        }
    }
}

impl<J, A: Send + 'static> Then<J, A> {
    #[inline]
    pub(super) fn carry_out(self, on_refused: Option<&OnRefused<J>>) {
        if let Some(rare) = self.rare {
            (*rare).carry_out(on_refused);
        }
        if let Some(waker) = self.waker {
            waker.wake();
        }
    }
}

impl<J, A: Send + 'static> Rare<J, A> {
    #[cold]
    fn carry_out(self, on_refused: Option<&OnRefused<J>>) {
        for (entry, error) in self.refused {
            let Entry { job, reply, .. } = *entry;
            // A panic of a handler or a destructor ends nothing else.
            let _ = contain(|| match on_refused {
                Some(f) => f(job, &error),
                None => drop(job),
            });
            if let Some(reply) = reply {
                reply.fail(error);
            }
        }
        for entry in self.left {
            let _ = contain(|| drop(entry));
        }
        for waker in self.wakers {
            waker.wake();
        }
    }
}
