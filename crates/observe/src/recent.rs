//! The last events of a process.
//!
//! **Problem.** A process behaves oddly, and the question is what it has done of late. A trace
//! answers for all processes at once, in a file of many megabytes and for another program.
//!
//! **Protocol.** Each copied ring is read from its end, until enough events of the process are
//! found. These are put into the order of their times, and the last of them become sentences.

use crate::observer::Observer;
use crate::recording::NotRecording;
use ganger_proc_api::Pid;
use ganger_ring::event::Event;
use ganger_sched::Recording;
use std::sync::Arc;
use std::time::Duration;

/// The most events of an answer.
pub(crate) const MOST: usize = 1_000;

/// An event of a process: see [`Observer::events`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recent {
    /// When, since the scheduler's start.
    pub at: Duration,
    /// The recording thread: `worker 0`.
    pub thread: Arc<str>,
    /// The act of the process: `takes`, `turn begins`, `is spawned`.
    pub what: &'static str,
    /// The rest of the sentence: types, methods, commands and other processes. No payloads.
    pub text: String,
}

impl Observer {
    /// Returns the last events of a process, the oldest first: its turns, messages and commands,
    /// and what has woken it, as far as the recorder goes back. The process may have ended. At most
    /// `n`, and 1,000.
    ///
    /// No worker waits for it. O(bytes of the recorder), on this thread.
    ///
    /// ```
    /// use ganger_observe::Observer;
    /// use ganger_proc_api::actor_fn;
    /// use ganger_sched::{Recorder, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().record(Recorder::new().bytes(1 << 20)).start()?;
    /// let double = scheduler.spawn(actor_fn(|_, number: u64, out| Ok(out.done(2 * number))))?;
    /// let pid = double.pid();
    /// double.send(21)?;
    /// assert!(double.wait().is_done());
    ///
    /// for event in Observer::of(&scheduler).events(pid, 20)? {
    ///     println!("{:?} {} {}", event.at, event.what, event.text);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`NotRecording`], where the scheduler was built without a recorder.
    pub fn events(&self, pid: Pid, n: usize) -> Result<Vec<Recent>, NotRecording> {
        let recording = self.handle().whole_recording().ok_or(NotRecording)?;
        if !self.handle().is_local(pid) {
            return Ok(Vec::new());
        }
        Ok(last(recording, pid.id(), n.min(MOST)))
    }
}

fn last(mut recording: Recording, process: u64, n: usize) -> Vec<Recent> {
    let mut found = Vec::new();
    for (thread, ring) in recording.take_threads() {
        let thread: Arc<str> = thread.into();
        let records = ring.records.into_iter().rev();
        let of_it = records.filter(|it| it[2] == process || it[3] == process);
        let events = of_it.filter_map(|it| Event::read(it).ok());
        let events = events.filter(|(_, event)| concerns(event, process));
        found.extend(events.take(n).map(|it| (it, Arc::clone(&thread))));
    }
    // Within a ring the newest is the first: so it is among events of the same time.
    found.sort_by_key(|((at, _), _)| std::cmp::Reverse(*at));
    found.truncate(n);
    let texts = Texts {
        recording: &recording,
        process,
    };
    let recent = found.into_iter().rev().filter_map(|((at, event), thread)| {
        let (what, text) = texts.of(event)?;
        Some(Recent {
            at: Duration::from_nanos(at),
            thread,
            what,
            text,
        })
    });
    recent.collect()
}

/// Returns whether the process does something in the event, or something is done to it.
fn concerns(event: &Event, id: u64) -> bool {
    match *event {
        Event::TurnBegins { process, .. }
        | Event::TurnEnds { process, .. }
        | Event::Taken { process, .. }
        | Event::Yielded { process, .. }
        | Event::Completed { process, .. }
        | Event::TimerFired { process, .. }
        | Event::Ended { process, .. }
        | Event::Alarm { process, .. }
        | Event::Mark { process, .. } => process == id,
        Event::Woken { process, by, .. } => process == id || by == id,
        Event::Sent { to, from, .. } => to == id || from == id,
        Event::Spawned {
            process, parent, ..
        } => process == id || parent == id,
        Event::Parked
        | Event::Unparked
        | Event::Stole { .. }
        | Event::Spare { .. }
        | Event::Queue { .. } => false,
    }
}

struct Texts<'a> {
    recording: &'a Recording,
    process: u64,
}

impl Texts<'_> {
    /// Names the act of the process, and describes the rest of the event.
    fn of(&self, event: Event) -> Option<(&'static str, String)> {
        Some(match event {
            Event::TurnBegins { name, pick, .. } => {
                let name = self.name(name, "its step");
                ("turn begins", format!("{name}, from: {}", pick.text()))
            }
            Event::TurnEnds { after, steps, .. } => {
                ("turn ends", format!("{steps} steps, {}", after.text()))
            }
            Event::Woken { process, by, cause } if process == self.process => {
                let by = self.by(by);
                ("is woken", format!("{}{by}", cause.text()))
            }
            Event::Woken { process, cause, .. } => {
                let other = self.pid(process);
                ("wakes", format!("{other}: {}", cause.text()))
            }
            Event::Sent {
                to, from, message, ..
            } if to == self.process => {
                let message = self.name(message, "a message");
                ("is sent", format!("{message}{}", self.by(from)))
            }
            Event::Sent { to, message, .. } => {
                let message = self.name(message, "a message");
                ("sends", format!("{message} to {}", self.pid(to)))
            }
            Event::Taken { message, .. } => ("takes", self.name(message, "a message")),
            Event::Yielded { command, .. } => ("waits for", self.name(command, "a command")),
            Event::Completed { command, .. } => ("is answered", self.name(command, "a command")),
            Event::TimerFired { late, .. } => (
                "timer fires",
                format!("{:?} late", Duration::from_nanos(late)),
            ),
            Event::Spawned {
                process,
                parent,
                name,
            } if process == self.process => {
                let name = self.name(name, "a process");
                ("is spawned", format!("{name}{}", self.by(parent)))
            }
            Event::Spawned { process, name, .. } => {
                let name = self.name(name, "a process");
                ("spawns", format!("{name}, {}", self.pid(process)))
            }
            Event::Ended { end, .. } => ("ends", end.text().to_owned()),
            Event::Alarm { name, value, .. } => {
                ("alarm", format!("{}: {value}", self.name(name, "an alarm")))
            }
            Event::Mark { name, value, .. } => {
                ("mark", format!("{}: {value}", self.name(name, "a mark")))
            }
            _ => return None,
        })
    }

    fn name(&self, number: u32, without: &str) -> String {
        let name = self.recording.name(number);
        name.unwrap_or_else(|| without.to_owned())
    }

    fn pid(&self, process: u64) -> String {
        format!("{{{}|{process}}}", self.recording.scheduler())
    }

    fn by(&self, process: u64) -> String {
        match process {
            0 => String::new(),
            process => format!(", by {}", self.pid(process)),
        }
    }
}
