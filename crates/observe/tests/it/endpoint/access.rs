//! Hosts, origins and tokens.

use super::support::{Answer, ask, get, send};
use ganger_observe::{Endpoint, ServeError, serve};

const TOKEN: &str = "0123456789abcdef&+ %;";
const GOOD: &str = "0123456789abcdef&+%;";

fn with_token() -> Endpoint {
    serve("127.0.0.1:0").token(GOOD).start().unwrap()
}

fn log_in(endpoint: &Endpoint, token: &str, headers: &str) -> Answer {
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("token", token)
        .finish();
    let (host, length) = (endpoint.address(), form.len());
    let request = format!(
        "POST /login HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\
         content-length: {length}\r\n\r\n{form}"
    );
    send(endpoint, request.as_bytes())
}

// pins: V2
#[test]
fn other_machines_need_a_token_and_a_token_is_strong() {
    for address in [
        "0.0.0.0:0",
        "[::]:0",
        "192.0.2.1:80",
        "[::ffff:192.0.2.1]:80",
    ] {
        let error = serve(address).start().unwrap_err();
        assert!(matches!(error, ServeError::TokenNeeded(_)), "{error}");
        assert!(error.to_string().contains("`Serve::token`"));
    }
    let long = "x".repeat(257);
    for token in [
        "",
        "short",
        "fifteen letters",
        TOKEN,
        &long,
        "0123456789abcdé0",
    ] {
        let error = serve("127.0.0.1:0").token(token).start().unwrap_err();
        assert!(matches!(error, ServeError::Token), "{token:?}");
        assert!(error.to_string().contains("openssl rand -hex 16"));
    }
    for address in ["nowhere", "", "127.0.0.1", "127.0.0.1:99999"] {
        let error = serve(address).start().unwrap_err();
        assert!(matches!(error, ServeError::Address(_)), "{error}");
    }
}

// pins: V2
#[test]
fn all_but_the_probes_and_the_login_need_the_token() {
    let endpoint = with_token();
    for path in [
        "/api/v1/snapshot",
        "/api/v1/processes",
        "/api/v1/letters",
        "/",
        "/x",
    ] {
        let answer = get(&endpoint, path);
        answer.refuses(401, "log in at /login");
        assert!(answer.header("www-authenticate").is_some());
        let wrong = "authorization: Bearer 0123456789abcdef&+%:";
        let answer = ask(&endpoint, "GET", path, &[wrong]);
        answer.refuses(401, "the token is wrong: send the token of this endpoint");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.ends_with("error=\"invalid_token\""));
        let right = format!("authorization: Bearer {GOOD}");
        let status = ask(&endpoint, "GET", path, &[&right]).status;
        assert_eq!(status, if path == "/x" { 404 } else { 200 });
    }
    assert_eq!(get(&endpoint, "/healthz").status, 200);
    get(&endpoint, "/readyz").refuses(503, "no scheduler");
    assert_eq!(get(&endpoint, "/login").status, 200);
    let browser = ask(&endpoint, "GET", "/", &["accept: text/html,*/*"]);
    assert_eq!(
        (browser.status, browser.header("location")),
        (303, Some("/login"))
    );
}

// pins: V2
#[test]
fn a_login_gives_a_cookie_that_is_not_the_token() {
    let endpoint = with_token();
    let wrong = log_in(&endpoint, "0123456789abcdef", "");
    assert_eq!((wrong.status, wrong.header("set-cookie")), (403, None));
    assert!(wrong.body.contains("try again"));
    let right = log_in(&endpoint, GOOD, "");
    assert_eq!((right.status, right.header("location")), (303, Some("/")));
    let cookie = right.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
    assert!(!cookie.contains(GOOD));
    let cookie = cookie.split(';').next().unwrap();
    let header = format!("cookie: other=1; {cookie}");
    assert_eq!(
        ask(&endpoint, "GET", "/api/v1/snapshot", &[&header]).status,
        200
    );
    let forged = format!("cookie: {}x", &cookie[..cookie.len() - 1]);
    assert_eq!(ask(&endpoint, "GET", "/", &[&forged]).status, 401);
    // The cookie is of this run alone.
    let other = with_token();
    let moved = cookie.replace(
        &endpoint.address().port().to_string(),
        &other.address().port().to_string(),
    );
    let header = format!("cookie: {moved}");
    let answer = ask(&other, "GET", "/", &[&header]);
    answer.refuses(401, "the program has been started again: log in at /login");
    let origin = format!("origin: http://{}\r\n", endpoint.address());
    assert_eq!(log_in(&endpoint, GOOD, &origin).status, 303);
    let foreign = log_in(&endpoint, GOOD, "origin: http://evil.example\r\n");
    foreign.refuses(403, "another origin");
}

// pins: V2
#[test]
fn no_other_page_and_no_other_name_reaches_the_endpoint() {
    let endpoint = serve("127.0.0.1:0").host("Inside.Example").start().unwrap();
    for host in ["localhost", "127.0.0.1:1", "[::1]:5", "inside.example:80"] {
        let header = format!("host: {host}");
        assert_eq!(ask(&endpoint, "GET", "/healthz", &[&header]).status, 200);
    }
    for host in ["evil.example", "localhost.evil.example", "x@localhost"] {
        let header = format!("host: {host}");
        ask(&endpoint, "GET", "/healthz", &[&header]).refuses(421, "`Serve::host`");
    }
    let bare = send(&endpoint, b"GET /healthz HTTP/1.0\r\n\r\n");
    bare.refuses(400, "one Host header");
    let two = ask(
        &endpoint,
        "GET",
        "/healthz",
        &["host: localhost", "host: localhost"],
    );
    two.refuses(400, "one Host header");
    let target = "http://evil.example/healthz";
    ask(&endpoint, "GET", target, &["host: localhost"]).refuses(421, "does not have that name");
    for origin in ["http://evil.example", "null"] {
        let header = format!("origin: {origin}");
        let answer = ask(&endpoint, "GET", "/api/v1/snapshot", &[&header]);
        answer.refuses(403, "another origin");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let fetch = ["sec-fetch-site: cross-site", "sec-fetch-mode: no-cors"];
    ask(&endpoint, "GET", "/", &fetch).refuses(403, "another origin");
    let own = format!("origin: http://{}", endpoint.address());
    assert_eq!(ask(&endpoint, "GET", "/", &[&own]).status, 200);
}

// pins: V2
#[test]
fn no_other_page_has_profiles_and_traces_made() {
    let endpoint = serve("127.0.0.1:0").start().unwrap();
    let from = |method, path, site| {
        let site = format!("sec-fetch-site: {site}");
        ask(
            &endpoint,
            method,
            path,
            &[&site, "sec-fetch-mode: navigate"],
        )
    };
    for path in ["/profile?seconds=60&hz=1000", "/trace"] {
        for site in ["cross-site", "same-site"] {
            from("GET", path, site).refuses(403, "type the address");
        }
        // The endpoint has no scheduler.
        for site in ["same-origin", "none"] {
            assert_eq!(from("GET", path, site).status, 404);
        }
        let head = ask(&endpoint, "HEAD", path, &[]);
        assert_eq!((head.status, head.header("allow")), (405, Some("GET")));
    }
    // A link leads to the rest.
    assert_eq!(from("GET", "/", "cross-site").status, 200);
}
