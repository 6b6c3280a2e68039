//! Produce (0): records into partitions (U-1 to U-17).

use std::sync::Arc;

use log::{AppendError, AppendInfo, AppendParams, PartitionLog};
use tokio::sync::oneshot;
use wire::batch::{Batch, Compression};
use wire::messages::produce_request::{PartitionProduceData, ProduceRequest};
use wire::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};
use wire::{Bytes, ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::data::{PRODUCE_NAMES_UNTIL, Partitions};
use crate::topics::is_internal;

/// The client id that may write to internal topics (U-5).
const ADMIN_CLIENT: &str = "__admin_client";
/// First version that may carry zstd (U-3).
const ZSTD_FROM: i16 = 7;
/// U-10: at most so many bad records are quoted in the message.
const QUOTED_RECORDS: usize = 3;

/// A partition that was written, and what its answer may have to wait for.
struct Written {
    log: Arc<PartitionLog>,
    info: AppendInfo,
}

/// Where in the response a partition stands.
type Place = (usize, usize);

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ProduceRequest,
) -> Result<Handled<ProduceResponse>, HandlerError> {
    let acks = request.acks;
    let mut response = ProduceResponse::default();
    let mut written: Vec<(Place, Written)> = Vec::new();
    let partitions = Partitions::now(cx.broker);
    let by_id = cx.api_version > PRODUCE_NAMES_UNTIL;
    for topic in request.topic_data {
        let name = if by_id { partitions.name_of(&topic.topic_id) } else { Ok(topic.name.clone()) };
        let mut answers = Vec::with_capacity(topic.partition_data.len());
        for data in topic.partition_data {
            let index = data.index;
            let outcome = match &name {
                Ok(name) => append(cx, &partitions, name, acks, data),
                Err(error) => Err(Refusal::code(*error)),
            };
            let answer = match outcome {
                Ok(done) => {
                    let answer = success(index, &done.info);
                    written.push(((response.responses.len(), answers.len()), done));
                    answer
                }
                Err(refusal) => refusal.into_answer(index),
            };
            answers.push(answer);
        }
        let topic = TopicProduceResponse { name: topic.name, topic_id: topic.topic_id, partition_responses: answers };
        response.responses.push(topic);
    }
    if acks == 0 {
        return without_response(&response);
    }
    if acks == 1 || written.is_empty() {
        return Ok(response.into());
    }
    Ok(wait_for_all(response, written))
}

/// U-6: nothing is ever sent; an error closes the connection.
fn without_response(response: &ProduceResponse) -> Result<Handled<ProduceResponse>, HandlerError> {
    let answers = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    match answers.map(|answer| ErrorCode::from_code(answer.error_code)).find(|error| !error.is_none()) {
        None => Ok(Handled::NoResponse),
        Some(error) => Err(HandlerError::Close(format!("a produce request with acks=0 failed with {error}"))),
    }
}

/// acks=all: the answer goes out when everything is committed. The log's writer does the work, later requests of the
/// connection go on meanwhile.
fn wait_for_all(mut response: ProduceResponse, written: Vec<(Place, Written)>) -> Handled<ProduceResponse> {
    let waits: Vec<_> = written
        .into_iter()
        .map(|(place, Written { log, info })| {
            let (done, waiting) = oneshot::channel();
            // The receiver is gone when the client is: nobody to tell.
            log.when_committed(info.next_offset(), Box::new(move |result| drop(done.send(result))));
            (place, waiting)
        })
        .collect();
    Handled::Later(Box::pin(async move {
        for ((topic, partition), waiting) in waits {
            let failed = match waiting.await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => Refusal { code: error.code(), message: Some(error.to_string()), records: Vec::new() },
                Err(_) => Refusal::code(ErrorCode::NotLeaderOrFollower),
            };
            let answer = &mut response.responses[topic].partition_responses[partition];
            *answer = failed.into_answer(answer.index);
        }
        Ok(response)
    }))
}

