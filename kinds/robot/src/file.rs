//! Reads files for nodes, up to a limit of bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file. The length of the file is not used: a device reports none and may never
/// end.
///
/// # Errors
/// Why it cannot be read, or that it has more than `bytes_max` bytes.
pub(crate) fn read(file: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let all = File::open(file).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    match all.map_err(|error: io::Error| error.to_string())? as u64 > bytes_max {
        true => Err(format!("more than {bytes_max} bytes, the limit for such a file")),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_is_refused() {
        let refused = read(Path::new("/dev/zero"), 1000);
        assert_eq!(refused, Err("more than 1000 bytes, the limit for such a file".to_owned()));
    }
}
