//! The part of G-code (ISO 6983-1; arcs as in NIST RS274/NGC) that says where a tool goes.
//!
//! | word | meaning |
//! |---|---|
//! | G0, G1 | straight, as fast as the limits allow or with F |
//! | G2, G3 | arc or helix, clockwise or not, with I J K (from the start to the centre) or R |
//! | G17, G18, G19 | plane of arcs: XY, ZX, YZ |
//! | G20, G21 | inch, mm (default) |
//! | G90, G91 | absolute (default), relative |
//! | F | speed, mm (or inch) per minute |
//! | N, %, ( ), ; | line number, tape mark, comments |
//! | M2, M30 | end |
//!
//! The tool keeps the orientation that it has at home. Anything else is refused.

use rs_opw_kinematics::glam::{DQuat, DVec3};
use rs_opw_kinematics::kinematic_traits::Pose;

use super::{BadText, COORDINATE_MAX_M, MOVES_MAX, Move, MoveShape, number, shortened};

/// Start and end of an arc may differ this much in their distance from its centre, m.
pub const RADIUS_TOLERANCE_M: f64 = 1e-5;

const MM_PER_INCH: f64 = 25.4;

/// Reads a program. Until an axis is named, its coordinate is that of `home`.
///
/// # Errors
/// The first word that is not understood or does not fit.
pub fn parse(text: &str, home: &Pose, work_origin_m: DVec3) -> Result<Vec<Move>, BadText> {
    let mut machine = Machine {
        place: home.translation - work_origin_m,
        rotation: home.rotation,
        origin: work_origin_m,
        motion: None,
        plane: Plane::XY,
        metres: 1e-3,
        relative: false,
        feed_m_per_s: None,
        moves: Vec::new(),
    };
    let mut last = 1;
    for (index, line) in text.lines().enumerate() {
        last = index + 1;
        let block = Block { line: last, words: words(last, line)? };
        if machine.run(&block)? {
            break;
        }
    }
    if machine.moves.len() < 2 {
        let found = machine.moves.len();
        return Err(BadText::new(last, 1, format!("{found} moves in all; expected at least 2")));
    }
    Ok(machine.moves)
}

/// A letter and its number, with the column.
#[derive(Clone, Copy)]
struct Word {
    letter: char,
    value: f64,
    column: usize,
}

/// The words of a line.
struct Block {
    line: usize,
    words: Vec<Word>,
}

impl Block {
    fn get(&self, letter: char) -> Option<Word> {
        self.words.iter().copied().find(|word| word.letter == letter)
    }

    fn bad<T>(&self, column: usize, text: impl Into<String>) -> Result<T, BadText> {
        Err(BadText::new(self.line, column, text))
    }
}

fn words(line: usize, text: &str) -> Result<Vec<Word>, BadText> {
    let chars: Vec<char> = text.chars().collect();
    let mut words: Vec<Word> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let column = at + 1;
        let c = chars[at].to_ascii_uppercase();
        at += 1;
        match c {
            ';' => break,
            '%' => {}
            '(' => {
                let close = chars[at..].iter().position(|&c| c == ')');
                let text = "a comment without its ')'";
                at += 1 + close.ok_or_else(|| BadText::new(line, column, text))?;
            }
            _ if c.is_whitespace() => {}
            'A'..='Z' => {
                while chars.get(at).is_some_and(|c| c.is_whitespace()) {
                    at += 1;
                }
                let start = at;
                while chars.get(at).is_some_and(|c| "+-.0123456789".contains(*c)) {
                    at += 1;
                }
                let digits: String = chars[start..at].iter().collect();
                if digits.is_empty() {
                    let text = format!("nothing after '{c}'; expected a number, as in {c}1");
                    return Err(BadText::new(line, column, text));
                }
                let value = number(&digits).map_err(|text| BadText::new(line, start + 1, text))?;
                if c != 'G' && words.iter().any(|word| word.letter == c) {
                    return Err(BadText::new(line, column, format!("a second {c} in this line")));
                }
                words.push(Word { letter: c, value, column });
            }
            ',' if at > 1 && chars[at - 2].is_ascii_digit() => {
                let text = "found ','; expected a decimal point, as in X1.5";
                return Err(BadText::new(line, column, text));
            }
            _ => {
                let text =
                    format!("found '{}'; expected a word like G1", shortened(&c.to_string()));
                return Err(BadText::new(line, column, text));
            }
        }
    }
    Ok(words)
}

