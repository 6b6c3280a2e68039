//! One task per connection: frames in, answers out, in order and within limits.

mod peer;

pub(crate) use peer::Peer;
