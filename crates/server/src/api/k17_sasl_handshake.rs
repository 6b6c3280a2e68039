//! SaslHandshake (17): not built yet, so neither dispatched nor advertised.
