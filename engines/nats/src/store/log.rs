//! The stream: its settings, and the form of its messages.

use super::mirror::Record;
use crate::error::NatsError;
use crate::subject::{escape, unescape};
use async_nats::jetstream::context::{
    Context, CreateStreamErrorKind, GetStreamErrorKind, PublishErrorKind,
};
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, Info, PersistenceMode, RetentionPolicy, StorageType,
};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{HeaderMap, header};
use bytes::Bytes;
use ganger_cluster::LeaseId;
use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

/// The copies of the stream in a cluster of servers. Fewer lose acknowledged writes with a server.
const REPLICAS: usize = 3;

/// The messages of a subject: how far a mirror may be behind.
const HISTORY: i64 = 64;

/// Marks the end of an entry or of a lease, as buckets of keys and values do.
const OPERATION: &str = "KV-Operation";
const END: &str = "DEL";

/// The content of an acknowledgement.
#[derive(Debug)]
pub(crate) enum Sent {
    Stored(u64),
    /// The condition does not hold. Nothing is written.
    Conflict,
    /// No server has the message.
    Refused,
    Unknown,
}

/// The names of the stream and of its subjects.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) stream: String,
    prefix: String,
}

impl Names {
    pub(crate) fn new(cluster: &str) -> Self {
        let bucket = format!("ganger_{}", escape(cluster));
        Self {
            stream: format!("KV_{bucket}"),
            prefix: format!("$KV.{bucket}."),
        }
    }

    pub(crate) fn entry(&self, key: &str) -> String {
        format!("{}e.{}", self.prefix, escape(key))
    }

    pub(crate) fn lease(&self, id: LeaseId) -> String {
        format!("{}l.{id}", self.prefix)
    }

    pub(crate) fn barrier(&self, run: u64) -> String {
        format!("{}b.{run}", self.prefix)
    }

    /// Returns the pattern of all subjects.
    pub(crate) fn all(&self) -> String {
        format!("{}>", self.prefix)
    }

    /// Reads a message.
    pub(crate) fn record(&self, subject: &str, headers: Option<&HeaderMap>, body: &[u8]) -> Record {
        let is_end = headers.is_some_and(|it| it.get(OPERATION).is_some());
        self.read(subject, is_end, body).unwrap_or(Record::Other)
    }

    fn read(&self, subject: &str, is_end: bool, body: &[u8]) -> Option<Record> {
        let (kind, name) = subject.strip_prefix(&self.prefix)?.split_once('.')?;
        match kind {
            "e" if is_end => Some(Record::Delete(unescape(name)?.into())),
            "e" => {
                let (lease, value) = body.split_first_chunk()?;
                let lease = Some(u64::from_be_bytes(*lease)).filter(|id| *id != 0);
                let key = unescape(name)?.into();
                Some(Record::Put(key, value.to_vec(), lease.map(LeaseId)))
            }
            "l" if is_end => Some(Record::Ended(LeaseId(name.parse().ok()?))),
            "l" => {
                let ttl = u64::from_be_bytes(*body.split_first_chunk()?.0);
                let ttl = Duration::from_nanos(ttl).min(ganger_cluster::MAX_TTL);
                Some(Record::Held(LeaseId(name.parse().ok()?), ttl))
            }
            _ => None,
        }
    }
}

/// Returns the body of an entry's message.
pub(crate) fn entry(value: &[u8], lease: Option<LeaseId>) -> Bytes {
    let lease = lease.map_or(0, |lease| lease.0).to_be_bytes();
    [&lease, value].concat().into()
}

/// Returns the body of a grant or a renewal.
pub(crate) fn held(ttl: Duration) -> Bytes {
    let nanos = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
    Bytes::copy_from_slice(&nanos.to_be_bytes())
}

/// Returns headers with the condition on the last message: of the subject, or of the stream.
pub(crate) fn headers(subject: Option<u64>, stream: Option<u64>, is_end: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(sequence) = subject {
        headers.insert(
            header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE,
            sequence.to_string(),
        );
    }
    if let Some(sequence) = stream {
        headers.insert(header::NATS_EXPECTED_LAST_SEQUENCE, sequence.to_string());
    }
    if is_end {
        headers.insert(OPERATION, END);
    }
    headers
}

