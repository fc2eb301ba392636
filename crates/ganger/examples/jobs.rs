//! A queue of jobs: a few run at a time, each with a deadline, and a failed job is tried again.
//!
//! `cargo run -p ganger --example jobs`

use ganger::prelude::*;
use std::time::Duration;

const JOBS: u32 = 20;
const AT_A_TIME: usize = 4;
const DEADLINE: Duration = Duration::from_millis(100);

/// Stands for a request, which hangs or fails now and then.
async fn fetch(cx: &Cx, page: u32, attempt: u32) -> Result<String, BoxError> {
    match (page + attempt) % 4 {
        _ if page == 13 => return Err("there is no such page".into()),
        0 => cx.sleep(Duration::from_secs(60)).await?,
        1 => return Err("the network is down".into()),
        _ => cx.sleep(Duration::from_millis(1)).await?,
    }
    Ok(format!("page {page}"))
}

/// Tries three times, with longer and longer pauses. Says whether the job is done.
async fn job(cx: Cx, page: u32) -> Result<bool, BoxError> {
    for attempt in 1..=3 {
        let fetched = cx.timeout(DEADLINE, fetch(&cx, page, attempt)).await;
        match fetched.map_err(BoxError::from).flatten() {
            Ok(text) => {
                println!("{text}, at attempt {attempt}");
                return Ok(true);
            }
            Err(error) => println!("page {page}: {error}"),
        }
        cx.sleep(DEADLINE / 10 * attempt).await?;
    }
    Ok(false)
}

/// Starts a job whenever another has ended, and counts the jobs that were done.
async fn queue(cx: Cx) -> Result<u64, BoxError> {
    cx.scope(async |scope| {
        let (running, mut pages, mut done) = (scope.group(), 0..JOBS, 0);
        for page in pages.by_ref().take(AT_A_TIME) {
            running.spawn(move |cx| job(cx, page))?;
        }
        while let Some(is_done) = running.next().await {
            done += u64::from(is_done?);
            if let Some(page) = pages.next() {
                running.spawn(move |cx| job(cx, page))?;
            }
        }
        Ok(done)
    })
    .await
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let done: u64 = scheduler.spawn(queue)?.wait().take()?;
    println!("{done} of {JOBS} jobs are done");
    Ok(())
}
