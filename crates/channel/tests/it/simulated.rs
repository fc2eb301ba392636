//! Selects with timers between simulated processes with an end at any moment: each value is
//! received once, or is dropped with its owner.

use ganger_channel::{Receiver, Sender, channel, select};
use ganger_sim::{Faults, Sim};
use ganger_task::Cx;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PRODUCERS: usize = 3;
const EACH: usize = 6;

/// The fate of each value.
struct Ledger {
    received: Vec<AtomicU32>,
    dropped: Vec<AtomicU32>,
    sent: Mutex<Vec<usize>>,
}

impl Ledger {
    fn new() -> Arc<Self> {
        let zeros = || (0..PRODUCERS * EACH).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self {
            received: zeros(),
            dropped: zeros(),
            sent: Mutex::new(Vec::new()),
        })
    }
}

struct Value {
    number: usize,
    ledger: Arc<Ledger>,
}

impl Drop for Value {
    fn drop(&mut self) {
        // Ordering: SeqCst, here and below: the simulation has a single thread.
        self.ledger.dropped[self.number].fetch_add(1, Ordering::SeqCst);
    }
}

async fn produce(
    cx: Cx,
    first: usize,
    ledger: Arc<Ledger>,
    a: Sender<Value>,
    b: Sender<Value>,
) -> Result<(), ganger_proc_api::BoxError> {
    for number in first..first + EACH {
        let mut value = Some(Value {
            number,
            ledger: Arc::clone(&ledger),
        });
        // Gives up now and then, and tries the other channel with the same value.
        while value.is_some() {
            let sent = select()
                .send_from(&a, &mut value, |sent| Some(sent.is_ok()))
                .future(cx.sleep(Duration::from_micros(700)), |_| None);
            match cx.until_cancelled(sent).await? {
                Some(true) => ledger.sent.lock().unwrap().push(number),
                Some(false) => return Ok(()),
                None => {
                    let value = value.take().ok_or("it was left in its place")?;
                    if cx.until_cancelled(b.send(value)).await?.is_err() {
                        return Ok(());
                    }
                    ledger.sent.lock().unwrap().push(number);
                }
            }
        }
    }
    Ok(())
}

async fn consume(
    cx: Cx,
    ledger: Arc<Ledger>,
    a: Receiver<Value>,
    b: Receiver<Value>,
) -> Result<(), ganger_proc_api::BoxError> {
    let mut open = 2;
    while open > 0 {
        let got = select()
            .recv(&a, Some)
            .recv(&b, Some)
            .future(cx.sleep(Duration::from_micros(300)), |_| None);
        match cx.until_cancelled(got).await? {
            Some(Ok(value)) => {
                ledger.received[value.number].fetch_add(1, Ordering::SeqCst);
            }
            Some(Err(_)) => {
                // A channel is closed: takes the remaining values of both.
                open = 0;
                for receiver in [&a, &b] {
                    while let Ok(value) = cx.until_cancelled(receiver.recv()).await? {
                        ledger.received[value.number].fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
            None => {}
        }
    }
    Ok(())
}

fn check(faults: Faults, must_arrive: bool) {
    let sim = Sim::new(42).workers(3).faults(faults).must_free();
    sim.check_seeds(150, |rt| {
        let ledger = Ledger::new();
        let [(a, from_a), (b, from_b)] = [(); 2].map(|()| channel(rt.choose(3)));
        for number in 0..PRODUCERS {
            let (ledger, a, b) = (Arc::clone(&ledger), a.clone(), b.clone());
            // Refused if a shutdown has begun.
            let _ = rt.spawn(async move |cx: Cx| produce(cx, number * EACH, ledger, a, b).await);
        }
        for _ in 0..2 {
            let (ledger, a, b) = (Arc::clone(&ledger), from_a.clone(), from_b.clone());
            let _ = rt.spawn(async move |cx: Cx| consume(cx, ledger, a, b).await);
        }
        drop((a, b, from_a, from_b));
        rt.settle();
        rt.stop(Duration::from_secs(10));
        let count = |all: &[AtomicU32], at: usize| all[at].load(Ordering::SeqCst);
        let sent = ledger.sent.lock().unwrap();
        for number in 0..PRODUCERS * EACH {
            let received = count(&ledger.received, number);
            let dropped = count(&ledger.dropped, number);
            assert!(received <= 1 && dropped <= 1, "{number} is doubled");
            assert!(received <= dropped, "{number} is left somewhere");
            if must_arrive {
                assert_eq!((received, dropped), (1, 1), "{number} is lost");
                assert!(sent.contains(&number));
            }
        }
    });
}

// pins: Q4, Q6, Q7
#[test]
fn timers_fire_between_and_no_value_is_lost() {
    let faults = Faults {
        clock_jumps: 0,
        process_is_terminated: 0,
        process_is_cancelled: 0,
        shutdown_begins: 0,
        shutdown_is_forced: 0,
        ..Faults::some()
    };
    check(faults, true);
}

// pins: Q4, Q6
#[test]
fn processes_end_at_any_moment_and_no_value_is_doubled_or_left() {
    check(Faults::some(), false);
}
