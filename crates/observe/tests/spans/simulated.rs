//! Spans in the simulation.

use crate::kept::{exporter, field, id, links, of_host};
use ganger_observe::{Steps, trace_steps};
use ganger_proc_api::actor_fn;
use ganger_sched::ContextExt;
use ganger_sim::Sim;
use std::collections::HashMap;

/// Returns the spans of a run, in order: of which process and with how many events they are, and
/// which spans of the run they follow from.
fn run(host: &'static str, seed: u64) -> Vec<(String, String, Vec<usize>)> {
    exporter();
    let before = of_host(host).len();
    let set = move |builder: ganger_sched::Builder| {
        trace_steps(builder.host(host), Steps::all().rate(1, 3).whole(20))
    };
    Sim::new(seed).builder(set).run(|rt| {
        let last = actor_fn(|_, number: u64, out| {
            if number == 0 {
                out.done(());
            }
            Ok(())
        });
        let last = rt.spawn(last).unwrap();
        let to = last.address().clone();
        let middle = actor_fn(move |ctx, number: u64, _| {
            if number.is_multiple_of(2) {
                to.send(number)?;
            } else {
                ctx.address::<u64>()?.send(number - 1)?;
            }
            Ok(())
        });
        let middle = rt.spawn(middle).unwrap();
        for number in (0..9).rev() {
            middle.send(number).unwrap();
        }
        assert!(rt.wait(last).is_done());
    });
    let spans = of_host(host);
    let spans = &spans[before..];
    let numbers: HashMap<_, _> = spans
        .iter()
        .enumerate()
        .map(|(nth, it)| (id(it), nth))
        .collect();
    let text = |it, name| field(it, name).unwrap();
    spans
        .iter()
        .map(|it| {
            let follows = links(it)
                .iter()
                .filter_map(|id| numbers.get(id).copied())
                .collect();
            (text(it, "pid"), text(it, "events"), follows)
        })
        .collect()
}

// pins: V13
#[test]
fn spans_repeat_by_seed() {
    let mut runs = Vec::new();
    for seed in 0..50 {
        let first = run("simulated", seed);
        assert_eq!(first, run("simulated", seed), "seed {seed}");
        assert!(!first.is_empty());
        runs.push(first);
    }
    assert!(runs.iter().any(|run| run.iter().any(|it| !it.2.is_empty())));
    assert!(runs.windows(2).any(|two| two[0] != two[1]));
}
