//! Requests to a process that is being closed, against the end of the process.

use crate::queues::closing_inbox::ClosingInbox;
use ganger_nodes::slots::Slots;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

/// The table of processes, with a process under the key 1; and the late requests.
type Tables = (Slots<Arc<u64>>, ClosingInbox<u32>);

/// Puts something there, if the process is there; says whether it was.
fn put((slots, late): &Tables, id: u64, number: u32) -> bool {
    slots.read(id, |key| late.put(**key, number)).is_some()
}

// pins: P12
#[test]
fn whatever_comes_in_time_is_found_by_the_end_and_the_rest_is_refused() {
    model::check(4, || {
        let tables: Arc<Tables> = Arc::new((Slots::new(), ClosingInbox::new()));
        let id = tables.0.claim_fresh(1).start;
        // SAFETY: it has just been claimed.
        unsafe { tables.0.fill(id, Arc::new(1)) };
        let late = [1, 2].map(|number| {
            let tables = Arc::clone(&tables);
            thread::spawn(move || put(&tables, id, number))
        });
        // SAFETY: the only time for this id.
        drop(unsafe { tables.0.free(id) });
        let mut found = if tables.1.is_any() {
            tables.1.take(1)
        } else {
            Vec::new()
        };
        found.sort_unstable();
        let put = late.map(|thread| thread.join().unwrap());
        let expected = [1, 2].into_iter().zip(put).filter(|(_, is_put)| *is_put);
        assert!(expected.map(|(number, _)| number).eq(found));
        assert!(!tables.1.is_any());
    });
}

#[test]
fn each_end_takes_its_own() {
    model::check(4, || {
        let late: ClosingInbox<u32> = ClosingInbox::new();
        late.put(1, 10);
        late.put(2, 20);
        late.put(1, 11);
        assert_eq!((late.take(1), late.is_any()), (vec![10, 11], true));
        assert_eq!((late.take(2), late.is_any()), (vec![20], false));
    });
}
