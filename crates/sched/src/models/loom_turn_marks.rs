//! A watcher reads the marks of a process's turns, while the process has two marked turns of the
//! same moment.

use crate::process::about::About;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

// pins: V10
#[test]
fn a_mark_does_not_come_back() {
    model::check(4, || {
        let about = Arc::new(About::new(|| "a type"));
        about.run(0);
        let mark = about.mark_turn();
        let process = Arc::clone(&about);
        let process = thread::spawn(move || {
            process.run(0);
            process.mark_turn();
        });
        let [first, second] = [(); 2].map(|()| about.turn_mark());
        assert!(first == mark || second != mark, "a turn that is over");
        process.join().unwrap();
        assert_ne!(about.turn_mark(), mark);
    });
}
