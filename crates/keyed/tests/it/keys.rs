//! Keys of other types.

use crate::support::start;
use ganger_keyed::Kinds;
use ganger_proc_api::{Reply, actor_fn};
use std::hash::{Hash, Hasher};

/// A key whose hash says nothing.
#[derive(Clone, PartialEq, Eq)]
struct Same(&'static str);

impl Hash for Same {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

// pins: E2
#[test]
fn keys_of_one_hash_are_keys_of_their_own() {
    let scheduler = start(1);
    let kind = scheduler
        .kind::<Reply<&'static str>>("same")
        .keyed_by::<Same>();
    let kind = kind.start(|key, _| {
        let name = key.0;
        actor_fn(move |_, reply: Reply<&'static str>, _| {
            reply.complete(name);
            Ok(())
        })
    });
    let same = kind.build();
    const NAMES: [&str; 4] = ["one", "two", "three", "four"];
    for name in NAMES {
        assert_eq!(same.of(Same(name)).call(|it| it).wait().unwrap(), name);
    }
    assert_eq!(same.len(), 4);
    assert!(same.evict(&Same("two")));
    while same.find(&Same("two")).is_some() {
        std::thread::yield_now();
    }
    for name in NAMES {
        assert_eq!(same.of(Same(name)).call(|it| it).wait().unwrap(), name);
        assert_eq!(same.of(Same(name)).key().0, name);
    }
}
