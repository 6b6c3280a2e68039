//! Finalized features (A-3, UpdateFeatures).

use std::sync::Arc;

use wire::messages::feature_level_record::FeatureLevelRecord;
use wire::{ErrorCode, KStr};

use super::error::Refusal;
use super::record::MetadataRecord;
use super::{State, Topics};
use crate::features::{METADATA_VERSION, SUPPORTED};

/// A wish to move one feature.
#[derive(Clone, Debug)]
pub(crate) struct FeatureUpdate {
    pub name: KStr,
    /// 0 takes the feature away.
    pub level: i16,
    pub direction: Direction,
}

/// Which way a level may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    SafeDown,
    UnsafeDown,
    /// A number that says nothing.
    Unknown,
}

/// Initial levels of features that the log does not speak of: all in a new cluster, new ones after an upgrade of the broker. One
/// that was taken away has level 0 there, and stays so.
pub(super) fn missing(state: &State) -> impl Iterator<Item = MetadataRecord> {
    let known = |name: &str| state.features.contains_key(name);
    SUPPORTED
        .iter()
        .filter(move |feature| feature.initial > 0 && !known(feature.name))
        .map(|feature| record(feature.name, feature.initial))
}

fn record(name: &str, feature_level: i16) -> MetadataRecord {
    MetadataRecord::FeatureLevel(FeatureLevelRecord { name: KStr::copy(name), feature_level })
}

impl Topics {
    /// Moves all of the features or none; the error is that of the first that cannot move.
    pub async fn update_features(
        self: &Arc<Self>,
        updates: Vec<FeatureUpdate>,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        self.change(move |registry, writer| {
            let state = registry.state();
            let mut records = Vec::new();
            for update in &updates {
                let current = state.features.get(&update.name).copied().unwrap_or(0);
                if check(update, current, registry.node_id)? {
                    records.push(record(&update.name, update.level));
                }
            }
            if validate_only {
                return Ok(());
            }
            registry.commit(writer, &records)
        })
        .await
    }
}

/// Whether the level changes, or why it must not.
fn check(update: &FeatureUpdate, current: i16, node_id: i32) -> Result<bool, Refusal> {
    let FeatureUpdate { name, level, direction } = update;
    let refused = |message: String| Err(Refusal::new(ErrorCode::InvalidUpdateVersion, message));
    let invalid = |why: &str| refused(format!("Invalid update version {level} for feature {name}. {why}"));
    if *direction == Direction::Unknown {
        return invalid("The controller does not support the given upgrade type.");
    }
    if *level < 0 {
        return invalid("A feature version cannot be less than 0.");
    }
    let Some(feature) = SUPPORTED.iter().find(|feature| feature.name == name.as_str()) else {
        return invalid(&format!("Local controller {node_id} does not support this feature."));
    };
    if !(feature.min..=feature.max).contains(level) {
        return invalid(&format!("Local controller {node_id} only supports versions {}-{}", feature.min, feature.max));
    }
    if *level < current && *direction == Direction::Up {
        return invalid(
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe \
             downgrade.",
        );
    }
    if *level > current && *direction != Direction::Up {
        return invalid("Can't downgrade to a newer version.");
    }
    if *level < current && name.as_str() == METADATA_VERSION {
        let why = match direction {
            Direction::UnsafeDown => "Unsafe metadata downgrade is not supported in this version.",
            _ => "Refusing to perform the requested downgrade because it might delete metadata information.",
        };
        return refused(format!("Unsupported metadata.version downgrade from {current} to {level}. {why}"));
    }
    Ok(*level != current)
}
