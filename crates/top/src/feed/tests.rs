use super::*;
use crate::source::Demo;
use ganger_observe::api::Acted;
use std::sync::mpsc::{self, Receiver};

/// A test waits for an event, and fails then.
const PATIENCE: Duration = Duration::from_secs(60);

/// The demo, behind a function that may fail before each snapshot and each tree.
struct Scripted<F>(Demo, F);

impl<F: Fn() -> Result<(), Fault> + Send + Sync> Source for Scripted<F> {
    fn name(&self) -> String {
        self.0.name()
    }
    fn snapshot(&self) -> Result<Snapshot, Fault> {
        self.1().and_then(|()| self.0.snapshot())
    }
    fn processes(&self, query: &ProcessesQuery) -> Result<Processes, Fault> {
        self.0.processes(query)
    }
    fn process(&self, scheduler: u64, pid: &str) -> Result<Processes, Fault> {
        self.0.process(scheduler, pid)
    }
    fn groups(&self) -> Result<Groups, Fault> {
        self.0.groups()
    }
    fn tree(&self) -> Result<Tree, Fault> {
        self.1().and_then(|()| self.0.tree())
    }
    fn waits(&self) -> Result<Waits, Fault> {
        self.0.waits()
    }
    fn sockets(&self, query: &SocketsQuery) -> Result<Sockets, Fault> {
        self.0.sockets(query)
    }
    fn nodes(&self) -> Result<Nodes, Fault> {
        self.0.nodes()
    }
    fn letters(&self) -> Result<Letters, Fault> {
        self.0.letters()
    }
    fn act(&self, action: &str, scheduler: u64, pid: &str) -> Result<Acted, Fault> {
        self.0.act(action, scheduler, pid)
    }
    fn trace(&self, time: Duration, to: &mut dyn io::Write) -> Result<(), Fault> {
        self.0.trace(time, to)
    }
}

fn start(
    every: Duration,
    script: impl Fn() -> Result<(), Fault> + Send + Sync + 'static,
) -> (Arc<Feed>, Receiver<News>) {
    let source: Arc<dyn Source> = Arc::new(Scripted(Demo::new(), script));
    let (tell, told) = mpsc::channel();
    (Feed::start(&source, every, &tell).unwrap(), told)
}

/// Returns the next news that a choice takes.
#[track_caller]
fn next<T>(told: &Receiver<News>, choose: impl Fn(News) -> Option<T>) -> T {
    loop {
        let news = told.recv_timeout(PATIENCE).expect("no news in time");
        if let Some(chosen) = choose(news) {
            return chosen;
        }
    }
}

fn answer(news: News) -> Option<(Wish, Answer)> {
    match news {
        News::Answer(wish, answer) => Some((wish, answer)),
        _ => None,
    }
}

fn unreachable() -> Fault {
    Fault::Unreachable {
        address: "demo".to_owned(),
        error: io::ErrorKind::ConnectionRefused.into(),
    }
}

#[test]
fn a_new_wish_is_answered_at_once() {
    let (feed, told) = start(LONG, || Ok(()));
    for wish in [
        Wish::Groups,
        Wish::Tree,
        Wish::Waits,
        Wish::Sockets(SocketsQuery::default()),
        Wish::Nodes,
        Wish::Letters,
        Wish::Processes(ProcessesQuery::default()),
        Wish::Process((1, "{shop|4294967326}".to_owned())),
    ] {
        feed.wish(wish.clone(), false);
        let (of, answer) = next(&told, answer);
        assert_eq!(of, wish);
        let is_right = match answer {
            Answer::Groups(_) => wish == Wish::Groups,
            Answer::Tree(_) => wish == Wish::Tree,
            Answer::Waits(_) => wish == Wish::Waits,
            Answer::Sockets(_) => matches!(wish, Wish::Sockets(_)),
            Answer::Nodes(_) => wish == Wish::Nodes,
            Answer::Letters(_) => wish == Wish::Letters,
            Answer::Processes(..) => matches!(wish, Wish::Processes(_)),
            Answer::Process(process) => process.is_some_and(|it| it.names == ["mailer"]),
        };
        assert!(is_right, "{wish:?}");
    }
}

