//! OffsetDelete (47): not built yet, so neither dispatched nor advertised.
