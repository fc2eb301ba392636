//! The counts and measures of a scheduler in production, where its builder asks for them.
//!
//! **Problem.** Operators of a program ask for slow processes, growing mailboxes, and the load of
//! the workers. A counter shared by all workers, a clock at each step, or a lock at each message
//! would make all processes slow.
//!
//! **Protocol.** The [`Observation`] is a probe. Each process has a [`Record`], which the owner of
//! the run token writes by plain stores; a sender writes there only when the process does not wait.
//! Each worker has a [`Place`] with its times of work, search and sleep. Counts are exact.
//! Durations are sampled: a worker reads the clock at every [`SAMPLE`]th step, which counts for all
//! of them. So a step of 20 ns pays for two reads of the clock once in 64 times. Waits are sampled
//! in the same way, at every [`SAMPLE`]th turn of each process.
//!
//! **Readers** wait for no worker, and no worker waits for a reader. Readers read records with
//! relaxed loads. A reader of histograms takes a worker's histograms away and leaves empty ones.
//! The worker drops a sample of this moment.
//!
//! **Costs without observation**: a process has a null pointer in the place of its record, and each
//! point is a look at this pointer.
//!
//! **Imports.** All folders. Without `look.rs` and `marks.rs`, the folders from `base` to `probe`
//! are enough.

mod histograms;
mod labels;
mod look;
mod marks;
mod points;
mod record;
mod recorder;
mod steps;

pub use histograms::{Distributions, OfType};
pub use look::{ProcessLook, Wait, Watchers};
pub use marks::Marks;
pub use record::ProcessCounts;
pub use recorder::{Recording, mark};

use crate::base::clock::{Clock, MonotonicClock, nanos};
use crate::base::level::{NotAllowed, Observe};
use crate::base::shares::{Shares, Spends, WorkerTimes};
use crate::base::tracer::StepTracer;
use crate::config::Config;
use crate::probe::{Decide, Decider};
use crate::runtime::local;
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use ganger_sync::sync::{Mutex, lock};
use histograms::Samples;
use labels::Labels;
use marks::Claim;
pub(crate) use record::Record;
use recorder::Flight;
use std::ptr;
use std::sync::Arc;

/// A worker measures every 64th step, and every 64th wait of a process.
pub(crate) const SAMPLE: u32 = 64;

/// The probe of a scheduler that may be observed.
pub(crate) struct Observation(Option<Box<Observed>>);

struct Observed {
    /// The highest level allowed by the builder.
    most: Observe,
    /// An [`Observe`] by its number, up to `most`.
    level: AtomicU8,
    clock: MonotonicClock,
    places: Box<[CachePadded<Place>]>,
    /// Samples of all threads other than workers.
    outside: Samples,
    /// New events given to steps by these threads.
    outside_events: AtomicU64,
    labels: Labels,
    /// All samples taken from the workers so far.
    taken: Mutex<Distributions>,
    /// Claimed by the reader with marks.
    marks: Claim,
    tracer: Option<Arc<dyn StepTracer>>,
    /// Set where events are recorded.
    flight: Option<Flight>,
}

/// A worker's place, written by the worker alone.
struct Place {
    shares: Shares,
    /// How many steps are left before the next measured step.
    left: AtomicU32,
    /// When the measured step has begun; 0 without one.
    begun: AtomicU64,
    /// All new events given to steps.
    events: AtomicU64,
    samples: Samples,
}

impl Place {
    fn new() -> Self {
        Self {
            shares: Shares::new(),
            left: AtomicU32::new(0),
            begun: AtomicU64::new(0),
            events: AtomicU64::new(0),
            samples: Samples::default(),
        }
    }

    /// Returns whether this step is measured, as every [`SAMPLE`]th is.
    #[inline(always)]
    fn is_sampled(&self) -> bool {
        // Ordering: Relaxed here and below: a single thread uses it.
        let left = self.left.load(Ordering::Relaxed);
        let next = left.checked_sub(1).unwrap_or(SAMPLE - 1);
        self.left.store(next, Ordering::Relaxed);
        left == 0
    }
}

impl Observed {
    fn new(most: Observe, config: &Config, slots: usize) -> Self {
        let place = |_| CachePadded::new(Place::new());
        Self {
            most,
            level: AtomicU8::new(most.number()),
            clock: config.clock(),
            places: (0..slots).map(place).collect(),
            outside: Samples::default(),
            outside_events: AtomicU64::new(0),
            labels: Labels::default(),
            taken: Mutex::default(),
            marks: Claim::default(),
            tracer: config.tracer.clone(),
            flight: (config.record.as_ref()).map(|it| Flight::new(it, config, slots)),
        }
    }

    /// Returns the time in nanoseconds, never 0.
    fn now(&self) -> u64 {
        let now = Decider::time().unwrap_or_else(|| self.clock.now());
        nanos(now).max(1)
    }

    fn measures(&self) -> bool {
        // Ordering: Relaxed: a worker may learn of a change a little later.
        Observe::of(self.level.load(Ordering::Relaxed)) >= Observe::Histograms
    }

    /// Counts new events given to a step.
    #[inline(always)]
    fn count_events(&self, place: Option<&Place>, events: u64) {
        // Ordering: Relaxed here and below: counts, on the strength of which nothing is read. The
        // worker alone writes the count of its place, so the load and the store lose no event.
        if let Some(place) = place {
            let before = place.events.load(Ordering::Relaxed);
            place.events.store(before + events, Ordering::Relaxed);
        } else {
            self.outside_events.fetch_add(events, Ordering::Relaxed);
        }
    }

