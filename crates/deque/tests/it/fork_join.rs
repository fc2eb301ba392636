//! Tests of the example of fork and join: every task runs once, idle threads sleep, and all end.
#![cfg(not(ganger_loom))]

#[allow(dead_code, reason = "its `main` is not called")]
#[path = "../../examples/fork_join.rs"]
mod example;

use example::{Forker, fork_join, queens};
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

#[test]
fn all_ways_are_counted_whatever_the_number_of_threads() {
    for (rows, ways) in [(1, 1), (2, 0), (3, 0), (4, 2), (6, 4), (8, 92), (9, 352)] {
        for count in [1, 2, 3, 8] {
            assert_eq!(
                queens(threads(count), rows),
                ways,
                "{rows} rows, {count} threads"
            );
        }
    }
}

/// Checks that the other threads sleep while the only task runs; the task checks this before it
/// ends.
#[test]
fn threads_without_a_task_sleep_and_wake_for_one_and_for_the_end() {
    const THREADS: usize = 4;
    let until_all_others_sleep = |forker: &Forker<'_, u32>| {
        while forker.asleep() < THREADS - 1 {
            thread::yield_now();
        }
        for _ in 0..100 {
            thread::yield_now();
            assert_eq!(forker.asleep(), THREADS - 1, "a thread looks on");
        }
    };
    for _ in 0..50 {
        let gathered = fork_join(threads(THREADS), 20, |left, forker, ran: &mut Vec<u32>| {
            until_all_others_sleep(forker);
            ran.push(left);
            if left > 0 {
                forker.fork(left - 1);
            }
        });
        let mut ran = gathered.concat();
        ran.sort_unstable();
        assert_eq!(ran, Vec::from_iter(0..=20));
    }
}

/// Lets two tasks wait for each other: the sleeping thread is woken for the second task.
#[test]
fn a_thread_that_sleeps_takes_what_is_forked() {
    let meeting = std::sync::Barrier::new(2);
    let ran = fork_join(threads(2), true, |is_first, forker, ran: &mut u32| {
        if is_first {
            while forker.asleep() == 0 {
                thread::yield_now();
            }
            forker.fork(false);
        }
        meeting.wait();
        *ran += 1;
    });
    assert_eq!(ran, [1, 1]);
}

#[test]
fn a_task_that_panics_ends_all_threads() {
    for count in [1, 3] {
        let tasks = || {
            fork_join(threads(count), 100_u32, |left, forker, (): &mut ()| {
                assert!(left != 50, "the fiftieth");
                forker.fork(left - 1);
            })
        };
        let panic = catch_unwind(AssertUnwindSafe(tasks)).unwrap_err();
        let text = panic.downcast_ref::<&str>().copied();
        assert_eq!(text, Some("the fiftieth"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Runs any tree: a task is an index into a list of numbers of children.
    #[test]
    fn each_task_of_any_tree_runs_once(
        children in prop::collection::vec(0..4_usize, 1..300),
        count in 1..5_usize,
    ) {
        // The parents' children one after the other, as in a walk level by level.
        let mut first = 1;
        let mut ranges = Vec::new();
        for &wanted in &children {
            let last = (first + wanted).min(children.len());
            ranges.push(first..last);
            first = last;
        }
        let in_tree = first;
        let gathered = fork_join(threads(count), 0, |task: usize, forker, ran: &mut Vec<usize>| {
            ran.push(task);
            ranges[task].clone().for_each(|child| forker.fork(child));
        });
        let mut ran = gathered.concat();
        ran.sort_unstable();
        let reached = reached(&ranges, in_tree);
        prop_assert_eq!(ran, reached);
    }
}

/// Returns the tasks that a walk from the first task reaches, in order.
fn reached(ranges: &[std::ops::Range<usize>], most: usize) -> Vec<usize> {
    let mut reached = vec![0];
    let mut next = 0;
    while let Some(&task) = reached.get(next) {
        reached.extend(ranges[task].clone());
        next += 1;
    }
    assert!(reached.len() <= most);
    reached.sort_unstable();
    reached
}
