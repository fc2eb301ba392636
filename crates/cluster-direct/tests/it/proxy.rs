//! A proxy between two nodes.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes bytes on, in connections that a test cuts.
pub(crate) struct Proxy {
    address: SocketAddr,
    passing: Arc<Mutex<Passing>>,
}

#[derive(Default)]
struct Passing {
    open: Vec<TcpStream>,
    /// Bytes to the node until the connection breaks, in the middle of whatever is sent.
    left: Option<usize>,
    flips: bool,
    broken: usize,
}

impl Proxy {
    /// A proxy in front of a node.
    pub(crate) fn to(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let passing = Arc::new(Mutex::new(Passing::default()));
        let shared = Arc::clone(&passing);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(node) else {
                    continue;
                };
                let both = [client.try_clone().unwrap(), server.try_clone().unwrap()];
                shared.lock().unwrap().open.extend(both);
                let back = [server.try_clone().unwrap(), client.try_clone().unwrap()];
                let (there, here) = (Arc::clone(&shared), Arc::clone(&shared));
                thread::spawn(move || pass([client, server], &there, true));
                thread::spawn(move || pass(back, &here, false));
            }
        });
        Self { address, passing }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks all connections at once.
    pub(crate) fn cut(&self) {
        let mut passing = self.passing.lock().unwrap();
        passing.broken += 1;
        for stream in passing.open.drain(..) {
            // Fails if the connection is broken already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// After so many more bytes to the node, breaks the connection.
    pub(crate) fn cut_after(&self, bytes: usize) {
        self.passing.lock().unwrap().left = Some(bytes);
    }

    /// Flips a bit in the next bytes to the node.
    pub(crate) fn flip(&self) {
        self.passing.lock().unwrap().flips = true;
    }

    /// How many times connections were broken.
    pub(crate) fn broken(&self) -> usize {
        self.passing.lock().unwrap().broken
    }
}

fn pass([mut from, mut to]: [TcpStream; 2], passing: &Mutex<Passing>, is_to_node: bool) {
    let mut buffer = [0; 4096];
    while let Ok(length) = from.read(&mut buffer)
        && length > 0
    {
        let mut length = length;
        if is_to_node {
            let mut passing = passing.lock().unwrap();
            if std::mem::take(&mut passing.flips) {
                buffer[length / 2] ^= 4;
            }
            if let Some(left) = passing.left {
                length = length.min(left);
                passing.left = Some(left - length);
                if left == length {
                    passing.left = None;
                    passing.broken += 1;
                    drop(passing);
                    // Half of a frame, perhaps, and then the end.
                    let _ = to.write_all(&buffer[..length]);
                    break;
                }
            }
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
