//! X1 to X3 by ractor_cluster: two node servers, whose connection has no encryption. The receiver
//! is a member of a process group, and so known to the other node. A round trip is a call, a
//! message of a stream a cast.

use ganger_remote_common::{
    BoxError, LAST, PATIENCE, RECEIVER, Remote, Tally, block, execute, run, tell_place,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call_t, pg};
use ractor_cluster::{NodeServer, NodeServerMessage, RactorClusterMessage, client_connect};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::time::sleep;

#[derive(RactorClusterMessage)]
enum Message {
    /// A block, which goes back.
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
    // A node does not tell its port if the system chooses it.
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

/// The receiver of the second program.
#[derive(Clone)]
struct To(ActorRef<Message>);

impl Remote for To {
    async fn serve() -> Result<(), BoxError> {
        let (_node, port) = node("beta").await?;
        let (receiver, _) = Actor::spawn(None, Receiver, ()).await?;
        pg::join(RECEIVER.to_owned(), vec![receiver.get_cell()]);
        tell_place(&port.to_string()).await
    }

    /// Connects to the second node, and waits for its receiver.
    async fn connect(place: &str) -> Result<Self, BoxError> {
        let (node, _) = node("alpha").await?;
        let port = place.parse()?;
        client_connect(&node, (Ipv4Addr::LOCALHOST, port)).await?;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(receiver) = pg::get_members(&RECEIVER.to_owned()).pop() {
                return Ok(Self(receiver.into()));
            }
            sleep(Duration::from_millis(1)).await;
        }
        Err("the second node does not come".into())
    }

    async fn ask(&self, block: Vec<u8>) -> Result<Vec<u8>, BoxError> {
        let patience = u64::try_from(PATIENCE.as_millis())?;
        Ok(call_t!(self.0, Message::Ask, patience, block)?)
    }

    async fn stream(&self, count: u64, size: usize) -> Result<u64, BoxError> {
        for number in 0..count {
            self.0.cast(Message::Tell(block(number, 0, size)))?;
        }
        Ok(ractor::call!(
            self.0,
            Message::Account,
            block(LAST, 0, size)
        )?)
    }
}

fn main() -> ExitCode {
    execute(run::<To>)
}
