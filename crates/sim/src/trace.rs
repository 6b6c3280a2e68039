//! What happened in a run: a hash over all of it, and the last lines for people.

use std::collections::VecDeque;
use std::fmt::{Arguments, Write};

/// Lines kept for the report of a failure.
const KEPT: usize = 120;

#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: VecDeque<String>,
    line: String,
    print: bool,
}

impl Trace {
    /// `print` shows every line as it comes.
    pub fn new(print: bool) -> Self {
        Trace { hash: 0xCBF2_9CE4_8422_2325, lines: VecDeque::new(), line: String::new(), print }
    }

    /// Two runs that did the same have the same hash.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn tail(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }

    pub fn note(&mut self, now_ms: u64, what: Arguments<'_>) {
        self.line.clear();
        // Writing into a string cannot fail.
        let _ = write!(self.line, "{:>10.3} {what}", now_ms as f64 / 1000.0);
        for bytes in self.line.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.hash = (self.hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        }
        if self.print {
            println!("{}", self.line);
        }
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(self.line.clone());
    }
}
