//! X1 to X3 by ractor_cluster: two node servers, whose connection has no encryption. The receiver
//! is a member of a process group, and so known to the other node. A round trip is a call, a
//! message of a stream a cast.

use ganger_bench_options::catalog::Id;
use ganger_bench_options::job::{Error, Job};
use ganger_remote_common::{
    BoxError, LARGE, LAST, Measured, PATIENCE, RECEIVER, SMALL, Second, Tally, block, execute,
    is_second, percentiles, round_trips, runtime, streams, tell_place,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call_t, pg};
use ractor_cluster::{NodeServer, NodeServerMessage, RactorClusterMessage, client_connect};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::time::sleep;

#[derive(RactorClusterMessage)]
enum Message {
    /// A block that goes back.
    #[rpc]
    Ask(Vec<u8>, RpcReplyPort<Vec<u8>>),
    /// A block of a stream.
    Tell(Vec<u8>),
    /// The end of a stream: how many blocks there were, 0 if not in their order.
    #[rpc]
    Account(Vec<u8>, RpcReplyPort<u64>),
}

struct Receiver;

impl Actor for Receiver {
    type Msg = Message;
    type State = Tally;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<Tally, ActorProcessingErr> {
        Ok(Tally::default())
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        tally: &mut Tally,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Ask(block, reply) => reply.send(block)?,
            Message::Tell(block) => _ = tally.note(&block),
            Message::Account(last, reply) => {
                let account = tally.note(&last).ok_or("another block was due")?;
                reply.send(account[0])?;
            }
        }
        Ok(())
    }
}

/// Starts a node, and returns its port.
async fn node(name: &str) -> Result<(ActorRef<NodeServerMessage>, u16), BoxError> {
    // A node does not tell which port the system has chosen.
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = free.local_addr()?.port();
    drop(free);
    let cookie = "a secret of two programs of a benchmark".to_owned();
    let host = Ipv4Addr::LOCALHOST;
    let server = NodeServer::new(port, cookie, name.to_owned(), host.to_string(), None, None)
        .with_listen_addr(host.into());
    let (node, _) = Actor::spawn(None, server, ()).await?;
    Ok((node, port))
}

async fn serve() -> Result<(), BoxError> {
    let (_node, port) = node("beta").await?;
    let (receiver, _) = Actor::spawn(None, Receiver, ()).await?;
    pg::join(RECEIVER.to_owned(), vec![receiver.get_cell()]);
    tell_place(&port.to_string()).await
}

/// Connects to the second node, and waits for its receiver.
async fn connect(second: &Second) -> Result<ActorRef<Message>, BoxError> {
    let (node, _) = node("alpha").await?;
    let port = second.place().parse()?;
    client_connect(&node, (Ipv4Addr::LOCALHOST, port)).await?;
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(receiver) = pg::get_members(&RECEIVER.to_owned()).pop() {
            return Ok(receiver.into());
        }
        sleep(Duration::from_millis(1)).await;
    }
    Err("the second node does not come".into())
}

async fn trips(to: ActorRef<Message>, count: u64) -> Result<[u64; 2], BoxError> {
    let patience = u64::try_from(PATIENCE.as_millis())?;
    let mut times = Vec::new();
    for number in 0..count {
        let begin = Instant::now();
        let back = call_t!(to, Message::Ask, patience, block(number, 0, SMALL))?;
        times.push(u64::try_from(begin.elapsed().as_nanos())?);
        if back != block(number, 0, SMALL) {
            return Err("another block comes back".into());
        }
    }
    Ok(percentiles(&mut times))
}

async fn stream(to: ActorRef<Message>, count: u64, size: usize) -> Result<u64, BoxError> {
    for number in 0..count {
        to.cast(Message::Tell(block(number, 0, size)))?;
    }
    Ok(ractor::call!(to, Message::Account, block(LAST, 0, size))?)
}

fn run(job: &Job) -> Measured {
    let runtime = runtime(job)?;
    if is_second() {
        return runtime.block_on(serve()).map(|()| Vec::new());
    }
    let size = match job.id {
        Id::X1 | Id::X2 => SMALL,
        Id::X3 => LARGE,
        _ => return Err(Error::Missing("this program has X1 to X3".to_owned()).into()),
    };
    let second = Second::start()?;
    let to = runtime.block_on(connect(&second))?;
    // A task of its own runs on a worker, as the actors do.
    match job.id {
        Id::X1 => round_trips(job, |count| {
            runtime.block_on(runtime.spawn(trips(to.clone(), count)))?
        }),
        _ => streams(job, |count| {
            runtime.block_on(runtime.spawn(stream(to.clone(), count, size)))?
        }),
    }
}

fn main() -> ExitCode {
    execute(run)
}
