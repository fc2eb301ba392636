//! Addresses of processes of other schedulers: each way of sending by them, and their ends.

use crate::support::{PATIENCE, waiter};
use ganger_proc_api::{
    CancelReason, CommandError, Envelope, EnvelopeReceiver, ExitCause, Message, NotFound, Payload,
    Pid, Reply, SendError, SendErrorKind, Tag,
};
use ganger_sched::{
    Address, CallRefused, ContextExt as _, ExitAction, ExitKey, Recipient, Remote, RemoteLink,
    Scheduler, SystemEvent,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

#[derive(Default)]
struct State {
    /// The kind of refusal for the next messages, if any.
    refuses: Option<SendErrorKind>,
    /// With the mark of control messages.
    taken: Vec<(bool, Envelope)>,
    wakers: Vec<Waker>,
    actions: Vec<(Pid, Box<dyn ExitAction>)>,
    /// The keys of withdrawn actions.
    removed: Vec<(Pid, ExitKey)>,
}

/// A link to another node: it delivers nothing.
#[derive(Default)]
struct Link {
    state: Mutex<State>,
    waits: Condvar,
}

impl Link {
    fn take(&self, is_control: bool, envelope: Envelope) -> Result<(), SendError> {
        let mut state = self.state.lock().unwrap();
        if let Some(kind) = state.refuses {
            return Err(SendError::new(kind, envelope));
        }
        state.taken.push((is_control, envelope));
        Ok(())
    }

    /// Has the link take all from now on, or refuse for this.
    fn refuse(&self, kind: Option<SendErrorKind>) {
        let mut state = self.state.lock().unwrap();
        state.refuses = kind;
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn wait_for_a_waker(&self) {
        let state = self.state.lock().unwrap();
        let is_short = |state: &mut State| state.wakers.is_empty();
        let waited = self.waits.wait_timeout_while(state, PATIENCE, is_short);
        assert!(!waited.unwrap().1.timed_out(), "no sender waits");
    }

    /// Takes the numbers that were sent, with the mark of control messages. All were for the
    /// process.
    fn numbers(&self) -> Vec<(bool, u64)> {
        let taken = std::mem::take(&mut self.state.lock().unwrap().taken);
        let number = |(is_control, envelope): (bool, Envelope)| {
            assert_eq!(envelope.target, far());
            (is_control, envelope.message.take().unwrap())
        };
        taken.into_iter().map(number).collect()
    }
}

impl EnvelopeReceiver for Link {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        self.take(false, envelope)
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.take(true, envelope)
    }

    fn room(&self, target: Pid, waker: Waker) -> bool {
        assert_eq!(target, far());
        self.state.lock().unwrap().wakers.push(waker);
        self.waits.notify_all();
        true
    }
}

impl Remote for Link {
    fn add_exit_action(&self, process: Pid, action: Box<dyn ExitAction>) {
        let mut state = self.state.lock().unwrap();
        state.actions.push((process, action));
    }

    fn remove_exit_actions(&self, process: Pid, key: ExitKey) {
        self.state.lock().unwrap().removed.push((process, key));
    }

    fn cancel(&self, process: Pid, _: CancelReason) -> Result<(), NotFound> {
        Err(NotFound { pid: process })
    }

    fn terminate(&self, process: Pid) -> Result<(), NotFound> {
        Err(NotFound { pid: process })
    }

    fn link(&self, _: RemoteLink) {}

    fn unlink(&self, _: RemoteLink) {}

    fn signal(&self, _: RemoteLink, _: ExitCause) {}

    fn exit(&self, target: Pid, _: Pid, _: ExitCause) -> Result<(), NotFound> {
        Err(NotFound { pid: target })
    }
}

fn far() -> Pid {
    "{beta@main|7}".parse().unwrap()
}

fn linked() -> (Scheduler, Arc<Link>) {
    let link = Arc::new(Link::default());
    let builder = Scheduler::builder().workers(1).node("alpha");
    let builder = builder.remote(link.clone()).router(link.clone());
    (builder.start().unwrap(), link)
}

fn address_in(scheduler: &Scheduler) -> Address<u64> {
    scheduler.address(far()).unwrap().typed().unwrap()
}

fn poll(future: &mut (impl Future + Unpin)) -> Option<()> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(future).poll(&mut context) {
        Poll::Ready(_) => Some(()),
        Poll::Pending => None,
    }
}

