//! The records of `__consumer_offsets`: Kafka 4.4's types, byte for byte (S 10.1, C T-1).

use bytes::Bytes;
use wire::messages::{
    consumer_group_current_member_assignment_key::ConsumerGroupCurrentMemberAssignmentKey,
    consumer_group_current_member_assignment_value::ConsumerGroupCurrentMemberAssignmentValue,
    consumer_group_member_metadata_key::ConsumerGroupMemberMetadataKey,
    consumer_group_member_metadata_value::ConsumerGroupMemberMetadataValue,
    consumer_group_metadata_key::ConsumerGroupMetadataKey, consumer_group_metadata_value::ConsumerGroupMetadataValue,
    consumer_group_partition_metadata_key::ConsumerGroupPartitionMetadataKey,
    consumer_group_partition_metadata_value::ConsumerGroupPartitionMetadataValue,
    consumer_group_regular_expression_key::ConsumerGroupRegularExpressionKey,
    consumer_group_regular_expression_value::ConsumerGroupRegularExpressionValue,
    consumer_group_target_assignment_member_key::ConsumerGroupTargetAssignmentMemberKey,
    consumer_group_target_assignment_member_value::ConsumerGroupTargetAssignmentMemberValue,
    consumer_group_target_assignment_metadata_key::ConsumerGroupTargetAssignmentMetadataKey,
    consumer_group_target_assignment_metadata_value::ConsumerGroupTargetAssignmentMetadataValue,
    group_metadata_key::GroupMetadataKey, group_metadata_value::GroupMetadataValue, offset_commit_key::OffsetCommitKey,
    offset_commit_value::OffsetCommitValue,
    streams_group_current_member_assignment_key::StreamsGroupCurrentMemberAssignmentKey,
    streams_group_current_member_assignment_value::StreamsGroupCurrentMemberAssignmentValue,
    streams_group_member_metadata_key::StreamsGroupMemberMetadataKey,
    streams_group_member_metadata_value::StreamsGroupMemberMetadataValue,
    streams_group_metadata_key::StreamsGroupMetadataKey, streams_group_metadata_value::StreamsGroupMetadataValue,
    streams_group_target_assignment_member_key::StreamsGroupTargetAssignmentMemberKey,
    streams_group_target_assignment_member_value::StreamsGroupTargetAssignmentMemberValue,
    streams_group_target_assignment_metadata_key::StreamsGroupTargetAssignmentMetadataKey,
    streams_group_target_assignment_metadata_value::StreamsGroupTargetAssignmentMetadataValue,
    streams_group_topology_key::StreamsGroupTopologyKey, streams_group_topology_value::StreamsGroupTopologyValue,
};
use wire::{KStr, Message, Reader, Writer};

use crate::state_log::RawRecord;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("record type {0} has a key that cannot be read: {1}")]
    Key(i16, String),
    #[error("record type {0} has a value that cannot be read: {1}")]
    Value(i16, String),
    #[error("the record cannot be written: {0}")]
    Encode(String),
    #[error("the key is shorter than a record type")]
    NoType,
}

