//! Sockets compared with other schedulers' on loopback: echo, idle connections, HTTP. Each server
//! has a process of its own, and each load generator has a process, too.
//!
//! ```text
//! measure    takes turns, and prints the tables
//! echo       the servers that send back what they get
//! http       the servers that say hello
//! bare       echo without a scheduler: threads, each with an epoll
//! load       what sends to the echo servers, and waits for answers
//! idle       connections on which nothing happens
//! ```
//!
//! Other load on the machine makes figures worse: the peers take turns, and the tables have the
//! best run of each, with the median.

#[cfg(target_os = "linux")]
mod bare;
#[cfg(target_os = "linux")]
mod echo;
#[cfg(target_os = "linux")]
mod http;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
#[path = "../common/server.rs"]
mod server;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    measure::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the load generator and one of the peers use epoll: there is nothing without Linux");
}
