//! Faults between this program and an endpoint.

use ganger_observe::api::ReadError;
use std::io;
use std::time::Duration;

/// The reason for a missing answer. The text advises.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The address is none.
    #[error("{0:?} is not an address: write host:port, or http://host:port")]
    Address(String),
    /// The address asks for TLS.
    #[error("the endpoint speaks no TLS: write http://, and reach another machine by `ssh -L`")]
    Tls,
    /// No program answers.
    #[error("no answer at {address}: start the program, or check the address ({error})")]
    Unreachable {
        /// The address.
        address: String,
        /// The reason.
        error: io::Error,
    },
    /// The answer does not come in time.
    #[error(
        "no answer in {}: the program is stopped or overloaded; try again later",
        crate::text::duration(*.0)
    )]
    Slow(Duration),
    /// The token is missing.
    #[error("the endpoint needs its token: give it by --token, or in GANGER_TOKEN")]
    Token,
    /// The token is wrong.
    #[error("the token is wrong: give that of the endpoint by --token, or in GANGER_TOKEN")]
    WrongToken,
    /// The endpoint does not have it.
    #[error("the endpoint does not have it: {0}")]
    NotHere(String),
    /// The endpoint refuses the request.
    #[error("refused ({status}): {sentence}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The endpoint's reason.
        sentence: String,
    },
    /// The answer is none of an endpoint, or of another version.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The answer is no HTTP.
    #[error("not an answer of an endpoint of Ganger: {0}; check the address")]
    Broken(&'static str),
    /// The answer is too long.
    #[error("the answer has more than {} MiB: ask for less", .0 >> 20)]
    Large(u64),
    /// A file can't be written.
    #[error("can't write the file: {0}")]
    File(#[source] io::Error),
}

impl Fault {
    /// Returns whether the program may be back after a while.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Slow(_) | Self::Broken(_) => true,
            Self::Refused { status, .. } => *status >= 500,
            _ => false,
        }
    }
}
