//! Envelopes to places beyond the scheduler: which receiver must get them, and in which order.

use super::Broken;
use crate::notes::{Number, Sent};
use crate::plan::{Far, Place};
use ganger_proc_api::Pid;
use std::collections::{HashMap, VecDeque};

/// Envelopes from a sender to a place, of the same kind: they stay in order (R4).
type Stream = (Pid, Place, bool);

/// The places that exist, and the envelopes on their way to them.
#[derive(Debug)]
pub(crate) struct Routes {
    there: [bool; 3],
    envelopes: HashMap<Number, Envelope>,
    on_their_way: HashMap<Stream, VecDeque<Number>>,
}

#[derive(Debug, Clone, Copy)]
struct Envelope {
    stream: Stream,
    is_refused: bool,
    /// Its place had no receiver at some time since it was sent.
    may_miss: bool,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    OnItsWay,
    /// A later envelope of its stream has arrived: this envelope must have been refused on its way.
    Overtaken,
    Over,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            there: [true; 3],
            envelopes: HashMap::new(),
            on_their_way: HashMap::new(),
        }
    }
}

impl Routes {
    /// Returns the place whose receiver takes envelopes for `place`: the place itself or, for an
    /// unknown peer, the receiver of all other nodes (R3).
    fn taker(&self, place: Place) -> Option<Place> {
        let places = match place {
            Place::Host => [Place::Host, Place::Host],
            Place::Peer => [Place::Peer, Place::Elsewhere],
            Place::Elsewhere => [Place::Elsewhere, Place::Elsewhere],
        };
        places.into_iter().find(|&it| self.there[it as usize])
    }

    /// Sets whether a place is there from now on. Returns whether this is a change.
    pub(crate) fn set(&mut self, place: Place, is_there: bool) -> bool {
        let before = std::mem::replace(&mut self.there[place as usize], is_there);
        let missed =
            [Place::Host, Place::Peer, Place::Elsewhere].map(|place| self.taker(place).is_none());
        for envelope in self.envelopes.values_mut() {
            envelope.may_miss |= missed[envelope.stream.1 as usize];
        }
        before != is_there
    }

    /// Sends an envelope. Returns the result, unless the envelope is late and so accepted.
    pub(crate) fn send(&mut self, source: Pid, number: Number, far: Far) -> Sent {
        let stream = (source, far.place, far.control);
        let taker = self.taker(far.place);
        let envelope = Envelope {
            stream,
            is_refused: far.is_refused,
            may_miss: taker.is_none(),
            stage: Stage::OnItsWay,
        };
        self.envelopes.insert(number, envelope);
        self.on_their_way
            .entry(stream)
            .or_default()
            .push_back(number);
        match taker {
            None => nobody(far.place),
            Some(_) if far.is_refused => Sent::Full,
            Some(_) => Sent::Accepted,
        }
    }

    /// Returns whether the receiver of this envelope refuses it.
    pub(crate) fn is_refused(&self, number: Number) -> bool {
        self.envelopes.get(&number).is_some_and(|it| it.is_refused)
    }

    /// Notes the arrival of an envelope at a receiver.
    pub(crate) fn arrived(
        &mut self,
        number: Number,
        at: Place,
        is_control: bool,
    ) -> Result<(), Broken> {
        let envelope = self.envelope(number)?;
        let (stream, stage) = (envelope.stream, envelope.stage);
        if stage != Stage::OnItsWay {
            return Err(format!("{number} arrives, and is {stage:?} (R2, R4)"));
        }
        if self.taker(stream.1) != Some(at) || stream.2 != is_control {
            return Err(format!("{number} of {stream:?} arrives at {at:?} (R3)"));
        }
        let queue = self.on_their_way.entry(stream).or_default();
        while let Some(next) = queue.pop_front() {
            let is_it = next == number;
            let stage = if is_it { Stage::Over } else { Stage::Overtaken };
            if let Some(envelope) = self.envelopes.get_mut(&next) {
                envelope.stage = stage;
            }
            if is_it {
                return Ok(());
            }
        }
        Err(format!("{number} arrives out of order (R4)"))
    }

    /// Notes the return of an envelope, at once or later.
    pub(crate) fn came_back(&mut self, number: Number, why: Sent) -> Result<(), Broken> {
        let envelope = self.envelope(number)?;
        let Envelope { stream, stage, .. } = *envelope;
        envelope.stage = Stage::Over;
        if stage == Stage::Over {
            return Err(format!("{number} comes back, and is over (R2)"));
        }
        let is_right = match why {
            Sent::Full => envelope.is_refused,
            why => envelope.may_miss && why == nobody(stream.1),
        };
        if !is_right {
            return Err(format!(
                "{number} of {stream:?} comes back: {why:?} (R2, R3)"
            ));
        }
        if let Some(queue) = self.on_their_way.get_mut(&stream) {
            queue.retain(|&it| it != number);
        }
        Ok(())
    }

    /// Checks that no envelope is on its way.
    pub(super) fn settled(&self) -> Result<(), Broken> {
        let lost = self
            .envelopes
            .iter()
            .find(|(_, it)| it.stage != Stage::Over);
        match lost {
            Some((number, envelope)) => Err(format!("{number} is lost: {envelope:?} (R2)")),
            None => Ok(()),
        }
    }

    fn envelope(&mut self, number: Number) -> Result<&mut Envelope, Broken> {
        let envelope = self.envelopes.get_mut(&number);
        envelope.ok_or_else(|| format!("{number} was never sent far away"))
    }
}

/// Returns the result for a place without a receiver.
fn nobody(place: Place) -> Sent {
    match place {
        Place::Host => Sent::NoHost,
        Place::Peer | Place::Elsewhere => Sent::NoNode,
    }
}
