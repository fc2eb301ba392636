//! A process on its track: its life, with the times in which it is ready or waits; and its
//! commands, on tracks below.
//!
//! | state | slice | left by |
//! |---|---|---|
//! | new | none | any event |
//! | waits | "waits for …" | a wake-up, or a turn |
//! | ready | "ready" | a turn |
//! | runs | none: the worker's track has the turn | the end of the turn on the same thread |
//! | over | none, until the life ends | |
//!
//! Threads read their clocks by themselves. The begin of a turn may come before the end of the last
//! turn, on another thread, and a wake-up before the end of the turn with the begin of the wait.
//! So a turn's end counts for the thread of the newest turn alone, and a wake-up during a turn is
//! kept until the turn ends.

use super::line::{BEGAN_EARLIER, GOES_ON, Line};
use super::model::{Argument, Category, Name, Shows};
use ganger_ring::event::After;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Waits,
    Ready,
    Runs { thread: u32, is_woken: bool },
    Over,
}

/// A track for commands in sequence.
struct Lane {
    track: u32,
    /// The token and the command of the yield underway.
    underway: Option<(u32, Name)>,
}

pub(super) struct Life {
    track: u32,
    /// Type and PID.
    pub(super) label: Name,
    /// Its type or method.
    pub(super) kind: Name,
    pub(super) is_alive: bool,
    state: State,
    began: u64,
    /// The instant of its wake-up, until its turn.
    pub(super) woken_by: Option<usize>,
    lanes: Vec<Lane>,
}

impl Life {
    pub(super) fn new(line: &mut Line, kind: Name, label: Name) -> Self {
        Self {
            track: line.track(label, Shows::Process),
            label,
            kind,
            is_alive: false,
            state: State::New,
            began: 0,
            woken_by: None,
            lanes: Vec::new(),
        }
    }

    /// Begins the life of the process.
    pub(super) fn begin(&mut self, line: &mut Line, at: u64, arguments: &[Argument]) {
        let what = (Category::Life, self.label);
        line.begin(at, self.track, what, arguments);
        self.is_alive = true;
        self.state = State::New;
        self.began = at;
    }

    fn change(&mut self, line: &mut Line, at: u64, state: State) {
        match self.state {
            State::Waits => line.end(at, self.track, Category::Waits, &[]),
            State::Ready => line.end(at, self.track, Category::Ready, &[]),
            State::New | State::Runs { .. } | State::Over => {}
        }
        self.state = state;
        match state {
            State::Waits => {
                let name = self.awaited(line);
                line.begin(at, self.track, (Category::Waits, name), &[]);
            }
            State::Ready => {
                let name = line.names.add("ready");
                line.begin(at, self.track, (Category::Ready, name), &[]);
            }
            State::New | State::Runs { .. } | State::Over => {}
        }
    }

    /// Returns the reason of a wait from now on: the newest command, or messages.
    fn awaited(&self, line: &mut Line) -> Name {
        let commands = self.lanes.iter().rev().filter_map(|lane| lane.underway);
        match commands.max_by_key(|(token, _)| *token) {
            Some((_, command)) => {
                let text = format!("waits for {}", line.names.text(command));
                line.names.add(&text)
            }
            None => line.names.add("waits for messages"),
        }
    }

    /// Queues a waiting process.
    pub(super) fn ready(&mut self, line: &mut Line, at: u64) {
        match &mut self.state {
            _ if !self.is_alive => {}
            State::Runs { is_woken, .. } => *is_woken = true,
            State::Ready | State::Over => {}
            State::Waits => self.change(line, at, State::Ready),
            // The process has waited since before the window, without an event in between.
            State::New => {
                let what = (Category::Waits, line.names.add("waits"));
                line.begin(self.began, self.track, what, &[BEGAN_EARLIER]);
                self.state = State::Waits;
                self.change(line, at, State::Ready);
            }
        }
    }

    /// Queues a new process for the first time.
    pub(super) fn queued(&mut self, line: &mut Line, at: u64) {
        if self.is_alive && self.state == State::New {
            self.change(line, at, State::Ready);
        }
    }

    pub(super) fn runs(&mut self, line: &mut Line, at: u64, thread: u32) {
        if self.is_alive {
            let is_woken = false;
            self.change(line, at, State::Runs { thread, is_woken });
        }
    }

    /// Ends the turn on a thread.
    pub(super) fn rests(&mut self, line: &mut Line, at: u64, thread: u32, after: After) {
        let State::Runs {
            thread: newest,
            is_woken,
        } = self.state
        else {
            return;
        };
        if !self.is_alive || newest != thread {
            return;
        }
        let state = match after {
            After::Waits if !is_woken => State::Waits,
            After::Waits | After::Ready => State::Ready,
            After::Ended => State::Over,
        };
        self.change(line, at, state);
    }

    pub(super) fn yielded(
        &mut self,
        line: &mut Line,
        at: u64,
        (token, command): (u32, Name),
        arguments: &[Argument],
    ) {
        let is_underway =
            |lane: &Lane| (lane.underway).is_some_and(|(underway, _)| underway == token);
        if !self.is_alive || self.lanes.iter().any(is_underway) {
            return;
        }
        let free = self.lanes.iter().position(|lane| lane.underway.is_none());
        let lane = free.unwrap_or_else(|| self.add_lane(line));
        self.lanes[lane].underway = Some((token, command));
        let what = (Category::Yield, command);
        line.begin(at, self.lanes[lane].track, what, arguments);
    }

    /// Returns whether the yield was underway.
    pub(super) fn completed(&mut self, line: &mut Line, at: u64, token: u32) -> bool {
        for lane in &mut self.lanes {
            if lane.underway.is_some_and(|(underway, _)| underway == token) {
                lane.underway = None;
                line.end(at, lane.track, Category::Yield, &[]);
                return true;
            }
        }
        false
    }

    /// Adds a completed yield from before the window.
    pub(super) fn completed_earlier(&mut self, line: &mut Line, from: u64, at: u64, command: Name) {
        let lane = self.add_lane(line);
        let track = self.lanes[lane].track;
        line.begin(from, track, (Category::Yield, command), &[BEGAN_EARLIER]);
        line.end(at, track, Category::Yield, &[]);
    }

    fn add_lane(&mut self, line: &mut Line) -> usize {
        let name = line.names.add("commands");
        let track = line.track(name, Shows::Yields(self.track));
        let underway = None;
        self.lanes.push(Lane { track, underway });
        self.lanes.len() - 1
    }

    /// Ends the life of the process.
    pub(super) fn end(&mut self, line: &mut Line, at: u64, arguments: &[Argument]) {
        self.over(line, at, &[], arguments);
    }

    /// Ends the window.
    pub(super) fn close(&mut self, line: &mut Line, to: u64) {
        self.over(line, to, &[GOES_ON], &[GOES_ON]);
    }

    fn over(&mut self, line: &mut Line, at: u64, inner: &[Argument], outer: &[Argument]) {
        if !self.is_alive {
            return;
        }
        for lane in &mut self.lanes {
            if lane.underway.take().is_some() {
                line.end(at, lane.track, Category::Yield, inner);
            }
        }
        match self.state {
            State::Waits => line.end(at, self.track, Category::Waits, inner),
            State::Ready => line.end(at, self.track, Category::Ready, inner),
            State::New | State::Runs { .. } | State::Over => {}
        }
        line.end(at, self.track, Category::Life, outer);
        self.is_alive = false;
    }
}
