//! Programs with a bug each, of the kinds that users write. Each takes hundreds of moves, most of
//! them unrelated to the bug.

use ganger_proc_api::{
    Actor, BoxError, Context, ExitReason, Pid, Reply, StepOutput, StepResult, TypedCommand,
};
use ganger_sched::{Address, ContextExt, ProcessHandle};
use ganger_sim::Rt;
use ganger_task::{Cx, WaitError};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn wait_for_all<M>(rt: &Rt<'_>, processes: Vec<ProcessHandle<M>>) {
    for process in processes {
        let end = rt.wait(process);
        assert!(end.is_done(), "{end:?}");
    }
}

// ---- Lost update

enum Stock {
    Get(Reply<u64>),
    Set(u64),
}

struct Shelf(u64);

impl Actor for Shelf {
    type Message = Stock;

    fn receive(&mut self, _: &Context, message: Stock, _: &mut StepOutput) -> StepResult {
        match message {
            Stock::Get(reply) => reply.complete(self.0),
            Stock::Set(number) => self.0 = number,
        }
        Ok(())
    }
}

/// Raises the number on its shelf, in two messages: another may raise it between them.
async fn restock(shelf: Address<Stock>, times: u64) -> Result<(), BoxError> {
    for _ in 0..times {
        let number = shelf.call(Stock::Get).await?;
        shelf.send(Stock::Set(number + 1))?;
    }
    Ok(())
}

pub(super) fn lost_update(rt: &Rt<'_>) {
    const TIMES: u64 = 3;
    let clerks = 2 + rt.choose(40);
    let shelves = [(); 3].map(|()| rt.spawn(Shelf(0)).unwrap());
    let mut working = Vec::new();
    for nth in 0..clerks {
        let shelf = shelves[rt.choose(nth.min(2) + 1)].address().clone();
        working.push(
            rt.spawn(async move |_: Cx| restock(shelf, TIMES).await)
                .unwrap(),
        );
    }
    wait_for_all(rt, working);
    let on = |shelf: &ProcessHandle<Stock>| rt.answer(shelf.call(Stock::Get)).unwrap();
    let total: u64 = shelves.iter().map(on).sum();
    assert_eq!(total, clerks as u64 * TIMES, "a raise is lost");
}

// ---- Lost reply

struct LookUp(u64);

impl TypedCommand for LookUp {
    type Answer = u64;
}

/// A question, the number of the attempt, and where the answer goes.
struct Ask(u64, u64, Pid);

/// Answers each question once, however often it is asked.
async fn answer(cx: Cx<Ask>) -> Result<(), BoxError> {
    let mut asked = HashSet::new();
    while let Some(Ask(question, attempt, client)) = cx.recv().await {
        if asked.insert(question) {
            let found = cx.command(LookUp(question)).await?;
            // The client may have ended.
            let _gone = cx.send(client, (attempt, found));
        }
    }
    Ok(())
}

