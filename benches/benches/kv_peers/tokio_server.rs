//! The example's server on tokio: the same parser, the same commands, and the same division of the
//! keys. A connection is a task, and a shard is behind a lock, as usual on tokio.

use crate::example::commands::{self, Route};
use crate::example::protocol::{Answer, Limits, Parser, Version};
use crate::example::store::Store;
use crate::server::on_tokio;
use ganger::time::Instant;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

struct Server {
    shards: Vec<Mutex<Store>>,
    hasher: RandomState,
    started: std::time::Instant,
}

/// Serves until the process ends, on threads of its own.
pub(crate) fn serve(listener: TcpListener, workers: usize, shards: usize) {
    let start = Instant::from_nanos(0);
    let shards = (0..shards).map(|_| Mutex::new(Store::new(start)));
    let server = Arc::new(Server {
        shards: shards.collect(),
        hasher: RandomState::new(),
        started: std::time::Instant::now(),
    });
    on_tokio(listener, workers, false, move |stream| {
        let server = Arc::clone(&server);
        async move { Ok(connection(stream, &server).await?) }
    });
}

async fn connection(mut stream: TcpStream, server: &Server) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut parser = Parser::new(Limits::default());
    let mut input = vec![0; 16 * 1024];
    let mut output = Vec::new();
    loop {
        let count = stream.read(&mut input).await?;
        if count == 0 {
            return Ok(());
        }
        parser.feed(&input[..count]);
        while let Some(mut request) = parser.next().map_err(io::Error::other)? {
            let name = request.remove(0);
            server
                .run(&name, &request)
                .encode(Version::Two, &mut output);
        }
        stream.write_all(&output).await?;
        output.clear();
    }
}

impl Server {
    fn run(&self, name: &[u8], args: &[bytes::Bytes]) -> Answer {
        match commands::find(name, args.len()) {
            Ok(Route::Key(operation) | Route::Long(operation)) => {
                let hash = self.hasher.hash_one(&args[0]);
                let shard = usize::try_from(hash % self.shards.len() as u64).unwrap_or(0);
                let nanos = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let shard = self.shards[shard].lock();
                let mut store = shard.unwrap_or_else(PoisonError::into_inner);
                store.at(Instant::from_nanos(nanos));
                let answered = operation(&mut store, args);
                drop(store.changes());
                answered.unwrap_or_else(|refused| Answer::Error(refused.to_string()))
            }
            Ok(Route::Here(commands::Own::Ping)) => Answer::Status("PONG"),
            // The first request of `redis-benchmark`.
            Ok(_) => Answer::List(Vec::new()),
            Err(error) => Answer::Error(error),
        }
    }
}
