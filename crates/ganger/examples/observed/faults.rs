//! The four faults.

use super::shop::Goods;
use ganger::Spawner;
use ganger::lock::{Barrier, Mutex};
use ganger::prelude::*;
use ganger::supervise::Tree;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub(crate) const HELP: &str = "\
Type a word:
  flood     lines come faster than the printer prints
  deadlock  two processes wait for each other's lock, and a third one behind them
  stuck     a step computes for ten seconds
  crash     the shelf panics three times; the stock gives up, and the shop makes a new one
  calm      ends the faults";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Flood,
    Deadlock,
    Stuck,
    Crash,
}

impl Fault {
    pub(crate) fn where_to_look(self) -> &'static str {
        match self {
            Self::Flood => "the printer's mailbox grows: sort the processes by mailbox",
            Self::Deadlock => "look at the waits: a cycle, and a process behind it",
            Self::Stuck => "look at the long steps, and at the workers",
            Self::Crash => "look at the restarts in the tree",
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "flood" => Self::Flood,
            "deadlock" => Self::Deadlock,
            "stuck" => Self::Stuck,
            "crash" => Self::Crash,
            _ => {
                return Err(format!(
                    "{text} is none of flood, deadlock, stuck and crash"
                ));
            }
        })
    }
}

/// Begins and ends faults.
pub(crate) struct Faults {
    scheduler: Handle,
    tree: Tree,
    /// How often calm was asked for. A computing step reads the count to see its end.
    calms: Arc<AtomicU64>,
    /// The processes in a wait for each other.
    tangled: std::sync::Mutex<Vec<Pid>>,
}

impl Faults {
    pub(crate) fn new(scheduler: &Handle, tree: &Tree) -> Self {
        Self {
            scheduler: scheduler.clone(),
            tree: tree.clone(),
            calms: Arc::default(),
            tangled: std::sync::Mutex::default(),
        }
    }

    /// Begins a fault. Returns at once.
    pub(crate) fn begin(&self, fault: Fault) -> Result<(), BoxError> {
        match fault {
            Fault::Flood => self.flood(),
            Fault::Deadlock => self.deadlock(),
            Fault::Stuck => self.stuck(),
            Fault::Crash => self.crash(),
        }
    }

    /// Ends all faults. A new printer begins without the lines of the old printer.
    pub(crate) fn calm(&self) -> Result<(), BoxError> {
        self.calms.fetch_add(1, Ordering::Relaxed);
        let tangled =
            std::mem::take(&mut *self.tangled.lock().unwrap_or_else(PoisonError::into_inner));
        for pid in tangled {
            // A process of them may have ended.
            let _gone = self.scheduler.cancel(pid, "calm");
        }
        self.tree.restart_child("printer").wait()?;
        Ok(())
    }

    /// Says whether calm was asked for since the call of this method.
    fn is_calm(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let calms = Arc::clone(&self.calms);
        let before = calms.load(Ordering::Relaxed);
        move || calms.load(Ordering::Relaxed) != before
    }

    /// Returns a spawner for processes with a label.
    fn spawner(&self, label: &str) -> Spawner<Handle> {
        self.scheduler.spawner().labelled(label)
    }

    fn flood(&self) -> Result<(), BoxError> {
        let is_calm = self.is_calm();
        let advertise = move |cx: Cx| advertise(cx, is_calm);
        self.spawner("advertisement").spawn(advertise)?;
        Ok(())
    }

    fn deadlock(&self) -> Result<(), BoxError> {
        let [purse, ledger] = [(); 2].map(|()| Arc::new(Mutex::new(0)));
        let meet = Arc::new(Barrier::new(2));
        let mut tangled = Vec::new();
        for [first, second] in [[&purse, &ledger], [&ledger, &purse]] {
            let (first, second) = (Arc::clone(first), Arc::clone(second));
            let meet = Arc::clone(&meet);
            let clerk = move |cx: Cx| clerk(cx, first, second, meet);
            tangled.push(self.spawner("clerks").spawn(clerk)?.pid());
        }
        let auditor = move |cx: Cx| auditor(cx, ledger);
        tangled.push(self.spawner("clerks").spawn(auditor)?.pid());
        let mut all = self.tangled.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(tangled);
        Ok(())
    }

    fn stuck(&self) -> Result<(), BoxError> {
        let (is_calm, scheduler) = (self.is_calm(), self.scheduler.clone());
        let is_over = move || is_calm() || scheduler.is_stopping();
        let inventory = move |cx: Cx| inventory(cx, is_over);
        self.spawner("inventory").spawn(inventory)?;
        Ok(())
    }

    fn crash(&self) -> Result<(), BoxError> {
        self.spawner("vandals").spawn(vandal)?;
        Ok(())
    }
}

/// Has 5,000 lines a second printed, for twenty seconds.
async fn advertise(cx: Cx, is_calm: impl Fn() -> bool) -> Result<(), BoxError> {
    let mut ticks = cx.every(Duration::from_millis(10));
    for _ in 0..2_000 {
        ticks.next().await?;
        let printer = cx.lookup::<String>("printer");
        if is_calm() {
            break;
        }
        if let Ok(printer) = printer {
            for number in 0..50 {
                // The printer may begin anew.
                let _refused = printer.send(format!("the best offer: number {number}"));
            }
        }
    }
    Ok(())
}

/// Takes its first lock, and its second when both clerks have their first.
async fn clerk(
    cx: Cx,
    first: Arc<Mutex<u64>>,
    second: Arc<Mutex<u64>>,
    meet: Arc<Barrier>,
) -> Result<(), BoxError> {
    let _first = first.lock().await.map_err(|it| it.to_string())?;
    cx.until_cancelled(meet.wait()).await?;
    let _second = cx.until_cancelled(second.lock()).await?;
    Ok(())
}

/// Waits behind the clerks.
async fn auditor(cx: Cx, ledger: Arc<Mutex<u64>>) -> Result<(), BoxError> {
    cx.sleep(Duration::from_millis(50)).await?;
    let _ledger = cx.until_cancelled(ledger.lock()).await?;
    Ok(())
}

/// Breaks the shelf three times, more often than the stock restarts it.
async fn vandal(cx: Cx) -> Result<(), BoxError> {
    for _ in 0..3 {
        if let Ok(shelf) = cx.lookup::<Goods>("shelf") {
            shelf.send(Goods::Break)?;
        }
        cx.sleep(Duration::from_millis(300)).await?;
    }
    Ok(())
}

async fn inventory(_: Cx, is_over: impl Fn() -> bool) -> Result<(), BoxError> {
    count_all_goods(is_over);
    Ok(())
}

/// Computes for ten seconds, without a wait.
#[inline(never)]
fn count_all_goods(is_over: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while std::time::Instant::now() < end && !is_over() {
        std::hint::spin_loop();
    }
}
