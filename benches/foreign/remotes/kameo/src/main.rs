//! X1 to X3 by kameo's remote, over TCP, Noise and yamux as `remote::bootstrap` has them, so the
//! connection is encrypted. A round trip is an `ask`.
//!
//! Each message is a request on a stream of its own within the connection. A `tell` without an
//! acknowledgement is dropped when too many are under way, and none of them keeps its place. So the
//! messages of X2 and X3 are acknowledged, with as many under way as the default allows, and come
//! in any order.

use futures_util::{StreamExt, stream};
use ganger_remote_common::{BoxError, PATIENCE, RECEIVER, Remote, block, execute, run, tell_place};
use kameo::actor::{RemoteActorRef, Spawn};
use kameo::message::{Context, Message};
use kameo::remote::{self, messaging};
use kameo::{Actor, RemoteActor, Reply, remote_message};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{Swarm, SwarmEvent};
use libp2p::{Multiaddr, SwarmBuilder, noise, tcp, yamux};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::time::Instant;
use tokio::time::timeout;

/// Messages under way: the default of `with_max_concurrent_streams`.
const UNDER_WAY: usize = 100;

#[derive(Debug, Serialize, Deserialize, Reply)]
struct Block(#[serde(with = "serde_bytes")] Vec<u8>);

/// A block of a stream.
#[derive(Debug, Serialize, Deserialize)]
struct Streamed(Block);

/// The end of a stream.
#[derive(Debug, Serialize, Deserialize)]
struct Account;

/// The numbers of a stream, and whether each has come.
#[derive(Default, Actor, RemoteActor)]
struct Receiver {
    has_come: Vec<bool>,
    is_wrong: bool,
}

#[remote_message]
impl Message<Block> for Receiver {
    type Reply = Block;

    async fn handle(&mut self, block: Block, _: &mut Context<Self, Block>) -> Block {
        block
    }
}

#[remote_message]
impl Message<Streamed> for Receiver {
    type Reply = ();

    async fn handle(&mut self, streamed: Streamed, _: &mut Context<Self, ()>) {
        let number = streamed.0.0.first_chunk().copied();
        let number = number.and_then(|bytes| usize::try_from(u64::from_le_bytes(bytes)).ok());
        let Some(number) = number else {
            self.is_wrong = true;
            return;
        };
        if self.has_come.len() <= number {
            self.has_come.resize(number + 1, false);
        }
        self.is_wrong |= std::mem::replace(&mut self.has_come[number], true);
    }
}

#[remote_message]
impl Message<Account> for Receiver {
    type Reply = u64;

    /// Returns how many messages have come, each once; 0 if a message is missing or has come twice.
    async fn handle(&mut self, _: Account, _: &mut Context<Self, u64>) -> u64 {
        let all = std::mem::take(self);
        let is_right = !all.is_wrong && all.has_come.iter().all(|has_come| *has_come);
        if is_right {
            all.has_come.len() as u64
        } else {
            0
        }
    }
}

/// Makes a node that listens, and returns its address once it is known.
async fn node() -> Result<(Swarm<remote::Behaviour>, Multiaddr), BoxError> {
    let mut swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_tcp(
            tcp::Config::default(),
            noise::Config::new,
            yamux::Config::default,
        )?
        .with_behaviour(|key| {
            let id = key.public().to_peer_id();
            remote::Behaviour::new(id, messaging::Config::default())
        })?
        .with_swarm_config(|config| config.with_idle_connection_timeout(PATIENCE))
        .build();
    swarm.behaviour().try_init_global()?;
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse()?)?;
    loop {
        if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
            let id = *swarm.local_peer_id();
            return Ok((swarm, address.with(Protocol::P2p(id))));
        }
    }
}

/// Runs a node for as long as the program.
fn go_on(mut swarm: Swarm<remote::Behaviour>) {
    tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
        }
    });
}

/// The receiver of the second program.
#[derive(Clone)]
struct To(RemoteActorRef<Receiver>);

impl Remote for To {
    async fn serve() -> Result<(), BoxError> {
        let (swarm, address) = node().await?;
        go_on(swarm);
        let receiver = Receiver::spawn(Receiver::default());
        receiver.register(RECEIVER).await?;
        tell_place(&address.to_string()).await
    }

    /// Connects to the second node, and looks its receiver up.
    async fn connect(place: &str) -> Result<Self, BoxError> {
        let (mut swarm, _) = node().await?;
        let address: Multiaddr = place.parse()?;
        let Some(Protocol::P2p(id)) = address.iter().last() else {
            return Err("the second program's address has no name".into());
        };
        swarm.add_peer_address(id, address.clone());
        swarm.dial(address)?;
        loop {
            match swarm.select_next_some().await {
                SwarmEvent::ConnectionEstablished { .. } => break,
                SwarmEvent::OutgoingConnectionError { error, .. } => return Err(error.into()),
                _ => {}
            }
        }
        go_on(swarm);
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let found = timeout(PATIENCE, RemoteActorRef::lookup(RECEIVER)).await??;
            if let Some(receiver) = found {
                return Ok(Self(receiver));
            }
        }
        Err("the receiver of the second program is not found".into())
    }

    async fn ask(&self, block: Vec<u8>) -> Result<Vec<u8>, BoxError> {
        Ok(self.0.ask(&Block(block)).await?.0)
    }

    async fn stream(&self, count: u64, size: usize) -> Result<u64, BoxError> {
        let to = &self.0;
        let send = |number| async move {
            let message = Streamed(Block(block(number, 0, size)));
            to.tell(&message).send_ack().await
        };
        let mut acknowledged = stream::iter(0..count).map(send).buffer_unordered(UNDER_WAY);
        while let Some(result) = acknowledged.next().await {
            result?;
        }
        Ok(to.ask(&Account).await?)
    }
}

fn main() -> ExitCode {
    execute(run::<To>)
}
