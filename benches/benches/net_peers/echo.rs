//! Servers that echo their input: a process, a task or a goroutine for each connection.

use crate::measure::Peer;
use crate::server::{Failure, listen, on_tokio, until_end};
use crate::{bare, idle};
use async_executor::Executor;
use async_io::Async;
use futures_util::io::{AsyncReadExt as _, AsyncWriteExt as _};
use ganger::net::Net;
use ganger::prelude::*;
use ganger::tokio::Tokio;
use std::future::pending;
use std::io;
use std::net::{self, TcpListener};
use std::sync::Arc;
use std::thread;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Each connection has a buffer of this size, with every peer.
pub(crate) const BUFFER: usize = 128;

/// Runs a server that prints its port, and ends with its standard input.
pub(crate) fn serve(peer: Peer, workers: usize) -> Result<(), Failure> {
    idle::raise_limit();
    let listener = listen()?;
    match peer {
        Peer::GangerNet => {
            let scheduler = Scheduler::builder().driver(Net::new()?).workers(workers);
            let scheduler = scheduler.start()?;
            scheduler.spawn(async move |cx: Cx| on_net(cx, listener).await)?;
            return until_end();
        }
        Peer::GangerTokio => return on_ganger_tokio(listener, workers, echo_by_tokio),
        Peer::Tokio => on_tokio(listener, workers, false, echo_by_tokio),
        Peer::AsyncIo => {
            let executor = Arc::new(Executor::new());
            let listener = Async::new(listener)?;
            let accepts = Arc::clone(&executor);
            executor
                .spawn(async move { on_async_io(&accepts, listener).await })
                .detach();
            for _ in 0..workers {
                let executor = Arc::clone(&executor);
                thread::spawn(move || async_io::block_on(executor.run(pending::<()>())));
            }
        }
        Peer::Epoll => bare::serve(listener, workers)?,
        Peer::Go => return Err("this is another program".into()),
    }
    until_end()
}

/// Serves each connection by a task of Ganger, with tokio's sockets.
pub(crate) fn on_ganger_tokio<F: Future<Output = Result<(), Failure>> + Send + 'static>(
    listener: TcpListener,
    workers: usize,
    each: fn(TcpStream) -> F,
) -> Result<(), Failure> {
    let scheduler = Scheduler::builder().driver(Tokio::new()?).workers(workers);
    let scheduler = scheduler.start()?;
    scheduler.spawn(async move |cx: Cx| {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        while let Ok(accepted) = cx.until_cancelled(listener.accept()).await {
            let (stream, _) = accepted?;
            cx.spawn(async move |_: Cx| each(stream).await)?;
        }
        Ok(())
    })?;
    until_end()
}

async fn on_net(cx: Cx, listener: TcpListener) -> Result<(), Failure> {
    let listener = ganger::net::TcpListener::from_std(listener)?;
    while let Ok(accepted) = cx.until_cancelled(listener.accept()).await {
        let (stream, _) = accepted?;
        stream.set_nodelay(true)?;
        cx.spawn(async move |_: Cx| {
            let mut buffer = [0; BUFFER];
            loop {
                match stream.read(&mut buffer).await? {
                    0 => return Ok(()),
                    length => stream.write_all(&buffer[..length]).await?,
                }
            }
        })?;
    }
    Ok(())
}

async fn echo_by_tokio(mut stream: TcpStream) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; BUFFER];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length]).await?,
        }
    }
}

async fn on_async_io(executor: &Executor<'_>, listener: Async<TcpListener>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        executor.spawn(echo_by_async_io(stream)).detach();
    }
}

async fn echo_by_async_io(mut stream: Async<net::TcpStream>) -> io::Result<()> {
    stream.get_ref().set_nodelay(true)?;
    let mut buffer = [0; BUFFER];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length]).await?,
        }
    }
}
