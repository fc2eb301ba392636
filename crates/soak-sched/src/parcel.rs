//! The parcels that the soak's processes send. Each is accounted for wherever it ends, and shows
//! when it overtakes another parcel of its sender.

use crate::account::Account;
use ganger::{Message, Payload, Payloads, Pid, SendError};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The topic of all parcels.
pub(crate) const TOPIC: &str = "parcel";

/// A lane of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    Ordinary,
    Control,
}

/// Where a parcel has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    OnItsWay,
    Handled,
    Returned,
}

/// A value of a message.
pub(crate) struct Parcel {
    account: Arc<Account>,
    sender: u64,
    /// The parcel's place among the parcels of the same sender, receiver and lane.
    number: u64,
    lane: Lane,
    /// The number of further sends.
    pub(crate) hops: u32,
    fate: Fate,
    /// The number's complement, on the heap: with it a torn, stale or doubled copy shows. Present
    /// until the destructor.
    inverse: Option<Box<u64>>,
}

impl Parcel {
    /// Takes the parcel out of a message. The parcel counts as handled from now on.
    pub(crate) fn take(payloads: Payloads) -> Result<Self, String> {
        let mut parcel = Self::of(payloads)?;
        parcel.fate = Fate::Handled;
        parcel.account.handled.bump();
        Ok(parcel)
    }

    fn of(payloads: Payloads) -> Result<Self, String> {
        let payload = payloads.into_first();
        let parcel = payload.downcast::<Self>();
        parcel.map_err(|other| format!("a message with {other:?} in the place of a parcel"))
    }

    fn message(self) -> Message {
        Message::new(TOPIC, Payload::any(self))
    }
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parcel")
            .field("sender", &self.sender)
            .field("number", &self.number)
            .field("lane", &self.lane)
            .field("hops", &self.hops)
            .field("fate", &self.fate)
            .finish_non_exhaustive()
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        let inverse = self.inverse.take();
        if inverse.as_deref() != Some(&!self.number) {
            self.account.fault(format!("a torn parcel: {self:?}"));
            // The box may be freed already, or belong to another parcel.
            std::mem::forget(inverse);
        }
        match self.fate {
            Fate::OnItsWay => self.account.lost.bump(),
            Fate::Handled => {}
            Fate::Returned => self.account.returned.bump(),
        }
        self.account.parcels_dropped.bump();
    }
}

/// A sender, whose parcels to a receiver have an order: a process, or a thread.
#[derive(Debug)]
pub(crate) struct Sender {
    account: Arc<Account>,
    id: u64,
    next: HashMap<(Pid, Lane), u64>,
}

impl Sender {
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            account: Arc::clone(account),
            // Ordering: Relaxed: the ids need only be distinct.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            next: HashMap::new(),
        }
    }

    /// Sends a new parcel as a message, by `call`. Returns whether the parcel was taken; a refused
    /// parcel counts as returned.
    pub(crate) fn send(
        &mut self,
        to: Pid,
        lane: Lane,
        hops: u32,
        send: impl FnOnce(Message) -> Result<(), SendError>,
    ) -> bool {
        let number = self.next.entry((to, lane)).or_default();
        self.account.parcels.bump();
        let parcel = Parcel {
            account: Arc::clone(&self.account),
            sender: self.id,
            number: *number,
            lane,
            hops,
            fate: Fate::OnItsWay,
            inverse: Some(Box::new(!*number)),
        };
        let Err(error) = send(parcel.message()) else {
            *number += 1;
            self.account.accepted.bump();
            return true;
        };
        let kind = error.kind;
        match Parcel::of(error.into_envelope().message.payloads) {
            Ok(mut parcel) => parcel.fate = Fate::Returned,
            Err(what) => self.account.fault(format!("refused with {kind}: {what}")),
        }
        false
    }
}

/// The parcels from each sender that a receiver has seen.
#[derive(Debug, Default)]
pub(crate) struct Order {
    next: HashMap<(u64, Lane), u64>,
    /// Its PID belonged to an earlier process, which may have seen the first parcels.
    is_heir: bool,
}

