//! What the monitor does with the run: counts its cycles, judges its rules, acts on them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::json;
use sinew_control::Request;
use sinew_control::Supervisor;
use sinew_core::clock::now_ns;
use sinew_core::trace::ThreadId;
use sinew_core::trace::Totals;
use sinew_core::{Fault, fault};
use sinew_runtime::service::tell;
use sinew_runtime::watch::Watch;
use sinew_spec::plan::Plan;

use super::figures::{Cycle, CycleFigures, Gauges, Labels, Standing, counters, gauges};
use super::rules::{At, Change, News, Rule, Watched};
use super::server::held;
use super::webhook::Outbox;

/// Everything that is kept from one poll to the next.
pub(super) struct Look<'a> {
    rules: &'a [Rule],
    graph: String,
    watched: Watched,
    cycles: CycleFigures,
    standing: Standing,
    /// For each rule the number of sources at which it holds, and how often it has fired.
    firing: Family<Labels, Gauge>,
    fired: Family<Labels, Counter>,
    /// Has no value until a rule has stopped the core.
    to_stop: Gauges,
    outbox: Option<Outbox>,
    /// The monitor's own name.
    name: String,
    /// Number of the last event that was seen.
    seen: u64,
    /// For each thread the life of the core in which it was last seen, and what it had counted
    /// then; and the newest of these lives.
    counted: BTreeMap<ThreadId, (u32, Totals)>,
    life: Option<u32>,
    /// The cycle that broke a rule with the action stop; kept until the stop is seen.
    broken: Option<(usize, At)>,
}

