//! Produce (0): records into partitions (U-1 to U-17).

use std::sync::Arc;

use coordinator::Producer;
use coordinator::txn::TopicPartitions;
use log::{AppendError, AppendInfo, AppendParams, PartitionLog, VerificationGuard};
use tokio::sync::oneshot;
use wire::batch::{BatchError, BatchHeader, Compression, MAGIC, field, peek_size};
use wire::messages::produce_request::{PartitionProduceData, ProduceRequest};
use wire::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};
use wire::{Bytes, ErrorCode, KStr};

use super::verification::Implies;
use super::{Handled, HandlerError, RequestContext};
use crate::data::{PRODUCE_NAMES_UNTIL, Partitions};
use crate::topics::is_internal;

/// The client id that may write to internal topics (U-5).
const ADMIN_CLIENT: &str = "__admin_client";
/// First version that may carry zstd (U-3).
const ZSTD_FROM: i16 = 7;
/// First version that knows TRANSACTION_ABORTABLE; later ones add partitions to the transaction (V-4).
const ABORTABLE_FROM: i16 = 11;
/// How often the coordinator is asked about a partition whose last transaction is just ending.
const VERIFICATIONS: usize = 4;
/// U-10: at most so many bad records are quoted in the message.
const QUOTED_RECORDS: usize = 3;

/// A partition that got past the checks of its request.
struct Checked {
    name: KStr,
    log: Arc<PartitionLog>,
    records: Bytes,
    /// Of its batch, if the batch is transactional.
    transactional: Option<Batched>,
    /// Shows that the transaction coordinator was asked.
    verification: Option<VerificationGuard>,
}

/// What a batch says of its producer.
#[derive(Clone, Copy)]
struct Batched {
    producer: Producer,
    base_sequence: i32,
}

/// A partition that was written, and what its answer may have to wait for.
struct Written {
    log: Arc<PartitionLog>,
    info: AppendInfo,
}

/// A partition on its way through the stages, by its index.
type Staged<T> = Vec<(i32, Result<T, Refusal>)>;

/// Where in the response a partition stands.
type Place = (usize, usize);

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ProduceRequest,
) -> Result<Handled<ProduceResponse>, HandlerError> {
    let acks = request.acks;
    let partitions = Partitions::now(cx.broker);
    let by_id = cx.api_version > PRODUCE_NAMES_UNTIL;
    let mut response = ProduceResponse::default();
    let mut staged: Vec<Staged<Checked>> = Vec::with_capacity(request.topic_data.len());
    let mut transactional = false;
    for topic in request.topic_data {
        let name = if by_id { partitions.name_of(&topic.topic_id) } else { Ok(topic.name.clone()) };
        let mut checked = Vec::with_capacity(topic.partition_data.len());
        for data in topic.partition_data {
            let batched = data.records.as_ref().and_then(of_transaction);
            transactional |= batched.is_some();
            let index = data.index;
            let outcome = match &name {
                Ok(name) => check(cx, &partitions, name, batched, data),
                Err(error) => Err(Refusal::code(*error)),
            };
            checked.push((index, outcome));
        }
        staged.push(checked);
        response.responses.push(TopicProduceResponse {
            name: topic.name,
            topic_id: topic.topic_id,
            partition_responses: Vec::new(),
        });
    }
    if transactional {
        enter_transaction(cx, request.transactional_id.as_ref(), &mut staged).await;
    }
    let mut written: Vec<(Place, Written)> = Vec::new();
    for (at, checked) in staged.into_iter().enumerate() {
        let answers = &mut response.responses[at].partition_responses;
        for (index, outcome) in checked {
            match outcome.and_then(|checked| append(cx, acks, checked)) {
                Ok(done) => {
                    answers.push(success(index, &done.info));
                    written.push(((at, answers.len() - 1), done));
                }
                Err(refusal) => answers.push(refusal.into_answer(index)),
            }
        }
    }
    if acks == 0 {
        return without_response(&response);
    }
    if acks == 1 || written.is_empty() {
        return Ok(response.into());
    }
    Ok(wait_for_all(response, written))
}

