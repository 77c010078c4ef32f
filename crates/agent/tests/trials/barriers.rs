//! On the processors on which most developers build, loads and stores stay in order without
//! barriers, and the emulator runs on these. So the test reads the guest's code itself to see
//! whether it has the barriers that an Arm core needs.

use std::io::ErrorKind;
use std::process::Command;

use crate::life::{image, skip};

const OBJDUMP: &str = "arm-none-eabi-objdump";

/// A function of the guest that contains the code of links, and the least count of its barriers.
struct Expected {
    function: &'static str,
    barriers: usize,
    /// What these barriers are for.
    why: &'static str,
}

const EXPECTED: [Expected; 4] = [
    Expected {
        function: "sinew_guest::link::put",
        barriers: 3,
        why: "there is room (acquire), the message is published, in either layout (release)",
    },
    Expected {
        function: "sinew_guest::link::take",
        barriers: 3,
        why: "the message is whole, in either layout (acquire), its slot is free (release)",
    },
    Expected {
        function: "sinew_guest::link::Link::send",
        barriers: 1,
        why: "what was published comes before the look at who sleeps (the bell's fence)",
    },
    Expected {
        function: "sinew_link::wait::<impl sinew_link::region::End<M>>::wait_on",
        barriers: 2,
        why: "the signal (acquire), the word of who sleeps before its last look (fence)",
    },
];

fn disassembly() -> Option<String> {
    let image = image("trials")?;
    let all = Command::new(OBJDUMP).args(["-d", "-C", "--no-show-raw-insn"]).arg(image).output();
    match all {
        Ok(all) => Some(String::from_utf8_lossy(&all.stdout).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(&format!("'{OBJDUMP}' is not on the PATH"));
            None
        }
        Err(error) => panic!("{OBJDUMP}: {error}"),
    }
}

/// `dmb` in the functions of this name; `None` if there is none of them.
fn barriers(code: &str, function: &str) -> Option<usize> {
    let bodies = code.split("\n\n").filter(|body| {
        body.trim_start()
            .lines()
            .next()
            .is_some_and(|head| head.ends_with(">:") && head.contains(function))
    });
    let count = |body: &str| body.lines().filter(|line| line.contains("\tdmb\t")).count();
    bodies.map(count).reduce(|all, more| all + more)
}

/// The functions that have too few barriers, with the reason.
fn lacks(code: &str) -> Vec<String> {
    let lack = |it: &Expected| {
        let Expected { function, barriers: least, why } = it;
        match barriers(code, function) {
            Some(found) if found >= *least => None,
            found => Some(format!("{function}: {found:?} dmb, expected {least}: {why}")),
        }
    };
    EXPECTED.iter().filter_map(lack).collect()
}

#[test]
fn the_guests_links_have_the_barriers_of_their_core() {
    let Some(code) = disassembly() else { return };
    let lacks = lacks(&code);
    assert!(lacks.is_empty(), "{}", lacks.join("\n"));
}

#[test]
fn code_without_a_barrier_is_noticed() {
    let Some(code) = disassembly() else { return };
    let without: String = code
        .lines()
        .filter(|line| !line.contains("\tdmb\t"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(lacks(&without).len(), EXPECTED.len());
    assert_eq!(barriers(&code, "no such function"), None);
}
