//! A peer's code for each workload; `measure` decides the repetitions, times them, and checks the
//! result.

use super::acts::{Blocker, Consumer, Half, Hit, Listener, Member, Producer};
use super::acts::{Turn, Waiter};
use super::gate::gate;
use super::job::{Error, Job};
use super::load::{Act, Load};
use super::timed::{Due, Naps};
use super::turns::{Race, Stuck};
use std::fmt::Display;
use std::marker::PhantomData;
use std::time::Duration;

/// A time from the first act until the gate has opened.
pub(super) type Timed = Result<Duration, Error>;

/// Sends a number to its processes.
pub(super) type Deliver = Box<dyn FnMut(u64) + Send>;

/// Sends a message to an actor of a ring.
pub(super) type Throw<M> = Box<dyn Fn(M) -> Result<(), Error>>;

/// The ways to send to the actors of a ring.
pub(super) type Ring<A> = Result<Vec<Throw<<A as Act>::Load>>, Error>;

/// Waiting processes; a message ends each.
pub(super) struct Crowd {
    processes: u64,
    wake: Box<dyn FnMut() -> Result<(), Error>>,
}

impl Crowd {
    /// Starts `processes` processes, numbered from 0; `wake` sends a process a message. Returns the
    /// time until each has hit the gate.
    pub(super) fn start<R: 'static>(
        processes: u64,
        mut start: impl FnMut(u64) -> Result<R, Error>,
        wake: impl Fn(&R) -> Result<(), Error> + 'static,
    ) -> Result<(Duration, Self), Error> {
        let mut all = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
        let time = gate().time(processes, || {
            (0..processes).try_for_each(|number| {
                all.push(start(number)?);
                Ok(())
            })
        })?;
        Ok((time, Self::new(all, wake)))
    }

    fn new<R: 'static>(all: Vec<R>, wake: impl Fn(&R) -> Result<(), Error> + 'static) -> Self {
        Self {
            processes: all.len() as u64,
            wake: Box::new(move || all.iter().try_for_each(&wake)),
        }
    }
}

/// Returns the error of a failed run, with this reason.
pub(super) fn failed(error: impl Display) -> Error {
    Error::Failed(error.to_string())
}

fn missing<T>(why: &str) -> Result<T, Error> {
    Err(Error::Missing(why.to_owned()))
}

fn none_of_the_kind<T>() -> Result<T, Error> {
    missing("it is not measured: it has nothing of the kind, or by another peer's means")
}

