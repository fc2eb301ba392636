//! Starts inside of starts, and other calls of users' code that cause more such calls, in any
//! number.

use crate::support::*;
use ganger_proc_api::{
    Actor, BoxError, Command, CommandId, Completer, Context, Event, ExitCause, Handler, Lifecycle,
    Pid, StepOutput, StepResult, SubmitError, SubmitErrorKind, Symbol, actor_fn, process_fn,
};
use ganger_sched::{Address, ContextExt, ExitAction, Handle, Scheduler, WeakHandle};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How deep each recursion would go, or how long each chain is.
const DEEP: usize = 100_000;

/// How many starts may be inside of each other.
const MAX: usize = 64;

/// Starts the next process.
type Start = fn(&Context, &Nested) -> Result<(), BoxError>;

/// Starts the next process in its `init`.
struct Nested {
    left: usize,
    start: Start,
    /// The handle to start the next process outside of its own context.
    by: WeakHandle,
    inits: Arc<AtomicUsize>,
}

impl Nested {
    fn new(by: &Handle, start: Start) -> Self {
        Self {
            left: DEEP,
            start,
            by: by.downgrade(),
            inits: Arc::default(),
        }
    }

    fn next(&self) -> Self {
        Self {
            left: self.left - 1,
            start: self.start,
            by: self.by.clone(),
            inits: Arc::clone(&self.inits),
        }
    }
}

impl Actor for Nested {
    type Message = ();

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        self.inits.fetch_add(1, Ordering::SeqCst);
        if self.left == 0 {
            return Ok(());
        }
        (self.start)(ctx, self)
    }

    fn receive(&mut self, _: &Context, (): (), out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}

fn depth_of(error: &SubmitError) -> Option<usize> {
    match error.kind {
        SubmitErrorKind::TooDeep { depth } => Some(depth),
        _ => None,
    }
}

const STARTS: [Start; 3] = [
    |ctx, this| Ok(ctx.spawner().spawn(this.next()).map(drop)?),
    |ctx, this| {
        let name = format!("nested {}", this.left);
        Ok(ctx.monitored(1).named(name).spawn(this.next()).map(drop)?)
    },
    |_, this| {
        let handle = this.by.upgrade().ok_or("no scheduler")?;
        Ok(handle.spawn(this.next()).map(drop)?)
    },
];

// pins: P1, P8
#[test]
fn starts_inside_of_starts_are_refused_at_a_depth() {
    let scheduler = start(1);
    for start in STARTS {
        let nested = Nested::new(&scheduler, start);
        let inits = Arc::clone(&nested.inits);
        let error = scheduler.spawn(nested).unwrap_err();
        assert_eq!(inits.load(Ordering::SeqCst), MAX);
        let text = error.to_string();
        assert!(text.contains("nested starts are 64 deep"), "{text}");
        assert!(matches!(error.kind, SubmitErrorKind::InitFailed(_)));
        assert_eq!(scheduler.stats().live, 0);
    }
}

// pins: P1, P8
#[test]
fn the_one_that_is_too_deep_comes_back_and_the_others_run() {
    let scheduler = start(1);
    let nested = Nested::new(&scheduler, |ctx, this| {
        if let Err(error) = ctx.spawner().spawn(this.next()) {
            assert_eq!(depth_of(&error), Some(MAX));
            assert!(error.into_process().is_some());
        }
        Ok(())
    });
    let inits = Arc::clone(&nested.inits);
    let (done, ended) = channel();
    // In a step, and so on the stack of a worker.
    let parent = actor_fn(move |ctx, nested: Nested, out| {
        let child = ctx.spawner().spawn(nested)?;
        // A step of its own is inside of no start.
        let other = ctx.spawner().spawn(actor_fn(|_, (): (), _| Ok(())))?;
        done.send((child, other))?;
        out.done(());
        Ok(())
    });
    let parent = scheduler.spawn(parent).unwrap();
    parent.send(nested).unwrap();
    assert!(exit(parent).is_done());
    let (child, _other) = ended.recv_timeout(PATIENCE).unwrap();
    assert_eq!(inits.load(Ordering::SeqCst), MAX);
    until("65 processes are there", || {
        scheduler.stats().live == MAX + 1
    });
    child.send(()).unwrap();
    until("the outermost has ended", || scheduler.stats().live == MAX);
}

// pins: P1, P8
#[test]
fn inits_that_take_much_stack_are_refused_earlier() {
    let scheduler = start(1);
    let nested = Nested::new(&scheduler, |ctx, this| {
        let large = black_box([0_u8; 64 << 10]);
        let started = ctx.spawner().spawn(this.next());
        black_box(&large);
        Ok(started.map(drop)?)
    });
    let inits = Arc::clone(&nested.inits);
    let error = scheduler.spawn(nested).unwrap_err();
    assert!(error.to_string().contains("nested starts are"));
    let depth = inits.load(Ordering::SeqCst);
    assert!((2..=17).contains(&depth), "{depth}");
}

