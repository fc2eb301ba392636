//! The thread that helps a shutdown: it tells everybody, and has hands that end what no worker is free to end.
//!
//! A process ends by calling what is a user's, which may not return. So the reaper itself ends none, unless
//! the system grants it no hand, and where all of its hands are kept by one process each, it has another.

mod hands;
mod late;

pub(crate) use self::hands::MOST as MOST_HANDS;
pub(crate) use self::late::LateHands;

use self::hands::Hands;
use crate::clock::Deadline;
use crate::contain::log;
use crate::counted;
use crate::local::{self, Held};
use crate::run::Runner;
use crate::shared::Shared;
use crate::token::Token;
use ganger_deque::Steal;
use ganger_sync::atomic::{Ordering, fence};
use ganger_sync::hint;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

/// How often it looks at what stuck workers have in their deques; and how rarely at the least, when all of its hands are
/// kept as well.
const INTERVAL: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(100);

/// What has come of a look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    /// There was nothing to do, or it has been done.
    Done,
    /// There is something to do, and nobody to do it.
    InVain,
}

/// Starts the thread. Returns whether the system granted one.
#[must_use]
pub(crate) fn start(shared: &Arc<Shared>) -> bool {
    // It may have to do without hands.
    let builder = counted::builder(shared, "reaper");
    let spawned = counted::spawn(builder, shared, help);
    if let Err(error) = &spawned {
        log(
            Level::ERROR,
            || tracing::error!(target: "ganger::sched", %error, "can't start the reaper thread"),
        );
    }
    spawned.is_ok()
}

fn help(shared: &Arc<Shared>) {
    // Whoever called `stop` may be pinned.
    shared.worker_slots.unpin();
    let progress = &shared.shutdown;
    // What it queues after the halt is for its hands.
    let telling = local::hold(shared, Held::Telling);
    tell_all(shared);
    // Until all have ended, or there is more to do.
    let is_over = || progress.is_terminating() || progress.is_halted();
    let enough = || if is_over() { usize::MAX } else { 0 };
    shared.live.wait(enough, || Deadline::after(Duration::MAX));
    if progress.is_terminating() {
        terminate_all(shared);
    }
    drop(telling);
    let mut hands = Hands::default();
    until_all_have_ended(shared, || hands.see_to(shared));
}

/// Calls `act` now and then, until all processes have ended, or nothing is left that is not in somebody's hands: less and
/// less often while it can do nothing.
fn until_all_have_ended(shared: &Shared, mut act: impl FnMut() -> Act) {
    let mut interval = INTERVAL;
    loop {
        interval = match act() {
            Act::Done => INTERVAL,
            Act::InVain => LONGEST.min(2 * interval),
        };
        let next = Deadline::after(interval);
        let all_ended = shared.live.wait(|| 0, || next);
        if all_ended {
            return;
        }
        if shared.shutdown.is_halted() {
            fence_after_halt();
            if !shared.has_work() {
                return;
            }
        }
    }
}

/// Gives every process its cancel event, until there is no time for that any more.
pub(crate) fn tell_all(shared: &Shared) {
    for task in shared.registry.all() {
        if shared.shutdown.is_terminating() {
            return;
        }
        task.notify_of_shutdown();
    }
}

/// Lets no process take a further step: each ends when somebody takes it up.
pub(crate) fn terminate_all(shared: &Shared) {
    for task in shared.registry.all() {
        task.terminate();
    }
}

/// Runs what is queued, anywhere, until nothing is: after a halt each ends.
pub(crate) fn reap(shared: &Arc<Shared>) {
    reap_and_count(shared, || ());
}

/// As [`reap`], and says so before each turn.
fn reap_and_count(shared: &Arc<Shared>, mut count: impl FnMut()) {
    let mut runner = Runner::new(shared, None);
    let queued = || {
        let first = shared.urgent.pop().or_else(|| shared.global.pop());
        first.or_else(|| steal_anywhere(shared))
    };
    while let Some(mut token) = queued() {
        count();
        if shared.shutdown.is_halted() {
            // Whoever terminates all may not have come to this one yet.
            let task = token.into_task();
            task.terminate();
            // SAFETY: this thread owned the token, and the process is in no queue.
            token = unsafe { Token::new(&task) };
        }
        runner.run(token);
    }
}

/// Has what is queued after the workers have been told to return ended, when this thread is none of them and in the
/// middle of nothing: nobody else may look. Not on this thread, which may be anybody's, and which others' `close` might
/// keep.
#[inline]
pub(crate) fn reap_after_halt(shared: &Arc<Shared>) {
    if shared.shutdown.is_halted() {
        reap_late(shared);
    }
}