/// A peer, set up, with its workers running. Calls come from a single thread, which is no worker,
/// in sequence; each leaves no process behind. The setup before the clock starts is named.
///
/// Processes hit the peer's gate. If a hit "brings" a number, the sum is checked; a process that
/// sees something wrong panics, which ends the program.
///
/// A peer has its own way to start actors and to send to them; the workloads are made of these. A
/// workload that a peer's users write in another way is the peer's own.
///
/// All fail when the peer refuses something, gets stuck, or has nothing of the kind.
pub(super) trait Contestant: Sized + 'static {
    /// The address of an actor.
    type Ref<A: Act>: Clone + Send + 'static;

    /// Returns how many threads run processes.
    fn workers(job: &Job) -> u64 {
        job.workers as u64
    }

    /// Starts actors from this thread, made of their numbers, and hands their addresses out.
    fn start_each<A: Act>(
        &self,
        _actors: u64,
        _make: impl Fn(u64) -> A,
        _started: impl FnMut(Self::Ref<A>),
    ) -> Result<(), Error> {
        none_of_the_kind()
    }

    /// Sends an actor the address of the next actor of its ring.
    fn link<A: Act>(_from: &Self::Ref<A>, _next: Self::Ref<A>) -> Result<(), Error> {
        none_of_the_kind()
    }

    /// Starts actors, each with the address of the next; the last has the address of the first.
    fn ring<A: Act>(&self, members: u64, make: impl Fn() -> A) -> Ring<A> {
        let ring = self.start_all(members, |_| make())?;
        for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
            Self::link::<A>(member, next.clone())?;
        }
        Ok(throws::<Self, A>(ring))
    }

    /// Sends without waiting.
    fn send<A: Act>(_to: &Self::Ref<A>, _load: A::Load) -> Result<(), Error> {
        none_of_the_kind()
    }

    /// Starts actors that take turns.
    fn start_turns<T: Turn>(&self, _actors: u64, _make: impl Fn() -> T) -> Result<(), Error> {
        none_of_the_kind()
    }

    /// Starts the root of the tree of [`Node`](super::acts::Node)s.
    fn start_tree(&self, _levels: u32) -> Result<(), Error> {
        none_of_the_kind()
    }

    /// Starts actors, and returns their addresses.
    fn start_all<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
    ) -> Result<Vec<Self::Ref<A>>, Error> {
        let mut all = Vec::with_capacity(usize::try_from(actors).map_err(failed)?);
        self.start_each(actors, make, |actor| all.push(actor))?;
        Ok(all)
    }

    /// Runs W1: starts `processes` processes from here. Each runs once, hits the gate, and ends.
    fn spawn(&self, processes: u64) -> Timed {
        let gate = gate();
        gate.time(processes, || {
            self.start_each(processes, |_| Hit(gate), drop)
        })
    }

    /// Runs W2: ten children a process, down to `levels` levels below the first. Leaves, numbered
    /// from 0, send their number to their parent, parents the sum; the first brings it to the gate.
    fn skynet(&self, levels: u32) -> Timed {
        gate().time(1, || self.start_tree(levels))
    }

    /// Runs W3: `processes` processes continue `each` times, and hit the gate.
    fn yields(&self, processes: u64, each: u64) -> Timed {
        let gate = gate();
        let stepper = || {
            let mut left = each;
            move || {
                left -= 1;
                if left == 0 {
                    gate.hit();
                }
                left > 0
            }
        };
        gate.time(processes, || self.start_turns(processes, stepper))
    }

    /// Runs W4: `pairs` pairs, set up, count a number down in turns by handle: `round_trips` round
    /// trips each. Both halves hit the gate.
    fn ping_pong<M: Load>(&self, pairs: u64, round_trips: u64) -> Timed {
        let gate = gate();
        let pairs = (0..pairs).map(|_| self.ring(2, || Half::<M>(gate, PhantomData)));
        let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
        gate.time(2 * pairs.len() as u64, || {
            // The first message, and the last, which is a zero, are half a round trip each.
            let mut whites = pairs.iter().map(|pair| &pair[0]);
            whites.try_for_each(|white| white(M::new(2 * round_trips)))
        })
    }

    /// Runs W4 by PID.
    fn ping_pong_by_pid(&self, _pairs: u64, _round_trips: u64) -> Timed {
        missing("it sends by handle: processes have no PIDs to send to")
    }

    /// Runs W5: a ring of `members`, set up. Each of the tokens, which start evenly spread, goes
    /// `hops` hops; then it hits the gate.
    fn tokens<M: Load>(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        let gate = gate();
        let ring = self.ring(members, || Member::<M>(gate, PhantomData))?;
        let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
        let starts = || ring.iter().step_by(apart);
        let time = gate.time(starts().count() as u64, || {
            starts().try_for_each(|member| member(M::new(hops)))
        })?;
        gate.time(members, || {
            ring.iter().try_for_each(|member| member(M::last()))
        })?;
        Ok(time)
    }

    /// Runs W6: `producers` producers, whose start the clock sees, send the numbers below
    /// `messages` each, without a pause, to a consumer that is set up. The consumer brings the sum
    /// to the gate.
    fn fan_in<M: Load>(&self, producers: u64, messages: u64) -> Timed {
        let gate = gate();
        let consumer = |_| Consumer::<M>::new(producers * messages, gate);
        let to = self.start_all(1, consumer)?;
        gate.time(1, || {
            let producer = |_| Producer {
                messages,
                to: to.clone(),
                send: send_to::<Self, Consumer<M>>,
            };
            self.start_each(producers, producer, drop)
        })
    }

    /// Runs W6 with a single call for all messages of a producer.
    fn fan_in_all(&self, _producers: u64, _messages: u64) -> Timed {
        missing("it has no call that sends many messages")
    }

    /// Runs Q2: `threads` threads, whose start the clock sees, send the numbers below `messages`
    /// each to a consumer that is set up, and wait while its mailbox has `limit` messages. The
    /// consumer brings the sum to the gate.
    fn send_blocking(&self, _threads: u64, _messages: u64, _limit: Option<usize>) -> Timed {
        missing("only Ganger runs it, beside itself without a limit")
    }

    /// Runs W7: a sender, whose start the clock sees, sends each of the numbers below `messages` to
    /// all receivers, which are set up. Each receiver brings its sum to the gate.
    fn fan_out<M: Load>(&self, receivers: u64, messages: u64) -> Timed {
        let gate = gate();
        let to = self.start_all(receivers, |_| Consumer::<M>::new(messages, gate))?;
        gate.time(receivers, || {
            let producer = |_| Producer {
                messages,
                to: to.clone(),
                send: send_to::<Self, Consumer<M>>,
            };
            self.start_each(1, producer, drop)
        })
    }

    /// Starts the crowd of W8 and W11: `processes` processes from here. Each hits the gate, and
    /// waits.
    fn crowd(&self, processes: u64) -> Result<(Duration, Crowd), Error> {
        let gate = gate();
        let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
        let time = gate.time(processes, || {
            self.start_each(processes, |_| Waiter(gate), |waiter| crowd.push(waiter))
        })?;
        Ok((time, Crowd::new(crowd, |waiter| Self::send(waiter, 0))))
    }

    /// Wakes the crowd of W8: sends each process a message, from here, upon which the process hits
    /// the gate and ends.
    fn wake(&self, mut crowd: Crowd) -> Timed {
        gate().time(crowd.processes, || (crowd.wake)())
    }

    /// Starts the listeners of W10, W12 and W13b to W13d: processes that call their function with
    /// each received number. When the answer is `true`, they hit the gate and end. The result sends
    /// a number to all of them, from any thread.
    fn listen<F>(&self, processes: u64, heard: impl Fn(u64) -> F) -> Result<Deliver, Error>
    where
        F: Fn(u64) -> bool + Unpin + Send + 'static,
    {
        let gate = gate();
        let listener = |number| Listener {
            heard: heard(number),
            gate,
        };
        let all = self.start_all(processes, listener)?;
        Ok(Box::new(move |number| {
            let sent = all.iter().try_for_each(|to| Self::send(to, number));
            sent.expect("the processes are there");
        }))
    }

    /// Starts the blockers of W12, W13b and W13c: `processes` processes that block and continue
    /// until `stuck` is over; then they hit the gate and end.
    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        let gate = gate();
        self.start_turns(processes, || Blocker { stuck, gate })
    }

    /// Starts the race of W13: `processes` processes that run a lap and continue until the race is
    /// over; then they hand in their number of laps, hit the gate and end.
    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        let gate = gate();
        self.start_turns(processes, || {
            let mut laps = 0;
            move || {
                let goes_on = race.lap();
                if goes_on {
                    laps += 1;
                } else {
                    race.finish(laps);
                    gate.hit();
                }
                goes_on
            }
        })
    }

    /// Runs W14: a process sets a timer for `churn_time` of its number and cancels it, `rounds`
    /// times; with `has_step` it continues before it cancels. Then it hits the gate.
    fn timer_churn(&self, _rounds: u64, _has_step: bool) -> Timed {
        none_of_the_kind()
    }

    /// Starts the crowd of W14, W15 and W17 as [`crowd`](Self::crowd) does, but each process sets a
    /// timer before it waits. The timer hits the gate and ends the process as a message does.
    fn timed_crowd(&self, _processes: u64, _due: Due) -> Result<(Duration, Crowd), Error> {
        none_of_the_kind()
    }

    /// Starts the nappers of W16: `processes` processes that sleep again and again for the times of
    /// `naps`, until `naps` is over; then they hit the gate and end.
    fn nap(&self, _naps: &'static Naps, _processes: u64) -> Result<(), Error> {
        none_of_the_kind()
    }
}

