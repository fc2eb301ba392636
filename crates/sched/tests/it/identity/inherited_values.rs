//! Values handed down to children.

use crate::support::start;
use ganger_proc_api::{
    Actor, BoxError, Context, Event, Events, ExitReason, Payloads, Pid, Process, StepOutput,
    StepResult, UpgradeRequest, process_fn,
};
use ganger_sched::commands::{Exec, Spawn};
use ganger_sched::{ContextExt, Handle, Scheduler};
use std::sync::{Arc, mpsc};

struct Trace(u64);
struct Tenant(&'static str);

/// The values of a process.
type Seen = (Option<u64>, Option<&'static str>);

fn seen(ctx: &Context) -> Seen {
    let trace = ctx.inherited::<Trace>().map(|it| it.0);
    (trace, ctx.inherited::<Tenant>().map(|it| it.0))
}

/// Creates a process that ends with its trace.
fn child() -> impl Process {
    process_fn(|ctx, _, out| {
        out.done(ctx.inherited::<Trace>().map_or(0, |it| it.0));
        Ok(())
    })
}

/// Sends its values in `init` and in its first step, and ends.
struct Tells(mpsc::Sender<Seen>);

impl Process for Tells {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        Ok(self.0.send(seen(ctx))?)
    }

    fn step(&mut self, ctx: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.0.send(seen(ctx))?;
        out.done(());
        Ok(())
    }
}

struct TellsAsActor(mpsc::Sender<Seen>);

impl Actor for TellsAsActor {
    type Message = ();

    fn started(&mut self, ctx: &Context, out: &mut StepOutput) -> StepResult {
        self.0.send(seen(ctx))?;
        out.done(());
        Ok(())
    }

    fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

/// Runs `step` once, in a process with the trace 7.
fn run(scheduler: &Scheduler, step: impl Fn(&Context) -> StepResult + Send + 'static) {
    let parent = process_fn(move |ctx: &Context, _, out| {
        step(ctx)?;
        out.done(());
        Ok(())
    });
    let parent = scheduler.spawner().with_inherited(Trace(7)).spawn(parent);
    assert!(parent.unwrap().wait().is_done());
}

// pins: P16
#[test]
fn children_have_what_their_parent_has_when_it_starts_them() {
    let scheduler = start(2);
    let (sender, told) = mpsc::channel();
    // Whether it is started by a context, by a handle in a step, or by another thread.
    let handle: Handle = scheduler.handle();
    let ways: [fn(&Context, &Handle, Tells); 8] = [
        |ctx, _, it| assert!(ctx.spawn(it).is_ok()),
        |ctx, _, it| assert!(ctx.submit(it, "main", ()).is_ok()),
        |ctx, _, it| assert!(ctx.spawn(TellsAsActor(it.0)).is_ok()),
        |ctx, _, it| assert!(ctx.monitored(1).spawn(it).is_ok()),
        |_, handle, it| assert!(handle.spawn(it).is_ok()),
        |_, handle, it| assert!(handle.named("it").spawn(TellsAsActor(it.0)).is_ok()),
        |ctx, _, it| {
            let pid = Pid::new(ctx.pid().host(), 77);
            ctx.submit_as(pid, it, "main", ()).unwrap();
        },
        |ctx, _, it| {
            let ctx = ctx.clone();
            let thread = std::thread::spawn(move || ctx.spawn(it).is_ok());
            assert!(thread.join().unwrap());
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let (handle, sender) = (handle.clone(), sender.clone());
        run(&scheduler, move |ctx| {
            way(ctx, &handle, Tells(sender.clone()));
            Ok(())
        });
        let times = if matches!(number, 2 | 5) { 1 } else { 2 };
        for _ in 0..times {
            assert_eq!(told.recv(), Ok((Some(7), None)), "way {number}");
        }
    }
    // A process without a parent has nothing, wherever its handle has been.
    scheduler.spawn(Tells(sender)).unwrap();
    assert!(told.iter().all(|it| it == (None, None)));
}

// pins: P16
#[test]
fn a_child_keeps_what_it_has_and_its_parent_too() {
    let scheduler = start(1);
    let (sender, told) = mpsc::channel();
    run(&scheduler, move |ctx| {
        ctx.spawn(Tells(sender.clone()))?;
        ctx.set_inherited(Tenant("acme"));
        ctx.spawn(Tells(sender.clone()))?;
        ctx.set_inherited(Trace(8));
        let other = ctx.spawner().with_inherited(Tenant("other"));
        other.spawn(Tells(sender.clone()))?;
        // A child's own is not its parent's.
        ctx.spawn(process_fn(|ctx, _, out| {
            ctx.set_inherited(Trace(9));
            out.done(());
            Ok(())
        }))?;
        sender.send(seen(ctx))?;
        Ok(())
    });
    let mut all: Vec<_> = told.iter().collect();
    all.sort_unstable();
    let expected = [
        (Some(7), None),
        (Some(7), None),
        (Some(7), Some("acme")),
        (Some(7), Some("acme")),
        (Some(8), Some("acme")),
        (Some(8), Some("other")),
        (Some(8), Some("other")),
    ];
    assert_eq!(all, expected);
}

// pins: P16
#[test]
fn a_process_that_is_started_in_an_init_has_what_that_one_has() {
    struct Middle(mpsc::Sender<Seen>);
    impl Process for Middle {
        fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            ctx.set_inherited(Tenant("of the middle"));
            let handle = ctx.scheduler().ok_or("it has one")?;
            handle.spawn(Tells(self.0.clone()))?;
            Ok(())
        }

        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            out.done(());
            Ok(())
        }
    }
    let scheduler = start(1);
    let (sender, told) = mpsc::channel();
    run(&scheduler, move |ctx| {
        ctx.spawn(Middle(sender.clone()))?;
        Ok(())
    });
    assert_eq!(told.recv(), Ok((Some(7), Some("of the middle"))));
}

// pins: P16
#[test]
fn what_a_process_starts_by_commands_inherits_as_well() {
    let scheduler = start(1);
    let (sender, told) = mpsc::channel();
    let parent = process_fn(move |_, events, out| {
        match events.next() {
            None => drop(out.ask(Exec::<u64>::new(child()), 1)),
            Some(Event::Completion(it)) if it.tag == 1 => {
                assert_eq!(it.take::<u64>()?, 7);
                let spawn = Spawn {
                    process: Box::new(Tells(sender.clone())),
                    method: "main".into(),
                    input: Payloads::new(),
                };
                out.ask(spawn, 2);
            }
            Some(_) => out.done(()),
        }
        Ok(())
    });
    let parent = scheduler.spawner().with_inherited(Trace(7)).spawn(parent);
    assert!(parent.unwrap().wait().is_done());
    assert_eq!(told.recv(), Ok((Some(7), None)));
}

// pins: P16
#[test]
fn an_upgrade_keeps_the_values() {
    let scheduler = start(1);
    let old = process_fn(|ctx: &Context, _, out| {
        ctx.set_inherited(Trace(8));
        out.upgrade(UpgradeRequest::process(child(), "main", ()));
        Ok(())
    });
    let spawned = scheduler.spawner().with_inherited(Trace(7)).spawn(old);
    assert!(matches!(spawned.unwrap().wait(), ExitReason::Done(it) if it.as_u64() == Some(8)));
}

/// Panics when it is dropped.
struct Bomb(#[expect(dead_code, reason = "it counts")] Arc<()>);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

// pins: P16, P8
#[test]
fn the_values_of_a_process_are_gone_when_it_has_ended() {
    let scheduler = start(1);
    let probe = Arc::new(());
    let (sender, contexts) = mpsc::channel();
    for fails in [false, true] {
        let (probe, sender) = (Arc::clone(&probe), sender.clone());
        let process = process_fn(move |ctx: &Context, _, out| {
            ctx.set_inherited(Bomb(Arc::clone(&probe)));
            sender.send(ctx.clone())?;
            if fails {
                return Err("on purpose".into());
            }
            out.done(());
            Ok(())
        });
        let ended = scheduler.spawn(process).unwrap();
        assert_eq!(ended.wait().is_done(), !fails);
    }
    assert_eq!(Arc::strong_count(&probe), 1);
    // Later values go with the cell, which the next process has.
    for ctx in contexts.try_iter() {
        assert!(ctx.inherited::<Bomb>().is_none());
        ctx.set_inherited(Bomb(Arc::clone(&probe)));
    }
    for _ in 0..4 {
        let next = scheduler.spawn(child()).unwrap();
        assert!(matches!(next.wait(), ExitReason::Done(it) if it.as_u64() == Some(0)));
    }
    drop(scheduler);
    assert_eq!(Arc::strong_count(&probe), 1);
}

// pins: P16
#[test]
fn the_values_of_a_process_that_was_not_started_are_gone() {
    let scheduler = start(1);
    let probe = Arc::new(());
    for _ in 0..2 {
        let spawner = scheduler.spawner().with_inherited(Bomb(Arc::clone(&probe)));
        let refused = spawner.before_init(|_| Err("on purpose".into()));
        drop(refused.spawn(child()).unwrap_err());
        assert_eq!(Arc::strong_count(&probe), 1);
    }
}

// pins: B31, P16
#[cfg(feature = "serde")]
#[test]
fn a_process_that_starts_for_another_has_its_own_values_again() {
    use ganger_sched::crossing::Inherited;
    let scheduler = start(1);
    let own = Handle::clone(&scheduler);
    let reader = process_fn(move |ctx, _, out| {
        let of_asker = Inherited::default().with(Arc::new(Trace(8)));
        let (tell, told) = mpsc::channel();
        let start = || own.submit(Tells(tell.clone()), "main", ());
        of_asker.within(&own, start)?;
        assert_eq!(told.try_recv()?, (Some(8), None));
        assert_eq!(seen(ctx), (Some(7), Some("acme")));
        let panics = || std::panic::resume_unwind(Box::new(()));
        let panics = || Inherited::default().within(&own, panics);
        let panicked: Result<(), _> =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
        assert!(panicked.is_err());
        assert_eq!(seen(ctx), (Some(7), Some("acme")));
        out.done(());
        Ok(())
    });
    let spawner = scheduler.spawner().with_inherited(Trace(7));
    let reader = spawner
        .with_inherited(Tenant("acme"))
        .submit(reader, "main", ())
        .unwrap();
    assert!(reader.wait().is_done());
}
