//! An answer has another type than the question asks for.

use ganger_proc_api::{Reply, actor_fn};
use ganger_sched::Scheduler;

fn main() {
    let scheduler = Scheduler::start_default().unwrap();
    let _ = scheduler.spawn(actor_fn(|_, reply: Reply<u64>, _| {
        reply.complete("42");
        Ok(())
    }));
}
