//! Descriptions of open sockets, and of the processes in a wait for them.

use crate::simulated::simulate;
use crate::support::{result, start, until};
use ganger_net::sim::Faults;
use ganger_net::{Net, SocketKind, SocketLook, TcpListener, TcpStream, UdpSocket, open_sockets};
use ganger_sched::{ContextExt as _, Scheduler};
use ganger_task::Cx;
use std::net::SocketAddr;

fn all(scheduler: &Scheduler) -> Vec<SocketLook> {
    open_sockets(scheduler, 0, 1_000).unwrap().0
}

fn kinds(sockets: &[SocketLook]) -> Vec<SocketKind> {
    sockets.iter().map(|it| it.kind).collect()
}

// pins: I7
#[test]
fn open_sockets_have_their_addresses_and_the_processes_that_wait_on_them() {
    let (scheduler, net) = start(1);
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let udp = net.enter(|| UdpSocket::bind("127.0.0.1:0")).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let of_udp = udp.local_addr().unwrap();
    let server = scheduler.spawn(async move |_: Cx| {
        let (connection, _) = listener.accept().await?;
        let mut byte = [0];
        // The client closes the connection.
        Ok(connection.read(&mut byte).await? == 0)
    });
    let server = server.unwrap();
    let receiver = scheduler.spawn(async move |_: Cx| {
        let (length, _) = udp.recv_from(&mut [0; 10]).await?;
        Ok(length == 2)
    });
    let receiver = receiver.unwrap();
    let waiter = |it: &SocketLook| Some((it.waiters.first()?.is_write, it.waiters[0].process?.0));
    until("both wait", || {
        let seen: Vec<_> = all(&scheduler).iter().map(waiter).collect();
        seen == [Some((false, server.pid())), Some((false, receiver.pid()))]
    });
    let sockets = all(&scheduler);
    assert_eq!(kinds(&sockets), [SocketKind::TcpListener, SocketKind::Udp]);
    assert_eq!(sockets[0].local, Some(address.to_string()));
    assert_eq!(sockets[1].local, Some(of_udp.to_string()));
    assert!(
        sockets
            .iter()
            .all(|it| it.peer.is_none() && it.waiters.len() == 1)
    );
    let of = sockets[0].waiters[0].process.unwrap().1;
    assert_eq!(of, scheduler.number());
    let client = std::net::TcpStream::connect(address).unwrap();
    let connection = || {
        all(&scheduler)
            .into_iter()
            .find(|it| it.kind == SocketKind::Tcp)
    };
    until("the server reads", || {
        connection().is_some_and(|it| waiter(&it) == Some((false, server.pid())))
    });
    let connection = connection().unwrap();
    assert_eq!(connection.local, Some(address.to_string()));
    assert_eq!(
        connection.peer,
        Some(client.local_addr().unwrap().to_string())
    );
    drop(client);
    assert_eq!(result(server).as_bool(), Some(true));
    let plain = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    plain.send_to(b"hi", of_udp).unwrap();
    assert_eq!(result(receiver).as_bool(), Some(true));
    // The list of open sockets has no closed socket.
    assert_eq!(open_sockets(&scheduler, 0, 10), Some((Vec::new(), 0)));
}

// pins: I7
#[test]
fn pages_have_each_open_socket_once_in_the_order_of_ids() {
    let net = Net::new().unwrap();
    let bind = || net.enter(|| UdpSocket::bind("127.0.0.1:0")).unwrap();
    let mut sockets: Vec<_> = (0..20).map(|_| Some(bind())).collect();
    for closed in [0, 7, 8, 19] {
        sockets[closed] = None;
    }
    let scheduler = Scheduler::builder().driver(net.clone()).build().unwrap();
    let (mut ids, mut after) = (Vec::new(), 0);
    loop {
        let (page, open) = open_sockets(&scheduler, after, 5).unwrap();
        assert_eq!(open, 16);
        let Some(last) = page.last() else { break };
        after = last.id;
        ids.extend(page.iter().map(|it| it.id));
    }
    let open = (1..=20).filter(|it| ![1, 8, 9, 20].contains(it));
    assert!(open.eq(ids.iter().copied()), "{ids:?}");
    assert_eq!(open_sockets(&scheduler, 0, 0), Some((Vec::new(), 16)));
    // A scheduler without a network has no such list, and an empty network has an empty one.
    let other = Scheduler::builder().build().unwrap();
    assert_eq!(open_sockets(&other, 0, 5), None);
    drop(sockets);
    assert_eq!(open_sockets(&scheduler, 0, 5), Some((Vec::new(), 0)));
}

// pins: I8
#[test]
fn simulated_sockets_are_known_too() {
    simulate(5, &Faults::default(), |rt, _| {
        let task = rt.spawn(async |cx: Cx| {
            let listener = TcpListener::bind("10.0.0.1:80")?;
            let client = TcpStream::connect("10.0.0.1:80").await?;
            let scheduler = cx.scheduler().unwrap();
            let (sockets, open) = open_sockets(&scheduler, 0, 10).unwrap();
            assert_eq!(open, 2);
            assert_eq!(kinds(&sockets), [SocketKind::TcpListener, SocketKind::Tcp]);
            assert_eq!(sockets[0].local.as_deref(), Some("10.0.0.1:80"));
            assert_eq!(sockets[1].peer.as_deref(), Some("10.0.0.1:80"));
            assert_eq!(sockets[1].local, Some(client.local_addr()?.to_string()));
            drop(listener);
            Ok(())
        });
        rt.wait(task.unwrap()).into_result().unwrap();
    });
}
