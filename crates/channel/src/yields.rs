//! Waits of state machines: commands carried out by a future.
//!
//! **Problem.** A step does not wait. The step yields, and the completion comes with its tag. A
//! process that ends, or takes the yield back, must leave no entry at a channel.
//!
//! **Protocol.** Each wait is a future, and the yield is the future's (`ganger_wait::Until`). When
//! the yield is taken back, the future is dropped.
//!
//! **A value is not lost with its completion.** A completion that the process does not take,
//! because it has taken the yield back or has ended, is dropped with its content. The content is
//! therefore a [`Received`], whose destructor gives the value back to the channel.

use crate::ends::{Receiver, Sender};
use crate::error::SendError;
use ganger_proc_api::CommandError;
use ganger_wait::Until;
use std::fmt;
use std::future::poll_fn;

/// Receives: see [`Receiver::receiving`].
pub type Receiving<T> = Until<Received<T>>;

/// Sends: see [`Sender::sending`].
pub type Sending<T> = Until<Result<(), SendError<T>>>;

impl<T: Send + 'static> Receiver<T> {
    /// Receives a value, as [`recv`](Self::recv) does, for a step: the completion brings a
    /// [`Received`], or the error [`RecvError::Closed`](crate::RecvError::Closed) at the end.
    ///
    /// ```
    /// use ganger_channel::channel;
    /// use ganger_proc_api::{BoxError, Event, process_fn};
    /// use ganger_sched::Scheduler;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let (sender, receiver) = channel(0);
    /// let process = scheduler.spawn(process_fn(move |_, events, out| {
    ///     match events.next() {
    ///         None => _ = out.ask(receiver.receiving(), 7),
    ///         Some(Event::Completion(it)) => {
    ///             let received = it.take::<ganger_channel::Received<u64>>()?;
    ///             out.done(received.into_inner());
    ///         }
    ///         Some(_) => {}
    ///     }
    ///     Ok(())
    /// }))?;
    /// sender.send_blocking(42_u64)?;
    /// assert_eq!(process.wait().take::<u64>()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn receiving(&self) -> Receiving<T> {
        let receiver = self.clone();
        Until::fallible(async move {
            let mut recv = receiver.recv();
            let received = poll_fn(|context| recv.poll_claimed(context)).await;
            drop(recv);
            match received {
                Ok(value) => Ok(Received {
                    value: Some(value),
                    from: receiver,
                }),
                Err(closed) => Err(CommandError::Failed(closed.into())),
            }
        })
    }
}

impl<T: Send + 'static> Sender<T> {
    /// Sends a value, as [`send`](Self::send) does, for a step: the completion brings a `Result<(),
    /// SendError<T>>`, so that the value comes back if the channel is closed.
    pub fn sending(&self, value: T) -> Sending<T> {
        let sender = self.clone();
        Until::new(async move { sender.send(value).await })
    }
}

/// A value received by a yield. Dropped without [`into_inner`](Self::into_inner), it gives the
/// value back, as the next to be received.
pub struct Received<T> {
    value: Option<(usize, T)>,
    from: Receiver<T>,
}

impl<T> Received<T> {
    /// Returns the value.
    #[must_use]
    pub fn into_inner(mut self) -> T {
        match self.value.take() {
            Some((_, value)) => {
                self.from.0.settle();
                value
            }
            None => unreachable!("only this takes it out"),
        }
    }
}

impl<T> Drop for Received<T> {
    fn drop(&mut self) {
        if let Some((number, value)) = self.value.take() {
            self.from.0.give_back(number, value);
        }
    }
}

impl<T> fmt::Debug for Received<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received").finish_non_exhaustive()
    }
}
