use super::*;
use ganger_proc_api::actor_fn;
use ganger_sched::Scheduler;

fn names(scheduler: &Handle) -> Vec<Arc<str>> {
    let scopes = scheduler.extension(|_| Scopes::default());
    let mut names: Vec<_> = lock(&scopes.0).keys().cloned().collect();
    names.sort();
    names
}

// pins: N3
#[test]
fn a_scope_goes_with_its_last_member_monitor_and_user() {
    let scheduler = Scheduler::start_default().unwrap();
    let waits = || {
        actor_fn(|_, (): (), out| {
            out.done(());
            Ok(())
        })
    };
    let (member, monitor) = (
        scheduler.spawn(waits()).unwrap(),
        scheduler
            .spawn(actor_fn(|_, _: GroupNotice, _| Ok(())))
            .unwrap(),
    );
    for number in 0..1_000 {
        drop(Groups::of(&scheduler, &format!("scope {number}")));
    }
    assert!(names(&scheduler).is_empty());
    Groups::of(&scheduler, "joined")
        .group("g")
        .join(&member)
        .unwrap();
    let recipient = monitor.address().recipient();
    let (_, watch) = Groups::of(&scheduler, "watched").monitor(&recipient);
    assert_eq!(names(&scheduler), ["joined".into(), "watched".into()]);
    let again = Groups::of(&scheduler, "joined");
    assert_eq!(again.group("g").members(), [member.pid()]);
    member.address().send(()).unwrap();
    assert!(member.wait().is_done());
    drop(again);
    assert_eq!(names(&scheduler), ["watched".into()]);
    watch.end();
    assert!(names(&scheduler).is_empty());
    // The dropped monitor ends with its process.
    drop(Groups::of(&scheduler, "watched").monitor(&recipient));
    drop(
        Groups::of(&scheduler, "one group")
            .group("g")
            .monitor(&recipient),
    );
    assert_eq!(names(&scheduler).len(), 2);
    scheduler.terminate(monitor.pid()).unwrap();
    let _terminated = monitor.wait();
    assert!(names(&scheduler).is_empty());
}

/// Checks that the process lives on.
// pins: N3
#[test]
fn a_scope_goes_when_all_processes_have_left_it() {
    let scheduler = Scheduler::start_default().unwrap();
    let process = || {
        let waits = actor_fn(|_, (): (), _| Ok(()));
        scheduler.spawn(waits).unwrap()
    };
    let (one, other) = (process(), process());
    for number in 0..1_000 {
        let groups = Groups::of(&scheduler, &format!("scope {number}"));
        for name in ["a", "a", "b"] {
            groups.group(name).join(&one).unwrap();
        }
        groups.group("b").join(&other).unwrap();
        let scope = Arc::downgrade(&groups.scope);
        drop(groups);
        let group = |name| Groups::of(&scheduler, &format!("scope {number}")).group(name);
        assert!(group("b").leave(other.pid()) && group("b").leave(one.pid()));
        assert!(group("a").leave(one.pid()));
        assert_eq!(group("a").members(), [one.pid()], "it has joined twice");
        assert!(group("a").leave(one.pid()));
        assert!(scope.upgrade().is_none());
    }
    assert!(names(&scheduler).is_empty());
    // A process that joins again is a member as before, until its end.
    let groups = Groups::of(&scheduler, "scope 7");
    groups.group("a").join(&one).unwrap();
    scheduler.terminate(one.pid()).unwrap();
    let _terminated = one.wait();
    assert!(groups.group("a").members().is_empty());
}

// pins: N3
#[test]
fn a_scope_keeps_monitors_until_they_or_their_processes_end() {
    let scheduler = Scheduler::start_default().unwrap();
    let start = || {
        let monitor = actor_fn(|_, _: GroupNotice, _| Ok(()));
        scheduler.spawn(monitor).unwrap()
    };
    let (one, other) = (start(), start());
    let groups = Groups::of(&scheduler, "scope");
    let count = || {
        let inner = lock(&groups.scope.inner);
        let of_groups = inner.groups.values().map(|it| it.monitors.len());
        inner.monitors.len() + of_groups.sum::<usize>()
    };
    let [of_scope, of_group] = [&one, &other].map(|it| {
        let recipient = it.address().recipient();
        (
            groups.monitor(&recipient).1,
            groups.group("g").monitor(&recipient).1,
        )
    });
    assert_eq!(count(), 4);
    of_scope.0.end();
    of_group.1.end();
    assert_eq!(count(), 2);
    for process in [one, other] {
        scheduler.terminate(process.pid()).unwrap();
        let _terminated = process.wait();
    }
    assert_eq!(count(), 0);
}
