//! Replies and PIDs inside of messages to another node, by serde.

use ganger_proc_api::crossing::{Incoming, Outgoing, Replies, decode, encode};
use ganger_proc_api::{
    CancelReason, CommandError, Completer, Completion, ExitCause, NodeName, ParsePidError, Pid,
    Reply,
};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// The asking side: numbers up to a bound.
struct Asking {
    next: AtomicU64,
    most: u64,
}

impl Outgoing for Asking {
    fn reply(&self) -> Option<u64> {
        // Ordering: Relaxed: a single thread counts.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.most).then_some(number)
    }
}

fn asking(most: u64) -> Arc<Asking> {
    let next = AtomicU64::new(0);
    Arc::new(Asking { next, most })
}

/// The answering side: notes the numbers that have come, with their askers.
#[derive(Default)]
struct Answering(Mutex<Vec<(u64, Option<Pid>)>>);

impl Incoming for Answering {
    fn reply(&self, number: u64, asker: Option<Pid>) -> Option<Completer> {
        self.0.lock().unwrap().push((number, asker));
        (number < 100).then(|| asker_of(&channel().0))
    }

    fn pid(&self, text: &str) -> Result<Pid, ParsePidError> {
        Pid::parse_known(text)
    }
}

fn asker_of(sender: &Sender<Completion>) -> Completer {
    let sender = sender.clone();
    let answer = move |it| drop(sender.send(it));
    Completer::from_fn("{main|7}".parse().unwrap(), 9, answer)
}

fn reply() -> (Reply<u64>, Receiver<Completion>) {
    let (sender, receiver) = channel();
    (Reply::new(asker_of(&sender)), receiver)
}

fn node(name: &str) -> Option<NodeName> {
    Some(NodeName::new(name).unwrap())
}

fn text_of(value: &impl Serialize, most: u64) -> (Result<String, String>, Replies) {
    encode(node("here"), asking(most), || {
        serde_json::to_string(value).map_err(|error| error.to_string())
    })
}

#[derive(Serialize, Deserialize)]
struct Two(Reply<u64>, Reply<u64>);

// pins: B18
#[test]
fn a_message_that_is_taken_gives_its_replies_away_and_answers_nothing() {
    let ((first, one), (second, other)) = (reply(), reply());
    let (text, replies) = text_of(&Two(first, second), 2);
    assert_eq!(
        text.unwrap(),
        r#"[[0,"{here@main|7}"],[1,"{here@main|7}"]]"#
    );
    assert_eq!(replies.numbers().collect::<Vec<_>>(), [0, 1]);
    drop(replies);
    // Dropped unsent: both are answered here.
    assert!(matches!(
        one.recv().unwrap().result,
        Err(CommandError::Dropped)
    ));
    assert!(matches!(
        other.recv().unwrap().result,
        Err(CommandError::Dropped)
    ));

    let ((first, one), (second, other)) = (reply(), reply());
    let two = Two(first, second);
    let (_, replies) = text_of(&two, 2);
    let (mut completers, taken) = replies.take();
    taken.drop_message(two);
    assert!(one.try_recv().is_err() && other.try_recv().is_err());
    let (number, completer) = completers.pop().unwrap();
    assert_eq!(number, 1);
    completer.complete(42_u64);
    assert_eq!(other.recv().unwrap().result.unwrap().as_u64(), Some(42));
    drop(completers);
    assert!(matches!(
        one.recv().unwrap().result,
        Err(CommandError::Dropped)
    ));
    // Each has had one answer.
    assert!(one.recv().is_err() && other.recv().is_err());
}

