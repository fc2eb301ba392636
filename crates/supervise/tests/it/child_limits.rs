//! Children with and without a limit of their mailbox.

use crate::support::*;
use ganger_proc_api::{SendErrorKind, actor_fn};
use ganger_sched::{Address, Builder};
use ganger_supervise::{ChildSpec, Supervisor};

/// Returns the number of messages that the process takes at once, up to fifty. No worker runs
/// meanwhile.
fn room(address: &Address<bool>) -> usize {
    let send = |_: &i32| match address.send(true) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind, SendErrorKind::Full);
            false
        }
    };
    (0..50).take_while(send).count()
}

// pins: P13, S13
#[test]
fn a_child_has_its_limit_in_each_of_its_lives() {
    let builder = |builder: Builder| builder.mailbox_limit(7);
    sim(91).builder(builder).check_seeds(20, |rt| {
        // Fails at `false`.
        let make = || {
            actor_fn(|_, goes_on: bool, _| match goes_on {
                true => Ok(()),
                false => Err("on purpose".into()),
            })
        };
        let tree = Supervisor::one_for_one()
            .intensity(100, secs(5))
            .with(ChildSpec::new("small", make).mailbox_limit(3))
            .with(ChildSpec::new("in place", make).mailbox_limit(2).in_place())
            .with(ChildSpec::new("free", make).no_mailbox_limit())
            .child("as all", make)
            .start(rt)
            .unwrap();
        for _ in 0..3 {
            rt.run_for(ms(10));
            for (name, limit) in [("small", 3), ("in place", 2), ("free", 50), ("as all", 7)] {
                let address = tree.address::<bool>(name).unwrap();
                assert_eq!(room(&address), limit, "{name}");
                rt.run_for(ms(10));
                address.send(false).unwrap();
            }
        }
    });
}
