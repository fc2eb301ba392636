//! The registrar itself.

use super::calls::{Applied, Ask, Changes};
use crate::node::base::Base;
use crate::node::helpers::Helper;
use crate::store::{Effect, Log, Revision, StoreError, Table};
use ganger_proc_api::{
    BoxError, Context, EndWatch, Event, Events, Payloads, Process, Reply, StepOutput, StepResult,
    Tag,
};
use ganger_sched::internal::{AddressInternals as _, ContextInternals as _};
use std::collections::VecDeque;
use std::sync::Arc;

const TIMER: Tag = 1;

/// The changes kept for watches. A watch further behind gets a snapshot.
const RECENT: usize = 10_000;

/// The most bytes of values in an answer to a watch, unless a single change has more.
const PORTION: usize = 4 << 20;

/// The most waiting watches.
const MAX_WATCHES: usize = 4096;

struct Waiting {
    prefix: Box<str>,
    after: Revision,
    reply: Reply<Changes>,
    /// Wakes the process when the watcher has gone.
    _end: EndWatch,
}

pub(crate) struct Authority {
    table: Table,
    log: Log,
    recent: VecDeque<Effect>,
    /// The revision before the first recent change.
    before: Revision,
    watches: Vec<Waiting>,
    helper: Arc<Helper>,
}

impl Authority {
    pub(crate) fn new(log: Log, table: Table, helper: Arc<Helper>) -> Self {
        let before = table.revision();
        Self {
            table,
            log,
            recent: VecDeque::new(),
            before,
            watches: Vec::new(),
            helper,
        }
    }

    fn remember(&mut self, effects: Vec<Effect>) {
        self.recent.extend(effects);
        while self.recent.len() > RECENT
            && let Some(effect) = self.recent.pop_front()
        {
            self.before = effect.revision();
        }
    }

    /// Returns the changes after the last that a watch knows, if any.
    fn changes(&self, prefix: &str, after: Option<Revision>) -> Option<Changes> {
        let until = self.table.revision();
        let Some(after) = after.filter(|it| (self.before..=until).contains(it)) else {
            let changes = vec![self.table.snapshot(prefix)];
            return Some(Changes { changes, until });
        };
        let from = self.recent.partition_point(|it| it.revision() <= after);
        let mut left = PORTION;
        let mut until = until;
        let mut changes = Vec::new();
        for effect in self.recent.range(from..) {
            let key = effect.key().filter(|key| key.starts_with(prefix));
            let Some(change) = key.and_then(|_| effect.change()) else {
                continue;
            };
            changes.push(change);
            left = left.saturating_sub(effect.size());
            if left == 0 {
                until = effect.revision();
                break;
            }
        }
        (!changes.is_empty()).then_some(Changes { changes, until })
    }

    /// Answers the question of a watch.
    fn watch(
        &mut self,
        ctx: &Context,
        prefix: Box<str>,
        after: Option<Revision>,
        reply: Reply<Changes>,
    ) {
        if let Some(changes) = self.changes(&prefix, after) {
            reply.complete(changes);
        } else if self.watches.len() >= MAX_WATCHES {
            reply.fail("the registrar has too many watches");
        } else {
            let waker = ctx.waker();
            let end = reply.on_end(move || waker.wake());
            // A watcher that has gone already needs no answer.
            if let (Some(_end), Some(after)) = (end, after) {
                self.watches.push(Waiting {
                    prefix,
                    after,
                    reply,
                    _end,
                });
            }
        }
    }

    fn tell_watches(&mut self) {
        for waiting in std::mem::take(&mut self.watches) {
            if waiting.reply.is_cancelled() {
                continue;
            }
            match self.changes(&waiting.prefix, Some(waiting.after)) {
                Some(changes) => waiting.reply.complete(changes),
                None => self.watches.push(waiting),
            }
        }
    }
}

impl Process for Authority {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if let Some(own) = ctx.known_address::<ganger_proc_api::Message>() {
            own.leave_shutdown_to_caller();
        }
        self.helper.begin(ctx.waker());
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let now = Base::now();
        let mut effects = Vec::new();
        let mut answers = Vec::new();
        let mut watches = Vec::new();
        self.table.expire(now, &mut effects);
        for event in events {
            let message = match event {
                Event::Control(message) => *message,
                Event::Message(message) => message,
                Event::Cancel(_) => {
                    out.defer_cancel();
                    continue;
                }
                _ => continue,
            };
            match message.take::<Ask>() {
                Ok(Ask::Apply(op, reply)) => {
                    let is_read = op.is_read();
                    let answer = self.table.apply(op, now, &mut effects);
                    answers.push((is_read, reply, answer));
                }
                Ok(Ask::Changes(prefix, after, reply)) => watches.push((prefix, after, reply)),
                // A stranger's message.
                Err(_) => {}
            }
        }
        if !effects.is_empty() {
            let (log, table) = (&mut self.log, &self.table);
            let kept = ctx.blocking(|| log.append(&effects).and_then(|()| log.compact(table)));
            if let Err(error) = kept {
                // The disk may have any part of the changes.
                for (is_read, reply, _) in answers {
                    let why = || StoreError::Unavailable("the registrar has failed".into());
                    reply.complete(Applied(Err(if is_read {
                        why()
                    } else {
                        StoreError::Unknown
                    })));
                }
                let text = "the registrar can't keep what it promises, and ends";
                tracing::error!(target: "ganger::cluster", %error, "{text}");
                return Err(format!("the registrar's file: {error}").into());
            }
        }
        self.remember(effects);
        for (_, reply, answer) in answers {
            reply.complete(Applied(answer));
        }
        self.tell_watches();
        for (prefix, after, reply) in watches {
            self.watch(ctx, prefix, after, reply);
        }
        if self.helper.must_end() {
            out.done(());
            return Ok(());
        }
        out.cancel(TIMER);
        if let Some(at) = self.table.next_end() {
            out.sleep(at.since(Base::now()), TIMER);
        }
        Ok(())
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.helper.over();
    }
}
