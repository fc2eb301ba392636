//! From copies of rings to a time line.
//!
//! 1. All events are sorted by their time. Within a ring time does not go back; at the same time
//!    the first ring comes first.
//! 2. The window begins where every ring is complete. Earlier events tell names, and the turns
//!    underway at its begin.
//! 3. Each event of the window draws entries on the track of its thread, and changes the life of
//!    its process (`life.rs`).
//! 4. The window's end closes all slices.

use super::events::{Events, Stamped, Thread};
use super::life::Life;
use super::line::{BEGAN_EARLIER, GOES_ON, Line};
use super::model::{Argument, Category, Key, Name, Shows, Trace, Value};
use super::texts::Texts;
use foldhash::{HashMap, HashSet};
use ganger_ring::event::{After, Event, Pick};
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) fn trace(
    scheduler: &str,
    window: Range<u64>,
    threads: Vec<Thread>,
    names: impl FnMut(u32) -> Option<String>,
) -> Trace {
    let mut line = Line::new();
    let track = |thread: &Thread| {
        let name = line.names.add(&thread.name);
        OnThread {
            track: line.track(name, Shows::Thread),
            slice: None,
            is_fresh: true,
        }
    };
    let on_threads = threads.iter().map(track).collect();
    let Events {
        events,
        complete_from,
        lost,
        unknown,
    } = Events::of(threads, window.end);
    let last = events
        .last()
        .map_or(window.end, |last| last.at.max(window.end));
    let first = events.first().map_or(last, |first| first.at);
    let from = complete_from.unwrap_or(first).max(window.start);
    // A ring may have nothing but unknown records after its losses.
    let to = last.max(from);
    let (before, within) = events.split_at(events.partition_point(|event| event.at < from));

    let mut build = Build {
        line,
        scheduler,
        from,
        threads: on_threads,
        texts: Texts::new(names),
        kinds: HashMap::default(),
        spawned: HashSet::default(),
        yielded: HashSet::default(),
        lives: Vec::new(),
        places: HashMap::default(),
        sent: HashMap::default(),
        early: BTreeMap::new(),
        queues: HashMap::default(),
    };
    build.learn(&events, before.len());
    build.open(before);
    for event in within {
        build.draw(*event);
    }
    build.close(to);
    let mut line = build.line;
    // A slice from before the window was drawn at its end, with its begin.
    line.entries.sort_by_key(|entry| entry.at);
    Trace {
        scheduler: scheduler.to_owned(),
        from,
        to,
        lost,
        left_out: before.len() as u64,
        unknown,
        names: line.names,
        tracks: line.tracks,
        entries: line.entries,
        arguments: line.arguments,
    }
}

/// The slice of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slice {
    Turn(u64),
    Sleep,
}

struct OnThread {
    track: u32,
    slice: Option<Slice>,
    /// No slice has begun or ended yet.
    is_fresh: bool,
}

/// A process whose type no event of the copies tells.
const A_PROCESS: &str = "process";

struct Build<'a, N> {
    line: Line,
    scheduler: &'a str,
    from: u64,
    threads: Vec<OnThread>,
    texts: Texts<N>,
    /// The types of processes.
    kinds: HashMap<u64, u32>,
    /// The processes spawned in the window.
    spawned: HashSet<u64>,
    /// The yields of the window: process and token.
    yielded: HashSet<(u64, u32)>,
    lives: Vec<Life>,
    /// Where each process is in `lives`.
    places: HashMap<u64, usize>,
    /// The messages on their way, by receiver and key, with the instants of their sends.
    sent: HashMap<(u64, u32), usize>,
    /// Completions of yields from before the window, with their times and commands. Sorted,
    /// because they get their tracks in this order.
    early: BTreeMap<(u64, u32), (u64, u32)>,
    /// The tracks of queues, by name.
    queues: HashMap<u32, u32>,
}

