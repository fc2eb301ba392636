//! The events of a simulated network, by the timers of each of its schedulers.

use super::faults::{Faults, Site};
use super::traffic::{Event, Traffic};
use crate::poller::{Deadline, IoEvent};
use ganger_sched::{Instant, Timers};
use ganger_sync::sync::lock;
use ganger_time::internal::{OnTime, TimerKey as CallKey};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// A machine's part of a simulated network.
pub(crate) struct World {
    sea: Arc<Sea>,
    machine: usize,
    /// The timers of the machine.
    timers: OnceLock<Timers>,
}

/// A simulated network, of a single machine or of several.
#[derive(Default)]
pub(crate) struct Sea(Mutex<State>);

/// Names a deadline until it expires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimerKey((u64, u64));

#[derive(Default)]
struct State {
    machines: Vec<Machine>,
    traffic: Traffic,
    paths: BTreeMap<PathBuf, SocketAddr>,
    hosts: BTreeMap<String, Vec<IpAddr>>,
}

/// The coming events of a machine. Each is carried out where its end is, by that machine's timers.
#[derive(Default)]
struct Machine {
    /// The timers, and the receiver of their calls.
    scheduler: Option<(Timers, Weak<dyn OnTime>)>,
    /// The events to come, by their times and then in the order of arrival.
    coming: BTreeMap<(u64, u64), Happens>,
    put: u64,
    /// The time of the first event, and the timer for it.
    armed: Option<(u64, CallKey)>,
    is_over: bool,
    /// Its acts have no effect elsewhere.
    has_crashed: bool,
}

enum Happens {
    Event(Event),
    Deadline(Deadline),
}

impl Machine {
    fn put(&mut self, at: u64, event: Happens) -> TimerKey {
        self.put += 1;
        let key = (at, self.put);
        if !self.is_over {
            self.coming.insert(key, event);
        }
        TimerKey(key)
    }

    fn now(&self) -> u64 {
        let now = |(timers, _): &(Timers, _)| timers.now().as_nanos();
        self.scheduler.as_ref().map_or(0, now)
    }

    /// Sets the timer for the first event: in the next nanosecond at the earliest, so that a thread
    /// of the scheduler carries the event out.
    fn arm_first(&mut self) {
        let first = self.coming.first_key_value().map(|(&(at, _), _)| at);
        if self.armed.map(|(at, _)| at) == first {
            return;
        }
        let now = self.now();
        let Some((timers, on_time)) = &self.scheduler else {
            return;
        };
        if let Some((_, timer)) = self.armed.take() {
            timers.cancel_call(timer);
        }
        let Some((first, on_time)) = first.zip(on_time.upgrade()) else {
            return;
        };
        let at = Instant::from_nanos(first.max(now + 1));
        // Simulated time stands still in this call: the timer is not due yet.
        let timer = timers.call_at(at, on_time).ok();
        self.armed = timer.map(|timer| (first, timer));
    }
}

impl Sea {
    /// Adds a machine.
    pub(crate) fn join(self: &Arc<Self>) -> World {
        let mut state = lock(&self.0);
        state.machines.push(Machine::default());
        state.traffic.names.push("".into());
        let machine = state.machines.len() - 1;
        drop(state);
        World {
            sea: Arc::clone(self),
            machine,
            timers: OnceLock::new(),
        }
    }

    /// Calls `f` for a machine, and schedules the events that it adds to the traffic.
    fn with<R>(&self, machine: usize, f: impl FnOnce(&mut Traffic) -> R) -> R {
        let mut state = lock(&self.0);
        let State {
            machines, traffic, ..
        } = &mut *state;
        traffic.present = machine;
        traffic.nows.clear();
        traffic.nows.extend(machines.iter().map(Machine::now));
        let result = f(traffic);
        let is_heard = machines.get(machine).is_none_or(|it| !it.has_crashed);
        for (to, at, event) in traffic.take_new() {
            if is_heard && let Some(to) = machines.get_mut(to) {
                to.put(at, Happens::Event(event));
            }
        }
        machines.iter_mut().for_each(Machine::arm_first);
        result
    }

    pub(crate) fn set_faults(&self, seed: u64, faults: Faults) {
        self.outside(|traffic| traffic.set_faults(seed, faults));
    }

    pub(crate) fn cut(&self, from: &str, to: &str, is_cut: bool) {
        self.outside(|traffic| traffic.cut_way(from, to, is_cut));
    }

    pub(crate) fn delay(&self, from: &str, to: &str, nanos: u64) {
        self.outside(|traffic| traffic.delay(from, to, nanos));
    }

    /// Calls `f` for no machine.
    fn outside<R>(&self, f: impl FnOnce(&mut Traffic) -> R) -> R {
        self.with(usize::MAX, f)
    }

