//! Plays the acts of the specification with processes in a simulation.

use super::spec::{EndAct, Ends, NAMES, PROCESSES, Spawn, Spec, TRAPPED, Told, signalled};
use ganger_link::{Group, Groups, Lane, LinkContext, LinkSpawner, Watch};
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitCause, Message, Pid, Process, StepOutput, StepResult, Tag,
};
use ganger_sched::{Address, ContextExt, ExitAction, Handle};
use ganger_sim::{Rt, Sim};
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;

type Act = Box<dyn FnOnce(&Context, &mut StepOutput) -> StepResult + Send>;

/// A message to a puppet.
#[derive(Clone)]
enum Say {
    Do(Arc<Mutex<Option<Act>>>),
    /// The number, and its sender.
    Number(usize, u64),
}

/// The notes of the processes.
#[derive(Default)]
struct Notes {
    /// In the order of their starts.
    processes: Vec<Address>,
    told: BTreeMap<Pid, Vec<Told<Pid>>>,
    ended: BTreeMap<Pid, ExitCause>,
    /// The open watches of each process, in the order of their begin.
    watches: BTreeMap<usize, Vec<Watch>>,
    reached: Option<usize>,
}

type Shared = Arc<Mutex<Notes>>;

/// A process that obeys its messages, and notes them.
struct Puppet {
    notes: Shared,
    ends: Option<Ends>,
}

/// Notes the cause of an end.
struct Note(Shared);

impl ExitAction for Note {
    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        lock(&self.0).ended.insert(process, cause.clone());
    }

    /// Leaves a process without a start out: the process has never been a process of the model.
    fn not_started(self: Box<Self>, _: Pid, _: &ExitCause) {}
}

impl Process for Puppet {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if let Some(ends) = self.ends.take() {
            return end(ends, ctx, out);
        }
        for event in events {
            let told = match event {
                Event::Exit(notice) => Told::End(notice.pid, notice.tag, notice.cause),
                Event::Message(message) => match message.take::<Say>()? {
                    Say::Number(by, number) => Told::Number(by, number),
                    Say::Do(act) => {
                        let act = lock(&act).take().ok_or("done already")?;
                        act(ctx, out)?;
                        continue;
                    }
                },
                _ => continue,
            };
            let mut notes = lock(&self.notes);
            notes.told.entry(ctx.pid()).or_default().push(told);
        }
        Ok(())
    }
}

fn end(ends: Ends, ctx: &Context, out: &mut StepOutput) -> StepResult {
    match ends {
        Ends::Done => out.done(()),
        Ends::Fails => return Err("boom".into()),
        // Without a report.
        Ends::Panics => resume_unwind(Box::new("boom")),
        Ends::Cancelled => ctx.cancel(ctx.pid(), "boom")?,
        Ends::Terminated => ctx.terminate(ctx.pid())?,
    }
    Ok(())
}

/// Notes a process before its start.
fn note(notes: &Shared, child: &Address) -> Result<(), BoxError> {
    child.add_exit_action(Box::new(Note(Arc::clone(notes))))?;
    Ok(())
}

fn lane(in_order: bool) -> Lane {
    match in_order {
        true => Lane::InOrder,
        false => Lane::Overtaking,
    }
}

fn group_of(scheduler: &Handle, group: usize) -> Group {
    Groups::of(scheduler, "model").group(&name(group))
}

fn name(number: usize) -> String {
    format!("name {number}")
}

/// Performs an act of a process. `tag` is for the next watch.
fn perform(
    act: EndAct,
    tag: Tag,
    notes: &Shared,
    ctx: &Context,
    out: &mut StepOutput,
) -> StepResult {
    let scheduler = ctx.scheduler().ok_or("no scheduler")?;
    let address = |number: usize| lock(notes).processes[number].clone();
    let pid = |number: usize| address(number).pid();
    match act {
        EndAct::Spawn(_, how) => spawn(how, tag, notes, ctx),
        EndAct::Link(_, other) => Ok(ctx.link(pid(other))?),
        EndAct::Unlink(_, other) => Ok(ctx.unlink(pid(other))?),
        EndAct::Trap(_, true) => {
            ctx.trap_exits(TRAPPED);
            Ok(())
        }
        EndAct::Trap(_, false) => {
            ctx.end_trap();
            Ok(())
        }
        EndAct::End(_, ends) => end(ends, ctx, out),
        EndAct::Farewell(by, other, numbers, ends) => {
            let other = address(other);
            for number in 0..numbers {
                // An ended process refuses the message.
                let _ = other.send(Message::of(Say::Number(by, number)));
            }
            end(ends, ctx, out)
        }
        EndAct::Exit(_, other, is_done) => {
            let _has_ended = ctx.exit(pid(other), signalled(is_done));
            Ok(())
        }
        EndAct::Watch(by, other, in_order) => {
            let watch = ctx.watch(pid(other), tag, lane(in_order))?;
            lock(notes).watches.entry(by).or_default().push(watch);
            Ok(())
        }
        EndAct::EndWatch(by) => {
            let mut notes = lock(notes);
            let watches = notes.watches.entry(by).or_default();
            if !watches.is_empty() {
                watches.remove(0).end();
            }
            Ok(())
        }
        EndAct::Name(_, number) => {
            let _is_taken = ctx.register_name(&name(number));
            Ok(())
        }
        EndAct::Join(_, group) => {
            let own = ctx.untyped_address().ok_or("no address")?;
            Ok(group_of(&scheduler, group).join(&own)?)
        }
        EndAct::Leave(_, group) => {
            group_of(&scheduler, group).leave(ctx.pid());
            Ok(())
        }
        EndAct::Broadcast(by, group) => {
            let delivered = group_of(&scheduler, group).broadcast(&Say::Number(by, 0));
            lock(notes).reached = Some(delivered.taken);
            Ok(())
        }
    }
}

