//! The example of a web server, and a client on a thread.

#[path = "../../http.rs"]
#[allow(dead_code, reason = "`main` is for those that run it")]
mod example;

use ganger::prelude::*;
use ganger::tokio::Tokio;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut answer = String::new();
    ask(address, path).read_to_string(&mut answer).unwrap();
    answer
}

// pins: I1, I4
#[test]
fn files_json_and_events_are_served_until_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hello.txt"), "hello").unwrap();
    let builder = Scheduler::builder().workers(2);
    let scheduler = builder.driver(Tokio::new().unwrap()).build().unwrap();
    scheduler.start().unwrap();
    let address = example::start(&scheduler, "127.0.0.1:0", folder.path().into()).unwrap();

    let file = get(address, "/files/hello.txt");
    assert!(
        file.starts_with("HTTP/1.1 200") && file.ends_with("\r\n\r\nhello"),
        "{file}"
    );
    for none in [
        "/files/none",
        "/files/../hello.txt",
        "/files//etc/passwd",
        "/",
    ] {
        assert!(get(address, none).starts_with("HTTP/1.1 404"), "{none}");
    }
    let stats = get(address, "/stats");
    assert!(
        stats.ends_with(r#"{"host":"main","requests":6}"#),
        "{stats}"
    );

    // A stream of events ends as it should when the server stops.
    let mut events = BufReader::new(ask(address, "/events"))
        .lines()
        .map(Result::unwrap);
    let mut data = events.by_ref().filter(|line| line.starts_with("data: "));
    assert_eq!(data.next().unwrap(), "data: 0");
    assert_eq!(data.next().unwrap(), "data: 1");
    let report = scheduler.stop(PATIENCE).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0), "{report:?}");
    assert_eq!(
        events.filter(|line| line == "0").count(),
        1,
        "the last chunk"
    );
    assert!(TcpStream::connect(address).is_err());
}
