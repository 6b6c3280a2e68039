//! Keys that ask for protection which is not built. The broker does not start with them, in any kind of file: it must never
//! serve in the open what was meant to be closed. That holds for policies too, which keep users from doing things.

use super::super::key::Key;

/// The value given with a key is harmless and accepted; no value at all always is.
pub static ALL: &[Key] = &[
    Key::refused("alter.config.policy.class.name", None),
    Key::refused("allow.everyone.if.no.acl.found", None),
    Key::refused("authorizer.class.name", None),
    Key::refused("config.providers", None),
    Key::refused("connections.max.reauth.ms", Some("0")),
    Key::refused("create.topic.policy.class.name", None),
    Key::refused("principal.builder.class", None),
    Key::refused("security.inter.broker.protocol", Some("PLAINTEXT")),
    Key::refused("security.providers", None),
    Key::refused("super.users", None),
];

/// Whole families: whoever sets one of these expects encryption, authentication or authorisation. The few that only pace logins are among
/// the inert keys.
pub static PREFIXES: &[&str] =
    &["ssl.", "sasl.", "authorizer.", "delegation.token.", "password.encoder.", "broker.security."];
