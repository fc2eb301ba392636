//! The cases of all engines, between two machines of a simulation over a twin.

use super::harness::{Simulated, Wires, in_worlds};
use super::troubled;
use ganger_cluster::{Faults, Twin, TwinEngine};
use ganger_sched::Builder;
use ganger_sim::World;

ganger_cluster::cases!(within in_worlds, Simulated<'_, '_, OverTwin>);

#[derive(Clone)]
struct OverTwin(Twin);

impl Wires for OverTwin {
    type Engine = TwinEngine;

    fn start(world: &World<'_>, is_calm: bool) -> Self {
        let twin = Twin::new(0);
        twin.hints(world.choose(2) == 1);
        if !is_calm && world.choose(2) == 1 {
            twin.faults(troubled());
        }
        world.carrier(twin.clone());
        Self(twin)
    }

    fn add_to(&self, builder: Builder) -> Builder {
        builder
    }

    fn engine(&self, _: &'static str) -> TwinEngine {
        self.0.port()
    }

    fn disturb(&self) {
        let mut faults = troubled();
        faults.drop = [200, 200];
        faults.repeat = 100;
        faults.reorder = 100;
        self.0.faults(faults);
    }

    fn throttle(&self, bytes: u64) {
        let mut faults = Faults::default();
        faults.bandwidth = Some(bytes);
        // A frame is under way for a quarter of a second at most.
        faults.room = usize::try_from(bytes / 4).unwrap();
        self.0.faults(faults);
    }
}
