//! A struct is neither an actor nor a process.

use ganger_sched::Scheduler;

struct Total(u64);

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(Total(0));
}
