//! What the end-to-end tests share: the broker as a process, and Java applications as others.

pub mod broker;
pub mod java;
