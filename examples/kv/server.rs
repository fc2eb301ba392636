//! The shared state of all connections: the shards, the channels, limits and counts.

use super::held::Held;
use super::protocol::{Answer, Limits};
use super::shard::{Job, Keys, Work};
use bytes::Bytes;
use ganger::link::{Group, Groups};
use ganger::prelude::*;
use ganger::{SendErrorKind, WeakHandle};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The settings of a server at its start.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) shards: usize,
    /// Connections at a time.
    pub(crate) clients: usize,
    /// How long a client may take for a request that it has begun, or for an answer.
    pub(crate) patience: Duration,
    /// The most bytes under way to subscribers, all together, with their space in mailboxes.
    pub(crate) under_way: usize,
    /// The most bytes of long texts on their way to clients, all together.
    pub(crate) answers: usize,
    pub(crate) limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            shards: std::thread::available_parallelism().map_or(4, |it| 2 * it.get()),
            clients: 10_000,
            patience: Duration::from_secs(30),
            under_way: 256 * 1024 * 1024,
            answers: 256 * 1024 * 1024,
            limits: Limits::default(),
        }
    }
}

impl Settings {
    /// Returns the most messages that may wait for a process. Such are a request of each connection
    /// for a shard, or the messages of channels for a client that is slow to read.
    pub(crate) fn mailbox_limit(&self) -> usize {
        self.clients.saturating_add(1_024)
    }
}

pub(crate) struct Server {
    pub(crate) settings: Settings,
    pub(crate) shards: Vec<Address<Work>>,
    /// Of each shard.
    keys: Vec<Keys>,
    pub(crate) held: Arc<Held>,
    pub(crate) channels: Groups,
    pub(crate) clients: AtomicUsize,
    under_way: Arc<AtomicUsize>,
    accepted: AtomicU64,
    commands: AtomicU64,
    hasher: RandomState,
    started: Instant,
    scheduler: WeakHandle,
}

/// The size of a message in a mailbox, without the bytes that all subscribers share.
const IN_A_MAILBOX: usize = 256;

/// A message to the subscribers of a channel.
#[derive(Clone)]
pub(crate) struct Publication {
    pub(crate) channel: Bytes,
    pub(crate) text: Bytes,
    _counts: Arc<UnderWay>,
}

/// The bytes of a publication, which count until the last subscriber has taken it.
struct UnderWay {
    sum: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // Ordering: Relaxed: a count alone.
        self.sum.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The place of a connection within the limit.
pub(crate) struct Place(Arc<Server>);

impl Drop for Place {
    fn drop(&mut self) {
        // Ordering: Relaxed: a count alone, as all counts here.
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    /// Creates a server. Shards without keys carry out all commands in their processes.
    pub(crate) fn new(
        scheduler: &Handle,
        settings: Settings,
        shards: Vec<Address<Work>>,
        keys: Vec<Keys>,
    ) -> Self {
        Self {
            held: Held::new(settings.answers),
            settings,
            shards,
            keys,
            channels: Groups::of(scheduler, "channels"),
            clients: AtomicUsize::new(0),
            under_way: Arc::default(),
            accepted: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            hasher: RandomState::new(),
            started: Instant::now(),
            scheduler: scheduler.downgrade(),
        }
    }

    /// Gives a place for a further connection, if one is free.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Place> {
        // Ordering: Relaxed: counts alone.
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let before = self.clients.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(self));
        (before < self.settings.clients).then_some(place)
    }

    pub(crate) fn count(&self, commands: usize) {
        let commands = u64::try_from(commands).unwrap_or(u64::MAX);
        // Ordering: Relaxed: a count alone.
        self.commands.fetch_add(commands, Ordering::Relaxed);
    }

    /// Returns the number of commands so far.
    pub(crate) fn commands(&self) -> u64 {
        // Ordering: Relaxed: a count alone.
        self.commands.load(Ordering::Relaxed)
    }

