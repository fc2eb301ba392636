//! The lower bound: threads with blocking sockets. Messages share frames of 32 KiB, as messages of
//! nodes do.

use crate::pair::{Place, second};
use crate::rows;
use crate::tally::{LAST, Tally, block, now, percentiles};
use crate::timed::{LARGE, Measured, SMALL, round_trips as measure_trips, streams};
use ganger::BoxError;
use ganger_bench_options::catalog::Id;
use ganger_bench_options::job::{Error, Job};
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

const FRAME: usize = 32 << 10;

/// Runs a workload without processes.
///
/// # Errors
/// A message is lost, or comes out of order.
pub fn run(job: &Job) -> Measured {
    if let Some(place) = Place::of_second() {
        let seed = place.seed.ok_or("no first program")?;
        return serve(TcpStream::connect(seed)?, job.id == Id::X1).map(|()| Vec::new());
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let _second = second("beta", &listener.local_addr()?.to_string(), None)?;
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let count = job.elements();
    match job.id {
        Id::X1 => measure_trips(job, |count| round_trips(&stream, count)),
        Id::X2 | Id::X4 => streams(job, |count| send(&stream, count, SMALL)),
        Id::X3 => streams(job, |count| send(&stream, count, LARGE)),
        Id::X6 => {
            let begin = Instant::now();
            send(&stream, count, SMALL)?;
            let mut frames = Frames::new(&stream);
            let quick = begin.elapsed();
            let full = rows::paced(count, quick, |due, number| {
                frames.add(&block(number, now(), SMALL))?;
                if number + 1 == due {
                    frames.flush()
                } else {
                    Ok(())
                }
            });
            full?;
            rows::one_way(count, frames.account(SMALL)?)
        }
        _ => Err(Error::Missing("sockets have no processes".to_owned()).into()),
    }
}

/// Gets messages until the stream ends.
fn serve(mut stream: TcpStream, answers_all: bool) -> Result<(), BoxError> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(2 * FRAME, stream.try_clone()?);
    let (mut tally, mut message) = (Tally::default(), Vec::new());
    while let Some(length) = length(&mut input)? {
        message.resize(length, 0);
        input.read_exact(&mut message)?;
        if answers_all {
            stream.write_all(&message)?;
        } else if let Some(account) = tally.note(&message) {
            stream.write_all(&account.map(u64::to_le_bytes).concat())?;
        }
    }
    Ok(())
}

/// Reads the length of the next message; `None` at the end.
fn length(input: &mut impl Read) -> Result<Option<usize>, BoxError> {
    let mut length = [0; 4];
    match input.read(&mut length[..1])? {
        0 => Ok(None),
        _ => {
            input.read_exact(&mut length[1..])?;
            Ok(Some(usize::try_from(u32::from_le_bytes(length))?))
        }
    }
}

fn round_trips(mut stream: &TcpStream, count: u64) -> Result<[u64; 2], BoxError> {
    let mut times = Vec::new();
    let mut back = [0; SMALL];
    for number in 0..count {
        let begin = Instant::now();
        let block = block(number, 0, SMALL);
        let mut frame = u32::try_from(SMALL)?.to_le_bytes().to_vec();
        frame.extend_from_slice(&block);
        stream.write_all(&frame)?;
        stream.read_exact(&mut back)?;
        times.push(u64::try_from(begin.elapsed().as_nanos())?);
        if back[..] != block[..] {
            return Err("another block comes back".into());
        }
    }
    Ok(percentiles(&mut times))
}

fn send(stream: &TcpStream, count: u64, size: usize) -> Result<u64, BoxError> {
    let mut frames = Frames::new(stream);
    for number in 0..count {
        frames.add(&block(number, 0, size))?;
    }
    Ok(frames.account(size)?[0])
}

struct Frames<'a> {
    stream: &'a TcpStream,
    frame: Vec<u8>,
}

impl<'a> Frames<'a> {
    fn new(stream: &'a TcpStream) -> Self {
        let frame = Vec::with_capacity(FRAME);
        Self { stream, frame }
    }

    fn add(&mut self, block: &[u8]) -> Result<(), BoxError> {
        if self.frame.len() + 4 + block.len() > FRAME {
            self.flush()?;
        }
        let length = u32::try_from(block.len())?;
        self.frame.extend_from_slice(&length.to_le_bytes());
        self.frame.extend_from_slice(block);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BoxError> {
        self.stream.write_all(&self.frame)?;
        self.frame.clear();
        Ok(())
    }

    /// Sends the last message, and waits for the account.
    fn account(&mut self, size: usize) -> Result<[u64; 3], BoxError> {
        self.add(&block(LAST, 0, size))?;
        self.flush()?;
        let mut account = [0; 24];
        self.stream.read_exact(&mut account)?;
        let field = |at: usize| {
            account[8 * at..8 * at + 8]
                .try_into()
                .map(u64::from_le_bytes)
        };
        Ok([field(0)?, field(1)?, field(2)?])
    }
}
