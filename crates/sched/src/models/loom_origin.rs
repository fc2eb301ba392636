//! Two threads give a process its first values, while a child of the process is started.

use crate::process::origin::Origin;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

// pins: P16
#[test]
fn of_two_first_values_none_is_lost() {
    model::check(4, || {
        let origin = Arc::new(Origin::new(7, None, None, true));
        let other = Arc::clone(&origin);
        let other = thread::spawn(move || drop(other.set(std::sync::Arc::new(1_u8))));
        drop(origin.set(std::sync::Arc::new(2_u16)));
        let child = Origin::new(9, origin.values(), None, true);
        assert_eq!(child.get::<u16>().as_deref(), Some(&2));
        other.join().unwrap();
        assert_eq!(origin.get::<u16>().as_deref(), Some(&2));
        assert_eq!(origin.get::<u8>().as_deref(), Some(&1));
        assert_eq!((origin.parent(), child.parent()), (Some(7), Some(9)));
    });
}
