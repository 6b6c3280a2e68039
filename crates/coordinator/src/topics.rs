//! An immutable picture of the topics, as commands see it.

use std::collections::BTreeMap;

use wire::{KStr, Uuid};

use crate::map::Map;

/// All topics at one moment. The server makes a new one for each change and then sends `Command::TopicsChanged`.
#[derive(Clone, Debug, Default)]
pub struct TopicImage {
    by_name: BTreeMap<KStr, TopicMetadata>,
    by_id: Map<Uuid, KStr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    pub id: Uuid,
    /// Number of partitions, at least 1.
    pub partitions: i32,
    /// The broker's rack, if it has one: every replica is here.
    pub rack: Option<KStr>,
}

impl TopicImage {
    pub fn insert(&mut self, name: KStr, metadata: TopicMetadata) {
        self.by_id.insert(metadata.id, name.clone());
        if let Some(old) = self.by_name.insert(name, metadata.clone())
            && old.id != metadata.id
        {
            self.by_id.remove(&old.id);
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<TopicMetadata> {
        let old = self.by_name.remove(name)?;
        self.by_id.remove(&old.id);
        Some(old)
    }

    pub fn get(&self, name: &str) -> Option<&TopicMetadata> {
        self.by_name.get(name)
    }

    pub fn name_of(&self, id: &Uuid) -> Option<&KStr> {
        self.by_id.get(id)
    }

    /// In ascending order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&KStr, &TopicMetadata)> {
        self.by_name.iter()
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}
