//! Kind `video_sink`: shows pictures when their time has come: on a page, as a stream of JPEGs over
//! HTTP, in a file.

mod outputs;
mod screen;
mod shown;
mod window;

use std::net::SocketAddr;
use std::path::PathBuf;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Fault, Message, Parameters, fault};
use sinew_pictures::messages::{Picture, PlayClock, PlayOrder};
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

use self::outputs::Outputs;
use self::screen::Screen;
use crate::hosts::Hosts;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "video_sink",
    runs_in: RunsIn::Service,
    doc: "Shows pictures of a decoder or a camera in step with the sound; without a clock as they \
          come. It alone decides which are late, dropped or repeated, and shows the difference \
          between sound and picture. On a page, as a stream of JPEGs at /stream.mjpeg, in a file \
          of Motion JPEG. On the page one can pause, jump and change the speed, if its orders are \
          linked. Pictures are read where the link keeps them.",
    ports: &[
        Port::input("in", "Pictures.", Picture::TYPE),
        Port::input("clock", "What is heard.", PlayClock::TYPE).optional(),
        Port::output("orders", "Orders of the viewer.", PlayOrder::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new("listen", ParameterType::Text).or("127.0.0.1:8610").doc(
            "Address and port of the page; port 0 takes a free one; empty for none. Any but a \
             loopback address lets other machines in, without encryption.",
        ),
        Parameter::new("hosts", ParameterType::Texts { max: 16 })
            .or("[]")
            .doc("Further names under which browsers may call it, such as robot.local."),
        Parameter::new("quality", ParameterType::Integer { min: 1, max: 100 })
            .or("75")
            .doc("Of the JPEGs."),
        Parameter::new("file", ParameterType::Text).or("\"\"").doc(
            "Motion JPEG of all that was shown, relative to the folder of the spec; empty for \
             none. An existing one is replaced.",
        ),
        Parameter::new("log", ParameterType::Text).or("\"\"").doc(
            "CSV file with a line for every picture that was shown; empty for none. An existing \
             one is continued.",
        ),
        Parameter::new("at_end", ParameterType::Choice(&["stay", "repeat"]))
            .or("stay")
            .doc("What comes after the end of the film: its last picture, or its beginning."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let address = match parameters.text("listen") {
        "" => None,
        text => Some(text.parse().map_err(|_| {
            fault!(
                "listen: '{text}' is not an address with a port; expected such as 127.0.0.1:8610"
            )
        })?),
    };
    let hosts = parameters.texts("hosts").to_vec();
    if let Some(bad) = hosts.iter().find(|name| !Hosts::is_name(name)) {
        return Err(fault!("hosts: '{bad}' is not a name; expected one such as robot.local"));
    }
    let file = |name: &str| match parameters.text(name) {
        "" => None,
        _ => Some(parameters.path(name)),
    };
    Ok(Box::new(VideoSink {
        address,
        hosts,
        quality: parameters.integer("quality") as u8,
        file: file("file"),
        log: file("log"),
        repeats: parameters.text("at_end") == "repeat",
    }))
}

struct VideoSink {
    address: Option<SocketAddr>,
    hosts: Vec<String>,
    quality: u8,
    file: Option<PathBuf>,
    log: Option<PathBuf>,
    repeats: bool,
}

impl Service for VideoSink {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let mut outputs = Outputs::open(self.quality, self.file.as_deref(), self.log.as_deref())?;
        if let Some(address) = self.address {
            outputs.serve(address, &self.hosts)?;
        }
        let shown = Screen::new(outputs, self.repeats).run(io);
        shown.and_then(|mut outputs| outputs.flush())
    }
}
