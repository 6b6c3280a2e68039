//! Access to files: a narrow trait, so that a simulator can put a faulty disk in the place of the real one, and the real one.

use std::any::Any;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading and writing; it must exist.
    Existing,
    /// For reading and writing; made if it does not exist, kept as it is if it does.
    Create,
}

/// An open file. Positions are explicit, so it may be shared by threads.
pub trait File: Send + Sync {
    fn len(&self) -> io::Result<u64>;

    /// Reads into `buf`; less than its length only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The same into memory of its own: `len` bytes, or those that there are.
    fn read_vec_at(&self, len: usize, offset: u64) -> io::Result<Vec<u8>> {
        let mut buf = vec![0; len];
        let read = self.read_at(&mut buf, offset)?;
        buf.truncate(read);
        Ok(buf)
    }

    /// Writes all of `buf`. After an error, any part of it may have been written.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes content and length durable. After an error nothing is known about what was written since the last success, and a
    /// second call proves nothing.
    fn sync_data(&self) -> io::Result<()>;

    /// Time of the last change, in milliseconds since 1970.
    fn modified_ms(&self) -> io::Result<i64>;

    /// What the kernel knows the file by; `None` if it is not a file of the operating system.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    pub name: String,
    pub is_dir: bool,
    /// Bytes, 0 for directories.
    pub len: u64,
}

/// Releases a lock when dropped.
pub type LockGuard = Box<dyn Any + Send + Sync>;

/// A file system. Creations, renames and removals are durable once [`Fs::sync_dir`] of the directory has succeeded.
pub trait Fs: Send + Sync + 'static {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Entries in no particular order; names that are not UTF-8 are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;
    /// Replaces `to` if it exists.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Locks `path` (made if needed) against other processes; fails with `WouldBlock` if one has it.
    fn lock(&self, path: &Path) -> io::Result<LockGuard>;
    /// Free bytes of the device that holds `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// Reads a small file; `None` if it does not exist, an error if it is larger than `limit`.
pub(crate) fn read_file(fs: &dyn Fs, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match fs.open(path, OpenMode::Existing) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.len()?;
    if len > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "unexpectedly large"));
    }
    let mut buf = vec![0; len as usize];
    let read = file.read_at(&mut buf, 0)?;
    buf.truncate(read);
    Ok(Some(buf))
}

/// Puts `content` in the place of the file: whoever reads it, also after a crash, finds the old or the new content, never a mix.
pub(crate) fn replace_file(fs: &dyn Fs, path: &Path, content: &[u8]) -> io::Result<()> {
    put_file(fs, path, content, true)
}

/// The same without waiting for the disk: a crash of the machine may leave anything, so the content must be able to tell.
pub(crate) fn replace_file_lazily(fs: &dyn Fs, path: &Path, content: &[u8]) -> io::Result<()> {
    put_file(fs, path, content, false)
}

fn put_file(fs: &dyn Fs, path: &Path, content: &[u8], sync: bool) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let file = fs.open(&temporary, OpenMode::Create)?;
    file.truncate(0)?;
    file.write_at(content, 0)?;
    if sync {
        file.sync_data()?;
    }
    fs.rename(&temporary, path)
}

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl File for fs::File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match FileExt::read_at(self, &mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Spares the zeros.
    fn read_vec_at(&self, len: usize, offset: u64) -> io::Result<Vec<u8>> {
        let mut buf = Vec::with_capacity(len);
        while buf.len() < len {
            let position = offset + buf.len() as u64;
            match rustix::io::pread(self, rustix::buffer::spare_capacity(&mut buf), position) {
                Ok(0) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        buf.truncate(len);
        Ok(buf)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(buf, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        fs::File::sync_data(self)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn modified_ms(&self) -> io::Result<i64> {
        let since = self.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

impl Fs for RealFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let create = mode == OpenMode::Create;
        let file = fs::OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)?;
        Ok(Arc::new(file))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_dir = entry.file_type()?.is_dir();
            // A file may vanish between the listing and the look at it; it is then as good as not listed.
            let len = match is_dir {
                true => 0,
                false => match entry.metadata() {
                    Ok(metadata) => metadata.len(),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                },
            };
            entries.push(DirEntry { name, is_dir, len });
        }
        Ok(entries)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<LockGuard> {
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}
