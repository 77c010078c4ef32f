//! A run on a terminal: the live view and the plain lines of `sinew run`, the tables of `sinew top`,
//! and the parts that they share. What is drawn comes from what the run says of itself.

mod live;
mod news;
mod plain;
mod rows;
mod scene;
mod screen;
mod theme;
mod top;
mod view;

pub use self::news::News;
pub use self::rows::{Cell, Rows, Side, elapsed, plain, printable};
pub use self::scene::Scene;
pub use self::screen::columns;
pub use self::theme::Theme;
pub use self::top::{Top, to_text};
pub use self::view::View;
