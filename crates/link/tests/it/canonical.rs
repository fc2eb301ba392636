//! A PID with the name of its own node is the same process for every call with a PID.

use crate::support::{PATIENCE, Strings, exit, puppet};
use ganger_link::commands::{Link, Unlink};
use ganger_link::{Groups, Lane, LinkContext, Registry, Target};
use ganger_proc_api::{
    Context, ExitCause, ExitNotice, Message, Pid, Process, StepOutput, StepResult, UpgradeRequest,
    process_fn,
};
use ganger_sched::{Builder, ExitAction, ExitKey, Handle, Scheduler, SystemEvent, commands};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

/// The acting process, and the process named by the PID.
struct Two {
    scheduler: Handle,
    acts: Strings,
    named: Strings,
}

type Case = (&'static str, fn(&Two, Pid) -> String);

impl Two {
    /// Returns the result of a call by the acting process.
    fn by<R: Send + 'static>(
        &self,
        call: impl FnOnce(&Context, &mut StepOutput) -> R + Send + 'static,
    ) -> R {
        let (sender, receiver) = channel();
        self.acts.have(move |ctx, out| {
            let sent = sender.send(call(ctx, out));
            Ok(sent.map_err(|_| "no test waits for it")?)
        });
        receiver.recv_timeout(PATIENCE).unwrap()
    }

    /// Fails the named process, and returns the fates of the two.
    fn fails(self) -> String {
        self.named.tell(|_, _| Err("on purpose".into()));
        let named = exit(self.named.handle);
        // The acting process hears of all ends before it is asked to finish.
        self.acts.tell(|_, out| {
            out.done(());
            Ok(())
        });
        let told = Arc::clone(&self.acts.told);
        let acts = exit(self.acts.handle);
        let told = told.lock().unwrap();
        let told: Vec<_> = told
            .iter()
            .map(|(pid, _, cause)| (pid.node(), cause))
            .collect();
        format!("{named}, {acts}, {told:?}")
    }
}

struct Tells(Sender<ExitCause>);

impl ExitAction for Tells {
    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        let _ = self.0.send(cause.clone());
    }

    fn key(&self) -> Option<ExitKey> {
        Some(ExitKey::new(1, 1))
    }
}

fn is_ok<T, E>(result: Result<T, E>) -> String {
    if result.is_ok() { "ok" } else { "refused" }.to_owned()
}

fn idle() -> impl Process {
    process_fn(|_, events, _| -> StepResult {
        events.for_each(drop);
        Ok(())
    })
}

/// The answer to a command of the acting process, at its next step.
macro_rules! asked {
    ($two:ident, $command:expr) => {{
        let command = $command;
        $two.by(move |_, out| out.ask(command, 3));
        // Behind the answer.
        $two.by(|_, _| ());
    }};
}

/// Each call with a PID, and its outcome.
const CASES: &[Case] = &[
    ("Handle::is_local", |two, pid| {
        two.scheduler.is_local(pid).to_string()
    }),
    ("Handle::address", |two, pid| {
        two.scheduler
            .address(pid)
            .map(|it| it.pid().node())
            .is_some()
            .to_string()
    }),
    ("Handle::process", |two, pid| {
        two.scheduler.process(pid).is_some().to_string()
    }),
    ("Handle::terminate", |two, pid| {
        is_ok(two.scheduler.terminate(pid))
    }),
    ("Handle::cancel", |two, pid| {
        is_ok(two.scheduler.cancel(pid, "enough"))
    }),
    ("Handle::upgrade", |two, pid| {
        is_ok(
            two.scheduler
                .upgrade(pid, UpgradeRequest::process(idle(), "main", ())),
        )
    }),
    ("Handle::send", |two, pid| {
        is_ok(two.scheduler.send(Message::new("note", ()).to(pid)))
    }),
    ("Handle::send_control", |two, pid| {
        is_ok(two.scheduler.send_control(Message::new("note", ()).to(pid)))
    }),
    ("Handle::send_system", |two, pid| {
        let event = SystemEvent::Exit(ExitNotice::new(pid, 1, ExitCause::Done));
        is_ok(two.scheduler.send_system(pid, event))
    }),
    ("Handle::register_name", |two, pid| {
        let given = is_ok(two.scheduler.register_name("it", pid));
        format!("{given} {:?}", two.scheduler.whereis("it").map(Pid::node))
    }),
    ("Handle::submit_as", |two, pid| {
        let chosen = Pid::new(pid.host(), 7).with_node(pid.node());
        match two.scheduler.submit_as(chosen, idle(), "main", ()) {
            Ok(it) => format!("{:?}", it.pid().node()),
            Err(_) => "refused".to_owned(),
        }
    }),
    ("Handle::add_exit_action", |two, pid| {
        let (sender, told) = channel();
        let added = is_ok(two.scheduler.add_exit_action(pid, Box::new(Tells(sender))));
        two.scheduler.remove_exit_actions(pid, ExitKey::new(1, 1));
        two.scheduler.terminate(two.named.pid()).unwrap();
        format!("{added} {:?}", told.recv_timeout(PATIENCE).ok())
    }),
    ("Registry::end_of", |two, pid| {
        let end = two.scheduler.end_of(pid);
        two.scheduler.terminate(two.named.pid()).unwrap();
        end.map_or_else(
            |_| "refused".into(),
            |it| format!("{:?} {}", it.pid().node(), it.wait()),
        )
    }),
    ("Target::pid_in", |two, pid| {
        format!("{:?}", pid.pid_in(&two.scheduler).map(Pid::node).ok())
    }),
    ("Group::leave", |two, pid| {
        let group = Groups::of(&two.scheduler, "all").group("one");
        group.join(two.named.handle.address()).unwrap();
        format!("{} {}", group.leave(pid), group.members().len())
    }),
    ("Context::send", |two, pid| {
        is_ok(two.by(move |ctx, _| ctx.send(pid, "note", ())))
    }),
    ("Context::cancel", |two, pid| {
        is_ok(two.by(move |ctx, _| ctx.cancel(pid, "enough")))
    }),
    ("Context::terminate", |two, pid| {
        is_ok(two.by(move |ctx, _| ctx.terminate(pid)))
    }),
    ("Context::submit_as", |two, pid| {
        let chosen = Pid::new(pid.host(), 8).with_node(pid.node());
        let child = two.by(move |ctx, _| ctx.submit_as(chosen, idle(), "main", ()));
        child.map_or_else(|_| "refused".into(), |it| format!("{:?}", it.node()))
    }),
    ("LinkContext::exit", |two, pid| {
        is_ok(two.by(move |ctx, _| ctx.exit(pid, ExitCause::Terminated)))
    }),
];

