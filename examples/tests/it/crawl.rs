//! The example of a crawler, and a site on the same scheduler.

#[path = "../../crawl.rs"]
#[allow(dead_code, reason = "`main` is for those that run it")]
mod example;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use ganger::prelude::*;
use ganger::tokio::{Tokio, serve};
use std::sync::mpsc::channel;
use tokio::net::TcpListener;

fn site() -> Router {
    let page = |text: &'static str| get(async move || Html(text));
    Router::new()
        .route(
            "/",
            page(r#"<a href="a"></a> <a href="/b#top"></a> <a href="/none"></a>"#),
        )
        .route("/a", page(r#"<a href="/"></a> <a href="b"></a>"#))
        .route(
            "/b",
            page(r#"<a href="http://elsewhere.invalid/"></a> <a href="c"#),
        )
        .route(
            "/breaks",
            get(async || -> Html<&str> { panic!("on purpose") }),
        )
}

// pins: I1
#[test]
fn each_page_of_a_site_is_looked_at_once() {
    let builder = Scheduler::builder().workers(2);
    let scheduler = builder.driver(Tokio::new().unwrap()).start().unwrap();
    let (send, listens) = channel();
    let server = scheduler.spawn(async move |_: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        send.send(listener.local_addr()?)?;
        Ok(serve(listener, site()).await?)
    });
    drop(server.unwrap());
    let address = listens.recv().unwrap();
    let crawl = |path: &str| {
        let site = format!("http://{address}{path}").parse().unwrap();
        let (send, pages) = channel();
        let crawls = scheduler.spawn(async move |cx: Cx| {
            let report = move |page: &example::Page| {
                let status = page.found.as_ref().map(|(status, _)| status.as_u16()).ok();
                send.send((page.url.path().to_owned(), status)).unwrap();
            };
            example::crawl(&cx, site, report).await
        });
        let count = crawls.unwrap().wait().take::<u64>().unwrap();
        let mut pages: Vec<_> = pages.iter().collect();
        pages.sort();
        assert_eq!(pages.len(), usize::try_from(count).unwrap());
        pages
    };
    let found = [("/", 200), ("/a", 200), ("/b", 200), ("/none", 404)];
    let found = found.map(|(path, status)| (path.to_owned(), Some(status)));
    assert_eq!(crawl("/"), found);
    // The client has no answer, and the crawl goes on.
    assert_eq!(crawl("/breaks"), [("/breaks".to_owned(), None)]);
}
