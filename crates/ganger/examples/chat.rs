//! A chat between terminals of a machine: a name in each.
//!
//! `cargo run -p ganger --release --features cluster --example chat -- alpha`
//!
//! Over NATS, with `ganger-cluster-nats`: `Cluster::builder().engine(Nats::new("nats://…"))` and
//! `.join(&scheduler)` in the place of `join_local`.

use ganger::BoxError;
use ganger::cluster::NodeChange;
use ganger::direct;
use ganger::prelude::*;
use std::io::stdin;
use std::time::Duration;

pub(crate) fn main() -> Result<(), BoxError> {
    let usage = "a name is missing: cargo run … --example chat -- alpha";
    let name = std::env::args().nth(1).ok_or(usage)?;
    let scheduler = Scheduler::builder().node(&*name).start()?;
    let node = direct::join_local(&scheduler)?;
    let lobby = node.groups("chat").group("lobby");

    let screen = scheduler.spawn(actor_fn(|_, line: String, _| {
        println!("{line}");
        Ok(())
    }))?;
    lobby.join(&screen)?;
    let guests = scheduler.spawn(actor_fn(|_, change: NodeChange, _| {
        match change {
            NodeChange::Up { node, .. } => println!("{node} is here"),
            NodeChange::Down { node, why, .. } => println!("{node} is gone: {why}"),
            _ => {}
        }
        Ok(())
    }))?;
    node.watch_nodes(guests.address().recipient());

    println!("you are {name}; write lines, and end with Ctrl-D");
    for line in stdin().lines() {
        lobby.broadcast(&format!("{name}: {}", line?));
    }
    scheduler.stop(Duration::from_secs(1))?;
    Ok(())
}
