#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg_attr(
    not(all(
        feature = "backtraces",
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "no_backtraces.rs"
)]
mod backtraces;
mod pinning;
mod sampler;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other.rs")]
mod system;

pub use backtraces::backtraces;
pub use pinning::{PinError, Pinning, Pins, Ranges};
pub use sampler::{Doing, Function, Functions, Sampler, SamplerError, Stack, Stacks, WithId};
pub use system::{ThreadFiles, thread_id};
