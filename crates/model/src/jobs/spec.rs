//! The effects of pools, act by act, without processes: which job is carried out, how often, and
//! the caller's answer.

use ganger_supervise::{Overload, Routing};
use std::collections::{BTreeMap, VecDeque};

/// A pool with a time to live does not begin a job that has waited for this many seconds.
pub(super) const TIME_TO_LIVE: u64 = 5;

/// The settings of a pool.
#[derive(Debug, Clone)]
pub struct PoolPlan {
    /// How many workers it has. At least one.
    pub workers: usize,
    /// The choice of a worker for a job.
    pub routing: Routing,
    /// How many jobs may wait.
    pub most: usize,
    /// The fate of further jobs.
    pub overload: Overload,
    /// Whether jobs have a time to live.
    pub expires: bool,
    /// How often a job is tried again.
    pub retries: u32,
}

/// A job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Its answer is its number.
    Works,
    /// The job answers with an error.
    Fails,
    /// Its worker panics this many times.
    Panics(u32),
}

/// An operation on a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolAct {
    /// A caller has a job, perhaps with a key.
    Call(Job, Option<u8>),
    /// A job without an answer.
    Send(Job),
    /// The caller with this number leaves.
    Leave(usize),
    /// Three seconds go by.
    Wait,
    /// No job is begun any more.
    Suspend,
    /// Jobs are begun again.
    Resume,
    /// The pool stops.
    Stop,
}

/// The answer to a caller, or to the pool's handler.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    Done(usize),
    Failed,
    Panicked,
    Full(usize),
    Expired,
    Stopping,
}

/// The counts of a pool.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) queued: usize,
    pub(super) served: u64,
    pub(super) panicked: u64,
    pub(super) retried: u64,
    pub(super) refused: u64,
    pub(super) expired: u64,
    pub(super) left: u64,
}

/// A waiting job.
struct Entry {
    number: usize,
    job: Job,
    caller: Caller,
    /// The caller tells of its leaving.
    is_watched: bool,
    since: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    None,
    Waits,
    Left,
}

/// A running pool.
pub(super) struct Spec {
    plan: PoolPlan,
    now: u64,
    queue: VecDeque<Entry>,
    is_suspended: bool,
    has_stopped: bool,
    pub(super) counts: Counts,
    /// By the numbers of the jobs. A caller gets no answer after it has left.
    pub(super) answers: BTreeMap<usize, Answer>,
    /// The handler's notices of jobs that were not carried out.
    pub(super) handled: Vec<(usize, Answer)>,
    /// The number of each begun job, once for each begin.
    pub(super) begun: Vec<usize>,
    next: usize,
}

impl Spec {
    pub(super) fn new(plan: &PoolPlan) -> Self {
        Self {
            plan: plan.clone(),
            now: 0,
            queue: VecDeque::new(),
            is_suspended: false,
            has_stopped: false,
            counts: Counts::default(),
            answers: BTreeMap::new(),
            handled: Vec::new(),
            begun: Vec::new(),
            next: 0,
        }
    }

    /// Plays an act. Returns the answer to the sender of a job without an answer.
    pub(super) fn act(&mut self, act: PoolAct) -> Option<Answer> {
        match act {
            PoolAct::Call(job, _) => {
                if let Some(answer) = self.admit(job, Caller::Waits) {
                    self.refuse(self.next - 1, Caller::Waits, answer);
                }
            }
            PoolAct::Send(job) => return self.admit(job, Caller::None),
            PoolAct::Leave(number) => {
                let mut waiting = self.queue.iter_mut();
                if let Some(entry) = waiting.find(|it| it.number == number)
                    && entry.caller == Caller::Waits
                {
                    entry.caller = Caller::Left;
                }
                self.give_up_places(|it| it.is_watched);
            }
            PoolAct::Wait => {
                self.now += 3;
                self.expire();
            }
            PoolAct::Suspend => self.is_suspended = !self.has_stopped,
            PoolAct::Resume => self.is_suspended = false,
            PoolAct::Stop => {
                (self.is_suspended, self.has_stopped) = (false, true);
            }
        }
        self.serve();
        None
    }

    /// Admits a job; returns the reason of a refusal.
    fn admit(&mut self, job: Job, caller: Caller) -> Option<Answer> {
        let number = self.next;
        self.next += 1;
        if self.has_stopped {
            self.counts.refused += 1;
            return Some(Answer::Stopping);
        }
        let is_limited = self.plan.overload != Overload::Wait;
        if is_limited && self.queue.len() >= self.plan.most {
            self.give_up_places(|_| true);
            for entry in &mut self.queue {
                entry.is_watched = true;
            }
        }
        let queued = self.queue.len();
        if is_limited && queued >= self.plan.most {
            self.counts.refused += 1;
            match self.plan.overload {
                Overload::RefuseOldest if queued > 0 => {
                    let oldest = self.queue.pop_front()?;
                    self.refuse(oldest.number, oldest.caller, Answer::Full(queued));
                }
                _ => return Some(Answer::Full(queued)),
            }
        }
        self.queue.push_back(Entry {
            number,
            job,
            caller,
            is_watched: false,
            since: self.now,
        });
        self.serve();
        None
    }

    fn refuse(&mut self, number: usize, caller: Caller, answer: Answer) {
        self.handled.push((number, answer.clone()));
        self.answer(number, caller, answer);
    }

    fn answer(&mut self, number: usize, caller: Caller, answer: Answer) {
        if caller == Caller::Waits {
            self.answers.insert(number, answer);
        }
    }

    /// Gives up the jobs of departed callers that are in `among`.
    fn give_up_places(&mut self, among: impl Fn(&Entry) -> bool) {
        let before = self.queue.len();
        self.queue
            .retain(|it| it.caller != Caller::Left || !among(it));
        self.counts.left += (before - self.queue.len()) as u64;
    }

    fn expire(&mut self) {
        while self.plan.expires
            && let Some(oldest) = self.queue.front()
            && self.now - oldest.since >= TIME_TO_LIVE
            && let Some(Entry { number, caller, .. }) = self.queue.pop_front()
        {
            if caller == Caller::Left {
                self.counts.left += 1;
            } else {
                self.counts.expired += 1;
                self.refuse(number, caller, Answer::Expired);
            }
        }
    }

    fn serve(&mut self) {
        while !self.is_suspended
            && let Some(entry) = self.queue.pop_front()
        {
            if entry.caller == Caller::Left {
                self.counts.left += 1;
            } else {
                let answer = self.carry_out(entry.number, entry.job);
                self.answer(entry.number, entry.caller, answer);
            }
        }
        self.counts.queued = self.queue.len();
    }

    fn carry_out(&mut self, number: usize, job: Job) -> Answer {
        let panics = match job {
            Job::Panics(times) => times,
            Job::Works | Job::Fails => 0,
        };
        let retries = panics.min(self.plan.retries);
        self.counts.retried += u64::from(retries);
        let begun = 1 + usize::try_from(retries).unwrap_or_default();
        self.begun.extend([number].repeat(begun));
        if panics > self.plan.retries {
            self.counts.panicked += 1;
            return Answer::Panicked;
        }
        self.counts.served += 1;
        match job {
            Job::Fails => Answer::Failed,
            _ => Answer::Done(number),
        }
    }
}
