//! Messages for full mailboxes.
//!
//! **Problem.** A message has come, and the mailbox of its process is full. Later messages for
//! other processes must go on, and no message of the process may pass the waiting message.
//!
//! **Protocol.** The message waits here, with its credit, as a sender waits for room. Later
//! messages for its process wait behind it. The credit that the peer has bounds all of them:
//! without credit the peer's data lane waits, and control goes on. Large messages have given their
//! credit back, so the link gives none for further chunks while too many bytes of them wait here.
//! A notice in order for the process waits behind earlier messages.

use super::calls::{self, Inside};
use crate::id::Half;
use ganger_proc_api::{Envelope, ExitCause, Pid, SendError};
use ganger_sched::{Handle, SendAsync};
use ganger_sync::sync::{Mutex, lock};
use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// The cost of a waiting message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cost {
    /// Of a message in a frame: its credit.
    Credit(Half, usize),
    /// Of a large message, whose credit has been given back: its length.
    Large(usize),
}

/// With its replies.
type Waiting = (Envelope, Cost, Inside);

/// The end of a process, by the number of its monitor.
type Exit = (u64, ExitCause);

enum Behind {
    Message(Waiting),
    Exit(Exit),
}

struct Line {
    /// The first, which waits for room in the mailbox.
    first: SendAsync,
    cost: Cost,
    replies: Inside,
    rest: VecDeque<Behind>,
    waker: Waker,
}

/// The processes whose mailboxes have room now.
type Ready = Arc<Mutex<Vec<Pid>>>;

struct HasRoom {
    pid: Pid,
    ready: Ready,
    link: Waker,
}

impl Wake for HasRoom {
    fn wake(self: Arc<Self>) {
        lock(&self.ready).push(self.pid);
        self.link.wake_by_ref();
    }
}

#[derive(Default)]
pub(crate) struct Parked {
    lines: HashMap<Pid, Line>,
    ready: Ready,
    large: usize,
    /// Notices whose messages have gone.
    exits: Vec<Exit>,
}

impl Parked {
    /// Returns the number of bytes of large messages that wait.
    pub(crate) fn large(&self) -> usize {
        self.large
    }

    /// Returns whether no message waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns whether messages for the process wait.
    pub(crate) fn has(&self, pid: Pid) -> bool {
        self.lines.contains_key(&pid)
    }

    /// Has a message wait behind those for its process.
    pub(crate) fn push(&mut self, scheduler: &Handle, link: &Waker, waiting: Waiting) {
        let (envelope, cost, replies) = waiting;
        let pid = envelope.target;
        if let Cost::Large(length) = cost {
            self.large += length;
        }
        if let Some(line) = self.lines.get_mut(&pid) {
            let waiting = (envelope, cost, replies);
            return line.rest.push_back(Behind::Message(waiting));
        }
        let waker = Waker::from(Arc::new(HasRoom {
            pid,
            ready: Arc::clone(&self.ready),
            link: link.clone(),
        }));
        let line = Line {
            first: scheduler.send_async(envelope),
            cost,
            replies,
            rest: VecDeque::new(),
            waker,
        };
        self.lines.insert(pid, line);
        lock(&self.ready).push(pid);
    }

    /// Has a notice wait behind the messages for its watcher. Returns the notice if none wait.
    pub(crate) fn push_exit(&mut self, watcher: Pid, exit: Exit) -> Option<Exit> {
        let Some(line) = self.lines.get_mut(&watcher) else {
            return Some(exit);
        };
        line.rest.push_back(Behind::Exit(exit));
        None
    }

    /// Takes the notices whose messages have gone.
    pub(crate) fn exits(&mut self) -> Vec<Exit> {
        std::mem::take(&mut self.exits)
    }

    /// Delivers to mailboxes with room. `done` gets each message's cost, and the refusal, if any.
    pub(crate) fn poll(
        &mut self,
        scheduler: &Handle,
        mut done: impl FnMut(Cost, Inside, Result<(), SendError>),
    ) {
        let ready = std::mem::take(&mut *lock(&self.ready));
        for pid in ready {
            let Some(line) = self.lines.get_mut(&pid) else {
                continue;
            };
            let is_over = loop {
                let mut context = Context::from_waker(&line.waker);
                let result = match Pin::new(&mut line.first).poll(&mut context) {
                    Poll::Pending => break false,
                    Poll::Ready(Ok(())) => Ok(()),
                    // A recipient's message waits for room as well.
                    Poll::Ready(Err(refused)) => match calls::converted(scheduler, refused) {
                        Ok(Some(envelope)) => {
                            line.first = scheduler.send_async(envelope);
                            continue;
                        }
                        Ok(None) => Ok(()),
                        Err(refused) => Err(refused),
                    },
                };
                if let Cost::Large(length) = line.cost {
                    self.large -= length;
                }
                let (of, numbers) = &mut line.replies;
                let replies = (Arc::clone(of), std::mem::take(numbers));
                done(line.cost, replies, result);
                let next = loop {
                    match line.rest.pop_front() {
                        Some(Behind::Exit(exit)) => self.exits.push(exit),
                        Some(Behind::Message(waiting)) => break Some(waiting),
                        None => break None,
                    }
                };
                let Some((envelope, cost, replies)) = next else {
                    break true;
                };
                line.first = scheduler.send_async(envelope);
                line.cost = cost;
                line.replies = replies;
            };
            if is_over {
                self.lines.remove(&pid);
            }
        }
    }
}
