//! Which shape and which manner of polling suit the links between two CPUs of this machine, by
//! measurement.

pub mod sides;
