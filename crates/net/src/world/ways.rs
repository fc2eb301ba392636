//! The ways between the machines of a simulated network: which are cut, and how long they take.

use super::traffic::{EndId, Event, Traffic};
use std::mem;
use std::sync::Arc;

impl Traffic {
    /// Returns the time of a machine.
    pub(super) fn now_at(&self, machine: usize) -> u64 {
        self.nows.get(machine).copied().unwrap_or_default()
    }

    pub(super) fn machine_of(&self, at: EndId) -> usize {
        let connection = self.connections.get(&at.connection);
        connection.map_or(self.present, |it| it.machines[at.end])
    }

    pub(super) fn way(&self, from: usize, to: usize) -> (Arc<str>, Arc<str>) {
        let name = |machine: usize| self.names.get(machine).cloned().unwrap_or_default();
        (name(from), name(to))
    }

    /// Schedules an event at the machine where it happens, now.
    pub(super) fn put_now(&mut self, event: Event) {
        let machine = match &event {
            Event::OldestOf(from) => self.machine_of(from.other()),
            Event::Connect(id) => self.machine_of(EndId {
                connection: *id,
                end: 1,
            }),
            Event::Connected(id) | Event::Refused(id) => self.machine_of(EndId {
                connection: *id,
                end: 0,
            }),
            Event::Bytes(at, _) | Event::End(at) | Event::Reset(at) | Event::Room(at, _) => {
                self.machine_of(*at)
            }
            Event::Packet(packet) => self.mailboxes.machine(packet.to).unwrap_or(self.present),
            Event::Raised(_) => self.present,
        };
        self.new.push((machine, self.now_at(machine), event));
    }

    /// Returns whether an event for this end waits, as the way between the machines is cut.
    pub(super) fn is_held(&self, event: &Event) -> bool {
        let to = match event {
            Event::OldestOf(from) => from.other(),
            Event::Bytes(at, _) | Event::End(at) | Event::Reset(at) | Event::Room(at, _) => *at,
            _ => return false,
        };
        let way = self.way(self.machine_of(to.other()), self.machine_of(to));
        self.cut_ways.contains(&way)
    }

    /// Cuts the way from a machine to another, or joins it again.
    pub(super) fn cut_way(&mut self, from: &str, to: &str, is_cut: bool) {
        let way = (from.into(), to.into());
        if is_cut {
            self.cut_ways.insert(way);
        } else if self.cut_ways.remove(&way) {
            self.let_go();
        }
    }

    /// Releases the held events in the order of arrival. Events on a way with a further cut wait
    /// again.
    pub(super) fn let_go(&mut self) {
        for event in mem::take(&mut self.held) {
            self.put_now(event);
        }
    }

    pub(super) fn delay(&mut self, from: &str, to: &str, nanos: u64) {
        self.delays.insert((from.into(), to.into()), nanos);
    }

    /// Removes a lost machine: its addresses are free, and nothing listens there.
    pub(super) fn lose(&mut self, machine: usize) {
        self.listeners.retain(|_, queue| queue.machine != machine);
        self.mailboxes.lose(machine);
    }

    /// Breaks the connections of a gone machine: the other ends learn of the break.
    pub(super) fn reset_machine(&mut self, machine: usize) {
        let mut resets = Vec::new();
        for (&connection, it) in &self.connections {
            for end in [0, 1] {
                if it.machines[end] == machine && it.machines[1 - end] != machine {
                    resets.push(Event::Reset(EndId {
                        connection,
                        end: 1 - end,
                    }));
                }
            }
        }
        resets.into_iter().for_each(|it| self.put_now(it));
    }
}