/// Asks again after 50 ms, and takes only the answer to its last attempt.
async fn client(cx: Cx<(u64, u64)>, server: Pid, question: u64) -> Result<(), BoxError> {
    for attempt in 0..3 {
        cx.send(server, Ask(question, attempt, cx.pid()))?;
        let is_last = move |&(answered, _): &(u64, u64)| answered == attempt;
        match cx.timeout(ms(50), cx.recv_where(is_last)).await {
            Ok(_) => return Ok(()),
            Err(WaitError::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("there is no answer".into())
}

pub(super) fn lost_reply(rt: &Rt<'_>) {
    rt.register_for(|LookUp(question), reply| {
        reply.complete(question * question);
        Ok(())
    })
    .unwrap();
    let server = rt.spawn(answer).unwrap().pid();
    let clients = (0..2 + rt.choose(30) as u64).map(|question| {
        let body = async move |cx: Cx<(u64, u64)>| client(cx, server, question).await;
        rt.spawn(body).unwrap()
    });
    wait_for_all(rt, clients.collect());
}

// ---- Lock order

enum Lock {
    Take(Reply<()>),
    PutBack,
}

#[derive(Default)]
struct OneLock {
    is_taken: bool,
    waiting: VecDeque<Reply<()>>,
}

impl Actor for OneLock {
    type Message = Lock;

    fn receive(&mut self, _: &Context, message: Lock, _: &mut StepOutput) -> StepResult {
        match message {
            Lock::Take(reply) => self.waiting.push_back(reply),
            Lock::PutBack => self.is_taken = false,
        }
        if !self.is_taken
            && let Some(next) = self.waiting.pop_front()
        {
            self.is_taken = true;
            next.complete(());
        }
        Ok(())
    }
}

/// Takes the locks of the two accounts in turn: another transfer may take them the other way round.
async fn transfer(from: Address<Lock>, to: Address<Lock>) -> Result<(), BoxError> {
    from.call(Lock::Take).await?;
    to.call(Lock::Take).await?;
    to.send(Lock::PutBack)?;
    from.send(Lock::PutBack)?;
    Ok(())
}

pub(super) fn lock_order(rt: &Rt<'_>) {
    let locks = [(); 4].map(|()| rt.spawn(OneLock::default()).unwrap());
    let lock = |nth: usize| locks[nth].address().clone();
    let mut transfers = Vec::new();
    for _ in 0..2 + rt.choose(40) {
        let from = rt.choose(4);
        let to = (from + 1 + rt.choose(3)) % 4;
        let (from, to) = (lock(from), lock(to));
        transfers.push(
            rt.spawn(async move |_: Cx| transfer(from, to).await)
                .unwrap(),
        );
    }
    wait_for_all(rt, transfers);
}

// ---- Shutdown in the wrong order

enum Line {
    Write,
    Close(Reply<u64>),
}

/// Ends when it is closed, with the number of its lines.
#[derive(Default)]
struct Log(u64);

impl Actor for Log {
    type Message = Line;

    fn receive(&mut self, _: &Context, message: Line, out: &mut StepOutput) -> StepResult {
        match message {
            Line::Write => self.0 += 1,
            Line::Close(reply) => {
                reply.complete(self.0);
                out.done(());
            }
        }
        Ok(())
    }
}

/// Passes its lines on; writes a last line when it is told to end.
async fn source(cx: Cx<u64>, log: Address<Line>) -> Result<(), BoxError> {
    while let Some(_line) = cx.recv().await {
        log.send(Line::Write)?;
    }
    // The log may be gone, and is not asked for.
    let _lost = log.send(Line::Write);
    Ok(())
}

/// Closes the log in the wrong place: at once after the sources are told to end, in the place of
/// after their end.
pub(super) fn shutdown(rt: &Rt<'_>) {
    let log = rt.spawn(Log::default()).unwrap();
    let lines = 1 + rt.choose(20) as u64;
    let sources: Vec<_> = (0..1 + rt.choose(40))
        .map(|_| {
            let log = log.address().clone();
            rt.spawn(async move |cx: Cx<u64>| source(cx, log).await)
                .unwrap()
        })
        .collect();
    for line in 1..=lines {
        sources.iter().for_each(|it| it.send(line).unwrap());
        rt.run_for(ms(1));
    }
    let of = sources.len() as u64;
    sources
        .iter()
        .for_each(|it| rt.cancel(it.pid(), "that is all").unwrap());
    let written = rt.answer(log.call(Line::Close)).unwrap();
    wait_for_all(rt, sources);
    assert_eq!(written, of * (lines + 1), "lines are lost");
}

// ---- Eviction

enum Session {
    Add(u64),
    Evict,
}

struct Cart(u64, Address<Desk>);

impl Actor for Cart {
    type Message = Session;

    fn receive(&mut self, _: &Context, message: Session, out: &mut StepOutput) -> StepResult {
        match message {
            Session::Add(number) => self.0 += number,
            Session::Evict => {
                // The rest of the mailbox goes with the session.
                self.1.send(Desk::Keep(self.0))?;
                out.done(());
            }
        }
        Ok(())
    }
}

enum Desk {
    /// The cart of a user, started if the user has none.
    Find(u64, Reply<Address<Session>>),
    /// The sum of the user's purchases so far.
    Keep(u64),
    Evict(u64),
    Total(Reply<u64>),
}

#[derive(Default)]
struct Front {
    carts: HashMap<u64, Address<Session>>,
    kept: u64,
}

impl Actor for Front {
    type Message = Desk;

    fn receive(&mut self, ctx: &Context, message: Desk, _: &mut StepOutput) -> StepResult {
        match message {
            Desk::Find(user, reply) => {
                let cart = match self.carts.entry(user) {
                    Entry::Occupied(cart) => cart.into_mut(),
                    Entry::Vacant(place) => place.insert(ctx.spawn(Cart(0, ctx.address()?))?),
                };
                reply.complete(cart.clone());
            }
            Desk::Keep(number) => self.kept += number,
            Desk::Evict(user) => {
                if let Some(cart) = self.carts.remove(&user) {
                    cart.send(Session::Evict)?;
                }
            }
            Desk::Total(reply) => reply.complete(self.kept),
        }
        Ok(())
    }
}

/// Finds the cart, and then sends to it: it may have been evicted in between.
async fn buys(front: Address<Desk>, user: u64, times: u64) -> Result<(), BoxError> {
    for _ in 0..times {
        let cart = front.call(move |reply| Desk::Find(user, reply)).await?;
        let _gone = cart.send(Session::Add(1));
    }
    Ok(())
}

pub(super) fn eviction(rt: &Rt<'_>) {
    let front = rt.spawn(Front::default()).unwrap();
    let users = 1 + rt.choose(12) as u64;
    let times = 1 + rt.choose(12) as u64;
    let mut buyers = Vec::new();
    for user in 0..users {
        let desk = front.address().clone();
        buyers.push(
            rt.spawn(async move |_: Cx| buys(desk, user, times).await)
                .unwrap(),
        );
    }
    // The idle time of the carts is over now and then.
    let desk = front.address().clone();
    let evicts = rt.spawn(async move |cx: Cx| {
        for user in (0..users).cycle().take(12) {
            desk.send(Desk::Evict(user))?;
            cx.yield_now().await;
        }
        Ok(())
    });
    wait_for_all(rt, buyers);
    assert!(rt.wait(evicts.unwrap()).is_done());
    (0..users).for_each(|user| front.send(Desk::Evict(user)).unwrap());
    rt.settle();
    let total = rt.answer(front.call(Desk::Total)).unwrap();
    assert_eq!(total, users * times, "a purchase is lost");
}

// ---- Two guests in the same room

enum Room {
    IsFree(u64, Reply<bool>),
    Book(u64),
}

#[derive(Default)]
struct House(HashSet<u64>);

impl Actor for House {
    type Message = Room;

    fn receive(&mut self, _: &Context, message: Room, _: &mut StepOutput) -> StepResult {
        match message {
            Room::IsFree(room, reply) => reply.complete(!self.0.contains(&room)),
            Room::Book(room) => assert!(self.0.insert(room), "two guests in one room"),
        }
        Ok(())
    }
}

async fn guest(house: Address<Room>, rooms: u64) -> Result<(), BoxError> {
    for room in 0..rooms {
        if house.call(move |reply| Room::IsFree(room, reply)).await? {
            house.send(Room::Book(room))?;
            break;
        }
    }
    Ok(())
}

/// Starts as many guests as rooms.
pub(super) fn two_in_a_room(rt: &Rt<'_>) {
    let house = rt.spawn(House::default()).unwrap();
    let guests = 2 + rt.choose(60) as u64;
    for _ in 0..guests {
        let address = house.address().clone();
        rt.spawn(async move |_: Cx| guest(address, guests).await)
            .unwrap();
    }
    rt.settle();
    if house.is_finished() {
        let end = rt.wait(house);
        assert!(!matches!(end, ExitReason::Panicked(_)), "{end:?}");
    }
}
