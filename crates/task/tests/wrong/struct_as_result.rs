//! An async function returns a value, and not a `Result`.

use ganger_sched::Scheduler;
use ganger_task::Cx;

struct Sum(u64);

async fn sum(cx: Cx<u64>) -> Sum {
    Sum(cx.recv().await.unwrap_or(0))
}

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(sum);
}
