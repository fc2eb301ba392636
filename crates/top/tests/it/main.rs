//! The behaviour of `ganger-top`: beside an endpoint, beside servers that are none, and as a
//! program.

mod endpoint;
mod hostile;
mod program;
mod server;
