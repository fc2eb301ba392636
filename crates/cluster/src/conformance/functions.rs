//! Functions by name at the far node.

use super::calls::{Count, address, counter};
use super::starts::near_node;
use super::{Ground, Harness, PATIENCE, Parcel, Side, Unregistered};
use crate::node::{Cluster, FunctionRefused};
use ganger_link::Services;
use ganger_proc_api::{
    Actor, BoxError, CommandError, Completion, Context, ExitCause, NodeName, Reply, SendErrorKind,
    StepOutput, StepResult,
};
use ganger_sched::Call;
use std::any::Any;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// The near side of a harness. Of a single scheduler: its own functions.
struct Caller<'a, G> {
    near: Side<G>,
    node: Option<&'a Cluster>,
    far: NodeName,
}

impl<'a, G: Ground> Caller<'a, G> {
    fn of<H: Harness<Ground = G>>(harness: &'a H) -> Self {
        Self {
            near: harness.near(),
            node: near_node(harness),
            far: harness.far().node_name().expect("it is a node"),
        }
    }

    fn call<I: Any + Send, O: Any + Send>(&self, name: &str, input: I) -> Call<O> {
        match self.node {
            Some(node) => node.call_on(self.far, name, input),
            None => match Services::of(&self.near).call(name, input) {
                Ok(call) => call,
                Err(error) => Call::by(move |_| Err(error.to_string().into())),
            },
        }
    }

    fn ask<I: Any + Send, O: Any + Send>(&self, name: &str, input: I) -> Result<O, CommandError> {
        self.near.ground.ask(self.call(name, input))
    }
}

/// Asks in a step, and shows the answer to a test.
struct Asker(Option<Call<u64>>, Sender<Result<u64, CommandError>>);

impl Actor for Asker {
    type Message = ();

    fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
        out.ask(self.0.take().ok_or("it has asked")?, 7);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        drop(self.1.send(it.take::<u64>()));
        out.done(());
        Ok(())
    }

    fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

/// Calls by a thread and by a step; behind the messages that the caller has sent before.
pub fn a_far_function_answers<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let caller = Caller::of(&harness);
    let functions = Services::of(&harness.far());
    let double = |number: u64| Ok(2 * number);
    functions.register("double", double).expect("it is free");
    let parcel = |it: Parcel| {
        let number = it.number + 1;
        Ok(Parcel { number, ..it })
    };
    functions.register("parcel", parcel).expect("it is free");
    assert_eq!(
        caller.ask::<u64, u64>("double", 21).expect("it answers"),
        42
    );
    let large = Parcel {
        number: 1,
        content: vec![7; 300_000],
    };
    let answer: Parcel = caller.ask("parcel", large.clone()).expect("it answers");
    assert_eq!((answer.number, answer.content), (2, large.content));
    let (shows, shown) = channel();
    let asker = Asker(Some(caller.call("double", 4_u64)), shows);
    drop(harness.near().spawn(asker).expect("the process starts"));
    let answer = ground.next(&shown, PATIENCE).expect("it is told");
    assert_eq!(answer.expect("it answers"), 8);

    // In the order of the caller's messages, as far as these are of one process or thread.
    let (counter, _) = counter(&harness.far());
    let registered = functions.register_process("sum", &counter, |(): (), it| Count::Get(it));
    registered.expect("it is free");
    let address = address(&harness, &counter);
    for number in 1..=100 {
        address.send(Count::Add(1)).expect("it is sent");
        assert_eq!(
            caller.ask::<(), u64>("sum", ()).expect("it answers"),
            number
        );
    }
}

/// Calls with an unknown name, other types, an error, a panic, a dropped reply, and an input that
/// can't cross.
pub fn a_far_function_that_does_not_answer_says_why<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let caller = Caller::of(&harness);
    let functions = Services::of(&harness.far());
    let fails = |_: u64| Err::<u64, BoxError>("no disk".into());
    functions.register("fails", fails).expect("it is free");
    let panics = |_: u64| -> Result<u64, BoxError> { panic!("on purpose") };
    functions.register("panics", panics).expect("it is free");
    let drops = |_: u64| {
        Call::<u64>::by(|reply| {
            drop(reply);
            Ok(())
        })
    };
    functions.register_call("drops", drops).expect("it is free");
    let why = |name: &str| caller.ask::<u64, u64>(name, 1).expect_err("it fails");
    for (name, text) in [
        ("nothing", "no function with that name"),
        ("fails", "no disk"),
        ("panics", "on purpose"),
    ] {
        let error = why(name);
        assert!(matches!(error, CommandError::Failed(_)), "{error:?}");
        assert!(text_of(&error).contains(text), "{error:?}");
    }
    assert!(matches!(why("drops"), CommandError::Dropped));
    let wrong = caller.ask::<String, u64>("fails", "one".to_owned());
    let wrong = text_of(&wrong.expect_err("the type is wrong"));
    assert!(wrong.contains("u64"), "{wrong}");
    if harness.is_one() {
        return;
    }
    let refused = caller.ask::<Unregistered, u64>("fails", Unregistered(1));
    let Err(CommandError::Failed(refused)) = refused else {
        panic!("{refused:?}");
    };
    let refused = refused.downcast_ref::<FunctionRefused>();
    let kind = refused.expect("it is refused here").kind;
    assert!(matches!(kind, SendErrorKind::NoCodec(_)), "{kind:?}");
}

fn text_of(error: &CommandError) -> String {
    match error {
        CommandError::Failed(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Lets a caller leave, which the function sees; of a lost connection both sides are told.
pub fn a_far_function_sees_that_its_caller_has_left<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let caller = Caller::of(&harness);
    let (gives, given) = channel();
    let keep = move |(): ()| {
        let gives = gives.clone();
        Call::by(move |reply: Reply<u64>| Ok(gives.send(reply)?))
    };
    let functions = Services::of(&harness.far());
    functions.register_call("keep", keep).expect("it is free");
    let kept = || -> (Reply<u64>, _) {
        let reply = ground.next(&given, PATIENCE).expect("it has come");
        let (tell, told) = channel();
        let watch = reply.on_end(move || _ = tell.send(()));
        if watch.is_none() {
            assert!(reply.is_cancelled());
        }
        let is_over = move |reply: Reply<u64>| {
            if watch.is_some() {
                ground.next(&told, PATIENCE).expect("it is told");
            }
            assert!(reply.is_cancelled());
        };
        (reply, is_over)
    };
    let late = caller.call::<(), u64>("keep", ());
    let late = ground.ask_for(late, Duration::from_millis(50));
    assert!(matches!(late, Err(CommandError::Timeout)), "{late:?}");
    let (reply, is_over) = kept();
    is_over(reply);
    let answer = caller.call::<(), u64>("keep", ()).begin();
    let (reply, is_over) = kept();
    drop(answer);
    is_over(reply);
    let answer = caller.call::<(), u64>("keep", ()).begin();
    let (reply, is_over) = kept();
    if harness.is_one() || !harness.cut() {
        return;
    }
    let lost = ground.answer(answer, PATIENCE);
    let is_told = matches!(lost, Err(CommandError::Ended(ExitCause::NoConnection)));
    assert!(is_told, "{lost:?}");
    is_over(reply);
}
