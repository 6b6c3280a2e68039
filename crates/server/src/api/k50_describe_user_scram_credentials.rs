//! DescribeUserScramCredentials (50): nobody has any, because nobody can log in.

use wire::messages::describe_user_scram_credentials_request::{DescribeUserScramCredentialsRequest, UserName};
use wire::messages::describe_user_scram_credentials_response::{
    DescribeUserScramCredentialsResponse, DescribeUserScramCredentialsResult,
};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    _: &RequestContext<'_>,
    request: DescribeUserScramCredentialsRequest,
) -> Result<Handled<DescribeUserScramCredentialsResponse>, HandlerError> {
    let unknown = |user: UserName| DescribeUserScramCredentialsResult {
        error_code: ErrorCode::ResourceNotFound.code(),
        error_message: Some(KStr::from(format!(
            "Attempt to describe a user credential that does not exist: {}",
            user.name
        ))),
        user: user.name,
        ..Default::default()
    };
    let results = request.users.unwrap_or_default().into_iter().map(unknown).collect();
    Ok(DescribeUserScramCredentialsResponse { results, ..Default::default() }.into())
}
