//! Profiles by the endpoint.

use super::support::{Answer, ask, connect, get, until};
use crate::profile::pprof::stacks;
use crate::profile::stuck;
use ganger_observe::{Endpoint, Observer, ProfileError, serve};
use ganger_sched::{Builder, Scheduler, StepLooksRefused};
use std::io::Write as _;
use std::thread;
use std::time::Duration;

fn builder() -> Builder {
    Scheduler::builder().workers(2).max_spares(0).profiles(true)
}

fn endpoint(schedulers: &[&Scheduler]) -> Endpoint {
    let all = schedulers.iter();
    let serve = all.fold(serve("127.0.0.1:0"), |it, one| it.scheduler(one));
    serve.start().unwrap()
}

fn bytes(endpoint: &Endpoint, path: &str) -> (String, Vec<u8>) {
    let mut stream = connect(endpoint.address());
    let host = endpoint.address();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut all).unwrap();
    let at = all.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let body = all.split_off(at + 4);
    (String::from_utf8(all).unwrap(), body)
}

// pins: V14, V1
#[test]
fn a_profile_of_stuck_workers_comes_while_others_are_answered() {
    let scheduler = builder().start().unwrap();
    let releases = stuck(&scheduler);
    let endpoint = endpoint(&[&scheduler]);
    thread::scope(|scope| {
        let path = "/profile?seconds=2&hz=50&format=folded";
        let folded = scope.spawn(|| get(&endpoint, path));
        until("the profile begins", || scheduler.is_looked_at());
        // Meanwhile.
        assert_eq!(get(&endpoint, "/healthz").status, 200);
        assert_eq!(get(&endpoint, "/api/v1/processes").status, 200);
        get(&endpoint, "/profile").refuses(409, "try again");
        let mut answer = folded.join().unwrap();
        // On a busy machine the names of functions may take longer than an answer has.
        if answer.status == 503 {
            until("a profile comes in its time", || {
                answer = get(&endpoint, path);
                answer.status != 503
            });
        }
        let Answer { status, body, .. } = answer;
        assert_eq!(status, 200);
        assert!(body.contains("waits_on_purpose"), "{body}");
    });
    let (head, file) = bytes(&endpoint, "/profile?seconds=1&hz=50");
    assert!(head.contains("filename=\"profile.pb.gz\""), "{head}");
    let stacks = stacks(&file, 50);
    let is_seen = stacks.keys().any(|it| it.contains("waits_on_purpose"));
    assert!(is_seen, "{stacks:?}");
    drop(releases);
}

// pins: V14
#[test]
fn a_client_that_goes_ends_its_profile() {
    let scheduler = builder().start().unwrap();
    let endpoint = endpoint(&[&scheduler]);
    let mut stream = connect(endpoint.address());
    let request = format!(
        "GET /profile?seconds=60&hz=50 HTTP/1.1\r\nhost: {}\r\n\r\n",
        endpoint.address()
    );
    stream.write_all(request.as_bytes()).unwrap();
    until("the profile begins", || scheduler.is_looked_at());
    drop(stream);
    until("the profile ends", || !scheduler.is_looked_at());
    // So does the endpoint.
    let mut stream = connect(endpoint.address());
    stream.write_all(request.as_bytes()).unwrap();
    until("the profile begins", || scheduler.is_looked_at());
    drop(endpoint);
    until("the profile ends", || !scheduler.is_looked_at());
}

// pins: V14
#[test]
fn what_can_not_be_profiled_is_refused() {
    let (one, other) = (builder().start().unwrap(), builder().start().unwrap());
    let without = Scheduler::builder().build().unwrap();
    let endpoint = endpoint(&[&one, &other, &without]);
    let both = "/profile?seconds=1";
    get(&endpoint, both).refuses(400, "add ?scheduler=NUMBER");
    get(&endpoint, "/profile?scheduler=4").refuses(404, "no scheduler has that number");
    get(&endpoint, "/profile?scheduler=3").refuses(403, "`Builder::profiles`");
    get(&endpoint, "/profile?seconds=61").refuses(400, "from 1 to 60");
    get(&endpoint, "/profile?hz=0").refuses(400, "from 1 to 1000");
    ask(&endpoint, "POST", "/profile", &[]).refuses(405, "only answers");
    let refused = Observer::of(&without)
        .profile(Duration::ZERO, 99)
        .unwrap_err();
    assert_eq!(refused, ProfileError::Refused(StepLooksRefused::NotAllowed));
    let path = "/profile?seconds=1&hz=10&format=folded&scheduler=2";
    let answer = get(&endpoint, path);
    assert_eq!((answer.status, &*answer.body), (200, ""));
}