// pins: B18
#[test]
fn a_message_that_is_refused_keeps_its_replies() {
    let ((first, one), (second, other)) = (reply(), reply());
    let two = Two(first, second);
    let (text, replies) = text_of(&two, 1);
    let error = text.unwrap_err();
    assert!(error.contains("too many questions"), "{error}");
    drop(replies);
    two.0.complete(1);
    two.1.complete(2);
    assert_eq!(
        one.recv().unwrap().result.unwrap().take::<u64>().unwrap(),
        1
    );
    assert_eq!(
        other.recv().unwrap().result.unwrap().take::<u64>().unwrap(),
        2
    );
}

// pins: B18
#[test]
fn a_serializer_that_runs_twice_gives_each_reply_one_number() {
    let (first, one) = reply();
    let (texts, replies) = encode(None, asking(1), || {
        [(); 2].map(|()| serde_json::to_string(&first).unwrap())
    });
    assert_eq!(texts[0], texts[1]);
    let (completers, taken) = replies.take();
    assert_eq!(completers.len(), 1);
    taken.drop_message(first);
    drop(completers);
    assert_eq!(one.iter().count(), 1);
}

/// Answers its own reply when it is dropped.
#[derive(Serialize)]
struct Eager(Option<Reply<u64>>, bool);

impl Drop for Eager {
    fn drop(&mut self) {
        match self.0.take() {
            Some(reply) if self.1 => reply.complete(1),
            Some(reply) => reply.fail("dropped"),
            None => {}
        }
    }
}

// pins: B18
#[test]
fn a_message_whose_destructor_answers_does_not_answer_once_it_is_taken() {
    for completes in [true, false] {
        let (first, one) = reply();
        let eager = Eager(Some(first), completes);
        let (_, replies) = text_of(&eager, 1);
        let (mut completers, taken) = replies.take();
        taken.drop_message(eager);
        assert!(one.try_recv().is_err(), "the other node answers");
        completers.pop().unwrap().1.complete(42_u64);
        assert_eq!(one.recv().unwrap().result.unwrap().as_u64(), Some(42));
        // Elsewhere the destructor answers.
        let (first, one) = reply();
        drop(Eager(Some(first), completes));
        assert!(one.recv().is_ok());
    }
}

