//! The kind `camera`, and pictures as messages, for the services that show them. They are a crate
//! apart from the other services because of their loops over pixels: a build optimises these for
//! speed, in the dev profile too. The tests of a running camera are those of `sinew-services`.

pub mod camera;
pub mod messages;
pub mod picture;
