//! A tree of processes: leaves send their number up, parents the sum.

use crate::whole::gate::Gate;
use ganger_proc_api::{BoxError, Context, Event, Events, Pid, Process, StepOutput, StepResult};

const CHILDREN: u64 = 10;

/// A process with levels of others below it, or a leaf.
pub(super) struct Node {
    levels: u32,
    number: u64,
    up: Up,
    left: u64,
    sum: u64,
}

/// Where a sum goes.
enum Up {
    Parent(Pid),
    Gate(&'static Gate),
}

impl Node {
    /// Creates the process above all others.
    pub(super) fn root(levels: u32, gate: &'static Gate) -> Self {
        Self::new(levels, 0, Up::Gate(gate))
    }

    fn new(levels: u32, number: u64, up: Up) -> Self {
        Self {
            levels,
            number,
            up,
            left: CHILDREN,
            sum: 0,
        }
    }

    fn send_up(&self, ctx: &Context, number: u64) -> Result<(), BoxError> {
        match self.up {
            Up::Parent(parent) => ctx.send(parent, "sum", number)?,
            Up::Gate(gate) => gate.hit_with(number),
        }
        Ok(())
    }
}

impl Process for Node {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.levels == 0 {
            self.send_up(ctx, self.number)?;
            out.done(());
            return Ok(());
        }
        if events.is_empty() {
            let parent = ctx.pid();
            for child in 0..CHILDREN {
                let number = self.number * CHILDREN + child;
                let child = Self::new(self.levels - 1, number, Up::Parent(parent));
                ctx.submit(child, "main", ())?;
            }
        }
        for event in events {
            if let Event::Message(message) = event {
                let sum = message.payloads.first().and_then(|sum| sum.as_u64());
                self.sum += sum.expect("a number");
                self.left -= 1;
            }
        }
        if self.left == 0 {
            self.send_up(ctx, self.sum)?;
            out.done(());
        }
        Ok(())
    }
}
