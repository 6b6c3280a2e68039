//! DescribeProducers (61): the producers that a partition knows (D-3).

use wire::ErrorCode;
use wire::messages::describe_producers_request::DescribeProducersRequest;
use wire::messages::describe_producers_response::{
    DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};

use super::{Handled, HandlerError, RequestContext};
use crate::data::Partitions;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeProducersRequest,
) -> Result<Handled<DescribeProducersResponse>, HandlerError> {
    let partitions = Partitions::now(cx.broker);
    let topics = request.topics.into_iter().map(|topic| {
        let answers = topic.partition_indexes.iter().map(|&index| {
            let (error_code, active_producers) = match producers(&partitions, &topic.name, index) {
                Ok(producers) => (0, producers),
                Err(error) => (error, Vec::new()),
            };
            PartitionResponse { partition_index: index, error_code, active_producers, ..Default::default() }
        });
        TopicResponse { partitions: answers.collect(), name: topic.name }
    });
    Ok(DescribeProducersResponse { topics: topics.collect(), ..Default::default() }.into())
}

fn producers(partitions: &Partitions<'_>, topic: &str, partition: i32) -> Result<Vec<ProducerState>, i16> {
    let log = partitions.by_name(topic, partition).map_err(ErrorCode::code)?;
    let known = log.producers().map_err(|error| error.code())?;
    let state = |producer: log::ProducerInfo| ProducerState {
        producer_id: producer.producer_id,
        producer_epoch: producer.producer_epoch.into(),
        last_sequence: producer.last_sequence,
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        current_txn_start_offset: producer.txn_start_offset.unwrap_or(-1),
    };
    Ok(known.into_iter().map(state).collect())
}
