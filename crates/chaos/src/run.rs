//! The run of a plan over nodes that are programs of their own.

use crate::account::{Account, Run, Tally};
use crate::faults::{Faults, Way};
use crate::plan::{Action, Plan};
use crate::program::{Lines, Program, Said, Start};
use crate::proxy::Proxy;
use std::collections::VecDeque;
use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long the nodes have, after the last event, until each message and monitor is settled.
const PATIENCE: Duration = Duration::from_secs(180);

/// How many lines a failure shows.
const SHOWN: usize = 60;

/// A broker between the nodes.
pub trait Broker {
    /// Returns the address at which the broker listens.
    fn address(&self) -> SocketAddr;
    /// Kills the broker's program.
    fn kill(&mut self);
    /// Starts the broker again, at its address.
    fn restart(&mut self);
    /// Stops its program, or lets it go on.
    fn pause(&mut self, is_paused: bool);
}

/// The side behind the proxies.
pub enum Front {
    /// A proxy in front of each node.
    Nodes,
    /// A proxy for each node, in front of a broker.
    Broker(Box<dyn Broker>),
}

/// The settings of a run.
pub struct Setup {
    /// The program of a node, which calls [`node`](crate::node()).
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// How many nodes; two at least.
    pub nodes: usize,
    /// The side behind the proxies.
    pub front: Front,
    /// A text for each node.
    pub extra: String,
    /// The time without a sign until sessions end.
    pub dead: Duration,
    /// The length of the plan.
    pub time: Duration,
    /// The seed of the plan.
    pub seed: u64,
}

/// Returns the seconds of a run: `GANGER_SOAK_SECONDS`, or these.
#[must_use]
pub fn seconds(usual: u64) -> Duration {
    let said = env::var("GANGER_SOAK_SECONDS").ok();
    let said = said.and_then(|it| it.parse().ok());
    Duration::from_secs(said.unwrap_or(usual))
}

/// Returns the seed of a run: `GANGER_STRESS_SEED`, or any.
#[must_use]
pub fn seed() -> u64 {
    let said = env::var("GANGER_STRESS_SEED").ok();
    let said = said.and_then(|it| it.parse().ok());
    said.unwrap_or_else(|| fastrand::u64(..))
}

/// Starts the nodes, plays the plan of the seed, lets all end, and settles the account.
///
/// # Panics
/// If the account is wrong, a node ends by itself, or the nodes don't come to an end: with the
/// seed, and the last lines of the nodes.
pub fn run(setup: Setup) -> Tally {
    assert!(setup.nodes >= 2, "a cluster has two nodes at least");
    Controller::new(setup).run()
}

/// How a node's program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    IsStopped,
    IsDead,
}

struct Node {
    name: String,
    proxy: Proxy,
    program: Option<Program>,
    state: State,
    /// How many times the program was started.
    starts: u64,
    /// Whether the program has said its first line.
    is_up: bool,
    /// The last stage at the end that the program has done.
    stage: String,
}

/// An event of a later time.
#[derive(Debug, Clone, Copy)]
enum Later {
    GoOn(usize, u64),
    Start(usize),
    BrokerGoesOn,
    BrokerStarts,
}

struct Controller {
    setup: Setup,
    nodes: Vec<Node>,
    /// Has the registrar's file.
    folder: tempfile::TempDir,
    lines: (Lines, Receiver<Said>),
    later: Vec<(Instant, Later)>,
    broker: State,
    account: Account,
    /// The counts of the senders, settled behind the last line: sender, receiver's run, its PID,
    /// messages.
    sent: Vec<(Run, Run, u64, u64)>,
    shown: VecDeque<String>,
    begin: Instant,
    events: u64,
    kills: u64,
    is_over: bool,
}

