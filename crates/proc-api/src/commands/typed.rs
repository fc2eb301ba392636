//! Commands as types: the compiler checks the request and the type of its answer.
//!
//! **Problem.** A command has a number, under which a worker finds its handler fast. People should
//! not have to agree on numbers.
//!
//! **Rejected.** A number computed from the type's name: two names may have the same. A look-up by
//! type for each command: the look-up takes longer than the rest of a command.
//!
//! **Protocol.** The program keeps a table. The table gives each new type the next number from
//! [`CommandId::FIRST_TYPED`] on. Each thread remembers a few types with their numbers.

use super::{Command, CommandError, CommandId, Completer, Completion, Reply, Tag};
use crate::raw::Kind;
use crate::values::{BoxError, Payload};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{PoisonError, RwLock};

/// A command with a type of its own, and with the type of its answer.
///
/// ```
/// use ganger_proc_api::{StepOutput, TypedCommand};
///
/// struct ReadFile(std::path::PathBuf);
///
/// impl TypedCommand for ReadFile {
///     type Answer = Vec<u8>;
/// }
///
/// # let mut out = StepOutput::new();
/// out.ask(ReadFile("/etc/hostname".into()), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a command",
    note = "implement `TypedCommand`, with the type of the answer"
)]
pub trait TypedCommand: Send + Sized + 'static {
    /// The type of the answer.
    type Answer: Send + 'static;

    /// Makes the command as its handler gets it. Overridden by commands without a registered
    /// handler.
    #[doc(hidden)]
    #[inline]
    fn into_command(self) -> Command {
        Command::new(CommandId::of::<Self>(), Payload::any(self))
    }
}

/// The types of the commands so far, in the order of their numbers.
static TYPES: RwLock<Vec<Kind>> = RwLock::new(Vec::new());

/// How many types a thread remembers.
const REMEMBERED: usize = 16;

thread_local! {
    /// The kind of a type chooses its place.
    static RECENT: [Cell<Option<(Kind, CommandId)>>; REMEMBERED] =
        const { [const { Cell::new(None) }; REMEMBERED] };
}

impl CommandId {
    /// The first id of users' commands. The ids below are Ganger's own.
    pub const FIRST_OF_USERS: u16 = 256;
    /// The first id of [typed commands](TypedCommand); the table gives each type its id.
    pub const FIRST_TYPED: u16 = 32_768;

    /// Sleep. Ganger's own command: its value is a number of nanoseconds, as a `u64`. The answer
    /// `()` comes when the time is over, never before.
    pub const SLEEP: Self = Self::new(10);

    /// Wait until a moment. Ganger's own command: its value is [`Instant::as_nanos`], as a `u64`.
    ///
    /// [`Instant::as_nanos`]: crate::Instant::as_nanos
    pub const TIMER: Self = Self::new(11);

    /// As [`TIMER`](Self::TIMER). The second value is the period in nanoseconds, as a `u64`; a
    /// period of zero is an error.
    pub const TICKER: Self = Self::new(12);

    /// Carry out the command in the second value. Ganger's own command: fails with
    /// [`CommandError::Timeout`](crate::CommandError::Timeout) after the first value, a number of
    /// nanoseconds as a `u64`.
    pub const ASK_WITHIN: Self = Self::new(13);

    /// Wait for a future. Ganger's own command: the answer is the output of the future.
    #[doc(hidden)]
    pub const UNTIL: Self = Self::new(41);

    /// Returns the id of a typed command: the same each time in a run of a program. O(1).
    #[must_use]
    #[inline]
    pub fn of<C: TypedCommand>() -> Self {
        let kind = Kind::of::<C>();
        let place = (kind.into_raw().addr() / align_of::<usize>()) % REMEMBERED;
        let recent = RECENT.with(|recent| recent[place].get());
        match recent {
            Some((its_kind, id)) if its_kind == kind => id,
            _ => Self::look_up(kind, place),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(kind: Kind, place: usize) -> Self {
        let id = Self::known(kind).unwrap_or_else(|| Self::add(kind));
        RECENT.with(|recent| recent[place].set(Some((kind, id))));
        id
    }

    fn known(kind: Kind) -> Option<Self> {
        let types = TYPES.read().unwrap_or_else(PoisonError::into_inner);
        Self::of_index(types.iter().position(|it| *it == kind)?)
    }

    fn add(kind: Kind) -> Self {
        let mut types = TYPES.write().unwrap_or_else(PoisonError::into_inner);
        let index = types.iter().position(|it| *it == kind);
        let index = index.unwrap_or_else(|| {
            types.push(kind);
            types.len() - 1
        });
        match Self::of_index(index) {
            Some(id) => id,
            None => panic!("a program has at most 32768 types of commands"),
        }
    }

    fn of_index(index: usize) -> Option<Self> {
        let index = u16::try_from(index).ok()?;
        Self::FIRST_TYPED.checked_add(index).map(Self::new)
    }

    /// Returns the type of the command, for a typed command that the program has seen.
    #[must_use]
    pub fn kind(self) -> Option<Kind> {
        let index = self.get().checked_sub(Self::FIRST_TYPED)?;
        let types = TYPES.read().unwrap_or_else(PoisonError::into_inner);
        types.get(usize::from(index)).copied()
    }
}

/// The tag of a yielded typed command, with the command's type.
///
/// ```
/// use ganger_proc_api::{Completion, StepOutput, TypedCommand};
///
/// struct Double(u64);
/// impl TypedCommand for Double {
///     type Answer = u64;
/// }
///
/// let mut out = StepOutput::new();
/// let asked = out.ask(Double(21), 7);
/// # let completion = Completion::new(7, Ok(42_u64.into()));
/// // Later, when the answer has come:
/// if asked.is_answered_by(&completion) {
///     let answer: u64 = asked.answer(completion)?;
///     assert_eq!(answer, 42);
/// }
/// # Ok::<(), ganger_proc_api::CommandError>(())
/// ```
pub struct Asked<C> {
    /// The process's tag of the yield.
    pub tag: Tag,
    command: PhantomData<fn(C)>,
}

impl<C: TypedCommand> Asked<C> {
    /// Creates the question of a command yielded with this tag; for crates that add ways to ask.
    #[must_use]
    pub fn new(tag: Tag) -> Self {
        let command = PhantomData;
        Self { tag, command }
    }

    /// Returns whether the completion has this tag.
    #[must_use]
    pub fn is_answered_by(self, completion: &Completion) -> bool {
        completion.tag == self.tag
    }

    /// Takes the answer out of the completion.
    ///
    /// # Errors
    /// [`CommandError`] when the command has failed, or the answer is of another type.
    pub fn answer(self, completion: Completion) -> Result<C::Answer, CommandError> {
        completion.take()
    }
}

impl<C> Clone for Asked<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Asked<C> {}

impl<C> fmt::Debug for Asked<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(&self.tag).finish()
    }
}