/// V-1 to V-5: the partitions whose first transactional batch this is become part of the transaction, or have to be part of it
/// already. Those that may not be written are refused.
async fn enter_transaction(cx: &RequestContext<'_>, transactional_id: Option<&KStr>, staged: &mut [Staged<Checked>]) {
    let Some(transactional_id) = transactional_id else {
        return refuse_all(staged, true, &|| Refusal::code(ErrorCode::TransactionalIdAuthorizationFailed));
    };
    let producer = match the_producer(staged) {
        None => return,
        Some(Ok(producer)) => producer,
        Some(Err(refusal)) => return refuse_all(staged, false, &refusal),
    };
    let implies = Implies::of(cx.api_version, ABORTABLE_FROM);
    if !implies.asks(cx) {
        return;
    }
    for _ in 0..VERIFICATIONS {
        let asked = begin_verifications(cx, implies == Implies::Add, staged);
        if asked.is_empty() {
            return;
        }
        let answer = implies.ask(cx, transactional_id, producer, asked.clone()).await;
        refuse_unverified(implies, &asked, &answer, staged);
    }
}

/// V-6, V-8.
fn refuse_unverified(
    implies: Implies,
    asked: &TopicPartitions,
    answer: &Result<TopicPartitions, ErrorCode>,
    staged: &mut [Staged<Checked>],
) {
    for (index, outcome) in staged.iter_mut().flatten() {
        let Ok(checked) = outcome else { continue };
        let among = |those: &TopicPartitions| those.get(&checked.name).is_some_and(|those| those.contains(index));
        match answer {
            Err(error) if among(asked) => *outcome = Err(Refusal::code(*error)),
            Ok(missing) if among(missing) => {
                let why = "The partition was not added to the transaction.";
                *outcome = Err(Refusal::because(implies.not_part(), why));
            }
            _ => {}
        }
    }
}

/// Yields the partitions that the coordinator has to be asked about. On all others the log knows of the transaction, or the
/// coordinator was asked and nothing came in between: a marker of the transaction before may have, while it was waited for.
fn begin_verifications(cx: &RequestContext<'_>, adds: bool, staged: &mut [Staged<Checked>]) -> TopicPartitions {
    let now_ms = cx.broker.clock.wall_ms();
    let mut asked = TopicPartitions::new();
    for (index, outcome) in staged.iter_mut().flatten() {
        let Ok(checked) = outcome else { continue };
        let Some(Batched { producer, base_sequence }) = checked.transactional else { continue };
        match checked.log.begin_verification(producer.id, producer.epoch, base_sequence, adds, now_ms) {
            Ok(guard) if guard == checked.verification => {}
            Ok(None) => checked.verification = None,
            Ok(guard) => {
                checked.verification = guard;
                asked.entry(checked.name.clone()).or_default().insert(*index);
            }
            Err(error) => *outcome = Err(refused(&checked.log.clone(), error)),
        }
    }
    asked
}

/// V-2: all transactional batches are of one producer; `None` if none is left.
fn the_producer(staged: &[Staged<Checked>]) -> Option<Result<Producer, fn() -> Refusal>> {
    let ready = staged.iter().flatten().filter_map(|(_, outcome)| outcome.as_ref().ok());
    let mut producers = ready.filter_map(|checked| checked.transactional.map(|batched| batched.producer));
    let first = producers.next()?;
    if producers.all(|producer| producer == first) {
        return Some(Ok(first));
    }
    Some(Err(|| {
        let why = "The transactional records are of more than one producer.";
        Refusal::because(ErrorCode::InvalidProducerIdMapping, why)
    }))
}

/// `refused_too`: also those that something else is wrong with.
fn refuse_all(staged: &mut [Staged<Checked>], refused_too: bool, refusal: &dyn Fn() -> Refusal) {
    for (_, outcome) in staged.iter_mut().flatten() {
        if outcome.is_ok() || refused_too {
            *outcome = Err(refusal());
        }
    }
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
                Ok(Err(error)) => Refusal::because(ErrorCode::from_code(error.code()), &error.to_string()),
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
    /// Where the log begins that refused, -1 if it was not asked.
    log_start_offset: i64,
}