/// The motions of G0 to G3.
#[derive(Clone, Copy, PartialEq)]
enum Motion {
    Rapid,
    Straight,
    Clockwise,
    CounterClockwise,
}

/// The plane of arcs: two axes, right-handed with the third.
#[derive(Clone, Copy)]
struct Plane([usize; 3]);

impl Plane {
    const XY: Plane = Plane([0, 1, 2]);
    const ZX: Plane = Plane([2, 0, 1]);
    const YZ: Plane = Plane([1, 2, 0]);

    /// The components of `v` in the plane.
    fn flat(self, v: DVec3) -> (f64, f64) {
        (v[self.0[0]], v[self.0[1]])
    }

    fn point(self, flat: (f64, f64), height: f64) -> DVec3 {
        let mut v = DVec3::ZERO;
        v[self.0[0]] = flat.0;
        v[self.0[1]] = flat.1;
        v[self.0[2]] = height;
        v
    }
}

/// The state that is kept from line to line.
struct Machine {
    /// Place relative to the work origin, m.
    place: DVec3,
    rotation: DQuat,
    origin: DVec3,
    motion: Option<Motion>,
    plane: Plane,
    /// Metres per unit of the program.
    metres: f64,
    relative: bool,
    feed_m_per_s: Option<f64>,
    moves: Vec<Move>,
}

impl Machine {
    /// Carries out a line; true at the end of the program.
    fn run(&mut self, block: &Block) -> Result<bool, BadText> {
        let mut motion_named = false;
        for word in &block.words {
            match word.letter {
                'G' => motion_named |= self.mode(block, word, motion_named)?,
                'M' if word.value == 2.0 || word.value == 30.0 => return Ok(true),
                'N' | 'X' | 'Y' | 'Z' | 'I' | 'J' | 'K' | 'R' | 'F' => {}
                letter => {
                    let text = format!("{letter}{} is not understood; see G0 to G3, F", word.value);
                    return block.bad(word.column, text);
                }
            }
        }
        if let Some(word) = block.get('F') {
            if word.value <= 0.0 {
                return block.bad(word.column, format!("F{}; expected more than 0", word.value));
            }
            self.feed_m_per_s = Some(word.value * self.metres / 60.0);
        }
        let goes = block.words.iter().find(|word| "XYZIJKR".contains(word.letter));
        match (goes, self.motion) {
            (None, _) => Ok(false),
            (Some(word), None) => {
                block.bad(word.column, "coordinates before any of G0, G1, G2, G3")
            }
            (Some(word), Some(motion)) => self.go(block, word, motion).map(|()| false),
        }
    }

    /// Takes a G word; true if it names a motion.
    fn mode(&mut self, block: &Block, word: &Word, named: bool) -> Result<bool, BadText> {
        let motion = match word.value {
            0.0 => Motion::Rapid,
            1.0 => Motion::Straight,
            2.0 => Motion::Clockwise,
            3.0 => Motion::CounterClockwise,
            value => {
                match value {
                    17.0 => self.plane = Plane::XY,
                    18.0 => self.plane = Plane::ZX,
                    19.0 => self.plane = Plane::YZ,
                    20.0 => self.metres = 1e-3 * MM_PER_INCH,
                    21.0 => self.metres = 1e-3,
                    90.0 => self.relative = false,
                    91.0 => self.relative = true,
                    _ => {
                        let text = format!(
                            "G{value} is not understood; expected G0-G3, G17-G21, G90 or G91"
                        );
                        return block.bad(word.column, text);
                    }
                }
                return Ok(false);
            }
        };
        if named {
            return block.bad(word.column, "a second motion in this line");
        }
        self.motion = Some(motion);
        Ok(true)
    }

