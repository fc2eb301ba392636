//! The state left by a failed incarnation to the next, and the state lost with the incarnation.

use ganger::lock::CancellationToken;
use ganger_link::{GroupNotice, Groups, Lane, LinkContext, Services};
use ganger_proc_api::{
    Actor, BoxError, Context, ExitCause, ExitNotice, Message, Pid, Process, Reply, StepOutput,
    StepResult, actor_fn, process_fn,
};
use ganger_sched::{ContextExt, ExitAction};
use ganger_sim::Sim;
use ganger_supervise::{ChildSpec, Supervisor};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn sim(seed: u64) -> Sim {
    Sim::new(seed).workers(3).must_free()
}

/// All notes, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The messages to an [`Everything`].
enum Told {
    Fail,
    /// Put off by its `init`.
    Later(u64),
    Asked(u32, Reply<u32>),
    Group(GroupNotice),
}

impl From<GroupNotice> for Told {
    fn from(notice: GroupNotice) -> Self {
        Self::Group(notice)
    }
}

/// Registers everything possible in its `init`, and notes the results.
struct Everything {
    target: Pid,
    log: Log,
    /// The number of failed restarts after the first failure.
    broken: u64,
    tokens: Arc<Mutex<Vec<CancellationToken>>>,
}

struct Noted(Log, u64);

impl ExitAction for Noted {
    fn release(&mut self, _: Pid) {
        self.0.note(format!("{} released", self.1));
    }

    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        self.0.note(format!("{} {cause}", self.1));
    }
}

impl Actor for Everything {
    type Message = Told;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let scheduler = ctx.scheduler().ok_or("no scheduler")?;
        let number = ctx.incarnation();
        let own = ctx.address::<Told>()?;
        Services::of(&scheduler).register_process("asked", &own, Told::Asked)?;
        let group = Groups::of(&scheduler, "scope").group("joined");
        group.join(&own)?;
        group.join(&own)?;
        let recipient = own.recipient();
        let watched = Groups::of(&scheduler, "scope").group("watched");
        let _monitors = watched.monitor(&recipient);
        let _monitors = Groups::of(&scheduler, "other").monitor(&recipient);
        ctx.monitor(self.target, number)?;
        ctx.watch(self.target, number, Lane::Overtaking)?;
        ctx.watch(self.target, number, Lane::InOrder)?;
        ctx.linked().spawn(actor_fn(|_, (): (), _| Ok(())))?;
        let later = Message::of(Told::Later(number)).payloads;
        let _sent = ctx.send_after(ms(60_000), ctx.pid(), "", later);
        ctx.add_exit_action(Box::new(Noted(self.log.clone(), number)))?;
        ctx.register_name("everything")?;
        let token = CancellationToken::of_process(ctx);
        self.tokens.lock().unwrap().push(token);
        if (1..=self.broken).contains(&number) {
            return Err("broken".into());
        }
        Ok(())
    }

    fn receive(&mut self, ctx: &Context, it: Told, _: &mut StepOutput) -> StepResult {
        match it {
            Told::Fail => return Err("on purpose".into()),
            Told::Later(number) => {
                assert_eq!(number, ctx.incarnation());
                self.log.note("later");
            }
            Told::Asked(number, reply) => reply.complete(2 * number),
            Told::Group(notice) => {
                if let Some(change) = notice.change() {
                    self.log
                        .note(format!("{} of {}", change.is_join, change.group));
                }
            }
        }
        Ok(())
    }

    fn exited(&mut self, ctx: &Context, notice: ExitNotice, _: &mut StepOutput) -> StepResult {
        assert_eq!(notice.tag, ctx.incarnation());
        self.log.note("ended");
        Ok(())
    }
}

fn waits() -> impl Process {
    process_fn(|_, _, _| Ok(()))
}

