//! An async closure ends without `Ok(())`.

use ganger_sched::Scheduler;
use ganger_task::Cx;

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(async |cx: Cx<String>| {
        while let Some(line) = cx.recv().await {
            println!("{line}");
        }
    });
}
