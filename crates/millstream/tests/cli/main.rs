//! The command line against a broker: the binary itself is run, as a user would, and its output and exit code are judged.

mod groups;
mod http;
mod lag;
mod lag_agrees;
mod log_dump;
mod reset_offsets;
mod rig;
mod topics;
mod usage;
