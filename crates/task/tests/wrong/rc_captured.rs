//! A closure takes an `Rc` along.

use ganger_sched::Scheduler;
use ganger_task::Cx;
use std::rc::Rc;

fn main() {
    let one = Rc::new(1);
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(async move |_: Cx| Ok(*one));
}
