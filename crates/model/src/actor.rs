//! A process that obeys its messages, and notes its events.

use crate::calls::{self, aim};
use crate::far;
use crate::handlers::id_of;
use crate::notes::{Note, Number, Outcome, Seen};
use crate::plan::{Act, Kind, Manners, Nature, Passed, Start};
use crate::threads::give_way;
use crate::waits;
use crate::world::World;
use ganger_proc_api::{
    BoxError, Command, Context, Envelope, Event, Events, Payloads, Pid, Process, StepOutput,
    StepResult, UpgradeRequest,
};
use std::panic::resume_unwind;
use std::sync::{Arc, Weak};

pub(crate) struct Actor {
    world: Arc<World>,
    number: Number,
    nature: Nature,
    /// Its PID, once it has been initialised.
    pid: Option<Pid>,
    /// The actor leaves messages in its mailbox.
    holds: bool,
    /// The monitored processes, with their tags.
    monitors: Vec<(Pid, Number)>,
    /// The yield after which the actor finishes.
    last_wish: Option<Number>,
    /// Its `init` gives other threads time to catch up.
    gives_way: bool,
    /// Kept as long as the process, to show whether it is still there.
    life: Arc<()>,
}

/// The effects and the decision of a step.
struct Doing<'a> {
    out: &'a mut StepOutput,
    yields: Vec<(Number, Kind)>,
    outcome: Outcome,
    request: Option<UpgradeRequest>,
    /// A cancellation does not end the process.
    defers: bool,
}

/// Panics without output: only the message counts.
pub(crate) fn panic_with(number: Number) -> ! {
    resume_unwind(Box::new(number.to_string()))
}

impl Actor {
    pub(crate) fn new(world: &Arc<World>, number: Number, nature: Nature) -> Self {
        Self {
            world: Arc::clone(world),
            number,
            nature,
            pid: None,
            holds: false,
            monitors: Vec::new(),
            last_wish: None,
            gives_way: false,
            life: Arc::new(()),
        }
    }

    /// Lets other threads catch up in `init`. A thread that asks for the same PID then finds it
    /// taken, without a process.
    pub(crate) fn gives_way(self) -> Self {
        Self {
            gives_way: true,
            ..self
        }
    }

    pub(crate) fn number(&self) -> Number {
        self.number
    }

    /// Returns a pointer that can be upgraded as long as the process is there.
    pub(crate) fn life(&self) -> Weak<()> {
        Arc::downgrade(&self.life)
    }

    /// Reacts to an event.
    fn react(&mut self, ctx: &Context, seen: Seen, doing: &mut Doing<'_>) {
        match seen {
            Seen::Message(number) | Seen::Control(number) => {
                let act = self.world.state().acts.get(&number).copied();
                if let Some(act) = act {
                    self.act(ctx, number, act, doing);
                }
            }
            Seen::Cancel(number) => self.finish(number, doing),
            Seen::Shutdown => {
                let number = self.world.number();
                self.finish(number, doing);
            }
            Seen::Completion(tag, _) if self.last_wish == Some(tag) => {
                doing.outcome = Outcome::Finishes(tag);
            }
            Seen::Completion(..) | Seen::Exit(..) | Seen::Foreign => {}
        }
    }

    /// Reacts to the request to finish, as the actor's manners say.
    fn finish(&mut self, number: Number, doing: &mut Doing<'_>) {
        match self.nature.manners {
            Manners::Finishes => doing.outcome = Outcome::Finishes(number),
            Manners::Obeys => {}
            Manners::Ignores => doing.defers = true,
            Manners::CleansUp => {
                doing.defers = true;
                self.last_wish = Some(self.ask(Kind::Delayed, doing));
            }
        }
    }

    fn ask(&self, kind: Kind, doing: &mut Doing<'_>) -> Number {
        let tag = self.world.number();
        doing.yields.push((tag, kind));
        doing.out.yield_command(Command::new(id_of(kind), tag), tag);
        tag
    }

