//! Finds ports, signals and parameters by name at compile time: in a `const`, a name that the table
//! does not have is an error of the compiler.

use crate::catalogue::{Direction, Form, Kind};

impl Kind {
    /// The index of the input of this name, as the node's code uses it.
    ///
    /// ```
    /// use sinew_plan::catalogue::{Kind, Port, REAL};
    ///
    /// static VALVE: Kind = Kind {
    ///     ports: &[Port::input("in", "How far.", &REAL), Port::output("flow", "Water.", &REAL)],
    ///     ..Kind::realtime("valve", "Opens and closes.")
    /// };
    /// const IN: usize = VALVE.input("in");
    /// const FLOW: usize = VALVE.output("flow");
    /// assert_eq!((IN, FLOW), (0, 1));
    /// ```
    ///
    /// An unknown name does not compile, and the error lists the known ones:
    ///
    /// ```compile_fail,E0080
    /// # use sinew_plan::catalogue::{Kind, Port, REAL};
    /// # static VALVE: Kind = Kind {
    /// #     ports: &[Port::input("in", "How far.", &REAL)],
    /// #     ..Kind::realtime("valve", "Opens and closes.")
    /// # };
    /// const IN: usize = VALVE.input("im"); // kind 'valve' has no input 'im'; it has 'in'
    /// ```
    ///
    /// # Panics
    /// If there is no such input, or a row before it stands for several ports. In that case the
    /// index depends on the graph, and [`Kind::port_index`] of the node's own kind gives it.
    #[track_caller]
    pub const fn input(&self, name: &str) -> usize {
        self.port_of(name, Direction::In, "input")
    }

    /// The index of the output of this name, like [`Kind::input`].
    ///
    /// # Panics
    /// As [`Kind::input`].
    #[track_caller]
    pub const fn output(&self, name: &str) -> usize {
        self.port_of(name, Direction::Out, "output")
    }

    #[track_caller]
    const fn port_of(&self, name: &str, direction: Direction, what: &str) -> usize {
        let mut wrong = Sentence::missing(self.name, what, name);
        let mut several = false;
        let mut at = 0;
        while at < self.ports.len() {
            let port = &self.ports[at];
            several |= !matches!(port.form, Form::One | Form::Message(_));
            if port.direction as u8 == direction as u8 {
                if is_same(port.name, name) {
                    if several {
                        let why = "stands for several ports, or behind such a row; ask \
                                   `parameters.kind.port_index` when the node is made";
                        panic!("{}", Sentence::about(self.name, what, name).and(why).as_str());
                    }
                    return at;
                }
                wrong = wrong.with(port.name);
            }
            at += 1;
        }
        panic!("{}", wrong.as_str())
    }

    /// The index of the signal of this name, as the node's code uses it.
    ///
    /// # Panics
    /// If there is no such signal.
    #[track_caller]
    pub const fn signal(&self, name: &str) -> usize {
        let mut wrong = Sentence::missing(self.name, "signal", name);
        let mut at = 0;
        while at < self.signals.len() {
            if is_same(self.signals[at].name, name) {
                return at;
            }
            wrong = wrong.with(self.signals[at].name);
            at += 1;
        }
        panic!("{}", wrong.as_str())
    }

    /// The name of the parameter, checked against the table:
    /// `const LIMIT: &str = HEATER.parameter("limit_deg_c")`.
    ///
    /// # Panics
    /// If there is no such parameter.
    #[track_caller]
    pub const fn parameter(&self, name: &str) -> &'static str {
        let mut wrong = Sentence::missing(self.name, "parameter", name);
        let mut at = 0;
        while at < self.parameters.len() {
            if is_same(self.parameters[at].name, name) {
                return self.parameters[at].name;
            }
            wrong = wrong.with(self.parameters[at].name);
            at += 1;
        }
        panic!("{}", wrong.as_str())
    }
}

/// `==` of texts, at compile time.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Bytes of an error; what does not fit is left out, and names are never cut.
const ROOM: usize = 1000;

/// An error, built at compile time, where `format!` is not available.
struct Sentence {
    bytes: [u8; ROOM],
    len: usize,
    names: usize,
}

