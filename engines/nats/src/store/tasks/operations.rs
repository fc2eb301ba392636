//! The way of an operation: a plan by the mirror, a message, and what the message has done.

use super::{Answer, Shared, WITHIN, unavailable};
use crate::store::log::{self, Sent};
use crate::store::mirror::{self, Expect, Mirror, Verdict, sequence};
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use ganger_cluster::{LeaseId, StoreAnswer, StoreError, StoreOp};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The pause before another attempt.
const RETRY: Duration = Duration::from_millis(20);

/// How long an operation waits for a connection.
const AWAY: Duration = Duration::from_millis(50);

/// A message to be written for an operation.
pub(super) struct Write {
    subject: String,
    body: Bytes,
    is_end: bool,
    expect: Expect,
    /// Whether the write may be void.
    has_lease: bool,
    /// The dead messages left by the write.
    dead: Vec<(String, u64)>,
    lease: Option<LeaseId>,
}

enum Plan {
    Answer(Answer),
    Write(Write),
}

impl Shared {
    pub(crate) async fn carry_out(&self, op: &StoreOp) -> Answer {
        let begin = Instant::now();
        while !self.is_connected() {
            // The client may be on its way to another server.
            if begin.elapsed() > AWAY {
                return Err(unavailable("no connection to a broker"));
            }
            sleep(RETRY).await;
        }
        let until = Instant::now() + WITHIN;
        let mut is_fresh = false;
        let mut free = 0;
        loop {
            if op.is_read() && !is_fresh {
                self.barrier(until).await?;
                is_fresh = true;
            }
            match self.plan(op) {
                Plan::Answer(answer) if is_fresh => return answer,
                Plan::Answer(_) => {
                    self.barrier(until).await?;
                    is_fresh = true;
                }
                Plan::Write(write) => match self.send(&write, free).await {
                    Sent::Stored(at) => return self.judged(op, write, at).await,
                    Sent::Refused if Instant::now() > until => {
                        return Err(unavailable("the stream has no leader"));
                    }
                    // The servers choose a leader.
                    Sent::Refused => sleep(RETRY).await,
                    Sent::Unknown => return Err(StoreError::Unknown),
                    Sent::Conflict => {
                        self.barrier(until).await?;
                        is_fresh = true;
                        if write.expect == Expect::Free {
                            free = self.last_of(&write.subject).await?;
                            // The message may be a living entry, of another writer: the plan must
                            // see the entry.
                            if !self.until_applied(free, until).await {
                                return Err(unavailable("the mirror is behind"));
                            }
                        }
                    }
                },
            }
            if Instant::now() > until {
                return Err(unavailable("others write too often"));
            }
        }
    }

    fn plan(&self, op: &StoreOp) -> Plan {
        let inner = self.inner();
        let mirror = &inner.mirror;
        let refuse = |error| Plan::Answer(Err(error));
        let is_gone = |lease: &Option<LeaseId>| {
            lease.is_some_and(|lease| !mirror.leases.contains_key(&lease))
        };
        let mut write = Write {
            subject: String::new(),
            body: Bytes::new(),
            is_end: false,
            expect: Expect::Free,
            has_lease: false,
            dead: Vec::new(),
            lease: None,
        };
        match op {
            StoreOp::Get { key } => {
                return Plan::Answer(Ok(StoreAnswer::Found(mirror.get(key).cloned())));
            }
            StoreOp::Create { key, value, lease } => {
                if let Some(entry) = mirror.get(key) {
                    return refuse(StoreError::Exists(entry.clone()));
                }
                if is_gone(lease) {
                    return refuse(StoreError::NoLease);
                }
                write.subject = self.names.entry(key);
                write.body = log::entry(value, *lease);
                write.has_lease = lease.is_some();
            }
            StoreOp::Update {
                key,
                value,
                revision,
                lease,
            } => {
                let before = match mirror.get(key) {
                    Some(entry) if entry.revision == *revision => entry,
                    other => return refuse(StoreError::Conflict(other.cloned())),
                };
                if is_gone(lease) {
                    return refuse(StoreError::NoLease);
                }
                write.subject = self.names.entry(key);
                write.body = log::entry(value, *lease);
                write.has_lease = lease.is_some();
                write.expect = if before.lease == *lease {
                    Expect::Subject(sequence(*revision))
                } else {
                    Expect::Stream(mirror.applied)
                };
            }
            StoreOp::Delete { key, revision } => {
                let before = match mirror.get(key) {
                    Some(entry) if entry.revision == *revision => entry,
                    other => return refuse(StoreError::Conflict(other.cloned())),
                };
                write.subject = self.names.entry(key);
                write.is_end = true;
                write.has_lease = before.lease.is_some();
                write.expect = Expect::Subject(sequence(*revision));
            }
            StoreOp::Grant { ttl } => {
                let id = LeaseId(fastrand::u64(1..));
                write.subject = self.names.lease(id);
                write.body = log::held(*ttl);
                write.expect = Expect::Subject(0);
                write.lease = Some(id);
            }
            StoreOp::Renew { lease } => {
                let Some(held) = mirror.leases.get(lease) else {
                    return refuse(StoreError::NoLease);
                };
                write.subject = self.names.lease(*lease);
                write.body = log::held(held.ttl);
                write.expect = Expect::Subject(held.sequence);
                write.lease = Some(*lease);
            }
            StoreOp::Revoke { lease } => match self.end_of(mirror, *lease) {
                Some(end) => write = end,
                None => return Plan::Answer(Ok(StoreAnswer::Revoked)),
            },
            _ => {
                let why = "this store does not know the operation";
                return refuse(StoreError::Invalid(why.into()));
            }
        }
        if mirror.is_full_for(op) {
            return refuse(StoreError::Full);
        }
        Plan::Write(write)
    }

