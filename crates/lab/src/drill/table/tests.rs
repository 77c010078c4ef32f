//! The table is complete, and says about each drill what follows from the graph.

use sinew_runtime::Kinds;

use super::*;
use crate::drill::{Only, arm as compiled, short, table};
use crate::scenario;

fn arm() -> Plan {
    compiled(&table(&scenario::table(&Kinds::default())), &[0, 1]).expect("the arm compiles").plan
}

/// The drill of a subject, by its name, and a fault.
fn find(plan: &Plan, name: &str, fault: DrilledFault) -> Drill {
    let mut drills = all(plan).into_iter();
    let drill = drills.find(|it| it.subject.name(plan) == name && it.fault == fault);
    drill.unwrap_or_else(|| panic!("no drill {name} {}", fault.word()))
}

#[test]
fn every_node_has_every_fault_and_so_has_every_domain_and_every_link_that_crosses() {
    let plan = arm();
    let drills = all(&plan);
    for (node, planned) in plan.nodes.iter().enumerate() {
        for fault in OF_NODES {
            let is_it = |it: &&Drill| it.subject == Subject::Node(node) && it.fault == fault;
            assert_eq!(drills.iter().filter(is_it).count(), 1, "{} {fault:?}", planned.name);
        }
    }
    let crossing = plan.links.iter().filter(|link| !link.fused).count();
    assert_eq!(crossing, 2);
    let expected =
        OF_NODES.len() * plan.nodes.len() + OF_DOMAINS.len() * plan.domains.len() + 3 * crossing;
    assert_eq!(drills.len(), expected);
    // Lasting faults are only for services and hosts, and some faults are only for guests.
    let elsewhere = |fault: &DrilledFault| {
        fault.lasts() || OF_GUESTS.contains(fault) || network::row_of(*fault).is_some()
    };
    let has = |fault: &DrilledFault| elsewhere(fault) || drills.iter().any(|it| it.fault == *fault);
    let of_all = DrilledFault::ALL.iter().all(has);
    assert!(of_all, "a fault that nothing can have");
}

#[test]
fn what_is_not_carried_out_says_why() {
    let plan = arm();
    let left_out: Vec<_> = all(&plan).into_iter().filter(|it| it.obstacle.is_some()).collect();
    let names: Vec<_> = left_out.iter().map(|it| (it.subject.name(&plan), it.fault)).collect();
    assert_eq!(names, [("drives".to_string(), DrilledFault::NotFinite)]);
}

#[test]
fn the_bar_is_two_cycles_and_what_watches_then() {
    let plan = arm();
    let rule = |name, fault| find(&plan, name, fault).rule;
    assert_eq!(rule("ik", DrilledFault::Panic), Rule::AtOnce);
    assert_eq!(rule("ik", DrilledFault::Kill), Rule::Guard(50));
    assert_eq!(rule("control", DrilledFault::Stop), Rule::Guard(50));
    assert_eq!(rule("ethercat->drives", DrilledFault::Stalled), Rule::Guard(50));
    assert_eq!(rule("ethercat->drives", DrilledFault::Hostile), Rule::Watchdog(100));
    assert_eq!(rule("drives->ethercat", DrilledFault::Stalled), Rule::Policy(50));
    assert_eq!(rule("ik", DrilledFault::LateBorne), Rule::GoesOn);
    assert_eq!(rule("control", DrilledFault::Freeze30), Rule::GoesOn);
    assert_eq!(rule("control", DrilledFault::Freeze50), Rule::Either(50));
    assert_eq!(rule("control", DrilledFault::Freeze80), Rule::Guard(50));
    assert_eq!(rule("plant", DrilledFault::Freeze1000), Rule::Late(1000));
    assert!(matches!(rule("drives", DrilledFault::Kill), Rule::NotMeasured(_)));
    assert_eq!(Rule::Guard(50).cycles(), Some(52));
    assert_eq!(
        find(&plan, "ik", DrilledFault::Late).injected.map(|it| it.1),
        Some(InjectedFault::Late { cycles: 60 })
    );
}

#[test]
fn a_link_that_stalls_is_a_fault_where_its_reader_awaits_it() {
    let plan = arm();
    let expected = |name| find(&plan, name, DrilledFault::Stalled).expected;
    assert_eq!(expected("drives->ethercat"), Expected::Faulted(None));
    // Whether the drives' silence is a fault is for the master to decide.
    assert_eq!(expected("ethercat->drives"), Expected::Either);
}

#[test]
fn the_short_form_has_every_fault_of_every_domain() {
    let plan = arm();
    let drills = short(all(&plan), &plan);
    for domain in 0..plan.domains.len() {
        for fault in OF_NODES {
            let is_it = |it: &&Drill| {
                matches!(it.subject, Subject::Node(_))
                    && it.subject.domain(&plan) == domain
                    && it.fault == fault
            };
            // No output of the drives holds numbers.
            let possible = usize::from(domain == 0 || fault != DrilledFault::NotFinite);
            assert_eq!(drills.iter().filter(is_it).count(), possible, "{domain} {fault:?}");
        }
    }
}

#[test]
fn a_choice_adds_subjects_and_names_faults() {
    let plan = arm();
    let pick = |texts: &[&str]| {
        let texts: Vec<_> = texts.iter().map(ToString::to_string).collect();
        let picked = Only::parse(&texts, &plan)?.pick(all(&plan), &plan)?;
        Ok::<_, String>(picked.len())
    };
    assert_eq!(pick(&[]), Ok(all(&plan).len()));
    assert_eq!(pick(&["node=ik,fault=panic"]), Ok(1));
    assert_eq!(pick(&["node=ik,planner,fault=panic,kill"]), Ok(4));
    assert_eq!(pick(&["node=ik", "domain=control", "fault=kill"]), Ok(2));
    assert_eq!(pick(&["link=ethercat->drives"]), Ok(3));
    assert_eq!(pick(&["domain=control,fault=freeze"]), Ok(4), "a family of faults");
    assert_eq!(pick(&["node=ik,fault=late"]), Ok(1), "no family");
    for (text, words) in [
        ("node=elbow", "there are: planner, ik, ethercat, drives"),
        ("fault=sneeze", "expected one of panic, error"),
        ("colour=red", "node, domain, link, host, fault"),
        ("ik", "expected AXIS=VALUE"),
        ("", "expected AXIS=VALUE"),
        ("domain=control,fault=panic", "no drill matches all of it"),
    ] {
        let error = pick(&[text]).expect_err(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}
