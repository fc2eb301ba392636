//! Waiting, outside of a process's steps, until the process is asked to finish: against the
//! canceller, and against the end. A lost wake-up leaves the watcher waiting for ever, and loom
//! reports it.

use crate::process::cancel_signals::CancelSignals;
use crate::process::state::State;
use ganger_sync::sync::Arc;
use ganger_sync::thread::JoinHandle;
use ganger_sync::{Parker, model, thread};
use std::task::Waker;

const ID: u64 = 7;

struct Process {
    state: State<u8>,
    signals: CancelSignals,
}

impl Process {
    fn running() -> Arc<Self> {
        let state = State::new();
        let _step = state.begin();
        let signals = CancelSignals::default();
        Arc::new(Self { state, signals })
    }

    /// Watches as `ProcessCell::watch_cancel` does, until the wait is over.
    fn watch(&self) {
        let token = std::sync::Arc::new(Parker::new());
        let waker = Waker::from(std::sync::Arc::clone(&token));
        let key = self.signals.enter(ID, None, waker);
        if self.state.watch() {
            self.signals.leave(ID, key);
        } else {
            token.park();
            assert!(self.state.is_unwanted(), "woken for nothing");
        }
    }

    fn wake(&self) {
        self.signals.take(ID).into_iter().for_each(Waker::wake);
    }

    /// Cancels the process as `ProcessCell::cancel` does.
    fn cancel(&self) {
        if self.state.cancel() {
            self.wake();
        }
    }

    /// Ends the process as `ProcessCell::complete` does.
    fn end(&self) {
        let _rest = self.state.complete();
        if self.state.is_watched() {
            self.wake();
        }
    }

    fn is_forgotten(&self) -> bool {
        self.signals.take(ID).is_empty()
    }
}

fn spawn(process: &Arc<Process>, f: fn(&Process)) -> JoinHandle<()> {
    let process = Arc::clone(process);
    thread::spawn(move || f(&process))
}

// pins: P10
#[test]
fn a_watcher_hears_of_the_request_and_of_the_end() {
    for ends in [Process::cancel, Process::end] {
        model::check(3, move || {
            let process = Process::running();
            let watcher = spawn(&process, Process::watch);
            ends(&process);
            watcher.join().unwrap();
            assert!(process.is_forgotten());
        });
    }
}

// pins: P10
#[test]
fn two_watchers_hear_of_the_request_while_the_process_ends() {
    model::check(2, || {
        let process = Process::running();
        let watchers = [(); 2].map(|()| spawn(&process, Process::watch));
        let canceller = spawn(&process, Process::cancel);
        process.end();
        canceller.join().unwrap();
        watchers.into_iter().for_each(|it| it.join().unwrap());
        assert!(process.is_forgotten());
    });
}
