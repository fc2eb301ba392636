//! The examples end, and assert what they come to.

#[path = "../../examples/job_queue.rs"]
mod job_queue;
#[path = "../../examples/philosophers.rs"]
mod philosophers;

// pins: A3, A7
#[test]
fn the_job_queue_does_every_job() {
    job_queue::main().unwrap();
}

// pins: A2, A7
#[test]
fn the_philosophers_eat_all_their_meals() {
    philosophers::main().unwrap();
}
