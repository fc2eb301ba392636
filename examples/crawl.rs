//! A crawler by reqwest: a process for each page, a few at a time. `cargo run -p ganger-examples
//! --features crawl --bin crawl -- http://localhost:8080/` lists the pages of a site and their
//! answers. Ctrl-C ends it.

use ganger::prelude::*;
use ganger::tokio::{Tokio, shutdown_signal};
use reqwest::{Client, StatusCode, Url};
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// The most pages at a time.
const AT_ONCE: usize = 16;
const TIME: Duration = Duration::from_secs(10);

fn main() -> Result<(), BoxError> {
    let site = std::env::args().nth(1).ok_or("usage: crawl URL")?;
    let site = Url::parse(&site)?;
    let scheduler = Scheduler::builder().driver(Tokio::new()?).start()?;
    let crawls = scheduler.spawn(async move |cx: Cx| crawl(&cx, site, print).await)?;
    let pid = crawls.pid();
    scheduler.spawn(async move |cx: Cx| {
        shutdown_signal().await?;
        Ok(cx.context().cancel(pid, "Ctrl-C")?)
    })?;
    let pages = crawls.wait().take::<u64>()?;
    println!("{pages} pages");
    Ok(())
}

fn print(page: &Page) {
    match &page.found {
        Ok((status, _)) => println!("{} {}", status.as_u16(), page.url),
        Err(error) => println!("--- {}: {error}", page.url),
    }
}

/// A page, and its links. A page that fails is a result: an error would end the crawl.
pub(crate) struct Page {
    pub(crate) url: Url,
    pub(crate) found: Result<(StatusCode, Vec<Url>), reqwest::Error>,
}

/// Looks at all linked pages of a site, and returns their number.
pub(crate) async fn crawl(
    cx: &Cx,
    site: Url,
    mut report: impl FnMut(&Page) + Send,
) -> Result<u64, BoxError> {
    let client = Client::builder().timeout(TIME).build()?;
    let home = site.origin();
    cx.scope(async move |scope| {
        let pages = scope.group();
        let mut known = HashSet::from([site.clone()]);
        let mut waiting = VecDeque::from([site]);
        let mut count = 0;
        loop {
            while pages.running() < AT_ONCE
                && let Some(url) = waiting.pop_front()
            {
                let client = client.clone();
                // The futures of reqwest are not waits of a `Cx`: a cancellation ends this future.
                let page = async move |cx: Cx| Ok(cx.until_cancelled(page(client, url)).await?);
                pages.spawn(page)?;
            }
            let Some(page) = pages.next().await else {
                return Ok(count);
            };
            let page = page?;
            count += 1;
            report(&page);
            let links = page.found.map_or(Vec::new(), |(_, links)| links);
            let links = links.into_iter().filter(|it| it.origin() == home);
            waiting.extend(links.filter(|it| known.insert(it.clone())));
        }
    })
    .await
}

async fn page(client: Client, url: Url) -> Page {
    let found = match client.get(url.clone()).send().await {
        Ok(answer) => {
            let status = answer.status();
            let text = answer.text().await;
            text.map(|text| (status, links(&url, &text)))
        }
        Err(error) => Err(error),
    };
    Page { url, found }
}

/// Returns the links in `href="…"`.
fn links(base: &Url, text: &str) -> Vec<Url> {
    let quoted = text.split("href=\"").skip(1);
    let quoted = quoted.filter_map(|it| Some(it.split_once('"')?.0));
    let links = quoted.filter_map(|it| base.join(it).ok());
    links
        .map(|mut it| {
            it.set_fragment(None);
            it
        })
        .collect()
}
