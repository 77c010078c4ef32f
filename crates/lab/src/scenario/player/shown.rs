//! What was shown: the log of a screen, and how soon sound and picture were in step after a jump or
//! a pause.

/// A picture that is farther from the sound than the time of one picture is not in step, ns.
pub(super) const IN_STEP_NS: u64 = 40_000_000;

/// A picture that was shown: a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ShownPicture {
    /// The number of the last jump that it follows.
    pub(super) serial: u32,
    /// When it was shown.
    pub(super) shown_ns: u64,
    /// The position of the sound minus that of the picture; `None` if no sound was heard.
    pub(super) difference_ns: Option<i64>,
    /// How long it took to decode.
    pub(super) decode_ns: u64,
    pub(super) is_late: bool,
    /// Dropped and repeated so far, in all.
    pub(super) dropped: u64,
    pub(super) repeated: u64,
    /// Copies that were made of it.
    pub(super) copies: u64,
}

impl ShownPicture {
    /// How far it was from the sound, in either direction.
    pub(super) fn apart_ns(&self) -> Option<u64> {
        self.difference_ns.map(i64::unsigned_abs)
    }

    fn is_in_step(&self) -> bool {
        self.apart_ns().is_some_and(|apart_ns| apart_ns <= IN_STEP_NS)
    }
}

/// The columns that are read; a log may have more.
const COLUMNS: [&str; 8] =
    ["serial", "shown_ns", "difference_ns", "decode_ns", "late", "dropped", "repeated", "copies"];

/// Reads a log.
///
/// # Errors
/// The line that is not as expected, counted from 1, and what was expected.
pub(super) fn read(text: &str) -> Result<Vec<ShownPicture>, String> {
    let mut lines = text.lines();
    let header: Vec<_> = lines.next().unwrap_or_default().split(',').collect();
    let at = COLUMNS.map(|name| header.iter().position(|column| *column == name));
    if let Some(missing) = at.iter().position(Option::is_none) {
        let name = COLUMNS[missing];
        return Err(format!(
            "line 1 of the screen's log: no column '{name}': '{}'",
            header.join(",")
        ));
    }
    let at = at.map(Option::unwrap_or_default);
    let picture = |(number, line): (usize, &str)| {
        let fields: Vec<_> = line.split(',').collect();
        let picture = (fields.len() == header.len()).then(|| picture(&at.map(|at| fields[at])));
        picture.flatten().ok_or_else(|| {
            let expected = header.join(",");
            format!("line {} of the screen's log: '{line}': expected {expected}", number + 2)
        })
    };
    lines.enumerate().map(picture).collect()
}

/// A picture from its fields, in the order of [`COLUMNS`].
fn picture(fields: &[&str; COLUMNS.len()]) -> Option<ShownPicture> {
    let number = |at: usize| fields[at].parse().ok();
    let difference_ns = match fields[2] {
        "" => None,
        text => Some(text.parse().ok()?),
    };
    Some(ShownPicture {
        serial: fields[0].parse().ok()?,
        shown_ns: number(1)?,
        difference_ns,
        decode_ns: number(3)?,
        is_late: number(4)? != 0,
        dropped: number(5)?,
        repeated: number(6)?,
        copies: number(7)?,
    })
}

/// How long after `from_ns` a picture was shown that follows jump `serial` and is in step; `None`
/// if there was none.
pub(super) fn in_step_after(shown: &[ShownPicture], serial: u32, from_ns: u64) -> Option<u64> {
    let follows = |it: &&ShownPicture| it.serial == serial && it.shown_ns >= from_ns;
    let mut following = shown.iter().filter(follows);
    following.find(|it| it.is_in_step()).map(|it| it.shown_ns - from_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "number,serial,position_ns,shown_ns,difference_ns,decode_ns,waiting,late,\
                          dropped,repeated,copies\n";

    fn log(lines: &[&str]) -> Result<Vec<ShownPicture>, String> {
        read(&format!(
            "{HEADER}{}",
            lines.iter().map(|line| format!("{line}\n")).collect::<String>()
        ))
    }

    #[test]
    fn each_line_is_a_picture() {
        let shown = log(&["1,0,0,5000,,900,18,0,0,0,0", "9,2,40000000,6000,-250,300,3,1,4,12,1"]);
        let first = ShownPicture { shown_ns: 5000, decode_ns: 900, ..ShownPicture::default() };
        let second = ShownPicture {
            serial: 2,
            shown_ns: 6000,
            difference_ns: Some(-250),
            decode_ns: 300,
            is_late: true,
            dropped: 4,
            repeated: 12,
            copies: 1,
        };
        assert_eq!(shown, Ok(vec![first, second]));
        assert_eq!((first.apart_ns(), second.apart_ns()), (None, Some(250)));
        assert_eq!(log(&[]), Ok(vec![]), "nothing was shown");
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let mixed = "copies,new,serial,shown_ns,difference_ns,late,decode_ns,repeated,dropped\n\
                     3,x,1,70,-5,0,60,2,1\n";
        let picture = ShownPicture {
            serial: 1,
            shown_ns: 70,
            difference_ns: Some(-5),
            decode_ns: 60,
            is_late: false,
            dropped: 1,
            repeated: 2,
            copies: 3,
        };
        assert_eq!(read(mixed), Ok(vec![picture]));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let why = read("").expect_err("no header");
        assert!(why.contains("line 1 of the screen's log: no column 'serial'"), "{why}");
        for bad in ["1,0,0,5000,,900", "1,0,0,-1,,900,18,0,0,0,0", "1,0,0,5,x,9,1,0,0,0,0", ""] {
            let why = log(&["1,0,0,5000,,900,18,0,0,0,0", bad]).expect_err(bad);
            let named = format!("line 3 of the screen's log: '{bad}': expected number,serial,");
            assert!(why.starts_with(&named), "{why}");
        }
    }

    fn picture(serial: u32, shown_ms: u64, difference_ms: Option<i64>) -> ShownPicture {
        let difference_ns = difference_ms.map(|ms| ms * 1_000_000);
        ShownPicture {
            serial,
            shown_ns: shown_ms * 1_000_000,
            difference_ns,
            ..ShownPicture::default()
        }
    }

    #[test]
    fn in_step_is_the_first_picture_that_is_near_the_sound() {
        let shown = [
            picture(0, 100, None),
            picture(0, 140, Some(200)),
            picture(0, 180, Some(-41)),
            picture(0, 220, Some(-40)),
            picture(0, 260, Some(0)),
        ];
        assert_eq!(in_step_after(&shown, 0, 100_000_000), Some(120_000_000));
        assert_eq!(in_step_after(&shown, 0, 230_000_000), Some(30_000_000), "after a pause");
        assert_eq!(in_step_after(&shown, 0, 261_000_000), None, "nothing more was shown");
        assert_eq!(in_step_after(&shown[..3], 0, 0), None, "never near");
        assert_eq!(in_step_after(&[], 0, 0), None);
    }

    #[test]
    fn pictures_from_before_a_jump_or_after_the_next_one_do_not_count() {
        let shown = [
            picture(0, 100, Some(0)),
            picture(0, 210, Some(0)),
            picture(1, 250, None),
            picture(1, 290, Some(10)),
            picture(2, 400, Some(0)),
        ];
        assert_eq!(in_step_after(&shown, 1, 200_000_000), Some(90_000_000));
        assert_eq!(in_step_after(&shown, 1, 300_000_000), None, "the next jump came before");
        assert_eq!(in_step_after(&shown, 2, 300_000_000), Some(100_000_000));
    }
}
