//! Settings of sockets, read back from the system.

use crate::simulated::simulate;
use crate::support::{connected, ms, ok, result, start};
use ganger_net::sim::Faults;
use ganger_net::{Keepalive, TcpListener, TcpOptions, TcpStream, UdpSocket};
use ganger_task::Cx;
use socket2::SockRef;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Asserts the settings of [`options`] on a connection.
#[cfg(target_os = "linux")]
fn assert_options(stream: &TcpStream) {
    let descriptor = stream.descriptor().unwrap();
    let socket = SockRef::from(&descriptor);
    assert!(socket.keepalive().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap(), 40 * SECOND);
    assert_eq!(socket.tcp_keepalive_interval().unwrap(), 7 * SECOND);
    assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
    assert_eq!(socket.tcp_user_timeout().unwrap(), Some(ms(12_345)));
    assert!(socket.tcp_nodelay().unwrap());
    // Linux doubles the sizes of buffers.
    assert_eq!(socket.recv_buffer_size().unwrap(), 2 * 10_000);
    assert_eq!(socket.send_buffer_size().unwrap(), 2 * 20_000);
}

fn options() -> TcpOptions {
    TcpOptions::new()
        .keepalive(Keepalive::after(40 * SECOND).every(7 * SECOND).tries(3))
        .user_timeout(ms(12_345))
        .nodelay(true)
        .recv_buffer(10_000)
        .send_buffer(20_000)
}

// pins: I10
#[cfg(target_os = "linux")]
#[test]
fn a_connection_has_the_settings_it_was_made_with_and_an_accepted_one_those_of_its_listener() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let listener = options().listen("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let plain = TcpStream::connect(address).await?;
        assert_options(&listener.accept().await?.0);
        assert!(!SockRef::from(&plain.descriptor()?).keepalive()?);
        assert_options(&options().connect(address).await?);
        assert_options(&options().connect_within(address, 60 * SECOND).await?);
        ok(())
    });
    result(task.unwrap());
}

// pins: I10
#[cfg(target_os = "linux")]
#[test]
fn the_settings_of_a_connection_change() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let stream = TcpStream::from_std(connected().1)?;
        let descriptor = stream.descriptor()?;
        let socket = SockRef::from(&descriptor);
        assert!(!socket.keepalive()? && !socket.tcp_nodelay()?);
        assert_eq!(socket.tcp_user_timeout()?, None);
        stream.set_keepalive(Some(Keepalive::default()))?;
        stream.set_user_timeout(Some(ms(500)))?;
        stream.set_nodelay(true)?;
        assert!(socket.keepalive()? && socket.tcp_nodelay()?);
        assert_eq!(socket.tcp_keepalive_time()?, 60 * SECOND);
        assert_eq!(socket.tcp_user_timeout()?, Some(ms(500)));
        stream.set_keepalive(None)?;
        stream.set_user_timeout(None)?;
        stream.set_nodelay(false)?;
        assert!(!socket.keepalive()? && !socket.tcp_nodelay()?);
        assert_eq!(socket.tcp_user_timeout()?, None);
        ok(())
    });
    result(task.unwrap());
}

// pins: I10
#[cfg(unix)]
#[test]
fn listeners_that_say_so_share_a_port() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |cx: Cx| {
        let shared = TcpOptions::new().reuse_port(true);
        let one = shared.listen("127.0.0.1:0")?;
        let address = one.local_addr()?;
        let refused = TcpListener::bind(address).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        let other = shared.listen(address)?;
        let _client = TcpStream::connect(address).await?;
        // The system chooses the port.
        cx.select((one.accept(), other.accept())).await;
        ok(())
    });
    result(task.unwrap());
}

// pins: I10
#[test]
fn a_listener_takes_both_kinds_of_addresses_or_one() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        for dual_stack in [true, false] {
            let options = TcpOptions::new().dual_stack(dual_stack);
            let listener = match options.listen("[::]:0") {
                // The machine has no IPv6.
                Err(error) if error.kind() != ErrorKind::AddrInUse => return ok(()),
                listener => listener?,
            };
            let only_v6 = SockRef::from(&listener.descriptor()?).only_v6()?;
            assert_eq!(only_v6, !dual_stack);
            let port = listener.local_addr()?.port();
            let connected = TcpStream::connect(([127, 0, 0, 1], port)).await;
            assert_eq!(connected.is_ok(), dual_stack);
        }
        ok(())
    });
    result(task.unwrap());
}

/// Keeps a duplicate, which belongs to the same socket, after the close of the socket.
// pins: I10
#[test]
fn a_descriptor_is_that_of_the_socket_until_the_socket_is_closed() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        let (server, _) = listener.accept().await?;
        SockRef::from(&stream.descriptor()?).shutdown(Shutdown::Write)?;
        assert_eq!(server.read(&mut [0]).await?, 0);
        let datagrams = UdpSocket::bind("127.0.0.1:0")?;
        let address = SockRef::from(&datagrams.descriptor()?).local_addr()?;
        assert_eq!(address.as_socket(), Some(datagrams.local_addr()?));
        let held = stream.descriptor()?;
        stream.close();
        listener.close();
        for closed in [stream.descriptor(), listener.descriptor()] {
            assert_eq!(closed.unwrap_err().kind(), ErrorKind::NotConnected);
        }
        drop(held);
        ok(())
    });
    result(task.unwrap());
}

// pins: I8, I10
#[test]
fn simulated_sockets_take_all_settings_and_have_no_descriptor() {
    simulate(3, &Faults::some(), |rt, _| {
        let task = rt.spawn(async |_: Cx| {
            let options = options().reuse_port(true).dual_stack(true);
            let listener = options.listen("10.0.0.1:80")?;
            let client = options.connect("10.0.0.1:80").await?;
            let (server, _) = listener.accept().await?;
            for stream in [&client, &server] {
                stream.set_keepalive(Some(Keepalive::default()))?;
                stream.set_user_timeout(Some(SECOND))?;
                stream.set_nodelay(true)?;
            }
            let refused: io::Result<_> = client.descriptor();
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
            ok(())
        });
        rt.wait(task.unwrap()).into_result().unwrap();
    });
}
