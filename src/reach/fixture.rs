//! The status of a run with nothing remarkable in it, for tests that change what they are about.

use sinew_runtime::status::{
    DomainRole, DomainState, DomainStatus, Phase, PrivilegesStatus, Status, ThreadStatus,
};

/// A run of these domains.
pub(crate) fn status(domains: Vec<DomainStatus>) -> Status {
    Status {
        graph: "arm".into(),
        file: "arm.yaml".into(),
        pid: 4711,
        phase: Phase::Running,
        elapsed_ms: 0,
        domains,
        links: vec![],
        notes: vec![],
        stop: None,
    }
}

/// A domain that runs, without threads and nodes.
pub(crate) fn domain(name: &str, role: DomainRole) -> DomainStatus {
    DomainStatus {
        name: name.into(),
        role,
        state: DomainState::Running,
        pid: Some(4712),
        user: "robot".into(),
        up_ms: 0,
        restarts: 0,
        last_reason: None,
        next_restart_ms: None,
        address: None,
        resident_kib: None,
        threads: vec![],
        nodes: vec![],
        limits: vec![],
    }
}

/// A thread on a CPU of its own that has not yet had a cycle.
pub(crate) fn thread(cpu: u32) -> ThreadStatus {
    ThreadStatus {
        records_lost: 0,
        cycles: 0,
        overruns: 0,
        skipped: 0,
        latency_ns_last: None,
        latency_ns_max: None,
        cpu: Some(cpu),
        priority: 80,
        privileges: PrivilegesStatus {
            asked: String::new(),
            obtained: String::new(),
            missing: vec![],
        },
    }
}
