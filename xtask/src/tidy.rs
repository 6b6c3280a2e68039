//! Rules of the repository that the compiler does not check.

use std::path::Path;

use anyhow::Result;

/// Fails with every rule that is broken.
pub fn check(_root: &Path) -> Result<()> {
    Ok(())
}
