//! Lines with a limit, and halves with buffers.

use crate::simulated::simulate;
use crate::support::ok;
use futures_io::{AsyncRead, AsyncWrite};
use ganger_net::sim::Faults;
use ganger_net::{BufReader, BufWriter, LineError, TcpListener, TcpStream};
use ganger_sched::ContextExt;
use ganger_task::Cx;
use ganger_wait::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

const SERVER: &str = "10.0.0.1:80";

/// Gives its parts in order, and is not ready between them.
struct Parts(VecDeque<Option<Vec<u8>>>);

impl Parts {
    fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(
            parts
                .into_iter()
                .flat_map(|it| [None, Some(it.to_vec())])
                .collect(),
        )
    }
}

impl AsyncRead for Parts {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let parts = &mut self.get_mut().0;
        match parts.pop_front() {
            None => Poll::Ready(Ok(0)),
            Some(None) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Some(mut part)) => {
                let length = part.len().min(buffer.len());
                buffer[..length].copy_from_slice(&part[..length]);
                if length < part.len() {
                    parts.push_front(Some(part.split_off(length)));
                }
                Poll::Ready(Ok(length))
            }
        }
    }
}

/// Takes a few bytes at a time, and is not ready between them.
#[derive(Default)]
struct Slow {
    taken: Vec<Vec<u8>>,
    most: usize,
    is_ready: bool,
}

