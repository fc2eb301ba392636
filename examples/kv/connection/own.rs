//! The commands of a connection.

use super::super::commands::Own;
use super::super::protocol::{Answer, Request, Version};
use super::{Connection, Slot};
use bytes::Bytes;
use futures_util::io::{AsyncRead, AsyncWrite};

/// The most channels of a client at a time, and the most bytes of a name.
const MOST_CHANNELS: usize = 1_000;
const LONGEST_NAME: usize = 1_024;

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn here(&mut self, own: Own, args: Request) {
        let subscribed = self.is_for_pushes();
        let answer = match own {
            Own::Ping if subscribed => {
                let text = args.into_iter().next().unwrap_or_default();
                Answer::List(vec![Answer::text("pong"), Answer::Text(text)])
            }
            Own::Ping => args
                .into_iter()
                .next()
                .map_or(Answer::Status("PONG"), Answer::Text),
            Own::Echo => Answer::optional(args.into_iter().next()),
            Own::Select if *args[0] == *b"0" => Answer::OK,
            Own::Select => Answer::Error("ERR DB index is out of range".into()),
            Own::Client => Answer::OK,
            Own::Command => Answer::List(Vec::new()),
            Own::Config => config(&args),
            Own::Discard => self.transaction.discard(),
            Own::Hello => match hello(&args, self.version) {
                Ok((version, answer)) => {
                    self.version = version;
                    answer
                }
                Err(error) => error,
            },
            Own::Multi => self.transaction.begin(),
            Own::Unwatch => {
                self.transaction.unwatch();
                Answer::OK
            }
            Own::Quit => {
                self.is_over = true;
                Answer::OK
            }
            Own::Subscribe => {
                args.into_iter()
                    .for_each(|channel| self.subscribe(&channel));
                return;
            }
            Own::Unsubscribe => {
                self.unsubscribe(args);
                return;
            }
            Own::Exec | Own::Info | Own::Publish | Own::Scan | Own::Watch => return,
        };
        self.slots.push(Slot::Ready(answer));
    }

    fn subscribe(&mut self, channel: &Bytes) {
        if channel.len() > LONGEST_NAME || self.subscribed.len() >= MOST_CHANNELS {
            let error = "ERR too many channels, or a name that is too long";
            self.slots.push(Slot::Ready(Answer::Error(error.into())));
            return;
        }
        let channel = Bytes::copy_from_slice(channel);
        if self.subscribed.insert(channel.clone()) {
            let joined = self.server.channel(&channel).join(self.cx.address());
            debug_assert!(joined.is_ok(), "a process that runs can join");
        }
        self.confirm("subscribe", Answer::Text(channel));
    }

    fn unsubscribe(&mut self, channels: Request) {
        let channels = match channels.is_empty() {
            true => self.subscribed.iter().cloned().collect(),
            false => channels,
        };
        if channels.is_empty() {
            self.confirm("unsubscribe", Answer::Nothing);
        }
        for channel in channels {
            if self.subscribed.remove(&channel) {
                self.server.channel(&channel).leave(self.cx.pid());
            }
            self.confirm("unsubscribe", Answer::Text(channel));
        }
    }

    fn confirm(&mut self, what: &str, channel: Answer) {
        let count = Answer::count(self.subscribed.len());
        let list = vec![Answer::text(what), channel, count];
        self.slots.push(Slot::Ready(Answer::Push(list)));
    }
}

/// Chooses the version of the protocol from now on.
fn hello(args: &[Bytes], before: Version) -> Result<(Version, Answer), Answer> {
    let version = match args.first().map(|it| &it[..]) {
        None => before,
        Some(b"2") => Version::Two,
        Some(b"3") => Version::Three,
        Some(_) => {
            let error = "NOPROTO unsupported protocol version";
            return Err(Answer::Error(error.into()));
        }
    };
    let texts = [
        ("server", "ganger"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("mode", "standalone"),
        ("role", "master"),
    ];
    let texts = texts.iter().flat_map(|it| [it.0, it.1]);
    let mut list: Vec<_> = texts.map(Answer::text).collect();
    let number = if version == Version::Two { 2 } else { 3 };
    list.extend([Answer::text("proto"), Answer::Number(number)]);
    Ok((version, Answer::Map(list)))
}

/// Answers the settings that clients ask for before they start: nothing is saved.
fn config(args: &[Bytes]) -> Answer {
    if !args[0].eq_ignore_ascii_case(b"get") {
        return Answer::Error("ERR only CONFIG GET is there".into());
    }
    let known = args[1..].iter().filter_map(|name| {
        let value = match name.to_ascii_lowercase().as_slice() {
            b"save" => "",
            b"appendonly" => "no",
            b"databases" => "1",
            _ => return None,
        };
        Some([Answer::Text(name.clone()), Answer::text(value)])
    });
    Answer::Map(known.flatten().collect())
}
