use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The thread does 7.
struct Seven;

const DOING: Seven = Seven;

// SAFETY: reads nothing.
unsafe impl Doing for Seven {
    fn read(&self) -> u64 {
        7
    }
}

fn backtraces() -> Backtraces {
    Backtraces::new(None, 1, &[]).unwrap()
}

#[inline(never)]
fn waits_on_purpose(began: impl Fn(), until: &AtomicBool) {
    began();
    // Ordering: SeqCst: a test.
    while !until.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
    std::hint::black_box(());
}

/// Calls `f` with the id of a thread that has slot 0 and waits on purpose.
fn with_thread(backtraces: &Backtraces, f: impl FnOnce(u32)) {
    let is_over = AtomicBool::new(false);
    let (tell, told) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let id = crate::thread_id();
            backtraces.while_available(0, &DOING, &mut || {
                waits_on_purpose(|| tell.send(id).unwrap(), &is_over);
            });
        });
        let f = std::panic::AssertUnwindSafe(|| f(told.recv().unwrap()));
        let result = std::panic::catch_unwind(f);
        // Ordering: SeqCst: a test.
        is_over.store(true, Ordering::SeqCst);
        result.unwrap();
    });
}

/// Asks until the thread gets a processor in time.
fn copy(backtraces: &Backtraces, id: u32) -> Copied {
    let send = || signal::send(backtraces.signal, id);
    let mut copies = std::iter::repeat_with(|| backtraces.copy(0, || true, send));
    copies.by_ref().take(1_000).flatten().next().unwrap()
}

// pins: G6
#[test]
fn a_thread_is_found_in_the_function_that_it_is_in_each_time() {
    let backtraces = backtraces();
    with_thread(&backtraces, |id| {
        for _ in 0..100 {
            let text = backtraces.text(&copy(&backtraces, id)).unwrap();
            assert!(text.contains("waits_on_purpose"), "{text}");
            // The backtrace reaches the end of the stack.
            assert!(text.contains("thread"), "{text}");
        }
    });
}

// pins: G6
#[test]
fn what_is_over_by_the_time_of_the_answer_or_of_the_question_has_none() {
    let backtraces = backtraces();
    with_thread(&backtraces, |id| {
        let _ = copy(&backtraces, id);
        for after in [0, 1] {
            let looks = std::cell::Cell::new(0);
            let is_current = || looks.replace(looks.get() + 1) < after;
            let mut is_sent = false;
            let send = || {
                is_sent = true;
                signal::send(backtraces.signal, id)
            };
            assert!(backtraces.copy(0, is_current, send).is_none());
            assert_eq!(is_sent, after > 0);
            // The next question is not disturbed.
            let _ = copy(&backtraces, id);
        }
    });
}

// pins: G6
#[test]
fn a_question_without_an_answer_is_taken_back() {
    let backtraces = backtraces();
    with_thread(&backtraces, |id| {
        assert!(backtraces.copy(0, || true, || true).is_none());
        // A signal arrives too late for its asker.
        assert!(signal::send(backtraces.signal, id));
        let _ = copy(&backtraces, id);
    });
    // The thread has left.
    assert!(backtraces.copy(0, || true, || unreachable!()).is_none());
}

/// Blocks the signal on this thread, or lets it through.
fn block(signal: i32, how: i32) {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: the first call writes the set, and the others change and read it.
    let failed = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(how, set.as_ptr(), std::ptr::null_mut())
    };
    assert_eq!(failed, 0);
}

/// Takes the signals out of this thread's queue, where it blocks them. Returns how many.
fn take_queued(signal: i32) -> usize {
    let mut set = std::mem::MaybeUninit::uninit();
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the first call writes the set, and the others change and read it.
    let take = || unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigtimedwait(set.as_ptr(), std::ptr::null_mut(), &raw const now)
    };
    std::iter::repeat_with(take)
        .take_while(|&it| it == signal)
        .count()
}

// pins: V14
#[test]
fn a_thread_that_takes_no_signals_has_one_queued_however_often_it_is_asked() {
    let backtraces = &backtraces();
    let signal = backtraces.signal;
    let (tell, told) = std::sync::mpsc::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut queued = 0;
            backtraces.while_available(0, &DOING, &mut || {
                block(signal, libc::SIG_BLOCK);
                tell.send((crate::thread_id(), 0)).unwrap();
                // An error: the test has failed.
                let _ = goes_on.recv();
                queued = take_queued(signal);
                block(signal, libc::SIG_UNBLOCK);
                tell.send((crate::thread_id(), queued)).unwrap();
                let _ = goes_on.recv();
            });
        });
        // Its drop lets the thread go.
        let go_on = go_on;
        let (id, _) = told.recv().unwrap();
        let mut stacks = backtraces.stacks();
        let none = &mut |_: crate::Stack<'_>| unreachable!();
        for _ in 0..5 {
            assert_eq!(stacks.look(&mut (0..1), &|_, f| f(id), none), 1);
            let send = || signal::send(signal, id);
            assert!(backtraces.copy(0, || true, send).is_none());
        }
        go_on.send(()).unwrap();
        assert_eq!(told.recv().unwrap(), (id, 1));
        // The thread has taken the signal itself. Now the handler runs.
        assert!(signal::send(signal, id));
        let _ = copy(backtraces, id);
    });
}

