//! Random sequences of operations on queues and channels, compared with a `VecDeque`.
#![cfg(not(ganger_loom))]

use ganger_mpsc::{
    Batch, BoundedSender, Park, Pushed, Queue, Receiver, RecvTimeoutError, Sealed, Sender,
    TryRecvError, TrySendError, bounded, channel,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::VecDeque;
use std::time::Duration;

fn items_of(batch: Batch<u32>) -> VecDeque<u32> {
    batch.into_iter().collect()
}

#[derive(Debug, Clone)]
enum QueueOp {
    Push,
    PushAll(usize),
    PushBatch(usize),
    Drain,
    Park,
    CancelPark,
    Seal,
    Close,
}

fn queue_op() -> impl Strategy<Value = QueueOp> {
    prop_oneof![
        8 => Just(QueueOp::Push),
        4 => (0..4_usize).prop_map(QueueOp::PushAll),
        4 => (0..5_usize).prop_map(QueueOp::PushBatch),
        6 => Just(QueueOp::Drain),
        6 => Just(QueueOp::Park),
        2 => Just(QueueOp::CancelPark),
        1 => Just(QueueOp::Seal),
        1 => Just(QueueOp::Close),
    ]
}

/// A simple model of a queue.
#[derive(Default)]
struct QueueModel {
    items: VecDeque<u32>,
    closed: bool,
    parked: bool,
}

impl QueueModel {
    fn push(&mut self, items: &[u32]) -> Option<Pushed> {
        if items.is_empty() {
            return Some(Pushed::Queued);
        }
        if self.closed {
            return None;
        }
        let pushed = match (self.items.is_empty(), std::mem::take(&mut self.parked)) {
            (false, _) => Pushed::Queued,
            (true, true) => Pushed::Unparked,
            (true, false) => Pushed::First,
        };
        self.items.extend(items);
        Some(pushed)
    }

    fn park(&mut self) -> Park {
        match (self.items.is_empty(), self.closed) {
            (false, _) => Park::NotEmpty,
            (true, true) => Park::Closed,
            (true, false) => {
                self.parked = true;
                Park::Parked
            }
        }
    }
}

proptest! {
    #[test]
    fn a_queue_does_what_a_deque_does(ops in vec(queue_op(), 0..60)) {
        let queue = Queue::new();
        let mut model = QueueModel::default();
        let mut fresh = 0_u32..;
        for op in ops {
            match op {
                QueueOp::Push => {
                    let item = fresh.next().unwrap();
                    let pushed = queue.push(item);
                    prop_assert_eq!(pushed.as_ref().ok().copied(), model.push(&[item]));
                    if let Err(refused) = pushed {
                        prop_assert_eq!(refused.into_inner(), item);
                    }
                }
                QueueOp::PushAll(count) => {
                    let items: Vec<_> = fresh.by_ref().take(count).collect();
                    let pushed = queue.push_all(items.iter().copied());
                    prop_assert_eq!(pushed.as_ref().ok().copied(), model.push(&items));
                    if let Err(refused) = pushed {
                        prop_assert_eq!(items_of(refused.into_inner()), items);
                    }
                }
                QueueOp::PushBatch(count) => {
                    let items: Vec<_> = fresh.by_ref().take(count).collect();
                    let pushed = queue.push_batch(items.iter().copied().collect());
                    prop_assert_eq!(pushed.as_ref().ok().copied(), model.push(&items));
                    if let Err(refused) = pushed {
                        prop_assert_eq!(items_of(refused.into_inner()), items);
                    }
                }
                QueueOp::Drain => {
                    let batch = queue.drain();
                    prop_assert_eq!(batch.len(), model.items.len());
                    prop_assert_eq!(items_of(batch), std::mem::take(&mut model.items));
                }
                QueueOp::Park => prop_assert_eq!(queue.park(), model.park()),
                QueueOp::CancelPark => {
                    prop_assert_eq!(queue.cancel_park(), std::mem::take(&mut model.parked));
                }
                QueueOp::Seal => {
                    let unparked = queue.seal() == Sealed::Unparked;
                    prop_assert_eq!(unparked, std::mem::take(&mut model.parked));
                    model.closed = true;
                }
                QueueOp::Close => {
                    let closing = queue.close();
                    prop_assert_eq!(closing.parked, std::mem::take(&mut model.parked));
                    prop_assert_eq!(items_of(closing.batch), std::mem::take(&mut model.items));
                    model.closed = true;
                }
            }
            prop_assert_eq!(queue.is_empty(), model.items.is_empty());
            prop_assert_eq!(queue.is_closed(), model.closed);
            prop_assert_eq!(queue.is_finished(), model.closed && model.items.is_empty());
        }
    }
}

#[derive(Debug, Clone)]
enum BatchOp {
    PopFront,
    PushBack,
    PushFront,
    Append(usize),
    AppendTo(usize),
    Extend(usize),
    SplitTo(usize),
    Remove(usize),
    Forget(usize),
}

fn batch_op() -> impl Strategy<Value = BatchOp> {
    prop_oneof![
        6 => Just(BatchOp::PopFront),
        2 => Just(BatchOp::PushBack),
        2 => Just(BatchOp::PushFront),
        1 => (0..4_usize).prop_map(BatchOp::Append),
        1 => (0..4_usize).prop_map(BatchOp::AppendTo),
        1 => (0..4_usize).prop_map(BatchOp::Extend),
        1 => (0..6_usize).prop_map(BatchOp::SplitTo),
        1 => (0..6_usize).prop_map(BatchOp::Remove),
        1 => (0..6_usize).prop_map(BatchOp::Forget),
    ]
}

proptest! {
    #[test]
    fn a_batch_does_what_a_deque_does(ops in vec(batch_op(), 0..60)) {
        let mut batch = Batch::new();
        let mut model = VecDeque::new();
        let mut fresh = 0_u32..;
        for op in ops {
            match op {
                BatchOp::PopFront => prop_assert_eq!(batch.pop_front(), model.pop_front()),
                BatchOp::PushBack => {
                    let item = fresh.next().unwrap();
                    batch.push_back(item);
                    model.push_back(item);
                }
                BatchOp::PushFront => {
                    let item = fresh.next().unwrap();
                    batch.push_front(item);
                    model.push_front(item);
                }
                BatchOp::Append(count) => {
                    let items: Vec<_> = fresh.by_ref().take(count).collect();
                    batch.append(items.iter().copied().collect());
                    model.extend(items);
                }
                BatchOp::AppendTo(count) => {
                    let items: VecDeque<_> = fresh.by_ref().take(count).collect();
                    let newer = std::mem::replace(&mut batch, items.iter().copied().collect());
                    batch.append(newer);
                    let newer = std::mem::replace(&mut model, items);
                    model.extend(newer);
                }
                BatchOp::Extend(count) => {
                    let items: Vec<_> = fresh.by_ref().take(count).collect();
                    batch.extend(items.iter().copied());
                    model.extend(items);
                }
                BatchOp::SplitTo(count) => {
                    let taken = model.drain(..count.min(model.len()));
                    prop_assert!(batch.split_to(count).into_iter().eq(taken));
                }
                BatchOp::Remove(index) => {
                    prop_assert_eq!(batch.remove(index), model.remove(index));
                }
                BatchOp::Forget(count) => {
                    let count = count.min(model.len());
                    model.drain(..count);
                    // SAFETY: the batch has as many items, and a number can be copied at any time.
                    unsafe { batch.forget(count) };
                }
            }
            prop_assert_eq!(batch.len(), model.len());
            prop_assert_eq!(batch.is_empty(), model.is_empty());
            prop_assert_eq!(batch.front(), model.front());
            prop_assert!(batch.iter().eq(model.iter()));
        }
        prop_assert!(batch.into_iter().eq(model));
    }
}

#[derive(Debug, Clone)]
enum ChannelOp {
    Send,
    SendAll(usize),
    TryRecv,
    RecvTimeout,
    TryIter(usize),
    Drain,
    Clone,
    Drop,
    Close,
}

fn channel_op() -> impl Strategy<Value = ChannelOp> {
    prop_oneof![
        8 => Just(ChannelOp::Send),
        4 => (0..4_usize).prop_map(ChannelOp::SendAll),
        8 => Just(ChannelOp::TryRecv),
        4 => Just(ChannelOp::RecvTimeout),
        2 => (0..4_usize).prop_map(ChannelOp::TryIter),
        1 => Just(ChannelOp::Drain),
        2 => Just(ChannelOp::Clone),
        3 => Just(ChannelOp::Drop),
        1 => Just(ChannelOp::Close),
    ]
}

/// A channel, and its expected state. The senders take turns.
struct ChannelModel<S> {
    senders: VecDeque<S>,
    receiver: Receiver<u32>,
    items: VecDeque<u32>,
    closed: bool,
    capacity: Option<usize>,
}

/// A sender of either kind.
trait AnySender: Clone {
    /// Sends items by this kind of sender, and checks the results against `model`.
    fn send(model: &mut ChannelModel<Self>, items: &[u32], together: bool) -> TestCaseResult;

    fn is_closed(&self) -> bool;
}

impl AnySender for Sender<u32> {
    fn send(model: &mut ChannelModel<Self>, items: &[u32], together: bool) -> TestCaseResult {
        let Some(sender) = model.next_sender() else {
            return Ok(());
        };
        let refused = if together {
            let sent = sender.send_all(items.iter().copied());
            sent.err().map(|refused| items_of(refused.into_inner()))
        } else {
            let sent = sender.send(items[0]);
            sent.err()
                .map(|refused| VecDeque::from([refused.into_inner()]))
        };
        if model.closed && !items.is_empty() {
            prop_assert_eq!(refused, Some(items.iter().copied().collect()));
        } else {
            prop_assert_eq!(refused, None);
            model.items.extend(items);
        }
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}

impl AnySender for BoundedSender<u32> {
    fn send(model: &mut ChannelModel<Self>, items: &[u32], together: bool) -> TestCaseResult {
        for &item in items {
            let has_room = model.capacity.is_some_and(|most| model.items.len() < most);
            let expected = match (model.closed, has_room) {
                (true, _) => Err(TrySendError::Disconnected(item)),
                (false, true) => Ok(()),
                (false, false) => Err(TrySendError::Full(item)),
            };
            let Some(sender) = model.next_sender() else {
                return Ok(());
            };
            // A send that would wait cannot be called here.
            if together && !matches!(expected, Err(TrySendError::Full(_))) {
                let sent = sender.send(item).map_err(TrySendError::from);
                prop_assert_eq!(sent, expected);
            } else {
                prop_assert_eq!(sender.try_send(item), expected);
            }
            model.items.extend(expected.is_ok().then_some(item));
        }
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}

impl<S: AnySender> ChannelModel<S> {
    fn new((sender, receiver): (S, Receiver<u32>), capacity: Option<usize>) -> Self {
        Self {
            senders: VecDeque::from([sender]),
            receiver,
            items: VecDeque::new(),
            closed: false,
            capacity,
        }
    }

    fn next_sender(&mut self) -> Option<&S> {
        self.senders
            .rotate_left(usize::from(!self.senders.is_empty()));
        self.senders.front()
    }

    fn expected(&mut self) -> Result<u32, TryRecvError> {
        self.items.pop_front().ok_or(if self.closed {
            TryRecvError::Disconnected
        } else {
            TryRecvError::Empty
        })
    }

    fn run(&mut self, op: &ChannelOp, fresh: &mut dyn Iterator<Item = u32>) -> TestCaseResult {
        match *op {
            ChannelOp::Send => S::send(self, &[fresh.next().unwrap()], false)?,
            ChannelOp::SendAll(count) => {
                let items: Vec<_> = fresh.take(count).collect();
                S::send(self, &items, true)?;
            }
            ChannelOp::TryRecv => prop_assert_eq!(self.receiver.try_recv(), self.expected()),
            ChannelOp::RecvTimeout => {
                let expected = self.expected().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                });
                let received = self.receiver.recv_timeout(Duration::from_nanos(1));
                prop_assert_eq!(received, expected);
            }
            ChannelOp::TryIter(count) => {
                let received: Vec<_> = self.receiver.try_iter().take(count).collect();
                let count = count.min(self.items.len());
                prop_assert_eq!(received, self.items.drain(..count).collect::<Vec<_>>());
            }
            ChannelOp::Drain => {
                let received = items_of(self.receiver.drain());
                prop_assert_eq!(received, std::mem::take(&mut self.items));
            }
            ChannelOp::Clone => self.senders.extend(self.senders.front().cloned()),
            ChannelOp::Drop => {
                self.senders.pop_back();
                self.closed |= self.senders.is_empty();
            }
            ChannelOp::Close => {
                let rest = items_of(self.receiver.close());
                prop_assert_eq!(rest, std::mem::take(&mut self.items));
                self.closed = true;
            }
        }
        prop_assert_eq!(self.receiver.len(), self.items.len());
        prop_assert_eq!(self.receiver.is_empty(), self.items.is_empty());
        prop_assert_eq!(self.receiver.is_closed(), self.closed);
        for sender in &self.senders {
            prop_assert_eq!(sender.is_closed(), self.closed);
        }
        Ok(())
    }
}

fn check(mut model: ChannelModel<impl AnySender>, ops: &[ChannelOp]) -> TestCaseResult {
    let mut fresh = 0_u32..;
    for op in ops {
        model.run(op, &mut fresh)?;
    }
    model.senders.clear();
    prop_assert!(model.receiver.into_iter().eq(model.items));
    Ok(())
}

proptest! {
    #[test]
    fn a_channel_does_what_a_deque_does(ops in vec(channel_op(), 0..60)) {
        check(ChannelModel::new(channel(), None), &ops)?;
    }

    #[test]
    fn a_bounded_channel_does_what_a_deque_does(
        capacity in 1..10_usize,
        ops in vec(channel_op(), 0..60),
    ) {
        check(ChannelModel::new(bounded(capacity), Some(capacity)), &ops)?;
    }
}
