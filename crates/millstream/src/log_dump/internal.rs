//! Records of the coordinators' logs.

use serde_json::{Value, json};
use wire::batch::Record;
use wire::messages as m;
use wire::messages::coordinator_records::GroupRecordType;
use wire::{Bytes, CoordinatorKey, Message, Reader};

use super::{Decoder, structured};

/// A record in words.
pub struct Decoded {
    pub name: String,
    pub key: Value,
    /// Null for a tombstone.
    pub value: Value,
}

/// `None` if the record is not one of a coordinator, or of a kind or version that is not known here.
pub fn decode(decoder: Decoder, record: &Record) -> Option<Decoded> {
    let key = record.key.as_ref()?;
    let value = record.value.as_ref();
    let kind = Reader::new(key).i16().ok()?;
    match decoder {
        Decoder::Data => None,
        Decoder::Offsets => group_record(GroupRecordType::try_from(kind).ok()?, key, value),
        Decoder::Transactions if kind == m::TransactionLogKey::RECORD_TYPE => {
            pair::<m::TransactionLogKey>("TransactionLog", key, value)
        }
        Decoder::Transactions => None,
    }
}

fn group_record(kind: GroupRecordType, key: &Bytes, value: Option<&Bytes>) -> Option<Decoded> {
    use GroupRecordType as T;
    let name = kind.name();
    match kind {
        // The old and the new kind of offset commit have the same key and value.
        T::LegacyOffsetCommit | T::OffsetCommit => pair::<m::OffsetCommitKey>(name, key, value),
        T::GroupMetadata => pair::<m::GroupMetadataKey>(name, key, value),
        T::ConsumerGroupMetadata => pair::<m::ConsumerGroupMetadataKey>(name, key, value),
        T::ConsumerGroupPartitionMetadata => pair::<m::ConsumerGroupPartitionMetadataKey>(name, key, value),
        T::ConsumerGroupMemberMetadata => pair::<m::ConsumerGroupMemberMetadataKey>(name, key, value),
        T::ConsumerGroupTargetAssignmentMetadata => {
            pair::<m::ConsumerGroupTargetAssignmentMetadataKey>(name, key, value)
        }
        T::ConsumerGroupTargetAssignmentMember => pair::<m::ConsumerGroupTargetAssignmentMemberKey>(name, key, value),
        T::ConsumerGroupCurrentMemberAssignment => pair::<m::ConsumerGroupCurrentMemberAssignmentKey>(name, key, value),
        T::ConsumerGroupRegularExpression => pair::<m::ConsumerGroupRegularExpressionKey>(name, key, value),
        T::ShareGroupMemberMetadata => pair::<m::ShareGroupMemberMetadataKey>(name, key, value),
        T::ShareGroupMetadata => pair::<m::ShareGroupMetadataKey>(name, key, value),
        T::ShareGroupTargetAssignmentMetadata => pair::<m::ShareGroupTargetAssignmentMetadataKey>(name, key, value),
        T::ShareGroupTargetAssignmentMember => pair::<m::ShareGroupTargetAssignmentMemberKey>(name, key, value),
        T::ShareGroupCurrentMemberAssignment => pair::<m::ShareGroupCurrentMemberAssignmentKey>(name, key, value),
        T::ShareGroupStatePartitionMetadata => pair::<m::ShareGroupStatePartitionMetadataKey>(name, key, value),
        T::StreamsGroupMetadata => pair::<m::StreamsGroupMetadataKey>(name, key, value),
        T::StreamsGroupMemberMetadata => pair::<m::StreamsGroupMemberMetadataKey>(name, key, value),
        T::StreamsGroupTargetAssignmentMetadata => pair::<m::StreamsGroupTargetAssignmentMetadataKey>(name, key, value),
        T::StreamsGroupTargetAssignmentMember => pair::<m::StreamsGroupTargetAssignmentMemberKey>(name, key, value),
        T::StreamsGroupCurrentMemberAssignment => pair::<m::StreamsGroupCurrentMemberAssignmentKey>(name, key, value),
        T::StreamsGroupTopology => pair::<m::StreamsGroupTopologyKey>(name, key, value),
    }
}

fn pair<K: CoordinatorKey>(name: &str, key: &Bytes, value: Option<&Bytes>) -> Option<Decoded> {
    let mut reader = Reader::new(key);
    // The number in front of a key is its type; keys have one version only.
    reader.i16().ok()?;
    let key = K::decode(&mut reader, K::MIN_VERSION).ok()?;
    let value = match value {
        None => Value::Null,
        Some(bytes) => {
            let mut reader = Reader::new(bytes);
            let version = reader.i16().ok()?;
            match K::Value::decode(&mut reader, version) {
                Ok(value) => structured::of(&value),
                Err(error) => json!({ "unreadable": error.to_string() }),
            }
        }
    };
    Some(Decoded { name: name.to_owned(), key: structured::of(&key), value })
}
