//! What is said of a run that fails.

use ganger_proc_api::{BoxError, Event, Events, Process, StepOutput};
use ganger_sim::Sim;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ends when it is cancelled.
struct Waits;

impl Process for Waits {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        if events.any(|event| matches!(event, Event::Cancel(_))) {
            out.done(());
        }
        Ok(())
    }
}

fn panic_of(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    let text = panic.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| panic.downcast_ref::<&str>().unwrap().to_string())
}

#[test]
fn what_the_seed_does_not_decide_is_said_not_to_repeat() {
    let runs = AtomicU64::new(0);
    let check = |wrong: &dyn Fn(u64) -> bool| {
        runs.store(0, Ordering::SeqCst);
        panic_of(|| {
            Sim::check(10, |rt| {
                let waits = rt.submit(Waits, "main", ()).unwrap();
                rt.settle();
                rt.cancel(waits.pid(), "enough").unwrap();
                rt.wait(waits);
                let nth = runs.fetch_add(1, Ordering::SeqCst);
                assert!(!wrong(nth), "on purpose");
            });
        })
    };
    let report = check(&|nth| nth == 3);
    assert!(report.starts_with("seed 3 fails: on purpose"), "{report}");
    let plainly = "It did not fail again when the same decisions were made once more: something in the test is \
                   not decided by the seed (threads,";
    assert!(report.contains(plainly), "{report}");
    assert!(!report.contains("GANGER_SIM"), "{report}");
    assert!(report.contains("Its last moves:\n"), "{report}");
    assert_eq!(runs.load(Ordering::SeqCst), 5, "it is tried once more");
    let report = check(&|nth| nth >= 3);
    assert!(report.contains("Repeat it: GANGER_SIM_SEED=3 "), "{report}");
}
