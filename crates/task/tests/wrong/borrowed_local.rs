//! An async closure borrows from the function that starts the task.

use ganger_sched::Scheduler;
use ganger_task::Cx;

fn main() {
    let name = String::from("ann");
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(async |_: Cx| Ok(name.len()));
}