impl<'a> Look<'a> {
    /// Finds in the plan what the rules watch, and reports it.
    ///
    /// # Errors
    /// A rule names something that the plan does not have.
    pub(super) fn new(
        plan: &Plan,
        rules: &'a [Rule],
        with_signals: bool,
        name: &str,
        registry: &mut Registry,
    ) -> Result<Look<'a>, Fault> {
        let watched = Watched::bind(rules, plan).map_err(|what| fault!("{what}"))?;
        for (at, rule) in rules.iter().enumerate() {
            let sources: Vec<&str> = watched.of(at).map(|it| it.source.as_str()).collect();
            tell(format_args!("{rule} watches {}: {}", rule.doc(), sources.join("; ")));
        }
        let firing = Family::default();
        registry.register("rule_firing", "Sources at which a rule holds", Family::clone(&firing));
        let fired = counters(registry, "rule_fired", "How often a rule has fired");
        for rule in rules {
            // A rule that has never fired is shown too.
            _ = (firing.get_or_create(&of_rule(rule)), fired.get_or_create(&of_rule(rule)));
        }
        let doc = "The last stop by a rule, from the cycle that broke it to the first safe output";
        Ok(Look {
            rules,
            graph: plan.name.clone(),
            watched,
            cycles: CycleFigures::new(registry, plan, with_signals),
            standing: Standing::new(registry),
            firing,
            fired,
            to_stop: gauges(registry, "rule_stop", doc, Some(Unit::Seconds)),
            outbox: None,
            name: name.into(),
            seen: 0,
            counted: BTreeMap::new(),
            life: None,
            broken: None,
        })
    }

    /// From now on rules may use this outbox. Its receiver is told that they start again, because
    /// this monitor does not know what was said by one before it, in this run or an earlier one.
    pub(super) fn tell_through(&mut self, outbox: Option<Outbox>) {
        self.outbox = outbox;
        if let Some(outbox) =
            self.outbox.as_ref().filter(|_| self.rules.iter().any(|it| it.webhook))
        {
            let text = "all rules start again: one that was firing is over, unless it fires again";
            outbox.put(self.letter(None, text));
        }
    }

    /// Takes the cycles since the last call.
    ///
    /// # Errors
    /// The supervisor does not carry out an order of a rule.
    pub(super) fn at_cycles(&mut self, watch: &mut Watch) -> Result<(), Fault> {
        let (clock, supervisor) = (watch.clock(), watch.supervisor().clone());
        let begun_in = watch.life();
        let mut news = Vec::new();
        let mut stop_ns = None;
        watch.read(&mut |thread, record| {
            let (life, totals) = (record.life(), record.totals());
            let before = self.counted.insert(thread, (life, totals));
            if before.is_some_and(|before| before.0 < life) {
                news.extend(self.watched.reset(|it| it.thread == Some(thread)));
            }
            if self.life.is_none_or(|newest| newest < life) && self.life.replace(life).is_some() {
                // A rule that stops the core and still holds must stop it again.
                let stops = |rule: usize| self.rules[rule].stop;
                news.extend(self.watched.reset(|it| it.thread.is_none() && stops(it.rule)));
            }
            if record.is_told_to_stop() {
                let first_ns = stop_ns.unwrap_or(u64::MAX).min(record.start_ns());
                stop_ns = Some(first_ns);
            }
            self.cycles.totals(thread, life, totals);
            if record.is_stopping() {
                return;
            }
            let before = before.filter(|before| before.0 == life).map(|it| it.1);
            let cycle = Cycle::new(record, before, clock);
            self.cycles.observe(thread, &cycle);
            // Cycles from before this process started and the core was reset do not count.
            if life >= begun_in {
                let at = At { thread, life, number: record.number(), start_ns: record.start_ns() };
                news.extend(self.watched.cycle(at, &cycle));
            }
        });
        news.into_iter().try_for_each(|news| self.act(&supervisor, &news))?;
        if let Some(stop_ns) = stop_ns {
            self.measure(watch.plan(), stop_ns);
        }
        Ok(())
    }

    /// Takes the status and the events. Waits while a page is written from `registry`.
    ///
    /// # Errors
    /// The supervisor is gone, or does not carry out an order of a rule.
    pub(super) fn at_status(
        &mut self,
        watch: &Watch,
        registry: &Mutex<Registry>,
    ) -> Result<(), Fault> {
        let supervisor = watch.supervisor();
        let status = supervisor.status()?;
        let (events, missed) = supervisor.events(self.seen)?;
        let whole = held(registry);
        self.standing.show(&status);
        self.standing.events(&events, missed);
        drop(whole);
        self.seen = events.last().map_or(self.seen, |event| event.number);
        watch.threads().for_each(|thread| self.cycles.lost(thread, watch.lost(thread)));
        let news = self.watched.status(now_ns(), &status, |thread| watch.lost(thread));
        news.into_iter().try_for_each(|news| self.act(supervisor, &news))
    }

    fn act(&mut self, supervisor: &Supervisor, news: &News) -> Result<(), Fault> {
        let rule = &self.rules[news.rule];
        let text = words(rule, news);
        if matches!(news.change, Change::Fired(_)) {
            // A late decision about one life of the core must not stop the next life.
            if rule.stop && news.at.is_none_or(|at| self.counted[&at.thread].0 == at.life) {
                // The order comes first: everything else can wait.
                let order = supervisor.order(&Request::Halt { reason: Some(text.clone()) });
                order.map_err(|error| fault!("{rule} cannot stop the core: {error}"))?;
                self.broken = self.broken.or(news.at.map(|at| (news.rule, at)));
            }
            self.fired.get_or_create(&of_rule(rule)).inc();
        }
        let firing = self.watched.of(news.rule).filter(|it| it.judge.is_firing()).count();
        self.firing.get_or_create(&of_rule(rule)).set(firing as i64);
        let alarm = supervisor.order(&Request::Alarm { text: text.clone() });
        alarm.map_err(|error| fault!("{rule} cannot raise its alarm: {error}"))?;
        if let Some(outbox) = self.outbox.as_ref().filter(|_| rule.webhook)
            && !outbox.put(self.letter(Some(news), &text))
        {
            tell(format_args!("{rule}: its webhook is not called, too many calls wait already"));
        }
        Ok(())
    }

    /// The message to the webhook.
    fn letter(&self, news: Option<&News>, text: &str) -> String {
        let rule = news.map(|news| &self.rules[news.rule]);
        let (state, value) = match news.map(|news| news.change) {
            None => ("begins", None),
            Some(Change::Fired(value)) => ("firing", Some(value)),
            Some(Change::Resolved { .. } | Change::Forgotten { .. }) => ("resolved", None),
        };
        json!({
            "graph": self.graph,
            "monitor": self.name,
            "rule": rule.map(|rule| rule.number),
            "condition": rule.map(|rule| &rule.text),
            "state": state,
            "source": news.map(|news| &news.source),
            "value": value,
            "cycle": news.and_then(|news| news.at).map(|at| at.number),
            "text": text,
        })
        .to_string()
    }

    /// Reports how long a stop by a rule took, up to the first cycle with safe outputs.
    fn measure(&mut self, plan: &Plan, stop_ns: u64) {
        let Some((rule, at)) = self.broken.take() else { return };
        let period_ns =
            plan.domains[at.thread.domain].realtime().map_or(1, |domain| domain.period_ns);
        let ns = stop_ns.saturating_sub(at.start_ns);
        self.to_stop.get_or_create(&of_rule(&self.rules[rule])).set(ns as f64 / 1e9);
        tell(format_args!(
            "{}: safe outputs {:.1} ms, {:.1} periods, after the start of cycle {} that broke it",
            self.rules[rule],
            ns as f64 / 1e6,
            ns as f64 / period_ns as f64,
            at.number
        ));
    }
}

fn of_rule(rule: &Rule) -> Labels {
    vec![("rule", rule.number.to_string()), ("condition", rule.text.clone())]
}

/// A change in words for people.
fn words(rule: &Rule, news: &News) -> String {
    let say = rule.say.as_ref().map_or(String::new(), |say| format!("{say}: "));
    let cycle = news.at.map_or(String::new(), |at| format!(", cycle {}", at.number));
    let source = &news.source;
    match news.change {
        Change::Fired(value) => {
            let value = (value * 1e3).round() / 1e3;
            format!("{say}{rule}: {value} in {source}{cycle}")
        }
        Change::Resolved { after_ns } => {
            let after_s = after_ns as f64 / 1e9;
            format!("{say}{rule}: no more in {source}{cycle}, after {after_s:.1} s")
        }
        Change::Forgotten { after_ns } => {
            let after_s = after_ns as f64 / 1e9;
            format!("{say}{rule}: over in {source}, the core started again, after {after_s:.1} s")
        }
    }
}
