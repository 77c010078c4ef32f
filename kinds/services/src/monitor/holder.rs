//! Finds the process that listens at a port, as far as the kernel shows it to this user.

use std::fs;
use std::path::Path;

/// State of a listening socket in /proc/net/tcp.
const LISTENS: &str = "0A";

/// The process in words; `None` if it is another user's or gone.
pub(super) fn of(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.iter().filter_map(|path| fs::read_to_string(path).ok());
    let sockets: Vec<String> = tables.flat_map(|table| listening(&table, port)).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    numbers.into_iter().find_map(|process| {
        let folder = format!("/proc/{process}");
        // The first word of its command line, as `ps` shows it: all domains of a run have the same
        // program.
        let name = holds(Path::new(&folder), &sockets)
            .then(|| fs::read(format!("{folder}/cmdline")).unwrap_or_default())?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        Some(format!("process {process} '{}'", String::from_utf8_lossy(name)))
    })
}

/// The sockets in a table of /proc/net that listen at the port, in the form that descriptors show.
fn listening(table: &str, port: u16) -> Vec<String> {
    let of_port = format!(":{port:04X}");
    let socket = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1)?.ends_with(&of_port) && *words.get(3)? == LISTENS;
        is_it.then(|| words.get(9).map(|inode| format!("socket:[{inode}]")))?
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// Whether a process has one of these sockets open.
fn holds(process: &Path, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    let links = descriptors.flatten().filter_map(|it| fs::read_link(it.path()).ok());
    links.into_iter().any(|link| sockets.iter().any(|socket| Path::new(socket) == link))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_process_that_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let holder = of(port).expect("this process");
        assert!(holder.starts_with(&format!("process {} '", std::process::id())), "{holder}");
    }

    #[test]
    fn only_who_listens_at_the_port_counts() {
        let table = "  sl  local_address rem_address   st queues timer retrnsmt uid timeout inode\n\
             0: 0100007F:2580 00000000:0000 0A 00000000:00000000 00:00000000 0 0 0 77 1\n\
             1: 0100007F:2580 0100007F:9999 01 00000000:00000000 00:00000000 0 0 0 78 1\n\
             2: 0100007F:2581 00000000:0000 0A 00000000:00000000 00:00000000 0 0 0 79 1\n\
             3: cut";
        assert_eq!(listening(table, 9600), ["socket:[77]"]);
    }
}
