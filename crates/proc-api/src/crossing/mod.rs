//! Values inside of messages that stand for something at home: replies and PIDs on their way to
//! another node. For crates that connect nodes.
//!
//! A message type may derive serde's traits with [`Reply`](crate::Reply) and [`Pid`](crate::Pid)
//! inside of it, and the addresses of a scheduler. They are encoded inside of [`encode`] alone, and
//! decoded inside of [`decode`]; elsewhere, a reply is an error of the serializer.
//!
//! - A **PID** gets the node of its sender, if it has none, and loses the node of its receiver.
//! - A **reply** leaves a number. The two sides of a connection keep a table each: the asking side
//!   has its completers by their numbers, and the answering side has a reply for each number that
//!   has come. An answer carries the number, and so does the word that the answer is unwanted.
//!
//! **Protocol of the sending side.**
//! 1. The sender encodes the message, which is whole still, and gets its [`Replies`].
//! 2. If the message is refused, the sender drops these, and gives the message back: nothing has
//!    happened.
//! 3. If not, [`Replies::take`] gives the completers for the table. They must be there before the
//!    answer may come. [`Taken::drop_message`] drops the message.
//!
//! ```
//! use ganger_proc_api::crossing::{Incoming, Outgoing, decode, encode};
//! use ganger_proc_api::{BoxError, Completer, NodeName, Pid, Reply};
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use std::sync::{Arc, mpsc};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! enum Count {
//!     Add(u64),
//!     Get(Reply<u64>),
//! }
//!
//! struct Asking(AtomicU64);
//!
//! impl Outgoing for Asking {
//!     fn reply(&self) -> Option<u64> {
//!         // Ordering: Relaxed: numbers alone.
//!         Some(self.0.fetch_add(1, Ordering::Relaxed))
//!     }
//! }
//!
//! struct Answering(mpsc::Sender<(u64, u64)>);
//!
//! impl Incoming for Answering {
//!     fn reply(&self, number: u64, asker: Option<Pid>) -> Option<Completer> {
//!         let answers = self.0.clone();
//!         Some(Completer::from_fn(asker?, 0, move |it| {
//!             let answer = it.result.unwrap().take().unwrap();
//!             answers.send((number, answer)).unwrap();
//!         }))
//!     }
//! }
//!
//! let (here, there) = (NodeName::new("here")?, NodeName::new("there")?);
//! let (asker, answer) = mpsc::channel();
//! let reply = Completer::from_fn("{main|7}".parse()?, 0, move |it| asker.send(it).unwrap());
//! let get = Count::Get(Reply::new(reply));
//!
//! // The asking side.
//! let asking = Arc::new(Asking(AtomicU64::new(40)));
//! let (text, replies) = encode(Some(here), asking, || serde_json::to_string(&get));
//! let (mut table, taken) = replies.take();
//! taken.drop_message(get);
//!
//! // The answering side.
//! let (answers, answered) = mpsc::channel();
//! let text = text?;
//! let count = decode(Some(there), Arc::new(Answering(answers)), || serde_json::from_str(&text))?;
//! let Count::Get(reply) = count else { unreachable!() };
//! assert_eq!(reply.pid(), Some("{here@main|7}".parse()?));
//! reply.complete(42);
//!
//! // The asking side.
//! let (number, value) = answered.recv()?;
//! let at = table.iter().position(|it| it.0 == number).unwrap();
//! table.swap_remove(at).1.complete(value);
//! assert_eq!(answer.recv()?.take::<u64>()?, 42);
//! # Ok::<(), BoxError>(())
//! ```
//!
//! **Imports.** `commands`, `values`.

mod causes;
mod context;
mod values;

pub use context::{Incoming, Outgoing, Replies, Taken, decode, encode, is_encoding};
