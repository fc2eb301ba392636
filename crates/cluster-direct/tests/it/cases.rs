//! Cases between two machines of a simulation, over any engine: what the cases of all engines try
//! on threads. Each is a run of a world.

use ganger_cluster::conformance::{Count, types};
use ganger_cluster::{Cluster, Engine};
use ganger_proc_api::{
    Actor, BoxError, CommandError, Context, Event, Events, ExitCause, Message, Payload, Pid,
    Process, Reply, StepOutput, StepResult, Tag,
};
use ganger_sched::{Address, ProcessHandle};
use ganger_sim::World;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECONDS: Duration = Duration::from_secs(10);

type Act = Box<dyn FnOnce(&Context, &mut StepOutput) -> StepResult + Send>;

/// The messages that a puppet was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Number(u64),
    Exit(Pid, Tag, ExitCause),
}

/// Does what the test says, and keeps what it is shown.
struct Puppet(Arc<Mutex<Vec<Seen>>>);

impl Process for Puppet {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Message(message) => {
                    let payload = message.payloads.into_first();
                    match payload.as_u64() {
                        Some(number) => self.0.lock().unwrap().push(Seen::Number(number)),
                        None => payload.downcast::<Act>().ok().unwrap()(ctx, out)?,
                    }
                }
                Event::Exit(notice) => {
                    let seen = Seen::Exit(notice.pid, notice.tag, notice.cause.clone());
                    self.0.lock().unwrap().push(seen);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

struct Strings {
    handle: ProcessHandle,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Strings {
    fn act(&self, act: impl FnOnce(&Context, &mut StepOutput) -> StepResult + Send + 'static) {
        let act: Act = Box::new(act);
        self.handle
            .send(Message::new("act", Payload::any(act)))
            .unwrap();
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// A sum, and replies that are never answered.
#[derive(Default)]
struct Counter(u64, Vec<Reply<u64>>);

impl Actor for Counter {
    type Message = Count;

    fn receive(&mut self, _: &Context, question: Count, _: &mut StepOutput) -> StepResult {
        match question {
            Count::Add(number) => self.0 += number,
            Count::Get(reply) => reply.complete(self.0),
            Count::Keep(reply) => self.1.push(reply),
            Count::Drop(reply) => drop(reply),
            Count::Fail(_) => return Err(BoxError::from("on purpose")),
            _ => {}
        }
        Ok(())
    }
}

/// Two machines, `alpha` and `beta`, of a cluster.
pub(crate) struct Two<'w, 'a>(&'w World<'a>);

impl<'w, 'a> Two<'w, 'a> {
    /// Starts both, each with its engine.
    pub(crate) fn start<E: Engine + 'static>(
        world: &'w World<'a>,
        engine: impl Fn(&'static str) -> E + Clone + 'static,
    ) -> Self {
        for name in ["alpha", "beta"] {
            let engine = engine.clone();
            world.start(name, move |machine| {
                let node = Cluster::builder().cookie("secret").engine(engine(name));
                let node = node.peers(["alpha", "beta"].into_iter().filter(|it| *it != name));
                node.types(types).join(machine).unwrap();
            });
        }
        world.run_for(SECONDS);
        Self(world)
    }

    fn puppet(&self, at: &str) -> Strings {
        let seen = Arc::default();
        let handle = self.0.machine(at).spawn(Puppet(Arc::clone(&seen))).unwrap();
        Strings { handle, seen }
    }

    /// The PID of a process of `beta`, as `alpha` knows it.
    fn far(&self, pid: Pid) -> Pid {
        self.0.machine("beta").absolute(pid)
    }

    fn counter(&self) -> Address<Count> {
        let beta = self.0.machine("beta");
        let counter = beta.spawn(Counter::default()).unwrap();
        let far = self.far(counter.pid());
        self.0
            .machine("alpha")
            .address(far)
            .unwrap()
            .typed()
            .unwrap()
    }

    fn ask(&self, of: &Address<Count>, ask: fn(Reply<u64>) -> Count) -> Result<u64, CommandError> {
        self.0.machine("alpha").answer(of.call(ask))
    }

    /// Each kind of end is told with its cause.
    pub(crate) fn a_monitor_has_the_cause(&self) {
        let watcher = self.puppet("alpha");
        type End<'a> = &'a dyn Fn(&Strings);
        let ends: [(End<'_>, ExitCause); 4] = [
            (
                &|it| {
                    it.act(|_, out| {
                        out.done(());
                        Ok(())
                    });
                },
                ExitCause::Done,
            ),
            (
                &|it| it.act(|_, _| Err(BoxError::from("no disk"))),
                ExitCause::Failed("no disk".into()),
            ),
            (
                &|it| {
                    let pid = self.far(it.handle.pid());
                    self.0.machine("alpha").cancel(pid, "enough").unwrap();
                },
                ExitCause::Cancelled("enough".into()),
            ),
            (
                &|it| {
                    let pid = self.far(it.handle.pid());
                    self.0.machine("alpha").terminate(pid).unwrap();
                },
                ExitCause::Terminated,
            ),
        ];
        let mut told = Vec::new();
        for (tag, (end, cause)) in (0..).zip(ends) {
            let target = self.puppet("beta");
            let pid = self.far(target.handle.pid());
            watcher.act(move |ctx, _| Ok(ctx.monitor(pid, tag)?));
            self.0.run_for(SECONDS);
            end(&target);
            told.push(Seen::Exit(pid, tag, cause));
            self.0
                .run_until(SECONDS, || watcher.seen().len() == told.len());
            assert_eq!(watcher.seen(), told);
        }
    }

    /// Of what has ended, and of what never was.
    pub(crate) fn a_monitor_of_what_is_not_there_says_so(&self) {
        let watcher = self.puppet("alpha");
        let gone = self.puppet("beta");
        let gone_pid = self.far(gone.handle.pid());
        let beta = self.0.machine("beta");
        beta.terminate(gone_pid).unwrap();
        drop(beta.wait(gone.handle));
        let never = Pid::new(gone_pid.host(), 7).with_node(gone_pid.node());
        let told = [gone_pid, never].map(|pid| Seen::Exit(pid, 1, ExitCause::NotFound));
        for pid in [gone_pid, never] {
            watcher.act(move |ctx, _| Ok(ctx.monitor(pid, 1)?));
        }
        self.0.run_until(SECONDS, || watcher.seen().len() == 2);
        assert_eq!(watcher.seen(), told);
    }

    /// A monitor that is taken back before the end is not told.
    pub(crate) fn a_monitor_taken_back_is_silent(&self) {
        let watcher = self.puppet("alpha");
        let target = self.puppet("beta");
        let pid = self.far(target.handle.pid());
        watcher.act(move |ctx, _| {
            ctx.monitor(pid, 1)?;
            ctx.monitor(pid, 2)?;
            ctx.demonitor(pid, 1);
            Ok(())
        });
        self.0.run_for(SECONDS);
        self.0.machine("beta").terminate(pid).unwrap();
        self.0.run_for(SECONDS);
        assert_eq!(watcher.seen(), [Seen::Exit(pid, 2, ExitCause::Terminated)]);
    }

    /// Three processes send to three, and each pair keeps its order.
    pub(crate) fn messages_of_many_pairs_keep_their_order(&self) {
        let sinks = [(); 3].map(|()| self.puppet("beta"));
        let pids = [0, 1, 2].map(|it: usize| self.far(sinks[it].handle.pid()));
        for source in 0..3_u64 {
            self.puppet("alpha").act(move |ctx, _| {
                for number in 0..40 {
                    for pid in pids {
                        ctx.send(pid, "number", source << 32 | number)?;
                    }
                }
                Ok(())
            });
        }
        let have_all = || sinks.iter().all(|it| it.seen().len() == 120);
        self.0.run_until(6 * SECONDS, have_all);
        for sink in &sinks {
            for source in 0..3 {
                let seen = sink.seen();
                let numbers = seen.iter().filter_map(|it| match it {
                    Seen::Number(number) if number >> 32 == source => Some(number & 0xffff),
                    _ => None,
                });
                assert!(numbers.eq(0..40), "of {source}: {seen:?}");
            }
        }
    }

    /// Answered, dropped, failed, asked of what is gone, and lost.
    pub(crate) fn a_question_has_one_answer_whatever_ends_it(&self) {
        let counter = self.counter();
        counter.send(Count::Add(42)).unwrap();
        assert_eq!(self.ask(&counter, Count::Get).unwrap(), 42);
        let dropped = self.ask(&counter, Count::Drop);
        assert!(matches!(dropped, Err(CommandError::Dropped)), "{dropped:?}");
        let failed = self.ask(&counter, Count::Fail);
        let cause = ExitCause::Failed("on purpose".into());
        assert!(
            matches!(&failed, Err(CommandError::Ended(it)) if *it == cause),
            "{failed:?}"
        );
        let gone = self.ask(&counter, Count::Get);
        assert!(matches!(gone, Err(CommandError::Ended(_))), "{gone:?}");
        let counter = self.counter();
        let open = counter.call(Count::Keep).begin();
        self.0.run_for(SECONDS);
        assert!(!open.is_ready(), "an answer that nobody gives");
        self.0.crash("beta");
        self.0.run_until(2 * SECONDS, || open.is_ready());
        let lost = open.wait();
        let cause = ExitCause::NoConnection;
        assert!(
            matches!(&lost, Err(CommandError::Ended(it)) if *it == cause),
            "{lost:?}"
        );
    }
}
