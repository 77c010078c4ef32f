//! The page's files.

/// Path, content type and bytes of each.
pub(super) const FILES: &[(&str, &str, &[u8])] = &[(
    "/",
    "text/html; charset=utf-8",
    b"<!doctype html><title>Sinew</title><p>The run is at the WebSocket <code>/ws</code>.",
)];

/// Why there is no page, and how to get it; `None` if it is there.
pub(super) const MISSING: Option<&str> = None;
