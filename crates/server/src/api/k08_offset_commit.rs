//! OffsetCommit (8): not built yet, so neither dispatched nor advertised.
