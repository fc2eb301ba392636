//! A message has another type than the task takes.

use ganger_sched::Scheduler;
use ganger_task::Cx;

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let sum = scheduler.spawn(async |cx: Cx<u64>| Ok(cx.recv().await)).unwrap();
    let _ = sum.send("42");
}
