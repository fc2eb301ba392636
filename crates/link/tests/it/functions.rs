//! Functions called by their names.

use crate::support::*;
use ganger_link::{
    FunctionErrorKind, FunctionTypes, RegisterFunctionErrorKind, Registry, Services,
};
use ganger_proc_api::{
    Actor, BoxError, CommandError, Completion, Context, ExitCause, Reply, StepOutput, StepResult,
    actor_fn,
};
use ganger_sched::{Call, ContextExt, Handle, ProcessHandle, Scheduler};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

type Asked = (u64, Reply<u64>);

/// Starts a process that doubles.
fn doubler(scheduler: &Handle) -> ProcessHandle<Asked> {
    let doubler = actor_fn(|_, (number, reply): Asked, _| {
        reply.complete(2 * number);
        Ok(())
    });
    scheduler.spawn(doubler).unwrap()
}

/// Starts a process that hands its questions to the test.
fn keeper(scheduler: &Handle) -> (ProcessHandle<Asked>, Receiver<Asked>) {
    let (asked, is_asked) = channel();
    let keeper = actor_fn(move |_, question: Asked, _| Ok(asked.send(question)?));
    (scheduler.spawn(keeper).unwrap(), is_asked)
}

fn message(number: u64, reply: Reply<u64>) -> Asked {
    (number, reply)
}

/// A process: calls a function, and ends with the answer.
struct Caller {
    name: &'static str,
    gives_up: bool,
}

impl Actor for Caller {
    type Message = u64;

    fn receive(&mut self, ctx: &Context, number: u64, out: &mut StepOutput) -> StepResult {
        if self.gives_up && number == 0 {
            out.cancel(1);
            return Ok(());
        }
        let functions = Services::of_process(ctx).ok_or("no scheduler")?;
        out.ask(functions.call::<u64, u64>(self.name, number)?, 1);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        out.done(it.take::<u64>()?);
        Ok(())
    }
}

// pins: N6
#[test]
fn processes_and_threads_call_by_name_what_processes_and_code_carry_out() {
    let scheduler = start(2);
    let functions = Services::of(&scheduler);
    let doubler = doubler(&scheduler);
    functions
        .register_process("process", doubler.address(), message)
        .unwrap();
    functions.register("code", |it: u64| Ok(2 * it)).unwrap();
    let theirs = functions.clone();
    let nested = move |it: u64| theirs.call::<u64, u64>("process", it).unwrap();
    functions.register_call("nested", nested).unwrap();
    let types: FunctionTypes = functions.types("code").unwrap();
    assert_eq!((types.input, types.output), ("u64", "u64"));
    let all = functions.list();
    let all: Vec<_> = all.iter().map(|(name, its)| (&**name, *its)).collect();
    let names = ["code", "nested", "process"];
    assert_eq!(all, names.map(|name| (name, types)));
    for name in names {
        let call = functions.call::<u64, u64>(name, 21).unwrap();
        assert_eq!(call.wait_timeout(PATIENCE).unwrap(), 42, "{name}");
        let gives_up = false;
        let caller = scheduler.spawn(Caller { name, gives_up }).unwrap();
        caller.send(21).unwrap();
        assert_eq!(exit(caller).take::<u64>().unwrap(), 42, "{name}");
    }
}

// pins: N6
#[test]
fn an_unknown_name_and_a_wrong_type_give_the_input_back() {
    let scheduler = start(1);
    let functions = Services::of(&scheduler);
    let error = functions.call::<_, u64>("length", "text").unwrap_err();
    assert_eq!(error.kind, FunctionErrorKind::NoSuchFunction);
    assert_eq!((&*error.name, error.input), ("length", "text"));
    functions
        .register("length", |text: String| Ok(text.len()))
        .unwrap();
    let error = functions.call::<_, u8>("length", "text".to_owned());
    let error = error.unwrap_err();
    assert_eq!(error.input, "text");
    let call = functions.call::<_, usize>("length", error.input).unwrap();
    assert_eq!(call.wait().unwrap(), 4);
    let error = functions.call::<u8, usize>("length", 7).unwrap_err();
    assert_eq!(error.input, 7);
    assert_eq!(
        error.to_string(),
        "can't call \"length\": type mismatch: the function takes `alloc::string::String` and \
         gives `usize`, but the call takes `u8` and gives `usize`"
    );
}

// pins: N6
#[test]
fn a_caller_that_gives_up_or_has_waited_long_enough_is_seen() {
    let scheduler = start(2);
    let functions = Services::of(&scheduler);
    let (keeper, asked) = keeper(&scheduler);
    let nested = functions.clone();
    functions
        .register_process("keep", keeper.address(), message)
        .unwrap();
    functions
        .register_call("nested", move |it: u64| {
            nested.call::<u64, u64>("keep", it).unwrap()
        })
        .unwrap();
    for name in ["keep", "nested"] {
        let call = functions.call::<u64, u64>(name, 1).unwrap();
        let late = call.wait_timeout(Duration::from_millis(1));
        assert!(matches!(late, Err(CommandError::Timeout)), "{late:?}");
        let (number, reply) = asked.recv_timeout(PATIENCE).unwrap();
        assert_eq!((number, reply.is_cancelled()), (1, true));

        let gives_up = true;
        let caller = scheduler.spawn(Caller { name, gives_up }).unwrap();
        caller.send(2).unwrap();
        let (number, reply) = asked.recv_timeout(PATIENCE).unwrap();
        assert_eq!((number, reply.is_cancelled()), (2, false));
        assert_eq!(reply.pid(), Some(caller.pid()));
        let (left, has_left) = channel();
        let reply = reply.untyped();
        let watch = reply.on_end(move || left.send(()).unwrap());
        caller.send(0).unwrap();
        has_left.recv_timeout(PATIENCE).unwrap();
        assert!(reply.is_cancelled());
        drop(watch);
        scheduler.terminate(caller.pid()).unwrap();
    }
}

