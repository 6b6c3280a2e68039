//! Records of the metadata log: Kafka's own, framed as Kafka frames them (frame version, record type, version, message), so that
//! Kafka's dump tool reads them.

use bytes::Bytes;
use wire::messages::client_quota_record::ClientQuotaRecord;
use wire::messages::config_record::ConfigRecord;
use wire::messages::feature_level_record::FeatureLevelRecord;
use wire::messages::partition_record::PartitionRecord;
use wire::messages::producer_ids_record::ProducerIdsRecord;
use wire::messages::remove_topic_record::RemoveTopicRecord;
use wire::messages::topic_record::TopicRecord;
use wire::{DecodeError, EncodeError, Message, Reader, Writer};

const FRAME_VERSION: u32 = 1;

/// Those that one node needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MetadataRecord {
    Topic(TopicRecord),
    Partition(PartitionRecord),
    RemoveTopic(RemoveTopicRecord),
    Config(ConfigRecord),
    FeatureLevel(FeatureLevelRecord),
    /// Also carries the broker epoch, which grows by one with every start.
    ProducerIds(ProducerIdsRecord),
    ClientQuota(ClientQuotaRecord),
}

/// Bytes in the metadata log that are none of these records.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("frame version {0}")]
    Frame(u32),
    #[error("a record without value")]
    NoValue,
    #[error("record type {0}: the log was written by another broker, or a later version")]
    Type(u32),
}

impl MetadataRecord {
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        match self {
            MetadataRecord::Topic(record) => frame(TopicRecord::API_KEY, record),
            MetadataRecord::Partition(record) => frame(PartitionRecord::API_KEY, record),
            MetadataRecord::RemoveTopic(record) => frame(RemoveTopicRecord::API_KEY, record),
            MetadataRecord::Config(record) => frame(ConfigRecord::API_KEY, record),
            MetadataRecord::FeatureLevel(record) => frame(FeatureLevelRecord::API_KEY, record),
            MetadataRecord::ProducerIds(record) => frame(ProducerIdsRecord::API_KEY, record),
            MetadataRecord::ClientQuota(record) => frame(ClientQuotaRecord::API_KEY, record),
        }
    }

    pub fn decode(value: Option<&Bytes>) -> Result<MetadataRecord, RecordError> {
        let mut reader = Reader::new(value.ok_or(RecordError::NoValue)?);
        let frame = reader.unsigned_varint()?;
        if frame != FRAME_VERSION {
            return Err(RecordError::Frame(frame));
        }
        let kind = reader.unsigned_varint()?;
        let version = i16::try_from(reader.unsigned_varint()?).unwrap_or(i16::MAX);
        let r = &mut reader;
        Ok(match i16::try_from(kind).unwrap_or(-1) {
            TopicRecord::API_KEY => MetadataRecord::Topic(TopicRecord::decode(r, version)?),
            PartitionRecord::API_KEY => MetadataRecord::Partition(PartitionRecord::decode(r, version)?),
            RemoveTopicRecord::API_KEY => MetadataRecord::RemoveTopic(RemoveTopicRecord::decode(r, version)?),
            ConfigRecord::API_KEY => MetadataRecord::Config(ConfigRecord::decode(r, version)?),
            FeatureLevelRecord::API_KEY => MetadataRecord::FeatureLevel(FeatureLevelRecord::decode(r, version)?),
            ProducerIdsRecord::API_KEY => MetadataRecord::ProducerIds(ProducerIdsRecord::decode(r, version)?),
            ClientQuotaRecord::API_KEY => MetadataRecord::ClientQuota(ClientQuotaRecord::decode(r, version)?),
            _ => return Err(RecordError::Type(kind)),
        })
    }
}

fn frame<M: Message>(api_key: i16, message: &M) -> Result<Bytes, EncodeError> {
    const USUAL_BYTES: usize = 64;
    let version = M::MIN_VERSION;
    let mut writer = Writer::with_capacity(USUAL_BYTES);
    writer.unsigned_varint(FRAME_VERSION);
    writer.unsigned_varint(api_key as u32);
    writer.unsigned_varint(version as u32);
    message.encode(&mut writer, version)?;
    Ok(writer.into_bytes())
}

#[cfg(test)]
mod tests {
    use wire::{KStr, Uuid};

    use super::*;

    #[test]
    fn records_survive_a_round_trip_in_kafkas_framing() {
        let topic = TopicRecord { name: KStr::from("in"), topic_id: Uuid([1; 16]) };
        let bytes = MetadataRecord::Topic(topic.clone()).encode().expect("encodes");
        assert_eq!(bytes[..3], [1, 2, 0], "frame version, type, version");
        assert_eq!(MetadataRecord::decode(Some(&bytes)).expect("decodes"), MetadataRecord::Topic(topic));
    }

    #[test]
    fn what_is_no_record_of_ours_is_refused() {
        let cases: [&'static [u8]; 5] = [&[], &[2, 2, 0], &[1, 27, 0], &[1, 2, 9], &[1, 2, 0, 5]];
        for bytes in cases {
            assert!(MetadataRecord::decode(Some(&Bytes::from_static(bytes))).is_err(), "{bytes:?}");
        }
        assert!(MetadataRecord::decode(None).is_err());
    }
}
