//! Kind `dashboard`: shows the run on a web page, and carries out orders of people who have its
//! token.
//!
//! There are two threads. The node's thread polls the run thirty times a second and makes one frame
//! for all viewers (`cycles`, `frame`). The server's thread talks to the viewers (`server`,
//! `viewer`). They meet in the `hub`, where neither waits for the other: a slow viewer misses
//! frames and delays nobody. The messages are described in [`protocol`].

mod arm;
mod captures;
mod cycles;
mod document;
mod figures;
mod frame;
mod hello;
mod hub;
mod orders;
mod page;
mod ports;
pub mod protocol;
pub mod recorded;
mod scope_picture;
mod scopes;
mod server;
mod shows;
mod tapped;
mod viewer;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::extract::ws::close_code;
use sinew_control::Request;
use sinew_control::status::Phase;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::clock::now_ns;
use sinew_core::{Fault, Message, Parameters, fault};
use sinew_pictures::messages::Picture;
use sinew_robot::messages::PlannerCommand;
use sinew_runtime::service::tell;
use sinew_runtime::watch::Watch;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

use self::hub::{Closing, Hub, Owner};
use self::protocol::Arm;
use self::shows::Shows;
use crate::hosts::Hosts;

const IMAGE: usize = 0;
const COMMAND: usize = 1;

/// Interval between two polls of the run while there are viewers: 30 Hz.
const SPACING: Duration = Duration::from_nanos(1_000_000_000 / 30);
/// The same without viewers. The core keeps its records for two seconds.
const SPACING_ALONE: Duration = Duration::from_millis(100);

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "dashboard",
    runs_in: RunsIn::Observer,
    doc: "The run on a web page: the arm, the graph with live figures, latencies, drives, domains, \
          events; with the token also orders and the ways of packets. It prints its address with \
          the token when it starts. Everyone who reaches the address sees the run; orders need the \
          token.",
    ports: &[
        Port::input("image", "Frames of a camera.", Picture::TYPE).optional(),
        Port::output("command", "Commands of users to the planner.", PlannerCommand::TYPE)
            .optional(),
    ],
    parameters: &[
        Parameter::new("listen", ParameterType::Text).or("127.0.0.1:8600").doc(
            "Address and port of the page; port 0 takes a free one. Any but a loopback address \
             lets other machines in, without encryption.",
        ),
        Parameter::new("hosts", ParameterType::Texts { max: 16 }).or("[]").doc(
            "Further names under which browsers may call it, such as robot.local, or \
             arm.example:443 for a proxy.",
        ),
        Parameter::new("arm", ParameterType::Text)
            .or("")
            .doc("URDF of the arm that the page draws; empty for none."),
        Parameter::new("viewers_max", ParameterType::Integer { min: 1, max: 1000 })
            .or("64")
            .doc("Most pages that may be open at the same time."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let listen = parameters.text("listen");
    let address = listen.parse().map_err(|_| {
        fault!(
            "listen: '{listen}' is not an address with a port; expected one such as 127.0.0.1:8600"
        )
    })?;
    let arm = match parameters.text("arm") {
        "" => None,
        file => Some(arm::read(&parameters.base.join(file))?),
    };
    let hosts = parameters.texts("hosts").to_vec();
    if let Some(bad) = hosts.iter().find(|name| !Hosts::is_name(name)) {
        return Err(fault!("hosts: '{bad}' is not a name; expected one such as robot.local"));
    }
    Ok(Box::new(Dashboard {
        address,
        hosts,
        arm,
        viewers_max: parameters.integer("viewers_max") as usize,
        listener: None,
    }))
}

struct Dashboard {
    address: SocketAddr,
    hosts: Vec<String>,
    arm: Option<Arm>,
    viewers_max: usize,
    listener: Option<TcpListener>,
}

impl Service for Dashboard {
    fn start(&mut self) -> Result<(), Fault> {
        let listener = TcpListener::bind(self.address).map_err(|error| {
            let address = self.address;
            fault!(
                "cannot listen at {address}: {error}; stop the program that does, or change \
                 'listen'"
            )
        })?;
        self.listener = Some(listener);
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let listener = self.listener.take().expect("start comes before run");
        let address = listener.local_addr().map_err(|error| fault!("its own address: {error}"))?;
        let hosts = Hosts::new(address, &self.hosts);
        let name = io.name().to_owned();
        let watch = io.watch();
        let hello = hello::hello(watch.plan(), &watch.spec().file, self.arm.clone(), &name);
        let owner = Owner {
            secret: watch.secret().to_owned(),
            supervisor: watch.supervisor().clone(),
            viewers_max: self.viewers_max,
        };
        let hub = Arc::new(Hub::new(&hello, owner));
        announce(watch, &hosts)?;
        let (handle, server) = server::start(listener, Arc::clone(&hub), hosts)
            .map_err(|error| fault!("no thread for the viewers: {error}"))?;
        let mut shows = Shows::new(watch, &hello, Arc::clone(&hub), handle);
        let looked = look(io, &mut shows, &hub, &server);
        hub.closing.send_replace(Some(last_word(io.watch(), &looked)));
        // It has told the viewers, or given up on them, within a second or so.
        let served = server.join();
        looked.and(served.map_err(|_| fault!("a bug: the thread of the viewers panicked")))
    }
}

/// Polls the run until the service must end.
fn look(
    io: &mut ServiceIo,
    shows: &mut Shows,
    hub: &Hub,
    server: &JoinHandle<()>,
) -> Result<(), Fault> {
    let mut due_ns = now_ns();
    loop {
        let spacing = if hub.viewers() > 0 { SPACING } else { SPACING_ALONE };
        // Absolute times keep the rate; a late poll sets a new start, and is not made up for.
        due_ns = now_ns().max(due_ns + spacing.as_nanos() as u64);
        if !io.wait(Duration::from_nanos(due_ns.saturating_sub(now_ns()))) {
            return Ok(());
        }
        if server.is_finished() {
            return Err(fault!("a bug: the thread of the viewers ended"));
        }
        shows.look(io)?;
    }
}

/// Tells people the address of the page, and what they should know about it.
fn announce(watch: &Watch, hosts: &Hosts) -> Result<(), Fault> {
    let (shown, secret) = (hosts.shown(), watch.secret());
    let address = format!("http://{shown}/#token={secret}");
    watch.supervisor().order(&Request::Announce { address }).map_err(|text| fault!("{text}"))?;
    if hosts.is_beyond_loopback() {
        tell(
            "other machines reach the page too: everyone there can see the run, and whoever has \
             the token can command it; nothing is encrypted",
        );
    }
    if let Some(missing) = page::MISSING {
        tell(format_args!("the page is not in this program: {missing}"));
    }
    Ok(())
}

/// What viewers are told when the service ends: whether to connect again.
fn last_word(watch: &Watch, looked: &Result<(), Fault>) -> Closing {
    let goes_on = match watch.supervisor().status() {
        Ok(status) => looked.is_err() || status.phase != Phase::Stopping,
        // The supervisor is gone, and all its processes end with it.
        Err(_) => false,
    };
    match goes_on {
        true => Closing { code: close_code::AWAY, text: "the dashboard ends; open the page again" },
        false => Closing { code: close_code::NORMAL, text: "the run has ended" },
    }
}
