//! The page: one document with its style and its script.
//!
//! **Problem.** A process may be named `<script>`. The browser must run no script of a name, and
//! must not talk to another host.
//!
//! **Protocol.** The document is the same for every program. The names come as JSON later, and the
//! script makes text nodes of them. The policy in the header allows the script by the hash of its
//! text, and the program itself as the only host.

use hyper::header::HeaderValue;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

const FRAME: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// The parts of the script, in the order in which they run.
const SCRIPT: [&str; 13] = [
    include_str!("js/text.js"),
    include_str!("js/data.js"),
    include_str!("js/live.js"),
    include_str!("js/charts.js"),
    include_str!("js/table.js"),
    include_str!("js/head.js"),
    include_str!("js/overview.js"),
    include_str!("js/processes.js"),
    include_str!("js/actions.js"),
    include_str!("js/process.js"),
    include_str!("js/views.js"),
    include_str!("js/waits.js"),
    include_str!("js/main.js"),
];

/// The document, and its policy.
pub(super) struct Document {
    pub(super) text: String,
    pub(super) policy: HeaderValue,
}

/// Made once, by the first request.
pub(super) static DOCUMENT: LazyLock<Document> = LazyLock::new(document);

fn document() -> Document {
    // A browser reads each end of a line as one character before it takes the hash.
    let script = format!("\n{}\n", script().replace("\r\n", "\n"));
    let hash = base64(&Sha256::digest(&script));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; \
         connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; \
         base-uri 'none'"
    );
    let text = FRAME.replace("\r\n", "\n");
    let text = text.replace("{style}", STYLE);
    let text = text.replace("\n{script}\n", &script);
    Document {
        text,
        policy: HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("sandbox")),
    }
}

/// Returns the script. Its names hide no name of the browser.
fn script() -> String {
    format!("(() => {{\n\"use strict\";\n{}\n}})();", SCRIPT.join("\n"))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = bits >> (18 - 6 * place) & 63;
            // Three bytes are four digits, two are three, and one is two.
            let is_there = place <= three.len();
            text.push(if is_there {
                char::from(DIGITS[digit as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests;
