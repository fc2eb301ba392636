//! Processes with messages of one type, and commands by their types.

use crate::support::*;
use ganger_proc_api::{
    Actor, ActorProcess, BoxError, CancelReason, Command, CommandError, CommandId, Completion,
    Context, EndKind, Envelope, EnvelopeReceiver as _, ExitNotice, ExitReason, Message, Payload,
    Pid, SendError, SendErrorKind, StepOutput, StepResult, TypedCommand, UpgradeRequest, WrongType,
};
use ganger_sched::{Address, ContextExt, Recipient, RegisterErrorKind, Scheduler};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

#[derive(Debug, PartialEq)]
enum Count {
    Add([u64; 4]),
    Fail,
    Finish,
}

impl From<u64> for Count {
    fn from(number: u64) -> Self {
        Self::Add([number, 0, 0, 0])
    }
}

#[derive(Default)]
struct Total {
    sum: u64,
    mistaken: Option<Sender<WrongType>>,
}

impl Actor for Total {
    type Message = Count;

    fn receive(&mut self, _: &Context, message: Count, out: &mut StepOutput) -> StepResult {
        match message {
            Count::Add(numbers) => self.sum += numbers.iter().sum::<u64>(),
            Count::Fail => return Err("on purpose".into()),
            Count::Finish => out.done(self.sum),
        }
        Ok(())
    }

    fn mistaken(&mut self, _: &Context, error: WrongType, _: &mut StepOutput) -> StepResult {
        if let Some(mistaken) = &self.mistaken {
            mistaken.send(error)?;
        }
        Ok(())
    }
}

fn number(reason: ExitReason) -> u64 {
    match reason {
        ExitReason::Done(result) => result.take().unwrap(),
        other => panic!("{other}"),
    }
}

// pins: P4
#[test]
fn an_actor_takes_its_messages_in_order_until_it_is_done() {
    let scheduler = start(2);
    let total = scheduler.spawn(Total::default()).unwrap();
    for number in 0..1_000 {
        total.send(Count::Add([number, 1, 0, 0])).unwrap();
    }
    total
        .address()
        .clone()
        .send_control(Count::Add([1; 4]))
        .unwrap();
    total.send(Count::Finish).unwrap();
    // The process may have ended already.
    let _late = total.send(Count::Add([1; 4]));
    assert_eq!(number(total.wait()), 499_500 + 1_000 + 4);
}

#[test]
fn an_actor_that_fails_or_is_cancelled_ends() {
    let scheduler = start(1);
    let total = scheduler.spawn(Total::default()).unwrap();
    total.send(Count::Fail).unwrap();
    assert!(matches!(total.wait(), ExitReason::Failed(_)));
    let total = scheduler.spawn(Total::default()).unwrap();
    scheduler
        .cancel(total.pid(), CancelReason::Shutdown)
        .unwrap();
    assert!(matches!(
        total.wait(),
        ExitReason::Cancelled(CancelReason::Shutdown)
    ));
}

fn is_refused(result: Result<(), SendError>) {
    let error = result.unwrap_err();
    let SendErrorKind::WrongType(types) = error.kind else {
        panic!("{error}");
    };
    assert!(types.expected().ends_with("Count"), "{error}");
    assert_eq!(types.got(), "alloc::string::String");
    let text = error.to_string();
    assert!(text.contains("Count") && text.contains("String"), "{text}");
    assert_eq!(error.into_message::<String>().unwrap(), "seven");
}

