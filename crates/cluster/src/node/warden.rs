//! The process of a node itself: it lets the links end when the scheduler stops, or the node
//! leaves.
//!
//! **Protocol.** A stop cancels this process, and leaves the links alone.
//! 1. The warden waits until no process is left but those of the node, or a quarter of the time to
//!    stop. So the last messages of processes that end are carried, too.
//! 2. A link whose messages are known to have arrived says farewell, and ends. A link that is not
//!    flushed shortly before the deadline does so as well.
//! 3. Then the engine stops.

use super::core::Core;
use ganger_proc_api::{
    BoxError, Context, Event, Events, Payloads, Process, StepOutput, StepResult, Tag,
};
use ganger_sched::Handle;
use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

const LOOK: Tag = 1;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(5);

/// The time for the last words of helpers.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The time for farewells.
const FAREWELL: Duration = Duration::from_millis(50);

/// How the node is asked to leave.
#[derive(Default)]
pub(crate) struct Leaving(Mutex<Option<Duration>>, Mutex<Option<Waker>>);

impl Leaving {
    pub(crate) fn begin(&self, within: Duration) {
        lock(&self.0).get_or_insert(within);
        let waker = lock(&self.1).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

pub(crate) struct Warden {
    core: Arc<Core>,
    leaving: Arc<Leaving>,
    is_stopping: bool,
    /// The whole time, and the time left.
    time: Option<(Duration, Duration)>,
    /// The time left for the helpers.
    last_words: Duration,
}

impl Warden {
    pub(crate) fn new(core: Arc<Core>, leaving: Arc<Leaving>) -> Self {
        Self {
            core,
            leaving,
            is_stopping: false,
            time: None,
            last_words: LAST_WORDS,
        }
    }

    /// Looks at the peers. True: the node has left.
    fn look(&mut self, scheduler: &Handle) -> bool {
        let peers = self.core.all();
        let open = peers.iter().filter(|peer| !peer.is_over()).count();
        let left = match scheduler.time_to_stop() {
            Some(left) if self.is_stopping => left,
            _ => self.time.map_or(Duration::ZERO, |(_, left)| left),
        };
        let (whole, _) = *self.time.get_or_insert((left, left));
        self.time = Some((whole, left.saturating_sub(PERIOD)));
        let (helpers, engine) = (&self.core.base.helpers, &self.core.base.engine);
        let own = open + 1 + engine.processes() + helpers.live();
        let is_alone = scheduler.stats().live <= own;
        if self.is_stopping && !is_alone && left > whole / 4 {
            return false;
        }
        // They need the connections for their last words.
        self.last_words = self.last_words.saturating_sub(PERIOD);
        if !helpers.end() && left > whole / 8 && !self.last_words.is_zero() {
            return false;
        }
        helpers.end_at_once();
        self.core.close();
        let mut has_closed_all = true;
        for peer in peers {
            if peer.is_over() {
                continue;
            }
            peer.close_for_senders();
            if peer.is_flushed() || left <= FAREWELL {
                peer.close();
            }
            has_closed_all &= peer.is_over();
        }
        if has_closed_all {
            self.core.base.engine.stop(left);
        }
        has_closed_all
    }
}

impl Process for Warden {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        *lock(&self.leaving.1) = Some(ctx.waker());
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if matches!(event, Event::Cancel(_)) {
                out.defer_cancel();
                self.is_stopping = true;
                self.time = None;
            }
        }
        let within = *lock(&self.leaving.0);
        if let Some(within) = within.filter(|_| !self.is_stopping) {
            self.time.get_or_insert((within, within));
        } else if !self.is_stopping {
            return Ok(());
        }
        let scheduler = self.core.base.scheduler.upgrade();
        if scheduler.is_none_or(|scheduler| self.look(&scheduler)) {
            out.done(());
        } else {
            out.cancel(LOOK);
            out.sleep(PERIOD, LOOK);
        }
        Ok(())
    }
}

/// Ended by the deadline of a stop, for instance.
impl Drop for Warden {
    fn drop(&mut self) {
        self.core.close();
        self.core.base.engine.stop(Duration::ZERO);
    }
}
