//! What a client is told when a shard gives no reply (C ).

use coordinator::LogError;
use coordinator::runtime::Unavailable;
use wire::ErrorCode;

/// The error of most APIs of a coordinator. Heartbeat and OffsetFetch have their own view of some of them.
pub(crate) fn error_code(why: &Unavailable) -> ErrorCode {
    match why {
        Unavailable::Loading => ErrorCode::CoordinatorLoadInProgress,
        Unavailable::NotCoordinator => ErrorCode::NotCoordinator,
        Unavailable::Refused(error) => log_error(error),
    }
}

fn log_error(error: &LogError) -> ErrorCode {
    match error {
        LogError::TooLarge => ErrorCode::UnknownServerError,
        // There may be space again soon, and here is the only place to ask for it.
        LogError::NoSpace => ErrorCode::CoordinatorNotAvailable,
        LogError::Fenced | LogError::Failed(_) => ErrorCode::NotCoordinator,
        LogError::Refused(code) => appended(ErrorCode::from_code(*code)),
    }
}

/// the error of an append, as the client of a group API gets it.
fn appended(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::UnknownServerError
        }
        ErrorCode::NetworkException => ErrorCode::CoordinatorLoadInProgress,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_6_append_failures_surface_as_errors_that_clients_of_groups_know() {
        for (error, code) in [
            (LogError::Refused(3), 15),
            (LogError::Refused(19), 15),
            (LogError::Refused(20), 15),
            (LogError::Refused(7), 15),
            (LogError::NoSpace, 15),
            (LogError::Refused(6), 16),
            (LogError::Refused(56), 16),
            (LogError::Fenced, 16),
            (LogError::Failed("disk".into()), 16),
            (LogError::Refused(10), -1),
            (LogError::Refused(18), -1),
            (LogError::TooLarge, -1),
            (LogError::Refused(13), 14),
            (LogError::Refused(-1), -1),
            (LogError::Refused(47), 47),
        ] {
            assert_eq!(error_code(&Unavailable::Refused(error.clone())).code(), code, "{error}");
        }
        assert_eq!(error_code(&Unavailable::Loading).code(), 14);
        assert_eq!(error_code(&Unavailable::NotCoordinator).code(), 16);
    }
}
