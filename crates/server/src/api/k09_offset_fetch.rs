//! OffsetFetch (9): not built yet, so neither dispatched nor advertised.
