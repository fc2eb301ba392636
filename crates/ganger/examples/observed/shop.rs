//! The shop: the life of the program when nothing is wrong.

use ganger::net::{BufReader, TcpListener, TcpStream};
use ganger::prelude::*;
use ganger::supervise::{Overload, PoolRemote};
use std::net::SocketAddr;
use std::time::Duration;

/// Builds the tree. The shop restarts a failed child alone; its stock, a supervisor too, restarts
/// all.
pub(crate) fn tree(sessions: usize, busy: usize) -> Supervisor {
    let images = Pool::new(2, || image).queue(64, Overload::RefuseOldest);
    let (images, paint) = images.into_child("images");
    Supervisor::one_for_one()
        .label("shop")
        .intensity(50, Duration::from_secs(10))
        .with(ChildSpec::new("till", || Till { sales: 0 }).in_place())
        .child("stock", stock)
        .with(images)
        .child("printer", || printer)
        .child("sessions", move || {
            move |cx: Cx| keep_sessions(cx, sessions)
        })
        .child("clerks", move || move |cx: Cx| keep_clerks(cx, busy))
        .child("server", || server)
        .with(ChildSpec::new("report", || report).back_off(Duration::from_millis(500)))
        .child("customers", move || {
            let paint = paint.clone();
            move |cx: Cx| customers(cx, paint)
        })
}

fn stock() -> Supervisor {
    Supervisor::one_for_all()
        .label("stock")
        .intensity(1, Duration::from_secs(5))
        .child("shelf", || Shelf { taken: 0 })
        .child("scale", || Scale)
}

/// Takes the money.
struct Till {
    sales: u64,
}

/// A sale with its price, and the reply with the number of the sale.
pub(crate) struct Sale(u64, Reply<u64>);

impl Actor for Till {
    type Message = Sale;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        Ok(ctx.register_name("till")?)
    }

    fn receive(&mut self, _: &Context, Sale(price, reply): Sale, _: &mut StepOutput) -> StepResult {
        self.sales += 1;
        compute(price * 200);
        reply.complete(self.sales);
        Ok(())
    }
}

/// Has the goods.
struct Shelf {
    taken: u64,
}

pub(crate) enum Goods {
    Take(Reply<u64>),
    /// The shelf panics.
    Break,
}

impl Actor for Shelf {
    type Message = Goods;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        Ok(ctx.register_name("shelf")?)
    }

    fn receive(&mut self, _: &Context, goods: Goods, _: &mut StepOutput) -> StepResult {
        match goods {
            Goods::Take(reply) => {
                self.taken += 1;
                reply.complete(self.taken);
            }
            Goods::Break => panic!("the shelf is broken"),
        }
        Ok(())
    }
}

/// Weighs goods.
struct Scale;

impl Actor for Scale {
    type Message = (u64, Reply<u64>);

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        Ok(ctx.register_name("scale")?)
    }

    fn receive(
        &mut self,
        _: &Context,
        (goods, reply): Self::Message,
        _: &mut StepOutput,
    ) -> StepResult {
        reply.complete(goods % 50 + 1);
        Ok(())
    }
}

/// Runs a job of the pool.
fn image(size: u64) -> Result<u64, BoxError> {
    Ok(compute(size * 1_000))
}

/// Takes a while, and leaves the compiler nothing to leave out.
fn compute(rounds: u64) -> u64 {
    (0..rounds).fold(rounds, |sum, round| {
        std::hint::black_box(sum.rotate_left(5) ^ round)
    })
}

/// Prints a line in a millisecond. Lines wait in the mailbox meanwhile.
async fn printer(cx: Cx<String>) -> Result<(), BoxError> {
    cx.context().register_name("printer")?;
    while cx.recv().await.is_some() {
        cx.sleep(Duration::from_millis(1)).await?;
    }
    Ok(())
}

/// Has a new customer each 20 ms, of seven tenants in turn.
async fn customers(cx: Cx, paint: PoolRemote<u64, u64>) -> Result<(), BoxError> {
    let mut ticks = cx.every(Duration::from_millis(20));
    let mut number = 0;
    while ticks.next().await.is_ok() {
        number += 1;
        let paint = paint.clone();
        let spawner = cx.spawner().labelled(format!("tenant-{}", number % 7 + 1));
        spawner.spawn(move |cx: Cx<String>| customer(cx, number, paint))?;
    }
    Ok(())
}

