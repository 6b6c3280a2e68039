//! What has to hold whatever goes wrong. Checkers see the log, the requests and the answers from outside; they share no code
//! with the coordinator but the reading of records.

pub mod classic;
pub mod commits;
pub mod convergence;
pub mod fencing;
pub mod mirror;
pub mod ownership;
pub mod replay;
