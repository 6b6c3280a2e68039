//! Kafka's small text files: offsets per partition, leader epochs, partition metadata, properties.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::Path;

use crate::fs::{Fs, read_file, replace_file};
use crate::types::{TopicId, TopicPartition};

const LIMIT: u64 = 256 << 20;
pub(crate) const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
pub(crate) const LOG_STARTS: &str = "log-start-offset-checkpoint";
/// Up to where each partition is compacted.
pub(crate) const CLEANED: &str = "cleaner-offset-checkpoint";
/// High watermarks. Written at a clean end only, for Kafka: here they follow from the log.
pub(crate) const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
pub(crate) const LEADER_EPOCHS: &str = "leader-epoch-checkpoint";
pub(crate) const PARTITION_METADATA: &str = "partition.metadata";

/// Reads the lines of a version 0 checkpoint: version, count, that many lines. `None` if the file is missing or not sound.
fn read_lines(fs: &dyn Fs, path: &Path) -> Option<Vec<String>> {
    let bytes = match read_file(fs, path, LIMIT) {
        Ok(bytes) => bytes?,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read a checkpoint");
            return None;
        }
    };
    let text = String::from_utf8(bytes).ok();
    let lines = text.as_deref().and_then(|text| {
        let mut lines = text.lines();
        let sound = lines.next()? == "0";
        let count: usize = lines.next()?.parse().ok()?;
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        (sound && lines.len() == count).then_some(lines)
    });
    if lines.is_none() {
        tracing::warn!(path = %path.display(), "a checkpoint is damaged and is left out");
    }
    lines
}

fn write_lines(fs: &dyn Fs, path: &Path, count: usize, lines: &str) -> io::Result<()> {
    replace_file(fs, path, format!("0\n{count}\n{lines}").as_bytes())
}

/// Reads a checkpoint of an offset per partition; empty if it is missing or damaged, which only costs time in recovery.
pub(crate) fn read_offsets(fs: &dyn Fs, path: &Path) -> BTreeMap<TopicPartition, i64> {
    let parse = |line: &String| {
        let mut words = line.split(' ');
        let (topic, partition, offset) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((TopicPartition::new(topic, partition), offset))
    };
    read_lines(fs, path).unwrap_or_default().iter().filter_map(parse).collect()
}

pub(crate) fn write_offsets(fs: &dyn Fs, path: &Path, offsets: &BTreeMap<TopicPartition, i64>) -> io::Result<()> {
    let mut lines = String::new();
    for (tp, offset) in offsets {
        let _ = writeln!(lines, "{} {} {offset}", tp.topic, tp.partition);
    }
    write_lines(fs, path, offsets.len(), &lines)
}

/// Leader epochs and where each began, ascending in both.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct LeaderEpochs(Vec<(i32, i64)>);

impl LeaderEpochs {
    /// `None` if the file is missing or damaged.
    pub fn read(fs: &dyn Fs, dir: &Path) -> Option<LeaderEpochs> {
        let parse = |line: &String| {
            let (epoch, offset) = line.split_once(' ')?;
            Some((epoch.parse().ok()?, offset.parse().ok()?))
        };
        let entries: Option<Vec<(i32, i64)>> = read_lines(fs, &dir.join(LEADER_EPOCHS))?.iter().map(parse).collect();
        let ascending = |entries: &Vec<(i32, i64)>| entries.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
        entries.filter(ascending).map(LeaderEpochs)
    }

    pub fn write(&self, fs: &dyn Fs, dir: &Path) -> io::Result<()> {
        let mut lines = String::new();
        for (epoch, offset) in &self.0 {
            let _ = writeln!(lines, "{epoch} {offset}");
        }
        write_lines(fs, &dir.join(LEADER_EPOCHS), self.0.len(), &lines)
    }

    pub fn latest(&self) -> Option<i32> {
        self.0.last().map(|(epoch, _)| *epoch)
    }

    /// Notes that `epoch` begins at `offset`; true if it is new.
    pub fn assign(&mut self, epoch: i32, offset: i64) -> bool {
        if epoch < 0 || self.latest().is_some_and(|latest| latest >= epoch) {
            return false;
        }
        // An epoch that wrote nothing has no place of its own.
        self.0.retain(|(_, start)| *start < offset);
        self.0.push((epoch, offset));
        true
    }

