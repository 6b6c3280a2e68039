//! Random identifiers, from the operating system.

use coordinator::IdSource;
use wire::Uuid;

const UUID_BYTES: usize = 16;
/// Identifiers per system call.
const BATCH: usize = 32;

/// Version 4 UUIDs.
pub(crate) struct RandomIds {
    pool: [u8; UUID_BYTES * BATCH],
    /// Bytes of the pool that are used up.
    used: usize,
}

impl Default for RandomIds {
    fn default() -> Self {
        RandomIds { pool: [0; UUID_BYTES * BATCH], used: UUID_BYTES * BATCH }
    }
}

impl IdSource for RandomIds {
    fn uuid(&mut self) -> Uuid {
        if self.used == self.pool.len() {
            fill_random(&mut self.pool);
            self.used = 0;
        }
        let mut bytes = [0; UUID_BYTES];
        bytes.copy_from_slice(&self.pool[self.used..self.used + UUID_BYTES]);
        self.used += UUID_BYTES;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid(bytes)
    }
}

/// Fills `bytes` from the kernel's generator.
pub(crate) fn fill_random(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            // Every supported kernel has the call, and without flags it has no other error. Going on with bytes that can
            // be guessed would be worse than stopping.
            Err(error) => panic!("the kernel gives no random bytes: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_version_4_and_do_not_repeat() {
        let mut ids = RandomIds::default();
        let drawn: HashSet<_> = (0..1000).map(|_| ids.uuid().0).collect();
        assert_eq!(drawn.len(), 1000);
        assert!(drawn.iter().all(|bytes| bytes[6] >> 4 == 4 && bytes[8] >> 6 == 2));
    }
}
