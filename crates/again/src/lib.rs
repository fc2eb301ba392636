#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

// Each module may import the modules before it in: retry < asking; run < once, not_done <
// question < seen < kept.
mod asking;
#[cfg(feature = "serde")]
mod kept;
mod not_done;
mod once;
mod question;
mod retry;
mod run;
mod seen;

pub use asking::RetryExt;
pub use not_done::NotDone;
pub use once::{Numbers, Once, SenderId};
pub use retry::Retry;
pub use seen::Seen;
