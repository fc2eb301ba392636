//! Values that children inherit.

use crate::support::*;
use ganger_proc_api::{Actor, BoxError, Context, Events, StepOutput, StepResult, process_fn};
use ganger_sched::ContextExt;
use ganger_supervise::{ChildSpec, Supervisor};

struct Trace(u64);

/// Notes its trace, and sets the next trace. Fails at a message.
struct Traced(Log);

impl Actor for Traced {
    type Message = ();

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let trace = ctx.inherited::<Trace>().ok_or("it has none")?;
        self.0.note(trace.0.to_string());
        ctx.set_inherited(Trace(trace.0 + 1));
        Ok(())
    }

    fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
        Err("on purpose".into())
    }
}

// pins: P16
#[test]
fn children_inherit_what_their_supervisor_has_and_a_restart_in_place_keeps_its_own() {
    sim(22).check_seeds(20, |rt| {
        for (in_place, expected) in [(false, ["7", "7"]), (true, ["7", "8"])] {
            let log = Log::default();
            let make = log.clone();
            let parent = process_fn(move |ctx: &Context, events: &mut Events<'_>, _| {
                if events.next().is_none() {
                    let make = make.clone();
                    let child = ChildSpec::new("traced", move || Traced(make.clone()));
                    let child = if in_place { child.in_place() } else { child };
                    let tree = Supervisor::one_for_one().with(child).start_in(ctx)?;
                    tree.address::<()>("traced")?.send(())?;
                }
                Ok(())
            });
            let spawner = rt.spawner().with_inherited(Trace(7));
            let parent = spawner.spawn(parent).unwrap();
            rt.settle();
            assert_eq!(log.take(), expected);
            drop(parent);
        }
    });
}