// pins: P13
#[test]
fn a_message_of_another_type_is_refused_by_every_way_of_sending() {
    let scheduler = start(1);
    let total = scheduler.spawn(Total::default()).unwrap();
    let pid = total.pid();
    let envelope = || Envelope::new(None, pid, "", "seven");
    let message = || Message::new("", "seven");
    let untyped = scheduler.address(pid).unwrap();
    is_refused(scheduler.send(envelope()));
    is_refused(scheduler.send_control(envelope()));
    is_refused(scheduler.downgrade().send(envelope()));
    is_refused(scheduler.send_timeout(envelope(), Duration::ZERO));
    is_refused(scheduler.send_blocking(envelope()));
    is_refused(untyped.send(message()));
    is_refused(untyped.send_control(message()));
    is_refused(untyped.send_blocking(message()));
    let context = process(move |ctx, _, out| {
        is_refused(ctx.send(pid, "", "seven"));
        out.done(());
        Ok(())
    });
    assert!(exit(scheduler.submit(context, "main", ()).unwrap()).is_done());
    // Messages before the refused one are delivered.
    let add = || Message::of(Count::Add([1; 4]));
    let error = untyped
        .send_all([add(), add(), message(), add()])
        .unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::WrongType(_)));
    assert_eq!((error.sent, error.messages.len()), (2, 2));
    let error = untyped.send_all([message()]).unwrap_err();
    assert_eq!((error.sent, error.messages.len()), (0, 1));
    // The right type goes through by every way.
    scheduler
        .send(Envelope::new(
            None,
            pid,
            "",
            Payload::any(Count::Add([1; 4])),
        ))
        .unwrap();
    untyped.send_blocking(add()).unwrap();
    untyped.send_control(add()).unwrap();
    total.send(Count::Finish).unwrap();
    assert_eq!(number(total.wait()), 5 * 4);
}

#[test]
fn an_address_is_typed_if_the_process_is() {
    let scheduler = start(1);
    let total = scheduler.spawn(Total::default()).unwrap();
    let untyped = scheduler.address(total.pid()).unwrap();
    let typed: Address<Count> = untyped.clone().typed().unwrap();
    assert_eq!(typed.pid(), total.pid());
    assert_eq!(typed.untyped().pid(), total.pid());
    let text = untyped.typed::<u64>().unwrap_err().to_string();
    assert!(text.contains("u64") && text.contains("Count"), "{text}");
    let plain = scheduler.submit(waiter(), "main", ()).unwrap();
    let error = plain.address().clone().typed::<u64>().unwrap_err();
    assert_eq!(error.takes, None);
    let detached = Context::detached(plain.pid());
    assert!(detached.address::<u64>().is_err());
    assert!(detached.spawn(Total::default()).is_err());
}

#[test]
fn a_recipient_knows_one_kind_of_message_alone() {
    let scheduler = start(1);
    let total = scheduler.spawn(Total::default()).unwrap();
    let recipient: Recipient<u64> = total.address().recipient();
    for number in [1, 2, 39] {
        recipient.clone().send(number).unwrap();
    }
    assert_eq!(recipient.pid(), total.pid());
    total.send(Count::Finish).unwrap();
    assert_eq!(number(total.wait()), 42);
    let error = recipient.send(7).unwrap_err();
    assert_eq!(error.kind, SendErrorKind::Ended(EndKind::Done));
    assert_eq!(error.into_message::<Count>().unwrap(), Count::from(7));
}

// pins: P11
#[test]
fn an_upgrade_changes_the_type_and_the_new_process_is_told_of_old_messages() {
    let scheduler = start(1);
    let (mistaken, mistakes) = channel();
    // The process leaves all messages to its successor.
    let old = scheduler.submit(waiter(), "main", ()).unwrap();
    let pid = old.pid();
    let busy = process({
        let handle = scheduler.handle();
        move |_, _, out| {
            // The only worker is here: the request comes first, and the message is in the mailbox.
            let next = ActorProcess::new(Total {
                sum: 0,
                mistaken: Some(mistaken.clone()),
            });
            handle
                .upgrade(pid, UpgradeRequest::process(next, "main", ()))
                .unwrap();
            handle.send(Envelope::new(None, pid, "", "early")).unwrap();
            out.done(());
            Ok(())
        }
    });
    assert!(exit(scheduler.submit(busy, "main", ()).unwrap()).is_done());
    let mistake = mistakes.recv().unwrap();
    assert_eq!(mistake.payloads.take::<String>().unwrap(), "early");
    is_refused(scheduler.send(Envelope::new(None, pid, "", "seven")));
    // And back to a process for all types.
    scheduler
        .upgrade(pid, UpgradeRequest::process(waiter(), "main", ()))
        .unwrap();
    until("it takes everything", || {
        scheduler
            .send(Envelope::new(None, pid, "", "seven"))
            .is_ok()
    });
    scheduler.cancel(pid, CancelReason::Shutdown).unwrap();
    drop(exit(old));
}

