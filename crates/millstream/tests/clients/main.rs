//! End to end: unmodified clients against the `millstream` binary.

mod broker;
mod causes;
mod chaos;
mod conformance;
mod exactly_once;
mod java;
mod kill_and_restart;
mod pods;
mod settled;
mod streams_application;
