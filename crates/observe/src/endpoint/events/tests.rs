//! Viewers of streams that do not read, in virtual time.

use super::super::limits::{ANSWER, STREAMS};
use super::super::tests::{ADDRESS, TOKEN, ms, simulate};
use super::SHORTEST;
use ganger_net::TcpStream;
use ganger_net::sim::Faults;
use ganger_proc_api::BoxError;
use ganger_sched::ContextExt as _;
use ganger_task::Cx;

/// Opens a stream of events. Returns it behind the status.
async fn open() -> Result<(TcpStream, String), BoxError> {
    let stream = TcpStream::connect(ADDRESS).await?;
    let request = format!(
        "GET /api/v1/events?every=250ms HTTP/1.1\r\nhost: 10.0.0.1\r\n\
         authorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await?;
    Ok((stream, String::from_utf8_lossy(&status).into_owned()))
}

/// Viewers take all places and read nothing. They lose their connections, and their places are
/// free for others.
// pins: V3
#[test]
fn viewers_that_never_read_lose_their_places() {
    simulate(3, &Faults::default(), |rt, _| {
        let slow = rt.spawn(async |cx: Cx| {
            let mut open_streams = Vec::new();
            for _ in 0..STREAMS {
                let (stream, status) = open().await?;
                assert_eq!(status, "HTTP/1.1 200");
                open_streams.push(stream);
            }
            let begun = cx.now();
            let (refused, status) = open().await?;
            assert_eq!(status, "HTTP/1.1 503");
            drop(refused);
            // Until the buffers of the network are full, and then the time of an answer.
            let mut waited = begun;
            while open().await?.1 != "HTTP/1.1 200" {
                cx.sleep(SHORTEST).await?;
                waited = cx.now();
            }
            let took = waited - begun;
            assert!(took > ANSWER - ms(500), "{took:?}");
            drop(open_streams);
            Ok(())
        });
        rt.wait(slow.unwrap()).into_result().unwrap();
    });
}

/// Serves all events to a reading viewer, while another viewer reads nothing.
// pins: V3
#[test]
fn a_viewer_that_reads_nothing_stops_no_other_viewer() {
    simulate(3, &Faults::default(), |rt, _| {
        let viewers = rt.spawn(async |cx: Cx| {
            let (slow, _) = open().await?;
            let (fast, _) = open().await?;
            let (begun, mut seen, mut buffer) = (cx.now(), 0, [0; 65_536]);
            while cx.now() - begun < 4 * ANSWER {
                let length = fast.read(&mut buffer).await?;
                let text = String::from_utf8_lossy(&buffer[..length]);
                seen += text.matches("event: snapshot").count();
            }
            let expected = (4 * ANSWER).as_millis() / SHORTEST.as_millis();
            // The events are of 250 ms and the time of a look, and a read may cut one in two.
            assert!(seen as u128 > expected / 2, "{seen} of {expected}");
            drop(slow);
            Ok(())
        });
        rt.wait(viewers.unwrap()).into_result().unwrap();
    });
}
