//! The table of processes: rates from two answers, histories, and ended processes.
//!
//! **Protocol.** Each answer has the first processes of a list. A missing process of the answer
//! before has ended, or has another place in the order. The feed asks the source for it. An ended
//! process stays for [`GREY`], without colour.

use super::warning::{self, GROWTHS, Lately, Warning};
use ganger_observe::api::{By, Process, ProcessCounts, Processes, State};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

/// The time of an ended process in the table.
const GREY: Duration = Duration::from_secs(5);

/// The least time between two answers for rates, in nanoseconds.
const LEAST: u32 = 50_000_000;

/// The length of a sparkline.
pub(crate) const SPARKS: usize = 16;

/// The number of a scheduler, and a PID.
pub(crate) type Key = (u64, String);

/// A process, and the results of its answers.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) process: Process,
    /// New events for each second; none before the second answer, or without counts.
    pub(crate) messages: Option<f64>,
    /// How many messages more its mailbox has each second.
    pub(crate) growth: Option<f64>,
    /// The share of its time within steps.
    pub(crate) busy: Option<f64>,
    /// The new events for each second in the last answers, the newest last.
    pub(crate) sparks: Vec<f64>,
    pub(crate) warnings: Vec<Warning>,
    /// When it was found to have ended.
    pub(crate) ended: Option<Duration>,
    mailboxes: Vec<u64>,
}

/// The processes of the last answers.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    pub(crate) live: u64,
    pub(crate) matched: u64,
}

/// The order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sort {
    Pid,
    Name,
    State,
    Mailbox,
    /// By how fast the mailbox grows.
    Growth,
    Messages,
    Busy,
    Steps,
    Restarts,
    Age,
}

impl Sort {
    /// Returns whether the order begins with the least.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Pid | Self::Name)
    }

    /// Returns whether a window changes the order. All steps count, as their column says.
    pub(crate) fn has_window(self) -> bool {
        self != Self::Steps && self.by().has_window()
    }

    /// Returns the order in the API: a source chooses the first processes by it.
    pub(crate) fn by(self) -> By {
        match self {
            Self::Pid => By::Pid,
            Self::State => By::Quiet,
            Self::Name | Self::Mailbox | Self::Restarts => By::Mailbox,
            Self::Growth => By::Growth,
            Self::Messages => By::Events,
            Self::Busy => By::Busy,
            Self::Steps => By::Steps,
            Self::Age => By::Age,
        }
    }
}

impl Row {
    pub(crate) fn key(&self) -> Key {
        (self.process.scheduler, self.process.pid.clone())
    }

    /// Returns the number of messages and events in the mailbox.
    pub(crate) fn mailbox(&self) -> u64 {
        mailbox(&self.process)
    }

    /// Returns the label, or the first name, or none.
    pub(crate) fn own_name(&self) -> Option<&str> {
        let label = self.process.label.as_deref();
        self.process.names.first().map(String::as_str).or(label)
    }

    /// Creates the row of an answer, with the row of the answer before.
    pub(crate) fn new(process: Process, before: Option<Self>) -> Self {
        let mut row = Self {
            messages: None,
            growth: None,
            busy: None,
            sparks: Vec::new(),
            warnings: Vec::new(),
            ended: None,
            mailboxes: Vec::new(),
            process,
        };
        let mut lately = Lately::default();
        if let Some(before) = before {
            row.sparks = before.sparks;
            row.mailboxes = before.mailboxes;
            if let (Some(now), Some(old)) = (&row.process.counts, &before.process.counts) {
                let age = now.age_ns.saturating_sub(old.age_ns);
                if age < LEAST.into() {
                    row.messages = before.messages;
                    row.growth = before.growth;
                    row.busy = before.busy;
                    row.warnings = before.warnings;
                    return row;
                }
                let seconds = age as f64 / 1e9;
                let more = |of: fn(&ProcessCounts) -> u64| of(now).saturating_sub(of(old));
                lately.turns = more(|it| it.turns);
                lately.events = more(|it| it.events);
                let rate = lately.events as f64 / seconds;
                row.messages = Some(rate);
                row.growth = Some((now.waiting as f64 - old.waiting as f64) / seconds);
                let busy = more(|it| it.busy_ns) as f64 / 1e9;
                row.busy = Some((busy.max(in_turn(&row.process)) / seconds).min(1.0));
                keep(&mut row.sparks, rate, SPARKS);
            }
        }
        keep(&mut row.mailboxes, mailbox(&row.process), GROWTHS + 1);
        row.warnings = warning::of(&row.process, lately, &row.mailboxes);
        row
    }

