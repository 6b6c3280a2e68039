//! A disk that dies in the middle of what is done to it, and now and then reads something else than it was asked for.
//!
//! Writes and syncs that fail, a full disk, and what a crash leaves of what was not synced are [`MemFs`]'s.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use log::{DirEntry, File, Fs, LockGuard, MemFs, OpenMode};

use crate::rng::Rng;

const SECTOR: u64 = 512;

/// Clones share it.
#[derive(Clone)]
pub struct FaultyDisk {
    mem: MemFs,
    plan: Arc<Mutex<Plan>>,
}

struct Plan {
    rng: Rng,
    /// Changes of the disk that are still carried out before the machine dies.
    changes_left: Option<u64>,
    /// What the death of the machine left.
    left: Option<MemFs>,
    misread_per_mille: u64,
    misreads: u64,
    /// The latest read of a log went wrong; the next one does not.
    misread_last: bool,
}

impl FaultyDisk {
    pub fn new(mem: MemFs, seed: u64) -> FaultyDisk {
        let plan = Plan {
            rng: Rng::new(seed),
            changes_left: None,
            left: None,
            misread_per_mille: 0,
            misreads: 0,
            misread_last: false,
        };
        FaultyDisk { mem, plan: Arc::new(Mutex::new(plan)) }
    }

    pub fn mem(&self) -> &MemFs {
        &self.mem
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine dies after `changes` more changes of the disk.
    pub fn crash_after(&self, changes: u64) {
        self.plan().changes_left = Some(changes);
    }

    /// What the disk holds after the machine died; `None` if it lives.
    pub fn remains(&self) -> Option<MemFs> {
        self.plan().left.clone()
    }

    /// How many of a thousand reads of log files go wrong, never two in a row: whoever looks again sees what is there.
    pub fn misread(&self, per_mille: u64) {
        self.plan().misread_per_mille = per_mille;
    }

    pub fn misreads(&self) -> u64 {
        self.plan().misreads
    }

    /// Before each change: is the machine alive?
    fn change(&self) -> io::Result<()> {
        let mut plan = self.plan();
        if plan.left.is_some() {
            return Err(dead());
        }
        match &mut plan.changes_left {
            Some(0) => {
                let seed = plan.rng.next_u64();
                plan.left = Some(self.mem.crash(seed));
                return Err(dead());
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn alive(&self) -> io::Result<()> {
        if self.plan().left.is_some() { Err(dead()) } else { Ok(()) }
    }
}

fn dead() -> io::Error {
    io::Error::other("the machine is down")
}

struct FaultyFile {
    file: Arc<dyn File>,
    disk: FaultyDisk,
    /// Checksums protect logs; what protects the small files is that they are written as a whole.
    is_log: bool,
}

impl File for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.alive()?;
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.alive()?;
        let read = self.file.read_at(buf, offset)?;
        let mut plan = self.disk.plan();
        if !self.is_log || read == 0 {
            return Ok(read);
        }
        let per_mille = if plan.misread_last { 0 } else { plan.misread_per_mille };
        plan.misread_last = plan.rng.chance(per_mille);
        if plan.misread_last {
            plan.misreads += 1;
            // One sector comes from elsewhere.
            let sector = plan.rng.between(offset / SECTOR, (offset + read as u64 - 1) / SECTOR) * SECTOR;
            let (from, to) = (sector.max(offset), (sector + SECTOR).min(offset + read as u64));
            let wrong = &mut buf[(from - offset) as usize..(to - offset) as usize];
            match plan.rng.chance(500) {
                true => wrong.fill(0),
                false => {
                    let other = plan.rng.below(offset + read as u64) / SECTOR * SECTOR + from % SECTOR;
                    _ = self.file.read_at(wrong, other)?;
                }
            }
        }
        Ok(read)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.disk.change()?;
        self.file.write_at(buf, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.disk.change()?;
        self.file.truncate(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.change()?;
        self.file.sync_data()
    }

    fn modified_ms(&self) -> io::Result<i64> {
        self.disk.alive()?;
        self.file.modified_ms()
    }
}

impl Fs for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        match mode {
            OpenMode::Create => self.change()?,
            OpenMode::Existing => self.alive()?,
        }
        let file = self.mem.open(path, mode)?;
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        Ok(Arc::new(FaultyFile { file, disk: self.clone(), is_log }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        self.mem.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.alive()?;
        self.mem.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?;
        self.mem.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        self.mem.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        self.mem.remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.change()?;
        self.mem.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<LockGuard> {
        self.alive()?;
        self.mem.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.alive()?;
        self.mem.free_bytes(path)
    }
}
