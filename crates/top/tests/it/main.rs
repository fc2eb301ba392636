//! The behaviour of `ganger-top`: with an endpoint, with other servers, and as a program.

mod endpoint;
mod hostile;
mod program;
mod server;
