//! The rules of Kafka's schemas, each on a message that has the case.

use wire::messages::{
    ConfigRecord, FetchRequest, FetchResponse, GroupMetadataKey, GroupRecordType, MetadataRequest, OffsetCommitKey,
    OffsetCommitRequest, OffsetCommitValue, PartitionRecord, ProduceRequest, RequestHeader, ResponseHeader,
    TransactionLogKey, TransactionLogValue, TransactionRecordType,
};
use wire::{
    ApiKey, Bytes, CoordinatorKey, CoordinatorValue, DecodeError, EncodeError, Message, Reader, Request,
    SPLICE_MIN_BYTES, Uuid, Writer,
};

fn encode<M: Message>(message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut w = Writer::new();
    message.encode(&mut w, version)?;
    Ok(w.into_bytes())
}

fn decode<M: Message>(bytes: &[u8], version: i16) -> Result<M, DecodeError> {
    let frame = Bytes::copy_from_slice(bytes);
    let mut r = Reader::new(&frame);
    let message = M::decode(&mut r, version)?;
    r.finish()?;
    Ok(message)
}

#[test]
fn a_version_that_the_message_lacks_is_an_error() {
    for version in [-1, 14, i16::MAX, i16::MIN] {
        let message = "MetadataRequest";
        let expected = EncodeError::Version { message, version };
        assert_eq!(encode(&MetadataRequest::default(), version), Err(expected));
        let expected = DecodeError::Version { message, version };
        assert_eq!(decode::<MetadataRequest>(&[], version), Err(expected));
    }
}

#[test]
fn null_is_an_error_in_versions_without_null() {
    let all_topics = MetadataRequest { topics: None, ..Default::default() };
    let field = "MetadataRequest.topics";
    assert_eq!(encode(&all_topics, 0), Err(EncodeError::Null { field }));
    let null = (-1i32).to_be_bytes();
    assert_eq!(decode::<MetadataRequest>(&null, 0), Err(DecodeError::Null));
    assert_eq!(encode(&all_topics, 1).unwrap(), null[..]);
    assert_eq!(decode::<MetadataRequest>(&null, 1), Ok(all_topics));
}

#[test]
fn a_value_that_a_version_lacks_is_dropped_only_if_ignorable() {
    // The rack may be dropped, the topics to forget may not.
    let racked = FetchRequest { rack_id: "r".into(), ..Default::default() };
    let plain = encode(&FetchRequest::default(), 7);
    assert_eq!(encode(&racked, 7), plain);
    let forgetful = FetchRequest { forgotten_topics_data: vec![Default::default()], ..Default::default() };
    let field = "FetchRequest.forgotten_topics_data";
    let expected = EncodeError::FieldNotInVersion { field, version: 6 };
    assert_eq!(encode(&forgetful, 6), Err(expected));
    assert!(encode(&forgetful, 7).is_ok());
}

#[test]
fn defaults_are_those_of_the_schema() {
    let request = FetchRequest::default();
    assert_eq!((request.replica_id, request.max_bytes), (-1, i32::MAX));
    assert_eq!(request.replica_state.replica_epoch, -1);
    assert_eq!(request.cluster_id, None);
    let commit = OffsetCommitRequest::default();
    assert_eq!(commit.generation_id_or_member_epoch, -1);
    assert!(MetadataRequest::default().allow_auto_topic_creation);
    assert_eq!(MetadataRequest::default().topics, Some(Vec::new()));
    let mut topic = wire::messages::fetch_response::PartitionData::default();
    assert_eq!((topic.aborted_transactions.take(), topic.records), (Some(Vec::new()), None));
}

#[test]
fn tagged_fields_are_written_unless_default_and_unknown_ones_are_skipped() {
    let value = OffsetCommitValue { offset: 5, ..Default::default() };
    let mut bytes = encode(&value, 4).unwrap().to_vec();
    assert_eq!(bytes.last(), Some(&0));
    let id = Uuid([7; 16]);
    let tagged = OffsetCommitValue { topic_id: id, ..value.clone() };
    let with_id = encode(&tagged, 4).unwrap();
    assert_eq!(with_id.len(), bytes.len() + 18);
    assert_eq!(decode(&with_id, 4), Ok(tagged));

    // One unknown tag, 99, of two bytes.
    bytes.pop();
    bytes.extend([1, 99, 2, 0xaa, 0xbb]);
    assert_eq!(decode(&bytes, 4), Ok(value));
}

#[test]
fn client_id_keeps_its_old_length_in_flexible_headers() {
    let header =
        RequestHeader { request_api_key: 18, request_api_version: 4, correlation_id: 1, client_id: Some("ab".into()) };
    let bytes = encode(&header, 2).unwrap();
    assert_eq!(bytes, [0, 18, 0, 4, 0, 0, 0, 1, 0, 2, b'a', b'b', 0][..]);
    assert_eq!(decode(&bytes, 2), Ok(header));
}

