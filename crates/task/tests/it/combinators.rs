//! Futures and combinators of other crates.

use crate::support::{Woken, number, start, until};
use futures_util::future::{self, join_all, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{FutureExt, select_biased};
use ganger_proc_api::{BoxError, Command, CommandId, Reply, TypedCommand};
use ganger_sched::Scheduler;
use ganger_task::{Cx, Either, Either3};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const NEVER: CommandId = CommandId::new(300);

struct Double(u64);

impl TypedCommand for Double {
    type Answer = u64;
}

fn world() -> Scheduler {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    // Answers on another thread.
    let double = |Double(number), completer: Reply<<Double as TypedCommand>::Answer>| {
        std::thread::spawn(move || completer.complete(2 * number));
        Ok(())
    };
    scheduler.register_for(double).unwrap();
    let keep = |_: Command, completer| {
        std::mem::forget(completer);
        Ok(())
    };
    scheduler.register(NEVER, "never", keep).unwrap();
    scheduler.start().unwrap();
    scheduler
}

// pins: A3, A8
#[test]
fn commands_work_inside_of_combinators_with_their_own_wakers() {
    let scheduler = world();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let mut all: FuturesUnordered<_> = (1..=50).map(|it| cx.command(Double(it))).collect();
        let mut sum = 0;
        while let Some(double) = all.next().await {
            sum += double?;
        }
        for double in join_all((1..=50).map(|it| cx.command(Double(it)))).await {
            sum += double?;
        }
        Ok(sum)
    });
    assert_eq!(number(task.unwrap()), 2 * 50 * 51);
}

/// Checks that messages, cancellations, monitors and budgets reach a wait by its own waker.
// pins: A1, A5, A6, A8
#[test]
fn every_kind_of_wait_wakes_the_waker_that_it_was_polled_with() {
    let scheduler = world();
    let taken = Arc::new(AtomicUsize::new(0));
    let its_taken = Arc::clone(&taken);
    let task = scheduler.spawn(async move |cx: Cx<u64>| -> Result<u64, BoxError> {
        let cx = &cx;
        let messages = async {
            let mut count = 0;
            for _ in 0..1_000 {
                count += cx.recv().await.ok_or("cancelled")?;
                // Ordering: SeqCst, here and in the test: the test waits for the count.
                its_taken.fetch_add(1, Ordering::SeqCst);
                if count == 1 {
                    cx.yield_now().await;
                }
            }
            assert_eq!(cx.recv().await, None);
            Ok(count)
        };
        let sleeps = async {
            cx.sleep(Duration::from_millis(200)).await?;
            Ok(1)
        };
        let monitors = async {
            let own = ganger_proc_api::process_fn(|_, _, out| {
                out.done(());
                Ok(())
            });
            let pid = cx.submit(own, "main", ())?;
            cx.monitor(pid).await?;
            Ok(1)
        };
        let never = async {
            match cx.call(Command::new(NEVER, ())).await {
                Err(error) if error.is_cancelled() => Ok(1),
                other => Err(format!("{other:?}").into()),
            }
        };
        let cancelled = async {
            cx.cancelled().await;
            Ok(1)
        };
        let mut all = FuturesUnordered::new();
        let boxed: [futures_util::future::BoxFuture<'_, Result<u64, BoxError>>; 5] = [
            messages.boxed(),
            sleeps.boxed(),
            monitors.boxed(),
            cancelled.boxed(),
            never.boxed(),
        ];
        all.extend(boxed);
        let mut sum = 0;
        while let Some(number) = all.next().await {
            sum += number?;
        }
        Ok(sum)
    });
    let task = task.unwrap();
    for _ in 0..1_000 {
        task.send(1).unwrap();
    }
    until("it has slept", || scheduler.timers().stats().fired == 1);
    until("it has taken the messages", || {
        // Ordering: SeqCst: the test waits for it.
        taken.load(Ordering::SeqCst) == 1_000
    });
    scheduler.cancel(task.pid(), "enough").unwrap();
    assert_eq!(number(task), 1_004);
}

