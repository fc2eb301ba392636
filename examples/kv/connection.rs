//! A connection: a process that reads requests, has the shards carry them out, and writes answers.
//!
//! What a client sends in one go is carried out in one go: each shard gets its part of it as one
//! message. Answers come in the order of the requests. As long as a client does not take its
//! answers, no more is read of it.

use super::commands::{self, Merge, Own, Route};
use super::protocol::{Answer, Parser, ProtocolError, Request};
use super::server::{Publication, Server};
use super::shard::{Batch, Job};
use super::store;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use ganger::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::{io, mem, slice, vec};

/// As many bytes are read at a time at the most.
pub(crate) const READ: usize = 16 * 1024;

/// As many requests are carried out together at the most.
pub(crate) const TOGETHER: usize = 256;

/// Answers of more bytes are written before others are added.
pub(crate) const MANY_BYTES: usize = 64 * 1024;

/// Channels that a client may be subscribed to at a time, and the bytes of a name.
const MOST_CHANNELS: usize = 1_000;
const LONGEST_NAME: usize = 1_024;

thread_local! {
    /// What is read comes in here first, so that a connection that is idle needs no buffer.
    static INPUT: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into());
}

/// How the answer to a request is put together.
enum Slot {
    Ready(Answer),
    /// The next answer of that shard.
    Of(usize),
    /// The next answers of these shards.
    Merged(Merge, Vec<usize>),
    /// The counts of all shards.
    Info,
}

struct Connection<S> {
    cx: Cx<Publication>,
    server: Arc<Server>,
    stream: S,
    parser: Parser,
    /// When the request that has not come whole has begun.
    begun: Option<Moment>,
    slots: Vec<Slot>,
    /// For each shard.
    jobs: Vec<Vec<Job>>,
    /// What it makes may be long: no more is carried out together with what has been taken.
    is_full: bool,
    output: Vec<u8>,
    subscribed: BTreeSet<Bytes>,
    is_over: bool,
}

/// Serves a client, until it goes, or the process is cancelled. What has been read by then is
/// answered.
pub(crate) async fn serve<S>(cx: Cx<Publication>, stream: S, server: Arc<Server>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = Connection {
        cx,
        stream,
        parser: Parser::new(server.settings.limits),
        begun: None,
        slots: Vec::new(),
        jobs: server.shards.iter().map(|_| Vec::new()).collect(),
        is_full: false,
        output: Vec::new(),
        subscribed: BTreeSet::new(),
        is_over: false,
        server,
    };
    while connection.listen().await? {
        connection.carry_out().await?;
    }
    connection.stream.close().await
}

