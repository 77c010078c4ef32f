//! Hosts as the user wrote them.

use sinew_plan::plan::{self, HostTls};
use sinew_plan::{Entry, Span};

use crate::diagnostic::Report;
use crate::fields::{Fields, Named, check_name};
use crate::keys;

/// A host.
pub(crate) struct Host<'a> {
    pub(crate) name: Named<'a>,
    /// Where it names a router.
    pub(crate) router: Option<Span>,
    pub(crate) plan: plan::Host,
}

/// Reads a host.
pub(super) fn read<'a>(entry: &'a Entry, report: &'a Report) -> Host<'a> {
    let name = Named { text: &entry.key, span: entry.span };
    check_name(name, "a host's name", report);
    let fields = Fields::new(&entry.value, &keys::HOST, &[], entry.span, report);
    let address = fields.text("address").filter(|named| is_address(*named, false, report));
    let listen = fields.text("listen").filter(|named| is_address(*named, true, report));
    let router = fields.text("router").filter(|named| is_address(*named, false, report));
    if let (None, Some(listen)) = (address, listen) {
        let message =
            format!("host '{}' listens, but the other hosts do not know where", name.text);
        report.error(listen.span, message, "add 'address: NAME:PORT', where they reach it");
    }
    let text = |named: Named<'_>| named.text.to_owned();
    // All addresses of this machine, of both families, at the port that the other hosts know.
    let any = || {
        let port = address?.text.rsplit_once(':')?.1;
        Some(format!("[::]:{port}"))
    };
    Host {
        name,
        router: router.map(|named| named.span),
        plan: plan::Host {
            name: entry.key.clone(),
            span: entry.span,
            address: address.map(text),
            listen: listen.map(text).or_else(any),
            router: router.map(text),
            tls: fields.entry("tls").map(|_| tls(&fields.inner("tls"))),
            key: fields.text("key").map(text),
        },
    }
}

fn tls(fields: &Fields<'_>) -> HostTls {
    // A missing file is reported by the table.
    let file = |key| fields.text(key).map(|named| named.text.to_owned()).unwrap_or_default();
    HostTls { ca: file("ca"), certificate: file("certificate"), key: file("key") }
}

/// Whether a text is `NAME:PORT`, `1.2.3.4:PORT` or `[IPv6]:PORT`; reports one that is not.
fn is_address(Named { text, span }: Named<'_>, is_numeric: bool, report: &Report) -> bool {
    let good = text.rsplit_once(':').is_some_and(|(name, port)| {
        let is_v6 = name.starts_with('[') && name.ends_with(']');
        let plain = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
        let is_ip = plain.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_ipv6() == is_v6);
        let sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '.';
        let is_name = !is_numeric && !name.is_empty() && name.chars().all(sign);
        (is_ip || is_name) && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if !good {
        let message = format!("'{text}' is not an address of a host");
        let help = match is_numeric {
            true => "write one of its own addresses and a port from 1 to 65535: 0.0.0.0:7447",
            false => "write a name or an address, and a port from 1 to 65535: cell.local:7447",
        };
        report.error(span, message, help);
    }
    good
}

/// Reports the name of a host that the spec does not have.
pub(crate) fn unknown(named: Named<'_>, hosts: &[Host<'_>], report: &Report) {
    let message = format!("there is no host '{}'", named.text);
    report.error_with(named.span, || {
        let names = hosts.iter().map(|host| host.name.text);
        let help = match hosts.is_empty() {
            true => format!("add 'hosts: {{{}: {{address: NAME:PORT}}}}' to the graph", named.text),
            false => crate::nearest::suggest(named.text, names),
        };
        (message, help)
    });
}

/// The place for an error about the hosts as a whole.
pub(crate) fn place(hosts: &[Host<'_>]) -> Span {
    hosts.first().map_or(Span { source: 0, start: 0, len: 1 }, |host| host.name.span)
}
