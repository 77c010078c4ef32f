//! A run as others see it: the live view and the plain lines of `sinew run`, the tables of `sinew
//! top`, the parts that both share, and the messages to systemd.

mod fit;
mod live;
mod news;
mod plain;
mod rows;
mod scene;
mod scope;
mod screen;
mod systemd;
mod theme;
mod top;
mod view;

pub use self::fit::fit_words;
pub use self::news::News;
pub use self::rows::{Cell, Rows, elapsed, plain, printable};
pub use self::scene::Scene;
pub use self::scope::{ScopeScreen, ScopeWish};
pub use self::screen::{columns, draws, is_plain, paints, want_plain};
pub use self::systemd::Systemd;
pub use self::theme::Theme;
pub use self::top::{Top, to_text};
pub use self::view::View;