impl Order {
    pub(crate) fn new(is_heir: bool) -> Self {
        Self {
            next: HashMap::new(),
            is_heir,
        }
    }

    /// Checks the next parcel.
    pub(crate) fn check(&mut self, parcel: &Parcel) {
        let key = (parcel.sender, parcel.lane);
        let first = if self.is_heir { parcel.number } else { 0 };
        let expected = self.next.entry(key).or_insert(first);
        if parcel.number != *expected {
            let what = format!("number {expected} was due, and there came {parcel:?}");
            parcel.account.fault(what);
        }
        *expected = parcel.number + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger::time::TimerStats;
    use ganger::{SendErrorKind, WorkerStats};

    fn pid() -> Pid {
        "{soak|1}".parse().unwrap()
    }

    fn sent(sender: &mut Sender, count: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        for _ in 0..count {
            let send = |message| {
                messages.push(message);
                Ok(())
            };
            assert!(sender.send(pid(), Lane::Ordinary, 0, send));
        }
        messages
    }

    fn undelivered(count: u64) -> WorkerStats {
        let mut stats = WorkerStats::default();
        stats.undelivered = count;
        stats
    }

    #[test]
    fn what_is_handled_returned_and_lost_adds_up() {
        let account = Arc::new(Account::default());
        let mut sender = Sender::new(&account);
        let mut messages = sent(&mut sender, 3);
        let refuse = |message: Message| Err(SendError::new(SendErrorKind::Full, message.to(pid())));
        assert!(!sender.send(pid(), Lane::Ordinary, 0, refuse));
        let mut order = Order::default();
        for message in messages.drain(..2) {
            order.check(&Parcel::take(message.payloads).unwrap());
        }
        assert_eq!(account.on_their_way(), 1);
        drop(messages);
        assert_eq!(
            account.settle(&undelivered(1), &TimerStats::default()),
            Ok(())
        );
        let own = account.totals();
        assert_eq!((own.handled, own.returned, own.lost), (2, 1, 1));
    }

    /// Checks an account as a scheduler leaves it that loses a message in silence.
    #[test]
    fn a_parcel_that_is_lost_silently_is_told() {
        let account = Arc::new(Account::default());
        drop(sent(&mut Sender::new(&account), 1));
        let report = account
            .settle(&undelivered(0), &TimerStats::default())
            .unwrap_err();
        assert!(report.contains("lost = undelivered: 1, 0"), "{report}");
        std::mem::forget(sent(&mut Sender::new(&account), 1));
        let report = account
            .settle(&undelivered(2), &TimerStats::default())
            .unwrap_err();
        assert!(report.contains("parcels made = dropped: 2, 1"), "{report}");
    }

    #[test]
    fn a_parcel_that_overtakes_another_is_told() {
        let account = Arc::new(Account::default());
        let messages = sent(&mut Sender::new(&account), 2);
        let mut order = Order::default();
        for message in messages.into_iter().rev() {
            order.check(&Parcel::take(message.payloads).unwrap());
        }
        let report = account
            .settle(&undelivered(0), &TimerStats::default())
            .unwrap_err();
        assert!(report.contains("number 0 was due"), "{report}");
    }

    #[test]
    fn a_replacement_begins_where_the_other_has_ended() {
        let account = Arc::new(Account::default());
        let mut messages = sent(&mut Sender::new(&account), 4);
        let mut order = Order::new(true);
        for message in messages.split_off(2) {
            order.check(&Parcel::take(message.payloads).unwrap());
        }
        drop(messages);
        assert_eq!(
            account.settle(&undelivered(2), &TimerStats::default()),
            Ok(())
        );
    }

    #[test]
    fn a_doubled_parcel_is_told() {
        let account = Arc::new(Account::default());
        let mut message = sent(&mut Sender::new(&account), 1).pop().unwrap();
        let mut parcel = Parcel::of(std::mem::take(&mut message.payloads)).unwrap();
        parcel.inverse = Some(Box::new(7));
        drop(parcel);
        let report = account
            .settle(&undelivered(1), &TimerStats::default())
            .unwrap_err();
        assert!(report.contains("a torn parcel"), "{report}");
    }
}
