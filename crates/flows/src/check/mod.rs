//! Tests in the graph itself.
