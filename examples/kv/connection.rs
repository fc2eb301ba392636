//! A connection: a process that reads requests, carries them out or has the shards do it, and
//! writes answers.
//!
//! A batch of requests from a client is carried out as a batch: each shard gets its part at once.
//! Answers come in the order of the requests. While a client does not take its answers, the
//! connection reads no more from it.
//!
//! A transaction is carried out as a whole, also where its keys are of several shards: `shard.rs`.

mod exec;
mod own;

use super::commands::{self, Merge, Own, Route};
use super::protocol::{Answer, Parser, ProtocolError, Request, Version};
use super::server::{Publication, Server};
use super::shard::{Batch, Job, Work};
use super::store::{self, whole};
use super::transaction::Transaction;
use bytes::Bytes;
use exec::scanned;
use futures_util::future::join_all;
use futures_util::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use ganger::Instant;
use ganger::prelude::*;
use ganger::task::Either;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::{io, mem, slice, vec};

/// The most bytes of a single read.
pub(crate) const READ: usize = 16 * 1024;

/// The most requests carried out together, and the most commands of a shard that the connection
/// carries out itself.
pub(crate) const TOGETHER: usize = 256;

/// Most answers have fewer bytes.
const ANSWER: usize = 16;

/// A connection writes longer answers before it adds others.
pub(crate) const MANY_BYTES: usize = 64 * 1024;

thread_local! {
    /// Every read comes in here first, so that an idle connection needs no buffer.
    static INPUT: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into());
}

/// How the answer to a request is put together.
enum Slot {
    Ready(Answer),
    /// The next answer of this shard.
    Of(usize),
    /// The next answers of these shards.
    Merged(Merge, Vec<usize>),
    /// The counts of all shards.
    Info,
    /// The answer of this shard, a part of a `SCAN`.
    Scan(usize),
    /// A message to be published after all earlier requests.
    Publish(Request),
}

struct Connection<S> {
    cx: Cx<Publication>,
    server: Arc<Server>,
    stream: S,
    parser: Parser,
    version: Version,
    /// When the incomplete request began.
    begun: Option<Instant>,
    slots: Vec<Slot>,
    /// For each shard.
    jobs: Vec<Vec<Job>>,
    /// Whether a request may make or look at much: no further request joins the batch.
    is_full: bool,
    /// Requests since other processes have had their turns.
    in_a_row: usize,
    output: Vec<u8>,
    subscribed: BTreeSet<Bytes>,
    transaction: Transaction,
    is_over: bool,
}

/// Serves a client, until it goes, or the process is cancelled. Requests read by then are answered.
pub(crate) async fn serve<S>(cx: Cx<Publication>, stream: S, server: Arc<Server>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = Connection {
        cx,
        stream,
        parser: Parser::new(server.settings.limits),
        version: Version::Two,
        begun: None,
        slots: Vec::new(),
        jobs: server.shards.iter().map(|_| Vec::new()).collect(),
        is_full: false,
        in_a_row: 0,
        output: Vec::new(),
        subscribed: BTreeSet::new(),
        transaction: Transaction::default(),
        is_over: false,
        server,
    };
    while connection.listen().await? {
        connection.carry_out().await?;
    }
    connection.stream.close().await
}

