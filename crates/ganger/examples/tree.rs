//! A supervision tree, printed while the tree heals.
//! `cargo run -p ganger --example tree`
//!
//! The shop restarts a failed child alone: the till and the stock heal by themselves. The stock, a
//! supervisor too, restarts all: its shelf and its scale begin anew together.

use ganger::prelude::*;
use ganger::supervise::{ChildInfo, ChildState, Tree};
use std::time::Duration;

/// Counts its messages, and fails with a zero.
struct Counter(u32);

impl Actor for Counter {
    type Message = u32;

    fn receive(&mut self, _: &Context, number: u32, _: &mut StepOutput) -> StepResult {
        if number == 0 {
            return Err(format!("nothing to add to {}", self.0).into());
        }
        self.0 += number;
        Ok(())
    }
}

fn stock() -> Supervisor {
    Supervisor::one_for_all()
        .label("stock")
        .intensity(1, Duration::from_secs(5))
        .child("shelf", || Counter(0))
        .child("scale", || Counter(0))
}

pub(crate) fn shop() -> Supervisor {
    Supervisor::one_for_one()
        .label("shop")
        .with(ChildSpec::new("till", || Counter(0)).in_place())
        .child("stock", stock)
        .with(ChildSpec::new("audit", || Counter(0)).back_off(Duration::from_millis(20)))
}

/// Has a child fail, and waits until the tree is whole again.
pub(crate) fn hurt(tree: &Tree, child: &str) -> Result<(), BoxError> {
    let before = count(&tree.children());
    let mut changes = tree.changes();
    tree.address::<u32>(child)?.send(0)?;
    loop {
        let children = changes.next_blocking()?;
        if count(&children) != before && is_whole(&children) {
            return Ok(());
        }
    }
}

fn count(children: &[ChildInfo]) -> u64 {
    let below = |it: &ChildInfo| it.children.as_deref().map_or(0, count);
    children
        .iter()
        .map(|it| 1_000 * it.restarts + below(it))
        .sum()
}

fn is_whole(children: &[ChildInfo]) -> bool {
    let is_up = |it: &ChildInfo| it.children.as_deref().is_none_or(is_whole);
    let runs = |it: &ChildInfo| it.state == ChildState::Runs && is_up(it);
    children.iter().all(runs)
}

fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let tree = shop().start(&scheduler)?;
    println!("{tree}\n");
    // The stock gives up at the second failure of its own, and the shop makes a new stock.
    for child in ["till", "audit", "stock/scale", "stock/shelf"] {
        hurt(&tree, child)?;
        println!("{child} has failed:\n{tree}\n");
    }
    println!("the end: {}", tree.stop());
    Ok(())
}
