//! The items of a mailbox, which go into nodes, and come out of them again when the receiver
//! refuses them.

use crate::probe::{Arrival, Cause};
use crate::process::exit_actions::ExitRequest;
use crate::process::exit_signal::ExitSignal;
use ganger_mpsc::{Batch, Single};
use ganger_proc_api::internal::StepsCall;
use ganger_proc_api::{
    CommandError, Completion, Event, Message, Payload, Pid, SendError, SendErrorKind, Tag,
    UpgradeRequest,
};
use ganger_time::internal::Ticket;

/// An item of a mailbox.
pub(crate) enum Item {
    /// An event for a step.
    Event(Event),
    /// A request to put another process in this process's place.
    Upgrade(Box<UpgradeRequest>),
    /// A request concerning the end of the process.
    Exit(ExitRequest),
    /// A signal, which decides before the next step.
    Signal(Box<dyn ExitSignal>),
    /// Nothing: it just wakes the process.
    Nudge,
    /// A waker wants a step.
    Wake,
    /// No step sees it: the worker makes the call between two steps.
    Call(Box<StepsCall>),
    /// A message sent by a timer, and kept there until a step takes it, unless the sender has taken
    /// it back.
    HeldByTimer(Ticket),
    /// The cause of the item behind it; no step sees it.
    Cause(Cause),
    /// A system event with its cause: it overtakes other items together with its cause.
    Caused(Cause, Box<Item>),
}

// An event is moved out of the mailbox as it is: its item needs no other bytes.
const _: () = assert!(size_of::<Item>() == size_of::<Event>());

impl Item {
    /// Returns whether the item overtakes others.
    pub(crate) fn is_system(&self) -> bool {
        match self.bare() {
            Self::Event(Event::Exit(notice)) => !notice.is_in_order(),
            Self::Event(Event::Cancel(_) | Event::Control(_)) => true,
            Self::Upgrade(_) | Self::Signal(_) => true,
            _ => false,
        }
    }

    /// Returns the item as a probe sees it: `None`, if no step sees the item and it asks for
    /// nothing.
    pub(crate) fn seen(&self) -> Option<Arrival<'_>> {
        match self.bare() {
            Self::Event(event) => Some(Arrival::Event(event)),
            Self::Upgrade(_) => Some(Arrival::Upgrade),
            Self::Signal(_) => Some(Arrival::Signal),
            Self::Exit(_) | Self::Nudge | Self::Wake | Self::Call(_) => None,
            Self::HeldByTimer(_) | Self::Cause(_) | Self::Caused(..) => None,
        }
    }

    /// Returns the item without its cause.
    #[inline(always)]
    pub(crate) fn bare(&self) -> &Self {
        match self {
            Self::Caused(_, item) => item,
            item => item,
        }
    }

    /// Separates the item, as [`bare`](Self::bare) sees it, from its cause.
    pub(crate) fn apart(self) -> (Option<Cause>, Self) {
        match self {
            Self::Caused(cause, item) => (Some(cause), *item),
            item => (None, item),
        }
    }
}

/// Calls `f` with the causes of system events among the items, and returns the items without these
/// causes. O(items).
pub(crate) fn take_causes(items: Batch<Item>, mut f: impl FnMut(Cause)) -> Batch<Item> {
    if !items.iter().any(|item| matches!(item, Item::Caused(..))) {
        return items;
    }
    let bare = items.into_iter().map(|item| {
        let (cause, item) = item.apart();
        cause.into_iter().for_each(&mut f);
        item
    });
    bare.collect()
}

/// Returns the number of items that are causes of other items. O(items).
pub(crate) fn count_causes(items: &Batch<Item>) -> usize {
    let is_cause = |item: &&Item| matches!(item, Item::Cause(_));
    items.iter().filter(is_cause).count()
}

/// Iterates over the items as a probe sees them.
#[inline]
pub(crate) fn seen(items: &Batch<Item>) -> impl Iterator<Item = Arrival<'_>> + Clone {
    items.iter().filter_map(Item::seen)
}

/// The result of a command.
pub(crate) type CommandResult = Result<Payload, CommandError>;

/// Puts a completion in a node of its own.
pub(crate) fn of_completion(tag: Tag, token: u64, result: CommandResult) -> Single<Item> {
    let completion = Completion::of(tag, token, result);
    Single::of(Item::Event(Event::Completion(completion)))
}

/// Puts a message in a node of its own.
pub(crate) fn of_message(message: Message) -> Single<Item> {
    Single::of(Item::Event(Event::Message(message)))
}

/// Returns the message in the node.
pub(crate) fn message(node: &Single<Item>) -> Option<&Message> {
    match node.item() {
        Item::Event(Event::Message(message)) => Some(message),
        _ => None,
    }
}

/// Returns the message of a refused item.
pub(crate) fn into_message(refused: Item) -> Message {
    match refused {
        Item::Event(Event::Message(message)) => message,
        _ => unreachable!("a refused item is the message that was sent"),
    }
}

/// Returns the error that returns a refused message to its sender.
#[cold]
pub(crate) fn refused(kind: SendErrorKind, refused: Single<Item>, target: &Pid) -> SendError {
    SendError::new(kind, into_message(refused.into_item()).to(*target))
}

/// Counts the messages and the completions among these.
pub(crate) fn count(items: &Batch<Item>) -> (u64, u64) {
    let items = items.iter().map(|item| match item {
        Item::Event(Event::Message(_) | Event::Control(_)) => (1, 0),
        Item::Event(Event::Completion(_)) => (0, 1),
        _ => (0, 0),
    });
    items.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}