/// Why a partition refused.
struct Refusal {
    code: i16,
    message: Option<String>,
    /// Index and text of each bad record.
    records: Vec<(i32, String)>,
}

impl Refusal {
    fn code(error: ErrorCode) -> Refusal {
        Refusal { code: error.code(), message: None, records: Vec::new() }
    }

    fn because(error: ErrorCode, message: &str) -> Refusal {
        Refusal { message: Some(message.to_owned()), ..Refusal::code(error) }
    }

    fn into_answer(self, index: i32) -> PartitionProduceResponse {
        let bad = |(batch_index, text): (i32, String)| BatchIndexAndErrorMessage {
            batch_index,
            batch_index_error_message: Some(KStr::from(text)),
        };
        PartitionProduceResponse {
            index,
            error_code: self.code,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: self.records.into_iter().map(bad).collect(),
            error_message: self.message.map(KStr::from),
            ..Default::default()
        }
    }
}

fn success(index: i32, info: &AppendInfo) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        base_offset: info.first_offset,
        log_append_time_ms: info.log_append_time_ms,
        log_start_offset: info.log_start_offset,
        ..Default::default()
    }
}

/// U-2: the checks in their order, then the append.
fn append(
    cx: &RequestContext<'_>,
    partitions: &Partitions<'_>,
    topic: &KStr,
    acks: i16,
    data: PartitionProduceData,
) -> Result<Written, Refusal> {
    let log = partitions.by_name(topic, data.index).map_err(Refusal::code)?;
    let records = check_request(cx.api_version, data.records)?;
    if !(-1..=1).contains(&acks) {
        return Err(Refusal::code(ErrorCode::InvalidRequiredAcks));
    }
    if is_internal(topic) && cx.client_id != ADMIN_CLIENT {
        return Err(Refusal::because(ErrorCode::InvalidTopicException, "only the broker writes to internal topics"));
    }
    match log.append(&AppendParams::client(cx.broker.clock.wall_ms()), &records) {
        Ok(info) => Ok(Written { log, info }),
        Err(error) => Err(refused(&log, error)),
    }
}

/// U-3: what is wrong whatever the partition.
fn check_request(version: i16, records: Option<Bytes>) -> Result<Bytes, Refusal> {
    let records = records.filter(|records| !records.is_empty()).ok_or_else(|| {
        Refusal::because(ErrorCode::InvalidRecord, "the request has no record batch for this partition")
    })?;
    // A batch that cannot be taken apart is the log's to judge (U-8).
    let Ok((first, rest)) = Batch::parse_next(&records) else { return Ok(records) };
    if !rest.is_empty() {
        return Err(Refusal::because(
            ErrorCode::InvalidRecord,
            "a produce request carries exactly one record batch per partition",
        ));
    }
    if version < ZSTD_FROM && first.header().attributes.compression() == Ok(Compression::Zstd) {
        return Err(Refusal::because(
            ErrorCode::UnsupportedCompressionType,
            "zstd needs version 7 of produce requests or later",
        ));
    }
    Ok(records)
}

/// U-10: a message where single records are to blame, none where the batch is.
fn refused(log: &PartitionLog, error: AppendError) -> Refusal {
    let records: Vec<(i32, String)> = error.record_errors().iter().map(|r| (r.index, r.message.clone())).collect();
    let message = (!records.is_empty()).then(|| {
        let quoted: Vec<_> =
            records.iter().take(QUOTED_RECORDS).map(|(index, text)| format!("{index}: {text}")).collect();
        format!("{} records were refused: {}", records.len(), quoted.join(", "))
    });
    match &error {
        AppendError::Storage(error) => tracing::error!("{}: cannot append: {error}", log.topic_partition()),
        error => tracing::debug!("{}: a produce request was refused: {error}", log.topic_partition()),
    }
    Refusal { code: error.code(), message, records }
}
