//! The last dead letters of a scheduler, for the endpoint.

use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Builder, DeadLetter, DeadLetters, Handle};
use ganger_sync::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The number of kept letters.
const KEPT: usize = 100;

/// Keeps the last 100 dead letters of a scheduler, without their payloads, for `/api/v1/letters` of
/// the [endpoint](crate::serve()). A later [`Builder::dead_letters`] takes the place of this call.
///
/// Each letter costs a lock, and all of them about 10 KB.
///
/// ```
/// use ganger_observe::keep_letters;
/// use ganger_sched::Scheduler;
///
/// let scheduler = keep_letters(Scheduler::builder()).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn keep_letters(builder: Builder) -> Builder {
    add(builder, None)
}

/// As [`keep_letters`], and hands each letter on to a sink: a `DeadLetterLog` of `ganger-link`, for
/// example.
pub fn keep_letters_and_tell(builder: Builder, sink: Arc<dyn DeadLetters>) -> Builder {
    add(builder, Some(sink))
}

fn add(builder: Builder, next: Option<Arc<dyn DeadLetters>>) -> Builder {
    let last = Arc::new(Last::default());
    let sink = Keeper {
        last: Arc::clone(&last),
        next,
    };
    let kept = Kept(last);
    let builder = builder.when_built(|scheduler| {
        let _kept = scheduler.extension(|_| kept);
    });
    builder.dead_letters(Arc::new(sink))
}

/// The last letters of that scheduler, the oldest first; none if it keeps no letters.
pub(crate) fn last(scheduler: &Handle) -> Option<Vec<DeadLetter>> {
    let kept = scheduler.find_extension::<Kept>()?;
    let last = lock(&kept.0.0);
    Some(last.iter().cloned().collect())
}

#[derive(Default)]
struct Last(Mutex<VecDeque<DeadLetter>>);

/// The scheduler's extension.
struct Kept(Arc<Last>);

/// The scheduler's sink.
struct Keeper {
    last: Arc<Last>,
    next: Option<Arc<dyn DeadLetters>>,
}

impl DeadLetters for Keeper {
    fn dead_letter(&self, letter: &DeadLetter) {
        let mut last = lock(&self.last.0);
        if last.len() == KEPT {
            last.pop_front();
        }
        last.push_back(letter.clone());
        drop(last);
        if let Some(next) = &self.next {
            next.dead_letter(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::{Message, process_fn};
    use ganger_sched::Scheduler;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Count(AtomicUsize);

    impl DeadLetters for Count {
        fn dead_letter(&self, _: &DeadLetter) {
            // Ordering: Relaxed: a count alone.
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    // pins: V1
    #[test]
    fn the_last_hundred_are_kept_in_order_and_all_are_handed_on() {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let builder = keep_letters_and_tell(Scheduler::builder(), Arc::clone(&count) as _);
        let scheduler = builder.build().unwrap();
        let ends = process_fn(|_, _, out| {
            out.done(());
            Ok(())
        });
        let process = scheduler.spawn(ends).unwrap();
        let topics = |number| match number {
            0..50 => "too old",
            50 => "oldest",
            149 => "newest",
            _ => "kept",
        };
        for number in 0..150 {
            process.send(Message::new(topics(number), number)).unwrap();
        }
        scheduler.terminate(process.pid()).unwrap();
        scheduler.start().unwrap();
        process.wait();
        let kept = last(&scheduler).unwrap();
        let kept = kept.iter().map(|it| it.topic.as_str());
        assert!(kept.eq((50..150).map(topics)));
        // Ordering: Relaxed: a count alone.
        assert_eq!(count.0.load(Ordering::Relaxed), 150);
        assert!(last(&Scheduler::start_default().unwrap()).is_none());
    }
}
