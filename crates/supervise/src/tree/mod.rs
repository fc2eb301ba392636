//! A supervisor from outside: its children, changes of it, and waits at it.
//!
//! **Imports**: the driver, for its orders. From the bottom up: [`error`], [`handle`], [`restart`],
//! [`wait`].

mod error;
mod handle;
mod restart;
mod wait;

pub use self::error::{AddressError, TreeEnded, TreeError};
pub use self::handle::{Tree, TreeEnd, TreeHandle};
pub use self::restart::restart;
pub use self::wait::{Changes, TreeWait};