// pins: V14
#[test]
fn a_signal_that_is_underway_serves_the_next_question() {
    let sample = Sample::of_this_thread().unwrap();
    let registers = sample::Registers::default();
    // SAFETY: this is the sample's thread; a stack pointer of 0 is outside of its stack.
    let handler = || unsafe { sample.answer(registers, &DOING) };
    let sent = std::cell::Cell::new(0);
    let send = || {
        sent.set(sent.get() + 1);
        true
    };
    for _ in 0..3 {
        let asked = sample.ask().unwrap();
        assert!(asked.signal(send));
        assert!(asked.answer(&Patience::new(Duration::ZERO)).is_none());
    }
    assert_eq!(sent.get(), 1);
    let asked = sample.ask().unwrap();
    assert!(asked.signal(send));
    handler();
    assert!(asked.answer(&Patience::new(Duration::ZERO)).is_some());
    assert_eq!(sent.get(), 1);
    // The handler clears the flag also without a question.
    assert!(sample.ask().unwrap().signal(send));
    handler();
    assert!(sample.ask().unwrap().signal(send));
    assert_eq!(sent.get(), 3);
    handler();
    // The system refuses a signal.
    assert!(!sample.ask().unwrap().signal(|| false));
    assert!(sample.ask().unwrap().signal(send));
    assert_eq!(sent.get(), 4);
}

#[test]
fn one_asks_at_a_time() {
    let sample = Sample::of_this_thread().unwrap();
    let first = sample.ask().unwrap();
    assert!(sample.ask().is_none());
    assert!(first.answer(&Patience::new(Duration::ZERO)).is_none());
    let second = sample.ask().unwrap();
    let registers = sample::Registers {
        ip: 1,
        ..sample::Registers::default()
    };
    // SAFETY: this is the sample's thread; a stack pointer of 0 is outside of its stack.
    unsafe { sample.answer(registers, &DOING) };
    assert!(sample.ask().is_none(), "the answer has not been read");
    let copied = second.answer(&Patience::new(Duration::ZERO)).unwrap();
    assert_eq!((copied.registers, copied.stack.len()), (registers, 0));
    assert!(sample.ask().is_some());
}

// pins: G6
#[test]
fn a_question_that_is_dropped_is_taken_back() {
    let sample = Sample::of_this_thread().unwrap();
    drop(sample.ask().unwrap());
    let registers = sample::Registers::default();
    // SAFETY: this is the sample's thread; a stack pointer of 0 is outside of its stack.
    unsafe { sample.answer(registers, &DOING) };
    let second = sample.ask().unwrap();
    assert!(
        second.answer(&Patience::new(Duration::ZERO)).is_none(),
        "no answer to the first"
    );
    assert!(sample.ask().is_some());
}

// pins: V14
#[test]
fn a_look_says_what_each_thread_does_where_and_leaves_out_those_that_are_gone() {
    let backtraces = Backtraces::new(None, 3, &["std::"]).unwrap();
    with_thread(&backtraces, |id| {
        let mut stacks = backtraces.stacks();
        let mut found = Vec::new();
        while found.len() < 20 {
            let mut each = |stack: crate::Stack<'_>| {
                found.push((stack.slot, stack.doing, stack.frames.to_vec()));
            };
            let with = |_, f: &WithId<'_>| f(id);
            // The other slots have no thread.
            assert_eq!(stacks.look(&mut (0..3), &with, &mut each), 1);
        }
        for (slot, doing, frames) in found {
            assert_eq!((slot, doing), (0, 7));
            let mut functions = frames.iter().map(|&it| backtraces.functions(it));
            let is_on_purpose = |it: &crate::Function| it.name.contains("waits_on_purpose");
            assert!(functions.any(|it| it.inner.iter().any(is_on_purpose)));
        }
        // Two looks at once, or a look and a backtrace, wait for one another or go without.
        let other = std::cell::RefCell::new(backtraces.stacks());
        let mut answers = 0;
        let with = |_, f: &WithId<'_>| {
            let sees_nothing = &mut |_: crate::Stack<'_>| unreachable!("it has been asked already");
            assert_eq!(
                other
                    .borrow_mut()
                    .look(&mut (0..1), &|_, _| unreachable!(), sees_nothing),
                1
            );
            f(id)
        };
        while answers == 0 {
            stacks.look(&mut (0..1), &with, &mut |_| answers += 1);
        }
        // A thread that has ended is not asked.
        let none = &mut |_: crate::Stack<'_>| unreachable!();
        assert_eq!(stacks.look(&mut (0..1), &|_, _| false, none), 1);
        let _ = copy(&backtraces, id);
    });
    let none = &mut |_: crate::Stack<'_>| unreachable!();
    let mut stacks = backtraces.stacks();
    assert_eq!(stacks.look(&mut (0..3), &|_, _| unreachable!(), none), 0);
}
