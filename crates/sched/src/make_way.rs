//! A step is about to block its thread: somebody else takes what waits, without being told by the monitor.
//!
//! Whose worker the thread is decides, not whom the step waits for: a step may wait for a process of another
//! scheduler, and keeps its own one's processes from running.

use crate::local;
use crate::shared::Shared;
use ganger_proc_api::Pid;
use ganger_sync::atomic::{Ordering, fence};
use std::sync::Arc;

/// Calls `f`, which may block. A worker of whichever scheduler makes way before that.
pub(crate) fn block(f: &mut dyn FnMut()) {
    block_if(|_has_way| true, f);
}

/// As [`block`], for who waits for something that processes do. `false`, and `f` is not called: processes wait
/// already, and nobody can take them.
pub(crate) fn block_beside_others(f: impl FnOnce()) -> bool {
    block_if(|has_way| has_way, f)
}

fn block_if(may_block: impl FnOnce(bool) -> bool, f: impl FnOnce()) -> bool {
    local::with_any(|queue| {
        // For what is pushed from now on, the monitor need not wait until it sees the thread asleep.
        let _announced = queue.map(|queue| queue.shared.crew.announce(queue.index));
        let has_way = queue.is_none_or(|queue| queue.shared.make_way(queue.index));
        let blocks = may_block(has_way);
        if blocks {
            f();
        }
        blocks
    })
}

/// Whether a wait on this thread for a process can end: it does not run the process itself, and leaves a thread
/// that does. The thread that was started last finds no relief, and so is never one that waits. Nor is one that is no
/// worker and ends processes in a shutdown: there may be none left to end the one that it would wait for.
pub(crate) fn may_wait_for(shared: &Shared, pid: Pid) -> bool {
    if local::ends_processes(shared) {
        return false;
    }
    local::with_any(|queue| {
        let Some(queue) = queue else { return true };
        let is_its_own = queue.is_of(shared) && queue.shared.running_on(queue.index) == Some(pid);
        !is_its_own && queue.shared.crew.has_relief(queue.index)
    })
}

impl Shared {
    /// The worker, which is this thread, is about to block: has somebody else take what waits. `false` when nobody
    /// can.
    #[must_use]
    fn make_way(self: &Arc<Self>, worker: usize) -> bool {
        let Self {
            idle,
            crew,
            shutdown,
            ..
        } = &**self;
        // After the halt nobody's place is taken any more.
        if shutdown.is_halted() || !self.has_work() || idle.notify() {
            return true;
        }
        // Ordering: SeqCst, pairs with the one in `Idle::end_search`: either the last searcher sees what waits here, or
        // the look below sees that it has ended its search.
        fence(Ordering::SeqCst);
        let now = idle.snapshot();
        let is_somebody_free = now.sleeping > 0 || now.searching > 0;
        is_somebody_free || crew.relieve(self, worker, None) || crew.is_relieved(worker)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Address, Handle, Scheduler};
    use ganger_proc_api::{BoxError, Events, Message, Process, SendErrorKind, StepOutput};
    use std::sync::OnceLock;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    /// Its `close` waits for room, if there is an address.
    struct Waits(Arc<OnceLock<Address>>);

    impl Process for Waits {
        fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            out.idle();
            Ok(())
        }

        fn close(&mut self) {
            if let Some(full) = self.0.get() {
                let refused = full.send_blocking(Message::new("bye", ())).unwrap_err();
                assert_eq!(refused.kind, SendErrorKind::Full);
            }
        }
    }

    /// Its step stops a scheduler.
    struct Stops(Handle, Sender<()>);

    impl Process for Stops {
        fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            self.0.stop(Duration::from_millis(20));
            out.done(());
            Ok(self.1.send(())?)
        }
    }

    // pins: D3, D4
    #[test]
    fn a_worker_that_ends_the_processes_of_another_scheduler_waits_for_none_of_them() {
        let builder = Scheduler::builder().workers(1).mailbox_limit(1);
        let there = builder.build().unwrap();
        // So that whoever stops it has to end what is there.
        there.shared.crew.refuse_threads(true);
        let full = Arc::new(OnceLock::new());
        let waits = there.submit(Waits(Arc::clone(&full)), "waits", ()).unwrap();
        let last = there.submit(Waits(Arc::default()), "last", ()).unwrap();
        last.send(Message::new("fills", ())).unwrap();
        assert!(full.set(last.address().clone()).is_ok());
        let here = Scheduler::builder().workers(1).build().unwrap();
        here.start().unwrap();
        let (tell, told) = channel();
        let stops = Stops(there.handle(), tell);
        drop(here.submit(stops, "stops", ()).unwrap());
        let told = told.recv_timeout(Duration::from_secs(60));
        told.expect("it waits for one that nobody else ends");
        drop([waits.wait(), last.wait()]);
        assert_eq!(there.stats().total.panics, 0);
    }
}