/// Buys, has an image made and a line printed, and looks around for a while.
async fn customer(
    cx: Cx<String>,
    number: u64,
    paint: PoolRemote<u64, u64>,
) -> Result<(), BoxError> {
    let shelf = cx.lookup::<Goods>("shelf");
    let scale = cx.lookup::<(u64, Reply<u64>)>("scale");
    let (Ok(shelf), Ok(scale)) = (shelf, scale) else {
        return Ok(()); // The stock begins anew.
    };
    let Ok(goods) = cx.ask(shelf.call(Goods::Take)).await else {
        return Ok(());
    };
    let price = cx.ask(scale.call(move |reply| (goods, reply))).await?;
    let till = cx.lookup::<Sale>("till")?;
    let sale = cx.ask(till.call(move |reply| Sale(price, reply))).await?;
    if number.is_multiple_of(5) {
        cx.ask(paint.call(price)).await?;
    }
    if let Ok(printer) = cx.lookup::<String>("printer") {
        printer.send(format!("sale {sale}: {price} coins"))?;
    }
    // Some customers have left when they are reminded: a dead letter.
    let reminder = Payload::any("the shop closes soon".to_owned());
    let ctx = cx.context();
    let _ = ctx.send_after(Duration::from_millis(1_500), cx.pid(), "", reminder);
    let patience = Duration::from_millis(800 + number * 37 % 800);
    let _silence = cx.timeout(patience, cx.recv()).await;
    Ok(())
}

/// Keeps idle processes, and greets some of them.
async fn keep_sessions(cx: Cx, sessions: usize) -> Result<(), BoxError> {
    let mut open = Vec::new();
    for number in 0..sessions {
        let spawner = cx.spawner().labelled(format!("tenant-{}", number % 7 + 1));
        open.push(spawner.spawn(session)?);
    }
    let mut ticks = cx.every(Duration::from_millis(10));
    let mut number = 0;
    while ticks.next().await.is_ok() {
        number += 13;
        if !open.is_empty() {
            open[number % sessions].send("are you there?".to_owned())?;
        }
    }
    Ok(())
}

async fn session(cx: Cx<String>) -> Result<(), BoxError> {
    while cx.recv().await.is_some() {}
    Ok(())
}

/// Keeps busy processes.
async fn keep_clerks(cx: Cx, busy: usize) -> Result<(), BoxError> {
    for _ in 0..busy {
        cx.spawn(clerk)?;
    }
    cx.cancelled().await;
    Ok(())
}

/// Computes a little, ten times a second.
async fn clerk(cx: Cx) -> Result<(), BoxError> {
    let mut ticks = cx.every(Duration::from_millis(100));
    while ticks.next().await.is_ok() {
        compute(500);
    }
    Ok(())
}

/// Runs a job that fails now and then.
async fn report(cx: Cx) -> Result<(), BoxError> {
    for part in 1..=10 {
        cx.sleep(Duration::from_millis(100 * part)).await?;
        compute(100_000);
    }
    Err("the report has no last page".into())
}

/// Echoes lines. Four clients of its own talk with it over the loopback.
async fn server(cx: Cx) -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let incoming = listener.incoming(100);
    for _ in 0..4 {
        cx.spawn(move |cx: Cx| client(cx, address))?;
    }
    while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
        let (stream, _) = accepted?;
        cx.spawn(move |cx: Cx| echo(cx, stream))?;
    }
    Ok(())
}

async fn echo(cx: Cx, stream: TcpStream) -> Result<(), BoxError> {
    let (reads, writes) = stream.split();
    let mut reads = BufReader::new(reads);
    while let Ok(line) = cx.until_cancelled(reads.next_line(100)).await {
        let Some(line) = line? else { break };
        writes.write_all(format!("{line}\n").as_bytes()).await?;
    }
    Ok(())
}

/// Says a line each 50 ms, until the server is gone.
async fn client(cx: Cx, server: SocketAddr) -> Result<(), BoxError> {
    let (reads, writes) = TcpStream::connect(server).await?.split();
    let mut reads = BufReader::new(reads);
    loop {
        writes.write_all(b"good day\n").await?;
        if cx.until_cancelled(reads.next_line(100)).await??.is_none() {
            return Ok(());
        }
        cx.sleep(Duration::from_millis(50)).await?;
    }
}
