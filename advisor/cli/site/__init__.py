"""The history as pages and documents over HTTP: read only, for whoever has the token."""
