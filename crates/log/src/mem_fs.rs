//! A file system in memory that can crash, fail and fill up, for tests and simulations.
//!
//! What was synced survives a crash. Of the rest, any part may: each 512-byte block of a file, its length, and every entry of a
//! directory is taken from before or after, as a seeded choice says; both names of a renamed file alike, since no file system
//! loses a file in a rename.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fs::{DirEntry, File, Fs, LockGuard, OpenMode};

const BLOCK: usize = 512;

/// What a file operation may be told to do wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Bytes that all files may have together; a write beyond writes what fits and fails with `StorageFull`.
    pub capacity: Option<u64>,
    /// Fail every write with an I/O error, after half of it.
    pub fail_writes: bool,
    /// Fail every sync of a file; what it should have synced is lost in the next crash for sure.
    pub fail_syncs: bool,
    /// Refuse to rename and to remove directories.
    pub fail_directories: bool,
}

/// The file system; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemFs {
    state: Arc<Mutex<Disk>>,
}

#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<PathBuf, Arc<Mutex<Node>>>,
    dirs: BTreeSet<PathBuf>,
    /// As of the last sync of each directory.
    synced_files: BTreeMap<PathBuf, Arc<Mutex<Node>>>,
    synced_dirs: BTreeSet<PathBuf>,
    /// Renames of files since then.
    renames: Vec<(PathBuf, PathBuf)>,
    locked: BTreeSet<PathBuf>,
    faults: Faults,
    used: u64,
    now_ms: i64,
    syncs: u64,
}

#[derive(Debug, Default)]
struct Node {
    content: Vec<u8>,
    synced: Vec<u8>,
    modified_ms: i64,
}

#[derive(Debug)]
struct MemFile {
    node: Arc<Mutex<Node>>,
    disk: Arc<Mutex<Disk>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A small deterministic generator.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) ^ (self.0 >> 11)
    }

    fn flip(&mut self) -> bool {
        self.next() & 1 == 0
    }
}

impl MemFs {
    pub fn new() -> MemFs {
        MemFs::default()
    }

    pub fn set_faults(&self, faults: Faults) {
        lock(&self.state).faults = faults;
    }

    /// The time that changed files get, in milliseconds.
    pub fn set_now(&self, now_ms: i64) {
        lock(&self.state).now_ms = now_ms;
    }

    /// Bytes that all files have together.
    pub fn used(&self) -> u64 {
        lock(&self.state).used
    }

    /// Number of file syncs so far.
    pub fn syncs(&self) -> u64 {
        lock(&self.state).syncs
    }

    /// What is left after the machine failed: another file system, without locks or faults. Handles of this one stay with this one.
    pub fn crash(&self, seed: u64) -> MemFs {
        let disk = lock(&self.state);
        let mut chance = Chance(seed);
        let mut after = Disk { now_ms: disk.now_ms, ..Disk::default() };
        for dir in disk.dirs.union(&disk.synced_dirs) {
            let (now, synced) = (disk.dirs.contains(dir), disk.synced_dirs.contains(dir));
            if if now == synced { now } else { chance.flip() } {
                after.dirs.insert(dir.clone());
            }
        }
        let paths: BTreeSet<&PathBuf> = disk.files.keys().chain(disk.synced_files.keys()).collect();
        let mut kept: BTreeMap<&PathBuf, bool> = BTreeMap::new();
        for (from, to) in &disk.renames {
            let keep = kept.get(from).copied().unwrap_or_else(|| chance.flip());
            kept.insert(from, keep);
            kept.insert(to, keep);
        }
        for path in paths {
            let (now, synced) = (disk.files.get(path), disk.synced_files.get(path));
            let same = matches!((now, synced), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
            let keep = same || kept.get(path).copied().unwrap_or_else(|| chance.flip());
            let chosen = if keep { now } else { synced };
            let parent_is_there = path.parent().is_none_or(|parent| after.dirs.contains(parent));
            if let Some(node) = chosen.filter(|_| parent_is_there) {
                let content = survivors(&lock(node), &mut chance);
                after.used += content.len() as u64;
                let node = Node { synced: content.clone(), content, modified_ms: disk.now_ms };
                after.files.insert(path.clone(), Arc::new(Mutex::new(node)));
            }
        }
        after.synced_files = after.files.clone();
        after.synced_dirs = after.dirs.clone();
        MemFs { state: Arc::new(Mutex::new(after)) }
    }

    /// What is left after only the process ended: everything written.
    pub fn restart(&self) -> MemFs {
        let disk = lock(&self.state);
        let after = Disk {
            files: disk.files.clone(),
            dirs: disk.dirs.clone(),
            synced_files: disk.synced_files.clone(),
            synced_dirs: disk.synced_dirs.clone(),
            renames: disk.renames.clone(),
            used: disk.used,
            now_ms: disk.now_ms,
            ..Disk::default()
        };
        MemFs { state: Arc::new(Mutex::new(after)) }
    }
}

fn survivors(node: &Node, chance: &mut Chance) -> Vec<u8> {
    if node.content == node.synced {
        return node.content.clone();
    }
    let (old, new) = (&node.synced, &node.content);
    let (short, long) = (old.len().min(new.len()), old.len().max(new.len()));
    let len = match chance.next() % 3 {
        0 => old.len(),
        1 => new.len(),
        _ => short + (chance.next() as usize) % (long - short + 1),
    };
    let mut content = vec![0; len];
    for (block, bytes) in content.chunks_mut(BLOCK).enumerate() {
        // What is not in the chosen version reads as zeros, as on a disk where only the length arrived.
        let from = if chance.flip() { old } else { new };
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = from.get(block * BLOCK + i).copied().unwrap_or(0);
        }
    }
    content
}

