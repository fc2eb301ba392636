//! A closure for steps is passed without `process_fn`.

use ganger_sched::Scheduler;

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(|_, _, _| Ok(()));
}
