//! The journals of groups: why they rebalanced, over restarts.
//!
//! The coordinator says what happened ([`coordinator::journal`]). Here it gets a number and words, is kept in memory and in
//! a small file of its own, counted, and passed on to who listens. All that happens in one task, behind a queue that never
//! makes a group wait: when the queue is full, entries are lost and counted.

mod entry;
mod file;
mod store;
mod story;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coordinator::journal::Event;
use tokio::sync::{broadcast, mpsc};

use crate::metrics::Metrics;
pub(crate) use entry::Entry;
use file::JournalFile;
use store::Store;

/// Events that wait for the task.
const QUEUE: usize = 16_384;
/// Events that are dealt with at once.
const BATCH: usize = 512;
/// Entries that a slow listener may be behind before it loses some.
const BEHIND: usize = 1_024;
/// Lines of the file, at least, before one with what is still kept takes its place.
const REWRITE_FROM: usize = 4_096;

/// See the module.
#[derive(Debug)]
pub(crate) struct Journal {
    queue: mpsc::Sender<Event>,
    store: Mutex<Store>,
    listeners: broadcast::Sender<Arc<Entry>>,
    lost: AtomicU64,
}

/// What the task works on.
#[derive(Debug)]
pub(crate) struct Worker {
    journal: Arc<Journal>,
    events: mpsc::Receiver<Event>,
    /// None when it cannot be written: the journals live in memory then.
    file: Option<JournalFile>,
    next_seq: u64,
}

impl Journal {
    /// Reads what is stored below the data directory.
    pub fn open(data_dir: &Path) -> (Arc<Journal>, Worker) {
        let (mut store, mut next_seq) = (Store::default(), 1);
        let opened = JournalFile::open(data_dir, |entry| {
            next_seq = next_seq.max(entry.seq + 1);
            store.add(entry, |_| {});
        });
        let file = opened.map_err(|error| tracing::warn!("journals of groups are not kept: {error}")).ok();
        let (queue, events) = mpsc::channel(QUEUE);
        let listeners = broadcast::Sender::new(BEHIND);
        let journal = Arc::new(Journal { queue, store: Mutex::new(store), listeners, lost: AtomicU64::new(0) });
        (journal.clone(), Worker { journal, events, file, next_seq })
    }

    /// Takes an event; never waits.
    pub fn happened(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The last entries of a group, oldest first; `None` if it has no journal.
    pub fn of_group(&self, group: &str, since_ms: i64, limit: usize) -> Option<Vec<Arc<Entry>>> {
        self.store().of_group(group, since_ms, limit)
    }

    /// Every entry from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Entry>> {
        self.listeners.subscribe()
    }

    /// Entries that came faster than they could be dealt with.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    /// Deals with events until `stop` completes and none is left.
    pub async fn run(mut self, metrics: Arc<Metrics>, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                _ = self.events.recv_many(&mut batch, BATCH) => {}
                () = &mut stop => {
                    while let Ok(event) = self.events.try_recv() {
                        batch.push(event);
                    }
                    self.take(&mut batch, &metrics).await;
                    return;
                }
            }
            self.take(&mut batch, &metrics).await;
        }
    }

    async fn take(&mut self, batch: &mut Vec<Event>, metrics: &Metrics) {
        let mut entries: Vec<Arc<Entry>> = Vec::with_capacity(batch.len());
        {
            let mut store = self.journal.store();
            for event in batch.drain(..) {
                metrics.groups.count(&event);
                let entry = Entry::new(self.next_seq, &event);
                self.next_seq += 1;
                let entry = store.add(entry, |folded| folded.text = story::sentence(folded));
                if entries.last().is_some_and(|last| last.seq == entry.seq) {
                    entries.pop();
                }
                entries.push(entry);
            }
        }
        for entry in &entries {
            // Nobody need listen.
            let _ = self.journal.listeners.send(entry.clone());
        }
        self.write(entries).await;
    }

    async fn write(&mut self, entries: Vec<Arc<Entry>>) {
        let Some(mut file) = self.file.take() else { return };
        let journal = self.journal.clone();
        let work = move || -> io::Result<JournalFile> {
            file.append(&entries)?;
            if file.lines >= REWRITE_FROM && file.lines > 2 * journal.store().len() {
                let kept = journal.store().all();
                file.rewrite(&kept)?;
            }
            Ok(file)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(file)) => self.file = Some(file),
            Ok(Err(error)) => tracing::warn!("journals of groups are not kept any more: {error}"),
            Err(panicked) => tracing::error!("writing the journals of groups: {panicked}"),
        }
    }
}
