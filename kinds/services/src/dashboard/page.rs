//! The page's files, as the build script made them of `web/`; or why they are not there.

include!(concat!(env!("OUT_DIR"), "/page.rs"));
