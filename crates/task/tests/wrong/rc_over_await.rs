//! An `Rc` lives over an await.

use ganger_sched::Scheduler;
use ganger_task::Cx;
use std::rc::Rc;

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(async |cx: Cx<u64>| {
        let one = Rc::new(1);
        let other = cx.recv().await.unwrap_or(0);
        Ok(*one + other)
    });
}
