//! Random sequences of operations, compared with plain models, which say when each wait is over.

use crate::support::poll;
use ganger_lock::{AcquireError, RwLock, Semaphore};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::task::Poll;

#[derive(Debug, Clone, Copy)]
enum Op {
    /// Begins a wait, with this weight; or to read if it is even, to write if it is odd.
    Begin(usize),
    /// Drops a wait, over or not.
    GiveUp(usize),
    /// Drops a guard.
    GiveBack(usize),
    Try(usize),
    Add(usize),
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..5_usize).prop_map(Op::Begin),
        3 => any::<usize>().prop_map(Op::GiveUp),
        6 => any::<usize>().prop_map(Op::GiveBack),
        3 => (0..5_usize).prop_map(Op::Try),
        1 => (0..3_usize).prop_map(Op::Add),
    ]
}

/// Takes an item out.
fn pick<T>(from: &mut VecDeque<T>, at: usize) -> Option<T> {
    let len = from.len();
    (len > 0).then(|| from.remove(at % len)).flatten()
}

/// A semaphore, as its promise says.
#[derive(Default)]
struct Permits {
    free: usize,
    /// Numbers and weights.
    queue: VecDeque<(usize, usize)>,
    given: Vec<usize>,
    is_closed: bool,
}

impl Permits {
    fn serve(&mut self) {
        while let Some(&(number, weight)) = self.queue.front()
            && weight <= self.free
        {
            self.free -= weight;
            self.queue.pop_front();
            self.given.push(number);
        }
    }
}

