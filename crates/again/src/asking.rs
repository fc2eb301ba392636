//! Asking until an answer comes.
//!
//! **Problem.** A question may be lost with its connection, wait for too long, or be refused for
//! want of room. The asker, a step, a task or a thread, should wait for a single answer.
//!
//! **Rejected.** A loop in the asker: a step has none, and each asker would have its own mistakes.
//! A call that keeps its message: the first attempt has taken the message.
//!
//! **Protocol.** The question is passed on to a task of its own, which has the asker's reply. The
//! task makes a fresh call for each attempt, waits for the answer, and sleeps between two attempts.
//! The reply gets the answer, or the last error. An asker that goes away cancels the task, and so
//! the attempt under way.

use crate::retry::Retry;
use fastrand::Rng;
use ganger_proc_api::{CommandError, Reply};
use ganger_sched::internal::{CALLS_ITSELF, choose};
use ganger_sched::{Call, ContextExt as _, Handle, WeakHandle};
use ganger_task::{Cx, WaitError};

/// Questions that are asked again: an extension of a scheduler's handle.
pub trait RetryExt {
    /// Asks a question again when its answer does not come: **at least once**, so the called
    /// process may do its work several times, unless the message is a [`Once`](crate::Once).
    ///
    /// `question` makes the call of each attempt. The returned call is as any other: a step asks by
    /// `out.ask(call, tag)`, a thread waits, a task awaits. The answer is the first that comes.
    ///
    /// The task asks again after [`CommandError::Timeout`], after `Ended(ExitCause::NoConnection)`,
    /// after a refusal with `Full` or `NoConnection`, and after the errors of
    /// [`Retry::also_after`]. Any other error is the answer, and so is the last error. A panic of
    /// `question` is `Ended(ExitCause::Panicked)`.
    ///
    /// Costs a task for the time of the question. Time, and chance in the pauses, are the
    /// scheduler's: a simulation repeats them by its seed.
    ///
    /// ```
    /// use ganger_again::{Retry, RetryExt};
    /// use ganger_proc_api::{BoxError, Reply, actor_fn};
    /// use ganger_sched::Scheduler;
    /// use std::time::Duration;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let doubles = scheduler.spawn(actor_fn(|_, (number, reply): (u64, Reply<u64>), _| {
    ///     reply.complete(2 * number);
    ///     Ok(())
    /// }))?;
    /// let address = doubles.address().clone();
    /// let retry = Retry::times(5).within(Duration::from_secs(10));
    /// let doubled = scheduler.at_least_once(retry, move || address.call(|reply| (21, reply)));
    /// assert_eq!(doubled.wait()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    fn at_least_once<T, F>(&self, retry: Retry, question: F) -> Call<T>
    where
        T: Send + 'static,
        F: FnMut() -> Call<T> + Send + 'static;
}

impl RetryExt for Handle {
    fn at_least_once<T, F>(&self, retry: Retry, question: F) -> Call<T>
    where
        T: Send + 'static,
        F: FnMut() -> Call<T> + Send + 'static,
    {
        let ask = move |scheduler: WeakHandle, reply: Reply<T>| {
            let scheduler = scheduler.upgrade().ok_or("the scheduler is gone")?;
            let task = async move |cx: Cx| {
                ask(&cx, retry, question, reply).await;
                Ok(())
            };
            scheduler.spawner().labelled("asks again").spawn(task)?;
            Ok(())
        };
        Call::by_inside(self.downgrade(), |it| Some(it), ask)
    }
}

/// Asks until there is an answer, or the asker has gone.
async fn ask<T, F>(cx: &Cx, retry: Retry, mut question: F, reply: Reply<T>)
where
    T: Send + 'static,
    F: FnMut() -> Call<T>,
{
    let own = cx.context().clone();
    let watch = reply.on_end(move || {
        // A missing task has ended.
        let _gone = own.cancel(own.pid(), "the answer is not wanted any longer");
    });
    if watch.is_none() {
        return;
    }
    let mut random = Rng::with_seed(cx.pid().id());
    let ends = retry.within.map(|time| cx.now().after(time));
    let mut failures = 0;
    let error = loop {
        let call = question();
        if call.pid().is_some_and(|pid| Some(pid) == reply.pid()) {
            break CommandError::Failed(CALLS_ITSELF.into());
        }
        let left = ends.map(|ends| ends.since(cx.now()));
        let most = retry.attempt().into_iter().chain(left).min();
        let answer = match most {
            Some(most) => cx.ask_within(call, most).await,
            None => cx.ask(call).await,
        };
        let error = match answer {
            Ok(answer) => return reply.complete(answer),
            Err(WaitError::TimedOut) => CommandError::Timeout,
            Err(WaitError::Command(error)) => error,
            // The asker is gone, or the scheduler stops. The dropped reply says so.
            Err(_) => return,
        };
        failures += 1;
        if failures >= retry.times || !retry.is_worthwhile(&error) {
            break error;
        }
        let pause = retry.pause(failures, chance(&mut random));
        if ends.is_some_and(|ends| cx.now().after(pause) >= ends) || cx.sleep(pause).await.is_err()
        {
            break error;
        }
    };
    reply.untyped().finish(Err(error));
}

/// Returns a number from 0 to 1; in a simulation by the seed.
fn chance(random: &mut Rng) -> f64 {
    const PARTS: u16 = 1 << 15;
    let chosen = choose("pause", usize::from(PARTS)).and_then(|it| u16::try_from(it).ok());
    f64::from(chosen.unwrap_or_else(|| random.u16(..PARTS))) / f64::from(PARTS)
}
