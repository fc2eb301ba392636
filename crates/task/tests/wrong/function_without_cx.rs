//! An async function takes no `Cx`.

use ganger_proc_api::BoxError;
use ganger_sched::Scheduler;

async fn answer() -> Result<u64, BoxError> {
    Ok(42)
}

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(answer);
}
