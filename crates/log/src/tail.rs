//! The recent batches of a partition, in memory for the consumers that keep up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use wire::batch::BatchHeader;

/// Memory that all partitions share.
#[derive(Debug)]
pub(crate) struct CacheBudget {
    pub used: AtomicUsize,
    pub limit: usize,
    pub partition_limit: usize,
}

#[derive(Debug)]
pub(crate) struct Tail {
    budget: Arc<CacheBudget>,
    chunks: VecDeque<Chunk>,
    bytes: usize,
    last_used_ms: i64,
}

#[derive(Debug)]
struct Chunk {
    base: i64,
    next: i64,
    bytes: Bytes,
}

/// Batches taken from a run of bytes.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub records: Vec<Bytes>,
    pub size: usize,
    pub next_offset: i64,
    /// A batch would not fit, or reaches the limit: there is no use in reading on.
    pub full: bool,
}

impl Tail {
    pub fn new(budget: Arc<CacheBudget>) -> Tail {
        Tail { budget, chunks: VecDeque::new(), bytes: 0, last_used_ms: 0 }
    }

    /// Adds what was appended at `base..next`.
    pub fn push(&mut self, base: i64, next: i64, bytes: Bytes, now_ms: i64) {
        self.last_used_ms = now_ms;
        self.bytes += bytes.len();
        self.budget.used.fetch_add(bytes.len(), Ordering::Relaxed);
        self.chunks.push_back(Chunk { base, next, bytes });
        // Over the common budget, everybody who appends makes do with the newest batch.
        let over = self.budget.used.load(Ordering::Relaxed) > self.budget.limit;
        let limit = if over { 0 } else { self.budget.partition_limit };
        while self.bytes > limit && self.chunks.len() > 1 {
            self.pop();
        }
        if self.bytes > self.budget.partition_limit {
            self.clear();
        }
    }

    fn pop(&mut self) {
        if let Some(chunk) = self.chunks.pop_front() {
            self.bytes -= chunk.bytes.len();
            self.budget.used.fetch_sub(chunk.bytes.len(), Ordering::Relaxed);
        }
    }

    pub fn clear(&mut self) {
        while !self.chunks.is_empty() {
            self.pop();
        }
    }

    /// Drops what begins before `offset`: the files say something else by now.
    pub fn forget_before(&mut self, offset: i64) {
        while self.chunks.front().is_some_and(|chunk| chunk.base < offset) {
            self.pop();
        }
    }

    /// Drops everything if it was not used since `before_ms`.
    pub fn clear_if_idle(&mut self, before_ms: i64) {
        if self.last_used_ms < before_ms {
            self.clear();
        }
    }

    /// Reads from `from`, below `limit`; `None` if the file has to be asked.
    pub fn read(&mut self, from: i64, limit: i64, max_bytes: usize, min_one: bool) -> Option<Taken> {
        if self.chunks.front().is_none_or(|first| from < first.base) {
            return None;
        }
        let start = self.chunks.partition_point(|chunk| chunk.next <= from);
        let mut taken = Taken { next_offset: from, ..Taken::default() };
        for chunk in self.chunks.range(start..) {
            take_batches(&chunk.bytes, from, limit, max_bytes, min_one, &mut taken);
            if taken.full {
                break;
            }
        }
        Some(taken)
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Adds the whole batches of `bytes` that end at or after `from` and begin before `limit`, as long as they fit into `max_bytes`. Stops
/// at what is not a whole batch.
pub(crate) fn take_batches(bytes: &Bytes, from: i64, limit: i64, max_bytes: usize, min_one: bool, taken: &mut Taken) {
    let mut start = None;
    let mut position = 0;
    while let Ok(header) = BatchHeader::parse(&bytes[position..]) {
        let end = position + header.size();
        if end > bytes.len() {
            break;
        }
        if header.last_offset() >= from {
            let fits = taken.size + header.size() <= max_bytes || (min_one && taken.size == 0);
            if header.base_offset >= limit || !fits {
                taken.full = true;
                break;
            }
            start.get_or_insert(position);
            taken.size += header.size();
            taken.next_offset = header.next_offset();
        }
        position = end;
    }
    if let Some(start) = start {
        taken.records.push(bytes.slice(start..position));
    }
}
