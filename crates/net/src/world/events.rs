//! The events of a simulated network, at the seats of the scheduler's threads.

use super::faults::{Faults, Site};
use super::traffic::{Event, Traffic};
use crate::poller::{Deadline, IoEvent};
use ganger_sched::{Alarm, Instant, Seat};
use ganger_sync::sync::lock;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

/// A simulated network.
#[derive(Default)]
pub(crate) struct World {
    alarm: OnceLock<Alarm>,
    state: Mutex<State>,
}

/// The events of a seat, by their times and then in the order of arrival.
type Seated = BTreeMap<(u64, u64), Happens>;

/// Names a deadline until it expires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimerKey {
    seat: usize,
    at: (u64, u64),
}

#[derive(Default)]
struct State {
    seats: Vec<Seated>,
    put: u64,
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
    /// Adds an event to the seat of the thread. Returns the time at which the alarm must ring, if
    /// the seat is due earlier than before.
    fn put(&mut self, alarm: &Alarm, at: u64, event: Happens) -> (TimerKey, Option<Instant>) {
        let seat = alarm.seat();
        self.put += 1;
        let key = (at, self.put);
        if !self.is_over {
            self.seats[seat.number()].insert(key, event);
        }
        let due = self.due(seat);
        let ring = alarm.set(seat, due).then_some(due);
        let seat = seat.number();
        (TimerKey { seat, at: key }, ring)
    }

    fn due(&self, seat: Seat) -> Instant {
        let first = self.seats[seat.number()].first_key_value();
        first.map_or(Instant::NEVER, |(&(at, _), _)| Instant::from_nanos(at))
    }
}

impl World {
    pub(crate) fn attach(&self, alarm: Alarm) {
        lock(&self.state)
            .seats
            .resize_with(alarm.seats(), Seated::new);
        assert!(
            self.alarm.set(alarm).is_ok(),
            "the network belongs to another scheduler: make a new `SimNet` for each scheduler"
        );
    }

    fn alarm(&self) -> &Alarm {
        let alarm = self.alarm.get();
        alarm.expect("the network has no scheduler: add it to a builder by `SimNet::add_to`")
    }

    pub(crate) fn now(&self) -> u64 {
        self.alarm().now().as_nanos()
    }

    /// Calls `f`, and schedules the events that it adds to the traffic.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Traffic) -> R) -> R {
        let alarm = self.alarm();
        let mut state = lock(&self.state);
        state.traffic.now = alarm.now().as_nanos();
        let result = f(&mut state.traffic);
        let mut ring = None;
        for (at, event) in state.traffic.take_new() {
            ring = state.put(alarm, at, Happens::Event(event)).1.or(ring);
        }
        drop(state);
        if let Some(at) = ring {
            alarm.ring(at);
        }
        result
    }

    pub(crate) fn arm(&self, deadline: Deadline) -> TimerKey {
        let alarm = self.alarm();
        let happens = Happens::Deadline(deadline);
        let (key, ring) = lock(&self.state).put(alarm, deadline.at, happens);
        if let Some(at) = ring {
            alarm.ring(at);
        }
        key
    }

    pub(crate) fn disarm(&self, key: TimerKey) {
        let mut state = lock(&self.state);
        state.seats[key.seat].remove(&key.at);
        let seat = Seat::from_number(key.seat);
        // The seat is due no earlier than before: no ring.
        let _ = self.alarm().set(seat, state.due(seat));
    }

    /// Carries out the due events of a seat. Returns events of sockets, and passed deadlines.
    pub(crate) fn deliver(
        &self,
        seat: Seat,
        now: Instant,
        most: usize,
    ) -> (Vec<IoEvent>, Vec<Deadline>) {
        let (mut events, mut deadlines) = (Vec::new(), Vec::new());
        let mut state = lock(&self.state);
        for _ in 0..most {
            let seated = &mut state.seats[seat.number()];
            let Some(first) = seated.first_entry() else {
                break;
            };
            if first.key().0 > now.as_nanos() {
                break;
            }
            match first.remove() {
                Happens::Event(event) => events.push(event),
                Happens::Deadline(deadline) => deadlines.push(deadline),
            }
        }
        // The seat is due no earlier than before: no ring.
        let _ = self.alarm().set(seat, state.due(seat));
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
        for seat in 0..state.seats.len() {
            state.seats[seat].clear();
            let _ = self.alarm().set(Seat::from_number(seat), Instant::NEVER);
        }
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
