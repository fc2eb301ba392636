//! A worker's look at the requests to its process, before a step: see `runtime/interventions.rs`.

use crate::base::contain::contain_and_report;
use crate::base::stats::Counters;
use crate::process::state::{Begin, Leave};
use crate::runtime::cell::{Core, Task};
use crate::runtime::interventions::Next;
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;

/// Answers questions, and returns how the turn begins. For the owner of the run token.
#[cold]
#[inline(never)]
pub(super) fn intervene(shared: &Shared, task: &Task, counters: &Counters) -> Begin {
    loop {
        if task.state.is_terminating() {
            return Begin::Terminate;
        }
        let clear = || task.state.end_interventions();
        match shared.interventions.next(task.id, clear) {
            Next::Step => return Begin::Step,
            Next::Stay => return Begin::Stand,
            Next::Answer(questions) => {
                for question in questions {
                    let ask = |core: &mut Core| {
                        if let Some(process) = &core.process {
                            question(&**process);
                        }
                    };
                    // SAFETY: this thread owns the run token.
                    let ask = || unsafe { task.with_core(ask) };
                    contain_and_report("question between steps", task.pid(), counters, ask);
                }
            }
        }
    }
}

/// Leaves the run token of a suspended process, unless a request has come meanwhile. For its owner,
/// at the end of a turn.
#[cold]
#[inline(never)]
pub(super) fn hold(shared: &Shared, task: &Task) -> Leave {
    // SAFETY: the process has not been parked: this thread still owns the token.
    let token = unsafe { Token::new(task) };
    let stays = || {
        let stays = !task.state.is_terminating();
        if stays {
            task.state.suspend();
        }
        stays
    };
    match shared.interventions.hold(task.id, token, stays) {
        Ok(()) => Leave::Parked,
        // This thread has the token again, and the caller queues the process.
        Err(_) => task.state.requeue(),
    }
}
