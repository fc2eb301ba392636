//! Starts at another node with links, in the orders that a race takes seldom.

use ganger_cluster::{Builder, Cluster, NodeId, Running, Twin};
use ganger_link::LinkContext as _;
use ganger_proc_api::{
    Actor, BoxError, Context, ExitCause, ExitNotice, NodeName, Pid, StepOutput, StepResult,
};
use ganger_sched::{Address, Call, ProcessHandle, Scheduler};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes over a twin.
pub(crate) struct Nodes {
    pub(crate) twin: Twin,
    _clock: Running,
}

impl Nodes {
    pub(crate) fn new() -> Self {
        let twin = Twin::new(3);
        twin.hints(true);
        let _clock = twin.run();
        Self { twin, _clock }
    }

    pub(crate) fn join(
        &self,
        name: &str,
        set: impl FnOnce(Builder) -> Builder,
    ) -> (Scheduler, Cluster) {
        let builder = Scheduler::builder().workers(2).node(name).quiet_failures();
        let scheduler = builder.start().unwrap();
        let node = Cluster::builder().cluster("test").engine(self.twin.port());
        let node = set(node).join(&scheduler).unwrap();
        (scheduler, node)
    }
}

pub(crate) fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

type Ask = Box<dyn FnOnce(&Address<Order>) -> Call<Pid> + Send>;

enum Order {
    Ask(Ask),
    Fail,
}

/// Traps exits, and shows the notices.
struct Trapper(Sender<ExitNotice>);

impl Actor for Trapper {
    type Message = Order;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        ctx.trap_exits(42);
        Ok(())
    }

    fn receive(&mut self, ctx: &Context, order: Order, out: &mut StepOutput) -> StepResult {
        use ganger_sched::ContextExt as _;
        match order {
            Order::Ask(call) => {
                out.ask(call(&ctx.address()?), 1);
                Ok(())
            }
            Order::Fail => Err("enough".into()),
        }
    }

    fn exited(&mut self, _: &Context, notice: ExitNotice, _: &mut StepOutput) -> StepResult {
        Ok(self.0.send(notice)?)
    }
}

fn trapper(scheduler: &Scheduler) -> (ProcessHandle<Order>, Receiver<ExitNotice>) {
    let (shows, shown) = channel();
    (scheduler.spawn(Trapper(shows)).unwrap(), shown)
}

fn exit(shown: &Receiver<ExitNotice>) -> ExitNotice {
    shown.recv_timeout(PATIENCE).unwrap()
}

// pins: B29
#[test]
fn the_signal_of_a_process_that_ends_before_the_answer_is_not_lost() {
    let nodes = Nodes::new();
    let (_beta, _) = nodes.join("beta", |node| {
        node.kind("brief.v1", |spawner, (): ()| {
            let brief = ganger_proc_api::process_fn(|_, _, _| Err("on purpose".into()));
            let brief = spawner.submit(brief, "main", ())?;
            // The answer leaves after the end.
            while !brief.is_finished() {
                thread::yield_now();
            }
            Ok(brief.pid())
        })
    });
    let (alpha, node) = nodes.join("alpha", |node| node);
    let (asker, shown) = trapper(&alpha);
    for _ in 0..3 {
        let start = node.spawn_on(name("beta"), "brief.v1", ());
        let start = start.linked(asker.address()).call();
        let pid = start.wait_timeout(PATIENCE).unwrap();
        let notice = exit(&shown);
        assert_eq!((notice.pid, notice.tag), (pid, 42));
        assert_eq!(notice.cause, ExitCause::Failed("on purpose".into()));
    }
}

// pins: B29
#[test]
fn an_asker_that_ends_before_the_answer_is_told_to_the_process_with_its_cause() {
    let nodes = Nodes::new();
    let (tell, told) = channel();
    let (_beta, _) = nodes.join("beta", |node| {
        node.kind("trapper.v1", move |spawner, (): ()| {
            Ok(spawner.spawn(Trapper(tell.clone()))?.pid())
        })
    });
    let (alpha, node) = nodes.join("alpha", |node| node);
    // They are connected.
    let nothing = node.whereis(name("beta"), "nothing").wait_timeout(PATIENCE);
    assert_eq!(nothing.unwrap(), None);
    let (asker, _shown) = trapper(&alpha);
    let beta = NodeId::new("beta").unwrap();
    nodes.twin.pause(&beta);
    let start = node.spawn_on(name("beta"), "trapper.v1", ());
    let ask = Order::Ask(Box::new(|own| start.linked(own).call()));
    asker.send(ask).unwrap();
    asker.send(Order::Fail).unwrap();
    let pid = alpha.absolute(asker.pid());
    drop(asker.wait_timeout(PATIENCE).unwrap());
    nodes.twin.resume(&beta);
    let notice = exit(&told);
    assert_eq!((notice.pid, notice.tag), (pid, 42));
    assert_eq!(notice.cause, ExitCause::Failed("enough".into()));
}

// pins: B26, B29
#[test]
fn a_watcher_and_a_linked_process_of_another_node_are_refused() {
    let nodes = Nodes::new();
    let (beta, _) = nodes.join("beta", |node| {
        node.kind("trapper.v1", |spawner, (): ()| {
            let (shows, _) = channel();
            Ok(spawner.spawn(Trapper(shows))?.pid())
        })
    });
    let (alpha, node) = nodes.join("alpha", |node| node);
    let (far, _shown) = trapper(&beta);
    let there = alpha.address(beta.absolute(far.pid())).unwrap();
    let start = || node.spawn_on(name("beta"), "trapper.v1", ());
    for start in [start().monitored_by(&there, 7), start().linked(&there)] {
        let refused = start.named("child").call().wait_timeout(PATIENCE);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("is of another node"), "{refused}");
    }
    let (gone, _) = trapper(&alpha);
    let address = gone.address().clone();
    alpha.terminate(gone.pid()).unwrap();
    drop(gone.wait_timeout(PATIENCE).unwrap());
    let refused = start().named("child").linked(&address).call();
    let refused = refused.wait_timeout(PATIENCE).unwrap_err().to_string();
    assert!(refused.contains("has ended"), "{refused}");
    let many = (0..17).fold(start(), |start, number| start.named(format!("{number}")));
    let refused = many.call().wait_timeout(PATIENCE).unwrap_err().to_string();
    assert!(refused.contains("at most 16 names"), "{refused}");
    // None of them was started.
    assert_eq!(beta.whereis("child"), None);
    let found = node.whereis(name("beta"), "child").wait_timeout(PATIENCE);
    assert_eq!(found.unwrap(), None);
}
