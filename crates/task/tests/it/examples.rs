//! The example ends, and asserts what it comes to.

#[path = "../../examples/job_queue.rs"]
mod job_queue;

// pins: A3, A7
#[test]
fn the_job_queue_does_every_job() {
    job_queue::main().unwrap();
}