pub(crate) async fn publish(
    context: &Context,
    subject: String,
    headers: HeaderMap,
    body: Bytes,
) -> Sent {
    let sent = match context.publish_with_headers(subject, headers, body).await {
        Ok(acknowledged) => acknowledged.await,
        Err(error) => Err(error),
    };
    let error = match sent {
        Ok(stored) => return Sent::Stored(stored.sequence),
        Err(error) => error,
    };
    let code = error.source().and_then(|it| it.downcast_ref());
    let code = code.map(jetstream::Error::error_code);
    match (error.kind(), code) {
        (PublishErrorKind::WrongLastSequence, _)
        | (_, Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)) => Sent::Conflict,
        (PublishErrorKind::StreamNotFound | PublishErrorKind::MaxAckPending, _) => Sent::Refused,
        _ => Sent::Unknown,
    }
}

/// Why the stream is not there. Another attempt may help with `Later`.
pub(crate) enum Missing {
    Later(NatsError),
    Never(NatsError),
}

/// Finds the stream, or makes it, and looks at its settings. Returns the number of its copies.
pub(crate) async fn open(context: &Context, names: &Names) -> Result<usize, Missing> {
    let stream = match context.get_stream(&names.stream).await {
        Ok(stream) => stream,
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(why)
                if why.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                create(context, names).await?
            }
            GetStreamErrorKind::JetStream(why) => return Err(refused(&why)),
            _ => return Err(Missing::Later(NatsError::NoJetStream(error.to_string()))),
        },
    };
    let info = stream.cached_info();
    let faults = faults(info);
    if !faults.is_empty() {
        let stream = names.stream.clone();
        return Err(Missing::Never(NatsError::Stream { stream, faults }));
    }
    Ok(info.config.num_replicas)
}

type Stream = jetstream::stream::Stream;

async fn create(context: &Context, names: &Names) -> Result<Stream, Missing> {
    let config = |num_replicas| Config {
        name: names.stream.clone(),
        subjects: vec![names.all()],
        max_messages_per_subject: HISTORY,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas,
        deny_delete: true,
        ..Config::default()
    };
    let mut made = context.create_stream(config(REPLICAS)).await;
    if let Err(error) = &made
        && let CreateStreamErrorKind::JetStream(why) = error.kind()
        && why.error_code() == ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED
    {
        // A single server.
        made = context.create_stream(config(1)).await;
    }
    made.map_err(|error| match error.kind() {
        CreateStreamErrorKind::JetStream(why) => refused(&why),
        _ => Missing::Later(NatsError::NoJetStream(error.to_string())),
    })
}

fn refused(why: &jetstream::Error) -> Missing {
    match why.error_code() {
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
            Missing::Never(NatsError::NoJetStream(why.to_string()))
        }
        ErrorCode::CLUSTER_NO_PEERS => Missing::Later(NatsError::FewServers(why.to_string())),
        _ => Missing::Later(NatsError::NoJetStream(why.to_string())),
    }
}

/// Returns the settings with which the stream would lose acknowledged writes.
fn faults(info: &Info) -> String {
    let config = &info.config;
    let is_cluster = info.cluster.as_ref().is_some_and(|it| it.name.is_some());
    let faults = [
        (
            is_cluster && config.num_replicas < REPLICAS,
            "num_replicas below 3 in a cluster",
        ),
        (config.storage != StorageType::File, "storage not file"),
        (
            config.retention != RetentionPolicy::Limits,
            "retention not limits",
        ),
        (config.max_age != Duration::ZERO, "max_age"),
        (config.max_bytes > 0, "max_bytes"),
        (config.max_messages > 0, "max_msgs"),
        (
            config.max_messages_per_subject != HISTORY,
            "max_msgs_per_subject not 64",
        ),
        (config.no_ack, "no_ack"),
        (config.sealed, "sealed"),
        (
            config.persist_mode == Some(PersistenceMode::Async),
            "persist_mode async",
        ),
        (
            config.mirror.is_some() || config.sources.as_ref().is_some_and(|it| !it.is_empty()),
            "messages of other streams",
        ),
    ];
    let mut text = String::new();
    for (_, fault) in faults.iter().filter(|(is_fault, _)| *is_fault) {
        let comma = if text.is_empty() { "" } else { ", " };
        write!(text, "{comma}{fault}").expect("a String takes all");
    }
    text
}