// pins: N6
#[test]
fn a_function_of_a_process_goes_with_it_before_others_are_told() {
    let scheduler = start(2);
    let functions = Services::of(&scheduler);
    let (one, asked) = keeper(&scheduler);
    functions
        .register_process("keep", one.address(), message)
        .unwrap();
    let end = scheduler.end_of(one.pid()).unwrap();
    let early = functions.call::<u64, u64>("keep", 1).unwrap();
    let answer = functions.call::<u64, u64>("keep", 2).unwrap().begin();
    let kept = asked.recv_timeout(PATIENCE).unwrap();
    scheduler.terminate(one.pid()).unwrap();
    assert_eq!(end.wait(), ExitCause::Terminated);
    assert_eq!(functions.types("keep"), None);
    drop(kept);
    assert!(answer.wait_timeout(PATIENCE).is_err());
    assert!(early.wait_timeout(PATIENCE).is_err());
    let gone = functions.register_process("keep", one.address(), message);
    let gone = gone.unwrap_err();
    assert_eq!(gone.kind, RegisterFunctionErrorKind::Ended(one.pid()));
    assert_eq!(functions.types("keep"), None);
    // The name is free, and is another's from now on.
    let other = doubler(&scheduler);
    functions
        .register_process("keep", other.address(), gone.function)
        .unwrap();
    assert_eq!(
        functions
            .call::<u64, u64>("keep", 4)
            .unwrap()
            .wait()
            .unwrap(),
        8
    );
    assert!(functions.remove("keep") && !functions.remove("keep"));
    functions.register("keep", |it: u64| Ok(it)).unwrap();
    scheduler.terminate(other.pid()).unwrap();
    exit(other);
    assert!(functions.types("keep").is_some(), "it is another's");
}

/// A process: has a function, and calls it.
struct Oneself;

impl Actor for Oneself {
    type Message = Asked;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let functions = Services::of_process(ctx).ok_or("no scheduler")?;
        Ok(functions.register_process("oneself", &ctx.address()?, message)?)
    }

    fn receive(&mut self, ctx: &Context, _: Asked, out: &mut StepOutput) -> StepResult {
        let functions = Services::of_process(ctx).ok_or("no scheduler")?;
        out.ask(functions.call::<u64, u64>("oneself", 1)?, 1);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        out.done(it.take::<u64>().unwrap_err().to_string());
        Ok(())
    }
}

// pins: N6, C3
#[test]
fn a_function_that_panics_fails_or_is_the_callers_own_is_an_error_of_the_call() {
    let scheduler = start(1);
    let functions = Services::of(&scheduler);
    functions
        .register("panics", |text: String| -> Result<u64, BoxError> {
            panic!("{text}")
        })
        .unwrap();
    functions
        .register_call("panics too", |(): ()| -> Call<u64> { panic!("no call") })
        .unwrap();
    functions
        .register("fails", |(): ()| -> Result<u64, BoxError> {
            Err("no luck".into())
        })
        .unwrap();
    let boom = functions.call::<_, u64>("panics", "boom".to_owned());
    let error = boom.unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("the function panicked: boom"), "{error}");
    let error = functions.call::<_, u64>("panics too", ()).unwrap().wait();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the function panicked: no call"), "{error}");
    let error = functions.call::<_, u64>("fails", ()).unwrap().wait();
    assert!(error.unwrap_err().to_string().contains("no luck"));
    let one = scheduler.spawn(Oneself).unwrap();
    let ask = functions.call::<u64, u64>("oneself", 1).unwrap().begin();
    let error: String = exit(one).take().unwrap();
    assert!(error.contains("can't call itself"), "{error}");
    drop(ask);
}

// pins: N6
#[test]
fn what_is_not_registered_comes_back_and_a_stop_drops_what_is() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let functions = Services::of(&scheduler);
    scheduler.start().unwrap();
    let doubler = doubler(&scheduler);
    let kept = Arc::new(());
    let is_kept: Weak<()> = Arc::downgrade(&kept);
    let (theirs, address, handle) = (
        functions.clone(),
        doubler.address().clone(),
        scheduler.handle(),
    );
    let keeps = move |it: u64| {
        // Without the empty table, these would keep the scheduler, and the table, for ever.
        let _ = (&kept, &theirs, &handle);
        address.call(move |reply| (it, reply))
    };
    functions.register_call("keeps", keeps).unwrap();
    let refused = functions.register("keeps", |it: u64| Ok(it + 1));
    let refused = refused.unwrap_err();
    let types = functions.types("keeps").unwrap();
    assert_eq!(refused.kind, RegisterFunctionErrorKind::Taken(types));
    assert_eq!((refused.function)(1).unwrap(), 2);
    assert!(is_kept.upgrade().is_some());
    scheduler.begin_stop(Duration::ZERO);
    drop(doubler);
    let weak = scheduler.downgrade();
    drop(scheduler);
    // The last worker may be on its way out.
    let begin = Instant::now();
    while is_kept.upgrade().is_some() || weak.upgrade().is_some() {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    let refused = functions.register("late", |it: u64| Ok(it));
    assert_eq!(
        refused.unwrap_err().kind,
        RegisterFunctionErrorKind::Stopped
    );
}
