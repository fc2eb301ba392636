//! The example of a database.

#[path = "../../ledger.rs"]
#[allow(dead_code, reason = "`main` is for those that run it")]
mod example;

use ganger::prelude::*;
use ganger::tokio::Tokio;

// pins: I1
#[test]
fn transfers_at_the_same_time_lose_no_money() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ledger.db");
    let builder = Scheduler::builder().workers(2);
    let scheduler = builder.driver(Tokio::new().unwrap()).start().unwrap();
    let again = file.clone();
    let made = scheduler.spawn(async move |cx: Cx| example::run(&cx, file).await);
    let made = made.unwrap().wait().take::<u64>().unwrap();
    assert!((1..=100).contains(&made));
    // The next program finds the written data.
    let read = scheduler.spawn(async move |_: Cx| {
        let pool = example::open(&again).await?;
        let sum = sqlx::query_scalar::<_, i64>("SELECT sum(money) FROM accounts");
        let sum = sum.fetch_one(&pool).await?;
        pool.close().await;
        Ok::<_, BoxError>(u64::try_from(sum)?)
    });
    assert_eq!(read.unwrap().wait().take::<u64>().unwrap(), 400);
}