    /// Ends the present life of the machine. With `resets` the other machines learn of the crash.
    pub(crate) fn crash(&self, name: &str, resets: bool) {
        let mut state = lock(&self.0);
        let names = &state.traffic.names;
        let Some(machine) = names.iter().rposition(|it| **it == *name) else {
            return;
        };
        let gone = &mut state.machines[machine];
        if gone.has_crashed {
            return;
        }
        gone.is_over = true;
        gone.has_crashed = true;
        gone.coming.clear();
        drop(state);
        self.outside(|traffic| {
            traffic.lose(machine);
            if resets {
                traffic.reset_machine(machine);
            }
        });
    }
}

impl World {
    /// Takes the timers of the scheduler, and the receiver of their calls. The machine has this
    /// name: connections to its former lives break now.
    pub(crate) fn attach(&self, name: &str, timers: Timers, on_time: Weak<dyn OnTime>) {
        let _first = self.timers.set(timers.clone());
        let mut state = lock(&self.sea.0);
        let lives = state.traffic.names.iter().enumerate();
        let lives: Vec<_> = lives
            .filter(|(place, it)| !name.is_empty() && ***it == *name && *place != self.machine)
            .map(|(place, _)| place)
            .collect();
        state.traffic.names[self.machine] = name.into();
        state.machines[self.machine].scheduler = Some((timers, on_time));
        drop(state);
        self.sea.outside(|traffic| {
            for life in lives {
                traffic.reset_machine(life);
            }
        });
    }

    pub(crate) fn now(&self) -> u64 {
        let timers = self.timers.get();
        let timers = timers.expect("the network has no scheduler: add it to a builder");
        timers.now().as_nanos()
    }

    /// Calls `f`, and schedules the events that it adds to the traffic.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Traffic) -> R) -> R {
        self.sea.with(self.machine, f)
    }

    fn own<R>(&self, f: impl FnOnce(&mut Machine) -> R) -> R {
        f(&mut lock(&self.sea.0).machines[self.machine])
    }

    pub(crate) fn arm(&self, deadline: Deadline) -> TimerKey {
        self.own(|machine| {
            let key = machine.put(deadline.at, Happens::Deadline(deadline));
            machine.arm_first();
            key
        })
    }

    pub(crate) fn disarm(&self, key: TimerKey) {
        self.own(|machine| {
            machine.coming.remove(&key.0);
            machine.arm_first();
        });
    }

    /// Carries out the due events. Returns the perhaps ready sockets, and the passed deadlines.
    pub(crate) fn fire(&self) -> (Vec<IoEvent>, Vec<Deadline>) {
        let (mut events, mut deadlines) = (Vec::new(), Vec::new());
        let now = self.now();
        self.own(|machine| {
            machine.armed = None;
            while let Some(first) = machine.coming.first_entry()
                && first.key().0 <= now
            {
                match first.remove() {
                    Happens::Event(event) => events.push(event),
                    Happens::Deadline(deadline) => deadlines.push(deadline),
                }
            }
        });
        let mut ready = Vec::new();
        self.with(|traffic| {
            for event in events {
                traffic.happen(event, &mut ready);
            }
        });
        (ready, deadlines)
    }

    pub(crate) fn detach(&self) {
        self.own(|machine| {
            machine.is_over = true;
            machine.coming.clear();
            machine.arm_first();
        });
    }

    pub(crate) fn set_faults(&self, seed: u64, faults: Faults) {
        self.with(|traffic| traffic.set_faults(seed, faults));
    }

    pub(crate) fn set_host(&self, name: &str, addresses: &[IpAddr]) {
        (lock(&self.sea.0).hosts).insert(name.to_owned(), addresses.to_vec());
    }

    /// Returns the addresses of a host.
    pub(crate) fn host(&self, name: &str) -> Option<Vec<IpAddr>> {
        lock(&self.sea.0).hosts.get(name).cloned()
    }

    pub(crate) fn partition(&self, site: Site, is_cut: bool) {
        let address = self.address(site);
        self.with(|traffic| traffic.partition(address, is_cut));
    }

    pub(crate) fn reset_all(&self, site: Site) {
        let address = self.address(site);
        self.with(|traffic| traffic.reset_all(address));
    }

    #[cfg_attr(not(unix), allow(dead_code, reason = "there are no signals"))]
    pub(crate) fn raise(&self, signal: i32) {
        self.with(|traffic| traffic.raise(signal));
    }

    /// Returns the address of a site. Each path has a reserved address.
    pub(crate) fn address(&self, site: Site) -> SocketAddr {
        let path = match site {
            Site::Address(address) => return address,
            Site::Path(path) => path,
        };
        let paths = &mut lock(&self.sea.0).paths;
        let next = u128::from(u64::MAX) << 64 | paths.len() as u128;
        let new = SocketAddr::new(Ipv6Addr::from_bits(next).into(), 1);
        *paths.entry(path).or_insert(new)
    }
}
