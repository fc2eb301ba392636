//! The processes of a mix, and the acts of their steps.

use super::ledger::Send;
use std::fmt;

/// The properties of a process. Times are microseconds.
#[derive(Clone, PartialEq)]
pub(super) struct Kind {
    pub(super) lasts: u64,
    pub(super) continues: bool,
    /// The steps from a send to `sends` waiting processes to the next; 0: no step sends.
    pub(super) sends_every: u64,
    pub(super) sends: usize,
    /// The only receiver of its sends.
    pub(super) partner: Option<usize>,
}

impl Kind {
    /// Computes and continues.
    pub(super) fn busy(lasts: u64) -> Self {
        Self {
            lasts,
            continues: true,
            sends_every: 0,
            sends: 0,
            partner: None,
        }
    }

    /// Runs when it is woken.
    pub(super) fn sleeper(lasts: u64) -> Self {
        Self {
            continues: false,
            ..Self::busy(lasts)
        }
    }

    /// Wakes its partner, and the partner wakes it.
    fn half(lasts: u64, partner: usize) -> Self {
        Self {
            sends_every: 1,
            sends: 1,
            partner: Some(partner),
            ..Self::sleeper(lasts)
        }
    }
}

#[derive(Clone)]
pub(super) struct Mix {
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) kinds: Vec<Kind>,
    /// The interval of another thread's sends to a waiting process; 0: never.
    arrives_every: u64,
    /// One send in this many is urgent; 0: none.
    urgent_one_in: u64,
    end: u64,
}

/// A send from another thread.
pub(super) struct Arrival {
    pub(super) at: u64,
    pub(super) send: Send,
}

impl Mix {
    pub(super) fn of(workers: usize, kinds: Vec<Kind>, arrives_every: u64) -> Self {
        let is_long = kinds.iter().any(|kind| kind.lasts >= 50);
        Self {
            seed: 1,
            workers,
            kinds,
            arrives_every,
            urgent_one_in: 0,
            end: if is_long { 120_000 } else { 24_000 },
        }
    }

    pub(super) fn random(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let pick = |random: &mut fastrand::Rng, from: &[u64]| from[random.usize(..from.len())];
        let usual = pick(&mut random, &[1, 3, 10, 50, 200, 1_000]);
        let any = |random: &mut fastrand::Rng| match random.bool() {
            true => usual,
            false => pick(random, &[1, 3, 10, 50, 200, 1_000]),
        };
        let mut kinds = Vec::new();
        for _ in 0..random.usize(0..9) {
            let mut kind = Kind::busy(any(&mut random));
            if random.u8(..4) == 0 {
                kind.sends_every = pick(&mut random, &[1, 10, 100]);
                kind.sends = random.usize(1..60);
            }
            kinds.push(kind);
        }
        for _ in 0..random.usize(0..4) {
            let (lasts, first) = (any(&mut random), kinds.len());
            kinds.push(Kind::half(lasts, first + 1));
            kinds.push(Kind::half(lasts, first));
        }
        for _ in 0..random.usize(1..60) {
            let lasts = pick(&mut random, &[1, 1, 3, 10, 200]);
            kinds.push(Kind::sleeper(lasts));
        }
        Self {
            seed,
            urgent_one_in: pick(&mut random, &[0, 0, 10]),
            ..Self::of(
                random.usize(1..4),
                kinds,
                pick(&mut random, &[0, 50, 500, 5_000]),
            )
        }
    }

    /// Returns the time since which waits count: a worker knows how long steps are after a look of
    /// the monitor, and goes by the chain limit until then.
    pub(super) fn settled(&self) -> u64 {
        self.end / 4
    }

    /// Returns the sends of the process at the end of a step.
    pub(super) fn sends(&self, process: usize, nth: u64) -> Vec<Send> {
        let kind = &self.kinds[process];
        if kind.sends_every == 0 || !nth.is_multiple_of(kind.sends_every) {
            return Vec::new();
        }
        let mut random = self.random_of(process as u64 + 1, nth);
        (0..kind.sends)
            .filter_map(|_| self.send(&mut random, kind.partner))
            .collect()
    }

    /// Returns the sends from outside; the last is at the end.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = Arrival> + '_ {
        let every = match self.arrives_every {
            0 => self.end,
            every => every,
        };
        (1..=self.end / every).filter_map(move |nth| {
            let send = self.send(&mut self.random_of(0, nth), None)?;
            let at = nth * every;
            Some(Arrival { at, send })
        })
    }

    /// Chooses a send to the partner, or to any waiting process.
    fn send(&self, random: &mut fastrand::Rng, partner: Option<usize>) -> Option<Send> {
        let is_sleeper = |kind: &Kind| !kind.continues && kind.partner.is_none();
        let first = self.kinds.iter().position(is_sleeper)?;
        let any = random.usize(first..self.kinds.len());
        let urgent = random.u64(..self.urgent_one_in.max(1));
        Some(Send {
            to: partner.unwrap_or(any),
            is_urgent: self.urgent_one_in > 0 && urgent == 0,
        })
    }

    fn random_of(&self, of: u64, nth: u64) -> fastrand::Rng {
        let mut random = fastrand::Rng::with_seed(self.seed ^ (of << 40) ^ (nth << 8));
        let seed = random.u64(..);
        fastrand::Rng::with_seed(seed)
    }
}

impl fmt::Debug for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, workers) = (self.seed, self.workers);
        write!(f, "mix {seed}, {workers} workers, ")?;
        let (every, urgent) = (self.arrives_every, self.urgent_one_in);
        write!(f, "arrivals every {every} us, 1 in {urgent} urgent;")?;
        for group in self.kinds.chunk_by(Kind::eq) {
            let Kind {
                lasts,
                continues,
                sends_every,
                sends,
                partner,
            } = group[0];
            let how = match (continues, partner) {
                (true, _) => "busy",
                (false, None) => "waiting",
                (false, Some(_)) => "paired",
            };
            write!(f, " {} {how} {lasts} us", group.len())?;
            if sends_every > 0 && continues {
                write!(f, " (to {sends} at 1 step in {sends_every})")?;
            }
            f.write_str(",")?;
        }
        Ok(())
    }
}