/// A peer's code for the workloads whose processes depend on each other.
pub(super) trait Services: Contestant {
    /// Runs W9: a process yields `commands` commands in sequence to a handler that completes each
    /// at once with its number: `commands` down to 1. The process brings the sum to the gate.
    fn command_inline(&self, _commands: u64) -> Timed {
        missing("it has no commands with handlers: requests go to another process, as in W9ask")
    }

    /// Runs W9ask: as [`command_inline`](Self::command_inline), but another process, set up,
    /// answers.
    fn command_asked(&self, _commands: u64) -> Timed {
        none_of_the_kind()
    }

    /// Runs S1: a process asks another process, set up, for the numbers from `calls` down to 1,
    /// each after the answer to the number before. The asker brings the sum to the gate.
    fn call(&self, calls: u64) -> Timed {
        self.command_asked(calls)
    }

    /// Runs S1out: S1 with this thread as the asker, which waits for each answer.
    fn call_from_outside(&self, _calls: u64) -> Timed {
        none_of_the_kind()
    }

    /// Runs S2: a process, whose start the clock sees, starts `processes` children, which end at
    /// once. The process brings the number of notices of their ends to the gate.
    fn spawn_monitored(&self, _processes: u64) -> Timed {
        none_of_the_kind()
    }

    /// Runs S3: a process fails in its first step, and another is started in its place, `restarts`
    /// times. The last process does not fail, and brings the number of restarts to the gate.
    fn restart(&self, _restarts: u64) -> Timed {
        none_of_the_kind()
    }

