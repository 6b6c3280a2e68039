//! Open files, kept open up to a limit.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::fs::{File, Fs, OpenMode};

/// The file system and a cache of its open files. Whoever has something to sync keeps the file itself, so that an error of the disk
/// reaches it: a file opened anew might not hear of it.
pub(crate) struct Files {
    pub fs: Arc<dyn Fs>,
    capacity: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    files: HashMap<PathBuf, (Arc<dyn File>, u64)>,
    uses: u64,
}

impl Files {
    pub fn new(fs: Arc<dyn Fs>, capacity: usize) -> Files {
        Files { fs, capacity: capacity.max(16), open: Mutex::default() }
    }

    pub fn get(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.uses += 1;
        let uses = open.uses;
        if let Some((file, used)) = open.files.get_mut(path) {
            *used = uses;
            return Ok(file.clone());
        }
        let file = self.fs.open(path, mode)?;
        if open.files.len() >= self.capacity {
            // An eighth at a time, so that the sorting is paid for by many openings.
            let mut ages: Vec<u64> = open.files.values().map(|(_, used)| *used).collect();
            ages.sort_unstable();
            let limit = ages[ages.len() / 8];
            open.files.retain(|_, (_, used)| *used > limit);
        }
        open.files.insert(path.to_path_buf(), (file.clone(), uses));
        Ok(file)
    }

    /// Forgets a file that is renamed or removed. Readers that have it go on reading what they opened.
    pub fn forget(&self, path: &Path) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).files.remove(path);
    }

    /// Forgets all files below a directory.
    pub fn forget_dir(&self, dir: &Path) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).files.retain(|path, _| !path.starts_with(dir));
    }
}
