//! The answers of the endpoint: a status, and a sentence or a document.

use super::stream::Stream;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

pub(super) type Answer = Response<Either<Full<Bytes>, Stream>>;

/// An answer that ends the way of a request early.
pub(super) type Refused = Box<Answer>;

/// For browsers: no script, no frame, nothing from elsewhere, and no copy is kept.
const HEADERS: [(header::HeaderName, HeaderValue); 5] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; \
             frame-ancestors 'none'; base-uri 'none'",
        ),
    ),
    (
        header::HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    // `no-referrer` would take the origin from the login's form.
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
];

fn with_body(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(body.into())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.extend(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Events, until the viewer leaves.
pub(super) fn events(stream: Stream) -> Answer {
    let mut answer = with_body(StatusCode::OK, "text/event-stream", Bytes::new());
    *answer.body_mut() = Either::Right(stream);
    answer
}

/// Returns a sentence for a person.
pub(super) fn text(status: StatusCode, sentence: &str) -> Answer {
    let kind = "text/plain; charset=utf-8";
    with_body(status, kind, format!("{sentence}\n"))
}

pub(super) fn refused(status: StatusCode, sentence: &str) -> Refused {
    Box::new(text(status, sentence))
}

/// Returns the refusal of a wrong request.
pub(super) fn bad(error: impl ToString) -> Refused {
    refused(StatusCode::BAD_REQUEST, &error.to_string())
}

pub(super) fn html(status: StatusCode, document: String) -> Answer {
    with_body(status, "text/html; charset=utf-8", document)
}

/// Metrics as Prometheus reads them.
pub(super) fn metrics(text: Bytes) -> Answer {
    with_body(StatusCode::OK, crate::metrics::TEXT, text)
}

/// Returns a file; with a name, for a browser to keep.
pub(super) fn file(kind: &'static str, name: Option<&str>, bytes: Vec<u8>) -> Answer {
    let mut answer = with_body(StatusCode::OK, kind, bytes);
    let value = name.map(|name| format!("attachment; filename=\"{name}\""));
    if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
        (answer.headers_mut()).insert(header::CONTENT_DISPOSITION, value);
    }
    answer
}

/// Returns an answer of the API that is written already.
pub(super) fn json_bytes(json: Bytes) -> Answer {
    with_body(StatusCode::OK, "application/json", json)
}

/// Returns an answer of the API.
pub(super) fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(json) => json_bytes(json.into()),
        Err(error) => {
            let sentence = format!("the answer can't be written: {error}; report it");
            text(StatusCode::INTERNAL_SERVER_ERROR, &sentence)
        }
    }
}

/// Sends the browser to another page of the endpoint.
pub(super) fn see(path: &'static str) -> Answer {
    let sentence = format!("go to {path}");
    with_header(
        text(StatusCode::SEE_OTHER, &sentence),
        header::LOCATION,
        HeaderValue::from_static(path),
    )
}

pub(super) fn with_header(
    mut answer: Answer,
    name: header::HeaderName,
    value: HeaderValue,
) -> Answer {
    answer.headers_mut().insert(name, value);
    answer
}

/// Lets the answer end its connection: the rest of the request is not read.
pub(super) fn closing(mut answer: Refused) -> Refused {
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(header::CONNECTION, close);
    answer
}

/// Returns an answer as bytes, for a connection without a request.
pub(super) fn bare(status: StatusCode, sentence: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n\
         {sentence}\n",
        sentence.len() + 1
    )
}
