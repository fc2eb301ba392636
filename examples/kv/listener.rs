//! Starts the tree of processes: the shards, and the process that accepts connections.

use super::connection;
use super::server::{Server, Settings};
use super::shard::{Keys, Shard, Work};
use ganger::net::{Keepalive, TcpListener, TcpStream};
use ganger::prelude::*;
use ganger::supervise::TreeHandle;
use ganger::task::process;
use std::io;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Starts a server, and returns its processes, and where it listens.
pub(crate) fn start(
    scheduler: &Handle,
    address: SocketAddr,
    settings: Settings,
) -> Result<(TreeHandle, SocketAddr), BoxError> {
    let name = |number| format!("shard {number}");
    let keys: Vec<_> = (0..settings.shards).map(|_| Keys::new()).collect();
    let mut supervisor = Supervisor::one_for_one();
    for (number, keys) in keys.iter().cloned().enumerate() {
        // A shard that fails loses its keys, but not the requests that wait for it.
        let shard = ChildSpec::new(name(number), move || Shard::new(&keys));
        supervisor = supervisor.with(shard.in_place());
    }
    let tree = supervisor.start(scheduler)?;
    let shards = (0..settings.shards).map(|it| tree.address::<Work>(&name(it)));
    let shards = shards.collect::<Result<_, _>>()?;
    let server = Arc::new(Server::new(scheduler, settings, shards, keys));

    let socket = listen(scheduler, address)?;
    let address = socket.local_addr()?;
    let idle = Arc::clone(&server);
    let memory = ChildSpec::new("memory", move || {
        let server = Arc::clone(&idle);
        process(async move |cx: Cx| give_back(cx, server).await)
    });
    tree.start_child(memory).wait()?;
    // The listener stops first, and then waits for the connections, which need the shards.
    let accepts = ChildSpec::new("listener", move || {
        let (socket, server) = (socket.try_clone(), Arc::clone(&server));
        process(async move |cx: Cx| accept(cx, TcpListener::from_std(socket?)?, server).await)
    });
    tree.start_child(accepts).wait()?;
    Ok((tree, address))
}

/// Listens, with room for many clients to be accepted.
fn listen(scheduler: &Handle, address: SocketAddr) -> Result<net::TcpListener, BoxError> {
    let listens = scheduler.spawn(async move |_: Cx| {
        let listener = TcpListener::bind(address)?;
        // The socket outlives the process that accepts, which may be started again.
        Ok(net::TcpListener::from(listener.descriptor()?))
    })?;
    listens.wait().take()
}

/// How long no command comes until the server gives memory back.
const IDLE: Duration = Duration::from_secs(10);

/// Releases the memory that the scheduler and the allocator keep of a burst, when it is over.
async fn give_back(cx: Cx, server: Arc<Server>) -> Result<(), BoxError> {
    let (mut before, mut given_back) = (0, 0);
    while cx.sleep(IDLE).await.is_ok() {
        let commands = server.commands();
        if commands == before && commands != given_back {
            given_back = commands;
            server.release_memory();
        }
        before = commands;
    }
    Ok(())
}

/// The most connections beyond the limit that are accepted at a time, to be turned away.
const TO_TURN_AWAY: usize = 64;

/// Accepts connections; each is a process.
async fn accept(cx: Cx, listener: TcpListener, server: Arc<Server>) -> Result<(), BoxError> {
    let most = server.settings.clients.saturating_add(TO_TURN_AWAY);
    let incoming = listener.incoming(most);
    while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
        let ((stream, _), server) = (accepted?, Arc::clone(&server));
        cx.spawn(async move |cx| connection(cx, stream, server).await)?;
    }
    cx.shield(incoming.drain()).await;
    Ok(())
}

async fn connection(
    cx: Cx<super::server::Publication>,
    mut stream: TcpStream,
    server: Arc<Server>,
) -> Result<(), BoxError> {
    match server.enter() {
        Some(_place) => {
            // A connection whose client has vanished ends. A connection that has ended takes no
            // setting.
            let _ = stream.set_keepalive(Some(Keepalive::default()));
            let _ = stream.set_nodelay(true);
            // A client that has gone, or is too slow, is no failure of the server.
            let _: io::Result<()> = connection::serve(cx, stream, server).await;
        }
        None => connection::turn_away(&mut stream).await,
    }
    Ok(())
}
