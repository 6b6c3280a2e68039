//! The rules of the transaction coordinator, on a cell over a log in memory, in virtual time.

mod add_partitions;
mod bench;
mod end_txn;
mod history;
mod init_producer_id;
mod introspection;
mod records;
mod recovery;
mod timeouts;

use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::end_txn_response::EndTxnResponse;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::{ErrorCode, KStr};

use super::state::{Status, TopicPartitions};
use super::{Command, Reply};
use crate::state_log::Producer;
use bench::Bench;

/// The timeout that tests ask for unless they are about timeouts.
const TIMEOUT_MS: i32 = 60_000;
const NONE: i16 = ErrorCode::None.code();
const FENCED: i16 = ErrorCode::ProducerFenced.code();
const INVALID_EPOCH: i16 = ErrorCode::InvalidProducerEpoch.code();
const INVALID_STATE: i16 = ErrorCode::InvalidTxnState.code();
const INVALID_MAPPING: i16 = ErrorCode::InvalidProducerIdMapping.code();
const CONCURRENT: i16 = ErrorCode::ConcurrentTransactions.code();
const INVALID_REQUEST: i16 = ErrorCode::InvalidRequest.code();

fn init_request(id: &str, given: Option<(i64, i16)>) -> InitProducerIdRequest {
    let (producer_id, producer_epoch) = given.unwrap_or((-1, -1));
    InitProducerIdRequest {
        transactional_id: Some(KStr::copy(id)),
        transaction_timeout_ms: TIMEOUT_MS,
        producer_id,
        producer_epoch,
        ..Default::default()
    }
}

fn init_command(api_version: i16, id: &str, given: Option<(i64, i16)>) -> Command {
    Command::InitProducerId { api_version, request: init_request(id, given) }
}

/// Topic `t`, with these partitions.
fn partitions(numbers: &[i32]) -> TopicPartitions {
    [(KStr::from("t"), numbers.iter().copied().collect())].into()
}

fn add_command(id: &str, (producer_id, epoch): (i64, i16), numbers: &[i32], client_version: i16) -> Command {
    Command::AddPartitions {
        transactional_id: KStr::copy(id),
        producer: Producer { id: producer_id, epoch },
        partitions: partitions(numbers),
        client_version,
    }
}

fn end_command(api_version: i16, id: &str, (producer_id, producer_epoch): (i64, i16), committed: bool) -> Command {
    let transactional_id = KStr::copy(id);
    Command::EndTxn { api_version, request: EndTxnRequest { transactional_id, producer_id, producer_epoch, committed } }
}

impl Bench {
    /// InitProducerId v5: error, producer id and epoch.
    #[track_caller]
    fn init(&mut self, id: &str, given: Option<(i64, i16)>) -> (i16, i64, i16) {
        match self.ask(init_command(5, id, given)) {
            Reply::InitProducerId(r) => (r.error_code, r.producer_id, r.producer_epoch),
            other => panic!("not the reply to InitProducerId: {other:?}"),
        }
    }

    /// A new producer under `id`.
    #[track_caller]
    fn producer(&mut self, id: &str) -> (i64, i16) {
        let (error, producer_id, epoch) = self.init(id, None);
        assert_eq!(error, NONE);
        (producer_id, epoch)
    }

    #[track_caller]
    fn add(&mut self, id: &str, producer: (i64, i16), numbers: &[i32], client_version: i16) -> i16 {
        match self.ask(add_command(id, producer, numbers, client_version)) {
            Reply::Added(error) => error.code(),
            other => panic!("not the reply to AddPartitions: {other:?}"),
        }
    }

    /// The partitions that are missing.
    #[track_caller]
    fn verify(&mut self, id: &str, (producer_id, epoch): (i64, i16), numbers: &[i32]) -> Result<Vec<i32>, i16> {
        let command = Command::VerifyPartitions {
            transactional_id: KStr::copy(id),
            producer: Producer { id: producer_id, epoch },
            partitions: partitions(numbers),
        };
        match self.ask(command) {
            Reply::Verified(Ok(missing)) => Ok(missing.get("t").into_iter().flatten().copied().collect()),
            Reply::Verified(Err(error)) => Err(error.code()),
            other => panic!("not the reply to VerifyPartitions: {other:?}"),
        }
    }

    #[track_caller]
    fn end(&mut self, api_version: i16, id: &str, producer: (i64, i16), committed: bool) -> (i16, i64, i16) {
        end_result(self.ask(end_command(api_version, id, producer, committed)))
    }

    #[track_caller]
    fn status(&self, id: &str) -> Status {
        self.shard().state().get(id).expect("the id is known").status
    }
}

#[track_caller]
fn end_result(reply: Reply) -> (i16, i64, i16) {
    match reply {
        Reply::EndTxn(EndTxnResponse { error_code, producer_id, producer_epoch, .. }) => {
            (error_code, producer_id, producer_epoch)
        }
        other => panic!("not the reply to EndTxn: {other:?}"),
    }
}
