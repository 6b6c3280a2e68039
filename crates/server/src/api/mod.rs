//! One file per API key, and one table of them all.
//!
//! The table is the only place that says what this broker can do: dispatch, the answer to ApiVersions, the versions that
//! are accepted and the frame limits follow from it (N-3, A-1). What is not in the table is not advertised, and a
//! request for it closes the connection.
//!
//! To add an API: write `pub(crate) async fn handle(cx: &RequestContext<'_>, request: XRequest)` in its file, and one
//! line in the table. Handlers decide about one request; framing, order of answers and limits are the connection's.

mod context;
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

// Number, file, request, versions that are handled, and what limits the frame. `hidden`: handled, but not advertised.
// `also advertised from N`: older versions that are shown to old clients only, so that they recognise the broker.
apis! {
    18 => k18_api_versions, api_versions_request::ApiVersionsRequest, 0..=5, Small;
}
