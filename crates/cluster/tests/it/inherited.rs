//! Inherited values that cross with starts and calls.

use crate::far::{Nodes, PATIENCE, name};
use ganger_cluster::{Builder, Cluster};
use ganger_link::Services;
use ganger_proc_api::{
    Actor, CommandError, Completion, Context, StepOutput, StepResult, process_fn,
};
use ganger_sched::{Call, ContextExt as _, Handle, Scheduler, Spawner};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Crosses between alpha and beta.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TraceId(u64);

/// Leaves alpha, and is unknown at beta.
#[derive(Serialize, Deserialize)]
struct Tenant(String);

/// Crosses nowhere.
struct Local;

type Has = (Option<u64>, bool, bool);

fn has(ctx: &Context) -> Has {
    let trace = ctx.inherited::<TraceId>().map(|it| it.0);
    let tenant = ctx.inherited::<Tenant>().is_some();
    (trace, tenant, ctx.inherited::<Local>().is_some())
}

/// Starts both nodes, each with a kind and a function that start a process. Returns what the
/// processes have, too.
fn nodes(nodes: &Nodes) -> ([(Scheduler, Cluster); 2], Receiver<Has>) {
    let (tell, told) = channel();
    let join = |node: &str| {
        let tell = tell.clone();
        let child = move || {
            let tell = tell.clone();
            process_fn(move |ctx, _, out| {
                tell.send(has(ctx))?;
                out.done(());
                Ok(())
            })
        };
        let at_kind = child.clone();
        let set = |builder: Builder| {
            let builder = builder.types(|types| {
                types.inherit::<TraceId>("trace.v1");
                if node == "alpha" {
                    types.inherit::<Tenant>("tenant.v1");
                }
            });
            builder.kind("child.v1", move |spawner, (): ()| {
                Ok(spawner.submit(at_kind(), "main", ())?.pid())
            })
        };
        let (scheduler, cluster) = nodes.join(node, set);
        let weak = scheduler.downgrade();
        let start = move |(): ()| {
            let scheduler: Handle = weak.upgrade().ok_or("the scheduler is gone")?;
            scheduler.submit(child(), "main", ())?;
            Ok(7_u64)
        };
        Services::of(&scheduler).register("start", start).unwrap();
        (scheduler, cluster)
    };
    ([join("alpha"), join("beta")], told)
}

/// Asks in its first step, and shows the answer.
struct Asker<T>(Option<Call<T>>, Sender<Result<T, CommandError>>);

impl<T: Send + 'static> Actor for Asker<T> {
    type Message = ();

    fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
        out.ask(self.0.take().ok_or("it has asked")?, 7);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        drop(self.1.send(it.take::<T>()));
        out.done(());
        Ok(())
    }

    fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

/// Has a process with the values of the spawner ask.
fn ask<T: Send + 'static>(spawner: Spawner<Handle>, call: Call<T>) -> Result<T, CommandError> {
    let (shows, shown) = channel();
    drop(spawner.spawn(Asker(Some(call), shows)).unwrap());
    shown.recv_timeout(PATIENCE).unwrap()
}

fn next(told: &Receiver<Has>) -> Has {
    told.recv_timeout(PATIENCE).unwrap()
}

// pins: B31
#[test]
fn registered_values_of_the_asker_are_those_of_what_starts_elsewhere() {
    let twin = Nodes::new();
    let ([(alpha, at_alpha), (_beta, at_beta)], told) = nodes(&twin);
    let with = || {
        let spawner = alpha.spawner().with_inherited(TraceId(7));
        spawner.with_inherited(Local)
    };
    let beta = name("beta");
    // The first of alpha's processes that speaks to beta starts alpha's link, and has values.
    ask(with(), at_alpha.spawn_on(beta, "child.v1", ()).call()).unwrap();
    assert_eq!(next(&told), (Some(7), false, false));
    ask(with(), at_alpha.call_on::<(), u64>(beta, "start", ())).unwrap();
    assert_eq!(next(&told), (Some(7), false, false));
    let own = at_alpha
        .spawn_on(beta, "child.v1", ())
        .with_inherited(TraceId(8));
    ask(with(), own.call()).unwrap();
    assert_eq!(next(&told), (Some(8), false, false));
    // A thread has none, and nothing is left of those before.
    let none = at_alpha.spawn_on(beta, "child.v1", ()).call();
    none.wait_timeout(PATIENCE).unwrap();
    assert_eq!(next(&told), (None, false, false));
    let none = at_alpha.call_on::<(), u64>(beta, "start", ());
    assert_eq!(none.wait_timeout(PATIENCE).unwrap(), 7);
    assert_eq!(next(&told), (None, false, false));
    // A process started by alpha's link for beta has none of the link's own values.
    let back = at_beta.spawn_on(name("alpha"), "child.v1", ()).call();
    back.wait_timeout(PATIENCE).unwrap();
    assert_eq!(next(&told), (None, false, false));
    let back = at_beta.call_on::<(), u64>(name("alpha"), "start", ());
    back.wait_timeout(PATIENCE).unwrap();
    assert_eq!(next(&told), (None, false, false));
    assert_eq!(at_beta.dropped_values(), 0);
}

// pins: B31
#[test]
fn inherited_values_that_do_not_fit_are_refused_and_unknown_ones_are_counted() {
    let twin = Nodes::new();
    let ([(alpha, at_alpha), (_beta, at_beta)], told) = nodes(&twin);
    let beta = name("beta");
    let tenant = |length: usize| alpha.spawner().with_inherited(Tenant("x".repeat(length)));
    let start = || at_alpha.spawn_on(beta, "child.v1", ()).call();
    let call = || at_alpha.call_on::<(), u64>(beta, "start", ());
    ask(tenant(1_000).with_inherited(TraceId(7)), start()).unwrap();
    assert_eq!(next(&told), (Some(7), false, false));
    ask(tenant(1_000), call()).unwrap();
    assert_eq!(next(&told), (None, false, false));
    assert_eq!(at_beta.dropped_values(), 2);
    let long = ask(tenant(2_000), start()).unwrap_err().to_string();
    assert!(long.contains("tenant.v1"), "{long}");
    let long = ask(tenant(2_000), call()).unwrap_err().to_string();
    assert!(long.contains("tenant.v1"), "{long}");
    let local = at_alpha
        .spawn_on(beta, "child.v1", ())
        .with_inherited(Local);
    let local = local.call().wait_timeout(PATIENCE).unwrap_err().to_string();
    assert!(local.contains("Local"), "{local}");
    assert!(told.try_recv().is_err());
    assert_eq!(at_beta.dropped_values(), 2);
}
