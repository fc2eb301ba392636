//! Tasks that depend on each other: questions, a set of tasks whose ends are awaited, and a channel
//! to many.

use super::{Tokio, time};
use crate::whole::contestant::{Contestant, Services, Timed, ask_in_turn, asker, failed};
use crate::whole::gate::gate;
use crate::whole::jobs::{POOL, compute};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot::{self, Receiver};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;

/// A number, and where the answer goes.
type Question = (u64, oneshot::Sender<u64>);

/// Answers with its number.
fn echo((number, completer): Question) {
    completer.send(number).expect("the asker waits");
}

fn ask(server: &UnboundedSender<Question>, number: u64) -> Receiver<u64> {
    let (completer, answer) = oneshot::channel();
    let sent = server.send((number, completer));
    sent.expect("the server is there");
    answer
}

/// A task has failed.
struct Failed;

async fn fail(is_last: bool) -> Result<(), Failed> {
    if is_last { Ok(()) } else { Err(Failed) }
}

impl Tokio {
    /// Starts a task, which answers each question with its number.
    fn server(&self) -> UnboundedSender<Question> {
        let (server, mut questions) = unbounded_channel();
        self.0.spawn(async move {
            while let Some(question) = questions.recv().await {
                echo(question);
            }
        });
        server
    }
}

impl Services for Tokio {
    fn command_inline(&self, commands: u64) -> Timed {
        let asker = asker!(1..=commands, |number| {
            let (completer, answer) = oneshot::channel();
            echo((number, completer));
            answer.await.expect("an answer")
        });
        time(&self.0, asker)
    }

    fn command_asked(&self, commands: u64) -> Timed {
        let server = self.server();
        let asker = asker!(1..=commands, |number| {
            ask(&server, number).await.expect("an answer")
        });
        time(&self.0, asker)
    }

    fn call_from_outside(&self, calls: u64) -> Timed {
        let server = self.server();
        ask_in_turn(calls, |number| {
            ask(&server, number).blocking_recv().map_err(failed)
        })
    }

    fn spawn_monitored(&self, processes: u64) -> Timed {
        let gate = gate();
        time(&self.0, async move {
            let mut children = JoinSet::new();
            for _ in 0..processes {
                children.spawn(async {});
            }
            let mut told = 0;
            while children.join_next().await.is_some() {
                told += 1;
            }
            gate.hit_with(told);
        })
    }

    /// Sends through a channel with room for all messages: a late receiver would lose messages.
    fn broadcast(&self, members: u64, messages: u64) -> Timed {
        let gate = gate();
        let room = usize::try_from(messages).map_err(failed)?;
        let (to, _) = broadcast::channel(room);
        for _ in 0..members {
            let mut numbers = to.subscribe();
            self.0.spawn(async move {
                let mut sum = 0;
                for _ in 0..messages {
                    sum += numbers.recv().await.expect("there is room for all");
                }
                gate.hit_with(sum);
            });
        }
        gate.time(members, || {
            self.0.spawn(async move {
                for number in 0..messages {
                    to.send(number).expect("the members are there");
                }
            });
            Ok(())
        })
    }

    fn broadcast_each(&self, members: u64, messages: u64) -> Timed {
        self.fan_out::<u64>(members, messages)
    }

    fn restart(&self, restarts: u64) -> Timed {
        let gate = gate();
        time(&self.0, async move {
            let mut children = JoinSet::new();
            let mut restarted = 0;
            children.spawn(fail(restarts == 0));
            while let Some(Ok(Err(Failed))) = children.join_next().await {
                restarted += 1;
                children.spawn(fail(restarted == restarts));
            }
            gate.hit_with(restarted);
        })
    }

    /// Spawns a task for each job; a semaphore lets a limited number run.
    fn pool(&self, callers: u64, jobs: u64, length: Duration) -> Timed {
        let places = Arc::new(Semaphore::new(POOL));
        gate().time(callers, || {
            self.spawn_each(callers, |_| {
                let places = Arc::clone(&places);
                let mut mine = JoinSet::new();
                asker!((1..=jobs).rev(), |number| {
                    let place = Arc::clone(&places).acquire_owned().await;
                    let place = place.expect("it is not closed");
                    mine.spawn(async move {
                        let answer = compute(number, length);
                        drop(place);
                        answer
                    });
                    let answer = mine.join_next().await.expect("there is one");
                    answer.expect("no job panics")
                })
            })
        })
    }
}
