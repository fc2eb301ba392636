//! Models of a lock without waiting: a single thread has the lock at a time, and sees the changes
//! of earlier holders.

use ganger_sync::sync::Arc;
use ganger_sync::{TryLock, model, thread};

#[test]
fn one_at_a_time_has_it() {
    model::check(5, || {
        let lock = Arc::new(TryLock::<u32>::default());
        let add = |lock: &TryLock<u32>| {
            let add = |value: &mut u32| *value += 1;
            (0..2).filter(|_| lock.try_with(add).is_ok()).count()
        };
        let others = [(); 2].map(|()| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || add(&lock))
        });
        let mut added = add(&lock);
        for other in others {
            added += other.join().unwrap();
        }
        let value = lock.try_with(|value| *value);
        assert_eq!(value.ok().map(|value| value as usize), Some(added));
    });
}
