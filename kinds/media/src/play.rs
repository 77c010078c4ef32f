//! The state of a player, and the orders to it.

/// The state of the player's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum PlayState {
    /// No sound has come yet, since the start or the last jump.
    #[default]
    Waiting = 0,
    /// Sound is heard.
    Playing = 1,
    /// It was paused by an order.
    Paused = 2,
    /// Sound is due, and there is none.
    Starved = 3,
    /// The film is over.
    Ended = 4,
}

impl PlayState {
    /// All states, indexed by number, with their words.
    pub const ALL: [(PlayState, &str); 5] = [
        (PlayState::Waiting, "waiting"),
        (PlayState::Playing, "playing"),
        (PlayState::Paused, "paused"),
        (PlayState::Starved, "starved"),
        (PlayState::Ended, "ended"),
    ];

    /// The state with this number, and its word. An unknown number is `Waiting`.
    pub fn of(number: u32) -> (PlayState, &'static str) {
        PlayState::ALL.get(number as usize).copied().unwrap_or(PlayState::ALL[0])
    }
}

/// An order of the viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Order {
    /// Pause.
    Pause = 0,
    /// Go on playing.
    Play = 1,
    /// Go to another place in the film.
    Seek = 2,
    /// Faster or slower, from a quarter to four times.
    Speed = 3,
}

impl Order {
    /// All orders, indexed by number, with their words.
    pub const ALL: [(Order, &str); 4] = [
        (Order::Pause, "pause"),
        (Order::Play, "play"),
        (Order::Seek, "seek"),
        (Order::Speed, "speed"),
    ];

    /// The order with this number.
    pub fn of(number: u32) -> Option<Order> {
        Order::ALL.get(number as usize).map(|row| row.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_at_its_number() {
        for (at, (state, _)) in PlayState::ALL.into_iter().enumerate() {
            assert_eq!((state as usize, PlayState::of(at as u32).0), (at, state));
        }
        for (at, (order, _)) in Order::ALL.into_iter().enumerate() {
            assert_eq!((order as usize, Order::of(at as u32)), (at, Some(order)));
        }
        assert_eq!((PlayState::of(9).0, Order::of(9)), (PlayState::Waiting, None));
    }
}
