//! What the operating system is asked for at the start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many files this process may have open.
pub(crate) fn open_files_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit of open files to what this process may have, and returns it. A broker needs one per connection and a
/// few per partition that is in use.
pub fn raise_open_files_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let now = if raised.is_ok() { maximum } else { current };
    // No limit at all is none that anybody reaches.
    now.unwrap_or(u64::MAX)
}
