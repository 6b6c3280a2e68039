//! Responses to requests that the coordinator could not serve.

use serde_json::{Map, Value, json};
use wire::ErrorCode;

use super::schema::{Field, Schemas};

/// The response with `error` and otherwise defaults; where there is no error for the whole, every partition has it.
pub fn response(schemas: &Schemas, api: i16, version: i16, body: &Value, error: ErrorCode) -> Value {
    let Some(schema) = schemas.response(api) else {
        return Value::Null;
    };
    let present = |field: &&Field| field.versions.contains(version) && !field.tagged.contains(version);
    let fields = schema.fields.iter().filter(present);
    let mut response: Map<String, Value> = fields.map(|field| (field.name.clone(), field.default.clone())).collect();
    if response.contains_key("errorCode") {
        response.insert("errorCode".into(), error.code().into());
    } else if let Some(topics) = body["topics"].as_array() {
        response.insert("topics".into(), topics.iter().map(|topic| failed_topic(topic, error)).collect());
    }
    // A response class of Kafka puts null in the place of what is not known.
    if api == 11 && version >= 7 {
        response.insert("protocolName".into(), Value::Null);
    }
    response.into()
}

fn failed_topic(topic: &Value, error: ErrorCode) -> Value {
    let mut failed = Map::new();
    for key in ["name", "topicId"] {
        if let Some(value) = topic.get(key) {
            failed.insert(key.into(), value.clone());
        }
    }
    let partitions = topic["partitions"].as_array().into_iter().flatten();
    let partition = |p: &Value| json!({ "partitionIndex": p["partitionIndex"], "errorCode": error.code() });
    failed.insert("partitions".into(), partitions.map(partition).collect());
    failed.into()
}
