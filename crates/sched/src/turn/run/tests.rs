use super::*;
use crate::Scheduler;
use crate::runtime::local;
use ganger_proc_api::{Context, Events, Process, StepOutput, StepResult};

struct NoopProcess;

impl Process for NoopProcess {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: P8, D1
#[test]
fn a_turn_that_panics_is_over() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let process = scheduler.submit(NoopProcess, "main", ()).unwrap();
    let shared = &scheduler.shared;
    let queue = LocalQueue::of_first(shared);
    local::enter(&queue, || {
        let mut runner = Runner::new(shared, Some(&queue));
        let turn = || shared.census.turns.on(0);
        assert_eq!(turn(), None);
        let mut calls = 0;
        runner.contain_turns(|runner| {
            calls += 1;
            assert_eq!(turn(), None);
            if calls == 1 {
                runner.on_worker.unwrap().begin(process.pid());
                assert_eq!(turn(), Some(process.pid().id()));
                panic!("on purpose: turn");
            }
        });
        assert_eq!((calls, turn()), (2, None));
        runner.run(shared.queues.global.pop().unwrap());
        assert_eq!(turn(), None);
    });
    assert_eq!(shared.counters.total().panics, 1);
}
