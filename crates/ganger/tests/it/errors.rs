//! The texts of the facade's errors: they say everything once.

use ganger::{Runtime, Scheduler};
use std::error::Error;

#[test]
fn what_is_wrong_with_a_host_or_a_node_is_said_once() {
    let builder = Runtime::builder().node("alpha");
    let builder = builder.scheduler(Scheduler::builder().host("outside"));
    let error = builder.build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the scheduler can't be a host of the node: the node alpha already has a host outside; \
         `outside` is the host of `open_inbox`, so give the scheduler another name"
    );
    assert!(error.source().is_none());
    let error = Runtime::builder().node("").build().unwrap_err();
    assert!(error.source().is_none(), "{error}");
}