// pins: B17
#[test]
fn each_way_of_sending_goes_to_the_router() {
    let (scheduler, link) = linked();
    let address = address_in(&scheduler);
    assert_eq!(address.pid(), far());
    address.send(1).unwrap();
    address.send_control(2).unwrap();
    address.send_blocking(3).unwrap();
    address.send_timeout(4, Duration::ZERO).unwrap();
    assert!(poll(&mut address.send_async(5)).is_some());
    let recipient: Recipient<u64> = address.recipient();
    recipient.send(6).unwrap();
    assert_eq!(recipient.pid(), far());
    let lot = [7, 8].map(|n| Message::new("", Payload::any::<u64>(n)));
    address.untyped().send_all(lot).unwrap();
    address.untyped().send_value(9_u64).unwrap();
    recipient.send_system(10).unwrap();
    let sent = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|n| (n == 2 || n == 10, n));
    assert_eq!(link.numbers(), sent);
}

// pins: B17
#[test]
fn each_refusal_of_the_router_is_the_error_of_the_send_with_the_message() {
    let (scheduler, link) = linked();
    let address = address_in(&scheduler);
    for kind in [SendErrorKind::NoConnection, SendErrorKind::Full] {
        link.refuse(Some(kind));
        let refusals = [
            (address.send(1), 1),
            (address.send_control(2), 2),
            (address.recipient().send(3_u64), 3),
            (address.untyped().send_value(4_u64), 4),
        ];
        for (refused, number) in refusals {
            let refused = refused.unwrap_err();
            assert_eq!((refused.kind, refused.envelope.target), (kind, far()));
            assert_eq!(refused.into_message::<u64>().unwrap(), number);
        }
    }
    let lot = [7, 8].map(|n| Message::new("", Payload::any::<u64>(n)));
    let refused = address.untyped().send_all(lot).unwrap_err();
    assert_eq!((refused.kind, refused.sent), (SendErrorKind::Full, 0));
    let left = refused.messages.into_iter().map(|it| it.take().unwrap());
    assert_eq!(left.collect::<Vec<u64>>(), [7, 8]);
    let refused = address.recipient().send_system(9_u64).unwrap_err();
    assert!(matches!(*refused.event, SystemEvent::Control(_)));
    assert_eq!(refused.pid, far());
    assert_eq!(link.numbers(), []);
}

// pins: B17, B16
#[test]
fn senders_wait_for_the_room_of_the_router() {
    let (scheduler, link) = linked();
    let address = address_in(&scheduler);
    link.refuse(Some(SendErrorKind::Full));
    let timed_out = address.send_timeout(1, Duration::ZERO).unwrap_err();
    assert_eq!(timed_out.kind, SendErrorKind::Timeout);
    thread::scope(|scope| {
        let sends = scope.spawn(|| address.send_blocking(2));
        link.wait_for_a_waker();
        link.refuse(None);
        sends.join().unwrap().unwrap();
    });
    link.refuse(Some(SendErrorKind::Full));
    let (mut waits, mut leaves) = (address.send_async(3), address.send_async(4));
    assert!(poll(&mut waits).is_none() && poll(&mut leaves).is_none());
    assert_eq!(link.state.lock().unwrap().wakers.len(), 2);
    link.refuse(None);
    assert!(poll(&mut waits).is_some());
    let left = leaves.into_envelope().unwrap();
    assert_eq!(left.message.take::<u64>().unwrap(), 4);
    assert_eq!(link.numbers(), [(false, 2), (false, 3)]);
    // The connection may be lost meanwhile.
    link.refuse(Some(SendErrorKind::Full));
    thread::scope(|scope| {
        let sends = scope.spawn(|| address.send_blocking(5));
        link.wait_for_a_waker();
        link.refuse(Some(SendErrorKind::NoConnection));
        let refused = sends.join().unwrap().unwrap_err();
        assert_eq!(refused.kind, SendErrorKind::NoConnection);
        assert_eq!(refused.into_message::<u64>().unwrap(), 5);
    });
}

