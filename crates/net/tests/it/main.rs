//! Sockets in processes.

mod echo;
mod ends;
mod support;