    fn act(&mut self, ctx: &Context, number: Number, act: Act, doing: &mut Doing<'_>) {
        let world = Arc::clone(&self.world);
        match act {
            Act::Note => {}
            Act::Hold => self.holds = true,
            Act::Release => self.holds = false,
            Act::Ask(kind) => {
                self.ask(kind, doing);
            }
            Act::GoOn => doing.outcome = Outcome::GoesOn,
            Act::Finish => doing.outcome = Outcome::Finishes(number),
            Act::Fail => doing.outcome = Outcome::Fails(number),
            Act::Panic => doing.outcome = Outcome::Panics(number),
            Act::Become(next) => {
                let (heir, request) = calls::heir(&world, next);
                doing.outcome = Outcome::Becomes(heir);
                doing.request = Some(request);
            }
            Act::Pass(to, passed) => {
                let is_control = passed == Passed::Control;
                let Some(to) = aim(&world, to) else {
                    return;
                };
                calls::send(&world, to, passed.into(), is_control, |envelope| {
                    if is_control {
                        let payloads = envelope.message.payloads;
                        ctx.send_control(to, envelope.message.topic, payloads)
                    } else {
                        ctx.send_envelope(envelope)
                    }
                });
            }
            Act::Wait(to, passed) => {
                if let (Some(handle), Some(to)) = (world.handle(), aim(&world, to)) {
                    waits::begin(&world, &handle, to, passed.into());
                }
            }
            Act::Far(call) => far::send(&world, ctx.pid(), call, |envelope| {
                if call.control {
                    let Envelope { target, message } = envelope;
                    ctx.send_control(target, message.topic, message.payloads)
                } else {
                    ctx.send_envelope(envelope)
                }
            }),
            Act::Spawn(nature, start) => {
                let by = Some(ctx.pid());
                calls::submit(&world, nature, start, None, by, |actor, method, input| {
                    let pid = ctx.submit(actor, method, input)?;
                    Ok((pid, None))
                });
            }
            Act::Monitor(to) => {
                if let Some(to) = aim(&world, to) {
                    self.monitors.push((to, calls::monitor(&world, ctx, to)));
                }
            }
            Act::Demonitor(nth) => {
                let count = self.monitors.len();
                if count > 0 {
                    let (to, tag) = self.monitors[nth % count];
                    calls::demonitor(&world, ctx, to, tag);
                }
            }
            Act::Cancel(to) => self.with_handle(to, calls::cancel),
            Act::Terminate(to) => self.with_handle(to, calls::terminate),
        }
    }

    fn with_handle(&self, to: u8, call: fn(&World, &ganger_sched::Handle, Pid)) {
        if let (Some(handle), Some(to)) = (self.world.handle(), aim(&self.world, to)) {
            call(&self.world, &handle, to);
        }
    }
}

impl Process for Actor {
    fn init(&mut self, ctx: &Context, method: &str, _: Payloads) -> Result<(), BoxError> {
        let (pid, start) = (ctx.pid(), calls::start_of(method));
        self.pid = Some(pid);
        self.world.adopt(pid, self.nature);
        self.world.note(Note::Init(pid, self.number, start));
        if self.nature.probes {
            calls::probe(&self.world, pid);
        }
        if self.gives_way {
            give_way();
        }
        match start {
            Start::InitFails => Err(self.number.to_string().into()),
            Start::InitPanics => panic_with(self.number),
            Start::Well | Start::Refused | Start::HookPanics => Ok(()),
        }
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let pid = ctx.pid();
        let mut shown = Vec::with_capacity(events.len());
        let none = events.take_where(|event| {
            shown.push(Seen::of(event));
            false
        });
        assert!(none.is_none(), "an event is taken that is not wanted");
        self.world.note(Note::Step(pid, self.number, shown));
        let mut doing = Doing {
            out,
            yields: Vec::new(),
            outcome: Outcome::Waits,
            request: None,
            defers: false,
        };
        while matches!(doing.outcome, Outcome::Waits | Outcome::GoesOn) {
            let event = if self.holds {
                events.take_where(|event| !matches!(event, Event::Message(_)))
            } else {
                events.next()
            };
            let Some(event) = event else {
                break;
            };
            let seen = Seen::of(&event);
            self.world.note(Note::Took(pid, seen));
            self.react(ctx, seen, &mut doing);
        }
        let Doing {
            out,
            yields,
            outcome,
            request,
            defers,
        } = doing;
        if defers {
            out.defer_cancel();
        }
        self.world.note(Note::Stepped(pid, yields, outcome, defers));
        match (outcome, request) {
            (Outcome::Waits, _) => {}
            (Outcome::GoesOn, _) => out.step_again(),
            (Outcome::Finishes(number), _) => out.done(number),
            (Outcome::Fails(number), _) => return Err(number.to_string().into()),
            (Outcome::Panics(number), _) => panic_with(number),
            (Outcome::Becomes(_), Some(request)) => out.upgrade(request),
            (Outcome::Becomes(_), None) => return Err("nothing to become".into()),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.world.note(Note::Closed(self.number));
        if let Some(pid) = self.pid.filter(|_| self.nature.probes) {
            calls::probe(&self.world, pid);
        }
    }
}