    /// Forgets what began at or after `end`.
    pub fn truncate_end(&mut self, end: i64) {
        self.0.retain(|(_, start)| *start < end);
    }

    /// Moves what lies before `start` up to it.
    pub fn truncate_start(&mut self, start: i64) -> bool {
        let before = self.0.partition_point(|(_, offset)| *offset <= start);
        if before == 0 || (before == 1 && self.0[0].1 == start) {
            return false;
        }
        self.0.drain(..before - 1);
        self.0[0].1 = start;
        true
    }

    /// The epoch of `offset`.
    pub fn at(&self, offset: i64) -> Option<i32> {
        let count = self.0.partition_point(|(_, start)| *start <= offset);
        count.checked_sub(1).map(|i| self.0[i].0)
    }

    /// L-5: the largest epoch not above `epoch`, and where the next one begins (`log_end` if there is none).
    pub fn end_offset(&self, epoch: i32, log_end: i64) -> Option<(i32, i64)> {
        if epoch < 0 || self.latest().is_none_or(|latest| epoch > latest) {
            return None;
        }
        let count = self.0.partition_point(|(known, _)| *known <= epoch);
        let end = self.0.get(count).map_or(log_end, |(_, start)| *start);
        match count.checked_sub(1) {
            Some(i) => Some((self.0[i].0, end)),
            // Older than all that is known: nothing of it is left.
            None => Some((epoch, end)),
        }
    }
}

/// `partition.metadata`
pub(crate) fn read_topic_id(fs: &dyn Fs, dir: &Path) -> Option<TopicId> {
    let bytes = read_file(fs, &dir.join(PARTITION_METADATA), LIMIT).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    text.lines().find_map(|line| TopicId::parse(line.strip_prefix("topic_id:")?.trim()))
}

pub(crate) fn write_topic_id(fs: &dyn Fs, dir: &Path, id: TopicId) -> io::Result<()> {
    let path = dir.join(PARTITION_METADATA);
    let file = fs.open(&path, crate::fs::OpenMode::Create)?;
    file.truncate(0)?;
    // Not synced here: thousands of partitions may be created at once, and the first sync of data covers it.
    file.write_at(format!("version: 0\ntopic_id: {id}\n").as_bytes(), 0)
}

/// Reads a Java properties file as far as Kafka writes one: `key=value` lines and `#` comments.
pub(crate) fn read_properties(fs: &dyn Fs, path: &Path) -> io::Result<Option<BTreeMap<String, String>>> {
    let Some(bytes) = read_file(fs, path, LIMIT)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('=')).map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()));
    Ok(Some(pairs.collect()))
}

pub(crate) fn write_properties(fs: &dyn Fs, path: &Path, properties: &BTreeMap<String, String>) -> io::Result<()> {
    let mut text = String::from("#\n");
    for (key, value) in properties {
        let _ = writeln!(text, "{key}={value}");
    }
    replace_file(fs, path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_answer_as_l5_says() {
        let mut epochs = LeaderEpochs::default();
        assert_eq!(epochs.end_offset(0, 0), None);
        assert!(epochs.assign(0, 0));
        assert!(!epochs.assign(0, 5));
        assert!(epochs.assign(2, 10));
        assert_eq!(epochs.end_offset(0, 20), Some((0, 10)));
        assert_eq!(epochs.end_offset(1, 20), Some((0, 10)));
        assert_eq!(epochs.end_offset(2, 20), Some((2, 20)));
        assert_eq!(epochs.end_offset(3, 20), None);
        assert_eq!(epochs.end_offset(-1, 20), None);
        assert_eq!((epochs.at(9), epochs.at(10)), (Some(0), Some(2)));
        assert!(epochs.truncate_start(12));
        assert_eq!(epochs.at(12), Some(2));
        assert!(!epochs.truncate_start(12));
    }

    #[test]
    fn topic_ids_are_written_as_kafka_writes_them() {
        let id = TopicId([0x30, 0x7b, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xfd]);
        let text = id.to_string();
        assert_eq!(text, "MHv_AQIDBAUGBwgJCgsM_Q");
        assert_eq!(TopicId::parse(&text), Some(id));
        assert_eq!(TopicId::parse("short"), None);
    }
}
