//! The account of sends, receipts, monitors and notices, in all lives of all machines.

use ganger_cluster::{End, NodeChange};
use ganger_proc_api::{ExitCause, Pid, Tag};
use std::collections::BTreeMap;

/// A life of a machine: its name, and how many there were before.
pub(crate) type Life = (&'static str, u32);

/// Messages from a life of a machine to a process, in the order of their numbers.
struct Stream {
    from: Life,
    to: Life,
    target: Pid,
    /// How many were accepted.
    sent: u64,
    /// The number of the last that has come.
    received: u64,
    /// How often some are missing before another.
    gaps: usize,
}

struct Monitor {
    by: Life,
    of: Pid,
    told: Vec<ExitCause>,
}

#[derive(Default)]
pub(crate) struct Account {
    streams: Vec<Stream>,
    by_key: BTreeMap<(Life, Pid), usize>,
    monitors: Vec<Monitor>,
    /// How many sessions of a life with a machine have ended, or have not come up.
    downs: BTreeMap<(Life, String), usize>,
    /// Processes that have ended, or were lost with their machine.
    gone: Vec<Pid>,
    /// The faults seen so far.
    wrong: Vec<String>,
}

impl Account {
    /// Returns the text of the next message, if it is accepted.
    pub(crate) fn next(&mut self, from: Life, to: Life, target: Pid) -> u64 {
        let number = self.streams.len();
        let place = *self.by_key.entry((from, target)).or_insert(number);
        if place == number {
            self.streams.push(Stream {
                from,
                to,
                target,
                sent: 0,
                received: 0,
                gaps: 0,
            });
        }
        (place as u64) << 32 | (self.streams[place].sent + 1)
    }

    pub(crate) fn accepted(&mut self, message: u64) {
        let (place, number) = parts(message);
        self.streams[place].sent = number;
    }

    pub(crate) fn received(&mut self, by: Pid, message: u64) {
        let (place, number) = parts(message);
        let stream = &mut self.streams[place];
        let (from, target) = (stream.from, stream.target);
        if by != target {
            let what = format!("{by} has a message of {from:?} for {target}");
            self.wrong.push(what);
            return;
        }
        if number <= stream.received {
            let last = stream.received;
            let what = format!("{target} has {number} of {from:?} after {last}");
            self.wrong.push(what);
        }
        stream.gaps += usize::from(number > stream.received + 1);
        stream.received = number;
    }

    pub(crate) fn monitors(&mut self, by: Life, of: Pid) -> Tag {
        let told = Vec::new();
        self.monitors.push(Monitor { by, of, told });
        self.monitors.len() as Tag
    }

    pub(crate) fn told(&mut self, tag: Tag, of: Pid, cause: ExitCause) {
        let place = usize::try_from(tag).unwrap() - 1;
        let monitor = &mut self.monitors[place];
        monitor.told.push(cause);
        if of != monitor.of || monitor.told.len() > 1 {
            let (by, told) = (monitor.by, &monitor.told);
            let what = format!("{by:?} is told of {of}: {told:?}");
            self.wrong.push(what);
        }
    }

    pub(crate) fn changed(&mut self, at: Life, change: &NodeChange) {
        let (node, why) = match change {
            NodeChange::Down { node, why, .. } | NodeChange::Unreachable { node, why, .. } => {
                (node, why)
            }
            _ => return,
        };
        let is_usual = matches!(
            why,
            End::Newer
                | End::Restarted
                | End::Reset
                | End::Bye
                | End::Silence
                | End::NoProgress
                | End::Vanished
                | End::Unreachable
        );
        if !is_usual {
            self.wrong.push(format!("{at:?}: {change:?}"));
        }
        *self.downs.entry((at, node.to_string())).or_default() += 1;
    }

    pub(crate) fn is_gone(&mut self, pid: Pid) {
        self.gone.push(pid);
    }

    /// Returns the first violation so far.
    pub(crate) fn wrong(&self) -> Option<&String> {
        self.wrong.first()
    }

    /// Returns what is wrong once all is quiet and whole, with these lives of the machines.
    pub(crate) fn wrong_at_end(&self, lives: &[Life]) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        let downs = |from: Life, to: Life| {
            let count = self.downs.get(&(from, to.0.to_owned()));
            count.copied().unwrap_or_default()
        };
        for stream in self.streams.iter().filter(|it| lives.contains(&it.from)) {
            let Stream {
                from,
                to,
                target,
                sent,
                received,
                gaps,
            } = stream;
            let downs = downs(*from, *to);
            let is_lost = !self.gone.contains(target) && received < sent;
            if gaps + usize::from(is_lost) > downs {
                wrong.push(format!(
                    "{from:?} has sent {sent} to {target}, which has {received} with {gaps} gaps, \
                     and {downs} sessions have ended"
                ));
            }
        }
        for monitor in self.monitors.iter().filter(|it| lives.contains(&it.by)) {
            let Monitor { by, of, told } = monitor;
            if self.gone.contains(of) && told.is_empty() {
                wrong.push(format!("{by:?} was not told that {of} is gone"));
            }
        }
        wrong
    }

    /// Returns how many sessions have ended.
    pub(crate) fn downs(&self) -> usize {
        self.downs.values().sum()
    }

    /// Returns the numbers of messages, gaps and notices that have come: a run without any proves
    /// nothing.
    pub(crate) fn counts(&self) -> [usize; 3] {
        let received = self.streams.iter().map(|it| it.received).sum::<u64>();
        let gaps = self.streams.iter().map(|it| it.gaps).sum();
        let told = self.monitors.iter().map(|it| it.told.len()).sum();
        [usize::try_from(received).unwrap(), gaps, told]
    }
}

fn parts(message: u64) -> (usize, u64) {
    let place = usize::try_from(message >> 32).unwrap();
    (place, message & u64::from(u32::MAX))
}
