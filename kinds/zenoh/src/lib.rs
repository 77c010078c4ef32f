//! Carries.