impl Completion {
    /// Takes the answer, as a `T`.
    ///
    /// # Errors
    /// The error of the command, or [`CommandError::WrongType`], with the answer inside.
    #[inline]
    pub fn take<T: Any>(self) -> Result<T, CommandError> {
        Ok(self.result?.take()?)
    }
}

/// Makes a [`Handler`](super::Handler) of a function that takes commands of type `C`.
///
/// ```
/// use ganger_proc_api::{typed_handler, Handler, TypedCommand};
///
/// struct Double(u64);
/// impl TypedCommand for Double {
///     type Answer = u64;
/// }
///
/// fn is_handler(_: impl Handler) {}
/// is_handler(typed_handler::<Double>(|Double(number), reply| {
///     reply.complete(2 * number);
///     Ok(())
/// }));
/// ```
pub fn typed_handler<C: TypedCommand>(
    handle: impl Fn(C, Reply<C::Answer>) -> Result<(), BoxError> + Send + Sync + 'static,
) -> impl super::Handler {
    move |command: Command, completer: Completer| -> Result<(), BoxError> {
        let command = command.payloads.take::<C>()?;
        handle(command, Reply::new(completer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Handler;
    use std::sync::mpsc::channel;

    struct Double(u64);

    impl TypedCommand for Double {
        type Answer = u64;
    }

    struct Halve(#[allow(dead_code, reason = "it is never carried out")] u64);

    impl TypedCommand for Halve {
        type Answer = u64;
    }

    #[test]
    fn each_type_has_one_number_on_all_threads() {
        let ids = || (CommandId::of::<Double>(), CommandId::of::<Halve>());
        let others = std::thread::spawn(ids).join().unwrap();
        for _ in 0..3 {
            assert_eq!(ids(), others);
        }
        // Two threads do the same when both are the first to ask.
        assert_eq!(CommandId::add(Kind::of::<Double>()), others.0);
        let (double, halve) = others;
        assert_ne!(double, halve);
        assert!(double.get().min(halve.get()) >= CommandId::FIRST_TYPED);
        assert_eq!(double.kind(), Some(Kind::of::<Double>()));
        assert!(halve.to_string().ends_with("Halve"), "{halve}");
        assert_eq!(
            (CommandId::new(300).kind(), CommandId::new(u16::MAX).kind()),
            (None, None)
        );
    }

    /// Checks more types than a thread remembers, so that they share its places.
    #[test]
    fn many_types_keep_their_numbers() {
        struct Nth<const N: usize>;
        impl<const N: usize> TypedCommand for Nth<N> {
            type Answer = ();
        }
        macro_rules! ids {
            ($($n:literal)+) => { [$(CommandId::of::<Nth<$n>>()),+] };
        }
        let ids = || ids!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
        let first = ids();
        assert_eq!(ids(), first);
        let mut sorted = first.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), first.len());
    }

    fn answer_to(command: Command) -> Result<Completion, BoxError> {
        let handler = typed_handler::<Double>(|Double(number), reply| {
            reply.complete(2 * number);
            Ok(())
        });
        let (sender, receiver) = channel();
        let pid = "{test|1}".parse()?;
        let completer = Completer::from_fn(pid, 7, move |it| sender.send(it).unwrap());
        let handled = handler.handle(command, completer);
        handled.and(Ok(receiver.recv()?))
    }

    #[test]
    fn a_typed_handler_takes_its_command_and_names_others() {
        let asked = Asked::<Double>::new(7);
        let double = CommandId::of::<Double>();
        let completion = answer_to(Command::new(double, Payload::any(Double(21)))).unwrap();
        assert!(
            asked.is_answered_by(&completion)
                && !Asked::<Double>::new(8).is_answered_by(&completion)
        );
        assert_eq!(asked.answer(completion).unwrap(), 42);
        let error = answer_to(Command::new(double, "21"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("Double") && error.contains("String"),
            "{error}"
        );
    }

    #[test]
    fn an_answer_of_another_type_is_inside_of_the_error() {
        let error = Completion::new(7, Ok("forty-two".into()))
            .take::<u64>()
            .unwrap_err();
        let CommandError::WrongType(error) = error else {
            panic!("{error}");
        };
        assert_eq!(error.payloads.into_first().as_str(), Some("forty-two"));
        let failed = Completion::new(7, Err(CommandError::Dropped)).take::<u64>();
        assert!(matches!(failed, Err(CommandError::Dropped)));
    }
}
