//! Packages to places beyond the scheduler: which receiver must get them, and in which order.

use super::Broken;
use crate::notes::{Number, Sent};
use crate::plan::{Far, Place};
use ganger_proc_api::Pid;
use std::collections::{HashMap, VecDeque};

/// Packages from a sender to a place, of the same kind: they stay in order (R4).
type Stream = (Pid, Place, bool);

/// The places that exist, and the packages on their way to them.
#[derive(Debug)]
pub(crate) struct Routes {
    there: [bool; 3],
    packages: HashMap<Number, Package>,
    on_their_way: HashMap<Stream, VecDeque<Number>>,
}

#[derive(Debug, Clone, Copy)]
struct Package {
    stream: Stream,
    is_refused: bool,
    /// Its place had no receiver at some time since it was sent.
    may_miss: bool,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    OnItsWay,
    /// A later package of its stream has arrived: this package must have been refused on its way.
    Overtaken,
    Over,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            there: [true; 3],
            packages: HashMap::new(),
            on_their_way: HashMap::new(),
        }
    }
}

impl Routes {
    /// The place whose receiver takes packages for `place`: the place itself or, for an unknown
    /// peer, the receiver of all other nodes (R3).
    fn taker(&self, place: Place) -> Option<Place> {
        let places = match place {
            Place::Host => [Place::Host, Place::Host],
            Place::Peer => [Place::Peer, Place::Elsewhere],
            Place::Elsewhere => [Place::Elsewhere, Place::Elsewhere],
        };
        places.into_iter().find(|&it| self.there[it as usize])
    }

    /// A place is there from now on, or is not. Returns whether this is a change.
    pub(crate) fn set(&mut self, place: Place, is_there: bool) -> bool {
        let before = std::mem::replace(&mut self.there[place as usize], is_there);
        let missed =
            [Place::Host, Place::Peer, Place::Elsewhere].map(|place| self.taker(place).is_none());
        for package in self.packages.values_mut() {
            package.may_miss |= missed[package.stream.1 as usize];
        }
        before != is_there
    }

    /// A package is sent. Returns the result, unless the package is late and so accepted.
    pub(crate) fn send(&mut self, source: Pid, number: Number, far: Far) -> Sent {
        let stream = (source, far.place, far.control);
        let taker = self.taker(far.place);
        let package = Package {
            stream,
            is_refused: far.is_refused,
            may_miss: taker.is_none(),
            stage: Stage::OnItsWay,
        };
        self.packages.insert(number, package);
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

    /// Returns whether the receiver of this package refuses it.
    pub(crate) fn is_refused(&self, number: Number) -> bool {
        self.packages.get(&number).is_some_and(|it| it.is_refused)
    }

    /// A receiver has taken a package.
    pub(crate) fn arrived(
        &mut self,
        number: Number,
        at: Place,
        is_control: bool,
    ) -> Result<(), Broken> {
        let package = self.package(number)?;
        let (stream, stage) = (package.stream, package.stage);
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
            if let Some(package) = self.packages.get_mut(&next) {
                package.stage = stage;
            }
            if is_it {
                return Ok(());
            }
        }
        Err(format!("{number} arrives out of order (R4)"))
    }

    /// A package has come back, at once or later.
    pub(crate) fn came_back(&mut self, number: Number, why: Sent) -> Result<(), Broken> {
        let package = self.package(number)?;
        let Package { stream, stage, .. } = *package;
        package.stage = Stage::Over;
        if stage == Stage::Over {
            return Err(format!("{number} comes back, and is over (R2)"));
        }
        let is_right = match why {
            Sent::Full => package.is_refused,
            why => package.may_miss && why == nobody(stream.1),
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

    /// No package is on its way any more.
    pub(super) fn settled(&self) -> Result<(), Broken> {
        let lost = self.packages.iter().find(|(_, it)| it.stage != Stage::Over);
        match lost {
            Some((number, package)) => Err(format!("{number} is lost: {package:?} (R2)")),
            None => Ok(()),
        }
    }

    fn package(&mut self, number: Number) -> Result<&mut Package, Broken> {
        let package = self.packages.get_mut(&number);
        package.ok_or_else(|| format!("{number} was never sent far away"))
    }
}

/// The result for a place without a receiver.
fn nobody(place: Place) -> Sent {
    match place {
        Place::Host => Sent::NoHost,
        Place::Peer | Place::Elsewhere => Sent::NoNode,
    }
}
