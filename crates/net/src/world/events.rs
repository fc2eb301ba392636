//! The events of a simulated network, by the timers of its scheduler.

use super::faults::{Faults, Site};
use super::traffic::{Event, Traffic};
use crate::poller::{Deadline, IoEvent};
use ganger_sched::{Instant, Timers};
use ganger_sync::sync::lock;
use ganger_time::internal::{OnTime, TimerKey as CallKey};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, Weak};

/// A simulated network.
#[derive(Default)]
pub(crate) struct World {
    /// The timers, and the receiver of their calls.
    scheduler: OnceLock<(Timers, Weak<dyn OnTime>)>,
    state: Mutex<State>,
}

/// Names a deadline until it expires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimerKey((u64, u64));

#[derive(Default)]
struct State {
    /// The events to come, by their times and then in the order of arrival.
    coming: BTreeMap<(u64, u64), Happens>,
    put: u64,
    /// The time of the first event, and the timer for it.
    armed: Option<(u64, CallKey)>,
    traffic: Traffic,
    paths: BTreeMap<PathBuf, SocketAddr>,
    hosts: BTreeMap<String, Vec<IpAddr>>,
    is_over: bool,
}

enum Happens {
    Event(Event),
    Deadline(Deadline),
}

impl State {
    fn put(&mut self, at: u64, event: Happens) -> TimerKey {
        self.put += 1;
        let key = (at, self.put);
        if !self.is_over {
            self.coming.insert(key, event);
        }
        TimerKey(key)
    }
}

impl World {
    /// Takes the timers of the scheduler, and the receiver of their calls.
    pub(crate) fn attach(&self, timers: Timers, on_time: Weak<dyn OnTime>) {
        let attached = self.scheduler.set((timers, on_time));
        assert!(
            attached.is_ok(),
            "the network belongs to another scheduler: make a new `SimNet` for each scheduler"
        );
    }

    fn scheduler(&self) -> &(Timers, Weak<dyn OnTime>) {
        let scheduler = self.scheduler.get();
        scheduler.expect("the network has no scheduler: add it to a builder by `SimNet::add_to`")
    }

    pub(crate) fn now(&self) -> u64 {
        self.scheduler().0.now().as_nanos()
    }

    /// Sets the timer for the first event: in the next nanosecond at the earliest, so that a thread
    /// of the scheduler carries the event out.
    fn arm_first(&self, state: &mut State) {
        let first = state.coming.first_key_value().map(|(&(at, _), _)| at);
        if state.armed.map(|(at, _)| at) == first {
            return;
        }
        let (timers, on_time) = self.scheduler();
        if let Some((_, timer)) = state.armed.take() {
            timers.cancel_call(timer);
        }
        let Some((first, on_time)) = first.zip(on_time.upgrade()) else {
            return;
        };
        let at = Instant::from_nanos(first.max(self.now() + 1));
        // Simulated time stands still in this call: the timer is not due yet.
        let timer = timers.call_at(at, on_time).ok();
        state.armed = timer.map(|timer| (first, timer));
    }

    /// Calls `f`, and schedules the events that it adds to the traffic.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Traffic) -> R) -> R {
        let mut state = lock(&self.state);
        state.traffic.now = self.now();
        let result = f(&mut state.traffic);
        for (at, event) in state.traffic.take_new() {
            state.put(at, Happens::Event(event));
        }
        self.arm_first(&mut state);
        result
    }

    pub(crate) fn arm(&self, deadline: Deadline) -> TimerKey {
        let mut state = lock(&self.state);
        let key = state.put(deadline.at, Happens::Deadline(deadline));
        self.arm_first(&mut state);
        key
    }

    pub(crate) fn disarm(&self, key: TimerKey) {
        let mut state = lock(&self.state);
        state.coming.remove(&key.0);
        self.arm_first(&mut state);
    }

    /// Carries out the due events. Returns the sockets that may be ready, and the deadlines that
    /// have passed.
    pub(crate) fn fire(&self) -> (Vec<IoEvent>, Vec<Deadline>) {
        let (mut events, mut deadlines) = (Vec::new(), Vec::new());
        let now = self.now();
        let mut state = lock(&self.state);
        state.armed = None;
        while let Some(first) = state.coming.first_entry()
            && first.key().0 <= now
        {
            match first.remove() {
                Happens::Event(event) => events.push(event),
                Happens::Deadline(deadline) => deadlines.push(deadline),
            }
        }
        drop(state);
        let mut ready = Vec::new();
        self.with(|traffic| {
            for event in events {
                traffic.happen(event, &mut ready);
            }
        });
        (ready, deadlines)
    }

    pub(crate) fn detach(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        state.coming.clear();
        self.arm_first(&mut state);
    }

    pub(crate) fn set_faults(&self, seed: u64, faults: Faults) {
        self.with(|traffic| traffic.set_faults(seed, faults));
    }

    pub(crate) fn set_host(&self, name: &str, addresses: &[IpAddr]) {
        (lock(&self.state).hosts).insert(name.to_owned(), addresses.to_vec());
    }

    /// The addresses of a host.
    pub(crate) fn host(&self, name: &str) -> Option<Vec<IpAddr>> {
        lock(&self.state).hosts.get(name).cloned()
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

    /// The address of a site. Each path has a reserved address.
    pub(crate) fn address(&self, site: Site) -> SocketAddr {
        let path = match site {
            Site::Address(address) => return address,
            Site::Path(path) => path,
        };
        let paths = &mut lock(&self.state).paths;
        let next = u128::from(u64::MAX) << 64 | paths.len() as u128;
        let new = SocketAddr::new(Ipv6Addr::from_bits(next).into(), 1);
        *paths.entry(path).or_insert(new)
    }
}