proptest! {
    // pins: K6
    #[test]
    fn a_semaphore(ops in vec(prop_oneof![20 => op(), 1 => Just(Op::Close)], 0..80)) {
        let (semaphore, mut model) = (Semaphore::new(4), Permits { free: 4, ..Permits::default() });
        let mut waits = VecDeque::new();
        let mut permits = VecDeque::new();
        for (number, op) in ops.into_iter().enumerate() {
            match op {
                Op::Begin(weight) => {
                    if !model.is_closed {
                        model.queue.push_back((number, weight));
                    }
                    waits.push_back((number, weight, Some(semaphore.acquire(weight))));
                    let (_, _, wait) = waits.back_mut().unwrap();
                    match poll(wait.as_mut().unwrap()) {
                        Poll::Ready(Ok(it)) => {
                            model.serve();
                            prop_assert_eq!(model.given.pop(), Some(number));
                            permits.push_back(it);
                            waits.pop_back();
                        }
                        Poll::Ready(Err(error)) => {
                            prop_assert_eq!((error, model.is_closed), (AcquireError::Closed, true));
                            waits.pop_back();
                        }
                        Poll::Pending => {
                            model.serve();
                            prop_assert!(!model.given.contains(&number));
                        }
                    }
                }
                Op::GiveUp(at) => if let Some((number, weight, wait)) = pick(&mut waits, at) {
                    drop(wait);
                    let is_given = model.given.iter().position(|it| *it == number);
                    if let Some(at) = is_given {
                        model.given.remove(at);
                        model.free += weight;
                    }
                    model.queue.retain(|it| it.0 != number);
                },
                Op::GiveBack(at) => if let Some(it) = pick(&mut permits, at) {
                    model.free += it.count();
                    drop(it);
                },
                Op::Try(weight) => {
                    let can = !model.is_closed && model.queue.is_empty() && weight <= model.free;
                    match semaphore.try_acquire(weight) {
                        Ok(it) => {
                            prop_assert!(can);
                            model.free -= weight;
                            permits.push_back(it);
                        }
                        Err(_) => prop_assert!(!can),
                    }
                }
                Op::Add(more) => {
                    semaphore.add_permits(more);
                    model.free += more;
                }
                Op::Close => {
                    semaphore.close();
                    model.is_closed = true;
                    model.queue.clear();
                }
            }
            if !model.is_closed {
                model.serve();
            }
            prop_assert_eq!(semaphore.available(), model.free);
            // A wait is ready if, and only if, the wait is over in the model.
            for (number, weight, wait) in &mut waits {
                if wait.is_none() { continue }
                let is_given = model.given.iter().position(|it| it == number);
                match poll(wait.as_mut().unwrap()) {
                    Poll::Pending => prop_assert!(is_given.is_none() && !model.is_closed),
                    Poll::Ready(Ok(it)) => {
                        model.given.remove(is_given.expect("it has been given"));
                        prop_assert_eq!(it.count(), *weight);
                        permits.push_back(it);
                        *wait = None;
                    }
                    Poll::Ready(Err(_)) => {
                        prop_assert!(is_given.is_none() && model.is_closed);
                        *wait = None;
                    }
                }
            }
            waits.retain(|it| it.2.is_some());
        }
    }

    // pins: K5
    #[test]
    fn a_read_write_lock(ops in vec(op(), 0..80)) {
        let lock = RwLock::new(());
        // The model: the holders, and the waiters in order, as in the promise.
        let (mut readers, mut has_writer) = (0, false);
        let mut waiting: VecDeque<(usize, bool)> = VecDeque::new();
        let mut waits = VecDeque::new();
        let (mut reads, mut writes) = (VecDeque::new(), VecDeque::new());
        for (number, op) in ops.into_iter().enumerate() {
            let mut writer_has_ended = false;
            match op {
                Op::Begin(kind) => {
                    let is_write = kind % 2 == 1;
                    waiting.push_back((number, is_write));
                    let wait = if is_write { Err(lock.write()) } else { Ok(lock.read()) };
                    waits.push_back((number, wait));
                }
                Op::GiveUp(at) => if let Some((number, wait)) = pick(&mut waits, at) {
                    drop(wait);
                    waiting.retain(|it| it.0 != number);
                },
                Op::GiveBack(at) | Op::Add(at) => {
                    let takes_read = at % 2 == 0 && !reads.is_empty() || writes.is_empty();
                    if takes_read {
                        readers -= usize::from(pick(&mut reads, at).is_some());
                    } else {
                        writer_has_ended = pick(&mut writes, at).is_some();
                        has_writer &= !writer_has_ended;
                    }
                }
                Op::Try(kind) => {
                    let writers_wait = waiting.iter().any(|it| it.1);
                    let can_read = !has_writer && !writers_wait;
                    if kind % 2 == 0 {
                        let guard = lock.try_read().ok();
                        prop_assert_eq!(guard.is_some(), can_read);
                        readers += usize::from(can_read);
                        reads.extend(guard);
                    } else {
                        let guard = lock.try_write().ok();
                        prop_assert_eq!(guard.is_some(), can_read && readers == 0);
                        has_writer |= guard.is_some();
                        writes.extend(guard);
                    }
                }
                Op::Close => {}
            }
            // The waits with an end at this moment.
            let mut goes = Vec::new();
            if writer_has_ended {
                goes.extend(waiting.iter().filter(|it| !it.1).copied());
                readers += goes.len();
                waiting.retain(|it| it.1);
            }
            if !has_writer && readers == 0
                && let Some(at) = waiting.iter().position(|it| it.1)
            {
                has_writer = true;
                goes.extend(waiting.remove(at));
            } else if !has_writer && !waiting.iter().any(|it| it.1) {
                readers += waiting.len();
                goes.extend(waiting.drain(..));
            }
            let mut left = VecDeque::new();
            for (number, mut wait) in waits {
                let expected = goes.iter().any(|it| it.0 == number);
                match &mut wait {
                    Ok(read) => match poll(read) {
                        Poll::Ready(guard) => {
                            prop_assert!(expected);
                            reads.push_back(guard.unwrap());
                        }
                        Poll::Pending => {
                            prop_assert!(!expected);
                            left.push_back((number, wait));
                        }
                    },
                    Err(write) => match poll(write) {
                        Poll::Ready(guard) => {
                            prop_assert!(expected);
                            writes.push_back(guard.unwrap());
                        }
                        Poll::Pending => {
                            prop_assert!(!expected);
                            left.push_back((number, wait));
                        }
                    },
                }
            }
            waits = left;
            prop_assert_eq!((reads.len(), writes.len()), (readers, usize::from(has_writer)));
        }
    }
}
