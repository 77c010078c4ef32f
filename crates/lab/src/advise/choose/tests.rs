//! Choices from figures that were never measured.
