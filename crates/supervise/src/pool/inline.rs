//! Jobs that run in the thread of the caller.

use super::entry::Entry;
use super::error::PoolError;
use super::queue::Queue;
use super::worker::{Settings, Work};
use crate::log::contain;
use ganger_sync::sync::{Mutex, lock};

/// The functions of a pool without workers.
pub(super) struct Inline<J, A> {
    settings: Settings<J, A>,
    /// Unused functions: as many as there were jobs at a time.
    spare: Mutex<Vec<Work<J, A>>>,
}

impl<J: Send + 'static, A: Send + 'static> Inline<J, A> {
    pub(super) fn new(settings: Settings<J, A>) -> Self {
        let spare = Mutex::default();
        Self { settings, spare }
    }

    /// Runs a job that has begun, and answers. The caller holds no lock, so the job may call the
    /// pool.
    pub(super) fn serve(&self, queue: &Queue<J, A>, entry: Entry<J, A>) {
        let Entry { mut job, reply, .. } = entry;
        let mut retries = 0;
        let done = loop {
            let spare = lock(&self.spare).pop();
            let copy = self
                .settings
                .copy
                .filter(|_| retries < self.settings.retries);
            let mut again = None;
            let done = contain(|| {
                let mut work = spare.unwrap_or_else(|| (self.settings.make)());
                again = copy.map(|copy| copy(&job));
                let done = work(job);
                // A function that has panicked is not used again.
                lock(&self.spare).push(work);
                done
            });
            match (done, again) {
                (Err(_), Some(copy)) => job = copy,
                (Ok(Err(_)), Some(copy)) if self.settings.retries_errors => job = copy,
                (done, _) => break done,
            }
            retries += 1;
        };
        let has_panicked = done.is_err();
        if let Some(reply) = reply {
            match done {
                Ok(Ok(answer)) => reply.complete(answer),
                Ok(Err(error)) => reply.fail(error),
                Err(message) => reply.fail(PoolError::Panicked(message.into())),
            }
        }
        queue.done(|stats| {
            stats.retried += u64::from(retries);
            stats.panicked += u64::from(has_panicked);
            stats.served += u64::from(!has_panicked);
        });
    }
}
