//! Idle connections: the server's memory for each, and its activity meanwhile.

use crate::server::{Failure, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// The number of first connections: their traces in the allocator do not count.
const FIRST: usize = 100;

/// The descriptors of a process besides the connections'.
const OTHERS: usize = 100;

/// Bytes for each connection, beyond the kernel's; and for a second the milliseconds of processor
/// time, and switches of threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) bytes: f64,
    pub(crate) cpu: f64,
    pub(crate) switches: f64,
}

/// Lets the process have as many descriptors as it may. Returns how many; `None` without a limit.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum;
    // With fewer of them it fails later, and says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    getrlimit(Resource::Nofile).current
}

/// Checks that a process may have this many connections. The error names the remedy.
pub(crate) fn have_room_for(connections: usize) -> Result<(), String> {
    let needed = connections + FIRST + OTHERS;
    match raise_limit() {
        Some(limit) if limit < needed as u64 => Err(format!(
            "{connections} idle connections need {needed} descriptors in each of two processes, \
             and this user may have {limit}. They are left out. Either give `--idle {}`, or raise \
             the hard limit: as root, `ulimit -Hn {needed}` in the shell that starts this, or a \
             line `* hard nofile {needed}` in /etc/security/limits.conf and a new login.",
            usize::try_from(limit).map_or(0, |it| it.saturating_sub(FIRST + OTHERS)),
        )),
        _ => Ok(()),
    }
}

pub(crate) fn run(server: &Server, connections: usize, rest: Duration) -> Result<Figures, Failure> {
    let _first = connect(server.port, FIRST)?;
    let before = memory(server.process.id())?;
    let _idle = connect(server.port, connections)?;
    let bytes = memory(server.process.id())?.saturating_sub(before) as f64 / connections as f64;
    // The work after the last answer is done by then.
    thread::sleep(rest / 10);
    let before = activity(server.process.id())?;
    thread::sleep(rest);
    let after = activity(server.process.id())?;
    Ok(Figures {
        bytes,
        cpu: (after.0 - before.0) as f64 / 1e6 / rest.as_secs_f64(),
        switches: (after.1 - before.1) as f64 / rest.as_secs_f64(),
    })
}

/// Opens connections, and waits for an answer on each.
fn connect(port: u16, connections: usize) -> Result<Vec<TcpStream>, Failure> {
    let mut all = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(&[b'x'; 64])?;
        stream.read_exact(&mut [0; 64])?;
        all.push(stream);
    }
    Ok(all)
}

/// Returns the bytes of a process's own memory.
fn memory(process: u32) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let kib = field(&status, "RssAnon:").ok_or("the system does not say how much memory it is")?;
    Ok(kib * 1024)
}

/// Returns the nanoseconds that the threads of a process have run, and the number of their
/// switches.
pub(crate) fn activity(process: u32) -> Result<(u64, u64), Failure> {
    let (mut nanos, mut switches) = (0, 0);
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?.path();
        let times = fs::read_to_string(thread.join("schedstat"))?;
        nanos += times
            .split_whitespace()
            .next()
            .map_or(Ok(0), str::parse::<u64>)?;
        let status = fs::read_to_string(thread.join("status"))?;
        for kind in ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"] {
            switches += field(&status, kind).unwrap_or(0);
        }
    }
    Ok((nanos, switches))
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
