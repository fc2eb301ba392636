//! Looks at many threads at once, again and again.
//!
//! **Problem.** A thread without a processor answers late. A profiler that waits for each thread in
//! turn comes too late for the later threads.
//!
//! **Protocol.** All threads are asked before the first answer is waited for, and they share one
//! deadline. The threads run on while the asker unwinds the copies. A look sends no
//! signal to a thread while the signal of an earlier look is queued (`sample.rs`).

use super::sample::{Asked, Patience, Sample};
use super::unwind::Tables;
use super::{Backtraces, signal};
use crate::sampler::{Stack, Stacks, WithId};
use std::sync::Arc;

pub(super) struct Looker<'a> {
    backtraces: &'a Backtraces,
    tables: Tables,
}

impl<'a> Looker<'a> {
    pub(super) fn new(backtraces: &'a Backtraces) -> Self {
        let tables = Tables::copy();
        Self { backtraces, tables }
    }
}

impl Stacks for Looker<'_> {
    fn look(
        &mut self,
        slots: &mut dyn Iterator<Item = usize>,
        with_thread: &dyn Fn(usize, &WithId<'_>) -> bool,
        each: &mut dyn FnMut(Stack<'_>),
    ) -> usize {
        let signal = self.backtraces.signal;
        let sample = |slot| Some((slot, self.backtraces.sample(slot)?));
        let samples: Vec<(usize, Arc<Sample>)> = slots.filter_map(sample).collect();
        let mut asked: Vec<(usize, Asked<'_>)> = Vec::with_capacity(samples.len());
        for (slot, sample) in &samples {
            if let Some(question) = sample.ask()
                && with_thread(*slot, &|id| question.signal(|| signal::send(signal, id)))
            {
                asked.push((*slot, question));
            }
        }
        let patience = Patience::for_answers();
        for (slot, asked) in asked {
            if let Some(copied) = asked.answer(&patience) {
                let frames = &self.tables.frames(&copied);
                let doing = copied.doing;
                each(Stack {
                    slot,
                    doing,
                    frames,
                });
            }
        }
        samples.len()
    }
}
