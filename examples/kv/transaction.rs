//! The requests that a client wants carried out as a whole: `MULTI`, `WATCH`.

use super::protocol::{Answer, Limits, Request};
use bytes::Bytes;
use std::mem;

/// The weight of a long answer, in commands.
const LONG: usize = 1_024;

/// A key that must not change, with the version of its value.
pub(crate) type Watched = (Bytes, u64);

/// The state of a client's transaction.
#[derive(Default)]
pub(crate) struct Transaction {
    /// The requests of the transaction, from `MULTI` on.
    queued: Option<Queue>,
    /// Keys that must not change before `EXEC`, with their versions.
    watched: Vec<Watched>,
}

#[derive(Default)]
struct Queue {
    requests: Vec<Request>,
    weight: usize,
    bytes: usize,
    is_refused: bool,
}

impl Transaction {
    pub(crate) fn is_open(&self) -> bool {
        self.queued.is_some()
    }

    pub(crate) fn begin(&mut self) -> Answer {
        if self.is_open() {
            return Answer::Error("ERR MULTI calls can not be nested".into());
        }
        self.queued = Some(Queue::default());
        Answer::OK
    }

    /// Puts a request, with its name, behind the earlier requests.
    pub(crate) fn queue(&mut self, request: &Request, is_long: bool, limits: &Limits) -> Answer {
        let Some(queue) = &mut self.queued else {
            return Answer::Error("ERR EXEC without MULTI".into());
        };
        queue.weight += if is_long { LONG } else { 1 };
        queue.bytes += request.iter().map(Bytes::len).sum::<usize>();
        if queue.weight > limits.arguments || queue.bytes > limits.request {
            return self.refuse("ERR the transaction is too large".into());
        }
        // Copies: a waiting request must not keep the whole input in memory.
        let copies = request.iter().map(|it| Bytes::copy_from_slice(it));
        queue.requests.push(copies.collect());
        Answer::Status("QUEUED")
    }

    /// Refuses a wrong request: none of the transaction is carried out.
    pub(crate) fn refuse(&mut self, error: String) -> Answer {
        if let Some(queue) = &mut self.queued {
            queue.is_refused = true;
            queue.requests = Vec::new();
        }
        Answer::Error(error)
    }

    /// Ends the transaction for `EXEC`: takes the queued requests, and the keys that must not have
    /// changed.
    ///
    /// # Errors
    /// The answer for the client.
    pub(crate) fn end(&mut self) -> Result<(Vec<Request>, Vec<Watched>), Answer> {
        let Some(queue) = self.queued.take() else {
            return Err(Answer::Error("ERR EXEC without MULTI".into()));
        };
        let watched = mem::take(&mut self.watched);
        if queue.is_refused {
            let error = "EXECABORT Transaction discarded because of previous errors.";
            return Err(Answer::Error(error.into()));
        }
        Ok((queue.requests, watched))
    }

    pub(crate) fn discard(&mut self) -> Answer {
        self.watched.clear();
        match self.queued.take() {
            Some(_) => Answer::OK,
            None => Answer::Error("ERR DISCARD without MULTI".into()),
        }
    }

    /// Returns whether the client may watch these further keys.
    pub(crate) fn may_watch(&self, keys: &[Bytes]) -> bool {
        let bytes = |keys: &mut dyn Iterator<Item = &Bytes>| keys.map(|it| it.len() + 32).sum();
        let before: usize = bytes(&mut self.watched.iter().map(|it| &it.0));
        let more: usize = bytes(&mut keys.iter());
        before + more <= 1 << 20
    }

    /// Watches a key with this version, unless it is watched already.
    pub(crate) fn watch(&mut self, key: &Bytes, version: u64) {
        if self.watched.iter().all(|it| it.0 != key) {
            let key = Bytes::copy_from_slice(key);
            self.watched.push((key, version));
        }
    }

    pub(crate) fn unwatch(&mut self) {
        self.watched.clear();
    }
}
