//! The compiler as its callers use it.

mod bad;
mod compile;
mod firewall;
mod flows;
mod guests;
mod hosts;
mod kinds;
mod never_panics;
mod outside;
mod parts;
mod picture;
mod rules;
mod schema;
mod services;
mod shapes;
