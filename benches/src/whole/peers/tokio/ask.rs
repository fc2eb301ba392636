//! Commands in sequence: answered by a handler at once, or by another task.

use super::Tokio;
use crate::whole::contestant::Timed;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;

pub(super) fn inline(tokio: &Tokio, commands: u64) -> Timed {
    let gate = tokio.gate;
    let asker = async move {
        let mut sum = 0;
        for number in 1..=commands {
            let (completer, answer) = oneshot::channel();
            echo(number, completer);
            sum += answer.await.expect("an answer");
        }
        gate.hit_with(sum);
    };
    gate.time(1, || {
        drop(tokio.runtime.spawn(asker));
        Ok(())
    })
}

pub(super) fn asked(tokio: &Tokio, commands: u64) -> Timed {
    let gate = tokio.gate;
    let (server, mut requests) = unbounded_channel();
    tokio.runtime.spawn(async move {
        while let Some((number, completer)) = requests.recv().await {
            echo(number, completer);
        }
    });
    let asker = async move {
        let mut sum = 0;
        for number in 1..=commands {
            let (completer, answer) = oneshot::channel();
            let sent = server.send((number, completer));
            sent.expect("the server is there");
            sum += answer.await.expect("an answer");
        }
        gate.hit_with(sum);
    };
    gate.time(1, || {
        drop(tokio.runtime.spawn(asker));
        Ok(())
    })
}

/// This thread asks, and waits for each answer.
pub(super) fn call_from_outside(tokio: &Tokio, calls: u64) -> Timed {
    let (server, mut requests) = unbounded_channel();
    tokio.runtime.spawn(async move {
        while let Some((number, completer)) = requests.recv().await {
            echo(number, completer);
        }
    });
    tokio.gate.time(1, || {
        let mut sum = 0;
        for number in 1..=calls {
            let (completer, answer) = oneshot::channel();
            let sent = server.send((number, completer));
            sent.expect("the server is there");
            sum += answer.blocking_recv().expect("an answer");
        }
        tokio.gate.hit_with(sum);
        Ok(())
    })
}

/// Answers with its number.
fn echo(number: u64, completer: oneshot::Sender<u64>) {
    completer.send(number).expect("the asker waits");
}
