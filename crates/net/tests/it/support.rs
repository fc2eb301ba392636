//! Schedulers with a network, and connections.

use ganger_net::{Net, TcpListener, TcpStream};
use ganger_proc_api::{BoxError, ExitReason, Payload};
use ganger_sched::{ProcessHandle, Scheduler};
use ganger_task::Cx;
use std::io::{self, ErrorKind, Read};
use std::net::{self, Shutdown, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait of a test for an event: then the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn start(workers: usize) -> (Scheduler, Net) {
    start_with(workers, Net::new().unwrap())
}

pub(crate) fn start_with(workers: usize, net: Net) -> (Scheduler, Net) {
    let builder = Scheduler::builder().workers(workers);
    let scheduler = builder.driver(net.clone()).build().unwrap();
    scheduler.start().unwrap();
    (scheduler, net)
}

/// Returns the result of a process, which must come in time.
pub(crate) fn result<M>(handle: ProcessHandle<M>) -> Payload {
    match handle.wait_timeout(PATIENCE) {
        Ok(ExitReason::Done(result)) => result,
        Ok(reason) => panic!("{reason}"),
        Err(_) => panic!("a process does not end"),
    }
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        thread::yield_now();
    }
}

/// Returns the sum of numbers.
pub(crate) fn sum(handles: impl IntoIterator<Item = ProcessHandle>) -> u64 {
    let numbers = handles.into_iter().map(|it| result(it).as_u64().unwrap());
    numbers.sum()
}

pub(crate) fn ok<T>(value: T) -> Result<T, BoxError> {
    Ok(value)
}

/// Reads, and ignores the signals of other tests.
pub(crate) fn read_some(mut stream: &net::TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Opens a blocking connection to an address, whose reads end in time.
pub(crate) fn connect(address: SocketAddr) -> net::TcpStream {
    let client = net::TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

/// Connects a blocking side and a side that is not in a network yet.
pub(crate) fn connected() -> (net::TcpStream, net::TcpStream) {
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = connect(listener.local_addr().unwrap());
    (client, listener.accept().unwrap().0)
}

/// Connects both sides.
pub(crate) async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?).await?;
    let (server, _) = listener.accept().await?;
    Ok((client, server))
}

/// Ends the waits of a side by its shutdown, while the side writes more bytes than fit.
pub(crate) async fn shutdowns_end_waits(
    cx: &Cx,
    client: &TcpStream,
    more: &[u8],
) -> Result<(), BoxError> {
    let mut byte = [0];
    let ends = |how| async move { client.shutdown(how) };
    let (read, end) = cx
        .join((client.read(&mut byte), ends(Shutdown::Read)))
        .await;
    end?;
    assert_eq!(read?, 0);
    let (written, end) = cx
        .join((client.write_all(more), ends(Shutdown::Write)))
        .await;
    end?;
    assert_eq!(written.unwrap_err().kind(), ErrorKind::BrokenPipe);
    Ok(())
}
