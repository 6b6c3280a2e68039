//! Settings of topics, groups and brokers.

use serde::Serialize;
use wire::KStr;
use wire::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use wire::messages::describe_configs_response::DescribeConfigsResourceResult;
use wire::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};

use crate::error::ClientError;
use crate::router::Client;

/// What has settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource<'a> {
    Topic(&'a str),
    /// The node id, as text.
    Broker(&'a str),
    Group(&'a str),
}

impl Resource<'_> {
    fn kind(self) -> i8 {
        match self {
            Resource::Topic(_) => 2,
            Resource::Broker(_) => 4,
            Resource::Group(_) => 32,
        }
    }

    fn name(self) -> KStr {
        let (Resource::Topic(name) | Resource::Broker(name) | Resource::Group(name)) = self;
        KStr::copy(name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub name: String,
    /// `None` if it is unset or secret.
    pub value: Option<String>,
    /// Where it was set: `topic`, `group`, `broker`, `cluster`, `file` or `default`.
    pub source: &'static str,
    pub read_only: bool,
}

impl Setting {
    /// Set on the very resource that was asked for.
    pub fn is_own(&self) -> bool {
        matches!(self.source, "topic" | "group")
    }

    fn of(entry: &DescribeConfigsResourceResult) -> Setting {
        Setting {
            name: entry.name.to_string(),
            value: entry.value.as_ref().map(KStr::to_string),
            source: match entry.config_source {
                1 => "topic",
                2 => "broker",
                3 => "cluster",
                4 => "file",
                5 => "default",
                8 => "group",
                _ => "other",
            },
            read_only: entry.read_only,
        }
    }
}

/// All settings of a resource, by name.
pub async fn describe(client: &mut Client, resource: Resource<'_>) -> Result<Vec<Setting>, ClientError> {
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: resource.kind(),
            resource_name: resource.name(),
            configuration_keys: None,
        }],
        ..Default::default()
    };
    // Only a broker itself knows its settings; who is asked by default is the first that answers, as for all others.
    let response = client.call(&request).await?;
    let result = response.results.first().ok_or(MISSING)?;
    ClientError::check(result.error_code, result.error_message.as_deref())?;
    let mut settings: Vec<Setting> = result.configs.iter().map(Setting::of).collect();
    settings.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(settings)
}

/// Sets and unsets, all or nothing.
pub async fn alter(
    client: &mut Client,
    resource: Resource<'_>,
    set: &[(String, String)],
    unset: &[String],
    validate_only: bool,
) -> Result<(), ClientError> {
    const SET: i8 = 0;
    const DELETE: i8 = 1;
    let set = set.iter().map(|(name, value)| AlterableConfig {
        name: KStr::copy(name),
        config_operation: SET,
        value: Some(KStr::copy(value)),
        ..Default::default()
    });
    let unset = unset.iter().map(|name| AlterableConfig {
        name: KStr::copy(name),
        config_operation: DELETE,
        ..Default::default()
    });
    let request = IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: resource.kind(),
            resource_name: resource.name(),
            configs: set.chain(unset).collect(),
            ..Default::default()
        }],
        validate_only,
        ..Default::default()
    };
    let response = client.call(&request).await?;
    let result = response.responses.first().ok_or(MISSING)?;
    ClientError::check(result.error_code, result.error_message.as_deref())
}

const MISSING: ClientError = ClientError::Incomplete("the resource is missing in the answer");