    fn go(&mut self, block: &Block, first: &Word, motion: Motion) -> Result<(), BadText> {
        if self.moves.len() == MOVES_MAX {
            return block.bad(1, format!("more than {MOVES_MAX} moves; split the program"));
        }
        let mut end = self.place;
        for (axis, letter) in ['X', 'Y', 'Z'].into_iter().enumerate() {
            if let Some(word) = block.get(letter) {
                let value = word.value * self.metres;
                end[axis] = if self.relative { end[axis] + value } else { value };
                if end[axis].abs() > COORDINATE_MAX_M {
                    let text = format!("{letter} at {:.3} m; expected at most 100 m", end[axis]);
                    return block.bad(word.column, text);
                }
            }
        }
        let (shape, speed) = match motion {
            Motion::Rapid | Motion::Straight => {
                if let Some(word) = block.words.iter().find(|w| "IJKR".contains(w.letter)) {
                    return block.bad(word.column, "a centre or radius; expected G2 or G3 with it");
                }
                let rapid = motion == Motion::Rapid;
                (MoveShape::Line, if rapid { Some(f64::INFINITY) } else { self.feed_m_per_s })
            }
            Motion::Clockwise | Motion::CounterClockwise if self.moves.is_empty() => {
                return block.bad(first.column, "an arc as first move; expected G0 or G1");
            }
            _ => (self.arc(block, first, end, motion)?, self.feed_m_per_s),
        };
        let Some(speed_m_per_s) = speed else {
            return block.bad(first.column, "G1, G2 or G3 before any F; expected a speed");
        };
        self.place = end;
        let to = Pose { translation: self.origin + end, rotation: self.rotation };
        self.moves.push(Move { to, shape, speed_m_per_s, line: block.line });
        Ok(())
    }

    fn arc(
        &self,
        block: &Block,
        first: &Word,
        end: DVec3,
        motion: Motion,
    ) -> Result<MoveShape, BadText> {
        let sense = if motion == Motion::CounterClockwise { 1.0 } else { -1.0 };
        let start = self.plane.flat(self.place);
        let stop = self.plane.flat(end);
        let centre = self.centre(block, first, sense, start, stop)?;
        let from = (start.0 - centre.0, start.1 - centre.1);
        let to = (stop.0 - centre.0, stop.1 - centre.1);
        let (radius, radius_end) = (from.0.hypot(from.1), to.0.hypot(to.1));
        if radius < RADIUS_TOLERANCE_M || (radius - radius_end).abs() > RADIUS_TOLERANCE_M {
            let text = format!(
                "start and end lie {:.4} and {:.4} mm from the centre; expected the same, not 0",
                radius * 1e3,
                radius_end * 1e3
            );
            return block.bad(first.column, text);
        }
        let turn = sense * (to.1.atan2(to.0) - from.1.atan2(from.0));
        // An arc that ends where it begins is a full circle.
        let turn = if turn <= 1e-9 { turn + std::f64::consts::TAU } else { turn };
        let height = self.place[self.plane.0[2]];
        Ok(MoveShape::Arc {
            centre: self.origin + self.plane.point(centre, height),
            normal: self.plane.point((0.0, 0.0), 1.0),
            angle_rad: sense * turn,
        })
    }

    fn centre(
        &self,
        block: &Block,
        first: &Word,
        sense: f64,
        start: (f64, f64),
        stop: (f64, f64),
    ) -> Result<(f64, f64), BadText> {
        let letters = ['I', 'J', 'K'];
        if let Some(word) = block.get(letters[self.plane.0[2]]) {
            let text = format!("{} is not in the plane of the arc; see G17-G19", word.letter);
            return block.bad(word.column, text);
        }
        let offset = |axis: usize| block.get(letters[self.plane.0[axis]]);
        let (i, j) = (offset(0), offset(1));
        match (block.get('R'), i.or(j)) {
            (Some(word), Some(_)) => block.bad(word.column, "both R and a centre; expected one"),
            (None, None) => block.bad(first.column, "an arc without centre or radius"),
            (None, Some(_)) => {
                let metres = |word: Option<Word>| word.map_or(0.0, |word| word.value) * self.metres;
                Ok((start.0 + metres(i), start.1 + metres(j)))
            }
            (Some(word), None) => {
                let radius = word.value * self.metres;
                let (dx, dy) = (stop.0 - start.0, stop.1 - start.1);
                let chord = dx.hypot(dy);
                let square = radius * radius - chord * chord / 4.0;
                if chord < RADIUS_TOLERANCE_M || square < -RADIUS_TOLERANCE_M * radius.abs() {
                    let text = format!(
                        "radius {:.4} mm for ends {:.4} mm apart; expected at least half of that, \
                         and I, J, K for a full circle",
                        radius * 1e3,
                        chord * 1e3
                    );
                    return block.bad(word.column, text);
                }
                // On the short way around the centre is to the left of a counterclockwise chord.
                let side = sense * radius.signum() * square.max(0.0).sqrt() / chord;
                Ok(((start.0 + stop.0) / 2.0 - side * dy, (start.1 + stop.1) / 2.0 + side * dx))
            }
        }
    }
}
