//! A process, which obeys its messages, starts other processes, and notes its events.

use crate::calls::{self, aim, id_of, method_of, panic_with};
use crate::counted;
use crate::far;
use crate::notes::{Call, Heir, Note, Number, Outcome, Seen, Submitted};
use crate::plan::{Act, Kind, Manners, Nature, Next, Passed, Start};
use crate::waits;
use crate::world::{Submission, World, give_way};
use ganger_proc_api::{
    BoxError, Command, Context, Envelope, Event, Events, Payloads, Pid, Process, StepOutput,
    StepResult, SubmitError, Symbol, UpgradeRequest,
};
use std::sync::{Arc, Weak};

/// The name of a working factory.
pub(crate) const MAKER: &str = "makes processes";
/// The name of a panicking factory.
pub(crate) const BREAKER: &str = "panics";
/// The name of an unregistered factory.
const NOBODY: &str = "nobody";

/// The nature of processes in the places of other processes.
const HEIRS: Nature = Nature {
    manners: Manners::Finishes,
    probes: true,
};

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
    /// The last yield before the end of the actor.
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
                let (heir, request) = heir(&world, next);
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
                submit(&world, nature, start, None, by, |actor, method, input| {
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
        counted::look_in_a_step(&self.world, pid);
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

/// Submits a process with `through`, which is given its input; returns its PID.
pub(crate) fn submit(
    world: &Arc<World>,
    nature: Nature,
    start: Start,
    chosen: Option<Pid>,
    by: Option<Pid>,
    through: impl FnOnce(Actor, Symbol, Number) -> Result<Submission, SubmitError>,
) {
    let number = world.number();
    let expected = world.ask(
        |answer| Call::Submit(number, start, answer),
        |spec| spec.submit(number, chosen, by, start),
    );
    let actor = Actor::new(world, number, nature);
    let found = match try_to_submit(world, actor, start, chosen, through) {
        Ok(submission) => {
            world.keep(submission);
            Submitted::Started
        }
        Err(refused) => refused,
    };
    let is_right = expected != Some(found) && world.was_refused(number, found);
    let expected = if is_right { Some(found) } else { expected };
    world.reach("a submit (P1, P13, P14, D1)", expected, found);
}

/// Submits a process with `through`. Checks that it has the requested PID, or comes back whole.
pub(crate) fn try_to_submit(
    world: &World,
    actor: Actor,
    start: Start,
    chosen: Option<Pid>,
    through: impl FnOnce(Actor, Symbol, Number) -> Result<Submission, SubmitError>,
) -> Result<Submission, Submitted> {
    let (number, life) = (actor.number(), actor.life());
    let error = match through(actor, method_of(start), number) {
        Ok(submission) => {
            let is_chosen = chosen.is_none_or(|chosen| chosen == submission.0);
            world.compare("the PID that was asked for (P1)", Some(true), is_chosen);
            return Ok(submission);
        }
        Err(error) => error,
    };
    let found = Submitted::refused(&error.kind);
    let is_lost = matches!(
        found,
        Submitted::InitPanicked | Submitted::StartRefused | Submitted::StartPanicked
    );
    let parts = error.into_parts();
    let comes_back = parts.is_some();
    world.compare("the process comes back (P1)", Some(!is_lost), comes_back);
    let has_input = found != Submitted::InitFailed;
    let input = parts
        .as_ref()
        .and_then(|(_, input)| input.first()?.as_u64());
    let expected = (comes_back && has_input).then_some(number);
    world.compare("the input that comes back (P1)", Some(expected), input);
    let lives = life.strong_count();
    drop(parts);
    world.compare(
        "the process that comes back is that one, and there is no other (P1)",
        Some((usize::from(comes_back), 0)),
        (lives, life.strong_count()),
    );
    if !matches!(
        found,
        Submitted::Stopping | Submitted::LimitReached | Submitted::AlreadyExists
    ) {
        world.tell("rolled back", |spec| spec.rolled_back(number));
    }
    Err(found)
}

/// Returns the heir of a process, and the request for the upgrade.
pub(crate) fn heir(world: &Arc<World>, next: Next) -> (Heir, UpgradeRequest) {
    let factory = |name| UpgradeRequest::factory(world.factory(name), method_of(Start::Well), ());
    match next {
        Next::Process(start) => {
            let number = world.number();
            let actor = Actor::new(world, number, HEIRS);
            let request = UpgradeRequest::process(actor, method_of(start), ());
            (Heir::Process(number), request)
        }
        Next::Factory => (Heir::Made, factory(MAKER)),
        Next::PanickingFactory => (Heir::PanickingFactory, factory(BREAKER)),
        Next::UnknownFactory => (Heir::UnknownFactory, factory(NOBODY)),
    }
}

/// Makes a process, as a factory.
pub(crate) fn make(world: &Arc<World>) -> Box<dyn Process> {
    let number = world.number();
    world.state().spec.made(number);
    Box::new(Actor::new(world, number, HEIRS))
}