    fn order(&self, other: &Self, sort: Sort) -> Ordering {
        let counts =
            |row: &Self, of: fn(&ProcessCounts) -> u64| row.process.counts.as_ref().map(of);
        let by = match sort {
            Sort::Pid => self.place().cmp(&other.place()),
            Sort::Name => {
                let name =
                    |row: &Self| (row.own_name().is_none(), row.own_name().map(str::to_owned));
                let kind = |row: &Self| row.process.type_name.clone();
                (name(self), kind(self)).cmp(&(name(other), kind(other)))
            }
            Sort::State => {
                let quiet = |row: &Self| row.process.quiet_ns;
                let state = |row: &Self| row.process.state as u8;
                (state(other), quiet(self)).cmp(&(state(self), quiet(other)))
            }
            Sort::Mailbox => self.mailbox().cmp(&other.mailbox()),
            Sort::Growth => float(self.growth, other.growth),
            Sort::Messages => float(self.messages, other.messages),
            Sort::Busy => float(self.busy, other.busy),
            Sort::Steps => counts(self, |it| it.steps).cmp(&counts(other, |it| it.steps)),
            Sort::Restarts => self.process.incarnation.cmp(&other.process.incarnation),
            Sort::Age => counts(self, |it| it.age_ns).cmp(&counts(other, |it| it.age_ns)),
        };
        by.then_with(|| other.place().cmp(&self.place()))
    }

    /// PIDs have the order of their numbers.
    fn place(&self) -> (u64, usize, &str) {
        let pid = &self.process.pid;
        (self.process.scheduler, pid.len(), pid)
    }
}

impl Rows {
    /// Takes an answer, and the ended processes of the answer before.
    pub(crate) fn take(&mut self, answer: Processes, gone: &[Key], now: Duration) {
        let mut before: HashMap<Key, Row> =
            self.rows.drain(..).map(|row| (row.key(), row)).collect();
        self.live = answer.live;
        self.matched = answer.matched;
        for process in answer.processes {
            let old = before.remove(&(process.scheduler, process.pid.clone()));
            self.rows.push(Row::new(process, old));
        }
        let left = before.into_values().filter_map(|mut row| {
            if row.ended.is_none() && gone.contains(&row.key()) {
                row.ended = Some(now);
                row.warnings.clear();
            }
            row.ended.is_some().then_some(row)
        });
        self.rows.extend(left);
        self.tick(now);
    }

    /// Drops processes after their time.
    pub(crate) fn tick(&mut self, now: Duration) {
        let is_there = |row: &Row| row.ended.is_none_or(|at| now.saturating_sub(at) < GREY);
        self.rows.retain(is_there);
    }

    /// Sorts the rows.
    pub(crate) fn sort(&mut self, sort: Sort, is_descending: bool) {
        self.rows.sort_by(|one, other| match is_descending {
            true => other.order(one, sort),
            false => one.order(other, sort),
        });
    }

    /// Counts the new events of the listed processes for each second, and tells whether no process
    /// is left out. None, where no process has a rate.
    pub(crate) fn messages(&self) -> Option<(f64, bool)> {
        let live = self.rows.iter().filter(|it| it.ended.is_none());
        let count = live.clone().count() as u64;
        let rates: Vec<f64> = live.filter_map(|it| it.messages).collect();
        (!rates.is_empty()).then(|| (rates.iter().sum(), count >= self.live))
    }

    pub(crate) fn all(&self) -> &[Row] {
        &self.rows
    }