impl AsyncWrite for Slow {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = bytes.len().min(self.most);
        self.taken.push(bytes[..length].to_vec());
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Returns the result of a reader with a limit: lines, and `None` for each line over the limit.
fn lines_of(text: &[u8], limit: usize) -> Vec<Option<String>> {
    let mut rest: Vec<_> = text.split(|it| *it == b'\n').collect();
    let last = rest.pop().unwrap_or_default();
    let ended = rest
        .into_iter()
        .map(|it| it.strip_suffix(b"\r").unwrap_or(it));
    let last = (!last.is_empty()).then_some(last);
    let kept = |it: &[u8]| (it.len() <= limit).then(|| String::from_utf8(it.to_vec()).unwrap());
    ended.chain(last).map(kept).collect()
}

proptest! {
    // pins: I6
    #[test]
    fn lines_are_the_same_in_whatever_parts_they_come(
        parts in vec("[ab\r\n]{1,9}", 0..9),
        limit in 0_usize..7,
    ) {
        let text = parts.concat();
        let mut reads = BufReader::new(Parts::of(parts.iter().map(String::as_bytes)));
        let lines = block_on(async {
            let mut lines = Vec::new();
            loop {
                match reads.next_line(limit).await {
                    Ok(Some(line)) => lines.push(Some(line)),
                    Ok(None) => return lines,
                    Err(LineError::TooLong { .. }) => {
                        // The line is still in the reader.
                        let again = reads.next_line(limit).await;
                        assert!(matches!(again, Err(LineError::TooLong { .. })));
                        lines.push(None);
                        reads.skip_line().await.unwrap();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
        prop_assert_eq!(lines, lines_of(text.as_bytes(), limit));
    }
}

// pins: I6
#[test]
fn a_line_without_an_end_takes_no_more_memory_than_the_limit_allows() {
    let part = [b'x'; 1 << 10];
    let endless = std::iter::repeat_n(&part[..], 1 << 10);
    let text = endless.chain([&b"\nnext\n"[..]]);
    let mut reads = BufReader::new(Parts::of(text));
    block_on(async {
        let limit = 20_000;
        let error = reads.next_line(limit).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("20000 bytes") && text.contains("`skip_line`"),
            "{text}"
        );
        let kept = reads.buffer().len();
        assert!((limit..=2 * limit + 16_384).contains(&kept), "{kept}");
        // A larger limit takes the whole line.
        assert!(reads.next_line(30_000).await.is_err());
        assert!(reads.buffer().len() > kept);
        assert!(reads.skip_line().await.unwrap());
        assert!(reads.buffer().len() <= 8_192);
        assert_eq!(
            reads.next_line(limit).await.unwrap().as_deref(),
            Some("next")
        );
        assert_eq!(reads.next_line(limit).await.unwrap(), None);
        assert!(!reads.skip_line().await.unwrap());
    });
}

// pins: I6
#[test]
fn lines_of_other_bytes_are_no_text_and_values_come_between_lines() {
    let text = &b"GET\r\n\xff\xff\nSET 4\r\na\nb\r\nend\0last"[..];
    let mut reads = BufReader::new(text);
    block_on(async {
        assert_eq!(reads.next_line(3).await.unwrap().as_deref(), Some("GET"));
        let error = reads.next_line(3).await.unwrap_err();
        assert!(matches!(&error, LineError::NotText { line } if line == b"\xff\xff"));
        let error = io::Error::from(error);
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("next_until"), "{error}");
        assert_eq!(reads.next_line(5).await.unwrap().as_deref(), Some("SET 4"));
        let mut value = [0; 4];
        reads.read_exact(&mut value).await.unwrap();
        assert_eq!(&value, b"a\nb\r");
        assert_eq!(reads.next_line(0).await.unwrap().as_deref(), Some(""));
        assert_eq!(
            reads.next_until(0, 3).await.unwrap().as_deref(),
            Some(&b"end"[..])
        );
        let mut one = [0];
        assert_eq!(reads.read(&mut one).await.unwrap(), 1);
        assert_eq!((one, reads.buffer()), ([b'l'], &b"ast"[..]));
        assert_eq!(reads.into_parts().1, b"ast");
    });
}

// pins: I6
#[test]
fn a_wait_for_a_line_that_is_dropped_loses_nothing() {
    let mut reads = BufReader::new(Parts::of([&b"on"[..], b"e\ntw", b"o\n"]));
    let mut context = Context::from_waker(Waker::noop());
    let mut lines = Vec::new();
    // The loop drops each wait after its first poll.
    while lines.len() < 2 {
        if let Poll::Ready(line) = pin!(reads.next_line(3)).poll(&mut context) {
            lines.push(line.unwrap().unwrap());
        }
    }
    assert_eq!(lines, ["one", "two"]);
}

// pins: I6
#[test]
fn small_writes_go_out_together_and_a_flush_that_is_dropped_goes_on() {
    let inner = Slow {
        most: 1 << 20,
        ..Slow::default()
    };
    let mut writes = BufWriter::new(inner);
    block_on(async {
        for _ in 0..1_000 {
            writes.write_all(b"0123456789").await.unwrap();
        }
        writes.flush().await.unwrap();
        let lengths: Vec<_> = writes.get_ref().taken.iter().map(Vec::len).collect();
        assert_eq!(lengths, [8_190, 1_810]);
        // Bytes as long as the buffer are not copied.
        writes.write_all(b"a").await.unwrap();
        writes.write_all(&[b'b'; 9_000]).await.unwrap();
        let lengths: Vec<_> = writes.get_ref().taken.iter().map(Vec::len).collect();
        assert_eq!(lengths, [8_190, 1_810, 1, 9_000]);
        assert_eq!(writes.buffer(), b"");
    });

    let inner = Slow {
        most: 3,
        ..Slow::default()
    };
    let mut writes = BufWriter::new(inner);
    block_on(writes.write_all(b"0123456789")).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut left = 100;
    while left > 0 && pin!(writes.flush()).poll(&mut context).is_pending() {
        left -= 1;
    }
    assert_eq!(writes.get_ref().taken.concat(), b"0123456789");
    assert!(writes.into_parts().1.is_empty());
}

// pins: I6, I8
#[test]
fn halves_with_buffers_carry_lines_both_ways() {
    simulate(60, &Faults::some(), |rt, _| {
        let server = rt.spawn(async |cx: Cx<Option<String>>| {
            let listener = TcpListener::bind(SERVER)?;
            let (stream, _) = listener.accept().await?;
            let (mut reads, mut writes) = stream.split_buffered();
            // The halves have two owners.
            let own = cx.address();
            cx.spawn(async move |_: Cx| {
                while let Some(line) = reads.next_line(100).await? {
                    own.send(Some(line))?;
                }
                ok(own.send(None)?)
            })?;
            while let Some(Some(line)) = cx.recv().await {
                writes.write_all(format!("{line}!\n").as_bytes()).await?;
            }
            ok(writes.finish().await?)
        });
        rt.settle();
        let client = rt.spawn(async |_: Cx| {
            let (mut reads, mut writes) = TcpStream::connect(SERVER).await?.split_buffered();
            for number in 0..50 {
                writes
                    .write_all(format!("line {number}\r\n").as_bytes())
                    .await?;
            }
            writes.finish().await?;
            for number in 0..50 {
                let line = reads.next_line(100).await?;
                assert_eq!(line, Some(format!("line {number}!")));
            }
            ok(reads.next_line(100).await?.is_none())
        });
        let end = rt.wait(client.unwrap()).into_result().unwrap();
        assert_eq!(end.as_bool(), Some(true));
        rt.wait(server.unwrap()).into_result().unwrap();
    });
}
