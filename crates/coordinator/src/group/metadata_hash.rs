//! The hash over the metadata of a group's topics (S 3.3.4), the same number that Kafka 4.4 writes.

use wire::KStr;
use xxhash_rust::xxh3::xxh3_64;

use crate::topics::{TopicImage, TopicMetadata};

/// XXH3-64 over the topic hashes of the topics that exist; 0 if none does. `names` ascending.
pub(crate) fn of_topics<'a>(names: impl Iterator<Item = &'a KStr>, topics: &TopicImage) -> i64 {
    let mut bytes = Vec::new();
    let mut scratch = Vec::new();
    for name in names {
        if let Some(topic) = topics.get(name) {
            bytes.extend_from_slice(&of_topic(name, topic, &mut scratch).to_le_bytes());
        }
    }
    if bytes.is_empty() { 0 } else { xxh3_64(&bytes) as i64 }
}

fn of_topic(name: &str, topic: &TopicMetadata, bytes: &mut Vec<u8>) -> u64 {
    bytes.clear();
    bytes.push(0);
    let id = topic.id.as_u128();
    bytes.extend_from_slice(&((id >> 64) as u64).to_le_bytes());
    bytes.extend_from_slice(&(id as u64).to_le_bytes());
    let units = push_utf16(bytes, name);
    push_int(bytes, units);
    push_int(bytes, topic.partitions);
    for partition in 0..topic.partitions {
        push_int(bytes, partition);
        if let Some(rack) = &topic.rack {
            push_int(bytes, rack.encode_utf16().count() as i32);
            let units = push_utf16(bytes, rack);
            push_int(bytes, units);
        }
    }
    xxh3_64(bytes)
}

fn push_int(bytes: &mut Vec<u8>, value: i32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

/// Returns the number of UTF-16 units.
fn push_utf16(bytes: &mut Vec<u8>, text: &str) -> i32 {
    let mut units = 0;
    for unit in text.encode_utf16() {
        bytes.extend_from_slice(&unit.to_le_bytes());
        units += 1;
    }
    units
}

#[cfg(test)]
mod tests {
    use wire::Uuid;

    use super::*;

    /// S 3.3.4: seen in the log of a Kafka 4.4 broker.
    #[test]
    fn hashes_are_kafkas() {
        let id = Uuid::from_u128(0x937784d2_676a_495d_bbcc_08bde5e5603b);
        let topic = TopicMetadata { id, partitions: 3, rack: None };
        assert_eq!(of_topic("specA-47608-in", &topic, &mut Vec::new()), 0xd237_2259_bc72_0472);
        let mut topics = TopicImage::default();
        topics.insert(KStr::from("specA-47608-in"), topic);
        let names = [KStr::from("missing"), KStr::from("specA-47608-in")];
        assert_eq!(of_topics(names.iter(), &topics) as u64, 0xf4db_039f_d538_1cae);
        assert_eq!(of_topics([KStr::from("missing")].iter(), &topics), 0);
    }
}
