//! The page's files, which the build script made from `web/`; or the reason why they are missing.

include!(concat!(env!("OUT_DIR"), "/page.rs"));
