//! Servers that answer with 13 bytes, by hyper; `wrk` is the client.

use crate::echo::on_ganger_tokio;
use crate::load::Figures;
use crate::measure::Peer;
use crate::server::{Failure, listen, on_tokio, until_end};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::process::Command;
use std::time::Duration;
use tokio::net::TcpStream;

/// Runs a server that prints its port, and ends with its standard input.
pub(crate) fn serve(peer: Peer, workers: usize) -> Result<(), Failure> {
    let listener = listen()?;
    match peer {
        Peer::GangerTokio => on_ganger_tokio(listener, workers, connection),
        Peer::Tokio => {
            on_tokio(listener, workers, true, connection);
            until_end()
        }
        _ => Err("there is no such server".into()),
    }
}

async fn connection(stream: TcpStream) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let stream = TokioIo::new(stream);
    http1::Builder::new()
        .serve_connection(stream, service_fn(hello))
        .await?;
    Ok(())
}

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Bytes::from_static(b"Hello, World!").into()))
}

/// Returns the figures of `wrk`, which counts whole seconds.
pub(crate) fn wrk(port: u16, connections: usize, time: Duration) -> Result<Figures, Failure> {
    let seconds = time.as_secs().max(1);
    let output = Command::new("wrk")
        .args([
            "--latency",
            "-t1",
            &format!("-c{connections}"),
            &format!("-d{seconds}s"),
        ])
        .arg(format!("http://127.0.0.1:{port}/"))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let error = || {
        format!(
            "wrk says: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    };
    if text.contains("Socket errors") || text.contains("Non-2xx") {
        return Err(error().into());
    }
    let after = |name: &str| {
        let mut lines = text.lines().map(str::trim);
        let value = lines.find_map(|line| line.strip_prefix(name));
        value.map(str::trim).ok_or_else(error)
    };
    let requests = text
        .lines()
        .find_map(|line| line.split_once(" requests in"));
    let (requests, _) = requests.ok_or_else(error)?;
    Ok(Figures {
        requests: requests.trim().parse()?,
        rate: after("Requests/sec:")?.parse()?,
        p50: micros(after("50%")?)?,
        p99: micros(after("99%")?)?,
        p999: f64::NAN,
    })
}

/// Reads a time as `wrk` writes it.
fn micros(text: &str) -> Result<f64, Failure> {
    let unit = text.trim_start_matches(|it: char| it.is_ascii_digit() || it == '.');
    let number: f64 = text[..text.len() - unit.len()].parse()?;
    match unit {
        "us" => Ok(number),
        "ms" => Ok(number * 1e3),
        "s" => Ok(number * 1e6),
        _ => Err(format!("{text} is not a time").into()),
    }
}
