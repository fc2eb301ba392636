use super::*;
use crate::Address;
use crate::Scheduler;
use crate::runtime::local::{self, LocalQueue};
use crate::turn::run::Runner;
use ganger_proc_api::{
    BoxError, Command, CommandId, Context, Event, Events, Message, Process, StepResult,
};
use ganger_sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::thread;

/// The command with a handler.
const CARRIED_OUT: CommandId = CommandId::new(256);

/// Yields the command `left` times, each time after the last answer.
struct Asker {
    command: CommandId,
    left: u32,
}

impl Process for Asker {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let answers = events.filter(|event| matches!(event, Event::Completion(_)));
        self.left -= u32::try_from(answers.count())?;
        if self.left == 0 {
            out.done(());
        } else {
            out.yield_command(Command::new(self.command, ()), 0);
        }
        Ok(())
    }
}

/// A handler's use of the completer before it returns, for a process with this address.
type Manner = fn(Completer, &Address);

const AT_ONCE: Manner = |completer, _| completer.complete(());
const FAILED: Manner = |completer, _| completer.fail("on purpose");
const DROPPED: Manner = |completer, _| drop(completer);
const BEHIND: Manner = |completer, asker| {
    asker.send(Message::new("first", ())).unwrap();
    completer.complete(());
};
const ELSEWHERE: Manner = |completer, _| thread::spawn(|| completer.complete(())).join().unwrap();
const DROPPED_ELSEWHERE: Manner = |completer, _| thread::spawn(|| drop(completer)).join().unwrap();
const PANICS_WITH_IT: Manner = |_completer, _| panic!("on purpose: handler");
const PANICS_AFTER_IT: Manner = |completer, _| {
    completer.complete(());
    panic!("on purpose: handler");
};

// pins: P6, P12
#[test]
fn the_reference_of_a_completer_comes_back_to_its_process_or_goes() {
    for manner in [
        AT_ONCE,
        FAILED,
        DROPPED,
        BEHIND,
        ELSEWHERE,
        DROPPED_ELSEWHERE,
        PANICS_WITH_IT,
        PANICS_AFTER_IT,
    ] {
        ask(manner, CARRIED_OUT);
    }
    // This command has no handler.
    ask(AT_ONCE, CommandId::new(257));
}

fn ask(manner: Manner, command: CommandId) {
    const YIELDS: u32 = 40;
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let asker = Arc::new(OnceLock::<Address>::new());
    let address = Arc::clone(&asker);
    let handled = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&handled);
    let handler = move |_: Command, completer: Completer| -> Result<(), BoxError> {
        // Ordering: Relaxed: the test has one thread.
        counts.fetch_add(1, Ordering::Relaxed);
        manner(completer, address.get().ok_or("no address")?);
        Ok(())
    };
    scheduler.register(CARRIED_OUT, "some", handler).unwrap();
    let left = YIELDS;
    let handle = scheduler
        .submit(Asker { command, left }, "main", ())
        .unwrap();
    let _first = asker.set(handle.address().clone());
    drop(handle);
    let shared = &scheduler.shared;
    shared.commands.freeze();
    let queue = LocalQueue::of_first(shared);
    queue.handlers.take(&shared.commands);
    local::enter(&queue, || {
        let mut runner = Runner::new(shared, Some(&queue));
        let task = shared.census.registry.all().next().unwrap();
        // In the registry, here, and in the address.
        let references = Arc::strong_count(&task);
        assert_eq!(references, 3);
        let mut next = shared.queues.global.pop();
        while let Some(token) = next {
            runner.run(token);
            next = queue.deque.pop();
            if next.is_some() {
                // And perhaps in itself.
                let more = Arc::strong_count(&task) - references;
                assert!(more <= 1, "{more}");
            }
        }
        assert!(task.state.is_closed());
        assert_eq!(
            Arc::strong_count(&task),
            references - 1,
            "nothing in itself"
        );
        let stats = shared.counters.total();
        assert_eq!((stats.yields, stats.done), (u64::from(YIELDS), 1));
    });
    let expected = if command == CARRIED_OUT { YIELDS } else { 0 };
    // Ordering: Relaxed: the test has one thread.
    assert_eq!(handled.load(Ordering::Relaxed), expected);
}