impl Sentence {
    /// `kind 'valve': input 'im' `.
    const fn about(kind: &str, what: &str, name: &str) -> Sentence {
        let none = Sentence { bytes: [0; ROOM], len: 0, names: 0 };
        none.and("kind '").and(kind).and("': ").and(what).and(" '").and(name).and("' ")
    }

    /// `kind 'valve' has no input 'im'; it has `.
    const fn missing(kind: &str, what: &str, name: &str) -> Sentence {
        let none = Sentence { bytes: [0; ROOM], len: 0, names: 0 };
        let none = none.and("kind '").and(kind).and("' has no ").and(what).and(" '").and(name);
        none.and("'")
    }

    /// Adds one of the known names.
    const fn with(mut self, name: &str) -> Sentence {
        self.names += 1;
        let before = if self.names == 1 { "; it has '" } else { ", '" };
        if self.len + before.len() + name.len() + 1 > ROOM {
            return self;
        }
        self.and(before).and(name).and("'")
    }

    const fn and(mut self, text: &str) -> Sentence {
        if self.len + text.len() <= ROOM {
            let mut at = 0;
            while at < text.len() {
                self.bytes[self.len + at] = text.as_bytes()[at];
                at += 1;
            }
            self.len += text.len();
        }
        self
    }

    const fn as_str(&self) -> &str {
        match str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "whole texts were joined",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::catalogue::{Parameter, ParameterType, Port, REAL, Signal};

    static MIXER: Kind = Kind {
        ports: &[
            Port::input("left", "One side.", &REAL),
            Port::output("out", "The mixture.", &REAL),
            Port::input("right", "The other.", &REAL),
            Port::input("more", "Others.", &REAL).form(Form::Each("others")),
            Port::output("last", "Behind them.", &REAL),
        ],
        parameters: &[Parameter::new("others", ParameterType::Texts { max: 4 })],
        signals: &[Signal::new("level", "How full.", "m", 1), Signal::new("heat", "", "K", 2)],
        ..Kind::realtime("mixer", "Mixes.")
    };

    #[test]
    fn names_are_found_while_the_code_is_compiled() {
        const RIGHT: usize = MIXER.input("right");
        const OUT: usize = MIXER.output("out");
        const HEAT: usize = MIXER.signal("heat");
        const OTHERS: &str = MIXER.parameter("others");
        assert_eq!((RIGHT, OUT, HEAT, OTHERS), (2, 1, 1, "others"));
    }

    /// The text of the compiler's error, caught here as a panic at run time.
    fn said<R>(look: impl FnOnce() -> R) -> String {
        let panic = catch_unwind(AssertUnwindSafe(look)).err().expect("it must not be found");
        *panic.downcast::<String>().expect("a text")
    }

    #[test]
    fn a_name_that_is_not_there_is_told_with_those_that_are() {
        let is = "kind 'mixer' has no input 'out'; it has 'left', 'right', 'more'";
        assert_eq!(said(|| MIXER.input("out")), is);
        let is = "kind 'mixer' has no output 'left'; it has 'out', 'last'";
        assert_eq!(said(|| MIXER.output("left")), is);
        let is = "kind 'mixer' has no signal 'Level'; it has 'level', 'heat'";
        assert_eq!(said(|| MIXER.signal("Level")), is);
        assert_eq!(
            said(|| MIXER.parameter("")),
            "kind 'mixer' has no parameter ''; it has 'others'"
        );
        let bare = Kind::flow("bare", "Nothing.");
        assert_eq!(said(|| bare.signal("x")), "kind 'bare' has no signal 'x'");
        let long = "x".repeat(ROOM);
        assert!(said(|| MIXER.signal(&long)).starts_with("kind 'mixer' has no signal ''; it has"));
    }

    #[test]
    fn a_port_whose_index_the_graph_decides_is_refused() {
        for text in [said(|| MIXER.input("more")), said(|| MIXER.output("last"))] {
            assert!(text.contains("stands for several ports, or behind such a row"), "{text}");
        }
    }
}