/// Holds another reply, which does not cross, and panics when it is dropped.
#[derive(Serialize)]
struct Nasty(Reply<u64>, #[serde(skip)] Option<Reply<u64>>);

impl Drop for Nasty {
    fn drop(&mut self) {
        self.1 = None;
        panic!("on purpose");
    }
}

// pins: B18
#[test]
fn only_the_replies_that_crossed_are_silent_and_only_in_the_drop_of_their_message() {
    let ((first, one), (second, other)) = (reply(), reply());
    let (third, outside) = reply();
    let nasty = Nasty(first, Some(second));
    let (_, replies) = text_of(&nasty, 1);
    let (completers, taken) = replies.take();
    let dropped = catch_unwind(AssertUnwindSafe(|| taken.drop_message(nasty)));
    assert!(dropped.is_err());
    assert!(one.try_recv().is_err());
    assert!(matches!(
        other.recv().unwrap().result,
        Err(CommandError::Dropped)
    ));
    // The scope is over: completers answer again.
    drop(third);
    assert!(matches!(
        outside.recv().unwrap().result,
        Err(CommandError::Dropped)
    ));
    drop(completers);
    assert!(matches!(
        one.recv().unwrap().result,
        Err(CommandError::Dropped)
    ));
}

// pins: B18
#[test]
fn a_reply_crosses_nowhere_else() {
    let (it, _receiver) = reply();
    let error = serde_json::to_string(&it).unwrap_err().to_string();
    assert!(error.contains("crossing::encode"), "{error}");
    let error = serde_json::from_str::<Reply<u64>>("[0,null]").unwrap_err();
    assert!(error.to_string().contains("crossing::decode"), "{error}");
    // A panic in the encoder leaves none behind.
    let panicked = catch_unwind(|| encode(None, asking(9), || panic!("on purpose")).0);
    assert!(panicked.is_err() && serde_json::to_string(&it).is_err());
}

// pins: B18
#[test]
fn a_reply_that_has_no_room_is_an_error_of_the_decoder() {
    let answering = Arc::new(Answering::default());
    let asks = |text: &str| {
        let there = node("there");
        decode(there, answering.clone(), || {
            serde_json::from_str::<Reply<u64>>(text).map_err(|error| error.to_string())
        })
    };
    assert!(asks(r#"[7,"{there@main|7}"]"#).is_ok());
    assert!(asks("[8,null]").is_ok());
    assert!(
        asks("[100,null]")
            .unwrap_err()
            .contains("too many questions")
    );
    let own = "{main|7}".parse().ok();
    assert_eq!(
        *answering.0.lock().unwrap(),
        [(7, own), (8, None), (100, None)]
    );
}

// pins: B19
#[test]
fn a_pid_gets_the_node_of_its_sender_and_loses_that_of_its_receiver() {
    let pid = |text: &str| text.parse::<Pid>().unwrap();
    let crossed = |from: &str| {
        let from = pid(from);
        let text = encode(node("here"), asking(0), || {
            serde_json::to_string(&from).unwrap()
        })
        .0;
        let answering = Arc::new(Answering::default());
        decode(node("there"), answering, || {
            serde_json::from_str::<Pid>(&text).unwrap()
        })
    };
    assert_eq!(crossed("{main|7}"), pid("{here@main|7}"));
    assert_eq!(crossed("{here@main|7}"), pid("{here@main|7}"));
    assert_eq!(crossed("{there@main|7}"), pid("{main|7}"));
    assert_eq!(crossed("{third@main|7}"), pid("{third@main|7}"));
    // Elsewhere it is its text.
    let text = serde_json::to_string(&pid("{main|7}")).unwrap();
    assert_eq!(text, r#""{main|7}""#);
    assert_eq!(serde_json::from_str::<Pid>(&text).unwrap(), pid("{main|7}"));
    assert!(serde_json::from_str::<Pid>("7").is_err());
    // The session decides on new names.
    let stranger = r#""{a-stranger-of-this-test@main|7}""#;
    let answering = Arc::new(Answering::default());
    let refused = decode(None, answering, || serde_json::from_str::<Pid>(stranger));
    assert!(refused.is_err());
}

// pins: B18
#[test]
fn causes_and_errors_of_answers_cross_with_their_texts() {
    let causes = [
        ExitCause::Done,
        ExitCause::Failed("no luck".into()),
        ExitCause::Panicked("boom".into()),
        ExitCause::Cancelled(CancelReason::Shutdown),
        ExitCause::Cancelled("enough".into()),
        ExitCause::Terminated,
        ExitCause::UpgradeFailed("no factory".into()),
        ExitCause::NotFound,
        ExitCause::NoConnection,
    ];
    for cause in causes {
        let text = serde_json::to_string(&cause).unwrap();
        assert_eq!(serde_json::from_str::<ExitCause>(&text).unwrap(), cause);
        let error = CommandError::Ended(cause);
        assert_eq!(crossed(&error), format!("{error:?}"));
    }
    let failed = CommandError::Failed("no luck".into());
    for error in [CommandError::Dropped, CommandError::Timeout, failed] {
        assert_eq!(crossed(&error), format!("{error:?}"));
    }
    let panicked = CommandError::Panicked("boom".into());
    assert_eq!(crossed(&panicked), format!("{panicked:?}"));
    let number: u64 = "seven".parse().unwrap_or(7);
    let wrong = ganger_proc_api::Payload::from(number).take::<String>();
    let wrong = CommandError::from(wrong.unwrap_err());
    assert_eq!(crossed(&wrong), format!("Failed({:?})", wrong.to_string()));
}

fn crossed(error: &CommandError) -> String {
    let text = serde_json::to_string(error).unwrap();
    let error: CommandError = serde_json::from_str(&text).unwrap();
    format!("{error:?}")
}
