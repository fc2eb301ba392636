//! Waiting for several futures at once.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// A tuple of futures, of which the first that is ready counts: see
/// [`Cx::select`](crate::Cx::select).
pub trait Select {
    /// The result of one of them.
    type Output;

    /// Waits for the first. Each poll begins with the future whose number `start` gives.
    #[doc(hidden)]
    fn select(self, start: impl Fn() -> u64) -> impl Future<Output = Self::Output>;
}

/// A tuple of futures, all of which are waited for: see [`Cx::join`](crate::Cx::join).
pub trait Join {
    /// Their results.
    type Output;

    /// Waits for all.
    #[doc(hidden)]
    fn join(self) -> impl Future<Output = Self::Output>;
}

macro_rules! combine {
    ($one_of:ident, $count:literal: $($place:literal $future:ident $name:ident),+) => {
        #[doc = concat!("The result of one of ", $count, " futures: the first, `A`, and so on.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $one_of<$($name),+> {
            $(
                #[doc = concat!("Of the future at place ", $place, ".")]
                $name($name),
            )+
        }

        impl<$($name: Future),+> Select for ($($name,)+) {
            type Output = $one_of<$($name::Output),+>;

            async fn select(self, start: impl Fn() -> u64) -> Self::Output {
                let ($($future,)+) = self;
                $(let mut $future = pin!($future);)+
                poll_fn(|context| {
                    let start = start();
                    for turn in 0..$count {
                        match (start + turn) % $count {
                            $($place => {
                                if let Poll::Ready(result) = $future.as_mut().poll(context) {
                                    return Poll::Ready($one_of::$name(result));
                                }
                            })+
                            _ => {}
                        }
                    }
                    Poll::Pending
                })
                .await
            }
        }

        impl<$($name: Future),+> Join for ($($name,)+) {
            type Output = ($($name::Output,)+);

            async fn join(self) -> Self::Output {
                let ($($future,)+) = self;
                $(let mut $future = (pin!($future), None);)+
                poll_fn(|context| {
                    let mut is_ready = true;
                    $(
                        if $future.1.is_none() {
                            match $future.0.as_mut().poll(context) {
                                Poll::Ready(result) => $future.1 = Some(result),
                                Poll::Pending => is_ready = false,
                            }
                        }
                    )+
                    if !is_ready {
                        return Poll::Pending;
                    }
                    match ($($future.1.take(),)+) {
                        ($(Some($future),)+) => Poll::Ready(($($future,)+)),
                        _ => unreachable!("each has a result"),
                    }
                })
                .await
            }
        }
    };
}

combine!(OneOf2, 2: 0 a A, 1 b B);
combine!(OneOf3, 3: 0 a A, 1 b B, 2 c C);
combine!(OneOf4, 4: 0 a A, 1 b B, 2 c C, 3 d D);
