//! The last dead letters of a scheduler, for the endpoint.

use crate::show::{Show, Shows};
use ganger_proc_api::Message;
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Builder, DeadLetter, DeadLetters, Handle};
use ganger_sync::sync::lock;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The number of kept letters.
const KEPT: usize = 100;

/// Keeps the last 100 dead letters of a scheduler, without their payloads, for `/api/v1/letters` of
/// the [endpoint](crate::serve()). A later [`Builder::dead_letters`] takes the place of this call.
/// [`KeepLetters`] shows the payloads of some types.
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
    KeepLetters::new().on(builder)
}

/// Keeps letters as [`keep_letters`] does, and hands each letter on to a sink: a `DeadLetterLog` of
/// `ganger-link`, for example.
pub fn keep_letters_and_tell(builder: Builder, sink: Arc<dyn DeadLetters>) -> Builder {
    KeepLetters::new().tell(sink).on(builder)
}

/// The settings for [`keep_letters`]: the messages that people may see, and a further sink. Where
/// no message is dropped, both cost nothing.
#[derive(Clone, Default)]
#[must_use = "nothing is kept without `on`"]
pub struct KeepLetters {
    shows: Shows,
    next: Option<Arc<dyn DeadLetters>>,
}

/// A dead letter, and its message for people: see [`Observer::dead_letters`].
///
/// [`Observer::dead_letters`]: crate::Observer::dead_letters
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptLetter {
    /// The letter.
    pub letter: DeadLetter,
    /// The name of the message's type; `None` for a letter without a message, by
    /// [`Handle::tell_of_dead_letter`].
    pub type_name: Option<&'static str>,
    /// The message by its [`Show`], if the program shows its type.
    pub text: Option<String>,
}

impl KeepLetters {
    /// Creates settings that show no payload and tell no sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows messages of this type, by their [`Show`], with an example there.
    pub fn show<T: Show>(mut self) -> Self {
        self.shows.add::<T>();
        self
    }

    /// Hands each letter on to a sink.
    pub fn tell(self, sink: Arc<dyn DeadLetters>) -> Self {
        let next = Some(sink);
        Self { next, ..self }
    }

    /// Keeps the letters of the builder's scheduler.
    pub fn on(self, builder: Builder) -> Builder {
        let Self { shows, next } = self;
        let last = Arc::new(Last::default());
        let sink = Keeper {
            last: Arc::clone(&last),
            shows,
            next,
        };
        let kept = Kept(last);
        let builder = builder.when_built(|scheduler| {
            let _kept = scheduler.extension(|_| kept);
        });
        builder.dead_letters(Arc::new(sink))
    }
}

impl fmt::Debug for KeepLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepLetters")
            .field("shows", &self.shows)
            .field("tells", &self.next.is_some())
            .finish()
    }
}

/// Returns the last letters of that scheduler, the oldest first; none if it keeps no letters.
pub(crate) fn last(scheduler: &Handle) -> Option<Vec<KeptLetter>> {
    let kept = scheduler.find_extension::<Kept>()?;
    let last = lock(&kept.0.0);
    Some(last.iter().cloned().collect())
}

#[derive(Default)]
struct Last(Mutex<VecDeque<KeptLetter>>);

/// The scheduler's extension.
struct Kept(Arc<Last>);

/// The scheduler's sink.
struct Keeper {
    last: Arc<Last>,
    shows: Shows,
    next: Option<Arc<dyn DeadLetters>>,
}

impl Keeper {
    fn keep(&self, letter: KeptLetter) {
        let mut last = lock(&self.last.0);
        if last.len() == KEPT {
            last.pop_front();
        }
        last.push_back(letter);
    }
}

impl DeadLetters for Keeper {
    fn dead_letter(&self, letter: &DeadLetter) {
        self.keep(KeptLetter {
            letter: letter.clone(),
            type_name: None,
            text: None,
        });
        if let Some(next) = &self.next {
            next.dead_letter(letter);
        }
    }

    fn dead_message(&self, letter: &DeadLetter, message: &Message) {
        self.keep(KeptLetter {
            letter: letter.clone(),
            type_name: Some(message.payloads.type_name()),
            text: self.shows.text(&message.payloads),
        });
        if let Some(next) = &self.next {
            next.dead_message(letter, message);
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
        let kept = kept.iter().map(|it| it.letter.topic.as_str());
        assert!(kept.eq((50..150).map(topics)));
        // Ordering: Relaxed: a count alone.
        assert_eq!(count.0.load(Ordering::Relaxed), 150);
        assert!(last(&Scheduler::start_default().unwrap()).is_none());
    }
}
