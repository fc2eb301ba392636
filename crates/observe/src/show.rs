//! Payloads for people, where their types say how.
//!
//! **Problem.** A reader of dead letters wants to know which order was lost. But a payload may have
//! a secret inside, and the endpoint shows its answers to any viewer.
//!
//! **Rejected.** `Debug` of the payload: most types derive `Debug` for tests, with all fields.
//!
//! **Protocol.** A type opts in by [`Show`], and the program names the type for the place of the
//! view. All other types are shown by their names. A text has at most [`MOST`] bytes. A panic in
//! `Show` is contained, and takes the place of the text.

use ganger_proc_api::Payloads;
use std::any::Any;
use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most bytes of a text.
const MOST: usize = 400;

/// A message that people may see: in dead letters, by [`KeepLetters::show`](crate::KeepLetters).
///
/// ```
/// use ganger_observe::{KeepLetters, Observer, Show};
/// use ganger_proc_api::actor_fn;
/// use ganger_sched::Scheduler;
/// use std::fmt;
///
/// struct Order {
///     number: u64,
///     card: String,
/// }
///
/// impl Show for Order {
///     fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         write!(f, "order {}", self.number)
///     }
/// }
///
/// let keep = KeepLetters::new().show::<Order>();
/// let scheduler = keep.on(Scheduler::builder()).build()?;
/// let till = scheduler.spawn(actor_fn(|_, order: Order, _| Ok(drop(order.card))))?;
/// till.send(Order { number: 7, card: "4711".into() })?;
/// scheduler.terminate(till.pid())?;
/// scheduler.start()?;
/// till.wait();
/// let letters = Observer::of(&scheduler).dead_letters().unwrap();
/// assert_eq!(letters[0].text.as_deref(), Some("order 7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Show: Any + Send + Sync {
    /// Writes the parts of the value that people may see. The text ends after 400 bytes.
    ///
    /// # Errors
    /// The error of the writer.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The types shown by a program.
#[derive(Clone, Default)]
pub(crate) struct Shows(Vec<fn(&Payloads) -> Option<String>>);

impl Shows {
    pub(crate) fn add<T: Show>(&mut self) {
        self.0
            .push(|payloads| payloads.first()?.downcast_ref::<T>().map(text));
    }

    /// Returns the text of a message with a single value of a shown type.
    pub(crate) fn text(&self, payloads: &Payloads) -> Option<String> {
        if payloads.len() != 1 {
            return None;
        }
        self.0.iter().find_map(|show| show(payloads))
    }
}

impl fmt::Debug for Shows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shows").field(&self.0.len()).finish()
    }
}

/// Has [`Show::show`] as its `Display`.
struct Shown<'a, T>(&'a T);

impl<T: Show> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

fn text<T: Show>(value: &T) -> String {
    let mut bounded = Bounded::default();
    let written = catch_unwind(AssertUnwindSafe(|| {
        write!(bounded, "{}", Shown(value)).is_ok()
    }));
    match written {
        Ok(true) => bounded.text,
        Ok(false) if bounded.is_full => bounded.text + "…",
        Ok(false) => "(its Show has failed)".to_owned(),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(|it| &**it);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
            let mut bounded = Bounded::default();
            let message = message.unwrap_or("no text");
            let _full = write!(bounded, "(its Show has panicked: {message})");
            // The drop of a panic's value may panic as well.
            let _dropped = catch_unwind(AssertUnwindSafe(|| drop(panic)));
            bounded.text
        }
    }
}

/// A text of at most [`MOST`] bytes. The write beyond them fails.
#[derive(Default)]
struct Bounded {
    text: String,
    is_full: bool,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = MOST - self.text.len();
        let end = more.floor_char_boundary(room);
        self.text.push_str(&more[..end]);
        self.is_full |= end < more.len();
        if self.is_full {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::{Message, Payload};

    enum Says {
        Text(String),
        Error,
        Panic(String),
        Bomb,
    }

    impl Show for Says {
        fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Text(text) => f.write_str(text),
                Self::Error => Err(fmt::Error),
                Self::Panic(text) => panic!("{text}"),
                Self::Bomb => std::panic::panic_any(Bomb),
            }
        }
    }

    /// A panic's value with a panic in its drop.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }

    fn shown(says: Says) -> String {
        text(&says)
    }

    // pins: V20
    #[test]
    fn a_text_is_bounded_at_a_character() {
        assert_eq!(shown(Says::Text("order 7".into())), "order 7");
        assert_eq!(shown(Says::Text("x".repeat(MOST))), "x".repeat(MOST));
        let long = shown(Says::Text("ü".repeat(MOST)));
        assert_eq!(long, "ü".repeat(MOST / 2) + "…");
        let odd = shown(Says::Text("x".to_owned() + &"ü".repeat(MOST)));
        assert!(odd.len() <= MOST + "…".len() && odd.ends_with("ü…"));
    }

    // pins: V20
    #[test]
    fn a_show_that_fails_or_panics_is_shown_as_such() {
        assert_eq!(shown(Says::Error), "(its Show has failed)");
        let panicked = shown(Says::Panic("no such order".into()));
        assert_eq!(panicked, "(its Show has panicked: no such order)");
        assert_eq!(shown(Says::Bomb), "(its Show has panicked: no text)");
        assert!(shown(Says::Panic("x".repeat(10 * MOST))).len() <= MOST);
    }

    // pins: V20
    #[test]
    fn a_single_value_of_a_named_type_is_shown_and_nothing_else() {
        let mut shows = Shows::default();
        let says = || Message::of(Says::Text("order 7".into())).payloads;
        assert_eq!(shows.text(&says()), None);
        shows.add::<Says>();
        assert_eq!(shows.text(&says()).as_deref(), Some("order 7"));
        assert_eq!(shows.text(&Message::of("a secret").payloads), None);
        let mut two = says();
        two.push(Payload::any(Says::Text("another".into())));
        assert_eq!(shows.text(&two), None);
        assert_eq!(shows.text(&Payloads::default()), None);
    }
}
