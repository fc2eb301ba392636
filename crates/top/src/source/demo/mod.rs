//! A program of the imagination, without an endpoint: a shop with a full set of faults.
//!
//! All answers are functions of the time since its start. So a test chooses the moment.

mod crowd;
mod filter;
mod head;
mod recording;
mod views;

use super::Source;
use crate::fault::Fault;
use crowd::Member;
use ganger_observe::api::{
    Acted, Groups, Letters, Nodes, Process, Processes, ProcessesQuery, Snapshot, Sockets,
    SocketsQuery, Tree, VERSION, Waits,
};
use std::cmp::Reverse;
use std::io::Write;
use std::time::{Duration, Instant};

/// A shop with orders, a store behind `sql`, a mailbox that grows, a step that does not end, a
/// process that wakes itself, a child that crashes every seven seconds, and a deadlock.
///
/// ```
/// use ganger_observe::api::ProcessesQuery;
/// use ganger_top::{Demo, Source as _};
///
/// let shop = Demo::new();
/// assert_eq!(shop.processes(&ProcessesQuery::default())?.processes[0].names, ["mailer"]);
/// # Ok::<(), ganger_top::Fault>(())
/// ```
pub struct Demo {
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl Demo {
    /// Creates a shop, open for a minute.
    #[must_use]
    pub fn new() -> Self {
        let start = Instant::now();
        Self::by(move || Duration::from_mins(1) + start.elapsed())
    }

    /// Creates a shop whose clock says for how long it has been open.
    pub fn by(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        let clock = Box::new(clock);
        Self { clock }
    }

    fn now(&self) -> f64 {
        (self.clock)().as_secs_f64()
    }
}

impl Default for Demo {
    fn default() -> Self {
        Self::new()
    }
}

impl Source for Demo {
    fn name(&self) -> String {
        "demo".to_owned()
    }

    fn snapshot(&self) -> Result<Snapshot, Fault> {
        Ok(head::snapshot(self.now()))
    }

    fn processes(&self, query: &ProcessesQuery) -> Result<Processes, Fault> {
        let is_asked = |it: &Member| query.scheduler.is_none_or(|asked| asked == it.scheduler);
        let all = crowd::all(self.now()).into_iter().filter(is_asked);
        let all: Vec<_> = all.map(|it| it.process).collect();
        let live = all.len() as u64;
        let mut found = all;
        found.retain(|it| filter::passes(&query.filter, it));
        let matched = found.len() as u64;
        found.sort_by_key(|it| Reverse(crowd::value(it, query.by)));
        found.truncate(query.top as usize);
        Ok(Processes {
            version: VERSION,
            live,
            matched,
            processes: found,
        })
    }

    fn process(&self, scheduler: u64, pid: &str) -> Result<Processes, Fault> {
        let all = crowd::all(self.now()).into_iter().map(|it| it.process);
        let is_it = |it: &Process| it.scheduler == scheduler && it.pid == pid;
        let processes: Vec<_> = all.filter(is_it).map(crowd::with_links).collect();
        if processes.is_empty() {
            return Err(Fault::NotHere("no live process has that PID".to_owned()));
        }
        Ok(Processes {
            version: VERSION,
            live: 1,
            matched: 1,
            processes,
        })
    }

    fn groups(&self) -> Result<Groups, Fault> {
        Ok(views::groups(&crowd::all(self.now())))
    }

    fn tree(&self) -> Result<Tree, Fault> {
        Ok(views::tree(&crowd::all(self.now())))
    }

    fn waits(&self) -> Result<Waits, Fault> {
        Ok(views::waits(self.now()))
    }

    fn sockets(&self, query: &SocketsQuery) -> Result<Sockets, Fault> {
        Ok(views::sockets(self.now(), query))
    }

    fn nodes(&self) -> Result<Nodes, Fault> {
        Ok(views::nodes(self.now()))
    }

    fn letters(&self) -> Result<Letters, Fault> {
        Ok(views::letters(self.now()))
    }

    /// Refuses: the demo only reads.
    fn act(&self, _: &str, _: u64, _: &str) -> Result<Acted, Fault> {
        Err(Fault::NotHere("the demo only reads".to_owned()))
    }

    fn trace(&self, time: Duration, to: &mut dyn Write) -> Result<(), Fault> {
        recording::write((self.clock)(), time, to).map_err(Fault::File)
    }
}
