//! A process with acts of all kinds.

use ganger_proc_api::{
    BoxError, CancelReason, Command, CommandId, Completer, Context, Envelope, EnvelopeReceiver,
    Event, Events, ExitCause, ExitNotice, Message, NodeName, Outcome, Payloads, Pid, Process,
    StepOutput, StepResult, UpgradeRequest, receiver_fn,
};
use ganger_sched::{SystemEvent, WeakHandle};
use ganger_sim::{Rt, SimClock};
use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Answered at once.
const ASK: CommandId = CommandId::new(256);
/// Answered some time later.
const SLEEP: CommandId = CommandId::new(257);
/// Sends its process messages before and after the answer.
const ECHO: CommandId = CommandId::new(300);
/// No handler has this id.
const UNKNOWN: CommandId = CommandId::new(264);

/// The most processes, so that a run has an end.
const MOST: usize = 30;

/// All processes that have ever lived there, their scheduler, and its clock.
#[derive(Default)]
pub(crate) struct Town(Mutex<Vec<Pid>>, OnceLock<(WeakHandle, SimClock)>);

impl Town {
    pub(crate) fn move_in(&self, pid: Pid) {
        self.0.lock().unwrap().push(pid);
    }

    /// Has an outside sender send numbers to the citizens in turn. The sender stops after a while,
    /// so that a run has an end.
    pub(crate) fn meanwhile(self: &Arc<Self>, rt: &Rt<'_>, first: u64) {
        let (town, scheduler) = (Arc::clone(self), rt.downgrade());
        let last = Cell::new(first);
        rt.meanwhile(move || {
            let number = last.get() + 3;
            let (Some(scheduler), Some(pid)) = (scheduler.upgrade(), town.somebody(number)) else {
                return;
            };
            if number < 120 {
                last.set(number);
                // The mailbox may be closed or full.
                drop(scheduler.send(Message::new("number", number % 20).to(pid)));
            }
        });
    }

    /// Has the process woken some time later. The process may have ended by then.
    fn wake_later(&self, ctx: &Context) {
        if let Some((_, clock)) = self.1.get() {
            let waker = ctx.waker();
            clock.after(Duration::from_millis(1), move || waker.wake());
        }
    }

    /// Puts a system event to some process.
    fn send_system(&self, number: u64, event: SystemEvent) {
        let scheduler = self.1.get().and_then(|(scheduler, _)| scheduler.upgrade());
        if let (Some(scheduler), Some(pid)) = (scheduler, self.somebody(number)) {
            // The process may have ended.
            drop(scheduler.send_system(pid, event));
        }
    }

    fn somebody(&self, number: u64) -> Option<Pid> {
        let pids = self.0.lock().unwrap();
        let place = usize::try_from(number).ok()?.checked_rem(pids.len())?;
        Some(pids[place])
    }
}

pub(crate) struct Citizen {
    town: Arc<Town>,
    steps: u64,
    /// The process has been asked to finish: it ends after another command.
    is_finishing: bool,
    is_closed: bool,
}

impl Citizen {
    pub(crate) fn new(town: &Arc<Town>) -> Self {
        Self {
            town: Arc::clone(town),
            steps: 0,
            is_finishing: false,
            is_closed: false,
        }
    }

    /// Makes a message for others, a command, a child, an error, or an end.
    fn act(&mut self, ctx: &Context, number: u64, out: &mut StepOutput) -> Result<(), BoxError> {
        for other in [number + self.steps, 3 * number + 1] {
            if number > 1
                && let Some(pid) = self.town.somebody(other)
            {
                let half = number / 2;
                let sent = if number.is_multiple_of(5) {
                    ctx.send_control(pid, "control", half)
                } else {
                    ctx.send(pid, "number", half)
                };
                if let Err(error) = sent {
                    let envelope = error.into_envelope();
                    let payload = envelope.message.payloads.into_first().as_u64();
                    assert_eq!((envelope.target, payload), (pid, Some(half)));
                }
            }
        }
        if number.is_multiple_of(3) {
            // The envelope may come back at once.
            drop(ctx.send(far_away(), "far", number));
        }
        match number % 11 {
            2 => out.cancel(1),
            3 => self.town.wake_later(ctx),
            5 => {
                let notice = ExitNotice::new(far_away(), number, ExitCause::Done);
                self.town.send_system(number, SystemEvent::Exit(notice));
            }
            7 => {
                let control = Message::new("control", 0_u64);
                self.town.send_system(number, SystemEvent::Control(control));
            }
            _ => {}
        }
        let id = [ASK, SLEEP, ECHO, UNKNOWN][(number % 4) as usize];
        match number % 9 {
            0 => out.done(number),
            1..=3 => out.yield_command(Command::new(id, number), number),
            4 => {
                for tag in 0..3 {
                    out.yield_command(Command::new(id, tag), tag);
                }
            }
            5 if self.town.0.lock().unwrap().len() < MOST => {
                if let Ok(pid) = ctx.submit(Self::new(&self.town), "main", number) {
                    self.town.move_in(pid);
                }
            }
            6 if number.is_multiple_of(2) => out.yield_now(),
            6 => out.step_again(),
            7 if number.is_multiple_of(2) => {
                let next = Self::new(&self.town);
                out.upgrade(UpgradeRequest::process(next, "main", number));
            }
            8 if number.is_multiple_of(4) => return Err("enough".into()),
            _ => {}
        }
        Ok(())
    }
}

