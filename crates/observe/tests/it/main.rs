//! Tests of the observer.
#![allow(missing_docs)]

mod trace;
