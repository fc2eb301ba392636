//! Events on their way into nodes, and out again when nobody takes them.
//!
//! Somebody has just made a message or a result, word by word, and hands it over by reference. It is moved
//! to where it stays at once, and as it was written: see [`move_words`].

use crate::core::Item;
use ganger_mpsc::Single;
use ganger_proc_api::{
    CommandError, Completion, Event, Message, Payload, Payloads, Pid, SendError, SendErrorKind, Tag,
};
use std::mem::{self, MaybeUninit};

/// What has become of a command.
pub(crate) type CommandResult = Result<Payload, CommandError>;

/// A completion, with a result that is taken from where it lies.
///
/// # Safety
/// The caller does not use it again, and does not drop it.
#[inline]
pub(crate) unsafe fn of_completion(
    tag: Tag,
    token: u64,
    result: *const CommandResult,
) -> Single<Item> {
    let empty = Completion::of(tag, token, Ok(Payload::UNIT));
    let mut answer = Single::of(Item::Event(Event::Completion(empty)));
    if let Item::Event(Event::Completion(place)) = answer.item_mut() {
        // SAFETY: both are there; what is moved is the caller's, and what is overwritten has nothing to drop.
        unsafe { move_words(result, &raw mut place.result) };
    }
    answer
}

/// Puts a completion where nothing is, with a result that is taken from where it lies.
///
/// # Safety
/// As for [`of_completion`].
#[inline]
pub(crate) unsafe fn put_completion(
    tag: Tag,
    token: u64,
    result: *const CommandResult,
    place: &mut MaybeUninit<Event>,
) {
    let empty = Completion::of(tag, token, Ok(Payload::UNIT));
    if let Event::Completion(place) = place.write(Event::Completion(empty)) {
        // SAFETY: as in `of_completion`.
        unsafe { move_words(result, &raw mut place.result) };
    }
}

/// A message, in its node.
#[inline]
pub(crate) fn of_message(message: Message) -> Single<Item> {
    let empty = Message {
        source: None,
        topic: message.topic,
        payloads: Payloads::new(),
    };
    let mut single = Single::of(Item::Event(Event::Message(empty)));
    if let Item::Event(Event::Message(place)) = single.item_mut() {
        replace(place, message);
    }
    single
}

/// The error of a message that was not taken.
#[cold]
pub(crate) fn refused(kind: SendErrorKind, refused: Single<Item>, target: &Pid) -> SendError {
    match refused.into_item() {
        Item::Event(Event::Message(message)) => SendError::new(kind, message.to(*target)),
        _ => unreachable!("what was refused is what was sent"),
    }
}

/// Puts a value in the place of one that has nothing to drop: by way of an event with the value in it, it
/// would be moved once more.
#[inline]
fn replace<T>(place: &mut T, value: T) {
    // SAFETY: both are there; what is moved is not dropped here, nor is what is overwritten.
    unsafe { move_words(&raw const value, place) };
    mem::forget(value);
}

/// Moves a value, word by word.
///
/// One that has been written just before, in words, is still on its way from the processor to the cache. A
/// word of it can be read from there, and two at once can't: whoever reads them waits until they have
/// arrived, and nothing behind that is done with meanwhile. Yet two at once is how a compiler moves it.
///
/// # Safety
/// As for [`ptr::copy_nonoverlapping`](std::ptr::copy_nonoverlapping) of one; the source is not used as a value
/// any more, nor is what the target was.
#[inline]
unsafe fn move_words<T>(source: *const T, target: *mut T) {
    /// Of a pointer's type, so that it may be a part of one.
    type Word = MaybeUninit<*const ()>;
    const {
        assert!(size_of::<T>().is_multiple_of(size_of::<Word>()));
        assert!(align_of::<T>() >= align_of::<Word>());
    }

    for word in 0..size_of::<T>() / size_of::<Word>() {
        // SAFETY: a part of each, aligned for it; any bytes are a word. Volatile, so that no two are read at
        // once.
        unsafe {
            let value = source.cast::<Word>().add(word).read_volatile();
            target.cast::<Word>().add(word).write(value);
        }
    }
}