impl Refusal {
    fn code(error: ErrorCode) -> Refusal {
        Refusal { code: error.code(), message: None, records: Vec::new(), log_start_offset: -1 }
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
            log_start_offset: self.log_start_offset,
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

/// U-2, as far as the transaction: what the request itself is refused for.
fn check(
    cx: &RequestContext<'_>,
    partitions: &Partitions<'_>,
    topic: &KStr,
    transactional: Option<Batched>,
    data: PartitionProduceData,
) -> Result<Checked, Refusal> {
    let log = partitions.by_name(topic, data.index).map_err(Refusal::code)?;
    let records = check_request(cx.api_version, data.records)?;
    Ok(Checked { name: topic.clone(), log, records, transactional, verification: None })
}

/// The producer of a batch that belongs to a transaction. A batch that cannot be taken apart is the log's to judge (U-8).
fn of_transaction(records: &Bytes) -> Option<Batched> {
    let header = BatchHeader::parse(records).ok().filter(|header| header.attributes.is_transactional())?;
    let producer = Producer { id: header.producer_id, epoch: header.producer_epoch };
    Some(Batched { producer, base_sequence: header.base_sequence })
}

/// U-2, the rest of it.
fn append(cx: &RequestContext<'_>, acks: i16, checked: Checked) -> Result<Written, Refusal> {
    let Checked { name, log, records, verification, .. } = checked;
    if !(-1..=1).contains(&acks) {
        return Err(Refusal::code(ErrorCode::InvalidRequiredAcks));
    }
    if is_internal(&name) && cx.client_id != ADMIN_CLIENT {
        return Err(Refusal::because(ErrorCode::InvalidTopicException, "only the broker writes to internal topics"));
    }
    let params = AppendParams { verification, ..AppendParams::client(cx.broker.clock.wall_ms()) };
    match log.append(&params, &records) {
        Ok(info) => Ok(Written { log, info }),
        Err(error) => Err(refused(&log, error)),
    }
}

/// U-3: what is wrong whatever the partition. Yields the one batch, without what comes after it and is none.
fn check_request(version: i16, records: Option<Bytes>) -> Result<Bytes, Refusal> {
    let invalid = |why| Refusal::because(ErrorCode::InvalidRecord, why);
    let records = records.unwrap_or_default();
    let size = size_of_next(&records)?
        .ok_or_else(|| invalid("the request has no complete record batch for this partition"))?;
    if records[field::MAGIC] as i8 != MAGIC {
        return Err(invalid("record batches of an older format are not accepted"));
    }
    let zstd = |header: BatchHeader| header.attributes.compression() == Ok(Compression::Zstd);
    if version < ZSTD_FROM && BatchHeader::parse(&records).is_ok_and(zstd) {
        return Err(Refusal::because(
            ErrorCode::UnsupportedCompressionType,
            "zstd needs version 7 of produce requests or later",
        ));
    }
    if size_of_next(&records[size..])?.is_some() {
        return Err(invalid("a produce request carries exactly one record batch per partition"));
    }
    Ok(records.slice(..size))
}

/// Of the batch that `buf` begins with, if all of it is there. What is inside is the log's to judge (U-8).
fn size_of_next(buf: &[u8]) -> Result<Option<usize>, Refusal> {
    let damaged = || Refusal::code(ErrorCode::CorruptMessage);
    let size = match peek_size(buf) {
        Ok(size) => size,
        Err(BatchError::Incomplete { .. }) => return Ok(None),
        Err(_) => return Err(damaged()),
    };
    // Every format has its magic at the same place.
    match buf.get(field::MAGIC) {
        Some(magic) if !(0..=MAGIC).contains(&(*magic as i8)) => Err(damaged()),
        Some(_) if buf.len() >= size => Ok(Some(size)),
        _ => Ok(None),
    }
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
    // Kafka says where the log begins with most of what its log objects to.
    let log_start_offset = match ErrorCode::from_code(error.code()) {
        ErrorCode::CorruptMessage
        | ErrorCode::MessageTooLarge
        | ErrorCode::RecordListTooLarge
        | ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotLeaderOrFollower
        | ErrorCode::KafkaStorageError => -1,
        _ => log.offsets().map_or(-1, |offsets| offsets.log_start),
    };
    Refusal { code: error.code(), message, records, log_start_offset }
}
