//! With certificates: who joins, who does not, and who is told.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use sinew_hosts::message_key;
use sinew_zenoh::{HostState, Mirror, NotTaken, NotTakenCounts, Setting, TlsFiles};
use tempfile::TempDir;
use zenoh::{Session, Wait};

use crate::proxy::Proxy;
use crate::stage::{
    HASH, connected, dials, free_address, header, incoming, not_taken, numbers, outgoing, setting,
    turn, until, until_within,
};

/// An authority, and what it has signed.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let folder = tempfile::tempdir().expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let mut its = CertificateParams::new(vec![]).expect("no names");
        its.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        its.distinguished_name.push(DnType::CommonName, "the authority of a test");
        let certificate = its.self_signed(&key).expect("signed");
        fs::write(folder.path().join("authority.pem"), certificate.pem()).expect("written");
        Authority { folder, issuer: Issuer::new(its, key) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A certificate with this CN, valid until the end of this year.
    pub(crate) fn sign(&self, name: &str, file: &str, until_year: i32) -> TlsFiles {
        let key = KeyPair::generate().expect("a key");
        let mut its = CertificateParams::new(vec!["127.0.0.1".into()]).expect("an address");
        its.distinguished_name.push(DnType::CommonName, name);
        its.not_before = date_time_ymd(2000, 1, 1);
        its.not_after = date_time_ymd(until_year, 12, 31);
        its.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = its.signed_by(&key, &self.issuer).expect("signed");
        let [pem, of_key] = [format!("{file}.pem"), format!("{file}.key")].map(|it| self.path(&it));
        fs::write(&pem, certificate.pem()).expect("written");
        fs::write(&of_key, key.serialize_pem()).expect("written");
        TlsFiles { authority: self.path("authority.pem"), certificate: pem, key: of_key }
    }
}

fn pair(address: &str) -> (Setting, Setting) {
    let mut a = setting("a", Some(address), &[("b", None)]);
    let mut b = setting("b", None, &[("a", Some(address))]);
    b.outgoing.push(outgoing("x", 8));
    a.incoming.push(incoming("b", "x", 8, Some(1000)));
    (a, b)
}

#[test]
fn hosts_with_certificates_of_their_own_talk() {
    let (authority, address) = (Authority::new(), free_address());
    let (mut a, mut b) = pair(&address);
    a.tls = Some(authority.sign("a", "a", 2100));
    // With the graph's name, too, as for a router.
    b.tls = Some(authority.sign("g@b", "b", 2100));
    let (mut a, mut b) = (Mirror::open(&a).expect("a"), Mirror::open(&b).expect("b"));
    until("messages, stamps and tokens both ways", || {
        turn(&mut b, &[&1_u64.to_le_bytes()]);
        numbers(&mut a, 0);
        let seen = [&a, &b].map(|it| it.hosts().remove(0));
        let is_there = |it: &sinew_zenoh::HostSeen| it.state == HostState::Heard && it.is_alive;
        a.counted().incoming.received >= 10 && seen.iter().all(is_there)
    });
}

#[test]
fn an_own_certificate_that_nobody_would_take_is_told_at_once() {
    let (authority, other) = (Authority::new(), Authority::new());
    let good = authority.sign("a", "a", 2100);
    let missing = TlsFiles { key: authority.path("missing.key"), ..good.clone() };
    let foreign = TlsFiles { authority: good.authority.clone(), ..other.sign("a", "a", 2100) };
    let twins = TlsFiles { key: authority.sign("a", "twin", 2100).key, ..good.clone() };
    for (files, words) in [
        (missing, "missing.key': "),
        (authority.sign("a", "old", 2020), "old.pem': it was valid until Dec 31"),
        (authority.sign("c", "c", 2100), "its subject's CN is 'c', this host is 'a'"),
        (foreign, "invalid peer certificate: "),
        (twins, "twin.key' is not the key of"),
    ] {
        let mut setting = setting("a", Some(&free_address()), &[]);
        setting.tls = Some(files);
        let error = Mirror::open(&setting).err().unwrap_or_default();
        assert!(error.contains(words), "'{words}': {error}");
    }
}