impl Controller {
    fn new(setup: Setup) -> Self {
        let nodes = (0..setup.nodes).map(|number| Node {
            name: format!("node-{number}"),
            proxy: Proxy::new(setup.seed.wrapping_add(number as u64)),
            program: None,
            state: State::IsDead,
            starts: 0,
            is_up: false,
            stage: String::new(),
        });
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            nodes: nodes.collect(),
            setup,
            lines: channel(),
            later: Vec::new(),
            broker: State::Runs,
            account: Account::default(),
            sent: Vec::new(),
            shown: VecDeque::new(),
            begin: Instant::now(),
            events: 0,
            kills: 0,
            is_over: false,
        }
    }

    fn run(mut self) -> Tally {
        if let Front::Broker(broker) = &self.setup.front {
            let address = broker.address();
            for node in &self.nodes {
                node.proxy.aim(address);
            }
        }
        for number in 0..self.nodes.len() {
            self.start(number);
        }
        let has_broker = matches!(self.setup.front, Front::Broker(_));
        let plan = Plan::draw(
            self.setup.seed,
            self.nodes.len(),
            self.setup.dead,
            has_broker,
        );
        let mut at = Instant::now();
        let end = at + self.setup.time;
        for (gap, action) in plan {
            at += gap;
            if at >= end {
                break;
            }
            self.listen_until(at);
            self.events += 1;
            self.note(&format!("{action}"));
            self.play(action);
        }
        self.listen_until(end);
        self.mend();
        for stage in ["drain drained", "targets ended", "watchers monitors"] {
            let (command, answer) = stage.split_once(' ').unwrap_or_default();
            self.stage(command, answer);
        }
        self.is_over = true;
        for node in &mut self.nodes {
            if let Some(mut program) = node.program.take() {
                // The stage of the node shows that the program lives.
                let _ended = program.tell("quit");
                program.wait();
            }
        }
        while let Ok(line) = self.lines.1.try_recv() {
            self.line(line);
        }
        for (sender, run, receiver, count) in std::mem::take(&mut self.sent) {
            self.account.sent(&sender, &run, receiver, count);
        }
        let tally = Tally {
            events: self.events,
            kills: self.kills,
            ..self.account.tally()
        };
        if !self.account.faults().is_empty() {
            self.fail("the account is wrong");
        }
        tally
    }

    fn fail(&self, why: &str) -> ! {
        let shown: Vec<_> = self.shown.iter().map(String::as_str).collect();
        panic!(
            "seed {}: {why}\n{}\nthe last lines:\n{}",
            self.setup.seed,
            self.account.faults().join("\n"),
            shown.join("\n")
        );
    }

    fn note(&mut self, text: &str) {
        let line = format!("{:>8.3} {text}", self.begin.elapsed().as_secs_f64());
        if env::var_os("GANGER_CHAOS_LOG").is_some() {
            eprintln!("{line}");
        }
        if self.shown.len() == SHOWN {
            self.shown.pop_front();
        }
        self.shown.push_back(line);
    }

    fn start(&mut self, number: usize) {
        let others = |of: &dyn Fn(&Node) -> String| {
            let others = self.nodes.iter().enumerate();
            let others = others.filter(|(it, _)| *it != number);
            others
                .map(|(_, node)| of(node))
                .collect::<Vec<_>>()
                .join(",")
        };
        let own = self.nodes[number].proxy.address();
        let seeds = match self.setup.front {
            Front::Nodes => others(&|node| node.proxy.address().to_string()),
            Front::Broker(_) => own.to_string(),
        };
        let node = &self.nodes[number];
        let starts = node.starts + 1;
        let start = Start {
            program: &self.setup.program,
            args: &self.setup.args,
            name: &node.name,
            peers: others(&|node| node.name.clone()),
            seeds,
            own,
            dead: self.setup.dead,
            extra: &self.setup.extra,
            random: self.setup.seed.wrapping_add(starts << 8 | number as u64),
            registrar: {
                let file = self.folder.path().join("registrar");
                format!("{}:{}", self.nodes[0].name, file.display())
            },
        };
        let program = Program::start(&start, (number, starts), self.lines.0.clone());
        let node = &mut self.nodes[number];
        node.program = Some(program);
        node.state = State::Runs;
        node.starts = starts;
        node.is_up = false;
        node.stage.clear();
    }

    fn kill(&mut self, number: usize) {
        if let Some(program) = self.nodes[number].program.take() {
            program.kill();
            self.kills += 1;
        }
        self.nodes[number].state = State::IsDead;
    }

    fn play(&mut self, action: Action) {
        match action {
            Action::Faults(node, way, faults) => self.nodes[node].proxy.faults(way, faults),
            Action::Calm(node) => self.nodes[node].proxy.calm(),
            Action::Cut(node) => self.nodes[node].proxy.cut(),
            Action::CutAfter(node, bytes) => self.nodes[node].proxy.cut_after(bytes),
            Action::Reset(node) => self.nodes[node].proxy.reset(),
            Action::HalfClose(node, way) => self.nodes[node].proxy.half_close(way),
            Action::Flip(node, way) => self.nodes[node].proxy.flip(way),
            Action::Refuse(node) => {
                self.nodes[node].proxy.refuse(true);
                self.nodes[node].proxy.cut();
            }
            // A starting program is let be.
            Action::Stop(number, time) => {
                let node = &mut self.nodes[number];
                if node.state == State::Runs
                    && node.is_up
                    && let Some(program) = &node.program
                {
                    program.signal("STOP");
                    node.state = State::IsStopped;
                    let again = Later::GoOn(number, node.starts);
                    self.later.push((Instant::now() + time, again));
                }
            }
            Action::Kill(number, time) => {
                if self.nodes[number].is_up && self.nodes[number].state != State::IsDead {
                    self.kill(number);
                    self.later
                        .push((Instant::now() + time, Later::Start(number)));
                }
            }
            Action::StopBroker(time) | Action::KillBroker(time) => {
                if let Front::Broker(broker) = &mut self.setup.front
                    && self.broker == State::Runs
                {
                    let at = Instant::now() + time;
                    if let Action::StopBroker(_) = action {
                        broker.pause(true);
                        self.broker = State::IsStopped;
                        self.later.push((at, Later::BrokerGoesOn));
                    } else {
                        broker.kill();
                        self.broker = State::IsDead;
                        self.later.push((at, Later::BrokerStarts));
                    }
                }
            }
        }
    }

    fn do_later(&mut self, later: Later) {
        self.note(&format!("{later:?}"));
        match later {
            Later::GoOn(number, starts) => {
                let node = &mut self.nodes[number];
                if node.state == State::IsStopped
                    && node.starts == starts
                    && let Some(program) = &node.program
                {
                    program.signal("CONT");
                    node.state = State::Runs;
                }
            }
            Later::Start(number) => self.start(number),
            Later::BrokerGoesOn | Later::BrokerStarts => {
                if let Front::Broker(broker) = &mut self.setup.front {
                    match later {
                        Later::BrokerGoesOn => broker.pause(false),
                        _ => broker.restart(),
                    }
                    self.broker = State::Runs;
                }
            }
        }
    }

    /// Ends all faults, and has each program run.
    fn mend(&mut self) {
        self.note("all is mended");
        for node in &self.nodes {
            node.proxy.calm();
            // Vanished bytes may have left half of a frame: the next connection is whole.
            node.proxy.cut();
        }
        self.later.sort_by_key(|(at, _)| *at);
        for (_, later) in std::mem::take(&mut self.later) {
            self.do_later(later);
        }
        for node in &self.nodes {
            for way in Way::BOTH {
                node.proxy.faults(way, Faults::default());
            }
        }
    }

    /// Listens to the nodes, and carries due acts out, until a time.
    fn listen_until(&mut self, end: Instant) {
        loop {
            let next = self.later.iter().map(|(at, _)| *at).min();
            let at = next.map_or(end, |next| next.min(end));
            let rest = at.saturating_duration_since(Instant::now());
            match self.lines.1.recv_timeout(rest) {
                Ok(line) => self.line(line),
                Err(RecvTimeoutError::Timeout) if at >= end => return,
                Err(RecvTimeoutError::Timeout) => {
                    let is_due = |(due, _): &(Instant, Later)| *due <= at;
                    if let Some(place) = self.later.iter().position(is_due) {
                        let (_, later) = self.later.swap_remove(place);
                        self.do_later(later);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Has each node do something, and waits until each says so.
    fn stage(&mut self, command: &str, answer: &str) {
        self.note(command);
        let end = Instant::now() + PATIENCE;
        // A program that was started just now says its run first.
        while self.nodes.iter().any(|node| !node.is_up) {
            self.listen_once(end, command);
        }
        for number in 0..self.nodes.len() {
            let program = self.nodes[number].program.as_mut();
            if program.is_none_or(|it| it.tell(command).is_err()) {
                self.fail("a node does not listen");
            }
        }
        while self.nodes.iter().any(|node| node.stage != answer) {
            self.listen_once(end, command);
        }
    }

    fn listen_once(&mut self, end: Instant, command: &str) {
        let rest = end.saturating_duration_since(Instant::now());
        match self.lines.1.recv_timeout(rest) {
            Ok(line) => self.line(line),
            Err(_) => self.fail(&format!("the nodes come to no end of {command:?}")),
        }
    }

    fn line(&mut self, (number, starts, said): Said) {
        let node = &mut self.nodes[number];
        let name = node.name.clone();
        let Some(said) = said else {
            let was_killed = node.starts != starts || node.state == State::IsDead;
            if !was_killed && !self.is_over {
                self.fail(&format!("{name} has ended by itself"));
            }
            return;
        };
        // The numbers of messages are too many for a report.
        let says_all = env::var_os("GANGER_CHAOS_LOG").is_some_and(|it| it == "all");
        let is_frequent = said.starts_with("got ") || said.starts_with("used ");
        if !is_frequent || says_all {
            self.note(&format!("{name} {said}"));
        }
        if self.read(number, starts, &said).is_none() {
            self.account.fault(format!("{name} says {said:?}"));
        }
    }

    /// Reads a line of a node's program. `None`: the line is a fault.
    fn read(&mut self, number: usize, starts: u64, said: &str) -> Option<()> {
        let mut words = said.split(' ');
        let what = words.next()?;
        let node = &mut self.nodes[number];
        let name = node.name.clone();
        if node.starts != starts {
            // The last words of a program that was killed, behind the start of its successor.
            return Some(());
        }
        let mut number_of = || words.next()?.parse::<u64>().ok();
        match what {
            "up" => {
                let [_run, _receiver] = [number_of()?, number_of()?];
                node.is_up = true;
                if let Ok(address) = words.next()?.parse() {
                    node.proxy.aim(address);
                }
            }
            "got" => {
                let receiver = number_of()?;
                let sender = (words.next()?.to_owned(), next(&mut words)?);
                let (first, last) = (next(&mut words)?, next(&mut words)?);
                self.account.got(&sender, receiver, first, last);
            }
            "down" => {
                let own = (name, number_of()?);
                let other = (words.next()?.to_owned(), next(&mut words)?);
                self.account.ended(&own, &other, next(&mut words)?);
            }
            "sent" => {
                let own = (name, number_of()?);
                let peer = (words.next()?.to_owned(), next(&mut words)?);
                let (receiver, count) = (next(&mut words)?, next(&mut words)?);
                self.sent.push((own, peer, receiver, count));
            }
            "monitors" => {
                let (set, told) = (number_of()?, number_of()?);
                self.account.monitors(set, told);
                node.stage = what.to_owned();
            }
            "held" | "used" | "found" => {
                let of = words.next()?;
                let token = next(&mut words)?;
                let time = next(&mut words)?..=next(&mut words)?;
                self.account.owner(of, what, token, time);
            }
            "drained" | "ended" => node.stage = what.to_owned(),
            _ => return None,
        }
        Some(())
    }
}

fn next<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<u64> {
    words.next()?.parse().ok()
}