impl File for MemFile {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.node).content.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let node = lock(&self.node);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(node.content.len());
        let count = buf.len().min(node.content.len() - start);
        buf[..count].copy_from_slice(&node.content[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = lock(&self.disk);
        let mut node = lock(&self.node);
        let grown = (offset + buf.len() as u64).saturating_sub(node.content.len() as u64);
        let room = disk.faults.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(disk.used));
        let (count, error) = match disk.faults.fail_writes {
            true => (buf.len() / 2, Some(io::Error::other("injected write failure"))),
            false if grown > room => {
                (buf.len().saturating_sub((grown - room) as usize), Some(io::ErrorKind::StorageFull.into()))
            }
            false => (buf.len(), None),
        };
        let end = offset as usize + count;
        if count > 0 {
            if node.content.len() < end {
                disk.used += (end - node.content.len()) as u64;
                node.content.resize(end, 0);
            }
            node.content[offset as usize..end].copy_from_slice(&buf[..count]);
            node.modified_ms = disk.now_ms;
        }
        error.map_or(Ok(()), Err)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut disk = lock(&self.disk);
        let mut node = lock(&self.node);
        disk.used = (disk.used + len).saturating_sub(node.content.len() as u64);
        node.content.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = lock(&self.disk);
        disk.syncs += 1;
        if disk.faults.fail_syncs {
            return Err(io::Error::other("injected sync failure"));
        }
        let mut node = lock(&self.node);
        node.synced = node.content.clone();
        Ok(())
    }

    fn modified_ms(&self) -> io::Result<i64> {
        Ok(lock(&self.node).modified_ms)
    }
}

struct MemLock {
    path: PathBuf,
    disk: Arc<Mutex<Disk>>,
}

impl Drop for MemLock {
    fn drop(&mut self) {
        lock(&self.disk).locked.remove(&self.path);
    }
}

impl Fs for MemFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut disk = lock(&self.state);
        if path.parent().is_some_and(|parent| !disk.dirs.contains(parent)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let now_ms = disk.now_ms;
        let node = match disk.files.get(path) {
            Some(node) => node.clone(),
            None if mode == OpenMode::Existing => return Err(io::ErrorKind::NotFound.into()),
            None => {
                let node = Arc::new(Mutex::new(Node { modified_ms: now_ms, ..Node::default() }));
                disk.files.insert(path.to_path_buf(), node.clone());
                node
            }
        };
        Ok(Arc::new(MemFile { node, disk: self.state.clone() }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut disk = lock(&self.state);
        disk.dirs.extend(path.ancestors().map(Path::to_path_buf));
        // What is above the data directory is not this disk's business.
        let above: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_path_buf).collect();
        disk.synced_dirs.extend(above);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let disk = lock(&self.state);
        if !disk.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = |path: &Path| match path.parent() == Some(dir) {
            true => path.file_name().and_then(|name| name.to_str()).map(str::to_owned),
            false => None,
        };
        let dirs = disk.dirs.iter().filter_map(|path| Some(DirEntry { name: inside(path)?, is_dir: true, len: 0 }));
        let files = disk.files.iter().filter_map(|(path, node)| {
            Some(DirEntry { name: inside(path)?, is_dir: false, len: lock(node).content.len() as u64 })
        });
        Ok(dirs.chain(files).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = lock(&self.state);
        if disk.dirs.contains(from) && disk.faults.fail_directories {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if disk.dirs.contains(from) {
            let moved = |path: &PathBuf| path.strip_prefix(from).ok().map(|rest| to.join(rest));
            disk.dirs = disk.dirs.iter().map(|path| moved(path).unwrap_or_else(|| path.clone())).collect();
            let files = std::mem::take(&mut disk.files);
            disk.files = files.into_iter().map(|(path, node)| (moved(&path).unwrap_or(path), node)).collect();
            return Ok(());
        }
        let node = disk.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.renames.push((from.to_path_buf(), to.to_path_buf()));
        if let Some(replaced) = disk.files.insert(to.to_path_buf(), node) {
            disk.used = disk.used.saturating_sub(lock(&replaced).content.len() as u64);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut disk = lock(&self.state);
        let node = disk.files.remove(path).ok_or(io::ErrorKind::NotFound)?;
        disk.used = disk.used.saturating_sub(lock(&node).content.len() as u64);
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut disk = lock(&self.state);
        if disk.faults.fail_directories {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if !disk.dirs.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.dirs.retain(|dir| !dir.starts_with(path));
        let gone: u64 =
            disk.files.iter().filter(|(p, _)| p.starts_with(path)).map(|(_, n)| lock(n).content.len() as u64).sum();
        disk.files.retain(|file, _| !file.starts_with(path));
        disk.used = disk.used.saturating_sub(gone);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = lock(&self.state);
        let in_dir = |path: &Path| path.parent() == Some(dir);
        let files: Vec<_> =
            disk.files.iter().filter(|(path, _)| in_dir(path)).map(|(p, n)| (p.clone(), n.clone())).collect();
        let dirs: Vec<_> = disk.dirs.iter().filter(|path| in_dir(path)).cloned().collect();
        disk.renames.retain(|(from, _)| !in_dir(from));
        disk.synced_files.retain(|path, _| !in_dir(path));
        disk.synced_files.extend(files);
        disk.synced_dirs.retain(|path| !in_dir(path));
        disk.synced_dirs.extend(dirs);
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<LockGuard> {
        let mut disk = lock(&self.state);
        match disk.locked.insert(path.to_path_buf()) {
            true => Ok(Box::new(MemLock { path: path.to_path_buf(), disk: self.state.clone() })),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let disk = lock(&self.state);
        Ok(disk.faults.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(disk.used)))
    }
}
