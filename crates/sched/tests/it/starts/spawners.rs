//! Processes started together with a monitor, names, messages and hooks.

use crate::support::puppet::*;
use crate::support::*;
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitCause, Message, Payloads, Pid, Process,
    RegisterNameErrorKind, StepOutput, StepResult, SubmitErrorKind, actor_fn, process_fn,
};
use ganger_sched::{Arrived, ContextExt, ExitAction, ExitSignal, Scheduler, SystemEvent};
use std::sync::mpsc::{Sender, channel};

/// Creates a process that ends in its first step, and sends its findings.
fn brief(seen: Sender<Vec<u64>>) -> impl Process {
    process_fn(move |_, events: &mut Events<'_>, _: &mut StepOutput| {
        let numbers = events.filter_map(|event| match event {
            Event::Message(message) => message.payloads.into_first().as_u64(),
            _ => None,
        });
        seen.send(numbers.collect())?;
        Err("brief".into())
    })
}

/// Its `init` fails, after it has said its name.
struct Fails(&'static str, Option<Pid>);

impl Process for Fails {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.1 = ctx.whereis(self.0);
        assert_eq!(self.1, Some(ctx.pid()));
        assert_ne!(self.0, "panics", "on purpose: init");
        Err("no init".into())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: L1, P1, P12
#[test]
fn the_cause_is_not_lost_however_soon_the_child_ends() {
    let scheduler = start(2);
    let parent = puppet(&scheduler);
    let (seen, numbers) = channel();
    let (children, started) = channel();
    for tag in 0..200 {
        let (seen, children) = (seen.clone(), children.clone());
        parent.tell(move |ctx, _| {
            let spawner = ctx.monitored(tag).with_message(Message::new("n", tag));
            Ok(children.send(spawner.spawn(brief(seen))?.pid())?)
        });
    }
    let mut children: Vec<Pid> = (0..200)
        .map(|_| {
            assert_eq!(numbers.recv_timeout(PATIENCE).unwrap().len(), 1);
            started.recv_timeout(PATIENCE).unwrap()
        })
        .collect();
    let mut told: Vec<_> = (0..200).map(|_| parent.next()).collect();
    told.sort_unstable_by_key(|it| it.1);
    for (tag, (pid, its, cause)) in (0..).zip(told) {
        assert_eq!((its, cause), (tag, ExitCause::Failed("brief".into())));
        let at = children.iter().position(|it| *it == pid).unwrap();
        children.swap_remove(at);
    }
    parent.has_none_but(999);
}

// pins: L1, P1, P12
#[test]
fn a_child_whose_init_fails_gives_an_error_and_no_notice() {
    quiet_panics();
    let scheduler = start(1);
    let parent = puppet(&scheduler);
    let other = puppet(&scheduler);
    let its_address = other.handle.address().clone();
    parent.have(move |ctx, _| {
        for name in ["fails", "panics"] {
            let spawner = ctx.monitored(1).monitored_by(&its_address, 2).named(name);
            let error = spawner.spawn(Fails(name, None)).unwrap_err();
            match &error.kind {
                SubmitErrorKind::InitFailed(_) => assert!(error.into_process().is_some()),
                SubmitErrorKind::InitPanicked(_) => assert!(error.into_process().is_none()),
                other => panic!("{other}"),
            }
            assert_eq!(ctx.whereis(name), None);
        }
        Ok(())
    });
    parent.has_none_but(99);
    other.has_none_but(99);
    assert_eq!(scheduler.stats().live, 2);
}

/// Ends the process like a link to a process not found.
#[derive(Debug)]
struct Lost;

impl ExitSignal for Lost {
    fn arrive(self: Box<Self>) -> Arrived {
        Arrived::End(ExitCause::NotFound)
    }
}

// pins: L1
#[test]
fn a_child_that_has_started_is_told_of_whatever_the_cause() {
    let scheduler = start(1);
    let parent = puppet(&scheduler);
    let handle = scheduler.handle();
    parent.have(move |ctx, _| {
        let child = ctx.monitored(5).spawn(waiter())?;
        handle.send_system(child.pid(), SystemEvent::Signal(Box::new(Lost)))?;
        Ok(())
    });
    let (_, tag, cause) = parent.next();
    assert_eq!((tag, cause), (5, ExitCause::NotFound));
}

// pins: L1, P1
#[test]
fn where_a_name_is_taken_nothing_was_started() {
    let scheduler = start(1);
    let holder = scheduler.named("taken").spawn(waiter()).unwrap();
    let parent = puppet(&scheduler);
    let its_pid = holder.pid();
    parent.have(move |ctx, _| {
        let spawner = ctx.named("free").monitored(1).named("taken");
        let spawner = spawner.with_message(Message::new("n", 1_u64));
        let error = spawner.submit(waiter(), "main", 7_u64).unwrap_err();
        let SubmitErrorKind::NotNamed(why) = &error.kind else {
            panic!("{error}")
        };
        assert_eq!(&*why.name, "taken");
        assert_eq!(why.kind, RegisterNameErrorKind::Taken { holder: its_pid });
        let (_, input) = error.into_parts().unwrap();
        assert_eq!(input.into_first().as_u64(), Some(7));
        assert_eq!(ctx.whereis("free"), None);
        Ok(())
    });
    parent.has_none_but(99);
    assert_eq!(scheduler.whereis("taken"), Some(its_pid));
    assert_eq!(scheduler.stats().live, 2);
}

// pins: L1, P1
#[test]
fn what_is_found_by_its_name_has_its_first_messages_already() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (seen, numbers) = channel();
    let handle = scheduler.handle();
    let spawner = scheduler.named("first").before_init(move |child| {
        assert_eq!(handle.whereis("first"), None);
        Ok(child.send(Message::new("n", 2_u64))?)
    });
    let spawner = spawner.with_message(Message::new("n", 3_u64));
    let started = spawner.spawn(brief(seen)).unwrap();
    assert_eq!(scheduler.whereis("first"), Some(started.pid()));
    started.send(Message::new("n", 4_u64)).unwrap();
    scheduler.start().unwrap();
    assert_eq!(numbers.recv_timeout(PATIENCE).unwrap(), [2, 3, 4]);
}

// pins: L1, P13
#[test]
fn the_type_of_an_actor_is_known_before_it_is_found_by_its_name() {
    let scheduler = Scheduler::builder().build().unwrap();
    let actor = || actor_fn(|_, _: u64, _| Ok(()));
    let handle = scheduler.handle();
    let spawner = scheduler.spawner().before_init(move |child| {
        assert!(child.clone().typed::<String>().is_err());
        assert!(child.clone().typed::<u64>().is_ok() && handle.whereis("typed").is_none());
        Ok(())
    });
    spawner.named("typed").spawn(actor()).unwrap();
    let spawner = scheduler.spawner().with_message(Message::of("text"));
    let error = spawner.spawn(actor()).unwrap_err();
    assert!(
        matches!(&error.kind, SubmitErrorKind::Prevented(_)),
        "{error}"
    );
    let spawner = scheduler.spawner().with_message(Message::of(7_u64));
    spawner.spawn(actor()).unwrap();
}

/// Passes its cause on.
struct Tells(Sender<ExitCause>);

impl ExitAction for Tells {
    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        self.0.send(cause.clone()).unwrap();
    }
}

// pins: P1, P8
#[test]
fn a_hook_that_fails_or_panics_has_the_process_come_back() {
    quiet_panics();
    let scheduler = start(1);
    let (tell, told) = channel();
    for panics in [false, true] {
        let tells = Box::new(Tells(tell.clone()));
        let spawner = scheduler.spawner();
        let spawner = spawner.before_init(move |child| Ok(child.add_exit_action(tells)?));
        let spawner = spawner.before_init(move |_| {
            assert!(!panics, "on purpose: hook");
            Err("no".into())
        });
        let error = spawner.named("hooked").spawn(waiter()).unwrap_err();
        assert!(matches!(&error.kind, SubmitErrorKind::Prevented(_)));
        assert!(error.into_process().is_some());
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), ExitCause::NotFound);
        assert_eq!(scheduler.whereis("hooked"), None);
    }
    assert_eq!(
        (scheduler.stats().live, scheduler.stats().total.panics),
        (0, 1)
    );
    let detached = Context::detached("{test|1}".parse().unwrap());
    let error = detached.monitored(1).spawn(waiter()).unwrap_err();
    assert!(error.into_process().is_some());
}
