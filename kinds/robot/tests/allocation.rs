//! No update of any kind allocates, from the first cycle to the last, and none allocates when it
//! faults.

mod support;

use allocation_counter::measure;
use sinew_robot::messages::{
    BaseState, CartesianTarget, PLANNER_CHOOSE, PLANNER_PAUSE, PLANNER_RESUME, PlannerCommand,
    TwistTarget,
};
use support::{Arm, IRB120, entry, port, signal, testing};

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

/// Proves that an allocation is counted; otherwise the other tests would prove nothing.
#[test]
fn an_allocation_is_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1u8]))), 1);
    assert_eq!(allocations(|| assert!(std::hint::black_box([1u8])[0] == 1)), 0);
}

#[test]
fn no_cycle_allocates() {
    let g_code = [("path", "plate.gcode"), ("work_origin_mm", "[290, -40, 340]")];
    for given in [&[("path", "square.csv"), ("laps", "2")], &g_code] {
        let mut arm = Arm::new(given, &[]).expect("makes");
        let mut cycles = 0;
        let count = allocations(|| {
            while !arm.is_finished() && cycles < 60_000 {
                arm.cycle().expect("runs");
                cycles += 1;
            }
        });
        assert!(arm.is_finished() && cycles > 1_000, "{cycles} cycles");
        assert_eq!(count, 0, "in {cycles} cycles");
    }
}

#[test]
fn no_command_allocates() {
    let given = [("path", "square.csv"), ("other_paths", "[square.csv]"), ("laps", "0")];
    let mut arm = Arm::new(&given, &[]).expect("makes");
    let commands = [
        (3_000, PLANNER_PAUSE, 0),
        (5_000, PLANNER_CHOOSE, 1),
        (6_000, u32::MAX, u32::MAX),
        (7_000, PLANNER_RESUME, 0),
    ];
    let mut paths = 0.0;
    let count = allocations(|| {
        for cycle in 0..20_000 {
            if let Some((sequence, what, path)) = commands.iter().find(|row| row.0 == cycle) {
                arm.command(&PlannerCommand { sequence: *sequence, what: *what, path: *path });
            }
            arm.cycle().expect("runs");
            paths = arm.planner.signal(signal("path_planner", "path"))[0];
        }
    });
    assert_eq!((paths, count), (1.0, 0));
}

#[test]
fn no_cycle_of_a_base_allocates() {
    let make = |kind| testing::fixture(entry(kind), ".".as_ref(), &[]).expect("makes");
    let (mut limiter, mut base) = (make("twist_limiter"), make("wheeled_base"));
    let (mut select, mut odometry) = (make("twist_select"), make("odometry"));
    let mut random = fastrand::Rng::with_seed(3);
    let count = allocations(|| {
        for cycle in 0..5_000 {
            if cycle % 300 == 0 {
                let size = if cycle == 3_000 { f64::NAN } else { random.f64() };
                let target =
                    TwistTarget { linear_m_per_s: [size; 3], angular_rad_per_s: [size; 3] };
                limiter.put(port("twist_limiter", "in"), &target);
                select.put(port("twist_select", "manual"), &target);
            }
            select.update().expect("runs");
            limiter.update().expect("runs");
            let twist = limiter.get::<TwistTarget>(port("twist_limiter", "out")).expect("it says");
            base.put(port("wheeled_base", "in"), &twist);
            base.update().expect("runs");
            let state = base.get::<BaseState>(port("wheeled_base", "out")).expect("it says");
            odometry.put(port("odometry", "wheels"), &state);
            odometry.update().expect("runs");
        }
    });
    let moved = base.signal(signal("wheeled_base", "position_m"));
    assert!(moved != [0.0, 0.0] && count == 0, "at {moved:?} m with {count} allocations");
}

#[test]
fn no_cycle_of_a_limiter_of_poses_allocates() {
    let entry = entry("pose_limiter");
    let mut limiter = testing::fixture(entry, &testing::graph(), &[IRB120]).expect("makes");
    let (input, output) = (port("pose_limiter", "in"), port("pose_limiter", "out"));
    limiter.update().expect("stands at home");
    let home = limiter.get::<CartesianTarget>(output).expect("it says");
    let mut random = fastrand::Rng::with_seed(4);
    let mut limits = [0u32; 12];
    let mut target = home;
    let count = allocations(|| {
        for cycle in 0..8_000 {
            if cycle % 400 == 0 {
                let mut by = |most: f64| most * (2.0 * random.f64() - 1.0);
                target.position_m = home.position_m.map(|place| place + by(0.3));
                // Through the wrist's straight position, and back.
                target.orientation_xyzw =
                    if cycle % 800 == 0 { [0.0, 0.0, 0.0, 1.0] } else { home.orientation_xyzw };
            }
            limiter.put(input, &target);
            limiter.update().expect("runs");
            limits[limiter.signal(signal("pose_limiter", "limited_by"))[0] as usize] += 1;
        }
    });
    assert!(limits[1..].iter().sum::<u32>() > 100, "not shown: limited by {limits:?}");
    assert_eq!(count, 0);
}

#[test]
fn a_fault_does_not_allocate() {
    let given = [("path", "square.csv"), ("following_mm", "0.001")];
    // With weak motors the arm lags behind, and the planner must notice.
    let soft = [("torque_max_n_m", "[4, 4, 2, 1, 1, 1]"), ("following_deg", "300")];
    let mut arm = Arm::new(&given, &soft).expect("makes");
    let mut fault = None;
    let count = allocations(|| {
        for _ in 0..10_000 {
            if let Err(error) = arm.cycle() {
                fault = Some(error);
                break;
            }
        }
    });
    let fault = fault.expect("lags");
    assert!(fault.text().contains("exceeds following_mm 0.001"), "{fault}");
    assert_eq!(count, 0);
}
