//! Starts the tree of processes: the shards, and what accepts connections.

use super::connection;
use super::server::{Server, Settings};
use super::shard::{Batch, Shard};
use ganger::net::{TcpListener, TcpStream};
use ganger::prelude::*;
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
    let mut supervisor = Supervisor::one_for_one();
    for number in 0..settings.shards {
        // One that fails loses its keys, but not the requests that wait for it.
        supervisor = supervisor.with(Child::new(name(number), Shard::new).in_place());
    }
    let tree = supervisor.start(scheduler)?;
    let shards = (0..settings.shards).map(|it| tree.address::<Batch>(&name(it)));
    let shards = shards.collect::<Result<_, _>>()?;
    let server = Arc::new(Server::new(scheduler, settings, shards));

    let socket = net::TcpListener::bind(address)?;
    let address = socket.local_addr()?;
    // It stops first, and waits for the connections then, which need the shards.
    let accepts = Child::new("listener", move || {
        let (socket, server) = (socket.try_clone(), Arc::clone(&server));
        process(async move |cx: Cx| accept(cx, TcpListener::from_std(socket?)?, server).await)
    });
    tree.start_child(accepts).wait()?;
    Ok((tree, address))
}

/// Accepts connections, each of which is a process.
async fn accept(cx: Cx, listener: TcpListener, server: Arc<Server>) -> Result<(), BoxError> {
    while let Ok(accepted) = cx.until_cancelled(listener.accept()).await {
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, for example: others may be closed in the meantime.
            cx.sleep(Duration::from_millis(50)).await?;
            continue;
        };
        let server = Arc::clone(&server);
        cx.context()
            .spawn_task(async move |cx| connection(cx, stream, server).await)?;
    }
    drop(listener);
    cx.shield(server.connections.wait()).await;
    Ok(())
}

async fn connection(
    cx: Cx<super::server::Publication>,
    mut stream: TcpStream,
    server: Arc<Server>,
) -> Result<(), BoxError> {
    let _ended = Arc::clone(&server.connections).enter();
    match server.enter() {
        Some(_place) => {
            let _ = stream.set_nodelay(true);
            // That a client has gone, or is too slow, is no failure of the server.
            let _: io::Result<()> = connection::serve(cx, stream, server).await;
        }
        None => connection::turn_away(&mut stream).await,
    }
    Ok(())
}
