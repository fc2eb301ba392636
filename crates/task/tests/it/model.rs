//! Random waits and random events, compared with a plain queue.

use crate::support::ByHand;
use ganger_proc_api::{Command, CommandId, Outcome, Payload, Tag};
use ganger_task::{Cx, process};
use proptest::prelude::*;
use std::collections::VecDeque;

const ASK: CommandId = CommandId::new(300);

/// The next wait of the task.
#[derive(Debug, Clone, Copy)]
enum Wait {
    Any,
    Multiple(u64),
    Ask,
    /// The first of an answer and a message; the other is dropped.
    AskOrAny,
    /// An answer and a message.
    AskAndAny,
}

/// An event between two steps.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Message(u64),
    /// An outstanding command is answered.
    Answer(usize),
    Step,
}

fn waits() -> impl Strategy<Value = Vec<Wait>> {
    let wait = prop_oneof![
        Just(Wait::Any),
        (2_u64..5).prop_map(Wait::Multiple),
        Just(Wait::Ask),
        Just(Wait::AskOrAny),
        Just(Wait::AskAndAny),
    ];
    prop::collection::vec(wait, 0..20)
}

fn events() -> impl Strategy<Value = Vec<Happens>> {
    let event = prop_oneof![
        3 => (1_u64..100).prop_map(Happens::Message),
        2 => (0_usize..4).prop_map(Happens::Answer),
        3 => Just(Happens::Step),
    ];
    prop::collection::vec(event, 0..80)
}

async fn run(cx: &Cx<u64>, wait: Wait) -> Option<u64> {
    let ask = || cx.call(Command::new(ASK, ()));
    let number = |answer: Result<Payload, _>| answer.ok().and_then(|it| it.as_u64());
    match wait {
        Wait::Any => cx.recv().await,
        Wait::Multiple(of) => cx.recv_where(|it| it % of == 0).await,
        Wait::Ask => number(ask().await),
        // If both are ready, the answer wins, as in the model.
        Wait::AskOrAny => match futures_util::future::select(ask(), cx.recv()).await {
            futures_util::future::Either::Left((answer, _)) => number(answer),
            futures_util::future::Either::Right((message, _)) => message,
        },
        Wait::AskAndAny => {
            let (answer, message) = cx.join((ask(), cx.recv())).await;
            Some(number(answer)? * 1_000 + message?)
        }
    }
}

/// The task's actions, by a plain queue.
#[derive(Default)]
struct Plain {
    messages: VecDeque<u64>,
    /// The answer to the command of the wait, when it has come.
    answer: Option<u64>,
    /// The message taken by a wait for both.
    taken: Option<u64>,
    asked: bool,
    log: Vec<u64>,
}

impl Plain {
    /// Waits as far as the events have come. Returns whether the wait is over.
    fn wait(&mut self, wait: Wait) -> bool {
        let asks = matches!(wait, Wait::Ask | Wait::AskOrAny | Wait::AskAndAny);
        self.asked |= asks;
        let got = match wait {
            Wait::Any => self.messages.pop_front(),
            Wait::Multiple(of) => {
                let index = self.messages.iter().position(|it| it % of == 0);
                index.and_then(|index| self.messages.remove(index))
            }
            Wait::Ask => self.answer,
            Wait::AskOrAny => self.answer.or_else(|| self.messages.pop_front()),
            Wait::AskAndAny => {
                self.taken = self.taken.or_else(|| self.messages.pop_front());
                self.answer.and_then(|it| Some(it * 1_000 + self.taken?))
            }
        };
        if got.is_some() {
            (self.answer, self.taken, self.asked) = (None, None, false);
        }
        self.log.extend(got);
        got.is_some()
    }
}

proptest! {
    // pins: A1, A2, A3, A4
    #[test]
    fn waits_are_those_of_a_plain_queue(waits in waits(), events in events()) {
        let its_waits = waits.clone();
        let mut task = ByHand::new(process(async move |cx: Cx<u64>| {
            let mut log = Vec::new();
            for wait in its_waits {
                log.extend(run(&cx, wait).await);
            }
            Ok(log)
        }));
        let mut plain = Plain::default();
        let mut next = waits.iter().copied().peekable();
        let mut open: Vec<Tag> = Vec::new();
        let mut answers = 0;
        let mut done = None;
        for event in events.into_iter().chain([Happens::Step]) {
            match event {
                Happens::Message(number) => {
                    task.send(number);
                    plain.messages.push_back(number);
                }
                Happens::Answer(index) if index < open.len() => {
                    answers += 1;
                    task.answer(open.remove(index), answers);
                    plain.answer = Some(answers);
                }
                Happens::Answer(_) => {}
                Happens::Step => {
                    let stepped = task.step().unwrap();
                    open.extend(&stepped.yields);
                    open.retain(|it| !stepped.cancelled.contains(it));
                    while let Some(&wait) = next.peek()
                        && plain.wait(wait)
                    {
                        next.next();
                    }
                    prop_assert_eq!(open.len(), usize::from(plain.asked && plain.answer.is_none()));
                    prop_assert_eq!(task.events.len(), plain.messages.len());
                    if let Outcome::Done(log) = stepped.outcome {
                        done = Some(log);
                        break;
                    }
                    prop_assert!(matches!(stepped.outcome, Outcome::Wait));
                    prop_assert!(next.peek().is_some());
                }
            }
        }
        if let Some(log) = done {
            prop_assert!(next.peek().is_none());
            prop_assert_eq!(log.downcast::<Vec<u64>>().unwrap(), plain.log);
        }
    }
}
