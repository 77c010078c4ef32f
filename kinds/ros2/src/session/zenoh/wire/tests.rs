//! Compares with examples of rmw_zenoh's docs/design.md, and with hashes of xxHash's C library.

use ros2_client::qos::WhenFull;

use super::*;
use crate::messages::{Twist, Vector3};

const STRING: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

fn subject() -> Subject {
    let type_name = "std_msgs::msg::dds_::String_".into();
    Subject { name: "/chatter".into(), type_name, hash: STRING.into() }
}

fn reliable(depth: usize) -> QosProfile {
    QosProfile::default()
        .reliability_reliable(WhenFull::DEFAULT)
        .history(History::KeepLast { depth })
}

#[test]
fn tokens_are_those_of_the_document_but_for_the_numbers_of_their_ends() {
    let node = |name| NodeName::new("/", name).expect("a name");
    let zid = "aac3178e146ba6f1fc6e6a4085e77f21";
    let listener = token(2, zid, 0, "NN", &node("listener"), None);
    assert_eq!(listener, "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/0/NN/%/%/listener");
    let zid = "8b20917502ee955ac4476e0266340d5c";
    let about = Some((&subject(), qos_text(&reliable(7))));
    let talker = token(2, zid, 10, "MP", &node("talker"), about);
    let expected = format!(
        "@ros2_lv/2/8b20917502ee955ac4476e0266340d5c/0/10/MP/%/%/talker/%chatter/\
         std_msgs::msg::dds_::String_/{STRING}/::,7:,:,:,,"
    );
    assert_eq!(talker, expected);
    let hex = |gid: [u8; 16]| gid.map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(hex(gid(&listener)), "49877999dacb858702d11ac823785912");
    assert_eq!(hex(gid(&talker)), "ac170f31eadcd9ff0cd86d7a17907d1c");
    let deep = NodeName::new("/yard/east", "cart").expect("a name");
    let deep = token(0, zid, 0, "NN", &deep, None);
    assert!(deep.ends_with("/NN/%/%yard%east/cart"), "{deep}");
}

#[test]
fn only_what_is_not_usual_of_a_qos_is_written() {
    assert_eq!(qos_text(&reliable(10)), "::,10:,:,:,,");
    assert_eq!(qos_text(&reliable(42)), "::,:,:,:,,");
    let kept = reliable(1).durability(Durability::TransientLocal);
    assert_eq!(qos_text(&kept), ":1:,1:,:,:,,");
    assert_eq!(qos_text(&reliable(1000).reliability_best_effort()), "2::,1000:,:,:,,");
}

#[test]
fn keys_have_the_name_without_its_slash() {
    assert_eq!(subject().key(5), format!("5/chatter/std_msgs::msg::dds_::String_/{STRING}"));
    assert_eq!(subject().key_of_all(5), "5/chatter/*/*");
    assert_eq!(heard("5/chatter/*/*"), "5$*/chatter/*/*");
    assert!(is_in(5, "5/chatter/a/b") && !is_in(5, "51/chatter/a/b") && !is_in(5, "5"));
}

#[test]
fn an_attachment_has_33_bytes_and_what_is_none_is_refused() {
    let attachment = Attachment { number: 7, sent_unix_ns: 0x0102_0304_0506_0708, gid: [0xab; 16] };
    let bytes = attachment.write();
    let expected = [&[7, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 16][..], &[0xab; 16]];
    assert_eq!(bytes, expected.concat());
    assert_eq!(Attachment::read(&bytes), Some(attachment));
    assert_eq!(Attachment::read(&bytes[..32]), None);
    assert_eq!(Attachment::read(&[]), None);
    let mut other = bytes.clone();
    other[16] = 15;
    assert_eq!(Attachment::read(&other), None, "a gid of another length");
    other = bytes;
    other[7] = 0x80;
    assert_eq!(Attachment::read(&other), None, "a negative number");
}

#[test]
fn bytes_say_how_they_are_written() {
    let twist = Twist { linear: Vector3 { x: 0.5, y: 0.0, z: 0.0 }, ..Twist::default() };
    let mut bytes = bytes_of(&twist).expect("it is short");
    assert_eq!(message_of(&bytes), Some(twist));
    bytes[1] = 0;
    bytes[4..].chunks_mut(8).for_each(<[u8]>::reverse);
    assert_eq!(message_of(&bytes), Some(twist), "the greatest byte first");
    bytes[1] = 7;
    assert_eq!(message_of::<Twist>(&bytes), None, "in another way than CDR");
    assert_eq!(message_of::<Twist>(&bytes[..3]), None);
}
