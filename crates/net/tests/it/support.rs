//! Schedulers with a network.

use ganger_net::Net;
use ganger_proc_api::{BoxError, ExitReason, Payload};
use ganger_sched::{ProcessHandle, Scheduler};
use ganger_time::Timers;
use std::io::{self, Read};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for something that is bound to happen before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn start(workers: usize) -> (Scheduler, Net) {
    start_with(workers, Net::new().unwrap())
}

pub(crate) fn start_with(workers: usize, net: Net) -> (Scheduler, Net) {
    let builder = Timers::add_to(Scheduler::builder().workers(workers));
    let scheduler = builder.driver(net.clone()).build().unwrap();
    scheduler.start().unwrap();
    (scheduler, net)
}

/// The result of a process, which has to come in time.
pub(crate) fn result<M: ?Sized>(handle: ProcessHandle<M>) -> Payload {
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

/// Its sum, where all are numbers.
pub(crate) fn sum(handles: impl IntoIterator<Item = ProcessHandle>) -> u64 {
    let numbers = handles.into_iter().map(|it| result(it).as_u64().unwrap());
    numbers.sum()
}

pub(crate) fn ok<T>(value: T) -> Result<T, BoxError> {
    Ok(value)
}

/// Reads, and goes on when a signal of another test comes.
pub(crate) fn read_some(mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
