//! Several waiters for the same end.

use crate::support::*;
use ganger_link::Registry;
use ganger_proc_api::{Context, ExitCause};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{self, Poll, Wake};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

// pins: L7
#[test]
fn threads_and_futures_wait_for_one_end_and_each_learns_the_cause() {
    let scheduler = start(1);
    let target = puppet(&scheduler);
    let end = scheduler.end_of(target.pid()).unwrap();
    assert_eq!((end.cause(), end.pid()), (None, target.pid()));
    assert_eq!(end.wait_timeout(Duration::from_millis(1)), None);
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let end = end.clone();
            thread::spawn(move || match number {
                0 => end.wait_timeout(PATIENCE).unwrap(),
                _ => end.wait(),
            })
        })
        .collect();
    let wakes = [Arc::new(Wakes::default()), Arc::new(Wakes::default())];
    let mut futures = [pin!(end.clone()), pin!(end.clone())];
    let poll = |future: &mut Pin<&mut ganger_link::End>, wakes: &Arc<Wakes>| {
        let waker = Arc::clone(wakes).into();
        future.as_mut().poll(&mut task::Context::from_waker(&waker))
    };
    for (future, wakes) in futures.iter_mut().zip(&wakes) {
        // The last waker counts.
        assert!(poll(future, &Arc::new(Wakes::default())).is_pending());
        assert!(poll(future, wakes).is_pending());
    }
    let dropped = Arc::new(Wakes::default());
    {
        let mut short = pin!(end.clone());
        assert!(poll(&mut short, &dropped).is_pending());
    }
    assert!(target.tell(|_, _| Err("boom".into())));
    for thread in threads {
        assert_eq!(thread.join().unwrap(), failed("boom"));
    }
    for (future, wakes) in futures.iter_mut().zip(&wakes) {
        assert_eq!(poll(future, wakes), Poll::Ready(failed("boom")));
        // The cause can be seen before the wakers are called.
        let called = Instant::now();
        while wakes.0.load(Ordering::SeqCst) == 0 {
            assert!(called.elapsed() < PATIENCE, "the waker is not called");
            thread::yield_now();
        }
    }
    assert_eq!(dropped.0.load(Ordering::SeqCst), 0);
    let pid = target.pid();
    exit(target.handle);
    for wakes in &wakes {
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    }
    let late = scheduler.end_of(pid).unwrap();
    assert_eq!(late.wait(), ExitCause::NotFound);
    assert!(format!("{late:?}").contains("NotFound"));
    assert!(scheduler.end_of("nobody").is_err());
    assert!(Context::detached(pid).end_of(pid).is_err());
}