    /// Begins another list.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Returns the length of a turn that goes on, in seconds. Its step is counted at the end alone.
fn in_turn(process: &Process) -> f64 {
    let quiet = process.quiet_ns.filter(|_| process.state == State::Running);
    quiet.unwrap_or(0) as f64 / 1e9
}

fn mailbox(process: &Process) -> u64 {
    let counted = process.counts.as_ref().map(|it| it.waiting);
    counted.unwrap_or(process.left + process.queued.unwrap_or(0))
}

fn float(one: Option<f64>, other: Option<f64>) -> Ordering {
    let value = |it: Option<f64>| it.unwrap_or(f64::NEG_INFINITY);
    value(one).total_cmp(&value(other))
}

/// Adds a value, and drops the oldest beyond a number.
fn keep<T>(values: &mut Vec<T>, value: T, most: usize) {
    if values.len() == most {
        values.remove(0);
    }
    values.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Demo, Source as _};
    use ganger_observe::api::ProcessesQuery;

    fn answer(millis: u64) -> Processes {
        let demo = Demo::by(move || Duration::from_millis(millis));
        demo.processes(&ProcessesQuery::default()).unwrap()
    }

    fn find<'a>(rows: &'a Rows, name: &str) -> &'a Row {
        let mut all = rows.all().iter();
        all.find(|it| it.own_name() == Some(name)).unwrap()
    }

    #[test]
    fn rates_come_from_two_answers_of_the_same_process() {
        let mut rows = Rows::default();
        rows.take(answer(60_000), &[], Duration::ZERO);
        let first = find(&rows, "mailer");
        assert_eq!((first.messages, first.busy), (None, None));
        for second in 1..=6 {
            let millis = 60_000 + 1_000 * second;
            rows.take(answer(millis), &[], Duration::from_secs(second));
        }
        let mailer = find(&rows, "mailer");
        let (messages, busy) = (mailer.messages.unwrap(), mailer.busy.unwrap());
        assert!((60.0..140.0).contains(&messages), "{messages}");
        assert!((0.1..0.3).contains(&busy), "{busy}");
        assert_eq!((mailer.sparks.len(), mailer.sparks[5]), (6, messages));
        assert_eq!(mailer.warnings, [Warning::MailboxGrows]);
        assert_eq!(find(&rows, "poller").warnings, [Warning::WakesItself]);
    }

    #[test]
    fn a_turn_that_goes_on_is_busy() {
        let mut rows = Rows::default();
        for second in 0..2 {
            let mut answer = answer(60_000 + 1_000 * second);
            for process in &mut answer.processes {
                process.counts.as_mut().unwrap().busy_ns = 7;
            }
            rows.take(answer, &[], Duration::from_secs(second));
        }
        assert_eq!(find(&rows, "report").busy, Some(1.0));
        assert_eq!(find(&rows, "mailer").busy, Some(0.0));
    }

    #[test]
    fn a_process_that_has_ended_stays_for_five_seconds() {
        let mut rows = Rows::default();
        rows.take(answer(60_000), &[], Duration::ZERO);
        let importer = find(&rows, "importer").key();
        let others = rows.all().len();
        rows.take(
            answer(63_000),
            std::slice::from_ref(&importer),
            Duration::from_secs(3),
        );
        let count = |rows: &Rows| rows.all().iter().filter(|it| it.ended.is_some()).count();
        assert_eq!(
            count(&rows),
            1,
            "processes that are only missing go at once"
        );
        assert_eq!(rows.all().len(), others + 1);
        rows.tick(Duration::from_millis(7_999));
        assert_eq!(count(&rows), 1);
        rows.tick(Duration::from_secs(8));
        assert_eq!(count(&rows), 0);
    }

    #[test]
    fn each_order_has_its_first() {
        let mut rows = Rows::default();
        rows.take(answer(60_000), &[], Duration::ZERO);
        rows.take(answer(61_000), &[], Duration::from_secs(1));
        let mut first = |sort, is_descending| {
            rows.sort(sort, is_descending);
            let row = &rows.all()[0];
            row.own_name().unwrap_or(&row.process.type_name).to_owned()
        };
        assert_eq!(first(Sort::Mailbox, true), "mailer");
        assert_eq!(first(Sort::Busy, true), "report");
        assert_eq!(first(Sort::Pid, false), "shop");
        assert_eq!(first(Sort::Steps, true), "tenant-0");
        assert_eq!(first(Sort::Messages, true), "tenant-0");
        assert_eq!(first(Sort::Name, false), "importer");
        assert_eq!(first(Sort::State, true), "mailer");
        assert_eq!(first(Sort::Age, false), "web::Session");
    }
}
