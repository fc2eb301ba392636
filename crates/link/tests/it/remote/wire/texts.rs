//! Messages as texts, with questions inside.

use super::{End, Packet, Wire};
use crate::remote::codecs;
use ganger_proc_api::{
    CommandError, Completer, Envelope, Message, Payload, Pid, SendError, SendErrorKind, TypeName,
};
use ganger_sched::Handle;
use ganger_sched::crossing::{
    Answers, FarReply, Incoming, Outgoing, converted, decode, drop_refused, encode,
};
use std::sync::Arc;

/// Numbers the questions of both sides.
impl Outgoing for Wire {
    fn reply(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap();
        state.last += 1;
        Some(state.last)
    }
}

impl Incoming for End {
    fn reply(&self, number: u64, asker: Option<Pid>) -> Option<Completer> {
        let mut state = self.wire.state.lock().unwrap();
        if state.is_cut {
            return None;
        }
        let (far, completer) = FarReply::new(Arc::new(self.clone()), number, asker);
        state.sides[self.side].questions.insert(number, far);
        Some(completer)
    }
}

impl Answers for End {
    fn answer(&self, number: u64, answer: Result<Payload, CommandError>) {
        let mut state = self.wire.state.lock().unwrap();
        state.sides[self.side].questions.remove(&number);
        drop(state);
        let answer = answer.and_then(|mut it| match codecs::of(&it) {
            Some(codec) => Ok((codec.name, codec.encode(&mut it).unwrap())),
            None => Err(CommandError::Failed("no codec for the answer".into())),
        });
        let answer = answer.map_err(|error| serde_json::to_string(&error).unwrap());
        self.wire
            .push(1 - self.side, Packet::Answer(number, answer));
    }
}

impl Wire {
    /// Delivers a message, which has come as a text.
    pub(super) fn message(
        self: &Arc<Self>,
        scheduler: &Handle,
        side: usize,
        target: Pid,
        name: &'static str,
        text: &str,
    ) {
        let wire = Arc::clone(self);
        let end = Arc::new(End { wire, side });
        let decoded = decode(scheduler, end, || codecs::named(name).decode(text));
        let message = Message::new("", decoded.unwrap());
        let sent = scheduler.send(message.to(target));
        let sent = sent.or_else(|refused| scheduler.send(converted(scheduler, refused)?));
        sent.unwrap_or_else(drop_refused);
    }
}

impl End {
    /// Sends a message as a text.
    pub(super) fn send_text(
        &self,
        codec: &codecs::Codec,
        mut envelope: Envelope,
    ) -> Result<(), SendError> {
        let scheduler = self.wire.scheduler(self.side).unwrap();
        let mut payload = envelope.message.payloads.into_first();
        let outgoing = self.wire.clone();
        let (text, replies) = encode(&scheduler, outgoing, || codec.encode(&mut payload));
        let mut state = self.wire.state.lock().unwrap();
        if text.is_err() || state.is_cut {
            let kind = match text {
                Ok(_) => SendErrorKind::NoConnection,
                Err(_) => SendErrorKind::NoCodec(TypeName::new(payload.type_name())),
            };
            envelope.message.payloads = payload.into();
            return Err(SendError::new(kind, envelope));
        }
        let (completers, taken) = replies.take();
        let mut unwanted_from_the_start = Vec::new();
        for (number, completer) in completers {
            let (wire, side) = (self.wire.clone(), self.side);
            let unwanted = move || {
                let mut state = wire.state.lock().unwrap();
                let asker = state.sides[side].askers.remove(&number);
                drop(state);
                if let Some((completer, _watch)) = asker {
                    completer.forget();
                    wire.push(1 - side, Packet::Unwanted(number));
                }
            };
            let watch = completer.on_end(unwanted);
            if watch.is_none() {
                unwanted_from_the_start.push(Packet::Unwanted(number));
                completer.forget();
                continue;
            }
            let askers = &mut state.sides[self.side].askers;
            askers.insert(number, (completer, watch));
        }
        let packet = Packet::Message(envelope.target, codec.name, text.unwrap());
        let arriving = &mut state.sides[1 - self.side].arriving;
        arriving.push_back(packet);
        arriving.extend(unwanted_from_the_start);
        drop(state);
        taken.drop_message(payload);
        self.wire.deliver();
        Ok(())
    }
}
