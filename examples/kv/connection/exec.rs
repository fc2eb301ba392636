//! Transactions, carried out as a whole, and parts of scans.

use super::super::commands;
use super::super::protocol::{Answer, Request, number};
use super::super::shard::{Hold, Job, Work};
use super::super::store::whole;
use super::super::transaction::Watched;
use super::{Connection, Slot, next};
use bytes::Bytes;
use futures_util::io::{AsyncRead, AsyncWrite};
use std::collections::BTreeMap;

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Scans from a cursor, which has the shard, and the number of the shard's last key so far.
    pub(super) fn scan(&mut self, mut request: Request) {
        let shards = self.jobs.len() as u64;
        let cursor = number(&request[0]).and_then(|it| u64::try_from(it).ok());
        let Some(cursor) = cursor else {
            let error = Answer::Error("ERR invalid cursor".into());
            return self.slots.push(Slot::Ready(error));
        };
        let shard = usize::try_from(cursor % shards).unwrap_or(0);
        request[0] = Bytes::from((cursor / shards).to_string());
        self.jobs[shard].push(Job {
            operation: whole::scan,
            args: request,
            writes: false,
        });
        self.slots.push(Slot::Scan(shard));
    }

    /// Watches keys, by their versions of now.
    pub(super) async fn watch(&mut self, keys: &[Bytes]) -> Answer {
        if !self.transaction.may_watch(keys) {
            return Answer::Error("ERR too many keys are watched".into());
        }
        let shards: Vec<_> = keys
            .iter()
            .map(|key| self.give(whole::version, vec![key.clone()], false))
            .collect();
        let mut answers = self.ask(None).await;
        for (key, shard) in keys.iter().zip(shards) {
            match next(&mut answers, shard) {
                Answer::Number(version) => self.transaction.watch(key, version.unsigned_abs()),
                error => return error,
            }
        }
        Answer::OK
    }

    /// Carries out the queued requests, as a whole. With several shards, or watched keys, it holds
    /// the shards in the order of their numbers.
    pub(super) async fn exec(&mut self) -> Answer {
        let (requests, watched) = match self.transaction.end() {
            Ok(queued) => queued,
            Err(refused) => return refused,
        };
        for mut request in requests {
            let name = request.remove(0);
            match commands::find(&name, request.len()) {
                Ok(route) => self.put(&name, route, request),
                Err(error) => self.slots.push(Slot::Ready(Answer::Error(error))),
            }
        }
        let mut held: BTreeMap<usize, Vec<Watched>> = BTreeMap::new();
        let busy = (0..self.jobs.len()).filter(|it| !self.jobs[*it].is_empty());
        held.extend(busy.map(|it| (it, Vec::new())));
        let is_held = held.len() > 1 || !watched.is_empty();
        for (key, version) in watched {
            let shard = self.server.shard_of(&key);
            held.entry(shard).or_default().push((key, version));
        }
        let only_watched: Vec<_> = held
            .keys()
            .copied()
            .filter(|it| self.jobs[*it].is_empty())
            .collect();
        if is_held && !self.hold(held).await {
            self.jobs.iter_mut().for_each(Vec::clear);
            self.slots.clear();
            return Answer::NoList;
        }
        let mut answers = self.ask(is_held.then(|| self.cx.pid())).await;
        self.release(only_watched);
        Answer::List(self.settle(&mut answers))
    }

    /// Holds these shards, if the watched keys are as they were. False: a key has changed, or a
    /// shard has failed.
    async fn hold(&self, shards: BTreeMap<usize, Vec<Watched>>) -> bool {
        let mut held = Vec::new();
        for (shard, watched) in shards {
            let holder = self.cx.pid();
            let hold = self.server.shards[shard].call(move |reply| {
                Work::Hold(Hold {
                    holder,
                    watched,
                    reply,
                })
            });
            // A shard that has failed has lost its keys.
            if !self.cx.shield(self.cx.ask(hold)).await.unwrap_or(false) {
                self.release(held);
                return false;
            }
            held.push(shard);
        }
        true
    }

    fn release(&self, shards: Vec<usize>) {
        for shard in shards {
            // A shard that takes no message has ended.
            let _ = self.server.shards[shard].send(Work::Release(self.cx.pid()));
        }
    }
}

/// Makes the answer of a part of a `SCAN`, with the cursor for the next part. The cursor is of the
/// next shard when this shard has no more keys, and 0 after the last shard.
pub(super) fn scanned(answer: Answer, shard: usize, shards: usize) -> Answer {
    let Answer::List(mut parts) = answer else {
        return answer;
    };
    if let Some(first) = parts.first_mut()
        && let Answer::Number(last) = *first
    {
        let (last, shards) = (last.unsigned_abs(), shards as u64);
        let cursor = match last {
            0 => (shard as u64 + 1) % shards,
            last => last * shards + shard as u64,
        };
        *first = Answer::text(cursor.to_string());
    }
    Answer::List(parts)
}