#[cold]
#[inline(never)]
fn reap_late(shared: &Arc<Shared>) {
    if local::is_outside(shared) {
        fence_after_halt();
        if shared.has_work() {
            hands::start_late(shared);
        }
    }
}

/// Comes between the halt, when it has been seen, and the last look at the queues.
pub(crate) fn fence_after_halt() {
    // Ordering: SeqCst, pairs with the one in `Idle::notify_from_outside`: a process is queued, then the halt is
    // looked at; the halt is seen here, then the queues. One of the two sees the other.
    fence(Ordering::SeqCst);
}

fn steal_anywhere(shared: &Shared) -> Option<Token> {
    shared.stealers().iter().find_map(|stealer| {
        loop {
            match stealer.steal() {
                Steal::Success(task) => return Some(task),
                Steal::Empty => return None,
                Steal::Retry => hint::spin_loop(),
            }
        }
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::state::ProcessState;
    use crate::{ProcessHandle, Scheduler};
    use ganger_proc_api::{BoxError, Events, ExitReason, Message, Process, StepOutput};
    use ganger_sync::atomic::AtomicUsize;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    /// Says on which thread its `close` runs, and counts its steps.
    struct Waits(Sender<String>, Arc<AtomicUsize>);

    impl Process for Waits {
        fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            // Ordering: Relaxed, because who looks has been told of the end.
            self.1.fetch_add(1, Ordering::Relaxed);
            out.idle();
            Ok(())
        }

        fn close(&mut self) {
            let name = thread::current().name().unwrap_or("none").to_owned();
            self.0.send(name).unwrap();
        }
    }

    /// A scheduler whose workers have left without anybody having told three processes, which wait; how many steps these
    /// took; and on which threads they are closed.
    fn halted() -> (
        Scheduler,
        [ProcessHandle; 3],
        Arc<AtomicUsize>,
        Receiver<String>,
    ) {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        scheduler.start().unwrap();
        let (tell, told) = channel();
        let steps = Arc::default();
        let waits = std::array::from_fn(|_| {
            let process = Waits(tell.clone(), Arc::clone(&steps));
            let waits = scheduler.submit(process, "main", ()).unwrap();
            let state = || scheduler.process(waits.pid()).unwrap().state;
            while state() != ProcessState::Idle {
                thread::yield_now();
            }
            waits
        });
        let shared = &scheduler.shared;
        // As if the reaper had got no processor until the workers had left.
        shared.shutdown.begin_stopping();
        shared.shutdown.begin_terminating();
        shared.shutdown.halt();
        shared.idle.notify_all();
        shared.idle.end_nap();
        let hour = Deadline::after(Duration::from_secs(3_600));
        assert!(shared.threads.wait(|| 0, || hour));
        (scheduler, waits, steps, told)
    }

    // pins: D4
    #[test]
    fn a_reaper_that_is_late_ends_nobody_itself() {
        let (scheduler, waits, _, told) = halted();
        assert!(start(&scheduler.shared));
        for waits in waits {
            assert!(matches!(waits.wait(), ExitReason::Terminated));
            assert!(told.recv().unwrap().ends_with("-hand"));
        }
    }

    /// It may be anybody's thread, and others' `close` may not return.
    // pins: D3, D4
    #[test]
    fn who_wakes_a_process_after_the_halt_runs_nobody() {
        let (_scheduler, waits, steps, told) = halted();
        // Ordering: Relaxed, as above.
        let before = steps.load(Ordering::Relaxed);
        for waits in waits {
            waits.send(Message::new("late", 1)).unwrap();
            assert!(matches!(waits.wait(), ExitReason::Terminated));
            assert!(told.recv().unwrap().ends_with("-hand"));
        }
        // Ordering: Relaxed, as above.
        assert_eq!(steps.load(Ordering::Relaxed), before, "steps after the end");
    }

    /// Where the system grants no thread there is nobody else.
    // pins: D4
    #[test]
    fn who_wakes_a_process_after_the_halt_ends_it_where_there_is_no_thread() {
        let (scheduler, waits, _, told) = halted();
        scheduler.shared.worker_slots.refuse_threads(true);
        for waits in waits {
            waits.send(Message::new("late", 1)).unwrap();
            assert!(matches!(waits.wait(), ExitReason::Terminated));
            assert!(!told.recv().unwrap().ends_with("-hand"));
        }
    }
}