/// Tells a client that there are too many.
pub(crate) async fn turn_away<S: AsyncWrite + Unpin>(stream: &mut S) {
    let mut output = Vec::new();
    Answer::Error("ERR max number of clients reached".into()).encode(&mut output);
    // It fits into the socket's buffer. If the client has gone, there is nothing to say.
    let _ = stream.write_all(&output).await;
    let _ = stream.close().await;
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Waits for the client, or for a message to it. Says whether to go on.
    async fn listen(&mut self) -> io::Result<bool> {
        let cx = &self.cx;
        if self.is_over || cx.is_cancelled() {
            return Ok(false);
        }
        let patience = self.server.settings.patience;
        let left = self
            .begun
            .map(|it| patience.saturating_sub(cx.context().now().since(it)));
        let is_subscribed = !self.subscribed.is_empty();
        let (stream, parser) = (&mut self.stream, &mut self.parser);
        let input = match left {
            None if is_subscribed => match cx.select((read(stream, parser), cx.recv())).await {
                OneOf2::A(read) => Some(Input::Bytes(read?)),
                OneOf2::B(message) => message.map(Input::Message),
            },
            None => match cx.until_cancelled(read(stream, parser)).await {
                Ok(read) => Some(Input::Bytes(read?)),
                Err(_cancelled) => None,
            },
            Some(left) => match cx.timeout(left, read(stream, parser)).await {
                Ok(read) => Some(Input::Bytes(read?)),
                Err(_late_or_cancelled) => None,
            },
        };
        match input {
            None | Some(Input::Bytes(0)) => Ok(false),
            Some(Input::Bytes(_)) => Ok(true),
            Some(Input::Message(message)) => {
                self.tell(message);
                while self.output.len() < MANY_BYTES
                    && let Some(message) = self.cx.try_recv()
                {
                    self.tell(message);
                }
                Ok(true)
            }
        }
    }

    fn tell(&mut self, message: Publication) {
        // What was on its way when the client unsubscribed is not for it any more.
        if self.subscribed.contains(&message.channel) {
            let parts = [Bytes::from("message"), message.channel, message.text];
            Answer::List(parts.map(Answer::Text).into()).encode(&mut self.output);
        }
    }

    /// Carries out all requests that are here, and writes the answers.
    async fn carry_out(&mut self) -> io::Result<()> {
        let mut are_more = true;
        while are_more && !self.is_over {
            are_more = self.take_requests().await?;
            self.answer().await?;
            self.write().await?;
        }
        self.begun = match self.parser.is_inside() {
            true => self.begun.or_else(|| Some(self.cx.context().now())),
            false => None,
        };
        Ok(())
    }

    /// Takes some requests, and says whether there may be more.
    async fn take_requests(&mut self) -> io::Result<bool> {
        let mut taken = 0;
        self.is_full = false;
        while taken < TOGETHER && !self.is_over && !self.is_full {
            match self.parser.next() {
                Ok(Some(request)) => {
                    taken += 1;
                    self.begun = None;
                    self.take(request).await?;
                }
                Ok(None) => break,
                Err(error) => self.refuse(&error),
            }
        }
        self.server.count(taken);
        Ok(taken == TOGETHER || self.is_full)
    }

    /// Nothing can be read after what is no request.
    fn refuse(&mut self, error: &ProtocolError) {
        self.slots
            .push(Slot::Ready(Answer::Error(format!("ERR {error}"))));
        self.is_over = true;
    }

    async fn take(&mut self, mut request: Request) -> io::Result<()> {
        let name = request.remove(0);
        let route = match commands::find(&name, request.len()) {
            Ok(route) => route,
            Err(error) => {
                self.slots.push(Slot::Ready(Answer::Error(error)));
                return Ok(());
            }
        };
        let is_for_subscribers = matches!(
            route,
            Route::Here(Own::Subscribe | Own::Unsubscribe | Own::Ping | Own::Quit)
        );
        if !self.subscribed.is_empty() && !is_for_subscribers {
            let name = name.escape_ascii().to_string().to_ascii_lowercase();
            let error = format!(
                "ERR Can't execute '{name}': only SUBSCRIBE / UNSUBSCRIBE / PING / QUIT are \
                 allowed in this context"
            );
            self.slots.push(Slot::Ready(Answer::Error(error)));
            return Ok(());
        }
        match route {
            Route::Key(operation) | Route::Long(operation) => {
                self.is_full = matches!(route, Route::Long(_));
                let shard = self.give(operation, request);
                self.slots.push(Slot::Of(shard));
            }
            Route::Keys(width, operation, merge) => {
                let parts = request.chunks(width);
                let shards = parts
                    .map(|part| self.give(operation, part.to_vec()))
                    .collect();
                self.slots.push(Slot::Merged(merge, shards));
            }
            Route::All(operation, merge) => {
                self.is_full = merge == Merge::Append;
                let shards = self.give_all(operation, &request);
                self.slots.push(Slot::Merged(merge, shards));
            }
            Route::Here(Own::Info) => {
                self.give_all(store::whole::counts, &[]);
                self.slots.push(Slot::Info);
            }
            Route::Here(Own::Publish) => {
                // What the client has asked for before is done before.
                self.answer().await?;
                let (channel, text) = (&request[0], &request[1]);
                let answer = self.server.publish(self.cx.context(), channel, text);
                self.slots.push(Slot::Ready(answer));
            }
            Route::Here(own) => self.here(own, request),
        }
        Ok(())
    }

    /// Gives a shard something to do, and returns its number.
    fn give(&mut self, operation: store::Operation, args: Vec<Bytes>) -> usize {
        let shard = self.server.shard_of(&args[0]);
        self.jobs[shard].push(Job { operation, args });
        shard
    }

    fn give_all(&mut self, operation: store::Operation, args: &[Bytes]) -> Vec<usize> {
        for jobs in &mut self.jobs {
            let args = args.to_vec();
            jobs.push(Job { operation, args });
        }
        (0..self.jobs.len()).collect()
    }

    fn here(&mut self, own: Own, args: Request) {
        let subscribed = !self.subscribed.is_empty();
        let answer = match own {
            Own::Ping if subscribed => {
                let text = args.into_iter().next().unwrap_or_default();
                Answer::List(vec![Answer::text("pong"), Answer::Text(text)])
            }
            Own::Ping => args
                .into_iter()
                .next()
                .map_or(Answer::Status("PONG"), Answer::Text),
            Own::Echo => Answer::optional(args.into_iter().next()),
            Own::Select if *args[0] == *b"0" => Answer::OK,
            Own::Select => Answer::Error("ERR DB index is out of range".into()),
            Own::Client => Answer::OK,
            Own::Command => Answer::List(Vec::new()),
            Own::Config => config(&args),
            Own::Quit => {
                self.is_over = true;
                Answer::OK
            }
            Own::Subscribe => {
                args.into_iter()
                    .for_each(|channel| self.subscribe(&channel));
                return;
            }
            Own::Unsubscribe => {
                self.unsubscribe(args);
                return;
            }
            Own::Info | Own::Publish => return,
        };
        self.slots.push(Slot::Ready(answer));
    }

    fn subscribe(&mut self, channel: &Bytes) {
        if channel.len() > LONGEST_NAME || self.subscribed.len() >= MOST_CHANNELS {
            let error = "ERR too many channels, or a name that is too long";
            self.slots.push(Slot::Ready(Answer::Error(error.into())));
            return;
        }
        let channel = Bytes::copy_from_slice(channel);
        if self.subscribed.insert(channel.clone()) {
            let address = self.cx.context().address::<Publication>();
            let joined = address.map(|it| self.server.channel(&channel).join(it));
            debug_assert!(matches!(joined, Ok(Ok(()))), "a process that runs can join");
        }
        self.confirm("subscribe", Answer::Text(channel));
    }

    fn unsubscribe(&mut self, channels: Request) {
        let channels = match channels.is_empty() {
            true => self.subscribed.iter().cloned().collect(),
            false => channels,
        };
        if channels.is_empty() {
            self.confirm("unsubscribe", Answer::Nothing);
        }
        for channel in channels {
            if self.subscribed.remove(&channel) {
                self.server.channel(&channel).leave(self.cx.pid());
            }
            self.confirm("unsubscribe", Answer::Text(channel));
        }
    }

    fn confirm(&mut self, what: &str, channel: Answer) {
        let count = Answer::count(self.subscribed.len());
        let list = vec![Answer::text(what), channel, count];
        self.slots.push(Slot::Ready(Answer::List(list)));
    }

    /// Has the shards do what they have been given, and encodes the answers.
    async fn answer(&mut self) -> io::Result<()> {
        let (cx, server) = (&self.cx, &self.server);
        let ask = |shard: usize, jobs: Vec<Job>| async move {
            let count = jobs.len();
            if count == 0 {
                return Vec::new().into_iter();
            }
            let call = server.shards[shard].call(|reply| Batch { jobs, reply });
            let answers = cx.ask(call).await.unwrap_or_else(|error| {
                let error = Answer::Error(format!("ERR the shard has failed: {error}"));
                vec![error; count]
            });
            answers.into_iter()
        };
        let mut busy = (0..self.jobs.len()).filter(|it| !self.jobs[*it].is_empty());
        let (first, is_alone) = (busy.next(), busy.next().is_none());
        // What has been read is answered, also when the process is to end.
        let mut answers = match first {
            // Mostly one shard is asked: that is no join.
            Some(shard) if is_alone => {
                let none = self.jobs.iter().map(|_| Vec::new().into_iter());
                let mut answers: Vec<_> = none.collect();
                answers[shard] = cx
                    .shield(ask(shard, mem::take(&mut self.jobs[shard])))
                    .await;
                answers
            }
            _ => {
                let jobs = self.jobs.iter_mut().map(mem::take).enumerate();
                let asked = jobs.map(|(shard, jobs)| ask(shard, jobs));
                cx.shield(join_all(asked)).await
            }
        };
        for slot in mem::take(&mut self.slots) {
            let answer = match slot {
                Slot::Ready(answer) => answer,
                Slot::Of(shard) => next(&mut answers, shard),
                Slot::Merged(merge, shards) => {
                    let parts = shards.into_iter().map(|it| next(&mut answers, it));
                    merge.merge(parts.collect())
                }
                Slot::Info => {
                    let parts = (0..answers.len()).map(|it| next(&mut answers, it));
                    let parts = parts.collect();
                    self.server.info(parts)
                }
            };
            self.encode(&answer).await?;
        }
        Ok(())
    }

    /// Encodes an answer. What is long is written before all of it is encoded: `MGET` has one value
    /// as often as it is asked for it.
    async fn encode(&mut self, answer: &Answer) -> io::Result<()> {
        let parts = match answer {
            Answer::List(parts) => {
                Answer::begin_list(parts.len(), &mut self.output);
                &parts[..]
            }
            one => slice::from_ref(one),
        };
        for part in parts {
            part.encode(&mut self.output);
            if self.output.len() >= MANY_BYTES {
                self.write().await?;
            }
        }
        Ok(())
    }

    /// Writes what there is to write. The client may take so long, and no longer.
    async fn write(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let output = mem::take(&mut self.output);
        let patience = self.server.settings.patience;
        let write = self.cx.timeout(patience, self.stream.write_all(&output));
        match self.cx.shield(write).await {
            Ok(written) => written,
            Err(_late) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

enum Input {
    Bytes(usize),
    Message(Publication),
}

/// Reads what has come in, and gives it to the parser. Nothing is lost when this is dropped.
async fn read<S: AsyncRead + Unpin>(stream: &mut S, parser: &mut Parser) -> io::Result<usize> {
    poll_fn(|context| {
        INPUT.with_borrow_mut(|input| {
            let read = Pin::new(&mut *stream).poll_read(context, input);
            read.map_ok(|count| {
                parser.feed(&input[..count]);
                count
            })
        })
    })
    .await
}

/// Each shard answers as often as it was given something to do.
fn next(answers: &mut [vec::IntoIter<Answer>], shard: usize) -> Answer {
    let lost = || Answer::Error("ERR the shard has lost an answer".into());
    answers[shard].next().unwrap_or_else(lost)
}

/// What clients ask for before they start: nothing is saved.
fn config(args: &[Bytes]) -> Answer {
    if !args[0].eq_ignore_ascii_case(b"get") {
        return Answer::Error("ERR only CONFIG GET is there".into());
    }
    let known = args[1..].iter().filter_map(|name| {
        let value = match name.to_ascii_lowercase().as_slice() {
            b"save" => "",
            b"appendonly" => "no",
            b"databases" => "1",
            _ => return None,
        };
        Some([Answer::Text(name.clone()), Answer::text(value)])
    });
    Answer::List(known.flatten().collect())
}