enum Count {
    Get(Reply<u64>),
}

// pins: B17, B18
#[test]
fn a_call_goes_to_the_router_and_its_refusal_is_the_error_of_the_call() {
    let (scheduler, link) = linked();
    let address: Address<Count> = scheduler.address(far()).unwrap().typed().unwrap();
    let call = address.call(Count::Get);
    assert_eq!(call.pid(), Some(far()));
    let answer = call.begin();
    let (_, envelope) = link.state.lock().unwrap().taken.pop().unwrap();
    let Count::Get(reply) = envelope.message.take().unwrap();
    reply.complete(42);
    assert_eq!(answer.wait().unwrap(), 42);

    link.refuse(Some(SendErrorKind::NoConnection));
    let Err(CommandError::Failed(error)) = address.call(Count::Get).wait() else {
        panic!("it was asked");
    };
    let refused = error.downcast_ref::<CallRefused>().unwrap();
    assert_eq!(
        (refused.pid, refused.kind),
        (far(), SendErrorKind::NoConnection)
    );
}

struct Ends(Sender<(Pid, ExitCause)>, Tag);

impl ExitAction for Ends {
    fn tell(self: Box<Self>, pid: Pid, cause: &ExitCause) {
        self.0.send((pid, cause.clone())).unwrap();
    }

    fn key(&self) -> Option<ExitKey> {
        Some(ExitKey::new(1, self.1))
    }
}

// pins: B17, B13
#[test]
fn exit_actions_go_to_the_remote() {
    let (scheduler, link) = linked();
    let address = scheduler.address(far()).unwrap();
    let (tell, told) = channel();
    address.add_exit_action(Box::new(Ends(tell, 3))).unwrap();
    let (pid, action) = link.state.lock().unwrap().actions.pop().unwrap();
    action.tell(pid, &ExitCause::NoConnection);
    assert_eq!(told.recv().unwrap(), (far(), ExitCause::NoConnection));
    let key = ExitKey::new(1, 3);
    address.remove_exit_actions(key);
    let removed = std::mem::take(&mut link.state.lock().unwrap().removed);
    assert!(matches!(&removed[..], [(pid, it)] if *pid == far() && *it == key));
}

// pins: B17
#[test]
fn an_address_is_of_one_process_wherever_it_is() {
    let (scheduler, link) = linked();
    let (one, other) = (scheduler.address(far()).unwrap(), address_in(&scheduler));
    assert!(one.is_same(&other) && !one.is_closed() && !one.is_own());
    let another = scheduler.address("{beta@main|8}".parse().unwrap());
    assert!(!one.is_same(&another.unwrap()));
    let own = scheduler.submit(waiter(), "main", ()).unwrap();
    let here = scheduler.address(scheduler.absolute(own.pid())).unwrap();
    assert!(here.is_same(own.address()) && !here.is_same(&one));
    // A host of the same node, by either PID.
    let host = "{alpha@side|7}".parse().unwrap();
    let pid = scheduler.address(host).unwrap().pid();
    assert_eq!(pid, "{side|7}".parse().unwrap());
    // The waker of a far process does nothing.
    one.waker().wake();
    assert!(one.incarnation_end().is_none());
    assert_eq!(
        format!("{one:?} {:?}", other.recipient::<u64>()),
        format!("Address({0:?}) Recipient({0:?})", far())
    );
    drop(link);
}

// pins: B17
#[test]
fn without_a_remote_only_processes_of_the_scheduler_have_an_address() {
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    assert!(scheduler.address(far()).is_none());
    assert!(
        scheduler
            .address(Pid::new(far().host(), u64::MAX))
            .is_none()
    );
}

// pins: B17
#[test]
fn a_step_sends_and_asks_by_a_far_address() {
    let (scheduler, link) = linked();
    let address = address_in(&scheduler);
    let step = ganger_proc_api::process_fn(move |ctx, _, out| {
        assert!(ctx.scheduler().is_some() && !address.untyped().is_own());
        address.send(1)?;
        out.done(());
        Ok(())
    });
    assert!(scheduler.spawn(step).unwrap().wait().is_done());
    assert_eq!(link.numbers(), [(false, 1)]);
}
