//! A guard of a mutex of std is held over an await.

use ganger_sched::Scheduler;
use ganger_task::Cx;
use std::sync::{Arc, Mutex};

fn main() {
    let sum = Arc::new(Mutex::new(0));
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(async move |cx: Cx<u64>| {
        let mut sum = sum.lock().unwrap();
        *sum += cx.recv().await.unwrap_or(0);
        Ok(*sum)
    });
}
