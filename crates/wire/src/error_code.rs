//! Kafka's error codes.

use std::fmt;

use crate::error::UnknownCode;

macro_rules! error_codes {
    ($($(#[$attr:ident])? $variant:ident $name:literal $code:literal $retriable:ident $message:literal)*) => {
        /// The error codes of Kafka 4.4.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(#[doc = $message] $(#[$attr])? $variant = $code,)*
        }

        impl ErrorCode {
            /// All of them, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Kafka's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What it means, in a few words.
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$variant => $message,)*
                }
            }

            /// Whether Kafka's clients try the same request again.
            pub const fn is_retriable(self) -> bool {
                match self {
                    $(Self::$variant => error_codes!(@$retriable),)*
                }
            }
        }

        impl TryFrom<i16> for ErrorCode {
            type Error = UnknownCode;

            fn try_from(code: i16) -> Result<Self, UnknownCode> {
                Ok(match code {
                    $($code => Self::$variant,)*
                    _ => return Err(UnknownCode { what: "error", code }),
                })
            }
        }
    };
    (@retriable) => { true };
    (@fatal) => { false };
}

impl ErrorCode {
    /// The number on the wire.
    #[inline]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Whether this is [`ErrorCode::None`].
    #[inline]
    pub const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }

    /// The error of a code; what Kafka 4.4 does not know becomes [`ErrorCode::UnknownServerError`].
    pub fn from_code(code: i16) -> Self {
        Self::try_from(code).unwrap_or(Self::UnknownServerError)
    }
}

impl From<ErrorCode> for i16 {
    fn from(error: ErrorCode) -> Self {
        error.code()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.message())
    }
}

