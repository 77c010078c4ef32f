//! Lines, well and badly made, on their way to their reader.

use std::sync::atomic::Ordering;

use super::*;

fn said(text: &str, numbers: &[f64]) -> String {
    LogLine::new(7, 0, Level::Info, text, numbers).to_string()
}

/// The texts that are there now.
fn read(reader: &mut Reader) -> Vec<String> {
    let mut lines = Vec::new();
    reader.read(&mut |line| lines.push(line.to_string()));
    lines
}

#[test]
fn numbers_stand_where_the_text_says() {
    assert_eq!(said("{} rad, more than {:.3}", &[0.25, 1.0 / 3.0]), "0.25 rad, more than 0.333");
    assert_eq!(said("{:.0}{:.9}", &[0.6, 0.5]), "10.500000000");
    assert_eq!(said("{}, {}, {}", &[f64::NAN, f64::NEG_INFINITY, -0.0]), "NaN, -inf, -0");
    assert_eq!(said("{:.2} {:.2}", &[f64::NAN, f64::INFINITY]), "NaN inf");
    assert_eq!(said("{} {} {:.1}", &[1e300, -1e-300, -1e300]), "1e300 -1e-300 -1e300");
    assert_eq!(said("{} of {}", &[3.0, 0.0]), "3 of 0");
}

#[test]
fn a_text_that_does_not_fit_its_numbers_loses_none() {
    assert_eq!(said("{} and {}", &[1.0]), "1 and {}");
    assert_eq!(said("both", &[1.0, 2.5]), "both, 1, 2.5");
    assert_eq!(said("{:.x} {:.12} {:3} {{} {", &[1.0]), "{:.x} {:.12} {:3} {1 {");
    assert_eq!(said("", &[]), "");
    assert_eq!(said("{}{}{}{}{}", &[1.0; 5]), "1111{}", "of five numbers four");
}

#[test]
fn a_text_too_long_is_cut_at_a_character() {
    assert_eq!(said(&"µ".repeat(TEXT_MAX), &[]), "µ".repeat(TEXT_MAX / 2));
    assert_eq!(said(&"a".repeat(TEXT_MAX), &[]), "a".repeat(TEXT_MAX));
}

#[test]
fn lines_come_in_order_and_with_what_is_known_of_them() {
    let (region, mut reader) = open().expect("memfd");
    let mut writer = Writer::attach(region).expect("its own");
    writer.write(41, 2, Level::Warning, "{:.1} deg C", &[38.04]);
    writer.write(u64::MAX, 70_000, Level::Error, "over", &[]);
    let mut lines = Vec::new();
    reader
        .read(&mut |line| lines.push((line.cycle(), line.place(), line.level(), line.to_string())));
    let expected = [
        (41, 2, Level::Warning, "38.0 deg C".to_owned()),
        (u64::MAX, usize::from(u16::MAX), Level::Error, "over".to_owned()),
    ];
    assert_eq!((lines.as_slice(), reader.lost()), (&expected[..], 0));
    assert!(read(&mut reader).is_empty());
}

#[test]
fn of_too_many_lines_the_newest_are_kept_and_the_others_counted() {
    let (mut writer, mut reader) = open_here().expect("memory");
    let all = u64::from(LINES_MAX) + 9;
    (0..all).for_each(|number| writer.write(number, 0, Level::Info, "{}", &[number as f64]));
    let lines = read(&mut reader);
    let first = all - u64::from(LINES_MAX);
    assert!(lines.iter().zip(first..).all(|(line, number)| *line == number.to_string()));
    assert_eq!((lines.len(), reader.lost()), (LINES_MAX as usize, first));
}

#[test]
fn a_writer_goes_on_where_one_before_it_ended() {
    let (region, mut reader) = open().expect("memfd");
    for life in ["one", "two"] {
        let mut writer = Writer::attach(region.clone()).expect("its own");
        writer.write(0, 0, Level::Info, life, &[]);
    }
    assert_eq!(read(&mut reader), ["one", "two"]);
}

/// What a node that writes where it should not, or a process that lies, can leave.
#[test]
fn a_line_that_no_node_can_have_said_is_lost() {
    let good = LogLine::new(7, 0, Level::Info, "good", &[]);
    let bad: [LogLine; 6] = [
        LogLine { level: 0, ..good },
        LogLine { level: 4, ..good },
        LogLine { count: NUMBERS_MAX as u8 + 1, ..good },
        LogLine { len: TEXT_MAX as u8 + 1, ..good },
        LogLine { len: u8::MAX, ..good },
        LogLine { text: [0xff; TEXT_MAX], ..good },
    ];
    let (mut writer, mut reader) = open_here().expect("memory");
    for line in bad {
        // Showing such a line anyway does no harm either.
        let _ = (line.to_string(), line.level());
        writer.0.send(line.as_bytes());
    }
    writer.0.send(good.as_bytes());
    assert_eq!((read(&mut reader), reader.lost()), (vec!["good".to_owned()], 6));
}

#[test]
fn a_region_full_of_garbage_is_only_garbage() {
    for value in [1, 2, u32::MAX / 2, u32::MAX] {
        let (region, mut reader) = open().expect("memfd");
        for word in region.words() {
            // Relaxed: nobody else is there.
            word.store(value, Ordering::Relaxed);
        }
        for _ in 0..100 {
            assert!(read(&mut reader).len() <= LINES_MAX as usize);
        }
        assert!(Writer::attach(region).is_err(), "its header is garbage too");
    }
}

#[test]
fn a_level_survives_its_number() {
    for &(level, word) in Level::ALL {
        assert_eq!((Level::of(level as u8), level.word()), (Some(level), word));
    }
}