fn spawn(how: Spawn, tag: Tag, notes: &Shared, ctx: &Context) -> StepResult {
    let mut spawner = ctx.spawner();
    if how.linked {
        spawner = spawner.linked();
    }
    if let Some(in_order) = how.watched {
        spawner = spawner.watched(tag, lane(in_order));
    }
    if let Some(number) = how.named {
        spawner = spawner.named(name(number));
    }
    let its = Arc::clone(notes);
    let child = Puppet {
        notes: Arc::clone(notes),
        ends: how.ends,
    };
    let place = Arc::new(Mutex::new(None));
    let address = Arc::clone(&place);
    let spawner = spawner.before_init(move |child| {
        *lock(&address) = Some(child.clone());
        note(&its, child)
    });
    // A taken name is an error.
    if spawner.spawn(child).is_ok() {
        lock(notes).processes.extend(lock(&place).take());
    }
    Ok(())
}

/// Plays all acts with processes in a simulation, each after the end of the act before.
///
/// # Panics
/// If a process ends otherwise than the specification says, or gets other notices, or a name or a
/// group has other processes.
pub fn play_ends(seed: u64, acts: &[EndAct]) {
    Sim::new(seed)
        .workers(2)
        .must_free()
        .run(|rt| play(rt, acts));
}

fn play(rt: &Rt<'_>, acts: &[EndAct]) {
    let (notes, mut spec) = (Shared::default(), Spec::new());
    for _ in 0..PROCESSES {
        let its = Arc::clone(&notes);
        let spawner = rt.spawner().before_init(move |child| note(&its, child));
        let puppet = Puppet {
            notes: Arc::clone(&notes),
            ends: None,
        };
        let started = spawner.spawn(puppet).unwrap();
        lock(&notes).processes.push(started.address().clone());
    }
    for &act in acts {
        if spec.can(&act) {
            let (tag, its) = (spec.last + 1, Arc::clone(&notes));
            let perform: Act = Box::new(move |ctx, out| perform(act, tag, &its, ctx, out));
            let by = lock(&notes).processes[act.by()].clone();
            let say = Say::Do(Arc::new(Mutex::new(Some(perform))));
            by.send(Message::of(say)).unwrap();
        }
        rt.settle();
        spec.play(&act);
        compare(rt, &act, &mut lock(&notes), &mut spec);
    }
    lock(&notes).watches.clear();
}

fn compare(rt: &Rt<'_>, act: &EndAct, notes: &mut Notes, spec: &mut Spec) {
    let pids: Vec<_> = notes.processes.iter().map(Address::pid).collect();
    assert_eq!(pids.len(), spec.started, "{act:?}");
    for number in 0..NAMES {
        let holder = spec.names[number].map(|it| pids[it]);
        assert_eq!(rt.whereis(&name(number)), holder, "{act:?}");
        let members: Vec<_> = spec.groups[number].iter().map(|it| pids[*it]).collect();
        assert_eq!(group_of(rt, number).members(), members, "{act:?}");
    }
    assert_eq!(notes.reached.take(), spec.reached, "{act:?}");
    let ended = spec.ended.iter().map(|it| (pids[*it.0], it.1.clone()));
    assert_eq!(notes.ended, ended.collect(), "{act:?}");
    // A watch is over after its notice.
    for watches in notes.watches.values_mut() {
        watches.retain(|it| spec.is_on(it.tag()));
    }
    for (number, pid) in pids.iter().enumerate() {
        let mut seen = notes.told.remove(pid).unwrap_or_default();
        let expected = spec.told.remove(&number).unwrap_or_default();
        let expected = expected.into_iter().map(|it| match it {
            Told::End(of, tag, cause) => Told::End(pids[of], tag, cause),
            Told::Number(by, number) => Told::Number(by, number),
        });
        let mut expected: Vec<_> = expected.collect();
        assert!(is_in_order(&seen, &pids, spec), "{act:?}: {seen:?}");
        if let Some(cause) = notes.ended.get(pid) {
            // The process may have got notices before its end, also of others that end by the same
            // act, whose order is open.
            let is_true = |it: &_| match it {
                Told::End(of, _, cause) => notes.ended.get(of) == Some(cause),
                Told::Number(..) => false,
            };
            let is_told = |it: &_| expected.contains(it) || is_true(it);
            assert!(
                seen.iter().all(is_told),
                "{act:?}: {number}, {cause}: {seen:?}"
            );
            continue;
        }
        for told in [&mut seen, &mut expected] {
            told.sort_by_key(|it| match it {
                Told::End(of, tag, _) => (Some(*of), *tag),
                Told::Number(by, number) => (None, 1_000 * *by as u64 + number),
            });
        }
        assert_eq!(seen, expected, "{act:?}: {number}");
    }
}

/// Returns whether the numbers of each sender are in order, and before the notice of its end, if
/// the notice comes in order.
fn is_in_order(told: &[Told<Pid>], pids: &[Pid], spec: &Spec) -> bool {
    let mut last: BTreeMap<usize, u64> = BTreeMap::new();
    let mut over = Vec::new();
    told.iter().all(|it| match it {
        Told::Number(by, number) => {
            let before = last.insert(*by, *number);
            before.is_none_or(|before| before < *number) && !over.contains(&pids[*by])
        }
        Told::End(of, tag, _) => {
            over.extend(spec.in_order.contains(tag).then_some(*of));
            true
        }
    })
}
