//! HTTP: what listens, what finds the way, what asks others.