#[test]
fn records_of_a_fetch_are_not_copied() {
    let records = Bytes::from(vec![1; SPLICE_MIN_BYTES]);
    let mut response = FetchResponse { responses: vec![Default::default()], ..Default::default() };
    response.responses[0].partitions = vec![Default::default()];
    response.responses[0].partitions[0].records = Some(records.clone().into());
    let mut w = Writer::new();
    response.encode(&mut w, 12).unwrap();
    let chunks: Vec<Bytes> = w.into_chunks().iter().filter_map(|chunk| chunk.bytes().cloned()).collect();
    assert_eq!(chunks.len(), 3);
    assert_eq!(chunks[1].as_ptr(), records.as_ptr());

    let frame = Bytes::from(chunks.concat());
    let decoded = FetchResponse::decode(&mut Reader::new(&frame), 12).unwrap();
    let read = decoded.responses[0].partitions[0].records.as_ref().unwrap().bytes().unwrap();
    assert_eq!(read.as_ptr(), frame[chunks[0].len()..].as_ptr());
    assert_eq!(decoded, response);
}

#[test]
fn api_keys_know_versions_and_headers() {
    for (key, code, versions, request_headers, response_headers) in [
        (ApiKey::Produce, 0, 3..=13, (1, 2), (0, 1)),
        (ApiKey::SaslHandshake, 17, 0..=1, (1, 1), (0, 0)),
        (ApiKey::ApiVersions, 18, 0..=5, (1, 2), (0, 0)),
        // Version 6 is there, but not stable.
        (ApiKey::InitProducerId, 22, 0..=5, (1, 2), (0, 1)),
        (ApiKey::OffsetDelete, 47, 0..=0, (1, 1), (0, 0)),
        (ApiKey::StreamsGroupHeartbeat, 88, 0..=1, (2, 2), (1, 1)),
        (ApiKey::UnregisterController, 94, 0..=0, (2, 2), (1, 1)),
    ] {
        assert_eq!(ApiKey::try_from(code), Ok(key));
        assert_eq!(key.code(), code);
        assert_eq!(key.versions(), versions, "{key}");
        let (oldest, newest) = (*versions.start(), *versions.end());
        let request = [oldest, newest].map(|v| key.request_header_version(v));
        assert_eq!(request, [request_headers.0, request_headers.1], "{key}");
        let response = [oldest, newest].map(|v| key.response_header_version(v));
        assert_eq!(response, [response_headers.0, response_headers.1], "{key}");
        assert!(RequestHeader::versions().contains(&request[0]));
        assert!(ResponseHeader::versions().contains(&response[0]));
    }
    // Removed in Kafka 4.0, or never there.
    for code in [-1, 4, 5, 6, 7, 95] {
        assert!(ApiKey::try_from(code).is_err());
    }
    assert_eq!(ApiKey::ALL.len(), 91);
    assert_eq!(ProduceRequest::KEY, ApiKey::Produce);
    assert_eq!(ApiKey::ListOffsets.name(), "ListOffsets");
}

#[test]
fn record_types_pair_keys_and_values() {
    fn pair<K: CoordinatorKey>() -> (i16, &'static str, &'static str) {
        assert_eq!(K::RECORD_TYPE, K::Value::RECORD_TYPE);
        (K::RECORD_TYPE, K::NAME, K::Value::NAME)
    }
    assert_eq!(pair::<OffsetCommitKey>(), (1, "OffsetCommitKey", "OffsetCommitValue"));
    assert_eq!(pair::<GroupMetadataKey>(), (2, "GroupMetadataKey", "GroupMetadataValue"));
    assert_eq!(GroupRecordType::try_from(1), Ok(GroupRecordType::OffsetCommit));
    assert!(GroupRecordType::try_from(9).is_err());
    assert_eq!(GroupRecordType::ALL.len(), 22);
    assert_eq!(pair::<TransactionLogKey>().0, TransactionRecordType::TransactionLog.code());
    assert_eq!((ConfigRecord::API_KEY, PartitionRecord::API_KEY), (4, 3));
}

#[test]
fn a_tagged_field_needs_a_flexible_version() {
    let value = TransactionLogValue { next_producer_id: 6, ..Default::default() };
    assert_eq!(decode(&encode(&value, 1).unwrap(), 1), Ok(value.clone()));
    let field = "TransactionLogValue.next_producer_id";
    let expected = EncodeError::FieldNotInVersion { field, version: 0 };
    assert_eq!(encode(&value, 0), Err(expected));
}
