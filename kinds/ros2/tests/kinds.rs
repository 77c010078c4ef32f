//! A machine that is not the arm: a cart that turns and drives as it is told, within limits, and a
//! film of four points.

use std::time::Duration;

use sinew_core::catalogue::{Kind, Port, RunsIn, Signal};
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, message};
use sinew_media::{PictureHead, PixelFormat};
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

sinew_media::messages!(sinew_core::message);

message! {
    /// Where the two wheels and the cart are.
    pub struct CartState {
        /// Of the left and the right wheel; that of the left one counts the cycles.
        pub position_rad: [f64; 2],
        /// Of both wheels.
        pub velocity_rad_per_s: [f64; 2],
        /// Of the cart, in mm: not ROS's unit.
        pub place_mm: [f64; 3],
        /// How the cart is turned.
        pub orientation_xyzw: [f64; 4],
    }
    /// What the cart is to do.
    pub struct Drive {
        /// Forward.
        pub speed_m_per_s: f64,
        /// To the left.
        pub turn_rad_per_s: f32,
        /// Zero.
        pub reserved: u32,
    }
    /// What a `gauge` was told of a pose.
    pub struct Place {
        /// Where.
        pub position_m: [f64; 3],
        /// How it is turned.
        pub orientation_xyzw: [f64; 4],
    }
    /// What a `gauge` was told of two joints.
    pub struct Joints {
        /// Where they are.
        pub position_rad: [f64; 2],
        /// How fast they turn.
        pub velocity_rad_per_s: [f64; 2],
    }
    /// What a `gauge` was told of a trajectory.
    pub struct Way {
        /// Three points of both joints.
        pub position_rad: [f64; 6],
        /// When the joints are to be there.
        pub time_from_start_s: [f64; 3],
        /// How many of the points are in use.
        pub points: u64,
    }
    /// Settings of the cart.
    pub struct Tuning {
        /// Gain of the speed.
        pub gain: f64,
        /// Whether the lamp is lit.
        pub lamp: u64,
    }
}

/// The cart's greatest speed, whatever it is told.
const SPEED_MAX_M_PER_S: f64 = 1.0;
/// Without a new order for this many cycles the cart stops.
const CYCLES_MAX: u64 = 100;

static CART: Kind = Kind {
    name: "cart",
    runs_in: RunsIn::Realtime,
    doc: "A cart.",
    ports: &[
        Port::output("state", "Where it is.", CartState::TYPE),
        Port::input("drive", "What it is to do.", Drive::TYPE).optional(),
        Port::input("tuning", "How.", Tuning::TYPE).optional(),
    ],
    parameters: &[],
    signals: &[
        Signal::new("speed_m_per_s", "How fast.", "m/s", 1),
        Signal::new("turn_rad_per_s", "How fast it turns.", "rad/s", 1),
        Signal::new("orders", "Orders so far.", "", 1),
        Signal::new("gain", "Of the speed.", "", 1),
        Signal::new("lamp", "Whether it is lit.", "", 1),
    ],
};

pub(crate) const NODES: &[NodeEntry] = &[
    NodeEntry { kind: &CART, make: cart, safe: None },
    NodeEntry { kind: &GAUGE, make: gauge, safe: None },
];

fn cart(_: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Cart::default()))
}

#[derive(Default)]
struct Cart {
    cycles: u64,
    speed_m_per_s: f64,
    turn_rad_per_s: f64,
    orders: u64,
    ordered: u64,
}

impl Node for Cart {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        self.cycles += 1;
        if io.fresh(1) == Fresh::New {
            let drive: &Drive = io.read(1);
            self.speed_m_per_s = drive.speed_m_per_s.clamp(-SPEED_MAX_M_PER_S, SPEED_MAX_M_PER_S);
            self.turn_rad_per_s = f64::from(drive.turn_rad_per_s);
            (self.orders, self.ordered) = (self.orders + 1, self.cycles);
        }
        if self.cycles > self.ordered + CYCLES_MAX {
            (self.speed_m_per_s, self.turn_rad_per_s) = (0.0, 0.0);
        }
        let tuning: &Tuning = io.read(2);
        let (gain, lamp) = (tuning.gain, tuning.lamp as f64);
        let figures = [self.speed_m_per_s, self.turn_rad_per_s, self.orders as f64, gain, lamp];
        for (signal, figure) in figures.into_iter().enumerate() {
            io.signal(signal)[0] = figure;
        }
        *io.write::<CartState>(0) = CartState {
            position_rad: [self.cycles as f64, -1.5],
            velocity_rad_per_s: [0.25, 0.5],
            place_mm: [1000.0, 0.0, 250.0],
            orientation_xyzw: [0.0, 0.0, 1.001, 0.0],
        };
        Ok(())
    }
}

static GAUGE: Kind = Kind {
    name: "gauge",
    runs_in: RunsIn::Realtime,
    doc: "Shows what it is told.",
    ports: &[
        Port::input("pose", "A place.", Place::TYPE),
        Port::input("place", "Another place.", Place::TYPE),
        Port::input("joints", "Two joints.", Joints::TYPE),
        Port::input("way", "Their way.", Way::TYPE),
    ],
    parameters: &[],
    signals: &[
        Signal::new("pose", "x, y, z; x, y, z, w.", "", 7),
        Signal::new("place", "The same.", "", 7),
        Signal::new("joints", "Positions and velocities.", "", 4),
        Signal::new("way", "Positions, times, count.", "", 10),
    ],
};

fn gauge(_: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Gauge))
}

struct Gauge;

impl Node for Gauge {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        for port in [0, 1] {
            let Place { position_m, orientation_xyzw } = *io.read(port);
            io.signal(port)[..3].copy_from_slice(&position_m);
            io.signal(port)[3..].copy_from_slice(&orientation_xyzw);
        }
        let joints: Joints = *io.read(2);
        io.signal(2)[..2].copy_from_slice(&joints.position_rad);
        io.signal(2)[2..].copy_from_slice(&joints.velocity_rad_per_s);
        let way: Way = *io.read(3);
        io.signal(3)[..6].copy_from_slice(&way.position_rad);
        io.signal(3)[6..9].copy_from_slice(&way.time_from_start_s);
        io.signal(3)[9] = way.points as f64;
        Ok(())
    }
}

static FILM_KIND: Kind = Kind {
    name: "film",
    runs_in: RunsIn::Service,
    doc: "Red, green, blue and black, in two rows.",
    ports: &[Port::output("out", "A picture.", Picture::TYPE)],
    parameters: &[],
    signals: &[],
};

pub(crate) const FILM: ServiceEntry = ServiceEntry { kind: &FILM_KIND, make: film };

fn film(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(Film))
}

struct Film;

impl Service for Film {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        use sinew_core::zerocopy::IntoBytes;

        let head = PictureHead { width: 2, height: 2, ..PictureHead::default() };
        let head = head.packed(PixelFormat::Rgb24).expect("it is small");
        while io.wait(Duration::from_millis(20)) {
            if let Some(mut picture) = io.claim::<Picture>(0)? {
                picture.write_at(0, head.as_bytes());
                let points = [255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0];
                picture.write_at(size_of::<PictureHead>(), &points);
                picture.commit();
            }
        }
        Ok(())
    }
}
