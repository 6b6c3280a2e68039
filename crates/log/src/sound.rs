//! Which parts of a segment's file were compared with their checksums, so that they need not be read to be sent.
//!
//! What was compared once may be damaged later, while nobody looks. Readers that get bytes always compare, and
//! what is known here is forgotten from time to time ([`crate::LogDir::tick`]); in between a damaged batch is for the client to find,
//! which has its checksum.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// More than one range needs somebody who reads here and there; of too many the first are forgotten.
const MAX_RANGES: usize = 64;

/// Ranges of positions of one file, each from the beginning of a batch to the end of one.
#[derive(Debug, Default)]
pub(crate) struct Sound {
    /// Ascending, not touching.
    ranges: Mutex<Vec<Range<u64>>>,
}

impl Sound {
    /// Notes that everything in `range` was just appended, or read and found right.
    pub fn add(&self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ranges.partition_point(|known| known.end < range.start);
        let after = ranges.partition_point(|known| known.start <= range.end);
        let touched = &ranges[first..after];
        let start = touched.first().map_or(range.start, |known| known.start.min(range.start));
        let end = touched.last().map_or(range.end, |known| known.end.max(range.end));
        ranges.splice(first..after, std::iter::once(start..end));
        if ranges.len() > MAX_RANGES {
            ranges.remove(0);
        }
    }

    pub fn covers(&self, range: Range<u64>) -> bool {
        let ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let at = ranges.partition_point(|known| known.end < range.end);
        ranges.get(at).is_some_and(|known| known.start <= range.start)
    }

    pub fn forget(&self) {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_grow_together_and_cover_what_is_inside_one_of_them() {
        let sound = Sound::default();
        sound.add(10..20);
        sound.add(30..40);
        sound.add(5..5);
        for (range, covered) in [(10..20, true), (12..15, true), (9..20, false), (15..35, false), (20..30, false)] {
            assert_eq!(sound.covers(range.clone()), covered, "{range:?}");
        }
        sound.add(20..25);
        assert!(sound.covers(10..25) && !sound.covers(10..26));
        sound.add(24..30);
        assert!(sound.covers(10..40));
        assert_eq!(*sound.ranges.lock().unwrap(), std::slice::from_ref(&(10..40)));
        sound.add(0..100);
        assert_eq!(*sound.ranges.lock().unwrap(), std::slice::from_ref(&(0..100)));
        sound.forget();
        assert!(!sound.covers(0..1));
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let sound = Sound::default();
        for i in 0..1000 {
            sound.add(i * 10..i * 10 + 5);
        }
        assert_eq!(sound.ranges.lock().unwrap().len(), MAX_RANGES);
        assert!(sound.covers(9990..9995) && !sound.covers(0..5));
    }
}