/// Declares the enum and its codec from one table: variant, record type, key, value, value version to write.
macro_rules! records {
    ($($variant:ident = $type:literal, $key:ident, $value:ident, $version:expr;)*) => {
        /// One record; a value of `None` is a tombstone.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Record { $($variant($key, Option<$value>),)* }

        impl Record {
            /// The type that the key starts with.
            pub fn record_type(&self) -> i16 {
                match self { $(Record::$variant(..) => $type,)* }
            }

            /// The group that the record belongs to.
            pub fn group_id(&self) -> &KStr {
                match self { $(Record::$variant(key, _) => group_of(key),)* }
            }

            pub fn is_tombstone(&self) -> bool {
                match self { $(Record::$variant(_, value) => value.is_none(),)* }
            }

            pub fn encode(&self) -> Result<RawRecord, RecordError> {
                match self {
                    $(Record::$variant(key, value) => {
                        let value = match value {
                            None => None,
                            Some(value) => {
                                let version: fn(&$value) -> i16 = $version;
                                Some(encode_one(version(value), value, version(value))?)
                            }
                        };
                        Ok(RawRecord { key: encode_one($type, key, 0)?, value })
                    })*
                }
            }

            /// `Ok(None)` for a type that is not known here: a newer log (S 10.1: skipped with a warning).
            pub fn decode(raw: &RawRecord) -> Result<Option<Record>, RecordError> {
                let (record_type, key) = split(&raw.key)?;
                match record_type {
                    $($type => {
                        let key = $key::decode(&mut Reader::new(&key), 0).map_err(|e| RecordError::Key($type, e.to_string()))?;
                        let value = match &raw.value {
                            None => None,
                            Some(value) => {
                                let (version, value) = split(value)?;
                                let value = $value::decode(&mut Reader::new(&value), version)
                                    .map_err(|e| RecordError::Value($type, e.to_string()))?;
                                Some(value)
                            }
                        };
                        Ok(Some(Record::$variant(key, value)))
                    })*
                    _ => Ok(None),
                }
            }
        }

        $(impl OfGroup for $key { fn group(&self) -> &KStr { self.group_field() } })*
    };
}

trait OfGroup {
    fn group(&self) -> &KStr;
}

fn group_of(key: &impl OfGroup) -> &KStr {
    key.group()
}

/// The schemas name the group either `group` or `groupId`.
trait GroupField {
    fn group_field(&self) -> &KStr;
}

macro_rules! group_field {
    ($field:ident: $($key:ident),*) => { $(impl GroupField for $key { fn group_field(&self) -> &KStr { &self.$field } })* };
}

group_field!(group: OffsetCommitKey, GroupMetadataKey);
group_field!(group_id:
    ConsumerGroupMetadataKey, ConsumerGroupPartitionMetadataKey, ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupRegularExpressionKey, StreamsGroupMetadataKey,
    StreamsGroupMemberMetadataKey, StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey, StreamsGroupTopologyKey);

records! {
    OffsetCommit = 1, OffsetCommitKey, OffsetCommitValue, |v| if v.expire_timestamp != -1 { 1 } else { 4 };
    GroupMetadata = 2, GroupMetadataKey, GroupMetadataValue, |_| 3;
    ConsumerMetadata = 3, ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, |_| 0;
    ConsumerPartitionMetadata = 4, ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue, |_| 0;
    ConsumerMember = 5, ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, |_| 0;
    ConsumerTargetMetadata = 6, ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue, |_| 0;
    ConsumerTargetMember = 7, ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, |_| 0;
    ConsumerCurrentMember = 8, ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, |_| 0;
    ConsumerRegex = 16, ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, |_| 0;
    StreamsMetadata = 17, StreamsGroupMetadataKey, StreamsGroupMetadataValue, |_| 0;
    StreamsMember = 19, StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue, |_| 0;
    StreamsTargetMetadata = 20, StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue, |_| 0;
    StreamsTargetMember = 21, StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue, |_| 0;
    StreamsCurrentMember = 22, StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue, |_| 0;
    StreamsTopology = 23, StreamsGroupTopologyKey, StreamsGroupTopologyValue, |_| 0;
}

/// `prefix` (record type or value version) as int16, then the struct.
fn encode_one(prefix: i16, message: &impl Message, version: i16) -> Result<Bytes, RecordError> {
    let mut writer = Writer::new();
    writer.i16(prefix);
    message.encode(&mut writer, version).map_err(|e| RecordError::Encode(e.to_string()))?;
    Ok(writer.into_bytes())
}

fn split(bytes: &Bytes) -> Result<(i16, Bytes), RecordError> {
    if bytes.len() < 2 {
        return Err(RecordError::NoType);
    }
    Ok((i16::from_be_bytes([bytes[0], bytes[1]]), bytes.slice(2..)))
}