    pub(crate) fn release_memory(&self) {
        if let Some(scheduler) = self.scheduler.upgrade() {
            scheduler.release_memory();
        }
    }

    pub(crate) fn shard_of(&self, key: &[u8]) -> usize {
        let hash = self.hasher.hash_one(key);
        usize::try_from(hash % self.shards.len() as u64).unwrap_or(0)
    }

    /// Carries out short commands of a shard on this thread, if its keys are free.
    pub(crate) fn carry_out(
        &self,
        shard: usize,
        jobs: &[Job],
        now: ganger::Instant,
    ) -> Option<Vec<Answer>> {
        let (answers, tells) = self.keys.get(shard)?.try_carry_out(jobs, now)?;
        if tells {
            // A shard that takes no message has enough to do, and looks afterwards, or has ended.
            let _ = self.shards[shard].send(Work::Ends);
        }
        Some(answers)
    }

    pub(crate) fn channel(&self, name: &[u8]) -> Group {
        self.channels.group(&name.escape_ascii().to_string())
    }

    /// Sends to the subscribers of the channel, and answers their number. Closes the connection of
    /// a subscriber that does not take the message, so that it notices.
    pub(crate) fn publish(&self, ctx: &Context, channel: &Bytes, text: &Bytes) -> Answer {
        let members = self.channel(channel).members();
        let bytes = channel.len() + text.len() + members.len() * IN_A_MAILBOX;
        let sum = Arc::clone(&self.under_way);
        // Ordering: Relaxed: a count alone.
        let before = sum.fetch_add(bytes, Ordering::Relaxed);
        let counts = Arc::new(UnderWay { sum, bytes });
        if before.saturating_add(bytes) > self.settings.under_way {
            let text = "ERR subscribers have not taken earlier messages yet";
            return Answer::Error(text.into());
        }
        let publication = Publication {
            // Copies: a mailbox must not keep the whole input in memory.
            channel: Bytes::copy_from_slice(channel),
            text: Bytes::copy_from_slice(text),
            _counts: counts,
        };
        let taken = members.into_iter().filter(|member| {
            match ctx.send_envelope(Message::of(publication.clone()).to(*member)) {
                Ok(()) => true,
                Err(error) => {
                    if error.kind == SendErrorKind::Full {
                        let _ = ctx.cancel(*member, "it does not read what it has subscribed to");
                    }
                    false
                }
            }
        });
        Answer::count(taken.count())
    }

    /// Returns the text of `INFO`, with the counts of all shards.
    pub(crate) fn info(&self, counts: Vec<Answer>) -> Answer {
        let [mut keys, mut ends] = [0, 0];
        for counts in counts {
            let Answer::List(counts) = counts else {
                return counts;
            };
            if let [Answer::Number(more_keys), Answer::Number(more_ends)] = counts[..] {
                keys += more_keys;
                ends += more_ends;
            }
        }
        let processes = self.scheduler.upgrade().map_or(0, |it| it.stats().live);
        // Ordering: Relaxed: counts alone.
        let clients = self.clients.load(Ordering::Relaxed);
        let accepted = self.accepted.load(Ordering::Relaxed);
        let commands = self.commands();
        let version = env!("CARGO_PKG_VERSION");
        let uptime = self.started.elapsed().as_secs();
        let shards = self.shards.len();
        let channels = self.channels.names().len();
        let text = format!(
            "# Server\r\nganger_version:{version}\r\nprocess_id:{}\r\n\
             uptime_in_seconds:{uptime}\r\nshards:{shards}\r\nprocesses:{processes}\r\n\r\n\
             # Clients\r\nconnected_clients:{clients}\r\nmaxclients:{}\r\n\r\n\
             # Stats\r\ntotal_connections_received:{accepted}\r\n\
             total_commands_processed:{commands}\r\npubsub_channels:{channels}\r\n\r\n\
             # Keyspace\r\ndb0:keys={keys},expires={ends}\r\n",
            std::process::id(),
            self.settings.clients,
        );
        Answer::text(text)
    }
}