#[test]
fn a_pause_asks_for_nothing() {
    let (feed, told) = start(LONG, || Ok(()));
    next(&told, |it| matches!(it, News::Cycles(_)).then_some(()));
    feed.wish(Wish::Nothing, true);
    feed.wish(Wish::Groups, true);
    feed.wish(Wish::Tree, false);
    assert_eq!(next(&told, answer).0, Wish::Tree);
}

#[test]
fn snapshots_come_again_and_again_and_cycles_now_and_then() {
    let (_feed, told) = start(Duration::from_millis(1), || Ok(()));
    let mut snapshots = 0;
    let mut cycles = 0;
    while cycles < 2 {
        match told.recv_timeout(PATIENCE).unwrap() {
            News::Snapshot(_) => snapshots += 1,
            News::Cycles(count) => {
                assert_eq!(count, Some(1));
                cycles += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(snapshots, CYCLES + 1);
}

#[test]
fn a_fault_is_told_and_pauses_grow() {
    let left = Mutex::new(2);
    let script = move || {
        let mut left = left.lock().unwrap();
        if *left > 0 {
            *left -= 1;
            return Err(unreachable());
        }
        Ok(())
    };
    let (_feed, told) = start(LONG, script);
    let lost = |news| match news {
        News::Lost(_, pause) => Some(pause),
        other => panic!("{other:?}"),
    };
    assert_eq!(next(&told, lost), PAUSES.0);
    assert_eq!(next(&told, lost), 2 * PAUSES.0);
    next(&told, |it| matches!(it, News::Snapshot(_)).then_some(()));
    let mut back_off = BackOff(PAUSES.0);
    let pauses = [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000];
    assert_eq!(
        pauses.map(|_| back_off.next()),
        pauses.map(Duration::from_millis)
    );
}

#[test]
fn a_fault_of_a_list_has_its_wish() {
    let refuse = || {
        Err(Fault::Refused {
            status: 400,
            sentence: "no".to_owned(),
        })
    };
    let (feed, told) = start(LONG, refuse);
    feed.wish(Wish::Tree, false);
    let fault = |news| match news {
        News::Fault(wish, fault) => Some((wish, fault.to_string())),
        _ => None,
    };
    let expected = (Wish::Tree, "refused (400): no".to_owned());
    assert_eq!(next(&told, fault), expected);
}

#[test]
fn the_threads_end_with_the_screen() {
    let (feed, told) = start(Duration::from_millis(1), || Ok(()));
    feed.wish(Wish::Groups, false);
    next(&told, answer);
    drop(told);
    let end = Instant::now() + PATIENCE;
    while Arc::strong_count(&feed) > 1 {
        assert!(Instant::now() < end, "a thread goes on without a screen");
        thread::yield_now();
    }
}

#[test]
fn missing_processes_are_asked_for_up_to_a_number() {
    let demo = Demo::by(|| Duration::from_mins(1));
    let mut before: Vec<Key> = (0..40).map(|it| (1, format!("{{shop|{it}}}"))).collect();
    let alive = (1, "{shop|4294967326}".to_owned());
    before.insert(0, alive.clone());
    let mut query = ProcessesQuery::default();
    query.filter = "type:shelf".parse().unwrap();
    let answer = ask(&demo, &Wish::Processes(query), &mut before).unwrap();
    let Ok(Answer::Processes(answer, gone)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!((gone.len(), before.len()), (ASKED - 1, 4));
    assert!(
        !gone.contains(&alive),
        "the mailer is another type, and lives"
    );
    assert_eq!(answer.processes.len(), 4);
}
