//! What consumers put into the metadata and the assignments of the classic protocol: a version, then a message.

use wire::messages::consumer_protocol_assignment::{ConsumerProtocolAssignment, TopicPartition};
use wire::messages::consumer_protocol_subscription::ConsumerProtocolSubscription;
use wire::{Bytes, KStr, Message, Reader, Writer};

use crate::assign::PartitionSet;
use crate::topics::TopicImage;

/// `None` if it cannot be read.
pub(super) fn subscription(metadata: &Bytes) -> Option<ConsumerProtocolSubscription> {
    read(metadata)
}

/// `None` if it cannot be read. Members that have not synced have empty bytes, which are no assignment.
pub(super) fn assignment(bytes: &Bytes) -> Option<ConsumerProtocolAssignment> {
    if bytes.is_empty() { Some(ConsumerProtocolAssignment::default()) } else { read(bytes) }
}

/// An assignment in the version of the member's own metadata (C G-10). Topics that are gone are left out.
pub(super) fn encode_assignment(metadata: &Bytes, partitions: &PartitionSet, image: &TopicImage) -> Bytes {
    let named = |(id, partitions): (_, &std::collections::BTreeSet<i32>)| {
        let topic = image.name_of(id)?.clone();
        Some(TopicPartition { topic, partitions: partitions.iter().copied().collect() })
    };
    let mut assigned: Vec<_> = partitions.iter().filter_map(named).collect();
    assigned.sort_by(|a, b| a.topic.cmp(&b.topic));
    let assignment = ConsumerProtocolAssignment { assigned_partitions: assigned, user_data: None };
    let version = version_of(metadata).unwrap_or(0).min(ConsumerProtocolAssignment::MAX_VERSION);
    let mut writer = Writer::new();
    writer.i16(version);
    // Names of existing topics fit, and every version has both fields.
    let written = assignment.encode(&mut writer, version);
    debug_assert!(written.is_ok(), "{written:?}");
    writer.into_bytes()
}

/// Partitions by topic name as ids; unknown topics are left out.
pub(super) fn by_id<'a>(topics: impl Iterator<Item = (&'a KStr, &'a [i32])>, image: &TopicImage) -> PartitionSet {
    let mut partitions = PartitionSet::new();
    for (name, indexes) in topics {
        if let (Some(topic), false) = (image.get(name), indexes.is_empty()) {
            partitions.entry(topic.id).or_default().extend(indexes);
        }
    }
    partitions
}

fn version_of(bytes: &Bytes) -> Option<i16> {
    Reader::new(bytes).i16().ok().filter(|version| *version >= 0)
}

/// A newer version than is known here begins like the newest that is.
fn read<M: Message>(bytes: &Bytes) -> Option<M> {
    let version = version_of(bytes)?;
    let mut reader = Reader::new(bytes);
    reader.i16().ok()?;
    M::decode(&mut reader, version.min(M::MAX_VERSION)).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wire::Uuid;

    use super::*;
    use crate::topics::TopicMetadata;

    #[test]
    fn g_10_the_assignment_is_kafkas() {
        let mut image = TopicImage::default();
        let id = Uuid::from_u128(1);
        image.insert(KStr::from("orders"), TopicMetadata { id, partitions: 4, rack: None });
        let metadata = Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        let partitions = PartitionSet::from([(id, BTreeSet::from([0])), (Uuid::from_u128(9), BTreeSet::from([1]))]);
        let bytes = encode_assignment(&metadata, &partitions, &image);
        // Seen in the answer of Kafka 4.4.
        assert_eq!(bytes[..], *b"\0\0\0\0\0\x01\0\x06orders\0\0\0\x01\0\0\0\0\xff\xff\xff\xff");
        let read = assignment(&bytes).expect("it was just written");
        assert_eq!(read.assigned_partitions[0].partitions, [0]);
    }

    #[test]
    fn what_cannot_be_read_is_said_so() {
        for bytes in [&b""[..], b"\0", b"\xff\xff", b"\0\0\0\0\0\x09"] {
            assert_eq!(subscription(&Bytes::copy_from_slice(bytes)), None);
        }
        assert_eq!(assignment(&Bytes::new()), Some(ConsumerProtocolAssignment::default()));
    }
}
