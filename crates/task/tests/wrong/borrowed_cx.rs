//! An async function borrows its `Cx`.

use ganger_proc_api::BoxError;
use ganger_sched::Scheduler;
use ganger_task::Cx;

async fn sum(cx: &Cx<u64>) -> Result<u64, BoxError> {
    Ok(cx.recv().await.unwrap_or(0))
}

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(sum);
}