impl Process for Citizen {
    fn init(&mut self, ctx: &Context, _: &str, input: Payloads) -> Result<(), BoxError> {
        let number = input.first().and_then(|input| input.as_u64());
        // Some talk before they fail, to others and to themselves.
        if let Some(number) = number.filter(|number| number % 4 == 1) {
            let other = self.town.somebody(number).unwrap_or(ctx.pid());
            for pid in [other, ctx.pid()] {
                // The mailbox may be closed or full.
                drop(ctx.send(pid, "number", number / 2));
            }
        }
        match number {
            Some(13) => return Err("not today".into()),
            Some(17) => panic!("on purpose"),
            _ => {}
        }
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        assert!(!self.is_closed, "stepped after `close`");
        self.steps += 1;
        // Every third step takes only even numbers, and every fourth takes a single event.
        let is_even = |event: &Event| match event {
            Event::Message(message) => {
                let number = message.payloads.first().and_then(|it| it.as_u64());
                number.is_some_and(|number| number.is_multiple_of(2))
            }
            _ => true,
        };
        let mut left = if self.steps.is_multiple_of(4) {
            1
        } else {
            usize::MAX
        };
        while left > 0
            && let Some(event) = if self.steps.is_multiple_of(3) {
                events.take_where(is_even)
            } else {
                events.next()
            }
        {
            left -= 1;
            match event {
                Event::Message(message) => self.act(ctx, number_of(message), out)?,
                Event::Control(message) => self.act(ctx, number_of(*message), out)?,
                Event::Completion(_) if self.is_finishing => out.done(()),
                Event::Cancel(CancelReason::Shutdown) => {
                    self.is_finishing = true;
                    out.defer_cancel();
                    out.yield_command(Command::new(SLEEP, 0_u64), 77);
                }
                Event::Cancel(_) => match self.steps % 3 {
                    0 => out.done(()),
                    1 => out.defer_cancel(),
                    _ => {}
                },
                _ => {}
            }
            if matches!(out.outcome(), Outcome::Done(_) | Outcome::Upgrade(_)) {
                break;
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        assert!(!self.is_closed, "closed twice");
        self.is_closed = true;
    }
}

/// Returns a place beyond the scheduler, with answers.
fn far_away() -> Pid {
    "{there@far|1}".parse().unwrap()
}

fn number_of(message: Message) -> u64 {
    message.payloads.into_first().as_u64().unwrap_or(0)
}

pub(crate) fn register(rt: &Rt<'_>, town: &Arc<Town>) {
    assert!(town.1.set((rt.downgrade(), rt.clock())).is_ok());
    rt.register(ASK, "ask", |command: Command, completer: Completer| {
        match command.payloads.into_first().as_u64() {
            Some(n) if n % 7 == 3 => completer.fail("no luck"),
            Some(n) if n % 7 == 5 => return Err("no".into()),
            Some(n) if n % 7 == 6 => panic!("on purpose"),
            _ => completer.complete(7_u64),
        }
        Ok(())
    })
    .unwrap();
    let clock = rt.clock();
    let sleep = move |_: Command, completer: Completer| {
        clock.after(Duration::from_millis(3), move || completer.complete(()));
        Ok(())
    };
    rt.register(SLEEP, "sleep", sleep).unwrap();
    let scheduler = rt.downgrade();
    let echo = move |command: Command, completer: Completer| {
        let number = command.payloads.into_first().as_u64().unwrap_or(0);
        let (scheduler, pid) = (scheduler.upgrade().ok_or("gone")?, completer.pid());
        let pid = pid.ok_or("nobody")?;
        // The mailbox may be closed or full.
        let send = |n: u64| drop(scheduler.send(Message::new("echo", n).to(pid)));
        if number.is_multiple_of(2) {
            send(0);
        }
        if number.is_multiple_of(3) {
            drop(completer);
        } else {
            completer.complete(number);
        }
        send(1);
        if number.is_multiple_of(5) {
            return Err("after the answer".into());
        }
        Ok(())
    };
    rt.register(ECHO, "echo", echo).unwrap();
    let router = Arc::downgrade(rt.router());
    let far = receiver_fn(move |envelope: Envelope| {
        if let (Some(router), Some(source)) = (router.upgrade(), envelope.message.source) {
            // The sender may have ended. The answer is a smaller number, so that the exchange has
            // an end.
            let half = number_of(envelope.message) / 2;
            drop(router.send(Message::new("number", half).to(source)));
        }
        Ok(())
    });
    let peer = NodeName::new("there").unwrap();
    rt.router().add_peer(peer, Arc::new(far)).unwrap();
    let born = Arc::clone(town);
    rt.register_upgrade("citizen", "main", move || Box::new(Citizen::new(&born)))
        .unwrap();
}