// pins: A8
#[test]
fn a_wait_wakes_the_waker_of_its_last_poll() {
    let scheduler = world();
    let task = scheduler.spawn(async |cx: Cx| {
        let (first, last) = (Arc::<Woken>::default(), Arc::<Woken>::default());
        let mut sleep = pin!(cx.sleep(Duration::from_millis(200)));
        for woken in [&first, &last, &last] {
            let waker = Waker::from(Arc::clone(woken));
            let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        // Ordering: SeqCst: the waker counts, perhaps on another thread.
        let count = |woken: &Woken| woken.0.load(Ordering::SeqCst);
        while count(&last) == 0 {
            cx.yield_now().await;
        }
        sleep.await?;
        Ok(format!("{} {}", count(&first), count(&last)))
    });
    let counts = task.unwrap().wait().into_result().unwrap();
    assert_eq!(counts.as_str(), Some("0 1"));
}

// pins: A4, A8
#[test]
fn a_select_of_any_kind_loses_no_message() {
    let scheduler = world();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let mut sum = 0;
        for turn in 0..300 {
            let never = || cx.call(Command::new(NEVER, ()));
            sum += match turn % 3 {
                0 => match select(pin!(cx.recv()), pin!(never())).await {
                    future::Either::Left((message, _)) => message.unwrap_or(0),
                    future::Either::Right(_) => 0,
                },
                1 => select_biased! {
                    _ = never().fuse() => 0,
                    message = cx.recv().fuse() => message.unwrap_or(0),
                },
                _ => match cx.select((cx.recv(), cx.recv(), never())).await {
                    Either3::A(message) | Either3::B(message) => message.unwrap_or(0),
                    Either3::C(_) => 0,
                },
            };
        }
        Ok(sum)
    });
    let task = task.unwrap();
    (1..=300).for_each(|it| task.send(it).unwrap());
    assert_eq!(number(task), 300 * 301 / 2);
}

// pins: A8
#[test]
fn a_channel_from_another_thread_wakes_a_task() {
    let scheduler = start(2);
    let (numbers, receiver) = async_channel::bounded(4);
    let (answers, results) = async_channel::bounded(1);
    let task = scheduler.spawn(async move |_: Cx| {
        let mut sum = 0;
        while let Ok(number) = receiver.recv().await {
            sum += number;
        }
        answers.send(sum).await?;
        Ok(())
    });
    for number in 1..=1_000_u64 {
        numbers.send_blocking(number).unwrap();
    }
    drop(numbers);
    assert_eq!(results.recv_blocking(), Ok(500_500));
    drop(task);
}

// The compiler's check is the test: types with lifetimes are accepted inside of each wait.
#[test]
fn futures_whose_types_have_lifetimes_are_waited_for_in_any_way() {
    use std::collections::HashMap;
    use std::ops::Deref;

    /// As the wait for a lock, through any kind of reference.
    struct Wait<L: Deref<Target = std::sync::Mutex<T>>, T>(L);
    impl<L: Deref<Target = std::sync::Mutex<T>> + Copy + Unpin, T> Future for Wait<L, T> {
        type Output = L;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<L> {
            Poll::Ready(self.0)
        }
    }

    let map = Arc::new(std::sync::Mutex::new(HashMap::<&'static str, u64>::new()));
    let scheduler = start(1);
    let task = scheduler.spawn(async move |cx: Cx| {
        let wait = || Wait(&*map);
        cx.until_cancelled(wait())
            .await?
            .lock()
            .unwrap()
            .insert("a", 1);
        cx.timeout(Duration::from_secs(60), wait())
            .await?
            .lock()
            .unwrap()
            .insert("b", 2);
        cx.shield(wait()).await.lock().unwrap().insert("c", 3);
        let (one, other) = cx.join((wait(), wait())).await;
        assert!(std::ptr::eq(one, other));
        match cx.select((wait(), wait())).await {
            Either::A(it) | Either::B(it) => Ok(it.lock().unwrap().values().sum::<u64>()),
        }
    });
    assert_eq!(number(task.unwrap()), 6);
}
