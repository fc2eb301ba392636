//! Several threads that submit several processes each, some of them under the same PIDs.

use super::{at_once, end_all};
use crate::actor::{Actor, try_to_submit};
use crate::notes::{Call, Number, Submitted};
use crate::plan::{Nature, Start};
use crate::spec::Asked;
use crate::starts::submit_to;
use crate::world::{Submission, World};
use ganger_proc_api::Pid;
use ganger_sched::Handle;
use std::collections::HashMap;
use std::sync::Arc;

/// A process to submit: its number, its start, and its PID.
type Planned = (Number, Start, Option<Pid>);

/// The result of a submit.
type Done = (Asked, Option<Submission>);

/// Submits processes of the same nature from several threads; every third process has the given
/// start.
pub(super) fn submit(
    world: &Arc<World>,
    handle: &Handle,
    nature: Nature,
    start: Start,
    [submitters, each]: [usize; 2],
    first: u64,
) {
    let limits = world.state().spec.limits();
    if limits.processes.is_some() {
        // Frees all places for the submits.
        end_all(world, handle);
    }
    let planned: Vec<Vec<Planned>> = (0..submitters)
        .map(|submitter| {
            let plan = |nth: usize| {
                let is_third = (submitter * each + nth) % 3 == 2;
                let start = if is_third { start } else { Start::Well };
                let id = first + nth as u64 / 2;
                let chosen = nth.is_multiple_of(2).then(|| world.pid(handle, id));
                (world.number(), start, chosen)
            };
            (0..each).map(plan).collect()
        })
        .collect();
    let numbers: Vec<_> = planned.iter().flatten().map(|it| it.0).collect();
    world.ask(
        |_: Option<()>| Call::Crowd(numbers.clone()),
        |spec| spec.crowd(&numbers),
    );
    let done: Vec<Vec<Done>> = at_once(&planned, |planned, meet| {
        let submit = |&planned: &Planned| {
            meet();
            submit_one(world, handle, nature, planned)
        };
        planned.iter().map(submit).collect()
    });
    let asked = |done: &Vec<Done>| done.iter().map(|&(asked, _)| asked).collect();
    let asked: Vec<Vec<Asked>> = done.iter().map(asked).collect();
    world.tell("all have submitted", |spec| spec.crowd_over(&asked));
    look_who_got_it(world, &asked);
    for submission in done.into_iter().flatten().filter_map(|(_, it)| it) {
        world.keep(submission);
    }
}

fn submit_one(world: &Arc<World>, handle: &Handle, nature: Nature, planned: Planned) -> Done {
    let (process, start, chosen) = planned;
    let actor = Actor::new(world, process, nature).gives_way();
    let submission = try_to_submit(world, actor, start, chosen, |actor, method, input| {
        submit_to(handle, chosen, actor, method, input)
    });
    let found = submission
        .as_ref()
        .map_or_else(|&refused| refused, |_| Submitted::Started);
    world.reach("a submit among others (P1, P13, P14)", None, found);
    let asked = Asked {
        process,
        start,
        chosen,
        found,
    };
    (asked, submission.ok())
}

/// Remembers whether several threads have asked for the same PID, or for the last places, with the
/// highest possible number of successes.
fn look_who_got_it(world: &World, asked: &[Vec<Asked>]) {
    let mut of: HashMap<Pid, Vec<Submitted>> = HashMap::new();
    for asked in asked.iter().flatten() {
        if let Some(pid) = asked.chosen {
            of.entry(pid).or_default().push(asked.found);
        }
    }
    let has =
        |all: &[Submitted], refused| all.contains(&Submitted::Started) && all.contains(&refused);
    if of.values().any(|all| has(all, Submitted::AlreadyExists)) {
        world.come_to("several ask for one PID, and one gets it");
    }
    let all: Vec<_> = asked.iter().flatten().map(|asked| asked.found).collect();
    if has(&all, Submitted::LimitReached) {
        world.come_to("several ask for the last places, and some get them");
    }
}
