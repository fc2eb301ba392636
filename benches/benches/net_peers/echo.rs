//! Servers that echo their input: a process, a task or a goroutine for each connection.

use crate::measure::{Failure, Peer};
use crate::{bare, idle};
use async_executor::Executor;
use async_io::Async;
use futures_util::io::{AsyncReadExt as _, AsyncWriteExt as _};
use ganger::net::Net;
use ganger::prelude::*;
use ganger::tokio::Tokio;
use std::future::pending;
use std::io::{self, Read};
use std::net::{self, TcpListener};
use std::sync::Arc;
use std::thread;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Builder;

/// Each connection has a buffer of this size, with every peer.
pub(crate) const BUFFER: usize = 128;

/// Runs a server that prints its port, and ends with its standard input.
pub(crate) fn serve(peer: Peer, workers: usize) -> Result<(), Failure> {
    idle::raise_limit();
    let listener = listen()?;
    match peer {
        Peer::GangerNet => {
            let scheduler = start(Scheduler::builder().driver(Net::new()?), workers)?;
            scheduler.spawn(async move |cx: Cx| on_net(cx, listener).await)?;
            until_end()
        }
        Peer::GangerTokio => {
            let scheduler = start(Scheduler::builder().driver(Tokio::new()?), workers)?;
            scheduler.spawn(async move |cx: Cx| on_ganger_tokio(cx, listener).await)?;
            until_end()
        }
        Peer::Tokio => {
            thread::spawn(move || on_tokio(listener, workers));
            until_end()
        }
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
            until_end()
        }
        Peer::Epoll => {
            bare::serve(listener, workers)?;
            until_end()
        }
        Peer::Go => Err("this is another program".into()),
    }
}

/// Listens at a port, and prints the port.
pub(crate) fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    listener.set_nonblocking(true)?;
    Ok(listener)
}

pub(crate) fn start(builder: ganger::Builder, workers: usize) -> Result<Scheduler, Failure> {
    let scheduler = builder.workers(workers).start()?;
    Ok(scheduler)
}

/// Until its standard input ends.
pub(crate) fn until_end() -> Result<(), Failure> {
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
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

async fn on_ganger_tokio(cx: Cx, listener: TcpListener) -> Result<(), Failure> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    while let Ok(accepted) = cx.until_cancelled(listener.accept()).await {
        let (stream, _) = accepted?;
        cx.spawn(async move |_: Cx| Ok(echo_by_tokio(stream).await?))?;
    }
    Ok(())
}

fn on_tokio(listener: TcpListener, workers: usize) -> io::Result<()> {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(workers).enable_io().build()?;
    runtime.block_on(async {
        // In a task, as the connections: the thread of `block_on` is no worker.
        let accepts = tokio::spawn(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            loop {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(echo_by_tokio(stream));
            }
        });
        accepts.await?
    })
}

async fn echo_by_tokio(mut stream: tokio::net::TcpStream) -> io::Result<()> {
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
