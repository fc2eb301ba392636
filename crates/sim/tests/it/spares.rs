//! Spares: how long they live, and which acts of a step would block its thread.

use ganger_proc_api::{Context, Events, Message, Process, SendErrorKind, StepOutput, StepResult};
use ganger_sched::{Address, Handle, ProcessHandle};
use ganger_sim::{Faults, Rt, Sim};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Ends in its first step.
struct Quick;

impl Process for Quick {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}

/// Submits `count` processes at once, and waits until all have ended.
fn wave(rt: &Rt<'_>, count: usize) {
    let submit = |_| rt.submit(Quick, "main", ()).unwrap();
    let all: Vec<_> = (0..count).map(submit).collect();
    all.into_iter()
        .for_each(|it| assert!(rt.wait(it).is_done()));
}

const BLOCKING: Faults = Faults {
    step_blocks: 500,
    ..Faults::some()
};

// pins: G6
#[test]
fn a_spare_that_nobody_needs_ends_and_its_slot_has_another() {
    let keep = Duration::from_millis(200);
    for (workers, spares) in [(1, 1), (2, 1), (1, 4)] {
        let sim = Sim::new(0).workers(workers).spares(spares).faults(BLOCKING);
        let sim = sim.builder(move |builder| builder.keep_spares(keep));
        sim.must_free().check_seeds(40, |rt| {
            for _ in 0..3 {
                wave(rt, 8);
                rt.settle();
                assert_eq!(rt.stats().spares, 0, "nobody needs them");
            }
        });
    }
    let sim = Sim::new(0).workers(1).spares(1).faults(BLOCKING);
    let sim = sim.builder(move |builder| builder.keep_spares(keep));
    let waves = |count| {
        let mut long = 0;
        let report = sim.run(|rt| {
            for _ in 0..count {
                wave(rt, 12);
                rt.settle();
            }
            long = rt.stats().total.long_steps;
        });
        (report.trace.to_string(), long)
    };
    let (trace, once) = waves(1);
    assert!(trace.contains("ends, since nobody has needed it"));
    let (_, ten) = waves(10);
    assert!(
        ten > 3 * once && once > 0,
        "{once} were relieved, and then {ten}"
    );
}

const MINUTE: Duration = Duration::from_secs(60);

fn more() -> Message {
    Message::new("more", 2_u64)
}

/// Sends to another process, and waits for room in its mailbox.
struct Sender {
    to: Address,
    sent: Arc<Mutex<Option<SendErrorKind>>>,
}

impl Process for Sender {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let sent = self.to.send_blocking(more());
        *self.sent.lock().unwrap() = sent.err().map(|error| error.kind);
        out.done(());
        Ok(())
    }
}

/// Takes no events.
struct Sleeper;

impl Process for Sleeper {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

/// Starts a process that takes no events, and fills its mailbox.
fn full(handle: &Handle) -> ProcessHandle {
    let sleeper = handle.submit(Sleeper, "main", ()).unwrap();
    sleeper.send(Message::new("first", 1_u64)).unwrap();
    sleeper
}

/// Returns the result of a send that waits for room in a step, with `spares` spares.
fn send_in_a_step(spares: usize) -> Option<SendErrorKind> {
    let sent = Arc::default();
    let sim = Sim::new(0).spares(spares);
    sim.builder(|builder| builder.mailbox_limit(1)).run(|rt| {
        let sleeper = full(rt);
        let (to, sent) = (sleeper.address().clone(), Arc::clone(&sent));
        let sender = rt.submit(Sender { to, sent }, "main", ()).unwrap();
        assert!(rt.wait(sender).is_done());
    });
    sent.lock().unwrap().take()
}

fn panic_of(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    *panic.downcast::<String>().unwrap()
}

// pins: P13
#[test]
fn a_send_that_waits_for_room_is_refused_where_it_would_block_the_only_thread() {
    // As on threads: a step does not wait when no spare can take its worker's place.
    assert_eq!(send_in_a_step(0), Some(SendErrorKind::Full));
    let in_a_step = panic_of(|| _ = send_in_a_step(1));
    let outside = |send: fn(&ProcessHandle)| {
        let sim = Sim::new(0).builder(|builder| builder.mailbox_limit(1));
        panic_of(|| _ = sim.run(|rt| send(&full(rt))))
    };
    let blocking = outside(|to| _ = to.address().send_blocking(more()));
    let within = outside(|to| _ = to.address().send_timeout(more(), MINUTE));
    for report in [in_a_step, blocking, within] {
        let says = "a send that waits for room would block the simulation for ever; use `send`, \
                    or `send_async`";
        assert!(report.contains(says), "{report}");
    }
}

thread_local! {
    /// The file of this thread's first panic, while a test asks for it.
    static FIRST_PANIC: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Returns the file of the first panic in `f`.
fn place_of_panic(f: impl FnOnce()) -> String {
    // The first run installs a hook of its own. The install must not race with another test's hook.
    Sim::new(0).run(|_| ());
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        FIRST_PANIC.with_borrow_mut(|first| {
            if let Some(first @ None) = first {
                *first = info.location().map(|place| place.file().to_owned());
            }
        });
        before(info);
    }));
    FIRST_PANIC.set(Some(None));
    let _says = panic_of(f);
    FIRST_PANIC.take().flatten().unwrap()
}

#[test]
fn what_would_block_the_simulation_is_refused_where_it_is_called() {
    let calls: [fn(&Rt<'_>); 5] = [
        |rt| _ = full(rt).wait(),
        |rt| _ = Handle::stop(rt, MINUTE),
        |rt| _ = full(rt).address().send_blocking(more()),
        |rt| _ = full(rt).address().send_timeout(more(), MINUTE),
        |rt| _ = rt.send_blocking(more().to(full(rt).pid())),
    ];
    for call in calls {
        let sim = Sim::new(0).builder(|builder| builder.mailbox_limit(1));
        let place = place_of_panic(|| _ = sim.run(call));
        assert!(place.ends_with("spares.rs"), "{place}");
    }
}
