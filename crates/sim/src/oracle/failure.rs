//! Responses to requests that the coordinator could not serve, where they say no more than the error.

use serde_json::{Map, Value};
use wire::ErrorCode;

use super::schema::{Field, Schemas};

/// The response with `error` and otherwise defaults.
pub fn response(schemas: &Schemas, api: i16, version: i16, error: ErrorCode) -> Value {
    let Some(schema) = schemas.response(api) else {
        return Value::Null;
    };
    let present = |field: &&Field| field.versions.contains(version) && !field.tagged.contains(version);
    let fields = schema.fields.iter().filter(present);
    let mut response: Map<String, Value> = fields.map(|field| (field.name.clone(), field.default.clone())).collect();
    if response.contains_key("errorCode") {
        response.insert("errorCode".into(), error.code().into());
    }
    // A response class of Kafka puts null in the place of what is not known.
    if api == 11 && version >= 7 {
        response.insert("protocolName".into(), Value::Null);
    }
    response.into()
}
