//! The checks of a request: its host, its origin and its token.
//!
//! **Problem.** A program shows its inside on a port. Other machines may reach the port, and so may
//! any web page in a browser of this machine.
//!
//! **Rules.**
//! 1. The `Host` is an IP address, `localhost` or a name from the program. A page whose name points
//!    to this machine by DNS sends its own name.
//! 2. A request of a page has the `Origin` of the endpoint itself, and no other page's fetch passes
//!    (`Sec-Fetch-Site`). A link from another page is followed, but not to what costs the program
//!    something: a page could have its visitors make profiles.
//! 3. Where a token is set, a request has it as `Authorization: Bearer`, or has the cookie of a
//!    login. Both are compared in constant time. The cookie holds a number of this run and not the
//!    token: cookies go to all ports of a host.
//! 4. An action is done where the program allows actions, and there is a token then.

use super::answer::{Refused, refused, text, with_header};
use ganger_sched::internal::HashKey;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{StatusCode, Uri};
use std::net::IpAddr;
use subtle::ConstantTimeEq as _;

pub(super) struct Access {
    /// The names beside IP addresses and `localhost`, in lower case.
    hosts: Vec<String>,
    token: Option<Token>,
    acts: bool,
}

struct Token {
    text: String,
    /// The name of the cookie, with the port.
    cookie: String,
    /// The value of the cookie.
    session: String,
}

impl Access {
    pub(super) fn new(hosts: Vec<String>, token: Option<String>, port: u16) -> Self {
        let token = token.map(|text| Token {
            text,
            cookie: format!("ganger_{port}"),
            session: session(),
        });
        Self {
            hosts,
            token,
            acts: false,
        }
    }

    /// Sets whether the program allows actions.
    pub(super) fn acting(self, acts: bool) -> Self {
        Self { acts, ..self }
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Checks rule 1. Returns the host of the request.
    pub(super) fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, Refused> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            let sentence = "a request has one Host header: send the host and port of this endpoint";
            return Err(refused(StatusCode::BAD_REQUEST, sentence));
        };
        let Ok(host) = Authority::try_from(host.as_bytes()) else {
            let sentence = "the Host header is not a host: send the host and port of this endpoint";
            return Err(refused(StatusCode::BAD_REQUEST, sentence));
        };
        let is_known = self.is_known(&host) && uri.authority().is_none_or(|it| self.is_known(it));
        if !is_known {
            let sentence = "this endpoint does not have that name: ask by its IP address or as \
                            localhost, or give the name to `Serve::host`";
            return Err(refused(StatusCode::MISDIRECTED_REQUEST, sentence));
        }
        Ok(host)
    }

    fn is_known(&self, authority: &Authority) -> bool {
        let host = authority.host().to_ascii_lowercase();
        let host = host.trim_start_matches('[').trim_end_matches([']', '.']);
        let is_ours = host == "localhost" || self.hosts.iter().any(|it| it == host);
        !authority.as_str().contains('@') && (is_ours || host.parse::<IpAddr>().is_ok())
    }

    /// Checks rule 2.
    pub(super) fn check_origin(
        &self,
        host: &Authority,
        headers: &HeaderMap,
    ) -> Result<(), Refused> {
        let is_same = |origin: &HeaderValue| {
            let origin = Uri::try_from(origin.as_bytes()).ok();
            let authority = origin.as_ref().and_then(Uri::authority);
            authority.is_some_and(|it| it == host)
        };
        let is_fetch = is_of_another(headers) && !has(headers, "sec-fetch-mode", &["navigate"]);
        if is_fetch || !headers.get_all(header::ORIGIN).iter().all(is_same) {
            let sentence = "a page of another origin asks: open the endpoint itself, or ask by a \
                            program that sends no Origin header";
            return Err(refused(StatusCode::FORBIDDEN, sentence));
        }
        Ok(())
    }

    /// Checks rule 2 for a request that costs the program something.
    pub(super) fn check_link(headers: &HeaderMap) -> Result<(), Refused> {
        if is_of_another(headers) {
            let sentence = "a page of another origin has a link to this: open the endpoint itself \
                            and ask from there, or type the address";
            return Err(refused(StatusCode::FORBIDDEN, sentence));
        }
        Ok(())
    }

    /// Checks rule 3.
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let bearer = headers.get(header::AUTHORIZATION);
        let bearer = bearer.and_then(|it| it.as_bytes().split_at_checked(7));
        let is_bearer = bearer.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case(b"bearer ") && is_same(given, &token.text)
        });
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.flat_map(|it| it.as_bytes().split(|byte| *byte == b';'));
        let sessions: Vec<_> = cookies.filter_map(|it| token.session_of(it)).collect();
        if is_bearer || sessions.iter().any(|given| is_same(given, &token.session)) {
            return Ok(());
        }
        let has_header = headers.contains_key(header::AUTHORIZATION);
        let (sentence, challenge) = match (has_header, !sessions.is_empty()) {
            (true, _) => (
                "the token is wrong: send the token of this endpoint as `Authorization: Bearer \
                 TOKEN`, or log in at /login",
                "Bearer realm=\"ganger\", error=\"invalid_token\"",
            ),
            (false, true) => (
                "the login is over, because the program has been started again: log in at /login, \
                 or send `Authorization: Bearer TOKEN`",
                "Bearer realm=\"ganger\", error=\"invalid_token\"",
            ),
            (false, false) => (
                "this endpoint needs its token: send `Authorization: Bearer TOKEN`, or log in at \
                 /login",
                "Bearer realm=\"ganger\"",
            ),
        };
        Err(Box::new(with_header(
            text(StatusCode::UNAUTHORIZED, sentence),
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static(challenge),
        )))
    }

    /// Checks rule 4, after the other rules.
    pub(super) fn check_action(&self) -> Result<(), Refused> {
        if self.acts && self.has_token() {
            return Ok(());
        }
        let sentence = "this endpoint only reads: the program allows actions by \
                        `Serve::allow_actions`";
        Err(refused(StatusCode::FORBIDDEN, sentence))
    }

    /// Returns the cookie of a login; none with the wrong token.
    pub(super) fn log_in(&self, given: &str) -> Option<HeaderValue> {
        let token = self.token.as_ref();
        let token = token.filter(|token| is_same(given.as_bytes(), &token.text))?;
        let (name, value) = (&token.cookie, &token.session);
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict");
        HeaderValue::try_from(cookie).ok()
    }
}

