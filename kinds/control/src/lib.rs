//! Node kinds for any machine: sources, controllers, filters, logic and simulated plants to try
//! them against, on plain numbers ([`Real`](sinew_core::Real)) and flags
//! ([`Flag`](sinew_core::Flag)).

mod biquad;
mod cart_pendulum;
mod constant;
mod dc_motor;
mod deadband;
mod debounce;
mod derivative;
mod expression;
#[cfg(test)]
mod filter_testing;
mod first_order;
mod formula;
mod hysteresis;
mod integrator;
mod limiter;
mod linear;
mod lowpass;
mod mux;
mod notch;
mod pid;
mod plant;
mod scale;
mod sections;
mod select;
mod signal;
mod state_machine;
mod state_space;
mod statistics;
mod sum;
#[cfg(test)]
mod testing;
mod trajectory;
#[cfg(test)]
mod tuning_tests;
mod two_mass;
mod watchdog;

use sinew_core::NodeEntry;

/// Every kind, one row each.
pub const NODES: &[NodeEntry] = &[
    biquad::NODE,
    cart_pendulum::NODE,
    constant::NODE,
    dc_motor::NODE,
    deadband::NODE,
    debounce::NODE,
    derivative::NODE,
    expression::NODE,
    first_order::NODE,
    hysteresis::NODE,
    integrator::NODE,
    limiter::NODE,
    lowpass::NODE,
    mux::NODE,
    notch::NODE,
    pid::NODE,
    scale::NODE,
    select::NODE,
    signal::NODE,
    state_machine::NODE,
    state_space::NODE,
    statistics::NODE,
    sum::NODE,
    trajectory::NODE,
    two_mass::NODE,
    watchdog::NODE,
];
