//! How a thread of the scheduler waits in the driver.

use crate::base::contain::contain_and_report;
use crate::probe::Probe;
use crate::queues::idle::{Blocked, block_on};
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use ganger_proc_api::Pid;
use ganger_sync::Parker;
use std::time::Duration;

impl Shared {
    /// Blocks the thread that has the parker: in the driver, if no other thread is there, and
    /// `may_wait` finds no token on its way. Also returns newly ready processes.
    pub(crate) fn block(
        &self,
        parker: &Parker,
        time: Option<Duration>,
        may_wait: impl FnOnce() -> bool,
    ) -> (Blocked, Vec<Token>) {
        let (mut has_token, mut was_elsewhere) = (false, false);
        let ready = self.enter_driver(|wait| {
            was_elsewhere = may_wait();
            has_token = was_elsewhere && parker.wait_elsewhere(|| wait(time));
        });
        if !was_elsewhere {
            has_token = block_on(parker, time);
        }
        let blocked = Blocked {
            has_token,
            was_elsewhere,
        };
        (blocked, ready.unwrap_or_default())
    }

    /// Calls `enters` and polls the driver, if no other thread is there. Returns the ready
    /// processes.
    pub(crate) fn look_in_driver(&self, enters: impl FnOnce()) -> Vec<Token> {
        let ready = self.enter_driver(|wait| {
            enters();
            wait(Some(Duration::ZERO));
        });
        ready.unwrap_or_default()
    }

    /// Calls `visit` with the driver's wait. Returns newly ready processes; `None` without a
    /// driver, or with another thread in it.
    fn enter_driver(&self, visit: impl FnOnce(&dyn Fn(Option<Duration>))) -> Option<Vec<Token>> {
        let driven = self.timing.driven.as_ref()?;
        let mut ready = None;
        driven.waiter.enter(|| {
            ready = Some(local::put_aside(self, || {
                visit(&|time| self.contain_driver(|| driven.driver.wait(time)));
            }));
            self.now()
        });
        ready
    }

    /// Keeps a ready process, if this thread is in the driver, and has the thread leave the driver.
    /// Returns the process otherwise.
    pub(crate) fn put_aside(&self, token: Token) -> Option<Token> {
        let Some(driven) = &self.timing.driven else {
            return Some(token);
        };
        let is_first = match local::take_aside(self, token) {
            Ok(is_first) => is_first,
            Err(token) => return Some(token),
        };
        if is_first {
            driven.interrupt();
        }
        None
    }

    /// Queues the processes that have become ready while this worker was in the driver, the first
    /// on top.
    pub(crate) fn schedule_ready(&self, queue: &LocalQueue, ready: Vec<Token>) {
        for token in ready.into_iter().rev() {
            let _waking = self.probe.waking(|| Some(queue.index));
            queue.begin_woken(queue.deque.len());
            queue.push(token);
        }
    }

    /// Returns whether the driver exists and has no thread in it. A caller that relies on the
    /// answer is behind a fence.
    pub(crate) fn is_driver_left(&self) -> bool {
        (self.timing.driven.as_ref()).is_some_and(|driven| driven.waiter.is_free())
    }

    /// Makes this thread a worker as long as `work` lasts.
    pub(crate) fn with_worker(&self, work: &mut dyn FnMut()) {
        match &self.timing.driven {
            Some(driven) => driven.driver.with_worker(work),
            None => work(),
        }
    }

    /// Notifies the driver of the scheduler's halt.
    pub(crate) fn detach_driver(&self) {
        if let Some(driven) = &self.timing.driven {
            self.contain_driver(|| driven.driver.detach());
        }
    }

    fn contain_driver(&self, f: impl FnOnce()) {
        let pid = Pid::new(self.host, 0);
        contain_and_report("a driver", pid, self.own_counters(), f);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::noop_process::NoopProcess;
    use crate::queues::idle::Snapshot;
    use crate::runtime::driver::Driver;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::thread;

    /// Waits for a signal. Notes its waits.
    #[derive(Clone)]
    struct Signals {
        send: Sender<()>,
        receive: Arc<Mutex<Receiver<()>>>,
        waits: Arc<Mutex<Waits>>,
    }

    #[derive(Debug, Default, Clone, PartialEq)]
    struct Waits {
        /// The limit of the present wait.
        inside: Option<Option<Duration>>,
        count: usize,
    }

    impl Driver for Signals {
        fn wait(&self, timeout: Option<Duration>) {
            let mut waits = self.waits.lock().unwrap();
            waits.inside = Some(timeout);
            waits.count += 1;
            drop(waits);
            let receive = self.receive.lock().unwrap();
            let _over = match timeout {
                None => receive.recv().is_ok(),
                Some(timeout) => receive.recv_timeout(timeout).is_ok(),
            };
            self.waits.lock().unwrap().inside = None;
        }

        fn interrupt(&self) {
            self.send.send(()).unwrap();
        }
    }

    /// Checks that each thread of an idle scheduler waits in the driver without a limit, not by a
    /// clock.
    // pins: I3, G7
    #[test]
    fn an_idle_scheduler_stays_in_the_driver() {
        let (send, receive) = channel();
        let driver = Signals {
            send,
            receive: Arc::new(Mutex::new(receive)),
            waits: Arc::default(),
        };
        let builder = Scheduler::builder().workers(2);
        let scheduler = builder.driver(driver.clone()).build().unwrap();
        scheduler.start().unwrap();
        let shared = &scheduler.shared;
        let all_sleep = Snapshot {
            searching: 0,
            sleeping: 2,
            unwatched: true,
        };
        let still = || {
            let waits = driver.waits.lock().unwrap().clone();
            let is_still = shared.queues.idle.snapshot() == all_sleep && waits.inside == Some(None);
            is_still.then_some(waits)
        };
        // A late interrupt ends a further wait.
        let until_still = || {
            let (mut before, mut looks) = (None, 0);
            while looks < 1000 {
                let now = still();
                looks = if now.is_some() && now == before {
                    looks + 1
                } else {
                    0
                };
                before = now;
                thread::yield_now();
            }
        };
        for _ in 0..10 {
            until_still();
            assert!(!shared.timing.timer_waiter.is_used());
            let handle = scheduler.submit(NoopProcess, "main", ()).unwrap();
            assert!(handle.wait().is_done());
        }
    }
}
