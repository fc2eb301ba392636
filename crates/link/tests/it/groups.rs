//! Groups: against a plain model, and rule by rule.

use crate::support::*;
use ganger_link::{
    Delivered, Group, GroupChange, GroupNotice, GroupRouting, Groups, JoinError, JoinErrorKind,
};
use ganger_proc_api::{Pid, StepResult, actor_fn};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Handle, ProcessHandle, Scheduler};
use ganger_sim::Sim;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::thread;

const PROCESSES: usize = 5;
const NAMES: [&str; 3] = ["a", "b", "c"];

type Changes = Arc<Mutex<Vec<GroupChange>>>;

/// Notes its notices of changes.
fn monitor(scheduler: &Handle) -> (ProcessHandle<GroupNotice>, Changes) {
    let changes = Changes::default();
    let its = Arc::clone(&changes);
    let monitor = actor_fn(move |_, notice: GroupNotice, _| -> StepResult {
        its.lock().unwrap().extend(notice.change().cloned());
        Ok(())
    });
    (scheduler.spawn(monitor).unwrap(), changes)
}

/// Applies the changes to a list of members.
fn replayed(mut members: Vec<Pid>, changes: &[GroupChange], group: &str) -> Vec<Pid> {
    for change in changes.iter().filter(|it| &*it.group == group) {
        if change.is_join {
            members.push(change.pid);
        } else {
            let at = members.iter().rposition(|it| *it == change.pid);
            members.remove(at.expect("it was there"));
        }
    }
    members
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Join(usize, usize),
    Leave(usize, usize),
    End(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let (group, one) = (|| 0..NAMES.len(), || 0..PROCESSES);
    prop_oneof![
        6 => (group(), one()).prop_map(|(it, one)| Act::Join(it, one)),
        3 => (group(), one()).prop_map(|(it, one)| Act::Leave(it, one)),
        1 => one().prop_map(Act::End),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // pins: N3, N4
    #[test]
    fn groups_are_lists_and_monitors_miss_nothing(
        seed in any::<u64>(),
        monitor_at in 0..30_usize,
        acts in proptest::collection::vec(act(), 0..60),
    ) {
        Sim::new(seed).must_free().run(|rt| {
            let scope = Groups::of(rt, "scope");
            let processes: Vec<_> = (0..PROCESSES).map(|_| puppet(rt)).collect();
            let (watcher, changes) = monitor(rt);
            let (all_watcher, all_changes) = monitor(rt);
            let mut model: Vec<Vec<Pid>> = vec![Vec::new(); NAMES.len()];
            let mut began = None;
            for (number, &act) in acts.iter().enumerate() {
                if number == monitor_at {
                    let (members, _) = scope.group("a").monitor(&watcher.address().recipient());
                    assert_eq!(members, model[0]);
                    let (all, _) = scope.monitor(&all_watcher.address().recipient());
                    began = Some((members, all));
                }
                match act {
                    Act::Join(group, one) => {
                        let process = &processes[one];
                        let joined = scope.group(NAMES[group]).join(&process.handle);
                        assert_eq!(joined.is_ok(), !process.handle.is_finished());
                        if joined.is_ok() {
                            model[group].push(process.pid());
                        }
                    }
                    Act::Leave(group, one) => {
                        let pid = processes[one].pid();
                        let at = model[group].iter().rposition(|it| *it == pid);
                        assert_eq!(scope.group(NAMES[group]).leave(pid), at.is_some());
                        at.map(|at| model[group].remove(at));
                    }
                    Act::End(one) => {
                        let pid = processes[one].pid();
                        let _ended = rt.terminate(pid);
                        rt.settle();
                        for group in &mut model {
                            group.retain(|it| *it != pid);
                        }
                    }
                }
                for (name, members) in NAMES.iter().zip(&model) {
                    assert_eq!(scope.group(name).members(), *members);
                }
                let full = NAMES.iter().zip(&model).filter(|it| !it.1.is_empty());
                let full: Vec<_> = full.map(|it| *it.0).collect();
                let names = scope.names();
                assert_eq!(names.iter().map(|it| &**it).collect::<Vec<_>>(), full);
            }
            rt.settle();
            if let Some((members, all)) = began {
                let changes = changes.lock().unwrap();
                assert_eq!(replayed(members, &changes, "a"), model[0]);
                assert!(changes.iter().all(|it| &*it.group == "a"));
                let all: HashMap<_, _> = all.into_iter().collect();
                let changes = all_changes.lock().unwrap();
                for (name, members) in NAMES.iter().zip(&model) {
                    let before = all.get(*name).cloned().unwrap_or_default();
                    assert_eq!(replayed(before, &changes, name), *members);
                }
            }
        });
    }
}

// pins: N4
#[test]
fn changes_from_many_threads_come_in_their_order_and_none_after_the_end_of_the_monitor() {
    let scheduler = start(2);
    let group = Groups::of(&scheduler, "scope").group("a");
    let (watcher, changes) = monitor(&scheduler);
    let first = puppet(&scheduler);
    group.join(&first.handle).unwrap();
    let (members, its) = group.monitor(&watcher.address().recipient());
    assert_eq!(members, [first.pid()]);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let short = puppet(&scheduler);
                    group.join(&short.handle).unwrap();
                    group.join(&short.handle).unwrap();
                    if short.pid().id().is_multiple_of(2) {
                        assert!(group.leave(short.pid()));
                    }
                    scheduler.terminate(short.pid()).unwrap();
                    exit(short.handle);
                }
            });
        }
    });
    let begin = std::time::Instant::now();
    while changes.lock().unwrap().len() < 3 * 200 * 4 {
        assert!(begin.elapsed() < PATIENCE);
        thread::yield_now();
    }
    let seen = changes.lock().unwrap().clone();
    assert_eq!(replayed(members, &seen, "a"), [first.pid()]);
    its.end();
    group.leave(first.pid());
    assert!(group.members().is_empty());
    scheduler.terminate(watcher.pid()).unwrap();
    exit(watcher);
    assert_eq!(changes.lock().unwrap().len(), seen.len());
}

