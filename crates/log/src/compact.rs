//! Compaction: of every key, the newest value stays (section 12).

use std::io;
use std::path::Path;

use crate::fs::{DirEntry, Fs};

/// Finishes a swap of compacted segments that a crash has interrupted; true if it changed the directory.
pub(crate) fn finish_swaps(fs: &dyn Fs, dir: &Path, entries: &[DirEntry]) -> io::Result<bool> {
    let mut changed = false;
    for entry in entries.iter().filter(|entry| entry.name.ends_with(".swap")) {
        let path = dir.join(&entry.name);
        fs.rename(&path, &path.with_extension(""))?;
        changed = true;
    }
    Ok(changed)
}
