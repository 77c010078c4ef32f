//! The types against the public ones: names, hashes and bytes.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ros2_client::dds::rustdds::{CDRDeserializerAdapter, CDRSerializerAdapter};
use ros2_client::dds::rustdds::{RepresentationIdentifier, no_key};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::definition::{Definition, RosMessage};

/// The hashes as public code and logs show them.
const HASHES: [(&Definition, &str); 11] = [
    (Time::DEFINITION, "RIHS01_b106235e25a4c5ed35098aa0a61a3ee9c9b18d197f398b0e4206cea9acf9c197"),
    (Header::DEFINITION, "RIHS01_f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01"),
    (
        JointState::DEFINITION,
        "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e",
    ),
    (
        PoseStamped::DEFINITION,
        "RIHS01_10f3786d7d40fd2b54367835614bff85d4ad3b5dab62bf8bca0cc232d73b4cd8",
    ),
    (Twist::DEFINITION, "RIHS01_9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a"),
    (
        TwistStamped::DEFINITION,
        "RIHS01_5f0fcd4f81d5d06ad9b4c4c63e3ea51b82d6ae4d0558f1d475229b1121db6f64",
    ),
    (
        TransformStamped::DEFINITION,
        "RIHS01_0a241f87d04668d94099cbb5ba11691d5ad32c2f29682e4eb5653424bd275206",
    ),
    (
        TFMessage::DEFINITION,
        "RIHS01_e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087",
    ),
    (Image::DEFINITION, "RIHS01_d31d41a9a4c4bc8eae9be757b0beed306564f7526c88ea6a4588fb9582527d47"),
    (
        DiagnosticArray::DEFINITION,
        "RIHS01_5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e",
    ),
    (
        JointTrajectory::DEFINITION,
        "RIHS01_179b33eba59d676f6d967ac71fe35e7ca2f64b2f3928f4a018cec115e213796e",
    ),
];

#[test]
fn hashes_are_those_that_others_compute() {
    for (definition, hash) in HASHES {
        assert_eq!(definition.hash(), hash, "{}", definition.full_name());
    }
}

/// A message as bytes, with the four bytes in front that say how it is encoded.
fn bytes_of<M: Serialize>(message: &M) -> Vec<u8> {
    let bytes = <CDRSerializerAdapter<M> as no_key::SerializerAdapter<M>>::to_bytes(message);
    let head = [0, 1, 0, 0].into_iter();
    head.chain(bytes.expect("it can be written").iter().copied()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn header() -> Header {
    Header { stamp: Time { sec: 1, nanosec: 2 }, frame_id: "base".into() }
}

fn joint_state() -> JointState {
    let name = vec!["j1".into(), "j2".into()];
    JointState { header: header(), name, position: vec![0.5, -1.0], ..JointState::default() }
}

#[test]
fn a_joint_state_has_these_bytes() {
    let expected = "00010000010000000200000005000000626173650000000002000000030000006a3100000300\
                    00006a3200000200000000000000000000000000e03f000000000000f0bf0000000000000000";
    assert_eq!(hex(&bytes_of(&joint_state())), expected);
}

fn pose() -> Pose {
    let orientation = Quaternion { x: 0.0, y: 0.0, z: 0.6, w: 0.8 };
    Pose { position: Point { x: 1.0, y: -2.0, z: 3.5 }, orientation }
}

fn twist() -> Twist {
    let linear = Vector3 { x: 0.1, y: 0.2, z: 0.3 };
    Twist { linear, angular: Vector3 { x: -1.0, y: 0.0, z: 1e-9 } }
}

fn transforms() -> TFMessage {
    let Pose { orientation: rotation, .. } = pose();
    let transform = Transform { translation: twist().linear, rotation };
    let child_frame_id = "tool_7".into();
    let one = TransformStamped { header: header(), child_frame_id, transform };
    TFMessage { transforms: vec![one.clone(), TransformStamped::default(), one] }
}

fn image() -> Image {
    Image {
        header: header(),
        height: 1,
        width: 3,
        encoding: "mono8".into(),
        is_bigendian: 0,
        step: 3,
        data: Bytes(vec![7, 8, 9]),
    }
}

fn diagnostics() -> DiagnosticArray {
    let values = vec![KeyValue { key: "a".into(), value: "1".into() }];
    let one = DiagnosticStatus {
        level: Byte(2),
        name: "cart: run".into(),
        message: "grüße".into(),
        hardware_id: String::new(),
        values,
    };
    DiagnosticArray { header: header(), status: vec![one.clone(), one] }
}

fn trajectory() -> JointTrajectory {
    let time_from_start = Duration { sec: 3, nanosec: 4 };
    let point = JointTrajectoryPoint {
        positions: vec![1.0, 2.0],
        time_from_start,
        ..JointTrajectoryPoint::default()
    };
    let joint_names = vec!["left".into(), "right".into()];
    JointTrajectory { header: header(), joint_names, points: vec![point.clone(), point] }
}

/// A message of each type that crosses a topic: its definition, its bytes, what it says.
fn all() -> Vec<(&'static Definition, Vec<u8>, Value)> {
    fn one<M: RosMessage + Serialize>(message: &M) -> (&'static Definition, Vec<u8>, Value) {
        (M::DEFINITION, bytes_of(message), serde_json::to_value(message).expect("it can be said"))
    }
    vec![
        one(&joint_state()),
        one(&image()),
        one(&pose()),
        one(&PoseStamped { header: header(), pose: pose() }),
        one(&twist()),
        one(&TwistStamped { header: header(), twist: twist() }),
        one(&transforms()),
        one(&diagnostics()),
        one(&trajectory()),
    ]
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
#[test]
fn rosbags_reads_what_is_written_and_has_the_same_hashes() {
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let good = Command::new(&python).args(["-c", "import rosbags"]).stderr(Stdio::null()).status();
    if !good.is_ok_and(|status| status.success()) {
        let missing =
            format!("'{python}' cannot import rosbags; name another in SINEW_TEST_PYTHON");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
        eprintln!("skipped: {missing}");
        return;
    }
    let all = all();
    let question: Vec<_> =
        all.iter().map(|(of, bytes, _)| json!([of.full_name(), hex(bytes)])).collect();
    let mut process = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rosbags_says.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python runs");
    let mut input = process.stdin.take().expect("it is piped");
    input.write_all(json!(question).to_string().as_bytes()).expect("it reads");
    drop(input);
    let output = process.wait_with_output().expect("it ends");
    let said: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said.len(), all.len());
    for ((of, bytes, value), said) in all.iter().zip(said) {
        let name = of.full_name();
        assert_eq!(said["hash"], of.hash(), "{name}");
        assert_eq!(said["value"], *value, "{name}");
        assert_eq!(said["bytes"], hex(bytes), "{name}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    fn read<M: DeserializeOwned>(bytes: &[u8]) -> Option<M> {
        let encoding = RepresentationIdentifier::CDR_LE;
        <CDRDeserializerAdapter<M> as no_key::DefaultDecoder<M>>::DECODER
            .decode_bytes(&bytes[4..], encoding)
            .ok()
    }
    use no_key::Decode;
    assert_eq!(read::<JointState>(&bytes_of(&joint_state())), Some(joint_state()));
    assert_eq!(read::<JointTrajectory>(&bytes_of(&trajectory())), Some(trajectory()));
    assert_eq!(read::<TFMessage>(&bytes_of(&transforms())), Some(transforms()));
    // A list that claims to be longer than the whole message.
    let mut bytes = bytes_of(&joint_state());
    bytes[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(read::<JointState>(&bytes), None);
}
