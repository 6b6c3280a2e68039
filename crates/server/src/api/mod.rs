//! One file per API key, and one table of them all.
//!
//! The table is the only place that says what this broker can do: dispatch, the answer to ApiVersions, the versions that
//! are accepted and the frame limits follow from it (N-3, A-1). What is not in the table is not advertised, and a
//! request for it closes the connection.
//!
//! To add an API: write `pub(crate) async fn handle(cx: &RequestContext<'_>, request: XRequest)` in its file, and one
//! line in the table. Handlers decide about one request; framing, order of answers and limits are the connection's.

mod context;
mod group;
mod table;

mod k00_produce;
mod k01_fetch;
mod k02_list_offsets;
mod k03_metadata;
mod k08_offset_commit;
mod k09_offset_fetch;
mod k10_find_coordinator;
mod k11_join_group;
mod k12_heartbeat;
mod k13_leave_group;
mod k14_sync_group;
mod k15_describe_groups;
mod k16_list_groups;
mod k17_sasl_handshake;
mod k18_api_versions;
mod k19_create_topics;
mod k20_delete_topics;
mod k21_delete_records;
mod k22_init_producer_id;
mod k23_offset_for_leader_epoch;
mod k32_describe_configs;
mod k33_alter_configs;
mod k35_describe_log_dirs;
mod k37_create_partitions;
mod k42_delete_groups;
mod k44_incremental_alter_configs;
mod k47_offset_delete;
mod k57_update_features;
mod k60_describe_cluster;
mod k61_describe_producers;
mod k68_consumer_group_heartbeat;
mod k69_consumer_group_describe;
mod k71_get_telemetry_subscriptions;
mod k72_push_telemetry;
mod k74_list_config_resources;
mod k75_describe_topic_partitions;
mod k88_streams_group_heartbeat;
mod k89_streams_group_describe;
mod k93_streams_group_topology_description_update;

pub(crate) use context::{Answer, Handled, HandlerError, RequestContext};
use table::apis;
pub(crate) use table::{Api, FrameLimit, frame};

// Number, file, request, versions that are handled, and what limits the frame. `hidden`: handled, but not advertised.
// `[advertised from N]`: older versions that are shown to old clients only, so that they recognise the broker.
apis! {
    0 => k00_produce, produce_request::ProduceRequest, 3..=13, Configured, [advertised from 0];
    1 => k01_fetch, fetch_request::FetchRequest, 4..=18, Configured;
    2 => k02_list_offsets, list_offsets_request::ListOffsetsRequest, 1..=11, Configured;
    8 => k08_offset_commit, offset_commit_request::OffsetCommitRequest, 2..=10, Group;
    9 => k09_offset_fetch, offset_fetch_request::OffsetFetchRequest, 1..=10, Group;
    10 => k10_find_coordinator, find_coordinator_request::FindCoordinatorRequest, 0..=6, Group;
    11 => k11_join_group, join_group_request::JoinGroupRequest, 0..=9, Group;
    12 => k12_heartbeat, heartbeat_request::HeartbeatRequest, 0..=4, Group;
    13 => k13_leave_group, leave_group_request::LeaveGroupRequest, 0..=5, Group;
    14 => k14_sync_group, sync_group_request::SyncGroupRequest, 0..=5, Group;
    15 => k15_describe_groups, describe_groups_request::DescribeGroupsRequest, 0..=6, Group;
    16 => k16_list_groups, list_groups_request::ListGroupsRequest, 0..=5, Group;
    17 => k17_sasl_handshake, sasl_handshake_request::SaslHandshakeRequest, 0..=1, Small;
    18 => k18_api_versions, api_versions_request::ApiVersionsRequest, 0..=5, Small;
    21 => k21_delete_records, delete_records_request::DeleteRecordsRequest, 0..=2, Configured;
    22 => k22_init_producer_id, init_producer_id_request::InitProducerIdRequest, 0..=5, Small;
    23 => k23_offset_for_leader_epoch, offset_for_leader_epoch_request::OffsetForLeaderEpochRequest, 2..=4, Configured;
    42 => k42_delete_groups, delete_groups_request::DeleteGroupsRequest, 0..=3, Group;
    47 => k47_offset_delete, offset_delete_request::OffsetDeleteRequest, 0..=0, Group;
    61 => k61_describe_producers, describe_producers_request::DescribeProducersRequest, 0..=0, Configured;
    68 => k68_consumer_group_heartbeat, consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest, 0..=1, Group;
    69 => k69_consumer_group_describe, consumer_group_describe_request::ConsumerGroupDescribeRequest, 0..=1, Group;
    71 => k71_get_telemetry_subscriptions, get_telemetry_subscriptions_request::GetTelemetrySubscriptionsRequest, 0..=0, Small, hidden;
    72 => k72_push_telemetry, push_telemetry_request::PushTelemetryRequest, 0..=0, Group, hidden;
    88 => k88_streams_group_heartbeat, streams_group_heartbeat_request::StreamsGroupHeartbeatRequest, 0..=1, Group;
    89 => k89_streams_group_describe, streams_group_describe_request::StreamsGroupDescribeRequest, 0..=1, Group;
    93 => k93_streams_group_topology_description_update, streams_group_topology_description_update_request::StreamsGroupTopologyDescriptionUpdateRequest, 0..=0, Group;
}