    /// Returns the write that ends a lease.
    pub(super) fn end_of(&self, mirror: &Mirror, lease: LeaseId) -> Option<Write> {
        let held = mirror.leases.get(&lease)?;
        let entries = mirror.entries_of(lease).into_iter();
        let dead = entries.map(|(key, at)| (self.names.entry(&key), at));
        Some(Write {
            subject: self.names.lease(lease),
            body: Bytes::new(),
            is_end: true,
            expect: Expect::Subject(held.sequence),
            has_lease: false,
            dead: dead.collect(),
            lease: Some(lease),
        })
    }

    pub(super) async fn send(&self, write: &Write, free: u64) -> Sent {
        let headers = match write.expect {
            Expect::Free => log::headers(Some(free), None, write.is_end),
            Expect::Subject(at) => log::headers(Some(at), None, write.is_end),
            Expect::Stream(at) => log::headers(None, Some(at), write.is_end),
        };
        let (subject, body) = (write.subject.clone(), write.body.clone());
        let sent = log::publish(&self.context, subject, headers, body).await;
        if let (Sent::Stored(at), true) = (&sent, write.is_end) {
            self.bury(write.dead.iter().cloned());
            self.bury([(write.subject.clone(), *at)]);
        }
        sent
    }

    /// Returns the answer to an operation whose message the stream has.
    async fn judged(&self, op: &StoreOp, write: Write, at: u64) -> Answer {
        let is_applied = self.until_applied(at, Instant::now() + WITHIN).await;
        let revision = mirror::revision(at, 0);
        let verdict = if write.has_lease && is_applied {
            self.inner().mirror.verdict(at)
        } else if write.has_lease {
            Verdict::Unsure
        } else {
            Verdict::Done
        };
        match (verdict, op) {
            (Verdict::Unsure, _) => Err(StoreError::Unknown),
            (Verdict::Void, StoreOp::Create { .. }) => Err(StoreError::NoLease),
            (Verdict::Void, _) => Err(StoreError::Conflict(None)),
            (Verdict::Done, StoreOp::Delete { .. }) => Ok(StoreAnswer::Deleted(revision)),
            (Verdict::Done, StoreOp::Revoke { .. }) => Ok(StoreAnswer::Revoked),
            (Verdict::Done, _) => Ok(match write.lease {
                Some(lease) => StoreAnswer::Lease(lease),
                None => StoreAnswer::Written(revision),
            }),
        }
    }

    /// Returns the last message of a subject whose key is free: none, an end, or an entry that is
    /// dead. A late answer is no harm: the write's condition fails again.
    async fn last_of(&self, subject: &str) -> Result<u64, StoreError> {
        let stream = self.context.get_stream_no_info(&self.names.stream).await;
        let stream = stream.map_err(|error| unavailable(&error.to_string()))?;
        match stream.get_last_raw_message_by_subject(subject).await {
            Ok(message) => Ok(message.sequence),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(0),
            Err(error) => Err(unavailable(&error.to_string())),
        }
    }
}
