//! The journals on disk: a file of lines, one entry of JSON each. A line that a crash cut off is passed over, and so is
//! whatever else cannot be read: a journal is worth much, but never a broker that does not start.

use std::fs::{File, OpenOptions, create_dir_all, rename};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::Entry;

/// No partition's directory can have this name.
const DIRECTORY: &str = "group-journal";
const NAME: &str = "journal.jsonl";
/// Longer lines are not ours.
const MAX_LINE: usize = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: File,
    /// Lines in it, readable or not.
    pub lines: usize,
}

impl JournalFile {
    /// Opens the file, made if need be, and reads what is there, in order.
    pub fn open(data_dir: &Path, mut each: impl FnMut(Entry)) -> io::Result<JournalFile> {
        let dir = data_dir.join(DIRECTORY);
        create_dir_all(&dir)?;
        let path = dir.join(NAME);
        let mut lines = 0;
        let mut is_cut_off = false;
        if let Ok(file) = File::open(&path) {
            let mut reader = BufReader::new(file);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                lines += 1;
                is_cut_off = line.last() != Some(&b'\n');
                if line.len() <= MAX_LINE
                    && let Ok(entry) = serde_json::from_slice(&line)
                {
                    each(entry);
                }
                line.clear();
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        if is_cut_off {
            file.write_all(b"\n")?;
        }
        Ok(JournalFile { path, file, lines })
    }

    pub fn append(&mut self, entries: &[Arc<Entry>]) -> io::Result<()> {
        let mut text = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut text, &**entry)?;
            text.push(b'\n');
        }
        self.lines += entries.len();
        self.file.write_all(&text)
    }

    /// Writes a file with these entries only, and takes it in the place of the old one.
    pub fn rewrite(&mut self, entries: &[Arc<Entry>]) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut writer = BufWriter::new(File::create(&new)?);
        for entry in entries {
            serde_json::to_writer(&mut writer, &**entry)?;
            writer.write_all(b"\n")?;
        }
        writer.into_inner()?.sync_data()?;
        rename(&new, &self.path)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.lines = entries.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: u64) -> Arc<Entry> {
        let json = format!(
            r#"{{"seq":{seq},"at_ms":1,"group":"g","protocol":"classic","kind":"stable","also":[],"who":null,"epoch":null,
            "topics":[],"moves":[],"moved":0,"took_ms":null,"waited_for":[],"detail":null,"times":1,"text":"t"}}"#
        );
        Arc::new(serde_json::from_str(&json).expect("an entry"))
    }

    fn read(dir: &Path) -> (JournalFile, Vec<u64>) {
        let mut seen = Vec::new();
        let file = JournalFile::open(dir, |entry| seen.push(entry.seq)).unwrap();
        (file, seen)
    }

    #[test]
    fn what_was_written_is_read_again_and_a_line_that_was_cut_off_harms_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (mut file, seen) = read(dir.path());
        assert!(seen.is_empty());
        file.append(&[entry(1), entry(2)]).unwrap();
        file.file.write_all(b"{\"seq\":3,").unwrap();
        let (mut file, seen) = read(dir.path());
        assert_eq!(seen, [1, 2]);
        file.append(&[entry(4)]).unwrap();
        let (mut file, seen) = read(dir.path());
        assert_eq!((seen, file.lines), (vec![1, 2, 4], 4));
        file.rewrite(&[entry(2), entry(4)]).unwrap();
        file.append(&[entry(5)]).unwrap();
        assert_eq!(read(dir.path()).1, [2, 4, 5]);
    }
}
