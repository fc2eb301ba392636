//! How bytes become plans.

use super::{
    Act, Answer, Far, KINDS, Kind, MOST, Manners, Nature, Next, Op, Passed, Place, Plan, Start, Way,
};

const STARTS: [Start; 8] = [
    Start::Well,
    Start::Well,
    Start::Well,
    Start::Well,
    Start::InitFails,
    Start::InitPanics,
    Start::Refused,
    Start::HookPanics,
];

/// The acts that are sent between the messages of several senders.
const MIXED_IN: [Act; 8] = [
    Act::Note,
    Act::GoOn,
    Act::Ask(Kind::AtOnce),
    Act::Hold,
    Act::Note,
    Act::Ask(Kind::Drops),
    Act::Finish,
    Act::Panic,
];

/// The acts sent between the messages of several senders in a wait for room.
const PRESSED_IN: [Act; 8] = [
    Act::Note,
    Act::GoOn,
    Act::Ask(Kind::AtOnce),
    Act::Note,
    Act::Finish,
    Act::Note,
    Act::Ask(Kind::Drops),
    Act::Panic,
];

/// A process's ways to take messages from a wait for room.
const WAYS: [Way; 8] = [
    Way::Open,
    Way::Then(Act::Release),
    Way::Then(Act::Finish),
    Way::Terminated,
    Way::Then(Act::Become(Next::Process(Start::Well))),
    Way::Then(Act::Panic),
    Way::Then(Act::Become(Next::Process(Start::InitFails))),
    Way::Then(Act::Release),
];

impl Plan {
    /// Returns the plan of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut records = bytes.chunks_exact(4).map(|it| [it[0], it[1], it[2], it[3]]);
        let [sizes, limits, low, high] = records.next().unwrap_or_default();
        let limit = |number: u8, base: usize| (number > 0).then(|| base + usize::from(number));
        Self {
            seed: u64::from(u16::from_le_bytes([low, high])),
            workers: 1 + usize::from(sizes % 3),
            batch: [256, 1, 2, 5][usize::from(sizes / 3 % 4)],
            mailbox: limit(limits % 4, 0),
            processes: limit(limits / 4 % 4, 2),
            blocks: usize::from(sizes / 12 % 4).checked_sub(1),
            ops: records.take(MOST).map(Op::from_record).collect(),
        }
    }
}

impl Op {
    fn from_record([op, to, what, how]: [u8; 4]) -> Self {
        if op / 32 == 7 {
            return Self::among_others(op % 32, to, what, how);
        }
        match op % 32 {
            0 | 1 => Self::Settle,
            2..=5 => Self::Move(usize::from(to)),
            6..=9 => Self::Submit {
                nature: Nature::from_byte(to),
                start: STARTS[usize::from(what % 8)],
                chosen: (how % 4 == 3).then_some(u64::from(how / 4 % 3)),
            },
            10..=22 => Self::Send {
                to,
                act: Act::from_bytes(what, how),
                control: op / 32 % 4 == 3,
            },
            23 | 24 => Self::Cancel(to),
            25 => Self::Terminate(to),
            26 | 27 => Self::Upgrade(to, Next::from_byte(what)),
            28..=30 => Self::Complete(
                usize::from(to),
                [Answer::Result, Answer::Error, Answer::Dropped][usize::from(what % 3)],
            ),
            _ => Self::Stop([0, 50, 3_600_000_000][usize::from(what % 3)]),
        }
    }

    /// Returns an operation on more than a single process: several senders or submitters, waiting
    /// sends, and other places.
    fn among_others(op: u8, to: u8, what: u8, how: u8) -> Self {
        match op {
            0..=9 => Self::Wait(to, Act::from_bytes(what, how)),
            10 | 12 => Self::GiveUp(usize::from(to)),
            11 | 13 | 30 => Self::Press {
                to,
                senders: 2 + usize::from(how % 3),
                each: 1 + usize::from(how / 3 % 4),
                act: PRESSED_IN[usize::from(what % 8)],
                way: WAYS[usize::from(what / 8 % 8)],
            },
            14..=17 => Self::Volley {
                to,
                senders: 2 + usize::from(how % 3),
                each: 1 + usize::from(how / 3 % 8),
                act: MIXED_IN[usize::from(what % 8)],
            },
            28 | 29 => Self::Crowd {
                nature: Nature::from_byte(to),
                start: STARTS[usize::from(what % 8)],
                submitters: 2 + usize::from(how % 3),
                each: 1 + usize::from(how / 3 % 4),
                first: u64::from(what / 8 % 8),
            },
            18..=26 => Self::Far(to, Far::from_byte(what)),
            _ => Self::Place(Place::from_byte(what), how % 2 == 1),
        }
    }
}

impl Far {
    fn from_byte(byte: u8) -> Self {
        Self {
            place: Place::from_byte(byte),
            is_refused: byte / 3 % 4 == 3,
            control: byte / 12 % 3 == 2,
        }
    }
}

impl Place {
    fn from_byte(byte: u8) -> Self {
        [Self::Host, Self::Peer, Self::Elsewhere][usize::from(byte % 3)]
    }
}

impl Nature {
    fn from_byte(byte: u8) -> Self {
        let manners = [
            Manners::Finishes,
            Manners::Ignores,
            Manners::CleansUp,
            Manners::Obeys,
        ];
        Self {
            manners: manners[usize::from(byte % 4)],
            probes: byte / 4 % 2 == 1,
        }
    }
}

impl Next {
    fn from_byte(byte: u8) -> Self {
        match byte % 8 {
            0..=2 => Self::Process(Start::Well),
            3 => Self::Process(Start::InitFails),
            4 => Self::Process(Start::InitPanics),
            5 => Self::Factory,
            6 => Self::PanickingFactory,
            _ => Self::UnknownFactory,
        }
    }
}

impl Act {
    fn from_bytes(what: u8, how: u8) -> Self {
        match what % 24 {
            1 if how / 64 == 3 => Self::Demonitor(usize::from(how % 64)),
            1 if how / 64 > 0 => Self::Monitor(how),
            0 | 1 => Self::Note,
            2 => Self::Far(Far::from_byte(how)),
            3 | 4 => Self::Hold,
            5 | 6 => Self::Release,
            7..=11 => Self::Ask(KINDS[usize::from(how % 9)]),
            12 => Self::GoOn,
            13 => Self::Finish,
            14 => Self::Fail,
            15 => Self::Panic,
            16 | 17 => Self::Become(Next::from_byte(how)),
            18..=20 => {
                let passed = [Passed::Note, Passed::Finish, Passed::Ask, Passed::Control];
                let passed = passed[usize::from(how % 4)];
                if what % 24 == 20 {
                    Self::Wait(how / 4, passed)
                } else {
                    Self::Pass(how / 4, passed)
                }
            }
            21 => Self::Spawn(Nature::from_byte(how), STARTS[usize::from(how / 8 % 8)]),
            22 => Self::Cancel(how),
            _ => Self::Terminate(how),
        }
    }
}

#[cfg(test)]
mod tests;
