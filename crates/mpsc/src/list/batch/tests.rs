//! Batches at both ends, and their iterators.

use super::*;
use crate::queue::Queue;
use std::rc::Rc;

#[test]
fn what_was_drained_grows_at_either_end() {
    let queue = Queue::new();
    let _first = queue.push_all(1..3).unwrap();
    let mut batch = queue.drain();
    batch.push_back(3);
    batch.push_front(0);
    let _first = queue.push_all(4..6).unwrap();
    batch.append(queue.drain());
    batch.push_back(6);
    assert!(batch.into_iter().eq(0..7));
}

#[test]
fn it_can_be_filled_from_either_end_again_after_it_ran_empty() {
    let mut batch = Batch::new();
    for round in 0..3 {
        batch.push_front(round);
        batch.push_back(round + 10);
        assert_eq!(batch.pop_front(), Some(round));
        assert_eq!(batch.pop_front(), Some(round + 10));
        assert_eq!(batch.pop_front(), None);
        batch.push_back(round);
        batch.push_back(round + 1);
        assert_eq!(
            batch.iter().copied().collect::<Vec<_>>(),
            [round, round + 1]
        );
        assert_eq!(batch.pop_front(), Some(round));
        assert_eq!(batch.pop_front(), Some(round + 1));
    }
}

#[test]
fn it_appends_whatever_is_empty() {
    for (left, right) in [(0, 0), (0, 2), (2, 0), (2, 3)] {
        let mut batch: Batch<_> = (0..left).collect();
        batch.append((left..left + right).collect());
        batch.push_back(99);
        assert_eq!(batch.len(), left + right + 1);
        let expected: Vec<_> = (0..left + right).chain([99]).collect();
        assert_eq!(batch.into_iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn its_iterators_know_how_many_are_left() {
    let batch: Batch<_> = "abc".chars().collect();
    let mut items = batch.iter();
    items.next();
    assert_eq!((items.len(), items.clone().count()), (2, 2));
    assert_eq!(format!("{batch:?} {items:?}"), "['a', 'b', 'c'] ['b', 'c']");
    let mut items = batch.into_iter();
    items.next();
    assert_eq!(items.len(), 2);
    assert_eq!(format!("{items:?}"), "BatchIntoIter(['b', 'c'])");
}

#[test]
fn an_item_is_dropped_once_or_comes_out() {
    let count = Rc::new(());
    let single = || Single::of(Rc::clone(&count));
    let mut batch = single().into_batch();
    batch.push_back(Rc::clone(&count));
    assert_eq!((batch.len(), Rc::strong_count(&count)), (2, 3));
    drop(batch);
    let one = single();
    assert!(Rc::ptr_eq(one.item(), &count));
    drop(one);
    assert_eq!(Rc::strong_count(&count), 1);
    let mut single = single();
    *single.item_mut() = Rc::new(());
    assert_eq!(Rc::strong_count(&count), 1);
    assert!(!Rc::ptr_eq(&single.into_item(), &count));
}
