//! System events from crates above the scheduler to processes.

use crate::process::exit_signal::ExitSignal;
use crate::runtime::cell::Task;
use crate::runtime::item::Item;
use ganger_proc_api::{Event, ExitNotice, Message, Pid};

/// The argument of [`Handle::send_system`](crate::Handle::send_system).
#[derive(Debug)]
#[non_exhaustive]
pub enum SystemEvent {
    /// The process gets the notice as [`Event::Exit`]. A notice [in order](ExitNotice::in_order)
    /// overtakes nothing.
    Exit(ExitNotice),
    /// The process gets it as [`Event::Control`].
    Control(Message),
    /// The worker asks the signal before the next step of the process.
    Signal(Box<dyn ExitSignal>),
}

/// A system event was not accepted, because no live process has the PID. The event is inside.
#[derive(Debug, thiserror::Error)]
#[error("can't send a system event to {pid}: no live process of this scheduler has that PID")]
pub struct SystemSendError {
    /// The PID.
    pub pid: Pid,
    /// The event.
    pub event: Box<SystemEvent>,
}

impl SystemSendError {
    pub(crate) fn new(pid: Pid, event: SystemEvent) -> Self {
        let event = Box::new(event);
        Self { pid, event }
    }
}

/// Sends a system event, or gives it back when the process has ended.
pub(crate) fn send(task: &Task, event: SystemEvent) -> Result<(), SystemEvent> {
    let notice = match event {
        SystemEvent::Control(message) => {
            let sent = task.deliver_control_beyond(message);
            return sent.map_err(SystemEvent::Control);
        }
        SystemEvent::Exit(notice) => Item::Event(Event::Exit(Box::new(notice))),
        SystemEvent::Signal(signal) => Item::Signal(signal),
    };
    let pushed = if notice.is_system() {
        task.push_system(notice)
    } else {
        task.push(notice)
    };
    match pushed {
        Err(Item::Event(Event::Exit(notice))) => Err(SystemEvent::Exit(*notice)),
        Err(Item::Signal(signal)) => Err(SystemEvent::Signal(signal)),
        Err(_) => unreachable!("the mailbox gives back what was pushed"),
        Ok(()) => Ok(()),
    }
}
