//! Features and their finalized levels: what clients derive a protocol from, so what is not built is not here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A feature that this broker knows, with the levels that it supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
    /// Level of a new cluster.
    pub initial: i16,
}

pub(crate) const GROUP_VERSION: &str = "group.version";
pub(crate) const STREAMS_VERSION: &str = "streams.version";
pub(crate) const METADATA_VERSION: &str = "metadata.version";
pub(crate) const TRANSACTION_VERSION: &str = "transaction.version";

/// By name.
pub(crate) const SUPPORTED: &[Feature] = &[
    Feature { name: GROUP_VERSION, min: 0, max: 1, initial: 1 },
    Feature { name: METADATA_VERSION, min: 7, max: 33, initial: 33 },
    Feature { name: STREAMS_VERSION, min: 0, max: 1, initial: 1 },
    Feature { name: TRANSACTION_VERSION, min: 0, max: 2, initial: 2 },
];

/// The finalized levels. They are stored by the topic registry's metadata log, which sets them here.
#[derive(Debug)]
pub(crate) struct Features(Mutex<Finalized>);

#[derive(Debug)]
struct Finalized {
    epoch: i64,
    levels: BTreeMap<&'static str, i16>,
}

impl Default for Features {
    fn default() -> Self {
        let levels = SUPPORTED.iter().map(|feature| (feature.name, feature.initial)).collect();
        Features(Mutex::new(Finalized { epoch: 0, levels }))
    }
}

impl Features {
    fn with<R>(&self, f: impl FnOnce(&mut Finalized) -> R) -> R {
        // Every change is one insert, so there is nothing half-done behind a poisoned lock.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The epoch, which grows with every change, and all levels above 0.
    pub fn finalized(&self) -> (i64, Vec<(&'static str, i16)>) {
        self.with(|finalized| {
            let levels = finalized.levels.iter().filter(|(_, level)| **level > 0);
            (finalized.epoch, levels.map(|(name, level)| (*name, *level)).collect())
        })
    }

    /// 0 if it is not finalized.
    pub fn level(&self, name: &str) -> i16 {
        self.with(|finalized| finalized.levels.get(name).copied().unwrap_or(0))
    }

    /// Takes what the metadata log says. A level outside the supported range is a log of another version: false.
    pub fn set(&self, epoch: i64, name: &str, level: i16) -> bool {
        let Some(feature) = SUPPORTED.iter().find(|feature| feature.name == name) else { return false };
        if !(feature.min..=feature.max).contains(&level) {
            return false;
        }
        self.with(|finalized| {
            finalized.epoch = finalized.epoch.max(epoch);
            finalized.levels.insert(feature.name, level);
        });
        true
    }
}