    /// Runs S3in: S3 where the next process has the identity and the mailbox of the process before.
    fn restart_in_place(&self, _restarts: u64) -> Timed {
        none_of_the_kind()
    }

    /// Runs S5: `callers` callers, whose start the clock sees, have jobs done with the numbers from
    /// `jobs` down to 1, each after the answer to the job before. At most `jobs::POOL` jobs are
    /// done at a time. The answer is the number. A caller brings the sum to the gate.
    fn pool(&self, _callers: u64, _jobs: u64, _length: Duration) -> Timed {
        none_of_the_kind()
    }

    /// Runs S4: as [`fan_out`](Self::fan_out), but the receivers are members of a group, and each
    /// number takes a single call.
    fn broadcast(&self, _members: u64, _messages: u64) -> Timed {
        none_of_the_kind()
    }

    /// Runs S4each: as [`broadcast`](Self::broadcast), where each member has a mailbox of its own.
    fn broadcast_each(&self, members: u64, messages: u64) -> Timed {
        self.broadcast(members, messages)
    }
}

/// Sends a number to an actor that has not ended.
#[inline]
fn send_to<P: Contestant, A: Act>(to: &P::Ref<A>, number: u64) {
    let sent = P::send(to, A::Load::new(number));
    sent.expect("the receiver is there");
}

/// Returns functions that send to these actors.
pub(super) fn throws<P: Contestant, A: Act>(
    all: impl IntoIterator<Item = P::Ref<A>>,
) -> Vec<Throw<A::Load>> {
    let throw = |to| -> Throw<A::Load> { Box::new(move |load| P::send(&to, load)) };
    all.into_iter().map(throw).collect()
}

/// Calls `ask` for the numbers up to `calls`, in sequence on this thread, and brings the sum of the
/// answers to the gate.
pub(super) fn ask_in_turn(calls: u64, ask: impl FnMut(u64) -> Result<u64, Error>) -> Timed {
    gate().time(1, || {
        let answers = (1..=calls).map(ask);
        gate().hit_with(answers.sum::<Result<u64, Error>>()?);
        Ok(())
    })
}

/// A future that sums the answers to numbers up, in sequence, and brings the sum to the gate.
macro_rules! asker {
    ($numbers:expr, |$number:ident| $answer:expr) => {{
        let gate = $crate::whole::gate::gate();
        async move {
            let mut sum = 0;
            for $number in $numbers {
                sum += $answer;
            }
            gate.hit_with(sum);
        }
    }};
}

pub(super) use asker;
