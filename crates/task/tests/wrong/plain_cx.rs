//! A plain `Cx` receives any message, and not numbers.

use ganger_sched::Scheduler;
use ganger_task::Cx;

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(async |cx: Cx| {
        let mut sum: u64 = 0;
        while let Some(number) = cx.recv().await {
            sum += number;
        }
        Ok(sum)
    });
}