    fn place(&self, worker: Option<usize>) -> Option<&Place> {
        self.places.get(worker?).map(|place| &**place)
    }

    fn spend(&self, worker: usize, on: Spends) {
        if let Some(place) = self.place(Some(worker)) {
            place.shares.spend(on, self.now());
        }
    }

    /// Ends the measured step, if any.
    #[inline(always)]
    fn end_step(&self, record: &Record, place: &Place, of: impl Fn() -> &'static str) {
        // Ordering: Relaxed: the worker's own.
        let begun = place.begun.load(Ordering::Relaxed);
        if begun != 0 {
            self.measure_step(record, place, begun, of());
        }
    }

    #[cold]
    #[inline(never)]
    fn measure_step(&self, record: &Record, place: &Place, begun: u64, of: &'static str) {
        let length = self.now().saturating_sub(begun);
        // Ordering: Relaxed: the worker's own.
        place.begun.store(0, Ordering::Relaxed);
        record.spend(length, SAMPLE);
        if self.measures() {
            place.samples.add(|it| it.add_step(length, of));
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_step(&self, place: &Place) {
        // Ordering: Relaxed: the worker's own.
        place.begun.store(self.now(), Ordering::Relaxed);
    }

    /// Ends the noted waits of the process, which was made ready, or whose mailbox got a message.
    #[cold]
    #[inline(never)]
    fn end_waits(&self, record: &Record, place: Option<&Place>, events: usize, of: &'static str) {
        let now = self.now();
        let ready = record.take_ready().map(|since| now.saturating_sub(since));
        let mail = record.take_mail(events, now);
        if self.measures() {
            place.map_or(&self.outside, |it| &it.samples).add(|it| {
                if let Some(wait) = ready {
                    it.add_ready(wait, of);
                }
                if let Some(wait) = mail {
                    it.add_mail(wait);
                }
            });
        }
    }
}

impl Observation {
    #[inline(always)]
    fn with<'a>(&'a self, record: &'a Option<Box<Record>>) -> Option<(&'a Observed, &'a Record)> {
        // The record first: a record implies an observation.
        let record = record.as_deref()?;
        Some((self.0.as_deref()?, record))
    }

    #[inline(always)]
    fn spend(&self, worker: usize, on: Spends) {
        if let Some(observed) = &self.0 {
            observed.spend(worker, on);
        }
    }

    #[inline(always)]
    fn flight(&self) -> Option<&Flight> {
        self.0.as_ref()?.flight.as_ref()
    }

    /// Returns the index of this thread's worker, if it is a worker of this scheduler.
    fn own(&self) -> Option<usize> {
        local::with_any(|queue| {
            let queue = queue.filter(|it| ptr::eq(it.shared.observation(), self))?;
            Some(queue.index)
        })
    }

    /// Returns the present level of counting and measuring.
    pub(crate) fn level(&self) -> Observe {
        let observed = self.0.as_ref();
        // Ordering: Relaxed: nothing is read on the strength of this load.
        observed.map_or(Observe::Off, |it| {
            Observe::of(it.level.load(Ordering::Relaxed))
        })
    }

    /// Measures more, or less.
    pub(crate) fn set_level(&self, level: Observe) -> Result<(), NotAllowed> {
        let most = self.0.as_ref().map_or(Observe::Off, |it| it.most);
        match &self.0 {
            Some(observed) if level <= most && level != Observe::Off => {
                // Ordering: Relaxed, as in `measures`.
                observed.level.store(level.number(), Ordering::Relaxed);
                Ok(())
            }
            None if level == Observe::Off => Ok(()),
            _ => Err(NotAllowed { level, most }),
        }
    }

    /// Returns the counts of a process.
    pub(crate) fn counts(&self, record: &Option<Box<Record>>) -> Option<ProcessCounts> {
        let (observed, record) = self.with(record)?;
        Some(record.counts(observed.now()))
    }

    /// Returns the times of the first `workers` workers.
    pub(crate) fn times(&self, workers: usize) -> Vec<WorkerTimes> {
        let times = |observed: &Observed| {
            let now = observed.now();
            let places = observed.places.iter().take(workers);
            places.map(|place| place.shares.times(now)).collect()
        };
        self.0.as_deref().map_or_else(Vec::new, times)
    }

    /// Returns the number of all new events given to steps since the scheduler was built.
    pub(crate) fn events(&self) -> Option<u64> {
        let observed = self.0.as_deref()?;
        let words = observed.places.iter().map(|place| &place.events);
        // Ordering: Relaxed, as in `count_events`.
        let each = words
            .chain([&observed.outside_events])
            .map(|it| it.load(Ordering::Relaxed));
        Some(each.sum())
    }

    /// Returns all measures since the scheduler was built.
    pub(crate) fn distributions(&self) -> Option<Distributions> {
        let observed = self.0.as_ref()?;
        let mut taken = lock(&observed.taken);
        let samples = observed.places.iter().map(|place| &place.samples);
        for samples in samples.chain([&observed.outside]) {
            samples.move_to(&mut taken);
        }
        Some(taken.clone())
    }

    /// Returns the label of a process.
    pub(crate) fn label(&self, record: &Option<Box<Record>>) -> Option<Arc<str>> {
        let (observed, record) = self.with(record)?;
        observed.labels.name(record.label())
    }
}
