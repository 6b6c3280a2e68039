//! What happens in groups, counted.

use super::exposition::Exposition;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct GroupCounters {}

impl GroupCounters {
    pub fn write(&self, _out: &mut Exposition) {}
}
