//! A way to a broker, which a test can cut.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

struct Way {
    to: u16,
    is_cut: AtomicBool,
    has_ended: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// Listens on a port, and carries connections to the broker. Ends with the value.
pub(crate) struct Proxy {
    way: Arc<Way>,
    port: u16,
    listener: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let way = Arc::new(Way {
            to: port,
            is_cut: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let port = listener.local_addr().unwrap().port();
        let listener = thread::spawn({
            let way = way.clone();
            move || way.listen(&listener)
        });
        Self {
            way,
            port,
            listener: Some(listener),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        // Ordering: the lock of `open` orders the flag and the connections.
        self.way.is_cut.store(is_cut, Ordering::SeqCst);
        if is_cut {
            self.way.close();
        }
    }
}

impl Way {
    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        for near in listener.incoming() {
            // Ordering: the connection that wakes the listener comes behind the flag.
            if self.has_ended.load(Ordering::SeqCst) {
                return;
            }
            let Ok(near) = near else { continue };
            // The broker may be away.
            let Ok(far) = TcpStream::connect(("127.0.0.1", self.to)) else {
                continue;
            };
            let mut open = self.open.lock().unwrap();
            // Ordering: the lock of `open` orders the flag and the connections.
            if self.is_cut.load(Ordering::SeqCst) {
                continue;
            }
            open.extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
            let ends = [
                (near.try_clone().unwrap(), far.try_clone().unwrap()),
                (far, near),
            ];
            for (from, to) in ends {
                thread::spawn(move || drop(carry(from, to)));
            }
        }
    }

    fn close(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            // The other side may have ended before.
            let _ended = stream.shutdown(Shutdown::Both);
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let result = loop {
        match from.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(length) => to.write_all(&buffer[..length])?,
            Err(error) => break Err(error),
        }
    };
    to.shutdown(Shutdown::Both)?;
    result
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Ordering: the flag comes before the connection, which wakes the listener.
        self.way.has_ended.store(true, Ordering::SeqCst);
        let woken = TcpStream::connect(("127.0.0.1", self.port));
        if woken.is_ok()
            && let Some(listener) = self.listener.take()
        {
            // A panic there has failed a test before.
            let _ended = listener.join();
        }
        self.way.close();
    }
}
