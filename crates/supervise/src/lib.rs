#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod batch;
mod breaker;
mod child;
mod driver;
mod log;
mod plan;
mod pool;
mod running;
mod supervisor;
mod tree;
mod view;

pub use batch::Batch;
pub use breaker::{Attempt, Breaker, BreakerOpen};
pub use child::{ChildRef, ChildSpec, IntoChild, OfKind, OfResult, Poison};
pub use driver::{Order, SuperviseError};
pub use plan::{AutoShutdown, BackOff, Restart, ShutdownTimeout, Strategy};
pub use pool::{Overload, Pool, PoolError, PoolHandle, PoolRemote, PoolStats, Refused, Routing};
pub use running::{SupervisorInfo, each_child, supervisors};
pub use supervisor::Supervisor;
pub use tree::{
    AddressError, Changes, Tree, TreeEnd, TreeEnded, TreeError, TreeHandle, TreeWait, restart,
};
pub use view::{ChildFailure, ChildInfo, ChildState};
