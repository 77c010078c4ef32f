//! One line per second, for logs and pipes.

use std::io::{self, Write};

use sinew_control::status::{FlowStatus, Phase};
use sinew_figures::short::{micros, rate};
use sinew_figures::units::counted;
use sinew_report::ThreadStats;

use crate::scene::Scene;

/// Sets the lines of late cycles apart from the lines of each second.
const INDENT: &str = "        ";

/// Lines about the control thread.
pub(crate) struct Plain<W> {
    out: W,
    lines: u32,
}

impl<W: Write> Plain<W> {
    pub(crate) fn new(out: W) -> Plain<W> {
        Plain { out, lines: 0 }
    }

    /// Line 0 comes with the first cycle, line n after n seconds.
    pub(crate) fn is_due(&self, elapsed_s: f64) -> bool {
        elapsed_s >= f64::from(self.lines)
    }

    /// Writes a line.
    ///
    /// # Errors
    /// If the output is closed or full.
    pub(crate) fn show(&mut self, scene: &Scene<'_>) -> io::Result<()> {
        let control = scene.stats.control();
        if control.is_some_and(|control| control.first_start_ns.is_none()) {
            return Ok(());
        }
        match control {
            Some(control) if self.lines == 0 => self.first(scene, control)?,
            // If the core is held or starts again, an event says so.
            Some(_) if matches!(scene.phase, Phase::Held | Phase::Starting) => {}
            Some(control) => self.second(scene, control)?,
            None if self.lines == 0 => {
                let (graph, how) = (scene.graph, until(scene));
                let services = counted(scene.services.len() as u64, "service");
                writeln!(self.out, "{graph}: runs {services} {how}")?;
            }
            None => {}
        }
        if self.lines > 0 {
            self.flows(scene)?;
        }
        if let Some(late) = scene.late {
            writeln!(self.out, "{INDENT}{late}")?;
        }
        // After a pause, lines that were missed are not written later.
        self.lines = scene.elapsed_s as u32 + 1;
        self.out.flush()
    }

    /// A line for each source that has something to show: clients see flows. Flow figures of all
    /// nodes are in `sinew top`.
    fn flows(&mut self, scene: &Scene<'_>) -> io::Result<()> {
        for source in scene.flows().filter(|node| node.is_source && !is_idle(&node.status)) {
            let FlowStatus { packets_per_s, in_flight, errors, refused, .. } = source.status;
            let FlowStatus { time_ns_p50, time_ns_p99, time_ns_max, .. } = source.status;
            let [p50, p99, max] = [time_ns_p50, time_ns_p99, time_ns_max].map(micros);
            writeln!(
                self.out,
                "{:>4.0} s  {}  {:>6} flows/s  {in_flight} in flight  p50 {p50} p99 {p99} \
                 max {max} us  {}{}",
                scene.elapsed_s,
                source.name,
                rate(packets_per_s),
                counted(errors, "error"),
                if refused > 0 { format!(", {refused} refused") } else { String::new() },
            )?;
        }
        Ok(())
    }

    /// Writes events.
    ///
    /// # Errors
    /// If the output is closed or full.
    pub(crate) fn tell(&mut self, events: &[String]) -> io::Result<()> {
        events.iter().try_for_each(|event| writeln!(self.out, "{INDENT}{event}"))?;
        self.out.flush()
    }

    fn first(&mut self, scene: &Scene<'_>, control: &ThreadStats) -> io::Result<()> {
        let period_us = control.period_ns / 1000;
        let (graph, domain) = (scene.graph, &control.domain);
        let how = until(scene);
        writeln!(self.out, "{graph}: {domain} runs every {period_us} us {how}")
    }

    fn second(&mut self, scene: &Scene<'_>, control: &ThreadStats) -> io::Result<()> {
        let (latency, totals) = (&control.latency, control.totals());
        let [p50, p99] = [0.5, 0.99].map(|at| micros(latency.quantile(at)));
        let max = micros(latency.max());
        write!(
            self.out,
            "{:>4.0} s  {:>7} cycles  latency p50 {p50:>6} p99 {p99:>6} max {max:>6} us  {}",
            scene.elapsed_s,
            totals.cycles,
            counted(totals.overruns, "overrun"),
        )?;
        if scene.stats.records_lost() > 0 {
            let lost = counted(scene.stats.records_lost(), "record");
            write!(self.out, "  {lost} lost")?;
        }
        if let Some(error) = scene.stats.tracking_error_m() {
            write!(self.out, "  tracking {:.4} mm", error.last * 1e3)?;
        }
        let is_stopping = scene.phase == Phase::Stopping;
        writeln!(self.out, "{}", if is_stopping { "  stopping" } else { "" })
    }
}

/// Whether a source has nothing to show for the last second.
fn is_idle(status: &FlowStatus) -> bool {
    status.packets_per_s == 0.0 && status.in_flight == 0
}

/// How long the run will last.
fn until(scene: &Scene<'_>) -> String {
    match scene.duration_s {
        Some(duration_s) => format!("for {duration_s} s"),
        None => "until it is done or Ctrl-C".into(),
    }
}

#[cfg(test)]
mod tests {
    use sinew_report::{Stats, fixture};
    use sinew_spec::plan::Plan;

    use super::*;

    #[test]
    fn a_line_comes_every_second() {
        let mut plain = Plain::new(Vec::new());
        let stats = fixture::stats(1000);
        let mut scene = Scene::of("arm", &stats);
        assert!(plain.is_due(0.0));
        plain.show(&scene).expect("a vector takes all");
        assert!(!plain.is_due(0.9));
        scene.elapsed_s = 1.004;
        plain.show(&scene).expect("a vector takes all");
        let text = String::from_utf8(plain.out.clone()).expect("UTF-8");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "arm: control runs every 1000 us until it is done or Ctrl-C");
        assert_eq!(
            lines[1],
            "   1 s     1000 cycles  latency p50   9.00 p99   9.00 max   9.00 us  0 overruns  \
             tracking 1.0000 mm"
        );
        assert!(!plain.is_due(1.9) && plain.is_due(2.0));
        let len = plain.out.len();
        (scene.elapsed_s, scene.phase) = (2.004, Phase::Held);
        plain.show(&scene).expect("a vector takes all");
        assert_eq!(plain.out.len(), len, "a held core has no line");
        assert!(plain.is_due(3.0));
    }

    #[test]
    fn without_a_core_only_what_runs_is_said() {
        let mut plain = Plain::new(Vec::new());
        let stats = Stats::new(&Plan { domains: vec![], nodes: vec![], ..fixture::plan() });
        let mut scene = Scene { duration_s: Some(2.0), ..Scene::of("web", &stats) };
        plain.show(&scene).expect("a vector takes all");
        scene.elapsed_s = 1.0;
        plain.show(&scene).expect("a vector takes all");
        assert_eq!(String::from_utf8(plain.out), Ok("web: runs 0 services for 2 s\n".into()));
    }

    #[test]
    fn a_late_cycle_has_a_line_of_its_own() {
        let (mut plain, stats) = (Plain::new(Vec::new()), fixture::stats(1000));
        let scene = Scene {
            elapsed_s: 0.5,
            late: Some("control: cycle 7 late by 1.00 ms"),
            ..Scene::of("arm", &stats)
        };
        plain.show(&scene).expect("a vector takes all");
        let text = String::from_utf8(plain.out).expect("UTF-8");
        assert!(text.ends_with("\n        control: cycle 7 late by 1.00 ms\n"), "{text}");
    }
}