error_codes! {
    UnknownServerError "UNKNOWN_SERVER_ERROR" -1 fatal "unexpected error in the broker"
    #[default] None "NONE" 0 fatal "no error"
    OffsetOutOfRange "OFFSET_OUT_OF_RANGE" 1 fatal "offset outside the range of the log"
    CorruptMessage "CORRUPT_MESSAGE" 2 retriable "record batch is damaged or malformed"
    UnknownTopicOrPartition "UNKNOWN_TOPIC_OR_PARTITION" 3 retriable "no such topic or partition here"
    InvalidFetchSize "INVALID_FETCH_SIZE" 4 fatal "invalid fetch size"
    LeaderNotAvailable "LEADER_NOT_AVAILABLE" 5 retriable "the partition has no leader at the moment"
    NotLeaderOrFollower "NOT_LEADER_OR_FOLLOWER" 6 retriable "this broker does not lead the partition"
    RequestTimedOut "REQUEST_TIMED_OUT" 7 retriable "the request timed out"
    BrokerNotAvailable "BROKER_NOT_AVAILABLE" 8 fatal "broker not available"
    ReplicaNotAvailable "REPLICA_NOT_AVAILABLE" 9 retriable "replica not available"
    MessageTooLarge "MESSAGE_TOO_LARGE" 10 fatal "record batch larger than the limit"
    StaleControllerEpoch "STALE_CONTROLLER_EPOCH" 11 fatal "stale controller epoch"
    OffsetMetadataTooLarge "OFFSET_METADATA_TOO_LARGE" 12 fatal "metadata of the offset is too long"
    NetworkException "NETWORK_EXCEPTION" 13 retriable "disconnected before a response came"
    CoordinatorLoadInProgress "COORDINATOR_LOAD_IN_PROGRESS" 14 retriable "the coordinator is still loading"
    CoordinatorNotAvailable "COORDINATOR_NOT_AVAILABLE" 15 retriable "no coordinator available"
    NotCoordinator "NOT_COORDINATOR" 16 retriable "this broker is not the coordinator"
    InvalidTopicException "INVALID_TOPIC_EXCEPTION" 17 fatal "invalid topic name or an internal topic"
    RecordListTooLarge "RECORD_LIST_TOO_LARGE" 18 fatal "record batch larger than a segment"
    NotEnoughReplicas "NOT_ENOUGH_REPLICAS" 19 retriable "too few in-sync replicas"
    NotEnoughReplicasAfterAppend "NOT_ENOUGH_REPLICAS_AFTER_APPEND" 20 retriable "written, but to too few in-sync replicas"
    InvalidRequiredAcks "INVALID_REQUIRED_ACKS" 21 fatal "invalid value of acks"
    IllegalGeneration "ILLEGAL_GENERATION" 22 fatal "the generation is not the group's current one"
    InconsistentGroupProtocol "INCONSISTENT_GROUP_PROTOCOL" 23 fatal "protocols do not match those of the group"
    InvalidGroupId "INVALID_GROUP_ID" 24 fatal "invalid group id"
    UnknownMemberId "UNKNOWN_MEMBER_ID" 25 fatal "the coordinator does not know this member"
    InvalidSessionTimeout "INVALID_SESSION_TIMEOUT" 26 fatal "session timeout outside the broker's limits"
    RebalanceInProgress "REBALANCE_IN_PROGRESS" 27 fatal "the group is rebalancing, join again"
    InvalidCommitOffsetSize "INVALID_COMMIT_OFFSET_SIZE" 28 fatal "offset commit too large"
    TopicAuthorizationFailed "TOPIC_AUTHORIZATION_FAILED" 29 fatal "not authorized for the topic"
    GroupAuthorizationFailed "GROUP_AUTHORIZATION_FAILED" 30 fatal "not authorized for the group"
    ClusterAuthorizationFailed "CLUSTER_AUTHORIZATION_FAILED" 31 fatal "not authorized for the cluster"
    InvalidTimestamp "INVALID_TIMESTAMP" 32 fatal "timestamp of a record outside the limits"
    UnsupportedSaslMechanism "UNSUPPORTED_SASL_MECHANISM" 33 fatal "SASL mechanism not supported"
    IllegalSaslState "ILLEGAL_SASL_STATE" 34 fatal "request does not fit the state of authentication"
    UnsupportedVersion "UNSUPPORTED_VERSION" 35 fatal "version of the request not supported"
    TopicAlreadyExists "TOPIC_ALREADY_EXISTS" 36 fatal "topic exists already"
    InvalidPartitions "INVALID_PARTITIONS" 37 fatal "invalid number of partitions"
    InvalidReplicationFactor "INVALID_REPLICATION_FACTOR" 38 fatal "invalid replication factor"
    InvalidReplicaAssignment "INVALID_REPLICA_ASSIGNMENT" 39 fatal "invalid replica assignment"
    InvalidConfig "INVALID_CONFIG" 40 fatal "invalid configuration"
    NotController "NOT_CONTROLLER" 41 retriable "this node is not the controller"
    InvalidRequest "INVALID_REQUEST" 42 fatal "malformed or contradictory request"
    UnsupportedForMessageFormat "UNSUPPORTED_FOR_MESSAGE_FORMAT" 43 fatal "not supported by the message format"
    PolicyViolation "POLICY_VIOLATION" 44 fatal "refused by a policy"
    OutOfOrderSequenceNumber "OUT_OF_ORDER_SEQUENCE_NUMBER" 45 fatal "sequence number out of order"
    DuplicateSequenceNumber "DUPLICATE_SEQUENCE_NUMBER" 46 fatal "sequence number seen before"
    InvalidProducerEpoch "INVALID_PRODUCER_EPOCH" 47 fatal "epoch of the producer is too old"
    InvalidTxnState "INVALID_TXN_STATE" 48 fatal "operation does not fit the state of the transaction"
    InvalidProducerIdMapping "INVALID_PRODUCER_ID_MAPPING" 49 fatal "producer id does not belong to the transactional id"
    InvalidTransactionTimeout "INVALID_TRANSACTION_TIMEOUT" 50 fatal "transaction timeout above the broker's limit"
    ConcurrentTransactions "CONCURRENT_TRANSACTIONS" 51 retriable "another operation on the transaction is in progress"
    TransactionCoordinatorFenced "TRANSACTION_COORDINATOR_FENCED" 52 fatal "the transaction coordinator was replaced by another"
    TransactionalIdAuthorizationFailed "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" 53 fatal "not authorized for the transactional id"
    SecurityDisabled "SECURITY_DISABLED" 54 fatal "security features are disabled"
    OperationNotAttempted "OPERATION_NOT_ATTEMPTED" 55 fatal "not attempted because of another part of the request"
    KafkaStorageError "KAFKA_STORAGE_ERROR" 56 retriable "storage failed"
    LogDirNotFound "LOG_DIR_NOT_FOUND" 57 fatal "no such log directory"
    SaslAuthenticationFailed "SASL_AUTHENTICATION_FAILED" 58 fatal "authentication failed"
    UnknownProducerId "UNKNOWN_PRODUCER_ID" 59 fatal "producer id not known here"
    ReassignmentInProgress "REASSIGNMENT_IN_PROGRESS" 60 fatal "a reassignment is in progress"
    DelegationTokenAuthDisabled "DELEGATION_TOKEN_AUTH_DISABLED" 61 fatal "delegation tokens are disabled"
    DelegationTokenNotFound "DELEGATION_TOKEN_NOT_FOUND" 62 fatal "no such delegation token"
    DelegationTokenOwnerMismatch "DELEGATION_TOKEN_OWNER_MISMATCH" 63 fatal "delegation token has another owner"
    DelegationTokenRequestNotAllowed "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" 64 fatal "delegation token request not allowed on this connection"
    DelegationTokenAuthorizationFailed "DELEGATION_TOKEN_AUTHORIZATION_FAILED" 65 fatal "not authorized for the delegation token"
    DelegationTokenExpired "DELEGATION_TOKEN_EXPIRED" 66 fatal "delegation token expired"
    InvalidPrincipalType "INVALID_PRINCIPAL_TYPE" 67 fatal "type of principal not supported"
    NonEmptyGroup "NON_EMPTY_GROUP" 68 fatal "the group is not empty"
    GroupIdNotFound "GROUP_ID_NOT_FOUND" 69 fatal "no such group"
    FetchSessionIdNotFound "FETCH_SESSION_ID_NOT_FOUND" 70 retriable "no such fetch session"
    InvalidFetchSessionEpoch "INVALID_FETCH_SESSION_EPOCH" 71 retriable "invalid epoch of the fetch session"
    ListenerNotFound "LISTENER_NOT_FOUND" 72 retriable "the leader has no such listener"
    TopicDeletionDisabled "TOPIC_DELETION_DISABLED" 73 fatal "deletion of topics is disabled"
    FencedLeaderEpoch "FENCED_LEADER_EPOCH" 74 retriable "leader epoch of the request is too old"
    UnknownLeaderEpoch "UNKNOWN_LEADER_EPOCH" 75 retriable "leader epoch of the request is not known yet"
    UnsupportedCompressionType "UNSUPPORTED_COMPRESSION_TYPE" 76 fatal "compression type not supported"
    StaleBrokerEpoch "STALE_BROKER_EPOCH" 77 fatal "stale broker epoch"
    OffsetNotAvailable "OFFSET_NOT_AVAILABLE" 78 retriable "offset not available until the leader has caught up"
    MemberIdRequired "MEMBER_ID_REQUIRED" 79 fatal "join again with the member id from this response"
    PreferredLeaderNotAvailable "PREFERRED_LEADER_NOT_AVAILABLE" 80 retriable "preferred leader not available"
    GroupMaxSizeReached "GROUP_MAX_SIZE_REACHED" 81 fatal "the group is full"
    FencedInstanceId "FENCED_INSTANCE_ID" 82 fatal "another member has taken this instance id"
    EligibleLeadersNotAvailable "ELIGIBLE_LEADERS_NOT_AVAILABLE" 83 retriable "no eligible leader available"
    ElectionNotNeeded "ELECTION_NOT_NEEDED" 84 retriable "no election needed"
    NoReassignmentInProgress "NO_REASSIGNMENT_IN_PROGRESS" 85 fatal "no reassignment in progress"
    GroupSubscribedToTopic "GROUP_SUBSCRIBED_TO_TOPIC" 86 fatal "the group is subscribed to the topic"
    InvalidRecord "INVALID_RECORD" 87 fatal "a record failed validation"
    UnstableOffsetCommit "UNSTABLE_OFFSET_COMMIT" 88 retriable "offsets of an open transaction are pending"
    ThrottlingQuotaExceeded "THROTTLING_QUOTA_EXCEEDED" 89 retriable "quota exceeded"
    ProducerFenced "PRODUCER_FENCED" 90 fatal "a newer producer has this transactional id"
    ResourceNotFound "RESOURCE_NOT_FOUND" 91 fatal "no such resource"
    DuplicateResource "DUPLICATE_RESOURCE" 92 fatal "resource named twice"
    UnacceptableCredential "UNACCEPTABLE_CREDENTIAL" 93 fatal "credential not acceptable"
    InconsistentVoterSet "INCONSISTENT_VOTER_SET" 94 fatal "not one of the expected voters"
    InvalidUpdateVersion "INVALID_UPDATE_VERSION" 95 fatal "invalid version of the update"
    FeatureUpdateFailed "FEATURE_UPDATE_FAILED" 96 fatal "update of features failed"
    PrincipalDeserializationFailure "PRINCIPAL_DESERIALIZATION_FAILURE" 97 fatal "principal of a forwarded request cannot be read"
    SnapshotNotFound "SNAPSHOT_NOT_FOUND" 98 fatal "no such snapshot"
    PositionOutOfRange "POSITION_OUT_OF_RANGE" 99 fatal "position outside the snapshot"
    UnknownTopicId "UNKNOWN_TOPIC_ID" 100 retriable "no topic with this id here"
    DuplicateBrokerRegistration "DUPLICATE_BROKER_REGISTRATION" 101 fatal "broker id is taken"
    BrokerIdNotRegistered "BROKER_ID_NOT_REGISTERED" 102 fatal "broker id is not registered"
    InconsistentTopicId "INCONSISTENT_TOPIC_ID" 103 retriable "topic id differs from that of the log"
    InconsistentClusterId "INCONSISTENT_CLUSTER_ID" 104 fatal "cluster id is another"
    TransactionalIdNotFound "TRANSACTIONAL_ID_NOT_FOUND" 105 fatal "no such transactional id"
    FetchSessionTopicIdError "FETCH_SESSION_TOPIC_ID_ERROR" 106 retriable "fetch session mixes topic ids and names"
    IneligibleReplica "INELIGIBLE_REPLICA" 107 fatal "replica is not eligible"
    NewLeaderElected "NEW_LEADER_ELECTED" 108 fatal "a new leader was elected"
    OffsetMovedToTieredStorage "OFFSET_MOVED_TO_TIERED_STORAGE" 109 fatal "offset has moved to tiered storage"
    FencedMemberEpoch "FENCED_MEMBER_EPOCH" 110 fatal "epoch of the member is fenced, it must join again"
    UnreleasedInstanceId "UNRELEASED_INSTANCE_ID" 111 fatal "instance id still in use by another member"
    UnsupportedAssignor "UNSUPPORTED_ASSIGNOR" 112 fatal "assignor not supported"
    StaleMemberEpoch "STALE_MEMBER_EPOCH" 113 fatal "epoch of the member is stale, retry after a heartbeat"
    MismatchedEndpointType "MISMATCHED_ENDPOINT_TYPE" 114 fatal "wrong type of endpoint"
    UnsupportedEndpointType "UNSUPPORTED_ENDPOINT_TYPE" 115 fatal "type of endpoint not supported"
    UnknownControllerId "UNKNOWN_CONTROLLER_ID" 116 fatal "no such controller"
    UnknownSubscriptionId "UNKNOWN_SUBSCRIPTION_ID" 117 fatal "no such telemetry subscription"
    TelemetryTooLarge "TELEMETRY_TOO_LARGE" 118 fatal "telemetry larger than the limit"
    InvalidRegistration "INVALID_REGISTRATION" 119 fatal "invalid registration of the broker"
    TransactionAbortable "TRANSACTION_ABORTABLE" 120 fatal "the transaction failed and can be aborted"
    InvalidRecordState "INVALID_RECORD_STATE" 121 fatal "record cannot be acknowledged in its state"
    ShareSessionNotFound "SHARE_SESSION_NOT_FOUND" 122 retriable "no such share session"
    InvalidShareSessionEpoch "INVALID_SHARE_SESSION_EPOCH" 123 retriable "invalid epoch of the share session"
    FencedStateEpoch "FENCED_STATE_EPOCH" 124 fatal "epoch of the state is fenced"
    InvalidVoterKey "INVALID_VOTER_KEY" 125 fatal "key of the voter does not match"
    DuplicateVoter "DUPLICATE_VOTER" 126 fatal "voter exists already"
    VoterNotFound "VOTER_NOT_FOUND" 127 fatal "no such voter"
    InvalidRegularExpression "INVALID_REGULAR_EXPRESSION" 128 fatal "invalid regular expression"
    RebootstrapRequired "REBOOTSTRAP_REQUIRED" 129 fatal "metadata of the client is stale, it must bootstrap again"
    StreamsInvalidTopology "STREAMS_INVALID_TOPOLOGY" 130 fatal "invalid topology"
    StreamsInvalidTopologyEpoch "STREAMS_INVALID_TOPOLOGY_EPOCH" 131 fatal "invalid epoch of the topology"
    StreamsTopologyFenced "STREAMS_TOPOLOGY_FENCED" 132 fatal "epoch of the topology is outdated"
    ShareSessionLimitReached "SHARE_SESSION_LIMIT_REACHED" 133 retriable "too many share sessions"
    GroupDeletionFailed "GROUP_DELETION_FAILED" 134 fatal "deletion of the group failed"
    StreamsTopologyDescriptionUpdateFailed "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED" 135 fatal "update of the topology description failed"
    ControllerIdNotRegistered "CONTROLLER_ID_NOT_REGISTERED" 136 fatal "controller id is not registered"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_dense_and_convert_both_ways() {
        for (i, &error) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(i16::from(error), i as i16 - 1);
            assert_eq!(ErrorCode::try_from(error.code()), Ok(error));
            assert!(!error.message().is_empty());
        }
        assert_eq!(ErrorCode::ALL.len(), 138);
        assert!(ErrorCode::try_from(137).is_err());
        assert_eq!(ErrorCode::from_code(999), ErrorCode::UnknownServerError);
    }

    #[test]
    fn names_are_kafkas() {
        for (error, code, name) in [
            (ErrorCode::UnknownServerError, -1, "UNKNOWN_SERVER_ERROR"),
            (ErrorCode::None, 0, "NONE"),
            (ErrorCode::UnknownMemberId, 25, "UNKNOWN_MEMBER_ID"),
            (ErrorCode::RebootstrapRequired, 129, "REBOOTSTRAP_REQUIRED"),
            (ErrorCode::StreamsInvalidTopology, 130, "STREAMS_INVALID_TOPOLOGY"),
            (ErrorCode::StreamsInvalidTopologyEpoch, 131, "STREAMS_INVALID_TOPOLOGY_EPOCH"),
            (ErrorCode::StreamsTopologyFenced, 132, "STREAMS_TOPOLOGY_FENCED"),
            (ErrorCode::ControllerIdNotRegistered, 136, "CONTROLLER_ID_NOT_REGISTERED"),
        ] {
            assert_eq!((error.code(), error.name()), (code, name));
        }
        assert!(ErrorCode::NotCoordinator.is_retriable());
        assert!(!ErrorCode::UnknownMemberId.is_retriable());
    }
}