impl Token {
    /// Returns the value of a cookie with the name of this endpoint's.
    fn session_of<'a>(&self, cookie: &'a [u8]) -> Option<&'a [u8]> {
        let value = cookie.trim_ascii().strip_prefix(self.cookie.as_bytes())?;
        value.strip_prefix(b"=")
    }
}

/// Returns whether a browser says that a page of another origin has caused the request.
fn is_of_another(headers: &HeaderMap) -> bool {
    has(headers, "sec-fetch-site", &["cross-site", "same-site"])
}

/// Returns whether the header is there, with one of the values.
fn has(headers: &HeaderMap, name: &str, values: &[&str]) -> bool {
    let mut given = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    given.any(|given| values.iter().any(|it| it.as_bytes() == given))
}

/// Compares a stranger's text with a secret. The time depends on the lengths alone.
fn is_same(given: &[u8], secret: &str) -> bool {
    given.ct_eq(secret.as_bytes()).into()
}

/// Returns a secret of 128 bits.
fn session() -> String {
    let part = || HashKey::random().hash("session");
    format!("{:016x}{:016x}", part(), part())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    fn host(access: &Access, target: &str, host: &str) -> u16 {
        let uri = target.parse().unwrap();
        match access.check_host(&uri, &headers(&[("host", host)])) {
            Ok(_) => 200,
            Err(answer) => answer.status().as_u16(),
        }
    }

    // pins: V2
    #[test]
    fn a_host_is_an_address_or_a_given_name() {
        let access = Access::new(vec!["inside.example".to_owned()], None, 80);
        for known in [
            "127.0.0.1",
            "127.0.0.1:7007",
            "10.1.2.3:80",
            "[::1]:7007",
            "localhost",
            "LocalHost:1",
            "localhost.:1",
            "inside.example",
            "Inside.Example:443",
        ] {
            assert_eq!(host(&access, "/", known), 200, "{known}");
            assert_eq!(host(&access, &format!("http://{known}/"), known), 200);
        }
        for unknown in [
            "evil.example",
            "evil.example:7007",
            "localhost.evil.example",
            "evillocalhost",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil.example@localhost",
        ] {
            assert_eq!(host(&access, "/", unknown), 421, "{unknown}");
            let target = format!("http://{unknown}/");
            assert_eq!(host(&access, &target, "localhost"), 421, "{unknown}");
        }
        for wrong in ["", "a b", "[::1", "http://localhost"] {
            assert_eq!(host(&access, "/", wrong), 400, "{wrong:?}");
        }
        let uri = "/".parse().unwrap();
        let none = access.check_host(&uri, &headers(&[]));
        assert_eq!(none.unwrap_err().status(), 400);
        let two = headers(&[("host", "localhost"), ("host", "localhost")]);
        assert_eq!(access.check_host(&uri, &two).unwrap_err().status(), 400);
    }

    // pins: V2
    #[test]
    fn an_origin_is_the_endpoint_itself() {
        let access = Access::new(Vec::new(), None, 80);
        let host = Authority::from_static("localhost:7007");
        let is_ok = |all: &[(&'static str, &str)]| {
            let checked = access.check_origin(&host, &headers(all));
            checked.map_err(|it| assert_eq!(it.status(), 403)).is_ok()
        };
        assert!(is_ok(&[]));
        assert!(is_ok(&[("origin", "http://localhost:7007")]));
        assert!(is_ok(&[("sec-fetch-site", "same-origin")]));
        assert!(is_ok(&[
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate")
        ]));
        for other in [
            "http://localhost:7008",
            "http://localhost",
            "http://evil.example",
            "null",
            "",
            "localhost:7007.evil.example",
        ] {
            assert!(!is_ok(&[("origin", other)]), "{other:?}");
        }
        let two = ["http://localhost:7007", "http://evil.example"];
        assert!(!is_ok(&two.map(|it| ("origin", it))));
        for site in ["cross-site", "same-site"] {
            let mode = ("sec-fetch-mode", "no-cors");
            assert!(!is_ok(&[("sec-fetch-site", site), mode]));
        }
    }

    // pins: V2
    #[test]
    fn a_link_from_another_page_leads_to_nothing_costly() {
        let navigate = ("sec-fetch-mode", "navigate");
        let is_ok = |all: &[(&'static str, &str)]| {
            let checked = Access::check_link(&headers(all));
            checked.map_err(|it| assert_eq!(it.status(), 403)).is_ok()
        };
        assert!(is_ok(&[]));
        for site in ["none", "same-origin"] {
            assert!(is_ok(&[("sec-fetch-site", site), navigate]), "{site}");
        }
        for site in ["cross-site", "same-site"] {
            assert!(!is_ok(&[("sec-fetch-site", site), navigate]), "{site}");
            let both = [("sec-fetch-site", "none"), ("sec-fetch-site", site)];
            assert!(!is_ok(&both), "{site}");
        }
    }

    // pins: V2
    #[test]
    fn a_token_is_a_header_or_the_cookie_of_a_login() {
        let secret = "0123456789abcdef";
        let access = Access::new(Vec::new(), Some(secret.to_owned()), 7007);
        let is_ok = |all: &[(&'static str, &str)]| {
            let checked = access.check_token(&headers(all));
            checked.map_err(|it| assert_eq!(it.status(), 401)).is_ok()
        };
        assert!(is_ok(&[("authorization", "Bearer 0123456789abcdef")]));
        assert!(is_ok(&[("authorization", "bearer 0123456789abcdef")]));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdeg",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789abcde",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(!is_ok(&[("authorization", wrong)]), "{wrong:?}");
        }
        assert!(access.log_in("").is_none() && access.log_in("0123456789abcde").is_none());
        let cookie = access.log_in(secret).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(!cookie.contains(secret) && cookie.contains("HttpOnly; SameSite=Strict"));
        let cookie = cookie.split(';').next().unwrap();
        assert!(is_ok(&[("cookie", cookie)]));
        assert!(is_ok(&[("cookie", &format!("a=b; {cookie}; c"))]));
        assert!(is_ok(&[("cookie", "a=b"), ("cookie", cookie)]));
        let other = Access::new(Vec::new(), Some(secret.to_owned()), 7007);
        let other = other.check_token(&headers(&[("cookie", cookie)]));
        assert!(other.is_err(), "a run has a secret of its own");
        for wrong in [
            "",
            "ganger_7007",
            "ganger_7007=",
            "ganger_7007=0123456789abcdef",
        ] {
            assert!(!is_ok(&[("cookie", wrong)]), "{wrong:?}");
        }
        assert!(!is_ok(&[]));
    }
}
