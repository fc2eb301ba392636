//! Waits for several futures at once.

use crate::step;
use crate::waits::Mark;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A tuple of futures, to wait for the first result: see [`Cx::select`](crate::Cx::select).
pub trait Select {
    /// The first result.
    type Output;
    /// The wait for the first result.
    type Selecting: Future<Output = Self::Output>;

    /// Waits in a task for the first result.
    #[doc(hidden)]
    fn select(self, task: u64) -> Self::Selecting;
}

/// A tuple of futures, to wait for all results: see [`Cx::join`](crate::Cx::join).
pub trait Join {
    /// Their results.
    type Output;
    /// The wait for all results.
    type Joining: Future<Output = Self::Output>;

    /// Waits in a task for all results.
    #[doc(hidden)]
    fn join(self, task: u64) -> Self::Joining;
}

macro_rules! combine {
    (
        $one_of:ident, $selecting:ident, $joining:ident, $count:literal:
        $($place:tt $future:ident $name:ident $result:ident),+
    ) => {
        #[doc = concat!("The result of one of ", $count, " futures: the first, `A`, and so on.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $one_of<$($name),+> {
            $(
                #[doc = concat!("Of the future at place ", $place, ".")]
                $name($name),
            )+
        }

        pin_project! {
            #[doc(hidden)]
            #[must_use = "futures do nothing unless they are awaited"]
            pub struct $selecting<$($name),+> {
                $(#[pin] $future: $name,)+
                task: u64,
                mark: Mark,
            }
        }

        impl<$($name: Future),+> Future for $selecting<$($name),+> {
            type Output = $one_of<$($name::Output),+>;

            fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                let mut this = self.project();
                let task = *this.task;
                let begun = step::poll_with(task, |step| {
                    let may = step.may_be_ready(this.mark, context.waker());
                    may.then(|| (step.next_turn($count), step.budget))
                });
                let Some((start, budget)) = begun else {
                    return Poll::Pending;
                };
                for turn in 0..$count {
                    match (start + turn) % $count {
                        $($place => {
                            if let Poll::Ready(result) = this.$future.as_mut().poll(context) {
                                step::poll_with(task, |step| step.spend_once(budget));
                                return Poll::Ready($one_of::$name(result));
                            }
                        })+
                        _ => {}
                    }
                }
                Poll::Pending
            }
        }

        impl<$($name: Future),+> Select for ($($name,)+) {
            type Output = $one_of<$($name::Output),+>;
            type Selecting = $selecting<$($name),+>;

            fn select(self, task: u64) -> Self::Selecting {
                let ($($future,)+) = self;
                let mark = Mark::default();
                $selecting { $($future,)+ task, mark }
            }
        }

        pin_project! {
            #[doc(hidden)]
            #[must_use = "futures do nothing unless they are awaited"]
            pub struct $joining<$($name, $result),+> {
                $(#[pin] $future: $name,)+
                results: ($(Option<$result>,)+),
                task: u64,
            }
        }

        impl<$($name: Future<Output = $result>, $result),+> Future
            for $joining<$($name, $result),+>
        {
            type Output = ($($result,)+);

            fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                let mut this = self.project();
                // The future polled first may use up the budget of the step.
                let start = step::poll_with(*this.task, |step| step.next_turn($count));
                let mut is_ready = true;
                for turn in 0..$count {
                    match (start + turn) % $count {
                        $($place if this.results.$place.is_none() => {
                            match this.$future.as_mut().poll(context) {
                                Poll::Ready(result) => this.results.$place = Some(result),
                                Poll::Pending => is_ready = false,
                            }
                        })+
                        _ => {}
                    }
                }
                if !is_ready {
                    return Poll::Pending;
                }
                match ($(this.results.$place.take(),)+) {
                    ($(Some($future),)+) => Poll::Ready(($($future,)+)),
                    _ => unreachable!("each has a result"),
                }
            }
        }

        impl<$($name: Future),+> Join for ($($name,)+) {
            type Output = ($($name::Output,)+);
            type Joining = $joining<$($name, $name::Output),+>;

            fn join(self, task: u64) -> Self::Joining {
                let ($($future,)+) = self;
                $joining { $($future,)+ results: Default::default(), task }
            }
        }
    };
}

combine!(Either, Selecting2, Joining2, 2: 0 a A Y, 1 b B Z);
combine!(Either3, Selecting3, Joining3, 3: 0 a A X, 1 b B Y, 2 c C Z);
combine!(Either4, Selecting4, Joining4, 4: 0 a A W, 1 b B X, 2 c C Y, 3 d D Z);
