//! The forms of a PID.

use super::parts::{Seen, Strings};
use super::{Ground, Harness, Side};
use ganger_link::{Lane, LinkContext as _, Registry as _};
use ganger_proc_api::{Envelope, ExitCause, Pid};

/// Makes each call with both forms of a PID: with its node, and without where the process is at
/// home. Each call takes either form, and undoes a call with the other.
pub fn each_call_takes_pids_with_and_without_the_node<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let (near, far) = (harness.near(), harness.far());
    let all = [&near, &far].map(|caller| [(caller, &near), (caller, &far)]);
    for (caller, home) in all.into_iter().flatten() {
        let forms = |pid: Pid| {
            let whole = home.absolute(pid);
            assert!(whole.node().is_some());
            [whole, caller.canonical(whole)]
        };
        each_call(caller, home, forms);
        each_call(caller, home, |pid| {
            let [whole, short] = forms(pid);
            [short, whole]
        });
    }
}

/// Makes every call with the first form, and its opposite with the second.
fn each_call<G: Ground>(caller: &Side<G>, home: &Side<G>, forms: impl Fn(Pid) -> [Pid; 2]) {
    let puppet = Strings::start(caller);
    let target = Strings::start(home);
    let [pid, other] = forms(target.pid());
    let canonical = caller.canonical(pid);
    let message = |number: u64| Envelope::new(None, pid, "number", number);
    caller.send(message(1)).expect("it is sent");
    assert_eq!(target.number(), 1);
    caller.send_control(message(2)).expect("it is sent");
    assert!(matches!(target.next(), Seen::Control(_)));
    let address = caller.address(pid).expect("it has an address");
    assert_eq!(address.pid(), canonical);
    puppet.done(move |ctx, _| {
        ctx.send(pid, "number", 3_u64)?;
        ctx.monitor(pid, 1)?;
        ctx.demonitor(other, 1);
        ctx.link(pid)?;
        ctx.unlink(other)?;
        assert_eq!(ctx.links(), []);
        ctx.trap_exits(42);
        ctx.link(pid)?;
        ctx.link(other)?;
        assert_eq!(ctx.links(), [canonical]);
        ctx.monitor(pid, 2)?;
        ctx.watch(pid, 3, Lane::InOrder)?;
        Ok(())
    });
    assert_eq!(target.number(), 3);
    let end = caller.end_of(other).expect("it is asked");
    caller.cancel(pid, "enough").expect("it is asked");
    let cause = ExitCause::Cancelled("enough".into());
    let mut notices = [(); 3].map(|()| puppet.exit());
    notices.sort_by_key(|(_, tag, _)| *tag);
    assert_eq!(
        notices,
        [2, 3, 42].map(|tag| (canonical, tag, cause.clone()))
    );
    let ground = caller.ground;
    ground.eventually("the end is told", || end.cause() == Some(cause.clone()));
    drop(target.wait());
    let target = Strings::start(home);
    let [pid, other] = forms(target.pid());
    puppet.done(move |ctx, _| Ok(ctx.monitor(pid, 4)?));
    caller.terminate(other).expect("it is asked");
    let canonical = caller.canonical(pid);
    assert_eq!(puppet.exit(), (canonical, 4, ExitCause::Terminated));
    assert!(puppet.is_quiet());
}