/// Each puts a message under the key of b at a. Only the one with the certificate of b is heard.
#[test]
fn who_is_not_the_host_puts_nothing_under_its_key() {
    let (authority, other, address) = (Authority::new(), Authority::new(), free_address());
    let (mut a, _) = pair(&address);
    a.tls = Some(authority.sign("a", "a", 2100));
    let a = Mirror::open(&a).expect("a");
    let root = authority.path("authority.pem");
    let key = message_key("g", "b", "n", "x", HASH);
    let message = header("b", 5, &key).write(&[0; 8]);
    let puts = |session: &Session| {
        session.put(&key, message.clone()).wait().expect("it is sent");
        session.put("sinew/g/b/@stamp", "no stamp").wait().expect("it is sent");
    };

    let refused = [None, Some(other.sign("b", "b", 2100)), Some(authority.sign("b", "old", 2020))];
    let refused = refused.map(|it| dials(&address, &root, it.as_ref(), "peer"));
    let member = dials(&address, &root, Some(&authority.sign("c", "c", 2100)), "peer");
    until("another member is connected", || connected(&member) == 1);
    let end = Instant::now() + Duration::from_secs(1);
    until("the others have had time", || {
        refused.iter().chain([&member]).for_each(puts);
        Instant::now() > end
    });
    assert_eq!(a.not_taken()[0], NotTakenCounts::default());
    assert_eq!(a.hosts()[0].state, HostState::Unheard);

    // The same message from b itself.
    let real = dials(&address, &root, Some(&authority.sign("b", "real", 2100)), "peer");
    until("b is heard", || {
        puts(&real);
        [NotTaken::Early, NotTaken::Malformed].iter().all(|it| not_taken(&a, 0, *it) > 0)
    });
    refused.iter().for_each(|it| assert_eq!(connected(it), 0, "one of the others is connected"));
}

/// First datagrams of connections by strangers: each begins a handshake that never goes on.
fn hellos(count: usize, root: &Path) -> Vec<Vec<u8>> {
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = deaf.local_addr().expect("its address").to_string();
    deaf.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    let mut hellos: Vec<Vec<u8>> = vec![];
    let mut bytes = [0; 2000];
    while hellos.len() < count {
        // To close a session that dials takes ten seconds; this one ends with the test's process.
        std::mem::forget(dials(&address, root, None, "peer"));
        let len = deaf.recv(&mut bytes).expect("a first datagram");
        // A client says it again; what begins another connection has another name in it.
        if hellos.iter().all(|it| it[5..20] != bytes[5..20]) {
            hellos.push(bytes[..len].to_vec());
        }
    }
    // The sessions go on dialling: nobody else may get this port.
    std::mem::forget(deaf);
    hellos
}

/// Zenoh alone would wait 30 s for each of them before it takes the next connection.
#[test]
fn who_begins_a_handshake_and_does_not_go_on_locks_nobody_out() {
    let (authority, address) = (Authority::new(), free_address());
    let proxy = Proxy::of_datagrams_to(&address);
    let (mut a, mut b) = pair(&address);
    b.peers[0].address = Some(proxy.address.clone());
    a.tls = Some(authority.sign("a", "a", 2100));
    b.tls = Some(authority.sign("b", "b", 2100));
    let hellos = hellos(12, &authority.path("authority.pem"));
    let (a, b) = (Mirror::open(&a).expect("a"), Mirror::open(&b).expect("b"));
    let hear = || [&a, &b].iter().all(|it| it.hosts()[0].state == HostState::Heard);
    until("both are heard", hear);
    proxy.set_open([false; 2]);
    until("the line is cut", || a.hosts()[0].state == HostState::Silent);
    // Each stranger from a port of its own, as long as the host is not back.
    let mut sent = 0;
    let mut strangers = vec![];
    let mut send = || {
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
        stranger.send_to(&hellos[sent % hellos.len()], &address).expect("it is sent");
        sent += 1;
        strangers.push(stranger);
        std::thread::sleep(Duration::from_millis(20));
    };
    (0..hellos.len()).for_each(|_| send());
    proxy.set_open([true; 2]);
    until_within(Duration::from_secs(15), "both are heard again", || {
        send();
        hear()
    });
}
