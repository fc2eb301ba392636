//! Connections that end in all ways at random times, with an exact account of bytes.
//! `GANGER_STRESS=10` makes the test ten times as long.

use crate::support::{PATIENCE, ms, ok, result, start, until};
use fastrand::Rng;
use ganger_net::{TcpListener, TcpStream};
use ganger_proc_api::BoxError;
use ganger_sched::ContextExt;
use ganger_task::Cx;
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The bytes that the server has read and written on each connection, by its number.
type Served = Arc<Mutex<HashMap<u32, (usize, usize)>>>;

/// Returns a byte of a connection, which names its position and its connection.
fn byte(connection: u32, at: usize) -> u8 {
    let at = u32::try_from(at).unwrap();
    (at.wrapping_mul(31) ^ connection).to_le_bytes()[0]
}

/// Sends all bytes back, until the connection ends in any way.
async fn serve(stream: TcpStream, served: Served) -> Result<(), BoxError> {
    let mut number = [0; 4];
    if stream.read_exact(&mut number).await.is_err() {
        return Ok(());
    }
    let number = u32::from_le_bytes(number);
    let (mut read, mut written, mut buffer) = (0, 0, [0; 1500]);
    'ends: while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        for (at, &found) in buffer[..length].iter().enumerate() {
            assert_eq!(found, byte(number, read + at), "connection {number}");
        }
        read += length;
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            match stream.write(rest).await {
                Ok(length) => (rest, written) = (&rest[length..], written + length),
                Err(_) => break 'ends,
            }
        }
    }
    served.lock().unwrap().insert(number, (read, written));
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// This side ends its writes, and reads to the end.
    Clean,
    /// This side breaks the connection.
    Reset,
    /// This side goes, with bytes under way.
    Dropped,
    /// Another process closes the connection.
    Closed,
    /// A deadline ends the waiting operations.
    Late,
}

/// The bytes sent by a client, and the bytes back.
struct Account {
    number: u32,
    end: End,
    sent: usize,
    got: usize,
}

async fn talk(
    cx: Cx,
    address: SocketAddr,
    number: u32,
    seed: u64,
    is_clean: bool,
) -> Result<Account, BoxError> {
    let mut random = Rng::with_seed(seed);
    let stream = std::net::TcpStream::connect(address)?;
    let ends = [End::Clean, End::Reset, End::Dropped, End::Closed, End::Late];
    let end = match is_clean {
        true => End::Clean,
        false => ends[random.usize(..ends.len())],
    };
    if end == End::Reset {
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    }
    let stream = TcpStream::from_std(stream)?;
    stream.write_all(&number.to_le_bytes()).await?;
    let length = random.usize(..40_000);
    let stops_at = if end == End::Clean {
        length
    } else {
        random.usize(..=length)
    };
    let (closer, time) = (stream.closer(), ms(random.u64(..3)));
    match end {
        End::Closed => {
            cx.spawn(async move |cx: Cx| {
                cx.sleep(time).await?;
                closer.close();
                ok(())
            })?;
        }
        End::Late => {
            stream.set_read_deadline(Some(time));
            stream.set_write_deadline(Some(time));
        }
        _ => {}
    }
    let mut account = Account {
        number,
        end,
        sent: 0,
        got: 0,
    };
    let text: Vec<u8> = (0..stops_at).map(|at| byte(number, at)).collect();
    let parts = random.usize(1..5000);
    let (sent, got) = (&mut account.sent, &mut account.got);
    let writes = async {
        while *sent < text.len() {
            let part = &text[*sent..(*sent + parts).min(text.len())];
            *sent += stream.write(part).await?;
        }
        match end {
            End::Clean => stream.shutdown(Shutdown::Write),
            _ => Ok(()),
        }
    };
    let reads = async {
        let mut buffer = [0; 3000];
        let most = if end == End::Clean {
            usize::MAX
        } else {
            random.usize(..=stops_at)
        };
        while *got < most {
            let length = stream.read(&mut buffer).await?;
            if length == 0 {
                break;
            }
            for (at, &found) in buffer[..length].iter().enumerate() {
                assert_eq!(found, byte(number, *got + at), "connection {number}");
            }
            *got += length;
        }
        Ok::<_, io::Error>(())
    };
    let (written, read) = cx.join((writes, reads)).await;
    if end == End::Clean {
        written?;
        read?;
    }
    Ok(account)
}

// pins: I6
#[test]
fn bytes_are_accounted_for_whatever_ends_the_connections() {
    let factor: u32 = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    let seed = std::env::var("GANGER_STRESS_SEED");
    let seed: u64 = seed.map_or_else(|_| fastrand::u64(..), |text| text.parse().unwrap());
    println!("GANGER_STRESS_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let (scheduler, net) = start(2);
    let served = Served::default();
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let by_server = Arc::clone(&served);
    let server = scheduler.spawn(async move |cx: Cx| {
        let incoming = listener.incoming(30);
        while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
            let ((stream, _), served) = (accepted?, Arc::clone(&by_server));
            cx.spawn(async move |_: Cx| serve(stream, served).await)?;
        }
        incoming.drain().await;
        ok(())
    });
    let server = server.unwrap();
    let (mut clean, mut number) = (0, 0);
    for _ in 0..5 * factor {
        let (send, accounts) = std::sync::mpsc::channel();
        let mut begin = |is_clean| {
            number += 1;
            let (number, seed, send) = (number, random.u64(..), send.clone());
            let client = scheduler.spawn(async move |cx: Cx| {
                send.send(talk(cx, address, number, seed, is_clean).await?)?;
                ok(())
            });
            client.unwrap()
        };
        let clients: Vec<_> = (0..40).map(|_| begin(false)).collect();
        for client in clients {
            // A server fails if its connection ends before its number has come.
            let ended = client.wait_timeout(PATIENCE);
            assert!(ended.is_ok(), "a client hangs");
        }
        // The server has accepted all earlier connections.
        result(begin(true));
        drop(send);
        until("all is served", || net.sockets() == 1);
        for account in accounts {
            let all = served.lock().unwrap();
            let (read, written) = all.get(&account.number).copied().unwrap_or_default();
            let Account {
                number,
                end,
                sent,
                got,
            } = account;
            assert!(
                got <= written && written <= read && read <= sent,
                "{number}: {end:?}"
            );
            if end == End::Clean {
                assert_eq!((read, written, got), (sent, sent, sent), "{number}");
                clean += 1;
            }
        }
    }
    assert!(clean > 0, "no connection has ended cleanly");
    scheduler.cancel(server.pid(), "enough").unwrap();
    result(server);
    until("no socket is left", || net.sockets() == 0);
    assert_eq!(scheduler.stats().live, 0);
}
