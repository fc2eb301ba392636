//! A tree of tasks: leaves send their number up, parents the sum.

use super::Tokio;
use crate::whole::contestant::Timed;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const CHILDREN: u64 = 10;

pub(super) fn run(tokio: &Tokio, levels: u32) -> Timed {
    let gate = tokio.gate;
    gate.time(1, || {
        let _inside = tokio.runtime.enter();
        let (up, mut sums) = unbounded_channel();
        spawn(levels, 0, up);
        tokio.runtime.spawn(async move {
            gate.hit_with(sums.recv().await.expect("a sum"));
        });
        Ok(())
    })
}

/// Spawns a task with levels of others below it, or a leaf.
fn spawn(levels: u32, number: u64, up: UnboundedSender<u64>) {
    tokio::spawn(async move {
        let sum = if levels == 0 {
            number
        } else {
            let (from, mut sums) = unbounded_channel();
            for child in 0..CHILDREN {
                spawn(levels - 1, number * CHILDREN + child, from.clone());
            }
            let mut sum = 0;
            for _ in 0..CHILDREN {
                sum += sums.recv().await.expect("a number");
            }
            sum
        };
        up.send(sum).expect("the parent is there");
    });
}
