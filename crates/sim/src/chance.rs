//! The decisions of the scheduler itself.

use crate::choices::Choices;
use crate::faults::Faults;
use ganger_sched::internal::sim::{self, Driver};
use std::cell::RefCell;
use std::rc::Rc;

/// The scheduler's decisions by chance.
pub(crate) struct Chance {
    pub(crate) choices: Rc<RefCell<Choices>>,
    pub(crate) faults: Faults,
}

impl Driver for Chance {
    fn choose(&mut self, what: &'static str, of: usize) -> usize {
        self.choices.borrow_mut().choose(what, of)
    }

    fn happens(&mut self, what: &'static str) -> bool {
        let per_mille = match what {
            "steal fails" => self.faults.steal_fails,
            "step panics" => self.faults.step_panics,
            "handler is late" => self.faults.handler_is_late,
            "handler drops" => self.faults.handler_drops,
            "handler fails" => self.faults.handler_fails,
            "handler answers twice" => self.faults.handler_answers_twice,
            "process is upgraded" => self.faults.process_is_upgraded,
            "upgrade fails" => self.faults.upgrade_fails,
            "others act" => self.faults.others_act,
            "worker wakes in vain" => self.faults.worker_wakes_in_vain,
            "timer waiter wakes early" => self.faults.timer_waiter_wakes_early,
            "step blocks" => self.faults.step_blocks,
            "envelope is refused" => self.faults.envelope_is_refused,
            "envelope is late" => self.faults.envelope_is_late,
            "process is terminated" => self.faults.process_is_terminated,
            "process is cancelled" => self.faults.process_is_cancelled,
            "shutdown begins" => self.faults.shutdown_begins,
            "shutdown is forced" => self.faults.shutdown_is_forced,
            _ => 0,
        };
        let happens = self.choices.borrow_mut().happens(what, per_mille);
        if happens && what == "steal fails" {
            sim::tell("fault: the steal fails");
        }
        happens
    }
}
