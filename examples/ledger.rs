//! Accounts in SQLite by sqlx: tasks share a pool of connections.
//! `cargo run -p ganger-examples --features ledger --bin ledger -- FILE` has a hundred tasks
//! transfer money at the same time.

use ganger::prelude::*;
use ganger::tokio::Tokio;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAMES: [&str; 4] = ["ann", "bob", "cid", "dot"];
const TRANSFERS: usize = 100;

fn main() -> Result<(), BoxError> {
    let file = std::env::args_os().nth(1).ok_or("usage: ledger FILE")?;
    let scheduler = Scheduler::builder().driver(Tokio::new()?).start()?;
    let done = scheduler.spawn(async move |cx: Cx| run(&cx, file.into()).await)?;
    println!("{} transfers", done.wait().take::<u64>()?);
    Ok(())
}

/// Makes the transfers, and returns the number made. The rest found too little money.
pub(crate) async fn run(cx: &Cx, file: PathBuf) -> Result<u64, BoxError> {
    let pool = open(&file).await?;
    let shared = pool.clone();
    let made = cx.scope(async move |scope| {
        let transfers = scope.group();
        for number in 0..TRANSFERS {
            let pool = shared.clone();
            let (from, to) = (NAMES[number % 4], NAMES[(number / 4 + number + 1) % 4]);
            transfers.spawn(async move |_: Cx| transfer(&pool, from, to, 30).await)?;
        }
        let mut made = 0;
        while let Some(transfer) = transfers.next().await {
            made += u64::from(transfer?);
        }
        Ok(made)
    });
    let made = made.await?;
    pool.close().await;
    Ok(made)
}

/// Opens a pool of connections. A task waits for a connection while all are taken.
pub(crate) async fn open(file: &Path) -> Result<SqlitePool, BoxError> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(60));
    let pool = SqlitePoolOptions::new().max_connections(4);
    let pool = pool.connect_with(options).await?;
    let table = "CREATE TABLE IF NOT EXISTS accounts \
                 (name TEXT PRIMARY KEY, money INTEGER NOT NULL CHECK (money >= 0))";
    sqlx::query(table).execute(&pool).await?;
    for name in NAMES {
        let account = sqlx::query("INSERT OR IGNORE INTO accounts VALUES (?, 100)");
        account.bind(name).execute(&pool).await?;
    }
    Ok(pool)
}

/// Transfers an amount, and returns whether the account had enough. A task that fails or is
/// terminated in the middle drops the transaction, which undoes it.
async fn transfer(
    pool: &SqlitePool,
    from: &'static str,
    to: &'static str,
    amount: i64,
) -> Result<bool, BoxError> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    let take = "UPDATE accounts SET money = money - ?1 WHERE name = ?2 AND money >= ?1";
    let take = sqlx::query(take).bind(amount).bind(from);
    if take.execute(&mut *transaction).await?.rows_affected() == 0 {
        return Ok(false);
    }
    let give = sqlx::query("UPDATE accounts SET money = money + ? WHERE name = ?");
    let give = give.bind(amount).bind(to);
    give.execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(true)
}
