//! Two runtimes of the same program, each a peer of the other.

use crate::support::Echo;
use ganger::Runtime;
use ganger::prelude::*;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn node(name: &str) -> Runtime {
    let scheduler = Scheduler::builder().workers(1);
    let runtime = Runtime::builder().node(name).scheduler(scheduler);
    let runtime = runtime.build().unwrap();
    runtime.start().unwrap();
    runtime
}

fn connect(one: &Runtime, other: &Runtime) {
    let add = |to: &Runtime, peer: &Runtime| {
        let name = peer.router().local().name();
        let router = Arc::clone(peer.router());
        to.router().add_peer(name, router).unwrap();
    };
    add(one, other);
    add(other, one);
}

/// Sends its question with its own PID among the payloads, and ends with both when the answer
/// comes.
struct Asker {
    whom: Pid,
    has_asked: bool,
}

impl Process for Asker {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if !mem::replace(&mut self.has_asked, true) {
            let own = ctx.pid().with_node(ctx.node_name());
            ctx.send(self.whom, "question", own.to_string())?;
        }
        for event in events {
            if let Event::Message(message) = event {
                let text = message.payloads.into_first();
                out.done(format!(
                    "{} from {:?}",
                    text.as_str().unwrap(),
                    message.source
                ));
            }
        }
        Ok(())
    }
}

// pins: R3
#[test]
fn a_process_answers_one_of_another_node() {
    let (alpha, beta) = (node("alpha"), node("beta"));
    connect(&alpha, &beta);
    // Both schedulers have a process with the same name of a host and the same id. If the answer
    // went to a PID without a node, a process of the answering node would get it.
    let same = Pid::new(beta.host_name(), 1);
    let stranger = beta.submit_as(same, Echo, "echo", ()).unwrap();
    let echo = beta.submit(Echo, "echo", ()).unwrap();
    let whom = echo.pid().with_node(beta.node_name());
    let has_asked = false;
    let asker = Asker { whom, has_asked };
    let asker = alpha.submit_as(same, asker, "ask", ()).unwrap();
    assert_eq!(asker.pid(), stranger.pid());

    let own = asker.pid().with_node(alpha.node_name());
    let reason = asker.wait_timeout(PATIENCE).expect("an answer");
    let expected = format!("{own} from Some({whom})");
    match &reason {
        ExitReason::Done(text) => assert_eq!(text.as_str(), Some(&*expected)),
        other => panic!("{other}"),
    }
    assert!(echo.wait_timeout(PATIENCE).is_ok());
    for runtime in [alpha, beta] {
        runtime.stop(Duration::ZERO).unwrap();
    }
    let reason = stranger.wait_timeout(PATIENCE);
    assert!(matches!(reason, Ok(ExitReason::Terminated)));
}
