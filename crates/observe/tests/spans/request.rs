//! A request, through each part of a cause's way.

use crate::kept::{behind, exporter, field, id, links, named, of_host};
use ganger_observe::{Steps, trace_steps};
use ganger_proc_api::{Actor, Completion, Context, Message, Reply, StepOutput, StepResult};
use ganger_sched::{Address, ContextExt, Scheduler};
use ganger_supervise::{Pool, PoolRemote};
use ganger_task::Cx;
use opentelemetry::trace::SpanId;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Hands requests on.
struct Front(Address<Work>);

impl Actor for Front {
    type Message = u64;

    fn receive(&mut self, _: &Context, number: u64, _: &mut StepOutput) -> StepResult {
        self.0.send(Work(number))?;
        Ok(())
    }
}

struct Work(u64);

/// Asks the ledger, then the pool, and then tells the end.
struct Middle {
    ledger: Address<Question>,
    pool: PoolRemote<u64, u64>,
    last: Address<Done>,
}

const LEDGER: u64 = 1;
const POOL: u64 = 2;

impl Actor for Middle {
    type Message = Work;

    fn receive(&mut self, _: &Context, Work(number): Work, out: &mut StepOutput) -> StepResult {
        let call = self.ledger.call(move |reply| Question(number, reply));
        out.ask(call, LEDGER);
        Ok(())
    }

    fn completed(&mut self, _: &Context, answer: Completion, out: &mut StepOutput) -> StepResult {
        let tag = answer.tag;
        let number = answer.take::<u64>()?;
        if tag == LEDGER {
            out.ask(self.pool.call(number), POOL);
        } else {
            self.last.send(Done("by the pool", number))?;
        }
        Ok(())
    }
}

struct Question(u64, Reply<u64>);

/// Starts a task for each question.
struct Ledger(Address<Done>);

impl Actor for Ledger {
    type Message = Question;

    fn receive(&mut self, ctx: &Context, question: Question, _: &mut StepOutput) -> StepResult {
        let last = self.0.clone();
        ctx.spawn(async move |cx: Cx| {
            cx.sleep(Duration::from_millis(2)).await?;
            let late = Message::of(Done("late", question.0));
            let delay = Duration::from_millis(1);
            let _timer = cx
                .context()
                .send_after(delay, last.pid(), late.topic, late.payloads);
            question.1.complete(question.0 + 1);
            Ok(())
        })?;
        Ok(())
    }
}

struct Done(&'static str, u64);

/// Hears of both ways.
struct Last(u32, Sender<u64>);

impl Actor for Last {
    type Message = Done;

    fn receive(
        &mut self,
        _: &Context,
        Done(_way, number): Done,
        out: &mut StepOutput,
    ) -> StepResult {
        self.0 += 1;
        if self.0 == 2 {
            self.1.send(number)?;
            out.done(());
        }
        Ok(())
    }
}

// pins: V13
#[test]
fn one_request_is_one_linked_whole() {
    exporter();
    let builder = Scheduler::builder().workers(2).host("whole");
    // Nothing begins by itself.
    let scheduler = trace_steps(builder, Steps::all().rate(0, 1))
        .start()
        .unwrap();
    let (tell, told) = channel();
    let last = scheduler.spawn(Last(0, tell)).unwrap();
    let pool = Pool::new(2, || |number: u64| Ok(number * 10))
        .start(&scheduler)
        .unwrap();
    let ledger = scheduler.spawn(Ledger(last.address().clone())).unwrap();
    let middle = Middle {
        ledger: ledger.address().clone(),
        pool: pool.remote(),
        last: last.address().clone(),
    };
    let middle = scheduler.spawn(middle).unwrap();
    let front = scheduler.spawn(Front(middle.address().clone())).unwrap();

    tracing::info_span!("request").in_scope(|| front.send(7).unwrap());
    told.recv().unwrap();
    assert!(last.wait().is_done());
    pool.stop();
    scheduler.stop(Duration::from_secs(5)).unwrap();
    drop((front, middle, ledger, scheduler));

    let request = named("request");
    let spans = of_host("whole");
    // Each step leads back to the request, by links alone.
    for span in &spans {
        assert_eq!(span.parent_span_id, SpanId::INVALID, "a root");
        let behind = behind(span, &spans);
        assert!(behind.contains(&id(&request).to_bytes()), "{span:?}");
    }
    let of = |part: &str| {
        let is_of = |it: &&_| field(it, "type").unwrap().contains(part);
        spans.iter().filter(is_of).collect::<Vec<_>>()
    };
    // The answers of the ledger and of the pool are a step each.
    let counts = [
        "Front",
        "Middle",
        "request::Ledger",
        "in_place::Place",
        "Last",
    ]
    .map(|it| of(it).len());
    assert_eq!(counts[0], 1, "{counts:?}");
    assert_eq!(counts[1], 3, "{counts:?}");
    let types: Vec<_> = spans.iter().map(|it| field(it, "type").unwrap()).collect();
    assert!(counts[3] >= 1 && counts[4] >= 1, "{counts:?} {types:?}");
    // The task steps when it begins and when it has slept.
    assert_eq!(of("{{closure}}").len(), 2);
    let first = of("Front")[0];
    assert_eq!(links(first), [id(&request)]);
    // Both ways are behind the end.
    let ends: Vec<_> = of("Last").iter().map(|it| behind(it, &spans)).collect();
    for part in ["{{closure}}", "Middle", "request::Ledger"] {
        for span in of(part) {
            let is_behind = ends.iter().any(|it| it.contains(&id(span).to_bytes()));
            assert!(is_behind, "{span:?}");
        }
    }
}

// pins: V13
#[test]
fn a_parent_follows_from_the_end_of_its_child() {
    exporter();
    let builder = Scheduler::builder().workers(1).host("ends");
    let scheduler = trace_steps(builder, Steps::all().rate(0, 1))
        .start()
        .unwrap();
    let parent = async |cx: Cx| {
        let child = async |_: Cx| Ok(());
        let (child, end) = cx.monitored(|spawner| spawner.spawn(child))?;
        end.await?;
        cx.sleep(Duration::from_millis(1)).await?;
        Ok(child.pid().to_string())
    };
    let family = tracing::info_span!("family");
    let parent = family.in_scope(|| scheduler.spawn(parent)).unwrap();
    drop(family);
    let pid = parent.pid().to_string();
    let child: String = parent.wait().take().unwrap();
    scheduler.stop(Duration::from_secs(5)).unwrap();
    let family = named("family");
    let spans = of_host("ends");
    let of = |pid: &str| {
        let is_of = |it: &&_| field(it, "pid").as_deref() == Some(pid);
        spans.iter().filter(is_of).collect::<Vec<_>>()
    };
    assert!(of(&pid).len() >= 3);
    let last = of(&child)[0];
    assert!(of(&pid).iter().any(|it| links(it).contains(&id(last))));
    for span in &spans {
        assert!(
            behind(span, &spans).contains(&id(&family).to_bytes()),
            "{span:?}"
        );
    }
}