impl<N: FnMut(u32) -> Option<String>> Build<'_, N> {
    /// Looks for names, spawns and yields, before the events are drawn.
    fn learn(&mut self, events: &[Stamped], before: usize) {
        for (place, Stamped { event, .. }) in events.iter().enumerate() {
            match *event {
                Event::TurnBegins { process, name, .. } if name != 0 => {
                    self.kinds.entry(process).or_insert(name);
                }
                Event::Spawned { process, name, .. } => {
                    if name != 0 {
                        self.kinds.entry(process).or_insert(name);
                    }
                    if place >= before {
                        self.spawned.insert(process);
                    }
                }
                Event::Yielded { process, token, .. } if place >= before => {
                    self.yielded.insert((process, token));
                }
                _ => {}
            }
        }
    }

    /// Begins the slices underway at the begin of the window.
    fn open(&mut self, before: &[Stamped]) {
        let mut underway = vec![None; self.threads.len()];
        for Stamped { thread, event, .. } in before {
            let slice = &mut underway[*thread as usize];
            match *event {
                Event::TurnBegins { process, name, .. } => {
                    *slice = Some((Slice::Turn(process), name));
                }
                Event::Parked => *slice = Some((Slice::Sleep, 0)),
                Event::TurnEnds { .. } | Event::Unparked => *slice = None,
                _ => {}
            }
        }
        for (thread, slice) in (0..).zip(underway) {
            if let Some((slice, name)) = slice {
                self.begin_earlier(self.from, thread, slice, name);
            }
        }
    }

    fn draw(&mut self, Stamped { at, thread, event }: Stamped) {
        match event {
            Event::TurnBegins {
                process,
                name,
                pick,
            } => self.turn_begins(at, thread, process, name, pick),
            Event::TurnEnds {
                process,
                after,
                steps,
            } => self.turn_ends(at, thread, process, after, steps),
            Event::Parked => self.parked(at, thread),
            Event::Unparked => self.unparked(at, thread),
            Event::Spawned {
                process,
                parent,
                name: _,
            } => self.spawned(at, thread, process, parent),
            Event::Ended { process, end } => {
                let how = self.text(Key::End, end.text());
                let (label, kind) = self.about(process, at);
                let arguments = [(Key::Process, label), how];
                self.instant(at, thread, Category::Process, ("ends", kind), &arguments);
                if let Some(life) = life(&mut self.lives, &self.places, process) {
                    life.end(&mut self.line, at, &[how]);
                }
            }
            Event::Woken { process, by, cause } => {
                let (label, kind) = self.about(process, at);
                let cause = self.text(Key::Cause, cause.text());
                let by = self.process(Key::By, by);
                let arguments = [(Key::Process, label), cause, by];
                let count = if by.1 == NOBODY { 2 } else { 3 };
                let what = ("wakes", kind);
                let entry = self.instant(at, thread, Category::Wake, what, &arguments[..count]);
                if let Some(life) = life(&mut self.lives, &self.places, process) {
                    life.woken_by = Some(entry);
                    life.ready(&mut self.line, at);
                }
            }
            Event::Sent {
                to,
                from,
                message,
                key,
            } => {
                let message = self.texts.of(&mut self.line, message, "a message");
                let to_whom = self.process(Key::Process, to);
                let by = self.process(Key::By, from);
                let arguments = [to_whom, by];
                let count = if by.1 == NOBODY { 1 } else { 2 };
                let what = ("sends", message);
                let entry = self.instant(at, thread, Category::Message, what, &arguments[..count]);
                if key != 0 {
                    self.sent.insert((to, key), entry);
                }
            }
            Event::Taken {
                process,
                message,
                key,
            } => {
                let message = self.texts.of(&mut self.line, message, "a message");
                let receiver = self.process(Key::Process, process);
                let what = ("takes", message);
                let entry = self.instant(at, thread, Category::Message, what, &[receiver]);
                if let Some(start) = self.sent.remove(&(process, key)) {
                    self.line.flow(start, entry);
                }
            }
            Event::Yielded {
                process,
                command,
                tag,
                token,
            } => self.yielded(at, process, command, tag, token),
            Event::Completed {
                process,
                command,
                token,
            } => self.completed(at, process, command, token),
            Event::TimerFired { process, late } => {
                let (label, kind) = self.about(process, at);
                let arguments = [(Key::Process, label), (Key::Late, Value::Number(late))];
                self.instant(at, thread, Category::Timer, ("timer of", kind), &arguments);
            }
            Event::Stole { victim, count } => {
                let arguments = [
                    (Key::Victim, Value::Number(victim.into())),
                    (Key::Count, Value::Number(count)),
                ];
                self.plain_instant(at, thread, Category::Steal, "steals", &arguments);
            }
            Event::Spare { worker } => {
                let arguments = [(Key::Worker, Value::Number(worker.into()))];
                self.plain_instant(
                    at,
                    thread,
                    Category::Spare,
                    "a spare takes over",
                    &arguments,
                );
            }
            Event::Alarm {
                process,
                name,
                value,
            } => self.mark(at, thread, Category::Alarm, process, (name, value)),
            Event::Mark {
                process,
                name,
                value,
            } => self.mark(at, thread, Category::Mark, process, (name, value)),
            Event::Queue { name, length } => {
                let text = self.texts.of(&mut self.line, name, "queue");
                let line = &mut self.line;
                let track = self.queues.entry(name);
                let track = *track.or_insert_with(|| line.track(text, Shows::Queue));
                line.value(at, track, length);
            }
        }
    }

    fn turn_begins(&mut self, at: u64, thread: u32, process: u64, name: u32, pick: Pick) {
        self.end_slice(at, thread, &[]);
        let (label, kind) = self.about(process, at);
        let name = if name == 0 {
            kind
        } else {
            self.texts.of(&mut self.line, name, "")
        };
        let pick = self.text(Key::Pick, pick.text());
        let on = &mut self.threads[thread as usize];
        on.slice = Some(Slice::Turn(process));
        on.is_fresh = false;
        let arguments = [(Key::Process, label), pick];
        let what = (Category::Turn, name);
        let entry = self.line.begin(at, on.track, what, &arguments);
        if let Some(life) = life(&mut self.lives, &self.places, process) {
            life.runs(&mut self.line, at, thread);
            if let Some(start) = life.woken_by.take() {
                self.line.flow(start, entry);
            }
        }
    }

    fn turn_ends(&mut self, at: u64, thread: u32, process: u64, after: After, steps: u64) {
        let on = &self.threads[thread as usize];
        match on.slice {
            Some(Slice::Turn(underway)) if underway == process => {}
            None if on.is_fresh => self.begin_earlier(at, thread, Slice::Turn(process), 0),
            // The events in between are unknown to this version.
            _ => return,
        }
        let next = self.text(Key::After, after.text());
        self.end_slice(at, thread, &[next, (Key::Steps, Value::Number(steps))]);
        if let Some(life) = life(&mut self.lives, &self.places, process) {
            life.rests(&mut self.line, at, thread, after);
        }
    }

    fn parked(&mut self, at: u64, thread: u32) {
        self.end_slice(at, thread, &[]);
        let name = self.line.names.add("sleeps");
        let on = &mut self.threads[thread as usize];
        on.slice = Some(Slice::Sleep);
        on.is_fresh = false;
        self.line.begin(at, on.track, (Category::Sleep, name), &[]);
    }

    fn unparked(&mut self, at: u64, thread: u32) {
        let on = &self.threads[thread as usize];
        match on.slice {
            Some(Slice::Sleep) => {}
            None if on.is_fresh => self.begin_earlier(at, thread, Slice::Sleep, 0),
            _ => return,
        }
        self.end_slice(at, thread, &[]);
    }

    /// Begins a slice with the window, when an event tells that it was underway.
    fn begin_earlier(&mut self, at: u64, thread: u32, slice: Slice, name: u32) {
        let from = self.from;
        let track = self.threads[thread as usize].track;
        match slice {
            Slice::Turn(process) => {
                let (label, kind) = self.about(process, from);
                let name = if name == 0 {
                    kind
                } else {
                    self.texts.of(&mut self.line, name, "")
                };
                let arguments = [(Key::Process, label), BEGAN_EARLIER];
                let what = (Category::Turn, name);
                self.line.begin(from, track, what, &arguments);
                if let Some(life) = life(&mut self.lives, &self.places, process) {
                    life.runs(&mut self.line, at, thread);
                }
            }
            Slice::Sleep => {
                let name = self.line.names.add("sleeps");
                let what = (Category::Sleep, name);
                self.line.begin(from, track, what, &[BEGAN_EARLIER]);
            }
        }
        let on = &mut self.threads[thread as usize];
        on.slice = Some(slice);
        on.is_fresh = false;
    }

    fn end_slice(&mut self, at: u64, thread: u32, arguments: &[Argument]) {
        let on = &mut self.threads[thread as usize];
        let category = match on.slice.take() {
            Some(Slice::Turn(_)) => Category::Turn,
            Some(Slice::Sleep) => Category::Sleep,
            None => return,
        };
        self.line.end(at, on.track, category, arguments);
    }

    fn spawned(&mut self, at: u64, thread: u32, process: u64, parent: u64) {
        let (label, kind) = self.about(process, at);
        let by = self.process(Key::Parent, parent);
        let arguments = [(Key::Process, label), by];
        let count = if by.1 == NOBODY { 1 } else { 2 };
        let what = ("spawns", kind);
        let entry = self.instant(at, thread, Category::Process, what, &arguments[..count]);
        if let Some(life) = life(&mut self.lives, &self.places, process) {
            if !life.is_alive {
                life.begin(&mut self.line, at, &[]);
            }
            life.queued(&mut self.line, at);
            life.woken_by.get_or_insert(entry);
        }
    }

    fn yielded(&mut self, at: u64, process: u64, command: u32, tag: u64, token: u32) {
        self.about(process, at);
        let command = self.texts.of(&mut self.line, command, "a command");
        let is_over = self.early.remove(&(process, token)).is_some();
        let Some(life) = life(&mut self.lives, &self.places, process) else {
            return;
        };
        let arguments = [(Key::Tag, Value::Number(tag))];
        life.yielded(&mut self.line, at, (token, command), &arguments);
        if is_over {
            life.completed(&mut self.line, at, token);
        }
    }

    fn completed(&mut self, at: u64, process: u64, command: u32, token: u32) {
        self.about(process, at);
        let Some(life) = life(&mut self.lives, &self.places, process) else {
            return;
        };
        if life.is_alive && !life.completed(&mut self.line, at, token) {
            // Its yield comes next, by another thread's clock, or came before the window.
            self.early.entry((process, token)).or_insert((at, command));
        }
    }

    fn mark(
        &mut self,
        at: u64,
        thread: u32,
        category: Category,
        process: u64,
        (name, value): (u32, u64),
    ) {
        let name = self.texts.of(&mut self.line, name, category.text());
        let process = self.process(Key::Process, process);
        let arguments = [(Key::Value, Value::Number(value)), process];
        let count = if process.1 == NOBODY { 1 } else { 2 };
        let track = self.threads[thread as usize].track;
        self.line
            .instant(at, track, (category, name), &arguments[..count]);
    }

    /// Ends all slices.
    fn close(&mut self, to: u64) {
        for ((process, token), (at, command)) in std::mem::take(&mut self.early) {
            // A yield completes once: this is a second completion.
            if self.yielded.contains(&(process, token)) || self.spawned.contains(&process) {
                continue;
            }
            let command = self.texts.of(&mut self.line, command, "a command");
            if let Some(life) = life(&mut self.lives, &self.places, process) {
                life.completed_earlier(&mut self.line, self.from, at, command);
            }
        }
        for thread in (0..).take(self.threads.len()) {
            self.end_slice(to, thread, &[GOES_ON]);
        }
        for life in &mut self.lives {
            life.close(&mut self.line, to);
        }
    }

    /// Returns the label and the type of a process, whose life begins if this is its first event.
    fn about(&mut self, process: u64, at: u64) -> (Value, Name) {
        if process == 0 {
            return (NOBODY, self.line.names.add(A_PROCESS));
        }
        let life = match self.places.get(&process) {
            Some(place) => &self.lives[*place],
            None => {
                let (at, earlier) = if self.spawned.contains(&process) {
                    (at, &[][..])
                } else {
                    (self.from, &[BEGAN_EARLIER][..])
                };
                let (label, kind) = self.label(process);
                let mut life = Life::new(&mut self.line, kind, label);
                life.begin(&mut self.line, at, earlier);
                self.places.insert(process, self.lives.len());
                self.lives.push(life);
                &self.lives[self.lives.len() - 1]
            }
        };
        (Value::Text(life.label), life.kind)
    }

    fn label(&mut self, process: u64) -> (Name, Name) {
        let kind = self.kinds.get(&process).copied().unwrap_or_default();
        let kind = self.texts.of(&mut self.line, kind, A_PROCESS);
        let text = self.line.names.text(kind);
        let text = format!("{text} {{{}|{process}}}", self.scheduler);
        (self.line.names.add(&text), kind)
    }

    /// Creates an argument for a process, alive or not.
    fn process(&mut self, key: Key, process: u64) -> Argument {
        if process == 0 {
            return (key, NOBODY);
        }
        let label = match self.places.get(&process) {
            Some(place) => self.lives[*place].label,
            None => self.label(process).0,
        };
        (key, Value::Text(label))
    }

    fn text(&mut self, key: Key, text: &str) -> Argument {
        (key, Value::Text(self.line.names.add(text)))
    }

    /// Draws an instant with a verb and an object.
    fn instant(
        &mut self,
        at: u64,
        thread: u32,
        category: Category,
        (verb, object): (&'static str, Name),
        arguments: &[Argument],
    ) -> usize {
        let name = self.texts.phrase(&mut self.line, verb, object);
        let track = self.threads[thread as usize].track;
        self.line.instant(at, track, (category, name), arguments)
    }

    fn plain_instant(
        &mut self,
        at: u64,
        thread: u32,
        category: Category,
        text: &str,
        arguments: &[Argument],
    ) {
        let name = self.line.names.add(text);
        let track = self.threads[thread as usize].track;
        self.line.instant(at, track, (category, name), arguments);
    }
}

/// No process.
const NOBODY: Value = Value::Text(Name(0));

fn life<'a>(
    lives: &'a mut [Life],
    places: &HashMap<u64, usize>,
    process: u64,
) -> Option<&'a mut Life> {
    Some(&mut lives[*places.get(&process)?])
}
