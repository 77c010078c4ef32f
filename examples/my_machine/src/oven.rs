//! Kind `oven`: a cyclic node, and the message with its state. The oven is simulated; replace it by
//! the code that talks to yours.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, SafeValue, Signal, Unit};
use sinew_core::{
    Cycle, Fault, Fresh, Io, Labels, Message, Node, NodeEntry, Parameters, Real, fault, message,
};

message! {
    /// What the oven does.
    pub enum Mode: u8 {
        /// It has no power.
        Off = 0,
        /// It heats.
        Heat = 1,
    }

    /// How the oven is.
    pub struct OvenState {
        /// How hot it is.
        pub temperature_deg_c: f64,
        /// Electrical power.
        pub power_w: f64,
        /// What it does.
        pub mode: Label<Mode>,
        /// A message has no gaps: its size is a multiple of its largest number's.
        pub reserved: [u8; 7],
    }
}

/// What `sinew check`, `sinew kinds oven` and the pictures know about the kind.
static OVEN: Kind = Kind {
    ports: &[
        // A port with safe values moves an actuator. A graph must choose the value that is used
        // without commands.
        Port::input("power", "The power wanted, 0 to 3000 W.", Real::TYPE)
            .unit(Unit::Of("W"))
            .safe(&[SafeValue { name: "off", doc: "No power." }]),
        Port::output("temperature", "How hot it is.", Real::TYPE)
            .unit(Unit::Of("deg C"))
            .optional(),
        Port::output("state", "All that is known of it.", OvenState::TYPE).optional(),
    ],
    parameters: &[Parameter::new("limit_deg_c", ParameterType::Number { min: 0.0, max: 1000.0 })
        .or("250")
        .unit("deg C")
        .doc("Hotter than this is a fault.")],
    signals: &[
        Signal::new("temperature_deg_c", "How hot it is.", "deg C", 1),
        Signal::new("mode", "What it does.", "", 1).labels(Mode::LABELS),
    ],
    ..Kind::realtime("oven", "An oven, simulated: 100 J/K that lose 2 W/K to a room of 20 deg C.")
};

// Indices by name from the table: a name that is not in the table is a compiler error.
const POWER: usize = OVEN.input("power");
const TEMPERATURE: usize = OVEN.output("temperature");
const STATE: usize = OVEN.output("state");
const SHOWN_TEMPERATURE: usize = OVEN.signal("temperature_deg_c");
const SHOWN_MODE: usize = OVEN.signal("mode");
const LIMIT: &str = OVEN.parameter("limit_deg_c");

/// The kind's row among those of `main`.
pub const NODE: NodeEntry = NodeEntry { safe: Some(safe), ..NodeEntry::new(&OVEN, make) };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let limit_deg_c = parameters.number(LIMIT);
    Ok(Box::new(Oven { limit_deg_c, temperature_deg_c: ROOM_DEG_C, power_w: 0.0 }))
}

/// Writes a safe value. There is only `off`, and the message is zero already.
fn safe(_port: usize, _safe: usize, _message: &mut [u8]) {}

const ROOM_DEG_C: f64 = 20.0;
const POWER_MAX_W: f64 = 3000.0;
const LOSS_W_PER_K: f64 = 2.0;
const CAPACITY_J_PER_K: f64 = 100.0;

struct Oven {
    limit_deg_c: f64,
    temperature_deg_c: f64,
    power_w: f64,
}

impl Node for Oven {
    /// Every cycle. It must not allocate, lock, wait or call the system.
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if io.fresh(POWER) != Fresh::None {
            // The newest command, or the safe value if no commands come.
            self.power_w = io.read::<Real>(POWER).value.clamp(0.0, POWER_MAX_W);
        }
        let flow_w = self.power_w - LOSS_W_PER_K * (self.temperature_deg_c - ROOM_DEG_C);
        self.temperature_deg_c += flow_w * cycle.passed_s() / CAPACITY_J_PER_K;

        let mode = if self.power_w > 0.0 { Mode::Heat } else { Mode::Off };
        io.signal(SHOWN_TEMPERATURE)[0] = self.temperature_deg_c;
        io.signal(SHOWN_MODE)[0] = f64::from(mode.number());
        *io.write(TEMPERATURE) = Real { value: self.temperature_deg_c };
        *io.write(STATE) = OvenState {
            temperature_deg_c: self.temperature_deg_c,
            power_w: self.power_w,
            mode: mode.into(),
            reserved: [0; 7],
        };
        if self.temperature_deg_c > self.limit_deg_c {
            let (is, limit) = (self.temperature_deg_c, self.limit_deg_c);
            return Err(fault!("{is:.1} deg C, limit_deg_c is {limit:.1}; lower the setpoint"));
        }
        Ok(())
    }

    /// A stop waits until this is true, 2 s at most.
    fn at_rest(&self) -> bool {
        self.power_w == 0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sinew_core::NodeFixture;
    use sinew_core::catalogue::ParameterValue;

    use super::*;

    /// An oven with nothing around it, updated once a second.
    fn oven(limit_deg_c: f64) -> NodeFixture {
        // One value for each row of `parameters`.
        let values = [ParameterValue::Number(limit_deg_c)];
        let parameters = Parameters::alone(&OVEN, &values, Duration::from_secs(1));
        NodeFixture::new(&NODE, &parameters).expect("it can be made")
    }

    #[test]
    fn power_makes_it_hot() {
        let mut oven = oven(250.0);
        oven.put(POWER, &Real { value: 1000.0 });
        oven.update().expect("30 deg C");
        let state = oven.get::<OvenState>(STATE).expect("it writes in each cycle");
        assert_eq!((state.temperature_deg_c, state.mode.get()), (30.0, Some(Mode::Heat)));
        assert_eq!(oven.signal(SHOWN_TEMPERATURE), [30.0]);
    }

    #[test]
    fn its_safe_value_is_no_power() {
        let mut oven = oven(250.0);
        oven.put(POWER, &Real { value: 1000.0 });
        oven.update().expect("30 deg C");
        assert!(!oven.at_rest());
        oven.put_safe(POWER, &Real::default());
        oven.update().expect("it cools");
        assert!(oven.at_rest());
    }

    #[test]
    fn too_hot_is_a_fault() {
        let mut oven = oven(40.0);
        oven.put(POWER, &Real { value: 3000.0 });
        let fault = oven.update().expect_err("50 deg C");
        assert_eq!(fault.text(), "50.0 deg C, limit_deg_c is 40.0; lower the setpoint");
    }
}