/// Tells a client about the limit of clients.
pub(crate) async fn turn_away<S: AsyncWrite + Unpin>(stream: &mut S) {
    let mut output = Vec::new();
    let error = Answer::Error("ERR max number of clients reached".into());
    error.encode(Version::Two, &mut output);
    // The answer fits into the socket's buffer. A client that has gone needs no answer.
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
            .map(|it| patience.saturating_sub(cx.now().since(it)));
        let is_subscribed = !self.subscribed.is_empty();
        let (stream, parser) = (&mut self.stream, &mut self.parser);
        let input = match left {
            None if is_subscribed => match cx.select((read(stream, parser), cx.recv())).await {
                Either::A(read) => Some(Input::Bytes(read?)),
                Either::B(message) => message.map(Input::Message),
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
        // A message under way when the client unsubscribed is not for it.
        if self.subscribed.contains(&message.channel) {
            let parts = [Bytes::from("message"), message.channel, message.text];
            let push = Answer::Push(parts.map(Answer::Text).into());
            push.encode(self.version, &mut self.output);
        }
    }

    /// Carries out all requests in the input, and writes the answers.
    async fn carry_out(&mut self) -> io::Result<()> {
        let mut are_more = true;
        while are_more && !self.is_over {
            are_more = self.take_requests().await?;
            self.answer().await?;
            self.write().await?;
            // If the client is fast and asks no shard, only this lets other processes run.
            if self.in_a_row >= TOGETHER {
                self.in_a_row = 0;
                self.cx.yield_now().await;
            }
        }
        self.begun = match self.parser.is_inside() {
            true => self.begun.or_else(|| Some(self.cx.now())),
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
        self.in_a_row += taken;
        Ok(taken == TOGETHER || self.is_full)
    }

    /// Ends the connection: after invalid input nothing can be read.
    fn refuse(&mut self, error: &ProtocolError) {
        self.slots
            .push(Slot::Ready(Answer::Error(format!("ERR {error}"))));
        self.is_over = true;
    }

    async fn take(&mut self, mut request: Request) -> io::Result<()> {
        if is_of_web(&request[0]) {
            self.is_over = true;
            return Ok(());
        }
        let name = request.remove(0);
        let route = match commands::find(&name, request.len()) {
            Ok(route) => route,
            Err(error) => {
                let error = self.transaction.refuse(error);
                self.slots.push(Slot::Ready(error));
                return Ok(());
            }
        };
        if let Some(error) = self.not_here(&name, route) {
            let error = self.transaction.refuse(error);
            self.slots.push(Slot::Ready(error));
            return Ok(());
        }
        let ends = matches!(
            route,
            Route::Here(Own::Discard | Own::Exec | Own::Multi | Own::Quit)
        );
        if self.transaction.is_open() && !ends {
            request.insert(0, name);
            let limits = &self.server.settings.limits;
            let answer = self.transaction.queue(&request, is_long(route), limits);
            self.slots.push(Slot::Ready(answer));
            return Ok(());
        }
        match route {
            Route::Here(Own::Exec) => {
                // Earlier requests of the client are done before, and not with the transaction.
                self.answer().await?;
                let answer = self.exec().await;
                self.slots.push(Slot::Ready(answer));
                self.is_full = true;
            }
            Route::Here(Own::Watch) => {
                self.answer().await?;
                let answer = self.watch(&request).await;
                self.slots.push(Slot::Ready(answer));
            }
            Route::Here(Own::Publish) => {
                self.answer().await?;
                self.slots.push(Slot::Publish(request));
            }
            route => self.put(&name, route, request),
        }
        Ok(())
    }

    /// Returns whether the client has subscribed, and answers can't be told from pushes, as in
    /// version 2.
    fn is_for_pushes(&self) -> bool {
        !self.subscribed.is_empty() && self.version == Version::Two
    }

    /// Returns why a command can't be carried out now, if this is so.
    fn not_here(&self, name: &[u8], route: Route) -> Option<String> {
        let name = || name.escape_ascii().to_string().to_ascii_lowercase();
        let Route::Here(own) = route else {
            return self.is_for_pushes().then(|| only_for_subscribers(&name()));
        };
        let is_for_subscribers = matches!(
            own,
            Own::Subscribe | Own::Unsubscribe | Own::Ping | Own::Quit
        );
        if self.is_for_pushes() && !is_for_subscribers {
            return Some(only_for_subscribers(&name()));
        }
        let is_for_others = matches!(own, Own::Subscribe | Own::Unsubscribe | Own::Watch);
        (self.transaction.is_open() && is_for_others).then(|| {
            format!(
                "ERR {} inside MULTI is not allowed",
                name().to_ascii_uppercase()
            )
        })
    }

    /// Puts a command among the commands that are carried out together.
    fn put(&mut self, name: &[u8], route: Route, request: Request) {
        self.is_full |= is_long(route);
        let writes = commands::writes(name);
        match route {
            Route::Key(operation) | Route::Long(operation) => {
                let shard = self.give(operation, request, writes);
                self.slots.push(Slot::Of(shard));
            }
            Route::Keys(width, operation, merge) => {
                let parts = request.chunks(width);
                let shards = parts
                    .map(|part| self.give(operation, part.to_vec(), writes))
                    .collect();
                self.slots.push(Slot::Merged(merge, shards));
            }
            Route::All(operation, merge) => {
                let shards = self.give_all(operation, &request);
                self.slots.push(Slot::Merged(merge, shards));
            }
            Route::Here(Own::Info) => {
                self.give_all(whole::counts, &[]);
                self.slots.push(Slot::Info);
            }
            Route::Here(Own::Scan) => self.scan(request),
            Route::Here(Own::Publish) => self.slots.push(Slot::Publish(request)),
            Route::Here(own) => self.here(own, request),
        }
    }

    /// Gives a shard something to do, and returns its number.
    fn give(&mut self, operation: store::Operation, args: Vec<Bytes>, writes: bool) -> usize {
        let shard = self.server.shard_of(&args[0]);
        self.jobs[shard].push(Job {
            operation,
            args,
            writes,
        });
        shard
    }

    fn give_all(&mut self, operation: store::Operation, args: &[Bytes]) -> Vec<usize> {
        for jobs in &mut self.jobs {
            jobs.push(Job {
                operation,
                args: args.to_vec(),
                writes: false,
            });
        }
        (0..self.jobs.len()).collect()
    }

    /// Has the shards carry out their jobs, and encodes the answers.
    async fn answer(&mut self) -> io::Result<()> {
        let mut answers = self.ask(None).await;
        let mut answers = self.settle(&mut answers);
        let holding = self.server.held.hold(&mut answers);
        self.output.reserve(answers.len() * ANSWER);
        for answer in &answers {
            self.encode(answer).await?;
        }
        drop(holding);
        Ok(())
    }

    /// Has the shards carry out their jobs. `holder` holds the shards, and gives them back.
    async fn ask(&mut self, holder: Option<Pid>) -> Answers {
        let (cx, server, jobs) = (&self.cx, &self.server, &mut self.jobs);
        let is_short = holder.is_none() && !self.is_full;
        let ask = |shard: usize, jobs: Vec<Job>| async move {
            let count = jobs.len();
            let call = server.shards[shard].call(move |reply| {
                Work::Batch(Batch {
                    jobs,
                    holder,
                    reply,
                })
            });
            let answers = cx.ask(call).await.unwrap_or_else(|error| {
                let error = Answer::Error(format!("ERR the shard has failed: {error}"));
                vec![error; count]
            });
            answers.into_iter()
        };
        let none = jobs.iter().map(|_| Vec::new().into_iter());
        let mut answers: Answers = none.collect();
        for (shard, (jobs, answers)) in jobs.iter_mut().zip(&mut answers).enumerate() {
            if is_short
                && (1..=TOGETHER).contains(&jobs.len())
                && let Some(done) = server.carry_out(shard, jobs, cx.now())
            {
                *answers = done.into_iter();
                // An idle connection keeps no memory for jobs.
                *jobs = Vec::new();
            }
        }
        let left: Vec<_> = (0..jobs.len()).filter(|it| !jobs[*it].is_empty()).collect();
        if left.is_empty() {
            return answers;
        }
        let asked = left.iter().map(|it| ask(*it, mem::take(&mut jobs[*it])));
        // All requests that were read are answered, even at the end of the process.
        let asked = cx.shield(join_all(asked)).await;
        for (shard, its) in left.into_iter().zip(asked) {
            answers[shard] = its;
        }
        answers
    }

    /// Makes the answers to the requests from the answers of the shards.
    fn settle(&mut self, answers: &mut Answers) -> Vec<Answer> {
        let shards = self.jobs.len();
        let slots = mem::take(&mut self.slots).into_iter();
        let settled = slots.map(|slot| match slot {
            Slot::Ready(answer) => answer,
            Slot::Of(shard) => next(answers, shard),
            Slot::Merged(merge, shards) => {
                let parts = shards.into_iter().map(|it| next(answers, it));
                merge.merge(parts.collect())
            }
            Slot::Info => {
                let parts = (0..shards).map(|it| next(answers, it)).collect();
                self.server.info(parts)
            }
            Slot::Scan(shard) => scanned(next(answers, shard), shard, shards),
            Slot::Publish(request) => {
                let (channel, text) = (&request[0], &request[1]);
                self.server.publish(&self.cx, channel, text)
            }
        });
        settled.collect()
    }

    /// Encodes an answer. A long answer is written before it is encoded as a whole: `MGET` repeats
    /// a value as often as the client names its key. A long text is written from its place in the
    /// store.
    async fn encode(&mut self, answer: &Answer) -> io::Result<()> {
        let (mut parts, mut lists) = (slice::from_ref(answer).iter(), Vec::new());
        loop {
            match parts.next() {
                None => match lists.pop() {
                    Some(list) => parts = list,
                    None => return Ok(()),
                },
                Some(Answer::Text(text)) if text.len() >= MANY_BYTES => {
                    Answer::begin_text(text.len(), &mut self.output);
                    self.write().await?;
                    self.write_all(text).await?;
                    self.output.extend_from_slice(b"\r\n");
                }
                Some(part) => {
                    match part.begin(self.version, &mut self.output) {
                        Some(inner) => lists.push(mem::replace(&mut parts, inner.iter())),
                        None => part.encode(self.version, &mut self.output),
                    }
                    if self.output.len() >= MANY_BYTES {
                        self.write().await?;
                    }
                }
            }
        }
    }

    /// Writes the output so far.
    async fn write(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let output = mem::take(&mut self.output);
        self.write_all(&output).await
    }

    /// Writes, and gives the client limited time.
    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let patience = self.server.settings.patience;
        let write = self.cx.timeout(patience, self.stream.write_all(bytes));
        match self.cx.shield(write).await {
            Ok(written) => written,
            Err(_late) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Of each shard, in their order.
type Answers = Vec<vec::IntoIter<Answer>>;

enum Input {
    Bytes(usize),
    Message(Publication),
}

/// Reads the input, and gives it to the parser. A drop of the future loses nothing.
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

/// Takes the next answer of a shard. A shard answers once for each job.
fn next(answers: &mut [vec::IntoIter<Answer>], shard: usize) -> Answer {
    let lost = || Answer::Error("ERR the shard has lost an answer".into());
    answers[shard].next().unwrap_or_else(lost)
}

/// Returns whether the answer, or a text made by the command, may be long, or the command looks at
/// all keys.
fn is_long(route: Route) -> bool {
    matches!(
        route,
        Route::Long(_)
            | Route::All(_, Merge::Append | Merge::Ok)
            | Route::Here(Own::Info | Own::Scan)
    )
}

/// Returns whether the line is of HTTP. A page may have a browser send requests to here, with
/// commands in their lines. The server carries out none of them.
fn is_of_web(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

fn only_for_subscribers(name: &str) -> String {
    format!(
        "ERR Can't execute '{name}': only SUBSCRIBE / UNSUBSCRIBE / PING / QUIT are allowed in \
         this context"
    )
}
