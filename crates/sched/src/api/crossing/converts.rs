//! How a process makes its own messages of those that its recipients at other nodes send.
//!
//! **Problem.** A [`Recipient<N>`](crate::Recipient) has a function that makes the process's
//! message of an `N`. A function does not cross.
//!
//! **Rejected.** A number for each recipient that has crossed: it would be kept as long as the
//! process, for a function that depends on two types alone.
//!
//! **Protocol.** The encoder of a recipient notes the function under the type of the process's
//! messages and `N`, once in a program. The other side sends an `N`. The process refuses it for its
//! type, and what delivers for the other side looks here, and sends what the function makes.

use ganger_proc_api::{Kind, Message};
use std::any::Any;
use std::sync::{Arc, PoisonError, RwLock};

struct Convert {
    /// The type of the process's messages.
    takes: Kind,
    /// The type of the recipient, `N`.
    of: Kind,
    /// A `fn(N) -> Message`.
    function: Arc<dyn Any + Send + Sync>,
    call: Call,
}

/// Calls the function with the value of the message, which is of its type.
type Call = fn(&(dyn Any + Send + Sync), Message) -> Message;

/// As many as there are pairs of types in the program's recipients, so a look at each is short.
static CONVERTS: RwLock<Vec<Convert>> = RwLock::new(Vec::new());

/// Notes the function. A recipient of the process's own type needs none.
pub(super) fn note<N: 'static>(takes: Kind, function: fn(N) -> Message) {
    if takes.is::<N>() || find::<N>(takes).is_some() {
        return;
    }
    let convert = Convert {
        takes,
        of: Kind::of::<N>(),
        function: Arc::new(function),
        call: |function, message| {
            let source = message.source;
            let value = message.take::<N>();
            match (function.downcast_ref::<fn(N) -> Message>(), value) {
                (Some(function), Ok(value)) => Message {
                    source,
                    ..function(value)
                },
                _ => unreachable!("both are of the type that was noted"),
            }
        },
    };
    let mut converts = CONVERTS.write().unwrap_or_else(PoisonError::into_inner);
    converts.push(convert);
}

/// Returns the function for a process that takes this type, if it was noted.
pub(super) fn find<N: 'static>(takes: Kind) -> Option<fn(N) -> Message> {
    let converts = CONVERTS.read().unwrap_or_else(PoisonError::into_inner);
    let mut of = converts.iter().filter(|it| it.takes == takes);
    let convert = of.find(|it| it.of.is::<N>())?;
    convert.function.downcast_ref().copied()
}

/// Makes a message of this type of a recipient's message. Gives the message back where no function
/// was noted.
pub(super) fn convert(takes: Kind, message: Message) -> Result<Message, Message> {
    let converts = CONVERTS.read().unwrap_or_else(PoisonError::into_inner);
    let fits = |it: &&Convert| it.takes == takes && message.payloads.fits(it.of);
    let Some(found) = converts.iter().find(fits) else {
        return Err(message);
    };
    let (function, call) = (Arc::clone(&found.function), found.call);
    // The function is foreign code.
    drop(converts);
    Ok(call(&*function, message))
}
