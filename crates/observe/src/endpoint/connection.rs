//! Connections: their number, their deadlines and their ends.

use super::answer::bare;
use super::limits::{ANSWER, BUFFER, CONNECTIONS, DROPPED, LINGER, REFUSALS, REQUEST};
use super::routes;
use super::site::Site;
use ganger_net::hyper::Rt;
use ganger_net::{TcpListener, TcpStream};
use ganger_proc_api::BoxError;
use ganger_sched::ContextExt as _;
use ganger_task::Cx;
use hyper::StatusCode;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Accepts connections until the process is cancelled, with a process for each.
pub(super) async fn accept(cx: Cx, listener: TcpListener, site: Arc<Site>) -> Result<(), BoxError> {
    let incoming = listener.incoming(CONNECTIONS + REFUSALS);
    // Each served connection has a copy.
    let places = Arc::new(());
    while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
        let (stream, _) = accepted?;
        if Arc::strong_count(&places) > CONNECTIONS {
            cx.spawn(async move |_: Cx| refuse(stream).await)?;
            continue;
        }
        let (site, place) = (Arc::clone(&site), Arc::clone(&places));
        cx.spawn(async move |cx: Cx| {
            serve(&cx, stream, site).await?;
            drop(place);
            Ok(())
        })?;
    }
    Ok(())
}

/// Tells the client of a connection over the limit.
async fn refuse(stream: TcpStream) -> Result<(), BoxError> {
    let sentence = "64 connections are open, and this endpoint serves no more: close one, or try \
                    again later";
    say(&stream, StatusCode::SERVICE_UNAVAILABLE, sentence).await;
    linger(&stream).await;
    Ok(())
}

/// Serves one connection.
async fn serve(cx: &Cx, stream: TcpStream, site: Arc<Site>) -> Result<(), BoxError> {
    let answers = {
        let cx = cx.clone();
        service_fn(move |request| {
            let (cx, site) = (cx.clone(), Arc::clone(&site));
            async move { Ok::<_, Infallible>(routes::answer(&cx, &site, request).await) }
        })
    };
    let mut http = http1::Builder::new();
    http.timer(Rt::current()?).header_read_timeout(REQUEST);
    http.max_buf_size(BUFFER);
    let mut connection = http.serve_connection(Timed::new(stream), answers);
    let Ok(ended) = cx.until_cancelled(&mut connection).await else {
        return Ok(());
    };
    let parts = connection.into_parts();
    let stream = parts.io.stream;
    match ended {
        Err(error) if error.is_timeout() && !parts.read_buf.is_empty() => {
            let sentence = "the head of a request must come within 5 s: send it again";
            say(&stream, StatusCode::REQUEST_TIMEOUT, sentence).await;
        }
        // The client has not read its answer, or is gone.
        Err(error) if !error.is_timeout() && !error.is_parse() => {
            stream.abort();
            return Ok(());
        }
        _ => {}
    }
    linger(&stream).await;
    Ok(())
}

/// Writes an answer without a request. The deadline leaves a client that does not read.
async fn say(stream: &TcpStream, status: StatusCode, sentence: &str) {
    stream.set_write_deadline(Some(LINGER));
    let _ = stream.write_all(bare(status, sentence).as_bytes()).await;
}

/// Ends the writes, and drops the late bytes of the client for a while.
async fn linger(stream: &TcpStream) {
    if stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    stream.set_read_deadline(Some(LINGER));
    let (mut left, mut buffer) = (DROPPED, [0; 4096]);
    while let Ok(bytes @ 1..) = stream.read(&mut buffer).await
        && bytes < left
    {
        left -= bytes;
    }
}

/// A connection with a deadline for each answer.
struct Timed {
    stream: TcpStream,
    /// Whether an answer is being written: its deadline is set.
    is_writing: bool,
}

impl Timed {
    fn new(stream: TcpStream) -> Self {
        let is_writing = false;
        Self { stream, is_writing }
    }

    fn begin(&mut self) -> Pin<&mut TcpStream> {
        if !self.is_writing {
            self.is_writing = true;
            self.stream.set_write_deadline(Some(ANSWER));
        }
        Pin::new(&mut self.stream)
    }
}

impl Read for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Read::poll_read(Pin::new(&mut self.stream), context, buffer)
    }
}

impl Write for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Write::poll_write(self.begin(), context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Write::poll_write_vectored(self.begin(), context, bytes)
    }

    /// Flushes nothing: hyper has written its buffer.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_writing = false;
        Write::poll_flush(Pin::new(&mut self.stream), context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Write::poll_shutdown(Pin::new(&mut self.stream), context)
    }
}
