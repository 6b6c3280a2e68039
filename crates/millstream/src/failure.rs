//! Why a command failed, in words for people and as an exit code for programs.

use std::error::Error;
use std::process::ExitCode;

use client::ClientError;
use wire::ErrorCode;

/// What kind of failure; the number is the exit code, which is part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The broker refused, or something else went wrong.
    Failed = 1,
    /// Wrong arguments or configuration; also what clap exits with.
    Usage = 2,
    /// No broker, or no answer.
    Unreachable = 3,
    /// A group, topic or file that does not exist.
    NotFound = 4,
}

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    pub kind: Kind,
    pub error: anyhow::Error,
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, error: anyhow::Error::msg(message.into()) }
    }

    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Failed, message)
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Usage, message)
    }

    /// The same with what was being done before it.
    pub fn context(self, doing: String) -> Failure {
        Failure { error: self.error.context(doing), ..self }
    }

    /// `error: ...` with its causes, on standard error.
    pub fn report(&self) {
        eprintln!("error: {}", self.text());
    }

    /// The error and its causes, one a line. Many errors tell their cause themselves; it is not told twice.
    pub fn text(&self) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1) {
            let cause = cause.to_string();
            if !text.contains(&cause) {
                text.push_str("\n  because: ");
                text.push_str(&cause);
            }
        }
        text
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let kind = match &error {
            ClientError::Connect { .. } | ClientError::Broken { .. } | ClientError::TimedOut { .. } => {
                Kind::Unreachable
            }
            ClientError::Kafka { code: ErrorCode::GroupIdNotFound | ErrorCode::UnknownTopicOrPartition, .. } => {
                Kind::NotFound
            }
            _ => Kind::Failed,
        };
        Failure { kind, error: error.into() }
    }
}

/// For what has no kind of its own.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure { kind: Kind::Failed, error }
    }
}

/// A configuration or a file that cannot be used.
pub fn kind_of_io(error: &std::io::Error) -> Kind {
    match error.kind() {
        std::io::ErrorKind::NotFound => Kind::NotFound,
        _ => Kind::Failed,
    }
}

/// Marks an error as one of usage or configuration.
pub fn usage<E: Error + Send + Sync + 'static>(error: E) -> Failure {
    Failure { kind: Kind::Usage, error: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let io = || std::io::Error::other("disk full");
        let told = ClientError::Broken { address: "a:1".to_owned(), source: io() };
        assert_eq!(Failure::from(told).text(), "the connection to a:1 broke: disk full");
        let untold = Failure::from(anyhow::Error::from(io()).context("cannot close"));
        assert_eq!(untold.text(), "cannot close\n  because: disk full");
    }

    #[test]
    fn exit_codes_tell_what_to_do_about_it() {
        let kafka = |code| ClientError::Kafka { code, message: None };
        let unreachable = ClientError::TimedOut { address: "a:1".to_owned(), seconds: 5 };
        for (error, kind) in [
            (unreachable, Kind::Unreachable),
            (kafka(ErrorCode::GroupIdNotFound), Kind::NotFound),
            (kafka(ErrorCode::UnknownTopicOrPartition), Kind::NotFound),
            (kafka(ErrorCode::NonEmptyGroup), Kind::Failed),
        ] {
            assert_eq!(Failure::from(error).kind, kind);
        }
    }
}
