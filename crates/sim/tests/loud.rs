//! Impossible settings fail loudly, at the call in the test that set them.

use ganger_sim::Sim;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn settings_that_no_scheduler_can_have_are_not_kept_quiet() {
    // Set before the first run: the run puts its own hook before this hook.
    panic::set_hook(Box::new(|info| {
        SAID.lock().unwrap().push(info.to_string());
    }));
    Sim::new(0).check_seeds(1, |_| ());
    let place = format!("{}:{}:", file!(), line!() + 1);
    let check = || Sim::new(0).workers(0).check_seeds(3, |_| ());
    let is_refused = catch_unwind(AssertUnwindSafe(check)).is_err();
    drop(panic::take_hook());
    assert!(is_refused);
    let said = SAID.lock().unwrap().concat();
    assert!(said.contains("the scheduler can't be built"), "{said}");
    assert!(said.contains(&place), "{said}");
}