/// Starts a child, monitors it, and ends with the child's result.
struct Parent(u64);

impl Actor for Parent {
    type Message = Count;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let child = ctx.spawn(Child(ctx.address::<Count>()?.recipient()))?;
        ctx.monitor(child.pid(), 7)?;
        child.send(21)?;
        Ok(())
    }

    fn receive(&mut self, _: &Context, message: Count, _: &mut StepOutput) -> StepResult {
        if let Count::Add(numbers) = message {
            self.0 += numbers[0];
        }
        Ok(())
    }

    fn exited(&mut self, _: &Context, notice: ExitNotice, out: &mut StepOutput) -> StepResult {
        assert_eq!(notice.tag, 7);
        out.done(self.0);
        Ok(())
    }
}

struct Child(Recipient<u64>);

impl Actor for Child {
    type Message = u64;

    fn receive(&mut self, ctx: &Context, number: u64, out: &mut StepOutput) -> StepResult {
        // A message by PID, too: the type is the same.
        let own = ctx.pid();
        if number == 21 {
            return Ok(ctx.send(own, "", 22_u64)?);
        }
        self.0.send(2 * number)?;
        out.step_again();
        out.done(());
        Ok(())
    }
}

#[test]
fn actors_start_others_and_learn_of_their_ends() {
    let scheduler = start(1);
    // The notice may overtake the message: the actor ends by the notice, with or without the sum.
    let parent = scheduler.spawn(Parent(0)).unwrap();
    assert!(matches!(number(parent.wait()), 0 | 44));
}

struct Double(u64);

impl TypedCommand for Double {
    type Answer = [u64; 5];
}

struct Unknown;

impl TypedCommand for Unknown {
    type Answer = ();
}

/// Asks as it is told, and brings each answer to the channel.
struct Asker(Sender<Result<[u64; 5], CommandError>>);

enum Ask {
    Double(u64),
    Unknown,
    Another,
}

impl Actor for Asker {
    type Message = Ask;

    fn receive(&mut self, _: &Context, ask: Ask, out: &mut StepOutput) -> StepResult {
        match ask {
            Ask::Double(number) => drop(out.ask(Double(number), 7)),
            Ask::Unknown => drop(out.ask(Unknown, 7)),
            Ask::Another => out.yield_command(Command::new(CommandId::of::<Double>(), "two"), 7),
        }
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, _: &mut StepOutput) -> StepResult {
        Ok(self.0.send(it.take())?)
    }
}

// pins: P6
#[test]
fn a_typed_command_is_answered_by_its_handler_or_says_what_is_wrong() {
    let scheduler = ganger_sched::Scheduler::builder()
        .workers(1)
        .build()
        .unwrap();
    scheduler
        .register_for(|Double(number), completer| {
            match number {
                0 => completer.fail("nothing to double"),
                _ => completer.complete([2 * number; 5]),
            }
            Ok(())
        })
        .unwrap();
    let again = scheduler.register_for::<Double>(|_, _| Ok(())).unwrap_err();
    assert!(matches!(again.kind, RegisterErrorKind::Collision { .. }));
    scheduler.start().unwrap();
    let (send, answers) = channel();
    let asker = scheduler.spawn(Asker(send)).unwrap();
    let ask = |ask| {
        asker.send(ask).unwrap();
        answers.recv().unwrap()
    };
    assert_eq!(ask(Ask::Double(21)).unwrap(), [42; 5]);
    assert_eq!(
        ask(Ask::Double(0)).unwrap_err().to_string(),
        "nothing to double"
    );
    let unknown = ask(Ask::Unknown).unwrap_err().to_string();
    assert!(unknown.contains("Unknown"), "{unknown}");
    let another = ask(Ask::Another).unwrap_err().to_string();
    assert!(
        another.contains("Double") && another.contains("String"),
        "{another}"
    );
}

