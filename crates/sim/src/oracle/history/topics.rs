//! The topics of a history.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::oracle::codec;
use crate::rng::Rng;

/// Topics with their ids and numbers of partitions; some may come and go.
#[derive(Debug)]
pub struct Topics {
    names: Vec<&'static str>,
    present: BTreeMap<&'static str, (u8, i32)>,
    last_id: u8,
}

impl Topics {
    /// All of them are there, with one to three partitions.
    pub fn new(names: &[&'static str]) -> Topics {
        let mut topics = Topics { names: names.to_vec(), present: BTreeMap::new(), last_id: 0 };
        for (index, name) in names.iter().enumerate() {
            topics.put(name, 1 + (index as i32 + 2) % 3);
        }
        topics
    }

    /// Creates a topic, or sets its number of partitions.
    pub fn put(&mut self, name: &'static str, partitions: i32) {
        if let Some((_, present)) = self.present.get_mut(name) {
            *present = partitions;
            return;
        }
        self.last_id += 1;
        self.present.insert(name, (self.last_id, partitions));
    }

    pub fn remove(&mut self, name: &str) {
        self.present.remove(name);
    }

    pub fn partitions(&self, name: &str) -> i32 {
        self.present.get(name).map_or(0, |(_, partitions)| *partitions)
    }

    /// The id of a topic; one of its own that no topic has if there is no such topic.
    pub fn id(&self, name: &Value) -> String {
        let name = name.as_str().unwrap_or_default();
        let place = self.names.iter().position(|known| *known == name).unwrap_or(self.names.len());
        id_text(self.present.get(name).map_or(200 + place as u8, |(id, _)| *id))
    }

    /// The command that makes these the topics.
    pub fn command(&self) -> Value {
        let topics = self
            .present
            .iter()
            .map(|(name, (id, partitions))| json!({"name": name, "id": id_text(*id), "partitions": partitions}));
        json!({"op": "topics", "topics": topics.collect::<Vec<_>>()})
    }

    /// One topic grows, goes or comes.
    pub fn change(&mut self, rng: &mut Rng) -> Value {
        let name = self.names[rng.below(self.names.len() as u64) as usize];
        match self.partitions(name) {
            0 => self.put(name, 2),
            n if rng.percent(60) => self.put(name, n + 1),
            _ => self.remove(name),
        }
        self.command()
    }

    /// Every partition there is, as a member may claim to own it.
    pub fn all_partitions(&self) -> Value {
        let each = self.present.values().map(
            |(id, partitions)| json!({"topicId": id_text(*id), "partitions": (0..*partitions).collect::<Vec<_>>()}),
        );
        each.collect()
    }
}

fn id_text(id: u8) -> String {
    let mut bytes = [0; 16];
    bytes[15] = id;
    codec::uuid_text(&bytes)
}
