mod files;
mod keys;
mod typed;

use super::{ConfigError, Findings, Format, ServerConfig, load_text, properties};

/// As if the text were the start configuration, in `server.properties` form.
fn start(text: &str) -> Result<(ServerConfig, Findings), ConfigError> {
    let (values, findings) = load_text(Format::Properties, properties(text))?;
    Ok((ServerConfig::from_values(values)?, findings))
}

fn started(text: &str) -> ServerConfig {
    start(text).unwrap_or_else(|error| panic!("{text}: {error}")).0
}

fn refusal(text: &str) -> String {
    match start(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}