#[test]
fn ids_of_gangers_own_are_refused() {
    let scheduler = ganger_sched::Scheduler::builder()
        .workers(1)
        .build()
        .unwrap();
    let handler = |_: Command, _: ganger_proc_api::Completer| Ok(());
    let error = scheduler.register(255, "mine", handler).unwrap_err();
    assert_eq!(error.kind, RegisterErrorKind::Reserved);
    let text = error.to_string();
    assert!(
        text.contains("mine") && text.contains("from 256 on"),
        "{text}"
    );
    scheduler.register(256, "mine", handler).unwrap();
}

/// Checks that a process other than an actor may take a single type, too.
#[test]
fn a_plain_process_may_say_what_it_takes() {
    struct Numbers;
    impl ganger_proc_api::Process for Numbers {
        fn init(&mut self, ctx: &Context, _: &str, _: ganger_proc_api::Payloads) -> StepResult {
            ctx.accept_only::<u64>();
            Ok(())
        }
        fn step(
            &mut self,
            _: &Context,
            events: &mut ganger_proc_api::Events<'_>,
            out: &mut StepOutput,
        ) -> StepResult {
            if events.next().is_some() {
                out.done(());
            }
            Ok(())
        }
    }
    let scheduler = start(1);
    let numbers = scheduler.submit(Numbers, "main", ()).unwrap();
    let pid: Pid = numbers.pid();
    let error = scheduler
        .send(Envelope::new(None, pid, "", true))
        .unwrap_err();
    let SendErrorKind::WrongType(types) = error.kind else {
        panic!("{error}");
    };
    assert_eq!((types.expected(), types.got()), ("u64", "bool"));
    scheduler.send(Envelope::new(None, pid, "", 7_u32)).unwrap();
    assert!(exit(numbers).is_done());
}

#[test]
fn a_cell_that_is_used_again_takes_all_types() {
    let scheduler = start(1);
    for _ in 0..100 {
        let total = scheduler.spawn(Total::default()).unwrap();
        total.send(Count::Finish).unwrap();
        assert_eq!(number(total.wait()), 0);
        let plain = scheduler.submit(waiter(), "main", ()).unwrap();
        plain.send(Message::new("", "seven")).unwrap();
        scheduler
            .cancel(plain.pid(), CancelReason::Shutdown)
            .unwrap();
        drop(exit(plain));
    }
}

/// Asks in its first step, and adds the answer.
struct Starts {
    log: Vec<&'static str>,
}

impl Actor for Starts {
    type Message = u64;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        self.log.push("init");
        // The message is there before the first step.
        ctx.send(ctx.pid(), "early", Payload::any(1_u64))?;
        Ok(())
    }

    fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
        self.log.push("started");
        out.yield_command(Command::new(CommandId::new(999), ()), 1);
        Ok(())
    }

    fn completed(&mut self, _: &Context, _: Completion, out: &mut StepOutput) -> StepResult {
        self.log.push("completed");
        out.done(self.log.join(" "));
        Ok(())
    }

    fn receive(&mut self, _: &Context, _: u64, _: &mut StepOutput) -> StepResult {
        self.log.push("message");
        Ok(())
    }
}

// pins: P1
#[test]
fn the_first_step_comes_before_all_else_and_may_ask() {
    let scheduler = Scheduler::start_default().unwrap();
    let starts = scheduler.spawn(Starts { log: Vec::new() }).unwrap();
    let log = starts.wait().into_result().unwrap();
    assert_eq!(log.as_str(), Some("init started message completed"));
}
