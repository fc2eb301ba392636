//! Passes: looks at all processes, for all viewers at the same moment.
//!
//! **Problem.** Ten pages ask for a list of a hundred thousand processes each second. A list of all
//! processes for each question takes a core, and a long look keeps other requests waiting.
//!
//! **Rejected.** To keep a list for later viewers: it is old, and keeps its memory while no viewer
//! asks.
//!
//! **Protocol.** A process takes all waiting questions, and goes once through the processes of all
//! schedulers. Each question sees each process, and equal questions share an answer. A process
//! without a place in an answer costs no memory.
//!
//! A page of sockets takes no look at processes, but its questions wait for the same moments.
//!
//! **Pace.** Between two portions of a pass it rests for nine times as long as a portion takes: a
//! pass takes a tenth of a core at most, and other requests have their turns. Behind a pass it
//! rests until passes have taken a fiftieth of a core, or for two seconds. Later questions wait for
//! the next pass. So an answer is never older than its question, and a flood of questions costs as
//! much as one viewer in haste. Questions of clients that have gone take no pass.

use super::limits::{LONGEST_REST, PARTS_OF_A_PASS, PARTS_OF_ALL, PORTION, PORTION_TIME};
use super::look::{List, Live, graphs};
use super::observed::{Observed, Shown};
use crate::api::{ProcessesQuery, SocketsQuery};
use crate::observer::{groups, tree, waits, watch_waits};
use bytes::Bytes;
use ganger_proc_api::{BoxError, Reply};
use ganger_sched::ContextExt as _;
use ganger_sched::internal::here;
use ganger_task::Cx;
use ganger_wait::watch::{self, Watching};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// A question for an answer in JSON, which takes a look at all processes or sockets.
pub(super) enum Ask {
    /// For a list of processes.
    Processes(ProcessesQuery, Reply<Bytes>),
    /// For another view of all processes.
    View(View, Reply<Bytes>),
    /// For a page of sockets.
    Sockets(SocketsQuery, Reply<Bytes>),
}

/// A view of all processes without a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Groups,
    Tree,
    Waits,
}

/// All questions of a pass.
#[derive(Default)]
struct Asked {
    lists: Vec<(ProcessesQuery, List, Vec<Reply<Bytes>>)>,
    sockets: Vec<(SocketsQuery, Vec<Reply<Bytes>>)>,
    groups: Views<Vec<(u64, groups::Collected)>>,
    tree: Views<Vec<(u64, tree::Collected)>>,
    waits: Views<Option<waits::Collected>>,
}

/// A view, while a pass makes it, and its askers.
#[derive(Default)]
struct Views<C> {
    made: C,
    replies: Vec<Reply<Bytes>>,
}

impl Ask {
    fn is_cancelled(&self) -> bool {
        match self {
            Self::Processes(_, reply) | Self::View(_, reply) | Self::Sockets(_, reply) => {
                reply.is_cancelled()
            }
        }
    }
}

impl Asked {
    fn is_empty(&self) -> bool {
        self.sockets.is_empty() && !self.is_of_processes()
    }

    fn is_of_processes(&self) -> bool {
        let views = [
            &self.groups.replies,
            &self.tree.replies,
            &self.waits.replies,
        ];
        !self.lists.is_empty() || views.iter().any(|it| !it.is_empty())
    }

    fn add(&mut self, ask: Ask) {
        if ask.is_cancelled() {
            return;
        }
        match ask {
            Ask::View(View::Groups, reply) => self.groups.replies.push(reply),
            Ask::View(View::Tree, reply) => self.tree.replies.push(reply),
            Ask::View(View::Waits, reply) => self.waits.replies.push(reply),
            Ask::Sockets(query, reply) => {
                let same = self.sockets.iter_mut().find(|it| it.0 == query);
                match same {
                    Some((_, replies)) => replies.push(reply),
                    None => self.sockets.push((query, vec![reply])),
                }
            }
            Ask::Processes(query, reply) => {
                let same = self.lists.iter_mut().find(|it| it.0 == query);
                if let Some((_, _, replies)) = same {
                    replies.push(reply);
                } else {
                    // `begin` makes it again, for the schedulers of the pass.
                    let list = List::new(query.clone(), &[]);
                    self.lists.push((query, list, vec![reply]));
                }
            }
        }
    }

    /// Begins the answers before the pass, which runs on the scheduler with the number `own`.
    fn begin(&mut self, schedulers: &[Shown], own: Option<u64>) {
        for (query, list, _) in &mut self.lists {
            *list = List::new(query.clone(), schedulers);
        }
        if !self.groups.replies.is_empty() {
            let empty = |it: &Shown| (it.number, groups::Collected::default());
            self.groups.made = schedulers.iter().map(empty).collect();
        }
        if !self.tree.replies.is_empty() {
            let most = tree::MOST / schedulers.len().max(1);
            let empty = |it: &Shown| (it.number, tree::Collected::new(&it.handle, most));
            self.tree.made = schedulers.iter().map(empty).collect();
        }
        if !self.waits.replies.is_empty() {
            // The questions of viewers are no waits of the program.
            let own = own.filter(|own| schedulers.iter().all(|it| it.handle.number() != *own));
            let made = own.map_or_else(waits::Collected::new, waits::Collected::without);
            self.waits.made = Some(made);
        }
    }

