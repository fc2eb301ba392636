//! The program started by a person.

use super::account::Account;
use super::ledger::Book;
use super::{CARTS, Carrier, LEASE, NODES, customer, name, types};
use ganger::cluster::{Cluster, FencingToken, StrongNames};
use ganger::prelude::*;
use ganger::{BoxError, Scheduler};
use std::env;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const CUSTOMERS: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(60);
/// The length of the pause.
const PAUSE: Duration = Duration::from_secs(15);

struct Desk {
    begin: Instant,
    address: String,
    secret: String,
    names: StrongNames,
    account: Arc<Mutex<Account>>,
    nodes: Vec<(&'static str, Child)>,
}

/// The folder of the store, which goes with the program.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn open(carrier: &impl Carrier) -> Result<(), BoxError> {
    let secret = format!("{:x}", RandomState::new().hash_one("a cookie"));
    let folder = Folder(env::temp_dir().join(format!("ganger-shop-{}", std::process::id())));
    fs::create_dir_all(&folder.0)?;
    let (engine, store) = carrier.desk(&secret, &folder.0)?;
    let scheduler = Scheduler::builder().workers(1).node("desk").start()?;
    let cluster = Cluster::builder()
        .cluster("shop")
        .cookie(&secret)
        .engine(engine.clone())
        .store(store)
        .lease(LEASE)
        .types(types)
        .join(&scheduler)?;
    let account = Arc::<Mutex<Account>>::default();
    let book = Book::new(Arc::clone(&account));
    let _ledger = scheduler.named("ledger").spawn(book)?;
    let mut desk = Desk {
        begin: Instant::now(),
        address: carrier.address(&engine),
        secret,
        names: cluster.strong_names()?,
        account: Arc::clone(&account),
        nodes: Vec::new(),
    };
    desk.say(&desk.names.describe_store());
    for node in NODES {
        desk.start(node)?;
    }
    desk.wait_for_carts(&[])?;
    desk.say(&format!(
        "{CARTS} carts are open: {CUSTOMERS} customers begin"
    ));
    let is_closing = Arc::new(AtomicBool::new(false));
    let customers = (0..CUSTOMERS).map(|first| {
        let (names, shared) = (
            desk.names.clone(),
            (Arc::clone(&account), Arc::clone(&is_closing)),
        );
        scheduler.spawn(async move |cx: Cx| customer::shop(cx, names, shared, first).await)
    });
    let customers = customers.collect::<Result<Vec<_>, _>>()?;
    let faults = desk.faults();
    // Ordering: Relaxed: the customers see it at their next question.
    is_closing.store(true, Ordering::Relaxed);
    faults?;
    desk.say("the shop closes: the last questions are answered");
    for customer in customers {
        customer.wait().into_result()?;
    }
    for (_, mut node) in desk.nodes.drain(..) {
        drop(node.stdin.take());
        node.wait()?;
    }
    let account = *account.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{account}");
    if !account.is_right() {
        return Err("the account is wrong".into());
    }
    Ok(())
}

impl Desk {
    fn say(&self, text: &str) {
        println!("{:>6.1} s  {text}", self.begin.elapsed().as_secs_f64());
    }

    fn start(&mut self, node: &'static str) -> Result<(), BoxError> {
        let mut program = Command::new(env::current_exe()?);
        program.args(env::args_os().skip(1));
        program
            .env("NODE", node)
            .env("DESK", &self.address)
            .env("SECRET", &self.secret);
        let child = program.stdin(Stdio::piped()).spawn()?;
        self.say(&format!("{node} starts, process {}", child.id()));
        self.nodes.push((node, child));
        Ok(())
    }

    fn take(&mut self, node: &str) -> Result<Child, BoxError> {
        let place = self.nodes.iter().position(|(it, _)| *it == node);
        let place = place.ok_or("the node does not run")?;
        Ok(self.nodes.swap_remove(place).1)
    }

    /// Waits until each cart has an owner, and these carts have others than before.
    fn wait_for_carts(&self, before: &[(u32, FencingToken)]) -> Result<(), BoxError> {
        let begin = Instant::now();
        let is_open = |cart| {
            let owner = self.names.whereis(&name(cart)).ok().flatten();
            owner.is_some_and(|it| !before.contains(&(cart, it.token)))
        };
        while !(0..CARTS).all(is_open) {
            if begin.elapsed() > PATIENCE {
                return Err("a cart has no owner".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns the carts at a node, with the numbers of their ownership.
    fn carts_of(&self, node: &str) -> Vec<(u32, FencingToken)> {
        let owner = |cart| Some((cart, self.names.whereis(&name(cart)).ok()??));
        let owners = (0..CARTS)
            .filter_map(owner)
            .filter(|(_, it)| &*it.node == node);
        owners.map(|(cart, it)| (cart, it.token)).collect()
    }

    /// Returns the node with the most carts.
    fn busiest(&self) -> Result<&'static str, BoxError> {
        let node = NODES.into_iter().max_by_key(|it| self.carts_of(it).len());
        Ok(node.ok_or("there are no nodes")?)
    }

    /// Kills a node, restarts each, and pauses a node.
    fn faults(&mut self) -> Result<(), BoxError> {
        thread::sleep(Duration::from_secs(3));
        self.tell();
        let node = self.busiest()?;
        let mut child = self.take(node)?;
        let carts = self.carts_of(node);
        self.say(&format!(
            "{node}, with {} carts, is killed (-9)",
            carts.len()
        ));
        child.kill()?;
        child.wait()?;
        self.start(node)?;
        self.go_on(&carts)?;
        for node in NODES {
            let mut child = self.take(node)?;
            let carts = self.carts_of(node);
            self.say(&format!(
                "{node}, with {} carts, is asked to stop",
                carts.len()
            ));
            drop(child.stdin.take());
            child.wait()?;
            self.start(node)?;
            self.go_on(&carts)?;
        }
        if cfg!(unix) {
            let node = self.busiest()?;
            let child = self.nodes.iter().find(|(it, _)| *it == node);
            let id = child
                .map(|(_, child)| child.id())
                .ok_or("the node does not run")?;
            let carts = self.carts_of(node);
            self.say(&format!(
                "{node}, with {} carts, is paused for {PAUSE:?}",
                carts.len()
            ));
            signal(id, "STOP")?;
            let end = Instant::now() + PAUSE;
            self.go_on(&carts)?;
            thread::sleep(end.saturating_duration_since(Instant::now()));
            signal(id, "CONT")?;
            self.say(&format!(
                "{node} goes on, and has {} carts",
                self.carts_of(node).len()
            ));
            self.go_on(&[])?;
        }
        Ok(())
    }

    /// Waits for all carts, and lets the customers ask for a while.
    fn go_on(&self, before: &[(u32, FencingToken)]) -> Result<(), BoxError> {
        let begin = Instant::now();
        self.wait_for_carts(before)?;
        self.say(&format!(
            "all carts are open, after {:.1?}",
            begin.elapsed()
        ));
        thread::sleep(Duration::from_secs(2));
        self.tell();
        Ok(())
    }

    fn tell(&self) {
        let account = *self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let Account {
            asked,
            answered,
            retried,
            lost,
            ..
        } = account;
        self.say(&format!(
            "asked {asked}, answered {answered}, retried {retried}, lost {lost}"
        ));
    }
}

fn signal(process: u32, signal: &str) -> Result<(), BoxError> {
    let status = Command::new("kill")
        .args([format!("-{signal}"), process.to_string()])
        .status()?;
    if !status.success() {
        return Err("kill has failed".into());
    }
    Ok(())
}
