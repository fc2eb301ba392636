//! The pipeline: the sink sees all numbers that were made, whenever the stop comes.

#[path = "../../examples/pipeline.rs"]
mod example;

#[test]
fn it_drains_after_a_stop() {
    example::main().unwrap();
}

// pins: Q3, Q6
#[cfg(feature = "sim")]
#[test]
fn what_is_made_is_seen_in_every_order() {
    use ganger::channel::channel;
    use ganger::sim::{Faults, Sim};

    let sim = Sim::new(7).faults(Faults {
        clock_jumps: 0,
        process_is_terminated: 0,
        process_is_cancelled: 0,
        shutdown_begins: 0,
        ..Faults::some()
    });
    sim.check_seeds(100, |rt| {
        let (running, stop) = channel(0);
        let [source, sink] = example::start(rt, stop).unwrap();
        for _ in 0..rt.choose(400) {
            rt.step();
        }
        drop(running);
        let made = rt.wait(source).take::<u64>().unwrap();
        assert_eq!(rt.wait(sink).take::<u64>().unwrap(), made);
    });
}