    fn see(&mut self, scheduler: &Shown, process: Live<'_>) {
        let number = scheduler.number;
        for (_, list, _) in &mut self.lists {
            list.see(number, &process, 0);
        }
        let own = |it: &u64| *it == number;
        if let Some((_, groups)) = self.groups.made.iter_mut().find(|it| own(&it.0)) {
            groups.see(process.look);
        }
        if let Some((_, tree)) = self.tree.made.iter_mut().find(|it| own(&it.0)) {
            tree.see(process.look);
        }
        if let Some(waits) = &mut self.waits.made {
            waits.see(scheduler.handle.number(), process.look);
        }
    }

    /// Answers the questions for sockets. Returns the time taken.
    async fn answer_sockets<M: Send + 'static>(
        &mut self,
        cx: &Cx<M>,
        schedulers: &[Shown],
    ) -> Result<Duration, BoxError> {
        let mut taken = Duration::ZERO;
        for (query, replies) in self.sockets.drain(..) {
            let begun = here::now();
            reply_all(replies, &graphs::sockets(schedulers, &query))?;
            taken += here::now() - begun;
            cx.yield_now().await;
        }
        Ok(taken)
    }

    async fn answer<M: Send + 'static>(
        self,
        cx: &Cx<M>,
        schedulers: &[Shown],
        watched: Duration,
    ) -> Result<(), BoxError> {
        for (_, list, replies) in self.lists {
            reply_all(replies, &list.finish(schedulers))?;
            cx.yield_now().await;
        }
        let Views { made, replies } = self.groups;
        if !replies.is_empty() {
            reply_all(replies, &graphs::groups(made))?;
            cx.yield_now().await;
        }
        let Views { made, replies } = self.tree;
        if !replies.is_empty() {
            reply_all(replies, &graphs::tree(schedulers, made))?;
            cx.yield_now().await;
        }
        if let Some(made) = self.waits.made {
            reply_all(
                self.waits.replies,
                &graphs::waits(schedulers, made, watched),
            )?;
        }
        Ok(())
    }
}

/// Gives all askers the same answer.
pub(super) fn reply_all(
    replies: Vec<Reply<Bytes>>,
    answer: &impl Serialize,
) -> Result<(), BoxError> {
    let json = Bytes::from(serde_json::to_vec(answer)?);
    for reply in replies {
        reply.complete(json.clone());
    }
    Ok(())
}

/// Runs the process. `watching` has the waits of the program registered from the start.
pub(super) async fn run(
    cx: Cx<Ask>,
    observed: Arc<Observed>,
    watching: Option<Watched>,
) -> Result<(), BoxError> {
    let mut watching = watching;
    let own = cx.scheduler().map(|it| it.number());
    while let Some(first) = cx.recv().await {
        let mut asked = Asked::default();
        let mut next = Some(first);
        while let Some(ask) = next {
            asked.add(ask);
            next = cx.try_recv();
        }
        if asked.is_empty() {
            continue;
        }
        if !asked.waits.replies.is_empty() {
            watching.get_or_insert_with(Watched::begin);
        }
        let schedulers = observed.schedulers();
        asked.begin(&schedulers, own);
        let mut taken = asked.answer_sockets(&cx, &schedulers).await?;
        if asked.is_of_processes() {
            taken += pass(&cx, &schedulers, |at, it| asked.see(at, it)).await;
        }
        let watched = watching.as_ref().map_or(Duration::ZERO, Watched::length);
        asked.answer(&cx, &schedulers, watched).await?;
        // A dropped scheduler gives its memory back.
        drop(schedulers);
        cx.sleep(rest_after(taken)).await?;
    }
    Ok(())
}

/// Has the waits of the program registered, until it is dropped.
pub(super) struct Watched {
    _watching: Watching,
    since: Duration,
}

impl Watched {
    pub(super) fn begin() -> Self {
        Self {
            _watching: watch_waits(),
            since: watch::now(),
        }
    }

    fn length(&self) -> Duration {
        watch::now().saturating_sub(self.since)
    }
}

/// Returns the rest behind a pass, by the time of a core that the pass has taken.
pub(super) fn rest_after(taken: Duration) -> Duration {
    (taken * (PARTS_OF_ALL - 1)).min(LONGEST_REST)
}