// pins: N4
#[test]
fn a_change_that_waits_says_nothing_after_the_end_of_the_monitor() {
    let scheduler = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = scheduler.build().unwrap();
    let (watcher, changes) = monitor(&scheduler);
    let (other_watcher, other_changes) = monitor(&scheduler);
    let group = Groups::of(&scheduler, "scope").group("a");
    let (_, its) = group.monitor(&watcher.address().recipient());
    let (_, _others) = group.monitor(&other_watcher.address().recipient());
    let member = puppet(&scheduler);
    // More than a mailbox has room for.
    for _ in 0..10 {
        group.join(&member.handle).unwrap();
    }
    its.end();
    scheduler.start().unwrap();
    let begin = std::time::Instant::now();
    while other_changes.lock().unwrap().len() < 10 {
        assert!(begin.elapsed() < PATIENCE);
        thread::yield_now();
    }
    scheduler.cancel(watcher.pid(), "enough").unwrap();
    exit(watcher);
    assert!(changes.lock().unwrap().is_empty());
}

/// Creates a group with three members of the same kind, and returns their numbers.
fn three(scheduler: &Scheduler) -> (Group, Vec<ProcessHandle<u64>>) {
    let group = Groups::of(scheduler, "scope").group("three");
    let members: Vec<_> = (0..3)
        .map(|_| {
            let member = actor_fn(|_, number: u64, out| {
                out.done(number);
                Ok(())
            });
            let member = scheduler.spawn(member).unwrap();
            group.join(&member).unwrap();
            member
        })
        .collect();
    (group, members)
}

// pins: N5
#[test]
fn a_broadcast_says_how_many_have_it_were_full_gone_or_mistaken() {
    let scheduler = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = scheduler.build().unwrap();
    let (group, members) = three(&scheduler);
    let other = actor_fn(|_, _: String, _| Ok(()));
    let other = scheduler.spawn(other).unwrap();
    group.join(&other).unwrap();
    group.join(&members[0]).unwrap();
    members[1].send(0).unwrap();
    let expected = Delivered {
        taken: 2,
        full: 1,
        gone: 0,
        mistaken: 1,
    };
    assert_eq!(group.broadcast(&7_u64), expected);
    scheduler.start().unwrap();
    let numbers = members
        .into_iter()
        .map(|it| exit(it).take::<u64>().unwrap());
    assert!(numbers.eq([7, 0, 7]));
    assert_eq!(group.members(), [other.pid()]);
    let none = Groups::of(&scheduler, "other scope").group("three");
    assert_eq!(none.broadcast(&7_u64), Delivered::default());
    assert!(
        none.pick(GroupRouting::RoundRobin).is_none()
            && none.pick(GroupRouting::key("x")).is_none()
    );
}

// pins: N5
#[test]
fn members_are_picked_in_turn_and_a_key_leads_to_the_same_one() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (group, members) = three(&scheduler);
    group.join(&members[1]).unwrap();
    let picked = |_| group.pick(GroupRouting::RoundRobin).unwrap().pid();
    let pids: Vec<_> = members.iter().map(ProcessHandle::pid).collect();
    assert!((0..6).map(picked).eq(pids.iter().chain(&pids).copied()));
    let of_key = |key: u64| group.pick(GroupRouting::key(key)).unwrap().pid();
    let before: Vec<_> = (0..300).map(of_key).collect();
    for pid in &pids {
        let share = before.iter().filter(|it| *it == pid).count();
        assert!((50..150).contains(&share), "{share}");
    }
    group.leave(pids[0]);
    for (key, before) in (0..300).zip(before) {
        assert!(of_key(key) == before || before == pids[0]);
    }
    // The process joins again, as the third: a third of the keys goes to this process, and no key
    // elsewhere.
    let before: Vec<_> = (0..300).map(of_key).collect();
    group.join(&members[0]).unwrap();
    let moved = (0..300).zip(before).filter(|(key, before)| {
        let now = of_key(*key);
        assert!(now == *before || now == pids[0]);
        now != *before
    });
    let moved = moved.count();
    assert!((50..150).contains(&moved), "{moved}");
}

