//! The open sockets of schedulers.

use super::support::{get, until};
use ganger_net::{Net, TcpListener};
use ganger_observe::api::{SocketWait, Sockets, SocketsQuery};
use ganger_observe::{Observer, Party, SocketKind, serve};
use ganger_sched::Scheduler;
use ganger_task::Cx;

/// Starts a scheduler whose network has so many listeners.
fn with_listeners(host: &str, count: usize) -> (Scheduler, Vec<TcpListener>) {
    let net = Net::new().unwrap();
    let bind = |_| net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let listeners = (0..count).map(bind).collect();
    let builder = Scheduler::builder().workers(1).host(host);
    (builder.driver(net.clone()).start().unwrap(), listeners)
}

// pins: V10
#[test]
fn open_sockets_are_shown_with_the_processes_that_wait_on_them() {
    let (one, mut listeners) = with_listeners("net-one", 2);
    let (two, _of_two) = with_listeners("net-two", 3);
    let dry = Scheduler::builder().workers(1).host("dry").start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&one).scheduler(&dry);
    let endpoint = endpoint.scheduler(&two).start().unwrap();
    let listener = listeners.remove(1);
    let address = listener.local_addr().unwrap().to_string();
    let acceptor = async move |_: Cx| {
        let (connection, _) = listener.accept().await?;
        drop(connection);
        Ok(())
    };
    let acceptor = one.named("acceptor").spawn(acceptor).unwrap();
    let sockets = |query: &str| get(&endpoint, &format!("/api/v1/sockets{query}")).json();
    until("the acceptor waits", || {
        let seen: Sockets = sockets("");
        seen.sockets.iter().any(|it| !it.waits.is_empty())
    });
    let seen: Sockets = sockets("");
    assert_eq!((seen.open, &*seen.driven), (5, &[1, 3][..]));
    let places: Vec<_> = seen
        .sockets
        .iter()
        .map(|it| (it.scheduler, it.id))
        .collect();
    assert_eq!(places, [(1, 1), (1, 2), (3, 1), (3, 2), (3, 3)]);
    assert!(seen.sockets.iter().all(|it| it.kind == "tcp_listener"));
    let awaited = &seen.sockets[1];
    assert_eq!((&awaited.local, &awaited.peer), (&Some(address), &None));
    let [wait] = &*awaited.waits else {
        panic!("{awaited:?}");
    };
    assert!(wait.since_ns.is_some());
    let expected = SocketWait {
        is_write: false,
        pid: Some(acceptor.pid().to_string()),
        scheduler: Some(1),
        name: Some("acceptor".to_owned()),
        since_ns: wait.since_ns,
    };
    assert_eq!(*wait, expected);
    // The observer knows the same.
    let page = Observer::of(&one).sockets(1, 10).unwrap();
    assert_eq!((page.open, page.sockets.len()), (2, 1));
    assert_eq!(page.sockets[0].kind, SocketKind::TcpListener);
    let party = Party::Process(acceptor.pid(), one.number());
    assert_eq!(page.sockets[0].waits[0].process, Some(party));
    assert!(Observer::of(&dry).sockets(0, 10).is_none());
}

// pins: V10
#[test]
fn sockets_come_in_pages() {
    let (scheduler, _listeners) = with_listeners("paged", 5);
    let (other, _of_other) = with_listeners("paged-too", 1);
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).scheduler(&other);
    let endpoint = endpoint.start().unwrap();
    let (mut ids, mut query) = (Vec::new(), SocketsQuery::default());
    (query.top, query.scheduler) = (2, Some(1));
    loop {
        let seen: Sockets = get(&endpoint, &format!("/api/v1/sockets?{query}")).json();
        assert_eq!((seen.open, &*seen.driven), (5, &[1][..]));
        assert!(seen.sockets.len() <= 2);
        let Some(last) = seen.sockets.last() else {
            break;
        };
        query.after = last.id;
        ids.extend(seen.sockets.iter().map(|it| it.id));
    }
    assert_eq!(ids, [1, 2, 3, 4, 5]);
    // The sockets of a scheduler fill the page before those of the next.
    let seen: Sockets = get(&endpoint, "/api/v1/sockets?top=5").json();
    assert_eq!((seen.open, seen.sockets.len()), (6, 5));
    assert!(seen.sockets.iter().all(|it| it.scheduler == 1));
    let refused = |query: &str, status, part| {
        get(&endpoint, &format!("/api/v1/sockets?{query}")).refuses(status, part);
    };
    refused("top=0", 400, "from 1 to 1000");
    refused("top=1001", 400, "from 1 to 1000");
    refused("after=3", 400, "add scheduler=NUMBER");
    refused("after=x&scheduler=1", 400, "the id of the last socket");
    refused("scheduler=9", 404, "no scheduler has that number");
    refused("by=age", 400, "use top, after and scheduler");
    refused("top=1&top=2", 400, "is there twice");
}