/// Calls `look` with all processes of all schedulers, portion by portion. Returns the time of a
/// core that it has taken.
pub(super) async fn pass<M: Send + 'static>(
    cx: &Cx<M>,
    schedulers: &[Shown],
    mut look: impl FnMut(&Shown, Live<'_>),
) -> Duration {
    let mut taken = Duration::ZERO;
    for shown in schedulers {
        let handle = &shown.handle;
        let mut portion = Some(0);
        while let Some(from) = portion {
            let now = handle.now();
            portion = handle.each_process_from(from, PORTION, |look_at| {
                look(shown, Live { look: look_at, now });
            });
            // The thread may have waited for a processor meanwhile.
            let time = (handle.now() - now).min(PORTION_TIME);
            taken += time;
            if portion.is_some() {
                // The sleep of an ending process fails.
                let _ = cx.sleep(time * (PARTS_OF_A_PASS - 1)).await;
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{self, By, Processes};
    use ganger_proc_api::process_fn;
    use ganger_sched::{Observe, Scheduler};

    // pins: V1
    #[test]
    fn all_that_ask_at_a_moment_get_the_same_look() {
        let scheduler = Scheduler::builder().workers(1).start().unwrap();
        let observed = Arc::new(Observed::default());
        observed.add(&scheduler);
        let task = scheduler.spawn(async move |cx: Cx| {
            let passes = cx.spawn(move |cx: Cx<Ask>| run(cx, observed, None))?;
            // All are asked in a step, before the next of the passes.
            let list = |top: u32| {
                let query = ProcessesQuery {
                    top,
                    by: By::Quiet,
                    ..ProcessesQuery::default()
                };
                cx.ask(passes.call(|reply| Ask::Processes(query, reply)))
            };
            let (first, again, both) = cx.join((list(1), list(1), list(2))).await;
            let (first, again, both) = (first?, again?, both?);
            // The same bytes, also of the times: a single look.
            assert_eq!(first.as_ptr(), again.as_ptr());
            let read = |json: Bytes| api::from_json::<Processes>(&json);
            let (first, both) = (read(first)?, read(both)?);
            assert_eq!((first.live, both.live), (2, 2));
            assert_eq!((first.processes.len(), both.processes.len()), (1, 2));
            assert_eq!(read(list(5).await?)?.matched, 2);
            cx.terminate(passes.pid())?;
            Ok(())
        });
        task.unwrap().wait().into_result().unwrap();
    }

    // pins: V11
    #[test]
    fn passes_take_a_small_part_of_the_time() {
        let ms = Duration::from_millis;
        assert_eq!(rest_after(Duration::ZERO), Duration::ZERO);
        assert_eq!(rest_after(ms(10)), ms(490));
        assert_eq!(rest_after(ms(10_000)), LONGEST_REST);
    }

    // pins: V3
    #[test]
    fn a_client_that_has_gone_takes_no_pass() {
        ganger_sim::Sim::check(5, |rt| {
            let late = rt.spawn(async |cx: Cx<Ask>| {
                cx.sleep(Duration::from_millis(10)).await?;
                let mut asked = Asked::default();
                for is_gone in [true, true, false] {
                    asked.add(cx.recv().await.unwrap());
                    assert_eq!(asked.is_empty(), is_gone);
                }
                Ok(())
            });
            let late = late.unwrap();
            let passes = late.address().clone();
            let clients = rt.spawn(async move |cx: Cx| {
                let query = ProcessesQuery::default();
                let list = || {
                    let query = query.clone();
                    cx.ask(passes.call(|reply| Ask::Processes(query, reply)))
                };
                let view = || cx.ask(passes.call(|reply| Ask::View(View::Tree, reply)));
                let short = Duration::from_millis(1);
                assert!(cx.timeout(short, list()).await.is_err());
                assert!(cx.timeout(short, view()).await.is_err());
                // This list has no answer either.
                assert!(view().await.is_err());
                Ok(())
            });
            rt.wait(clients.unwrap()).into_result().unwrap();
            rt.wait(late).into_result().unwrap();
        });
    }

    // pins: V6
    #[test]
    fn a_pass_sees_each_process_of_all_schedulers_once() {
        let idle = || process_fn(|_, _, _| Ok(()));
        let small = Scheduler::builder().build().unwrap();
        let large = Scheduler::builder()
            .observe(Observe::Counts)
            .build()
            .unwrap();
        let of_small = small.submit(idle(), "idle", ()).unwrap();
        let chosen = ganger_proc_api::Pid::new(large.host_name(), 7);
        drop(large.submit_as(chosen, idle(), "idle", ()).unwrap());
        let mut expected = vec![(1, of_small.pid()), (2, chosen)];
        // Some slots are free again.
        for number in 0..3 * PORTION {
            let process = large.submit(idle(), "idle", ()).unwrap();
            match number % 3 {
                0 => drop(large.terminate(process.pid())),
                _ => expected.push((2, process.pid())),
            }
        }
        large.start().unwrap();
        while large.stats().live + 1 > expected.len() {
            std::thread::yield_now();
        }
        let observed = Arc::new(Observed::default());
        observed.add(&small);
        observed.add(&large);
        let looker = Scheduler::builder().workers(1).start().unwrap();
        let task = looker.spawn(async move |cx: Cx| {
            let mut seen = Vec::new();
            let see = |at: &Shown, it: Live<'_>| seen.push((at.number, it.look.pid()));
            pass(&cx, &observed.schedulers(), see).await;
            seen.sort_unstable();
            expected.sort_unstable();
            assert!(seen == expected, "{} of {}", seen.len(), expected.len());
            Ok(())
        });
        task.unwrap().wait().into_result().unwrap();
    }
}