/// Checks that the member of a key in a group tells nothing of its member in another group.
// pins: N5
#[test]
fn the_member_of_a_key_differs_from_group_to_group() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (_, members) = three(&scheduler);
    let picked = |(scope, group): (u32, u32)| {
        let group = Groups::of(&scheduler, &scope.to_string()).group(&group.to_string());
        members.iter().for_each(|it| group.join(it).unwrap());
        group.pick(GroupRouting::key("key")).unwrap().pid()
    };
    let of_scopes: HashSet<_> = (0..40).map(|scope| picked((scope, 0))).collect();
    let of_groups: HashSet<_> = (0..40).map(|group| picked((7, group))).collect();
    assert!(of_scopes.len() > 1 && of_groups.len() > 1);
}

// pins: N3
#[test]
fn what_has_ended_does_not_join() {
    let scheduler = start(1);
    let gone = puppet(&scheduler);
    let (pid, address) = (gone.pid(), gone.handle.address().clone());
    scheduler.terminate(pid).unwrap();
    exit(gone.handle);
    let group = Groups::of(&scheduler, "scope").group("a");
    let kind = JoinErrorKind::Ended;
    assert_eq!(group.join(&address), Err(JoinError { pid, kind }));
    assert!(!group.leave(pid) && group.members().is_empty());
}

/// Can't be made of a change.
#[derive(Debug)]
struct Refuses;

impl From<GroupNotice> for Refuses {
    fn from(_: GroupNotice) -> Self {
        panic!("on purpose: a conversion")
    }
}

#[test]
fn a_monitor_that_makes_no_message_of_a_change_harms_no_other() {
    let scheduler = start(1);
    let refuses = actor_fn(|_, _: Refuses, _| -> StepResult { Ok(()) });
    let refuses = scheduler.spawn(refuses).unwrap();
    let (other, changes) = monitor(&scheduler);
    let group = Groups::of(&scheduler, "scope").group("a");
    let (_, first) = group.monitor(&refuses.address().recipient());
    let (_, second) = group.monitor(&other.address().recipient());
    let member = puppet(&scheduler);
    group.join(&member.handle).unwrap();
    assert!(group.leave(member.pid()));
    scheduler.terminate(other.pid()).unwrap();
    exit(other);
    assert!(changes.lock().unwrap().len() <= 2);
    let (third, changes) = monitor(&scheduler);
    let (_, third_monitor) = group.monitor(&third.address().recipient());
    group.join(&member.handle).unwrap();
    member.have(|_, _| Ok(()));
    let begin = std::time::Instant::now();
    while changes.lock().unwrap().is_empty() && begin.elapsed() < PATIENCE {
        thread::yield_now();
    }
    assert_eq!(changes.lock().unwrap().len(), 1);
    drop((first, second, third_monitor));
}

#[test]
fn a_process_that_leaves_once_leaves_by_its_last_join() {
    let scheduler = start(1);
    let (group, members) = three(&scheduler);
    let pids: Vec<_> = members.iter().map(ProcessHandle::pid).collect();
    group.join(&members[0]).unwrap();
    assert!(group.leave(pids[0]));
    assert_eq!(group.members(), pids);
    assert!(group.leave(pids[0]) && !group.leave(pids[0]));
    assert_eq!(group.members(), pids[1..]);
}

/// A crate's value in a scheduler.
struct Kept(#[allow(dead_code, reason = "it is counted")] Arc<()>);

#[test]
fn monitors_that_have_ended_keep_no_scheduler_that_is_gone() {
    let kept = Arc::new(());
    let scheduler = start(1);
    let its = Arc::clone(&kept);
    drop(scheduler.extension(|_| Kept(its)));
    let (one, _) = monitor(&scheduler);
    let groups = Groups::of(&scheduler, "scope");
    // With this number of monitors, the process drops the actions of ended monitors.
    for name in 0..100 {
        let (_, ends) = groups
            .group(&name.to_string())
            .monitor(&one.address().recipient());
        ends.end();
    }
    let stays = groups.group("a").monitor(&one.address().recipient());
    drop((stays, groups, one, scheduler));
    // A thread of the scheduler may be about to leave.
    let begin = std::time::Instant::now();
    while Arc::strong_count(&kept) > 1 && begin.elapsed() < PATIENCE {
        thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&kept), 1);
}
