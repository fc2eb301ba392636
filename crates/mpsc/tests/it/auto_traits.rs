//! Checks which types may be sent to, and shared with, other threads.

#[cfg(feature = "async")]
use ganger_mpsc::{AsyncReceiver, SendFuture};
use ganger_mpsc::{
    Batch, BatchIntoIter, BatchIter, BoundedSender, Closed, Closing, Queue, Receiver, SendError,
    SendTimeoutError, Sender, TrySendError,
};
use std::cell::Cell;
use std::marker::PhantomPinned;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

/// Values that may be sent, but not shared.
type Sent = Cell<u8>;
/// Values that may be neither sent nor shared.
type Local = Rc<u8>;

/// Compiles if the type has the trait.
macro_rules! assert_is {
    ($type:ty: $($trait:path),+) => {
        const _: fn() = || {
            fn is<T: ?Sized $(+ $trait)+>() {}
            is::<$type>();
        };
    };
}

/// Does not compile if the type has the trait: then two implementations apply.
macro_rules! assert_is_not {
    ($type:ty: $trait:path) => {
        const _: fn() = || {
            trait Ambiguous<A> {
                fn applies() {}
            }
            struct Both;
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $trait> Ambiguous<Both> for T {}
            <$type as Ambiguous<_>>::applies();
        };
    };
}

assert_is!(Queue<Sent>: Send, Sync);
assert_is_not!(Queue<Local>: Send);
assert_is_not!(Queue<Local>: Sync);
assert_is!(Queue<Sent>: UnwindSafe, RefUnwindSafe);

assert_is!(Batch<Sent>: Send);
assert_is!(Batch<u8>: Send, Sync);
assert_is_not!(Batch<Sent>: Sync);
assert_is_not!(Batch<Local>: Send);
assert_is!(BatchIntoIter<Sent>: Send);
assert_is!(BatchIter<'static, u8>: Send, Sync);
assert_is_not!(BatchIter<'static, Sent>: Send);
assert_is!(Closing<Sent>: Send);

assert_is!(Sender<Sent>: Send, Sync, Clone);
assert_is_not!(Sender<Local>: Send);
assert_is_not!(Sender<Local>: Sync);
assert_is!(Receiver<Sent>: Send, UnwindSafe, RefUnwindSafe);
assert_is_not!(Receiver<u8>: Sync);
assert_is_not!(Receiver<Local>: Send);

assert_is!(BoundedSender<Sent>: Send, Sync, Clone);
assert_is!(BoundedSender<PhantomPinned>: Unpin);
assert_is_not!(BoundedSender<Local>: Send);
assert_is_not!(BoundedSender<Local>: Sync);

#[cfg(feature = "async")]
mod asynchronous {
    use super::*;

    assert_is!(AsyncReceiver<Sent>: Send, UnwindSafe, RefUnwindSafe);
    assert_is!(AsyncReceiver<PhantomPinned>: Unpin);
    assert_is!(AsyncReceiver<u8>: futures_core::FusedStream<Item = u8>);
    assert_is!(SendFuture<'static, Sent>: Send);
    assert_is!(SendFuture<'static, PhantomPinned>: Unpin);
    assert_is!(SendFuture<'static, u8>: Sync);
    assert_is_not!(SendFuture<'static, Local>: Send);
    assert_is_not!(AsyncReceiver<u8>: Sync);
    assert_is_not!(AsyncReceiver<Local>: Send);

    /// A task that receives may move from thread to thread.
    const _: fn(&mut AsyncReceiver<Sent>) = |receiver| {
        fn is_send(_: impl Send) {}
        is_send(receiver.recv());
    };
}

assert_is!(TrySendError<Sent>: Send, std::error::Error);
assert_is!(SendTimeoutError<Sent>: Send, std::error::Error);
assert_is!(SendError<Batch<Sent>>: Send, std::error::Error);
assert_is!(Closed<Sent>: Send, std::error::Error);

#[cfg(not(ganger_loom))]
#[test]
fn a_queue_is_one_word() {
    assert_eq!(size_of::<Queue<[u64; 9]>>(), size_of::<usize>());
    assert_eq!(size_of::<Batch<[u64; 9]>>(), 3 * size_of::<usize>());
}
