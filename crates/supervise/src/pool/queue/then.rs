//! The work that the queue puts off until it has released its lock: wakers, handlers and
//! destructors are users' code.

use crate::log::contain;
use crate::pool::entry::{Entry, Refusal};
use crate::pool::error::OnRefused;
use std::task::Waker;

/// Work for the time after the lock.
pub(super) struct Then<J, A> {
    /// The waker of the worker that has got a job.
    pub(super) waker: Option<Waker>,
    pub(super) wakers: Vec<Waker>,
    pub(super) refused: Vec<Refusal<J, A>>,
    pub(super) left: Vec<Entry<J, A>>,
}

impl<J, A> Default for Then<J, A> {
    fn default() -> Self {
        Self {
            waker: None,
            wakers: Vec::new(),
            refused: Vec::new(),
            left: Vec::new(),
        }
    }
}

impl<J, A: Send + 'static> Then<J, A> {
    #[inline]
    pub(super) fn carry_out(mut self, on_refused: Option<&OnRefused<J>>) {
        let waker = self.waker.take();
        if !(self.refused.is_empty() && self.left.is_empty() && self.wakers.is_empty()) {
            self.carry_all_out(on_refused);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    #[cold]
    fn carry_all_out(self, on_refused: Option<&OnRefused<J>>) {
        for (entry, error) in self.refused {
            let Entry { job, reply, .. } = entry;
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
