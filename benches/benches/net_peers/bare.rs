//! Echo without a scheduler: a number of threads, each with an epoll of its own. The threads get
//! connections in turns, and the connections stay open until the program ends.

use crate::echo::BUFFER;
use crate::server::Failure;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::thread;

/// The number of connections accepted in all.
const MOST: usize = 20_000;

type Streams = Arc<Vec<OnceLock<TcpStream>>>;

/// Starts the threads.
pub(crate) fn serve(listener: TcpListener, workers: usize) -> Result<(), Failure> {
    listener.set_nonblocking(false)?;
    let streams: Streams = Arc::new((0..MOST).map(|_| OnceLock::new()).collect());
    let epolls = (0..workers).map(|_| epoll::create(CreateFlags::CLOEXEC).map(Arc::new));
    let epolls: Vec<_> = epolls.collect::<Result<_, _>>()?;
    for epoll in &epolls {
        let (epoll, streams) = (Arc::clone(epoll), Arc::clone(&streams));
        thread::spawn(move || echo(&epoll, &streams));
    }
    thread::spawn(move || accept(&listener, &epolls, &streams));
    Ok(())
}

fn accept(
    listener: &TcpListener,
    epolls: &[Arc<OwnedFd>],
    streams: &Streams,
) -> Result<(), Failure> {
    for (index, place) in streams.iter().enumerate() {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let data = EventData::new_u64(index as u64);
        let stream = place.get_or_init(|| stream);
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&*epolls[index % epolls.len()], stream, data, flags)?;
    }
    Ok(())
}

/// Serves a connection that is ready to read: 64 bytes fit into each socket.
fn echo(epoll: &OwnedFd, streams: &Streams) -> Result<(), Failure> {
    let mut events = Vec::with_capacity(256);
    let mut buffer = [0; BUFFER];
    loop {
        events.clear();
        epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for &Event { data, .. } in &events {
            let stream = usize::try_from(data.u64()).map(|index| streams[index].get());
            if let Ok(Some(mut stream)) = stream
                && let Ok(length) = stream.read(&mut buffer)
            {
                // A departed client needs no answer.
                let _ = stream.write_all(&buffer[..length]);
            }
        }
    }
}
