#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod batch;
mod breaker;
mod child;
mod driver;
mod error;
mod in_place;
mod log;
mod order;
mod orphans;
mod plan;
mod pool;
mod supervisor;
mod tree;
mod view;
mod watch;

pub use batch::Batch;
pub use breaker::{Attempt, Breaker, BreakerOpen};
pub use child::{Child, IntoProcess, OfActor, OfProcess, OfResult};
pub use error::SuperviseError;
pub use in_place::Poison;
pub use order::{ChildRef, Order};
pub use plan::{AutoShutdown, BackOff, Restart, ShutdownTimeout, Strategy};
pub use pool::{Overload, Pool, PoolError, PoolHandle, PoolRemote, PoolStats, Refused, Routing};
pub use supervisor::Supervisor;
pub use tree::{AddressError, Tree, TreeEnd, TreeHandle};
pub use view::{ChildFailure, ChildInfo, ChildState};
pub use watch::{Changes, TreeEnded, TreeError, TreeWait};
