//! One file per API key, and one table of them all.
//!
//! The table is the only place that says what this broker can do: dispatch, the answer to ApiVersions, the versions that
//! are accepted and the frame limits follow from it (N-3, A-1). What is not in the table is not advertised, and a
//! request for it closes the connection.
//!
//! To add an API: write `pub(crate) async fn handle(cx: &RequestContext<'_>, request: XRequest)` in its file, and one
//! line in the table. Handlers decide about one request; framing, order of answers and limits are the connection's.

mod admin;
mod alter;
mod context;
mod group;
mod table;
mod verification;

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
mod k24_add_partitions_to_txn;
mod k25_add_offsets_to_txn;
mod k26_end_txn;
mod k27_write_txn_markers;
mod k28_txn_offset_commit;
mod k29_describe_acls;
mod k30_create_acls;
mod k31_delete_acls;
mod k32_describe_configs;
mod k33_alter_configs;
mod k34_alter_replica_log_dirs;
mod k35_describe_log_dirs;
mod k37_create_partitions;
mod k42_delete_groups;
mod k43_elect_leaders;
mod k44_incremental_alter_configs;
mod k45_alter_partition_reassignments;
mod k46_list_partition_reassignments;
mod k47_offset_delete;
mod k48_describe_client_quotas;
mod k49_alter_client_quotas;
mod k50_describe_user_scram_credentials;
mod k55_describe_quorum;
mod k57_update_features;
mod k60_describe_cluster;
mod k61_describe_producers;
mod k65_describe_transactions;
mod k66_list_transactions;
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
    3 => k03_metadata, metadata_request::MetadataRequest, 0..=13, Configured;
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
    19 => k19_create_topics, create_topics_request::CreateTopicsRequest, 2..=7, Configured;
    20 => k20_delete_topics, delete_topics_request::DeleteTopicsRequest, 1..=6, Configured;
    21 => k21_delete_records, delete_records_request::DeleteRecordsRequest, 0..=2, Configured;
    22 => k22_init_producer_id, init_producer_id_request::InitProducerIdRequest, 0..=5, Small;
    23 => k23_offset_for_leader_epoch, offset_for_leader_epoch_request::OffsetForLeaderEpochRequest, 2..=4, Configured;
    24 => k24_add_partitions_to_txn, add_partitions_to_txn_request::AddPartitionsToTxnRequest, 0..=5, Configured;
    25 => k25_add_offsets_to_txn, add_offsets_to_txn_request::AddOffsetsToTxnRequest, 0..=4, Small;
    26 => k26_end_txn, end_txn_request::EndTxnRequest, 0..=5, Small;
    27 => k27_write_txn_markers, write_txn_markers_request::WriteTxnMarkersRequest, 1..=2, Configured;
    28 => k28_txn_offset_commit, txn_offset_commit_request::TxnOffsetCommitRequest, 0..=6, Group;
    29 => k29_describe_acls, describe_acls_request::DescribeAclsRequest, 1..=3, Small;
    30 => k30_create_acls, create_acls_request::CreateAclsRequest, 1..=3, Configured;
    31 => k31_delete_acls, delete_acls_request::DeleteAclsRequest, 1..=3, Configured;
    32 => k32_describe_configs, describe_configs_request::DescribeConfigsRequest, 1..=4, Configured;
    33 => k33_alter_configs, alter_configs_request::AlterConfigsRequest, 0..=2, Configured;
    34 => k34_alter_replica_log_dirs, alter_replica_log_dirs_request::AlterReplicaLogDirsRequest, 1..=2, Configured;
    35 => k35_describe_log_dirs, describe_log_dirs_request::DescribeLogDirsRequest, 1..=5, Configured;
    37 => k37_create_partitions, create_partitions_request::CreatePartitionsRequest, 0..=3, Configured;
    42 => k42_delete_groups, delete_groups_request::DeleteGroupsRequest, 0..=3, Group;
    43 => k43_elect_leaders, elect_leaders_request::ElectLeadersRequest, 0..=2, Configured;
    44 => k44_incremental_alter_configs, incremental_alter_configs_request::IncrementalAlterConfigsRequest, 0..=1, Configured;
    45 => k45_alter_partition_reassignments, alter_partition_reassignments_request::AlterPartitionReassignmentsRequest, 0..=1, Configured;
    46 => k46_list_partition_reassignments, list_partition_reassignments_request::ListPartitionReassignmentsRequest, 0..=0, Configured;
    47 => k47_offset_delete, offset_delete_request::OffsetDeleteRequest, 0..=0, Group;
    48 => k48_describe_client_quotas, describe_client_quotas_request::DescribeClientQuotasRequest, 0..=1, Small;
    49 => k49_alter_client_quotas, alter_client_quotas_request::AlterClientQuotasRequest, 0..=1, Configured;
    50 => k50_describe_user_scram_credentials, describe_user_scram_credentials_request::DescribeUserScramCredentialsRequest, 0..=0, Small;
    55 => k55_describe_quorum, describe_quorum_request::DescribeQuorumRequest, 0..=2, Small;
    57 => k57_update_features, update_features_request::UpdateFeaturesRequest, 0..=2, Small;
    60 => k60_describe_cluster, describe_cluster_request::DescribeClusterRequest, 0..=2, Small;
    61 => k61_describe_producers, describe_producers_request::DescribeProducersRequest, 0..=0, Configured;
    65 => k65_describe_transactions, describe_transactions_request::DescribeTransactionsRequest, 0..=0, Group;
    66 => k66_list_transactions, list_transactions_request::ListTransactionsRequest, 0..=2, Group;
    68 => k68_consumer_group_heartbeat, consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest, 0..=1, Group;
    69 => k69_consumer_group_describe, consumer_group_describe_request::ConsumerGroupDescribeRequest, 0..=1, Group;
    71 => k71_get_telemetry_subscriptions, get_telemetry_subscriptions_request::GetTelemetrySubscriptionsRequest, 0..=0, Small, hidden;
    72 => k72_push_telemetry, push_telemetry_request::PushTelemetryRequest, 0..=0, Group, hidden;
    74 => k74_list_config_resources, list_config_resources_request::ListConfigResourcesRequest, 0..=1, Small;
    75 => k75_describe_topic_partitions, describe_topic_partitions_request::DescribeTopicPartitionsRequest, 0..=0, Configured;
    88 => k88_streams_group_heartbeat, streams_group_heartbeat_request::StreamsGroupHeartbeatRequest, 0..=1, Group;
    89 => k89_streams_group_describe, streams_group_describe_request::StreamsGroupDescribeRequest, 0..=1, Group;
    93 => k93_streams_group_topology_description_update, streams_group_topology_description_update_request::StreamsGroupTopologyDescriptionUpdateRequest, 0..=0, Group;
}
