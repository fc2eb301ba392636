//! An async function has an error of another type.

use ganger_sched::Scheduler;
use ganger_task::{Cx, WaitError};
use std::time::Duration;

async fn rest(cx: Cx) -> Result<(), WaitError> {
    cx.sleep(Duration::from_secs(1)).await
}

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(rest);
}
