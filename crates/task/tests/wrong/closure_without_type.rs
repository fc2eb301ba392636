//! A closure does not say the type of its parameter.

use ganger_sched::Scheduler;

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(async |cx| Ok(cx.recv().await));
}
