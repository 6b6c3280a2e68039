//! WriteTxnMarkers (27): ends transactions by hand, as `kafka-transactions abort` does (D-4).

use coordinator::{EndMarker, Producer};
use wire::messages::write_txn_markers_request::{WritableTxnMarker, WriteTxnMarkersRequest};
use wire::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult, WriteTxnMarkersResponse,
};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

/// Transaction version from which on markers raise the epoch. Absent before version 2 of the request.
const RAISES_EPOCH_FROM: i8 = 2;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: WriteTxnMarkersRequest,
) -> Result<Handled<WriteTxnMarkersResponse>, HandlerError> {
    let impossible = request.markers.iter().any(|marker| marker.producer_epoch < 0);
    let mut markers = Vec::with_capacity(request.markers.len());
    for marker in request.markers {
        let partitions: Vec<(KStr, i32)> = marker
            .topics
            .iter()
            .flat_map(|topic| topic.partition_indexes.iter().map(|partition| (topic.name.clone(), *partition)))
            .collect();
        let results = match impossible {
            true => vec![ErrorCode::UnknownServerError; partitions.len()],
            false => cx.broker.transactions.markers().write(end_marker(&marker), &partitions).await,
        };
        markers.push(answer(marker, &results));
    }
    Ok(WriteTxnMarkersResponse { markers }.into())
}

fn end_marker(marker: &WritableTxnMarker) -> EndMarker {
    EndMarker {
        producer: Producer { id: marker.producer_id, epoch: marker.producer_epoch },
        commit: marker.transaction_result,
        coordinator_epoch: marker.coordinator_epoch,
        raises_epoch: marker.transaction_version >= RAISES_EPOCH_FROM,
    }
}

/// `results` are in the order of the request.
fn answer(marker: WritableTxnMarker, results: &[ErrorCode]) -> WritableTxnMarkerResult {
    let mut results = results.iter().copied();
    let mut partition = |partition_index: i32| WritableTxnMarkerPartitionResult {
        partition_index,
        error_code: results.next().unwrap_or(ErrorCode::UnknownServerError).code(),
    };
    let topics = marker.topics.into_iter().map(|topic| WritableTxnMarkerTopicResult {
        partitions: topic.partition_indexes.into_iter().map(&mut partition).collect(),
        name: topic.name,
    });
    WritableTxnMarkerResult { topics: topics.collect(), producer_id: marker.producer_id }
}
