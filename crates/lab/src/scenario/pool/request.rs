//! What a request asks for, encoded in its path, so that a running graph can be given another load.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The path at which the server tells how many units it has done.
pub(super) const COUNTED: &str = "/counted";
/// The numbers of connections that a pool may have.
pub(super) const CONNECTIONS: [usize; 2] = [10, 4];

/// What is done for a request, on a thread for work that blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Whether the CPU work walks through the thread's working set.
    pub(super) has_set: bool,
    /// How long it then sleeps.
    pub(super) sleep: Duration,
    /// The database query after that, over the pool with this many connections; `None` for no
    /// query.
    pub(super) connections: Option<usize>,
    /// Whether that query never returns.
    pub(super) hangs: bool,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (set, sleep_us) = (u8::from(self.has_set), self.sleep.as_micros());
        let (connections, hangs) = (self.connections.unwrap_or(0), u8::from(self.hangs));
        write!(f, "/{set}/{sleep_us}/{connections}/{hangs}")
    }
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(path: &str) -> Result<Asked, String> {
        let bad = || format!("'{path}': expected /SET/SLEEP_US/CONNECTIONS/HANGS");
        let numbers = path.strip_prefix('/').ok_or_else(bad)?.split('/');
        let numbers: Result<Vec<u64>, _> = numbers.map(str::parse).collect();
        match numbers.map_err(|_| bad())?[..] {
            [set, sleep_us, connections, hangs] => Ok(Asked {
                has_set: set != 0,
                sleep: Duration::from_micros(sleep_us),
                connections: CONNECTIONS.into_iter().find(|&it| it as u64 == connections),
                hangs: hangs != 0,
            }),
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_all_of_it() {
        let all = Asked {
            has_set: true,
            sleep: Duration::from_millis(3),
            connections: Some(4),
            hangs: true,
        };
        for asked in [all, Asked::default(), Asked { connections: Some(10), ..all }] {
            assert_eq!(asked.to_string().parse(), Ok(asked));
        }
        for bad in ["", "/1/2", "/1/x/0/0", COUNTED] {
            assert!(bad.parse::<Asked>().is_err(), "{bad}");
        }
    }
}
