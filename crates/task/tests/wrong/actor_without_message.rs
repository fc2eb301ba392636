//! An actor does not say which messages it takes.

use ganger_proc_api::{Actor, Context, StepOutput, StepResult};
use ganger_sched::Scheduler;

struct Total(u64);

impl Actor for Total {
    fn receive(&mut self, _: &Context, number: u64, _: &mut StepOutput) -> StepResult {
        self.0 += number;
        Ok(())
    }
}

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(Total(0));
}
