//! OffsetForLeaderEpoch (23): where an epoch ends (L-5).

use wire::ErrorCode;
use wire::messages::offset_for_leader_epoch_request::{OffsetForLeaderEpochRequest, OffsetForLeaderPartition};
use wire::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};

use super::{Handled, HandlerError, RequestContext};
use crate::data::{Partitions, check_leader_epoch};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: OffsetForLeaderEpochRequest,
) -> Result<Handled<OffsetForLeaderEpochResponse>, HandlerError> {
    let partitions = Partitions::now(cx.broker);
    let topics = request.topics.into_iter().map(|topic| {
        let ends = topic.partitions.iter().map(|wanted| {
            let (error_code, leader_epoch, end_offset) = match end_of(&partitions, &topic.topic, wanted) {
                Ok(Some((epoch, end))) => (0, epoch, end),
                Ok(None) => (0, -1, -1),
                Err(error) => (error, -1, -1),
            };
            EpochEndOffset { error_code, partition: wanted.partition, leader_epoch, end_offset }
        });
        OffsetForLeaderTopicResult { partitions: ends.collect(), topic: topic.topic }
    });
    Ok(OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }.into())
}

fn end_of(
    partitions: &Partitions<'_>,
    topic: &str,
    wanted: &OffsetForLeaderPartition,
) -> Result<Option<(i32, i64)>, i16> {
    let log = partitions.by_name(topic, wanted.partition).map_err(ErrorCode::code)?;
    check_leader_epoch(&log, wanted.current_leader_epoch).map_err(ErrorCode::code)?;
    if wanted.leader_epoch < 0 {
        return Ok(None);
    }
    log.end_offset_for_epoch(wanted.leader_epoch).map_err(|error| error.code())
}