type Begins = (&'static str, fn(&Two, Pid));

/// Each call with an effect at the end of the process.
const UNTIL_THE_END: &[Begins] = &[
    ("Context::monitor", |two, pid| {
        two.by(move |ctx, _| ctx.monitor(pid, 1).is_ok());
    }),
    ("Context::demonitor", |two, pid| {
        let own = two.named.pid();
        two.by(move |ctx, _| {
            ctx.monitor(own, 1).unwrap();
            ctx.demonitor(pid, 1);
        });
    }),
    ("LinkContext::link", |two, pid| {
        two.by(move |ctx, _| drop(ctx.link(pid)));
    }),
    ("LinkContext::link, traps", |two, pid| {
        two.by(|ctx, _| ctx.trap_exits(1));
        two.by(move |ctx, _| drop(ctx.link(pid)));
    }),
    ("LinkContext::unlink", |two, pid| {
        let own = two.named.pid();
        two.by(move |ctx, _| {
            ctx.link(own).unwrap();
            drop(ctx.unlink(pid));
        });
    }),
    ("LinkContext::watch", |two, pid| {
        two.by(move |ctx, _| drop(ctx.watch(pid, 1, Lane::InOrder)));
    }),
    ("commands::Link", |two, pid| {
        asked!(two, Link(pid));
    }),
    ("commands::Unlink", |two, pid| {
        let own = two.named.pid();
        two.by(move |ctx, _| ctx.link(own).unwrap());
        asked!(two, Unlink(pid));
    }),
    ("commands::Monitor", |two, pid| {
        asked!(
            two,
            commands::Monitor {
                target: pid,
                tag: 1
            }
        );
    }),
    ("commands::Demonitor", |two, pid| {
        let own = two.named.pid();
        two.by(move |ctx, _| ctx.monitor(own, 1).unwrap());
        asked!(
            two,
            commands::Demonitor {
                target: pid,
                tag: 1
            }
        );
    }),
];

fn scheduler() -> Scheduler {
    let builder: Builder = Scheduler::builder().workers(1).node("here");
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Calls with each form of the PID of a process of its own: without a node, with its own, with
/// another.
fn each_form(scheduler: &Scheduler, call: impl Fn(Two, Pid) -> String) -> [String; 3] {
    let nodes = [None, scheduler.node_name(), Some("there".parse().unwrap())];
    nodes.map(|node| {
        let [acts, named] = [(); 2].map(|()| puppet(scheduler));
        let pid = named.pid().with_node(node);
        let scheduler = scheduler.handle();
        call(
            Two {
                scheduler,
                acts,
                named,
            },
            pid,
        )
    })
}

// pins: P17
#[test]
fn a_pid_with_its_own_node_is_the_same_process_for_every_call() {
    for (name, call) in CASES {
        // A scheduler of its own, so that names and chosen PIDs are free.
        let outcome = |nth: usize| {
            let scheduler = scheduler();
            let nodes = [None, scheduler.node_name(), Some("there".parse().unwrap())];
            let [acts, named] = [(); 2].map(|()| puppet(&scheduler));
            let pid = named.pid().with_node(nodes[nth]);
            let two = Two {
                scheduler: scheduler.handle(),
                acts,
                named,
            };
            call(&two, pid)
        };
        let [own, with_node, elsewhere] = [0, 1, 2].map(outcome);
        assert_eq!(own, with_node, "{name}");
        assert_ne!(own, elsewhere, "{name}");
    }
    for (name, begin) in UNTIL_THE_END {
        let [own, with_node, elsewhere] = each_form(&scheduler(), |two, pid| {
            begin(&two, pid);
            two.fails()
        });
        assert_eq!(own, with_node, "{name}");
        assert_ne!(own, elsewhere, "{name}");
    }
}
