//! A future is passed, and not the function that makes it.

use ganger_sched::Scheduler;

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(async { Ok(42) });
}
