//! How peers know each other: by a cookie, and by certificates.

pub(crate) mod codes;
pub(crate) mod cookie;
pub(crate) mod tls;