// pins: P1, P8
#[test]
fn the_stack_of_the_init_that_starts_another_counts() {
    fn large_init(ctx: &Context, it: &Nested) -> Result<(), BoxError> {
        let large = black_box([0_u8; 600 << 10]);
        ctx.spawn(it.next())?;
        black_box(&large);
        Ok(())
    }
    let scheduler = start(1);
    let first = Nested::new(&scheduler, large_init);
    let inits = Arc::clone(&first.inits);
    let handle = scheduler.handle();
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let refused = thread.spawn(move || handle.spawn(first).unwrap_err());
    let refused = refused.unwrap().join().unwrap();
    assert!(
        refused.to_string().contains("nested starts are 2 deep"),
        "{refused}"
    );
    // Two take more than a mebibyte, and a third would leave less than a quarter of the stack.
    // Ordering: Relaxed: the thread has ended.
    assert_eq!(inits.load(Ordering::Relaxed), 2);
}

/// Starts a process at each start.
#[derive(Default)]
struct OnStart(Mutex<Option<WeakHandle>>, AtomicUsize);

impl Lifecycle for OnStart {
    fn on_start(&self, _: Pid, _: Symbol) -> Result<(), BoxError> {
        if self.1.fetch_add(1, Ordering::SeqCst) < DEEP {
            let handle = self.0.lock().unwrap().clone().ok_or("no handle")?;
            handle.upgrade().ok_or("gone")?.spawn(waiter())?;
        }
        Ok(())
    }
}

// pins: P1, P8
#[test]
fn a_hook_that_starts_processes_at_each_start_is_refused_at_a_depth() {
    let hook = Arc::new(OnStart::default());
    let builder = Scheduler::builder().workers(1).lifecycle(Arc::clone(&hook));
    let scheduler = builder.build().unwrap();
    *hook.0.lock().unwrap() = Some(scheduler.downgrade());
    let error = scheduler.spawn(waiter()).unwrap_err();
    assert!(
        matches!(error.kind, SubmitErrorKind::StartRefused(_)),
        "{error}"
    );
    assert_eq!(hook.1.load(Ordering::SeqCst), MAX);
}

/// Starts another process, whose start fails.
struct Fails(WeakHandle, Arc<AtomicUsize>);

impl Fails {
    fn start(self) -> Option<SubmitError> {
        let handle = self.0.upgrade()?;
        let hook = move |address: &Address| {
            address
                .add_exit_action(Box::new(self))
                .map_err(|_| "ended")?;
            Err("on purpose".into())
        };
        handle.spawner().before_init(hook).spawn(waiter()).err()
    }
}

impl ExitAction for Fails {
    fn not_started(self: Box<Self>, _: Pid, _: &ExitCause) {
        if self.1.fetch_add(1, Ordering::SeqCst) < DEEP {
            drop(self.start());
        }
    }
}

// pins: P8, P12
#[test]
fn a_start_for_each_start_that_fails_is_refused_at_a_depth() {
    let scheduler = start(1);
    let count = Arc::default();
    let first = Fails(scheduler.downgrade(), Arc::clone(&count));
    let error = first.start().unwrap();
    assert!(
        matches!(error.kind, SubmitErrorKind::Prevented(_)),
        "{error}"
    );
    assert_eq!(count.load(Ordering::SeqCst), MAX);
}

/// Terminates the next process.
struct Terminates(Option<Pid>, WeakHandle);

impl ExitAction for Terminates {
    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        if let (Some(next), Some(handle)) = (self.0, self.1.upgrade()) {
            let _has_ended = handle.terminate(next);
        }
    }
}

// pins: P8, P12
#[test]
fn ends_that_each_cause_the_next_are_not_inside_of_each_other() {
    for workers_run in [true, false] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let mut first = None;
        for _ in 0..DEEP {
            let process = scheduler.spawn(waiter()).unwrap();
            let action = Terminates(first.replace(process.pid()), scheduler.downgrade());
            process.address().add_exit_action(Box::new(action)).unwrap();
        }
        let first = first.unwrap();
        if workers_run {
            scheduler.start().unwrap();
            scheduler.terminate(first).unwrap();
            until("all have ended", || scheduler.stats().live == 0);
        }
        // Without workers, the stop ends them.
        let report = match workers_run {
            true => scheduler.stop(Duration::ZERO).unwrap(),
            false => stop_unstarted(&scheduler, Duration::ZERO),
        };
        // A process just ending may count as stuck.
        assert!(report.stuck.is_empty() || report.closing > 0, "{report}");
        until("all are gone", || scheduler.stats().live == 0);
    }
}

/// Starts a process for each command, and answers at once.
struct Starts(WeakHandle);

impl Handler for Starts {
    fn handle(&self, _: Command, completer: Completer) -> Result<(), BoxError> {
        let handle = self.0.upgrade().ok_or("gone")?;
        drop(handle.spawn(process_fn(|_, _, out| {
            out.done(());
            Ok(())
        }))?);
        completer.complete(());
        Ok(())
    }
}

// pins: P6, P8
#[test]
fn commands_that_are_answered_at_once_are_not_inside_of_each_other() {
    const STARTS: CommandId = CommandId::new(1_000);
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let handler = Starts(scheduler.downgrade());
    scheduler.register(STARTS, "starts", handler).unwrap();
    scheduler.start().unwrap();
    let mut left = DEEP;
    let asks = process(move |_, events, out| {
        for event in events {
            if let Event::Completion(answer) = event {
                answer.result?;
            }
        }
        left -= 1;
        match left {
            0 => out.done(()),
            _ => out.yield_command(Command::new(STARTS, ()), 1),
        }
        Ok(())
    });
    assert!(exit(scheduler.spawn(asks).unwrap()).is_done());
}
