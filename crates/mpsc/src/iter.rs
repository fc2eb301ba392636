//! The iterators over a channel. Those over a batch are beside it.

use crate::Receiver;
use std::iter::FusedIterator;

/// The items of a channel as they come: see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T> {
    receiver: &'a Receiver<T>,
}

impl<'a, T> Iter<'a, T> {
    pub(crate) fn new(receiver: &'a Receiver<T>) -> Self {
        Self { receiver }
    }
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> FusedIterator for Iter<'_, T> {}

/// The items that are in a channel: see [`Receiver::try_iter`]. It may go on after it has ended.
#[derive(Debug)]
pub struct TryIter<'a, T> {
    receiver: &'a Receiver<T>,
}

impl<'a, T> TryIter<'a, T> {
    pub(crate) fn new(receiver: &'a Receiver<T>) -> Self {
        Self { receiver }
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

/// The items of a channel as they come, with the receiver inside. Dropping it drops the receiver.
#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
}

impl<T> IntoIter<T> {
    pub(crate) fn new(receiver: Receiver<T>) -> Self {
        Self { receiver }
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> FusedIterator for IntoIter<T> {}