// pins: S13, L4, N3, N4, N6, K8
#[test]
fn what_an_incarnation_has_registered_goes_with_it_and_what_others_have_stays() {
    sim(70).check_seeds(20, |rt| {
        for broken in [0, 3] {
            let (log, tokens) = (Log::default(), Arc::<Mutex<Vec<_>>>::default());
            let target = rt.spawn(waits()).unwrap();
            let everything = {
                let (target, log, tokens) = (target.pid(), log.clone(), Arc::clone(&tokens));
                move || Everything {
                    target,
                    log: log.clone(),
                    broken,
                    tokens: Arc::clone(&tokens),
                }
            };
            let tree = Supervisor::one_for_one()
                .intensity(100, ms(5_000))
                .with(ChildSpec::new("c", everything).in_place())
                .start(rt)
                .unwrap();
            let address = tree.address::<Told>("c").unwrap();
            let pid = address.pid();
            // The registrations by other processes.
            let groups = Groups::of(rt, "scope");
            let joined = groups.group("joined");
            joined.join(&address).unwrap();
            let told = log.clone();
            let watcher = process_fn(move |ctx, events, _| {
                match events.next() {
                    None => ctx.monitor(pid, 1)?,
                    Some(_) => told.note("the child ended"),
                }
                Ok(())
            });
            let _watcher = rt.spawn(watcher).unwrap();
            rt.run_for(ms(1));
            let alive = rt.processes().len();
            for _ in 0..20 {
                address.send(Told::Fail).unwrap();
                rt.run_for(ms(1));
            }
            let lives = 20 + broken;
            let ends = (0..lives).flat_map(|number| {
                let is_broken = (1..=broken).contains(&number);
                let cause = if is_broken { "broken" } else { "on purpose" };
                [
                    format!("{number} released"),
                    format!("{number} failed: {cause}"),
                ]
            });
            assert_eq!(log.take(), ends.collect::<Vec<_>>());
            assert_eq!(
                (rt.whereis("everything"), tree.child("c")),
                (Some(pid), Some(pid))
            );
            assert_eq!(
                rt.processes().len(),
                alive,
                "a helper goes with its incarnation"
            );
            assert_eq!(joined.members(), [pid; 3]);
            let double = Services::of(rt).call::<u32, u32>("asked", 21).unwrap();
            assert_eq!(rt.answer(double).unwrap(), 42);
            let is_cancelled: Vec<_> = {
                let tokens = tokens.lock().unwrap();
                tokens.iter().map(CancellationToken::is_cancelled).collect()
            };
            assert_eq!(is_cancelled.iter().filter(|it| !**it).count(), 1);
            assert_eq!(is_cancelled.last(), Some(&false));
            let other = rt.spawn(waits()).unwrap();
            groups.group("watched").join(other.address()).unwrap();
            Groups::of(rt, "other")
                .group("g")
                .join(other.address())
                .unwrap();
            rt.terminate(target.pid()).unwrap();
            rt.run_for(ms(1));
            let mut now = log.take();
            now.sort();
            assert_eq!(
                now,
                ["ended", "ended", "ended", "true of g", "true of watched"]
            );
            rt.run_for(ms(120_000));
            assert_eq!(log.take(), ["later"]);
            tree.cancel("enough").unwrap();
            _ = rt.wait(tree.into_handle());
            rt.settle();
            assert!(log.take().contains(&"the child ended".to_owned()));
            assert!(joined.members().is_empty() && Services::of(rt).list().is_empty());
            rt.terminate(other.pid()).unwrap();
            rt.settle();
        }
    });
}

/// Monitors a process, which may end just when it fails itself.
struct Watches(Arc<Mutex<Vec<Pid>>>, Log);

impl Actor for Watches {
    type Message = ();

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let target = ctx.spawn(waits())?.pid();
        self.0.lock().unwrap().push(target);
        for tag in [0, 1] {
            ctx.monitor(target, 2 * ctx.incarnation() + tag)?;
        }
        ctx.trap_exits(2 * ctx.incarnation());
        ctx.link(target)?;
        Ok(())
    }

    fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
        Err("on purpose".into())
    }

    fn exited(&mut self, ctx: &Context, notice: ExitNotice, _: &mut StepOutput) -> StepResult {
        assert_eq!(notice.tag / 2, ctx.incarnation());
        self.1.note("ended");
        Ok(())
    }
}

// pins: S13, P12, L4, L6
#[test]
fn no_incarnation_is_shown_an_end_that_another_one_watches_for() {
    sim(71).check_seeds(200, |rt| {
        let (targets, log) = (Arc::<Mutex<Vec<_>>>::default(), Log::default());
        let (theirs, notes) = (Arc::clone(&targets), log.clone());
        let child = ChildSpec::new("c", move || Watches(Arc::clone(&theirs), notes.clone()));
        let tree = Supervisor::one_for_one()
            .with(child.in_place().back_off(ms(20)))
            .start(rt)
            .unwrap();
        let address = tree.address::<()>("c").unwrap();
        let target = targets.lock().unwrap()[0];
        rt.run_for(ms(1));
        if rt.choose(2) == 0 {
            address.send(()).unwrap();
            rt.terminate(target).unwrap();
        } else {
            rt.terminate(target).unwrap();
            address.send(()).unwrap();
        }
        rt.run_for(ms(100));
        let first = log.take().len();
        assert!(first <= 3, "{first}");
        // The next incarnation has monitors and a link of its own.
        let targets = targets.lock().unwrap().clone();
        assert_eq!((targets.len(), tree.child("c")), (2, Some(address.pid())));
        rt.terminate(targets[1]).unwrap();
        rt.run_for(ms(1));
        assert_eq!(log.take(), ["ended"; 3]);
        tree.cancel("enough").unwrap();
        _ = rt.wait(tree.into_handle());
    });
}
