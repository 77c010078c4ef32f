//! The keys under which hosts send.

/// The key of what a port sends: `sinew/<graph>/<host>/<node>/<port>/<hash of the type>`. Nodes in
/// blocks have `/` in their names, and so their keys have more parts.
pub fn message_key(graph: &str, host: &str, node: &str, port: &str, hash: u32) -> String {
    format!("sinew/{graph}/{host}/{node}/{port}/{hash:08x}")
}

/// The key under which a host sends its stamps.
pub fn stamp_key(graph: &str, host: &str) -> String {
    format!("sinew/{graph}/{host}/@stamp")
}

/// The key of the calls of host `caller` for an input of a node of this host:
/// `sinew/<graph>/<host>/@call/<caller>/<node>/<input>`.
pub fn call_key(graph: &str, host: &str, caller: &str, node: &str, input: &str) -> String {
    format!("sinew/{graph}/{host}/@call/{caller}/{node}/{input}")
}

/// The number of a host, from its name, or of a key: FNV-1a, 64 bits
/// (<http://www.isthe.com/chongo/tech/comp/fnv/>).
pub fn number(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    /// The published test vectors.
    #[test]
    fn numbers_are_those_of_fnv() {
        let vectors = [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c)];
        for (text, number) in vectors.into_iter().chain([("foobar", 0x8594_4171_f739_67e8)]) {
            assert_eq!(super::number(text), number, "{text}");
        }
    }
}
